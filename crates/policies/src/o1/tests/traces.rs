// SPDX-License-Identifier: GPL-2.0-only
//! Rows of linux-2.6-o1 §9 about whom each tick finds running.

use alloc::vec;
use alloc::vec::Vec;

use schedlab_units::TaskId;

use super::rig::{CPU0, Rig, knobs};
use crate::csv::rows;
use crate::o1::tunables::{Clock, VARIANTS};

/// Two hogs without sleep average.
fn hogs(variant: &str) -> (Rig, Vec<TaskId>) {
    let mut rig = Rig::up(variant);
    let tasks = vec![rig.task(0), rig.task(0)];
    rig.schedule(CPU0);
    (rig, tasks)
}

/// Stints as the spec writes them, A first and alternating.
fn alternating(lengths: &[u64]) -> Vec<(usize, u64)> {
    lengths.iter().enumerate().map(|(i, n)| (i % 2, *n)).collect()
}

#[test]
fn vectors_46_hogs_test1() {
    for variant in ["2.6.0-test1", "test1n", "gfc", "2.6.0"] {
        let (mut rig, hogs) = hogs(variant);
        assert_eq!(rig.stints(101, &hogs), vec![(0, 101)]);
        assert_eq!(rig.figure(hogs[0], "expired_timestamp"), 0);
        assert_eq!(rig.stints(1, &hogs), vec![(0, 1)]);
        assert_eq!(rig.figure(hogs[0], "expired_timestamp"), 102);
        assert_eq!(rig.figure(hogs[0], "array"), 0);
        assert_eq!(rig.stints(102, &hogs), vec![(1, 102)]);
        assert_eq!(rig.figure(hogs[0], "expired_timestamp"), 0, "cleared at the switch");
        assert_eq!(rig.stat("array_switches"), 1);
        assert_eq!(rig.stints(204, &hogs), alternating(&[102, 102]), "{variant}");
    }
}

#[test]
fn vectors_47_hogs_g3() {
    for variant in ["g3", "felipe", "g3-gfc"] {
        let (mut rig, hogs) = hogs(variant);
        for _ in 0..3 {
            let stints = rig.stints(204, &hogs);
            assert_eq!(stints, alternating(&[2, 2, 50, 50, 50, 50]), "{variant}");
        }
        assert_eq!(rig.stat("array_switches"), 3);
    }
}

#[test]
fn vectors_48_hogs_g7() {
    for variant in ["g6", "g7"] {
        let (mut rig, hogs) = hogs(variant);
        for _ in 0..3 {
            let stints = rig.stints(204, &hogs);
            let expected = [25, 25, 25, 25, 25, 25, 25, 25, 2, 2];
            assert_eq!(stints, alternating(&expected), "{variant}");
        }
    }
}

#[test]
fn vectors_49_interactive_and_hog() {
    let mut rig = Rig::up("2.6.0-test1");
    let tasks = [rig.task(10_000), rig.task(0)];
    rig.schedule(CPU0);
    assert_eq!(rig.figure(tasks[0], "prio"), 115);
    assert_eq!(rig.stints(102, &tasks), vec![(0, 102)]);
    assert_eq!((rig.figure(tasks[0], "array"), rig.figure(tasks[0], "prio")), (1, 116));
    assert_eq!(rig.stints(3060 - 102, &tasks), vec![(0, 3060 - 102)]);
    let found = ["sleep_avg", "prio", "array"].map(|name| rig.figure(tasks[0], name));
    assert_eq!(found, [6940, 119, 0]);
    assert_eq!((rig.stat("reinsertions"), rig.stat("expirations")), (29, 1));
    assert_eq!(rig.stints(102, &tasks), vec![(1, 102)]);
}

