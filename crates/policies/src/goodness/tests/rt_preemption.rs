// SPDX-License-Identifier: GPL-2.0-only
//! Rows of linux-2.4-goodness §9, I, and §7.3: how long a task of higher real-time priority waits
//! for one of lower.

use alloc::format;
use alloc::string::{String, ToString};

use schedlab_units::{CpuId, Nanos, TaskId, Time};

use super::rig::{Figures, Rig};
use crate::csv::rows;

const LIMIT: u64 = 200;
const TICK_NS: u64 = 10_000_000;

/// Ticks that HI, `d` levels above LO, waits on one CPU when woken in tick `w`; none = it has not
/// run before [`LIMIT`] ticks are over.
fn up_delay(lo_class: &str, k: u32, w: u64, d: u8, set: &str) -> Option<u64> {
    let cpu = CpuId(0);
    let mut rig = Rig::new(1, set);
    let lo = rig.hog(&format!("6:{lo_class} 50"));
    let hi = rig.hog(&format!("6:fifo {}", 50 + d));
    rig.wake_new(cpu, lo);
    rig.settle(cpu);
    rig.core.policy_mut().set_counter(lo, k);
    for tick in 1..=LIMIT {
        rig.advance(Nanos::from_ns(TICK_NS));
        rig.tick(cpu);
        if tick == w {
            rig.wake_new(cpu, hi);
        }
        rig.settle(cpu);
        if rig.core.curr(cpu) == Some(hi) {
            return Some(tick - w);
        }
    }
    None
}

#[test]
fn vectors_i1_to_i6_rt_delay() {
    for row in rows(include_str!("../vectors/rt_delay.csv")) {
        for class in ["fifo", "rr"] {
            let delay = up_delay(class, row.get("k"), row.get("w"), row.get("d"), row.text("set"));
            let shown = delay.map_or("never".to_string(), |ticks| ticks.to_string());
            let row_id =
                format!("{} {class} d={} {}", row.text("id"), row.text("d"), row.text("set"));
            assert_eq!(shown, row.text(class), "{row_id}");
        }
    }
}

/// The grid of §7.3 on one CPU: exactly k − w ticks at one level of difference under 2.4.5.
#[test]
fn claim_rt_off_by_one_up_grid() {
    for k in [0, 1, 6, 11] {
        for w in [1, 2, 5, 6, 7] {
            for (set, repaired) in [("", false), ("t_up=0", true), ("rt_scale=2", true)] {
                for d in [0, 1, 2] {
                    let hidden = d == 1 && !repaired;
                    let fifo = match (d, hidden) {
                        (0, _) => None,
                        (_, true) => Some(u64::from(k).saturating_sub(w)),
                        _ => Some(0),
                    };
                    let exhausted = (0..).map(|n| u64::from(k.max(1)) + 6 * n);
                    let rr = match hidden {
                        true => exhausted.into_iter().find(|e| *e >= w).map(|e| e - w),
                        false => fifo,
                    };
                    let at = format!("k={k} w={w} d={d} {set}");
                    assert_eq!(up_delay("fifo", k, w, d, set), fifo, "FIFO {at}");
                    assert_eq!(up_delay("rr", k, w, d, set), rr, "RR {at}");
                }
            }
        }
    }
}

/// When and where HI first runs on eight CPUs, each busy with an LO that has `k` ticks at time 0;
/// HI is woken by CPU 0 in the global timer interrupt at 20 ms.
fn smp_start(k: u32, d: u8, set: &str) -> (Nanos, CpuId) {
    let n = 8;
    let mut rig = Rig::new(n, set);
    for i in 0..n {
        let mut new = rig.process(Figures::parse("6:fifo 50"));
        new.cpu = CpuId(i);
        let lo = rig.create(&new, k);
        rig.wake_new(CpuId(0), lo);
        rig.settle(CpuId(i));
        assert_eq!(rig.core.curr(CpuId(i)), Some(lo));
    }
    let hi = rig.hog(&format!("6:fifo {}", 50 + d));
    for jiffy in 1..LIMIT {
        // The local ticks between two global interrupts, then the second of these.
        for i in 0..n {
            let skew = TICK_NS * u64::from(i + 1) / u64::from(n + 1);
            rig.now = Time::from_ns((jiffy - 1) * TICK_NS + skew);
            rig.tick(CpuId(i));
            rig.settle(CpuId(i));
            if let Some(start) = started(&rig, hi) {
                return start;
            }
        }
        rig.now = Time::from_ns(jiffy * TICK_NS);
        if jiffy == 2 {
            rig.wake_new(CpuId(0), hi);
            rig.settle(CpuId(0));
        }
        if let Some(start) = started(&rig, hi) {
            return start;
        }
    }
    panic!("HI never runs");
}

fn started(rig: &Rig, hi: TaskId) -> Option<(Nanos, CpuId)> {
    let woken = Time::from_ns(2 * TICK_NS);
    let cpu = rig.core.topo().cpus().find(|cpu| rig.core.curr(*cpu) == Some(hi))?;
    Some((rig.now - woken, cpu))
}

/// §7.3 on eight CPUs, without costs: 31.1 ms until CPU 0's sixth local tick; 1.1 ms where the
/// ticks are used up; at once, and on CPU 0, where the bug is repaired or hidden by two levels.
#[test]
fn claim_rt_off_by_one_smp() {
    let at_once = (Nanos::ZERO, CpuId(0));
    assert_eq!(smp_start(6, 1, ""), (Nanos::from_ns(31_111_111), CpuId(0)));
    assert_eq!(smp_start(0, 1, ""), (Nanos::from_ns(1_111_111), CpuId(0)));
    assert_eq!(smp_start(6, 2, ""), at_once);
    assert_eq!(smp_start(6, 1, "t_smp=0"), at_once);
    assert_eq!(smp_start(6, 1, "rt_scale=2"), at_once);
}

/// The variants by name: the bug is in 2.4.5 and gone in the other two.
#[test]
fn claim_rt_off_by_one_by_variant() {
    for (name, up, smp_ns) in [("2.4.5", 4, 31_111_111), ("2.4.5-ac", 0, 0), ("2.4.10", 0, 0)] {
        let set = variant(name);
        assert_eq!(up_delay("fifo", 6, 2, 1, &set), Some(up), "{name}");
        assert_eq!(smp_start(6, 1, &set).0, Nanos::from_ns(smp_ns), "{name}");
    }
}

/// A variant's settings in the form of the rows.
fn variant(name: &str) -> String {
    use schedlab_policy_api::{PolicyDef, Tunables};
    let info = crate::Goodness::INFO;
    let variant = info.variants.iter().find(|v| v.name == name).expect("a variant");
    let mut text = String::new();
    for (name, value) in variant.set {
        let index = crate::GoodnessTunables::index_of(name).expect("a tunable");
        let shown = crate::GoodnessTunables::SPECS[index].show(*value);
        text += &format!("{name}={shown};");
    }
    text
}
