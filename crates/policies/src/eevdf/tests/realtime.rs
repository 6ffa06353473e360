// SPDX-License-Identifier: GPL-2.0-only
//! Real-time tasks above fair ones.

use alloc::vec::Vec;

use schedlab_policy_api::{SchedClass, Topology};
use schedlab_units::{CpuId, CpuSet, Nice, TaskId};

use super::harness::Rig;

const MS: u64 = 1_000_000;

fn rig(n_cpus: u32, set: &[(&str, &str)]) -> Rig {
    Rig::new(Topology::flat(n_cpus).expect("a machine"), 1000, set)
}

#[test]
fn realtime_task_preempts_and_outranks() {
    let mut rig = rig(1, &[]);
    let fair = rig.spawn_nice(-20);
    rig.schedule(0);
    let low = rig.spawn_rt(SchedClass::Fifo, 10, 0);
    assert!(rig.need_resched(0));
    assert_eq!(rig.schedule(0), Some(low));
    let same = rig.spawn_rt(SchedClass::Fifo, 10, 0);
    assert!(!rig.need_resched(0), "equal priorities do not preempt");
    let high = rig.spawn_rt(SchedClass::Fifo, 11, 0);
    assert_eq!(rig.schedule(0), Some(high));
    assert_eq!(rig.block(0), Some(low), "it was preempted, so it is still first");
    rig.core.yield_task(rig.time(), CpuId(0));
    assert_eq!(rig.schedule(0), Some(same));
    assert_eq!(rig.block(0), Some(low));
    assert_eq!(rig.block(0), Some(fair));
}

#[test]
fn round_robin_turns_last_their_slice() {
    let mut rig = rig(1, &[("fair_server_runtime", "0")]);
    let tasks: Vec<TaskId> = (0..3).map(|_| rig.spawn_rt(SchedClass::Rr, 5, 0)).collect();
    rig.spawn_nice(0);
    rig.schedule(0);
    for (turn, task) in tasks.iter().cycle().take(7).enumerate() {
        assert_eq!(rig.core.curr(CpuId(0)), Some(*task), "turn {turn}");
        rig.run_until((turn as u64 + 1) * 100 * MS);
    }
    let fifo = rig.spawn_rt(SchedClass::Fifo, 6, 0);
    rig.settle();
    rig.run_until(rig.now + 500 * MS);
    assert_eq!(rig.core.curr(CpuId(0)), Some(fifo), "FIFO has no slice");
}

#[test]
fn priority_change_moves_to_the_right_end() {
    let mut rig = rig(1, &[]);
    let running = rig.spawn_rt(SchedClass::Fifo, 50, 0);
    rig.schedule(0);
    let (a, b) = (rig.spawn_rt(SchedClass::Fifo, 20, 0), rig.spawn_rt(SchedClass::Fifo, 10, 0));
    // A task whose priority is lowered goes to the front of its new list, a raised one to the end.
    rig.core.set_class(rig.time(), CpuId(0), a, SchedClass::Fifo, 10);
    let c = rig.spawn_rt(SchedClass::Fifo, 5, 0);
    rig.core.set_class(rig.time(), CpuId(0), c, SchedClass::Fifo, 10);
    assert!(!rig.need_resched(0));
    assert_eq!([rig.block(0), rig.block(0), rig.block(0)], [Some(a), Some(b), Some(c)]);
    // The running one loses its CPU when it is lowered below a waiting one.
    rig.wake(0, running, None);
    assert_eq!(rig.schedule(0), Some(running));
    rig.core.set_class(rig.time(), CpuId(0), running, SchedClass::Fifo, 1);
    assert!(rig.need_resched(0));
    assert_eq!(rig.schedule(0), Some(c));
}

