// SPDX-License-Identifier: GPL-2.0-only
//! Rows of linux-2.4-goodness §9, A to D: the arithmetic of ticks, first alone, then as the hooks
//! use them.

use alloc::format;
use alloc::string::ToString;

use schedlab_units::{CpuId, Hz, Nice};

use super::rig::Rig;
use crate::csv::rows;
use crate::goodness::counter::{self, ForkSplit, Forked};

fn nice(n: i32) -> Nice {
    Nice::new(n).expect("a nice value")
}

#[test]
fn vectors_a1_to_a6_quantum() {
    for row in rows(include_str!("../vectors/quantum.csv")) {
        let hz = Hz::new(row.get("hz"));
        for n in ["-20", "-10", "0", "5", "10", "19"] {
            let ticks = counter::quantum(nice(n.parse().expect("a number")), hz);
            assert_eq!(ticks, row.get::<i32>(n), "{} HZ {} nice {n}", row.text("id"), hz.get());
        }
    }
}

#[test]
fn quantum_of_every_nice_at_hz_100_matches_the_spec() {
    let mut n_levels = 0;
    for row in rows(include_str!("../vectors/quantum_hz100.csv")) {
        for n in row.get::<i32>("from")..=row.get("to") {
            assert_eq!(counter::quantum(nice(n), Hz::new(100)), row.get("ticks"), "nice {n}");
            n_levels += 1;
        }
    }
    assert_eq!(n_levels, 40);
}

#[test]
fn vectors_b1_to_b7_epoch() {
    for row in rows(include_str!("../vectors/epoch.csv")) {
        let quantum = counter::quantum(nice(row.get("nice")), Hz::new(row.get("hz")));
        let mut ticks = row.get("counter");
        for after in row.text("after").split(' ') {
            ticks = counter::recharge(ticks, quantum);
            assert_eq!(ticks.to_string(), after, "{}", row.text("id"));
        }
    }
}

#[test]
fn epoch_fixed_point_is_twice_the_quantum_less_one() {
    for hz in [32, 100, 250, 500, 1000, 1024, 2000].map(Hz::new) {
        for n in -20..=19 {
            let quantum = counter::quantum(nice(n), hz);
            let limit = (0..64).fold(0, |ticks, _| counter::recharge(ticks, quantum));
            assert!(
                limit == 2 * quantum - 1 || limit == 2 * quantum - 2,
                "HZ {} nice {n}",
                hz.get()
            );
            assert!(limit <= counter::counter_bound(hz), "HZ {} nice {n}", hz.get());
        }
    }
}

#[test]
fn vectors_c1_to_c7_fork() {
    for row in rows(include_str!("../vectors/fork.csv")) {
        let rule = match row.text("fork_split") {
            "half" => ForkSplit::Half,
            _ => ForkSplit::AllToChild,
        };
        let expected = Forked { child: row.get("child"), parent: row.get("parent") };
        assert_eq!(counter::fork(rule, row.get("counter")), expected, "{}", row.text("id"));
    }
}

#[test]
fn vectors_c1_to_c7_fork_through_the_hook() {
    for row in rows(include_str!("../vectors/fork.csv")) {
        let mut rig = Rig::new(1, &format!("fork_split={}", row.text("fork_split")));
        let parent = rig.hog("6");
        rig.wake_new(CpuId(0), parent);
        rig.settle(CpuId(0));
        rig.core.policy_mut().set_counter(parent, row.get("counter"));
        let new = rig.process(super::rig::Figures::parse("0"));
        let child = rig.core.fork(rig.now, CpuId(0), Some(parent), &new);
        assert_eq!(rig.inspect(child, "counter"), row.get::<i64>("child"), "{}", row.text("id"));
        assert_eq!(rig.inspect(parent, "counter"), row.get::<i64>("parent"), "{}", row.text("id"));
        let asked = i64::from(rig.core.need_resched(CpuId(0)));
        assert_eq!(asked, row.get::<i64>("need_resched"), "{}", row.text("id"));
    }
}

#[test]
fn vectors_d1_to_d6_reap() {
    for row in rows(include_str!("../vectors/reap.csv")) {
        let hz = Hz::new(row.get("hz"));
        let after = counter::reap(row.get("parent"), row.get("child"), hz);
        assert_eq!(after, row.get::<i32>("after"), "{}", row.text("id"));
    }
}

#[test]
fn reap_gives_the_parent_what_the_child_had_left() {
    let mut rig = Rig::new(1, "");
    let parent = rig.hog("11");
    rig.wake_new(CpuId(0), parent);
    rig.settle(CpuId(0));
    let new = rig.process(super::rig::Figures::parse("0"));
    let child = rig.core.fork(rig.now, CpuId(0), Some(parent), &new);
    rig.wake_new(CpuId(0), child);
    rig.block(CpuId(0));
    assert_eq!(rig.core.curr(CpuId(0)), Some(child));
    rig.core.policy_mut().set_counter(child, 9);
    rig.core.exit(rig.now, CpuId(0));
    rig.core.finish_switch(rig.now, CpuId(0));
    rig.core.policy_mut().set_counter(parent, 11);
    rig.core.reap(rig.now, CpuId(0), child);
    assert_eq!(rig.inspect(parent, "counter"), 20);
}
