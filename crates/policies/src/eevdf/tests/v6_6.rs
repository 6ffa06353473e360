// SPDX-License-Identifier: GPL-2.0-only
//! What is different in 6.6. Rows of cfs-eevdf §9: its trace.

use alloc::vec::Vec;

use schedlab_kcore::NewTask;
use schedlab_policy_api::SchedClass;
use schedlab_units::CpuId;

use super::harness::{self, Rig};
use super::starve::starve;
use super::traces::picks;
use crate::eevdf::tunables::VARIANTS;
use crate::eevdf::{Eevdf, EevdfTunables};

const MS: u64 = 1_000_000;

/// 6.6 with the slice of a machine of eight or more CPUs.
fn set_6_6() -> Vec<(&'static str, &'static str)> {
    let mut set = harness::set_of::<EevdfTunables>(VARIANTS, "6.6");
    set.push(("base_slice", "3ms"));
    set
}

/// Later picks tie.
#[test]
fn vectors_78_trace_of_6_6() {
    let (picks, ..) = picks(1000, &set_6_6(), &[0, 0, 5], 5);
    assert_eq!(picks, ["0:A", "3:B", "6:C", "10:A", "13:B"]);
}

/// Rows `6.6` of the reference results of §8.
#[test]
fn starve_matches_the_reference_model() {
    for (hz, wait_us) in [(1000, 3_300), (250, 5_600)] {
        let (ms_per_million, per_mille, longest_us) = starve::<Eevdf>(hz, &set_6_6());
        assert!(ms_per_million.abs_diff(6_680) <= 334, "HZ {hz}: {ms_per_million}");
        assert!(per_mille.abs_diff(348) <= 10, "HZ {hz}: share {per_mille}");
        assert!(longest_us.abs_diff(wait_us) <= 300, "HZ {hz}: waits {longest_us} us");
    }
}

#[test]
fn sleeper_leaves_at_once_with_its_negative_lag() {
    let mut rig = Rig::single(1000, &set_6_6());
    let (a, b) = (rig.spawn_nice(0), rig.spawn_nice(0));
    rig.schedule(0);
    rig.run_until(2 * MS);
    assert_eq!(rig.block(0), Some(b));
    assert_eq!((rig.figure(a, "on_rq"), rig.figure(a, "lag")), (0, -1_000_000));
}

/// RUN_TO_PARITY without a way to end it: the request to reschedule is in vain.
#[test]
fn sched_idle_task_stays_protected_from_a_wakeup() {
    for (set, goes) in [(set_6_6(), false), (Vec::new(), true)] {
        let mut rig = Rig::single(1000, &set);
        let normal = rig.spawn_nice(0);
        rig.schedule(0);
        rig.block(0);
        let idle = rig.spawn(&NewTask { class: SchedClass::Idle, ..rig.normal() }, Some(0));
        assert_eq!(rig.schedule(0), Some(idle));
        rig.wake(0, normal, None);
        assert!(rig.need_resched(0));
        assert_eq!(rig.schedule(0), Some(if goes { normal } else { idle }));
    }
}

#[test]
fn wish_for_a_slice_means_nothing() {
    let mut rig = Rig::single(1000, &set_6_6());
    let short = NewTask { slice_request_ns: MS, ..rig.normal() };
    let a = rig.spawn(&short, Some(0));
    assert_eq!(rig.figure(a, "slice"), 3_000_000);
    rig.core.set_slice(rig.time(), CpuId(0), a, 500_000);
    assert_eq!(rig.figure(a, "slice"), 3_000_000);
}

#[test]
fn real_time_is_throttled() {
    let mut rig = Rig::single(1000, &set_6_6());
    let (fifo, hog) = (rig.spawn_rt(SchedClass::Fifo, 1, 0), rig.spawn_nice(0));
    rig.schedule(0);
    rig.run_until(1000 * MS);
    // Noticed at the tick after 950 ms.
    assert_eq!((rig.run_ns(fifo) / MS, rig.run_ns(hog) / MS), (951, 49));
    rig.core.timer(rig.time(), CpuId(0), 2);
    assert_eq!(rig.schedule(0), Some(fifo));
}

/// Quirk Q10: it is placed twice, the second time without INITIAL.
#[test]
fn new_task_gets_a_whole_slice() {
    let set = set_6_6();
    // The bench sets that, too.
    assert!(set.contains(&("place_deadline_initial", "off")));
    let mut rig = Rig::single(1000, &set);
    let a = rig.spawn_nice(5);
    assert_eq!(rig.figure(a, "deadline") - rig.figure(a, "vruntime"), 9_170_149);
}