#[test]
fn class_change_of_the_running_task_takes_effect() {
    let mut rig = rig(1, &[]);
    let (a, b) = (rig.spawn_nice(0), rig.spawn_nice(0));
    assert_eq!(rig.schedule(0), Some(a));
    rig.run_until(MS / 2);
    rig.core.set_class(rig.time(), CpuId(0), b, SchedClass::Rr, 3);
    assert!(rig.need_resched(0));
    assert_eq!(rig.schedule(0), Some(b));
    rig.core.set_class(rig.time(), CpuId(0), b, SchedClass::Normal, 0);
    assert!(rig.need_resched(0));
    rig.schedule(0);
    rig.core.set_nice(rig.time(), CpuId(0), b, Nice::MAX);
    assert_eq!(rig.figure(b, "weight"), 15);
}

#[test]
fn waiting_realtime_task_is_pushed_to_another_cpu() {
    let mut rig = rig(2, &[]);
    let fair = rig.spawn(&rig.normal(), Some(1));
    rig.schedule(1);
    let first = rig.spawn_rt(SchedClass::Fifo, 5, 0);
    rig.schedule(0);
    let second = rig.spawn_rt(SchedClass::Fifo, 5, 0);
    assert!(rig.need_resched(1), "it was sent to the CPU with the less urgent work");
    assert_eq!(rig.schedule(1), Some(second));
    assert_eq!(rig.core.curr(CpuId(0)), Some(first));
    assert_eq!(rig.core.tasks().cpu(fair), CpuId(1));
}

#[test]
fn preempted_realtime_task_goes_to_another_cpu() {
    let mut rig = rig(2, &[]);
    let low = rig.spawn_rt(SchedClass::Fifo, 5, 0);
    rig.schedule(0);
    let pinned = rig.spawn_rt(SchedClass::Fifo, 9, 0);
    let only_0 = CpuSet::single(CpuId(0));
    rig.core.set_affinity(rig.time(), CpuId(0), pinned, &only_0);
    assert_eq!(rig.schedule(0), Some(pinned));
    assert_eq!(rig.schedule(1), Some(low));
}

#[test]
fn cpu_that_loses_its_realtime_task_pulls_another() {
    let mut rig = rig(2, &[]);
    let (a, b) = (rig.spawn_rt(SchedClass::Fifo, 9, 0), rig.spawn_rt(SchedClass::Fifo, 8, 1));
    rig.schedule(0);
    rig.schedule(1);
    let fair = rig.spawn(&rig.normal(), Some(1));
    let waits = rig.spawn_rt(SchedClass::Fifo, 5, 0);
    rig.settle();
    assert_eq!((rig.core.curr(CpuId(0)), rig.core.curr(CpuId(1))), (Some(a), Some(b)));
    assert_eq!(rig.block(1), Some(waits), "not {fair}");
    assert_eq!(rig.core.tasks().cpu(waits), CpuId(1));
}

/// Run time of a fair task beside a FIFO hog in two seconds, ms.
fn beside_hog(set: &[(&str, &str)]) -> u64 {
    let mut rig = rig(1, set);
    let fair = rig.spawn_nice(0);
    rig.spawn_rt(SchedClass::Fifo, 50, 0);
    rig.schedule(0);
    let mut armed = None;
    while rig.now < 2_000 * MS {
        rig.run_until(rig.now + MS);
        let mut at = 0;
        while let Some(request) = rig.core.timer_at(at) {
            at += 1;
            armed = Some(request);
        }
        rig.core.clear_timers();
        if let Some(request) = armed.filter(|request| request.at <= rig.time()) {
            armed = None;
            rig.core.timer(rig.time(), request.cpu, request.timer);
            rig.settle();
        }
    }
    rig.run_ns(fair) / MS
}

#[test]
fn fair_server_gives_a_twentieth_to_fair_tasks() {
    assert_eq!(beside_hog(&[("fair_server_runtime", "0")]), 0);
    // From 950 ms on for 50 ms, and at once again in the second period.
    assert_eq!(beside_hog(&[]), 100);
}
