// SPDX-License-Identifier: GPL-2.0-only
//! Rows 21 to 28 of spec bfs §9: forks, expiry in the tick, the ISO limit.

use alloc::vec::Vec;

use schedlab_policy_api::SchedClass;
use schedlab_units::{CpuId, CpuSet, Hz, TaskId};

use super::rig::Rig;
use crate::bfs::iso::IsoLimit;

/// A running task with this rest of its quota.
fn running(slice: i32) -> (Rig, TaskId) {
    let mut rig = Rig::new(1, 1000, "rr_interval=9");
    let task = rig.fresh(0, 1);
    rig.start();
    rig.policy().cpus[0].rq_time_slice = slice;
    (rig, task)
}

#[test]
fn vectors_21_fork() {
    for (before, parents, childs, resched) in [
        (9216, 4608, 4608, false),
        (201, 100, 100, false),
        (200, 100, 100, false),
        (199, 0, 9216, true),
    ] {
        let (mut rig, parent) = running(before);
        let new = rig.process();
        let child = rig.core.fork(rig.now, CpuId(0), Some(parent), &new);
        assert_eq!(rig.inspect(parent, "time_slice"), parents, "{before}");
        assert_eq!(rig.inspect(child, "time_slice"), childs, "{before}");
        assert_eq!(rig.core.need_resched(CpuId(0)), resched, "{before}");
        assert_eq!(rig.inspect(child, "fork_depth"), 2);
    }
}

#[test]
fn vectors_22_forks_until_empty() {
    for (quota, forks, left) in [(9216, 6, 144), (6144, 5, 192)] {
        let (mut rig, parent) = running(quota);
        for n in 0.. {
            let slice = rig.policy().cpus[0].rq_time_slice;
            if slice < 200 {
                assert_eq!((n, slice), (forks, left), "from {quota}");
                break;
            }
            let new = rig.process();
            rig.core.fork(rig.now, CpuId(0), Some(parent), &new);
        }
    }
}

#[test]
fn vectors_23_expiry_in_the_tick() {
    for (dither, slice, expires) in
        [(true, 501, false), (true, 500, true), (false, 100, false), (false, 99, true)]
    {
        let (mut rig, _) = running(slice);
        // Nothing is charged: the tick comes at the instant of the dispatch.
        rig.policy().cpus[0].dither = dither;
        rig.core.tick(rig.now, CpuId(0));
        assert_eq!(rig.core.need_resched(CpuId(0)), expires, "dither {dither}, {slice}");
    }
}

#[test]
fn vectors_24_limits_of_iso() {
    for (cpus, set, clear) in [(1, 350_070, 310_062), (2, 700_070, 620_062)] {
        let limit = IsoLimit::new(70, cpus, Hz::new(1000));
        assert_eq!((limit.set_above(), limit.clear_below()), (set, clear));
    }
}

/// Ticks at which the limit struck and let go, with the count after each.
fn iso_history(cpus: u32, hz: u32, n_ticks: u64) -> (Vec<(u64, u64)>, Rig) {
    let mut rig = Rig::new(cpus, hz, "");
    let mut new = rig.process();
    new.class = SchedClass::Iso;
    new.affinity = CpuSet::single(CpuId(0));
    let task = rig.create(&new, 1);
    rig.wake_new(task);
    rig.start();
    let (mut history, mut refractory) = (Vec::new(), false);
    for tick in 1..=n_ticks {
        rig.tick();
        let iso = rig.policy().iso;
        if iso.refractory != refractory {
            refractory = iso.refractory;
            history.push((tick, iso.ticks));
        }
    }
    (history, rig)
}

#[test]
fn vectors_25_iso_hog() {
    let (history, _) = iso_history(1, 1000, 5200);
    assert_eq!(history, [(3501, 350_100), (4104, 310_043), (4505, 350_143), (5109, 310_019)]);
}

#[test]
fn vectors_26_iso_hog_of_two_cpus() {
    let (history, _) = iso_history(2, 1000, 15_800);
    let expected = [(12_158, 700_005), (12_760, 620_037), (15_159, 700_016), (15_761, 620_045)];
    assert_eq!(history, expected);
}

#[test]
fn vectors_27_iso_hog_elsewhere() {
    let (history, _) = iso_history(1, 100, 516);
    assert_eq!(history[..2], [(351, 35_100), (412, 31_044)]);
    assert_eq!((history[2].0, history[3].0), (453, 515));
    let (history, mut rig) = iso_history(4, 1000, 200_000);
    assert_eq!(history, []);
    assert_eq!(rig.policy().iso.ticks, 659_933);
}

#[test]
fn vectors_28_decay() {
    let mut limit = IsoLimit::new(70, 1, Hz::new(1000));
    limit.ticks = 350_100;
    limit.no_iso_tick();
    assert_eq!(limit.ticks, 350_029);
}

/// While the limit holds, an ISO task that is queued has the priority of NORMAL ones.
#[test]
fn refractory_iso_shares_with_normal() {
    let mut rig = Rig::new(1, 1000, "");
    let iso = rig.hog(0, SchedClass::Iso, 1);
    let normal = rig.hog(0, SchedClass::Normal, 1);
    rig.start();
    rig.run_until_ms(3500);
    assert_eq!(rig.core.task_account(rig.now, normal).run.as_ns(), 0, "ISO has it all");
    rig.run_until_ms(4000);
    assert!(rig.core.task_account(rig.now, normal).run.as_ns() > 200_000_000, "shared by now");
    assert_eq!(rig.inspect(iso, "prio"), 101);
    assert_eq!(rig.stat("iso_demotions"), 1);
}

#[test]
fn iso_cpu_0_and_100_are_never_and_always() {
    for (percent, demotions) in [(0, 1), (100, 0)] {
        let mut rig = Rig::new(1, 1000, &alloc::format!("iso_cpu={percent}"));
        rig.hog(0, SchedClass::Iso, 1);
        rig.start();
        rig.run_until_ms(20_000);
        assert_eq!(rig.stat("iso_demotions").min(1), demotions, "{percent} %");
    }
}