/// f waits from jiffy 1000 on, behind `other`, which ran at that instant; c, interactive, ends a
/// slice at 1600 or 1601.
#[test]
fn vectors_50_gfc_punishment() {
    for (end, punished) in [(1600, false), (1601, true)] {
        let mut rig = Rig::up("gfc");
        rig.ticks(1000);
        let (other, f) = (rig.task(0), rig.task(0));
        rig.settle();
        assert_eq!(rig.jiffies(), 1000);
        let c = rig.task(10_000);
        rig.settle();
        assert_eq!(rig.core.curr(CPU0), Some(c));
        rig.core.policy_mut().tasks[c.index()].time_slice = (end - 1000) as u32;
        let before = rig.stat("starved_expirations");
        rig.ticks(end - 1000);
        assert_eq!(rig.stat("starved_expirations") - before, i64::from(punished), "{end}");
        assert_eq!(rig.figure(c, "array"), if punished { 0 } else { 1 }, "{end}");
        let active = rig.core.policy().active(CPU0);
        let first_waiting = rig.core.policy().waiting.first(0);
        if punished {
            assert_eq!(rig.core.curr(CPU0), Some(f), "{end}: first of its list");
            assert_eq!(first_waiting, Some(other));
        } else {
            assert_eq!(rig.core.policy().arrays.first(active), Some(c));
            assert_eq!(first_waiting, Some(f));
        }
    }
}

#[test]
fn vectors_51_gfc_fork() {
    let mut rig = Rig::up("gfc");
    let parent = rig.task(0);
    rig.schedule(CPU0);
    rig.ticks(5);
    let child = rig.fork(CPU0);
    rig.core.policy_mut().tasks[child.index()].time_slice = 102;
    // The child waits behind an RT task, which hides that it would run at once.
    let rt = rig.fifo();
    rig.settle();
    assert_eq!(rig.core.curr(CPU0), Some(rt));
    rig.ticks(895);
    assert_eq!(rig.core.policy().waiting.array_of(child), None);
    rig.block(CPU0);
    assert_eq!((rig.core.curr(CPU0), rig.jiffies()), (Some(child), 900));
    assert_eq!(rig.core.policy().waiting.array_of(child), None);
    rig.ticks(50);
    assert_eq!(rig.core.curr(CPU0), Some(child));
    rig.wake(rt);
    let policy = rig.core.policy();
    assert_eq!(policy.waiting.array_of(child), Some(0));
    assert_eq!(policy.tasks[child.index()].activated_timestamp, 950);
    assert_eq!(policy.waiting.first(0), Some(parent));
}

/// Rows 20 to 23, age by age.
#[test]
fn vectors_20_to_23_starving() {
    for row in rows(include_str!("../vectors/starving.csv")) {
        let variant = row.text("variant");
        let mut rig = Rig::up(variant);
        let first = rig.task(0);
        let policy = rig.core.policy_mut();
        policy.rqs[0].nr_running = row.get("nr_running");
        assert!(!policy.is_starving(CPU0, 1_000_000) || variant == "gfc", "0 is never");
        policy.rqs[0].expired_timestamp = 1000;
        policy.tasks[first.index()].activated_timestamp = 1000;
        let age: u64 = row.get("age");
        assert!(!policy.is_starving(CPU0, 1000 + age - 1), "row {} {age}", row.text("row"));
        assert!(policy.is_starving(CPU0, 1000 + age), "row {} {age}", row.text("row"));
    }
}

#[test]
fn starvation_limit_0_is_off() {
    let mut rig = Rig::new(1, "2.6.0-test1", "starvation_limit=0");
    rig.core.policy_mut().rqs[0].expired_timestamp = 1;
    assert!(!rig.core.policy_mut().is_starving(CPU0, 1_000_000_000));
}

#[test]
fn variants_have_the_clock_of_their_kernel() {
    let clocks = VARIANTS.iter().map(|variant| (variant.name, knobs(variant.name).clock));
    for (name, clock) in clocks {
        let expected = match name {
            "2.6.0-test1" | "test1n" | "gfc" => Clock::Tick,
            "2.6.0" | "2.6.6" | "2.6.17" => Clock::NsCredit,
            _ => Clock::Ns,
        };
        assert_eq!(clock, expected, "{name}");
    }
}
