// SPDX-License-Identifier: GPL-2.0-only
//! Single behaviours on one CPU.

use schedlab_kcore::NewTask;
use schedlab_policy_api::{SchedClass, TaskState};
use schedlab_units::{CpuId, Nice, TaskId};

use super::harness::Rig;

const MS: u64 = 1_000_000;

/// A runs for `run` ns against a waiting B, then goes to sleep.
fn sleeper(run: u64, set: &[(&str, &str)]) -> (Rig, TaskId, TaskId) {
    let mut rig = Rig::single(1000, set);
    let (a, b) = (rig.spawn_nice(0), rig.spawn_nice(0));
    assert_eq!(rig.schedule(0), Some(a));
    rig.run_until(run);
    assert_eq!(rig.block(0), Some(b));
    (rig, a, b)
}

#[test]
fn sleeper_overserved_stays_queued_until_its_lag_is_gone() {
    let (mut rig, a, b) = sleeper(2 * MS, &[]);
    assert_eq!((rig.figure(a, "delayed"), rig.figure(a, "on_rq")), (1, 1));
    // It had 2 ms, V is at 1 ms.
    assert_eq!(rig.figure(a, "lag"), -1_000_000);
    // B catches up with A at 2 ms and goes on to 3 ms, where its slice is over; then A, eligible
    // with the earlier deadline, is picked and leaves for good, without credit.
    rig.run_until(4 * MS);
    assert_eq!((rig.figure(a, "delayed"), rig.core.curr(CpuId(0))), (1, Some(b)));
    rig.run_until(5 * MS);
    assert_eq!((rig.figure(a, "delayed"), rig.figure(a, "on_rq")), (0, 0));
    assert_eq!(rig.figure(a, "lag"), 0);
    assert_eq!(rig.core.curr(CpuId(0)), Some(b));
}

#[test]
fn sleeper_underserved_leaves_at_once_with_its_lag() {
    let mut rig = Rig::single(1000, &[]);
    let (a, b) = (rig.spawn_nice(0), rig.spawn_nice(0));
    rig.schedule(0);
    rig.run_until(3 * MS);
    assert_eq!(rig.core.curr(CpuId(0)), Some(b));
    rig.run_until(4 * MS);
    assert_eq!(rig.block(0), Some(a));
    // A had 3 ms, B 1 ms: V = 2 ms.
    assert_eq!((rig.figure(b, "on_rq"), rig.figure(b, "lag")), (0, 1_000_000));
}

#[test]
fn sleeper_without_delay_dequeue_keeps_negative_lag() {
    let (rig, a, _) = sleeper(2 * MS, &[("delay_dequeue", "off")]);
    assert_eq!((rig.figure(a, "on_rq"), rig.figure(a, "lag")), (0, -1_000_000));
}

#[test]
fn delayed_task_that_wakes_late_is_placed_without_lag() {
    let (mut rig, a, b) = sleeper(2 * MS, &[]);
    rig.run_until(3 * MS);
    rig.wake(0, a, Some(b));
    assert_eq!((rig.figure(a, "delayed"), rig.figure(a, "lag")), (0, -500_000), "still owes");
    let (mut rig, a, b) = sleeper(2 * MS, &[]);
    rig.now = 4_900_000;
    rig.core.tick(rig.time(), CpuId(0));
    rig.wake(0, a, Some(b));
    // B is at 2.9 ms, A was at 2 ms: its lag of 0.45 ms is taken away.
    assert_eq!((rig.figure(a, "delayed"), rig.figure(a, "lag")), (0, 0));
}

#[test]
fn delayed_task_that_wakes_late_keeps_lag_without_delay_zero() {
    let (mut rig, a, b) = sleeper(2 * MS, &[("delay_zero", "off")]);
    rig.now = 4_900_000;
    rig.core.tick(rig.time(), CpuId(0));
    rig.wake(0, a, Some(b));
    assert_eq!((rig.figure(a, "delayed"), rig.figure(a, "lag")), (0, 450_000));
}

#[test]
fn delayed_task_woken_in_its_switch_is_not_tested_for_preemption() {
    for in_switch in [true, false] {
        let mut rig = Rig::single(1000, &[("run_to_parity", "off")]);
        let short = NewTask { slice_request_ns: MS, ..rig.normal() };
        let (a, b) = (rig.spawn(&short, Some(0)), rig.spawn_nice(0));
        rig.schedule(0);
        rig.run_until(MS / 2);
        rig.core.block(rig.time(), CpuId(0), TaskState::Sleeping);
        assert_eq!((rig.core.curr(CpuId(0)), rig.figure(a, "delayed")), (Some(b), 1));
        if !in_switch {
            rig.core.finish_switch(rig.time(), CpuId(0));
        }
        rig.now += 2 * MS;
        rig.wake(0, a, None);
        assert_eq!((rig.figure(a, "delayed"), rig.need_resched(0)), (0, !in_switch));
    }
}

#[test]
fn exit_is_never_delayed() {
    let mut rig = Rig::single(1000, &[]);
    let (a, b) = (rig.spawn_nice(0), rig.spawn_nice(0));
    rig.schedule(0);
    rig.run_until(2 * MS);
    rig.core.exit(rig.time(), CpuId(0));
    rig.core.finish_switch(rig.time(), CpuId(0));
    assert_eq!((rig.figure(a, "on_rq"), rig.core.curr(CpuId(0))), (0, Some(b)));
    rig.core.reap(rig.time(), CpuId(0), a);
    assert_eq!(rig.spawn_nice(5), a, "the slot is used again");
    assert_eq!(rig.figure(a, "weight"), 335);
}

#[test]
fn change_of_delayed_task_leaves_it_delayed() {
    let (mut rig, a, _) = sleeper(2 * MS, &[]);
    rig.core.set_nice(rig.time(), CpuId(0), a, Nice::clamped(5));
    assert_eq!((rig.figure(a, "delayed"), rig.figure(a, "weight")), (1, 335));
    // w · lag is kept: −1 ms · 1024 / 335, but for the roundings of V and of the placement.
    assert!(rig.figure(a, "lag").abs_diff(-3_056_716) <= 2, "{}", rig.figure(a, "lag"));
    rig.core.set_class(rig.time(), CpuId(0), a, SchedClass::Fifo, 7);
    rig.core.set_class(rig.time(), CpuId(0), a, SchedClass::Normal, 0);
    assert_eq!((rig.figure(a, "delayed"), rig.figure(a, "on_rq")), (0, 0));
}

/// The woken task preempts a hog in the middle of its first slice.
fn preempts(woken: &NewTask, set: &[(&str, &str)]) -> bool {
    let mut rig = Rig::single(1000, set);
    let sleeper = rig.spawn(woken, Some(0));
    rig.schedule(0);
    rig.block(0);
    let hog = NewTask { slice_request_ns: 10 * MS, ..rig.normal() };
    rig.spawn(&hog, Some(0));
    rig.schedule(0);
    rig.run_until(2 * MS);
    rig.wake(0, sleeper, None);
    rig.need_resched(0)
}

#[test]
fn wakeup_preempts_by_rule() {
    let normal = Rig::single(1000, &[]).normal();
    let short = NewTask { slice_request_ns: MS, ..normal.clone() };
    let batch = NewTask { class: SchedClass::Batch, ..short.clone() };
    let idle = NewTask { class: SchedClass::Idle, ..short.clone() };
    assert!(preempts(&short, &[]), "a shorter slice ends the hog's protection");
    assert!(!preempts(&short, &[("preempt_short", "off")]));
    assert!(!preempts(&short, &[("wakeup_preemption", "off")]));
    let same = NewTask { slice_request_ns: 10 * MS, ..normal.clone() };
    assert!(!preempts(&same, &[]), "the hog is protected");
    assert!(!preempts(&batch, &[]), "SCHED_BATCH never preempts");
    assert!(!preempts(&idle, &[]), "SCHED_IDLE never preempts");
}

#[test]
fn wakeup_of_normal_task_preempts_sched_idle_task() {
    let mut rig = Rig::single(1000, &[]);
    let normal = rig.spawn_nice(0);
    rig.schedule(0);
    rig.block(0);
    let idle = NewTask { class: SchedClass::Idle, ..rig.normal() };
    let idle = rig.spawn(&idle, Some(0));
    assert_eq!(rig.schedule(0), Some(idle));
    rig.now = 100_000;
    rig.wake(0, normal, None);
    assert!(rig.need_resched(0));
    assert_eq!(rig.schedule(0), Some(normal));
}

#[test]
fn yield_gives_up_the_rest_of_the_slice() {
    let mut rig = Rig::single(1000, &[]);
    let (a, b) = (rig.spawn_nice(0), rig.spawn_nice(0));
    rig.schedule(0);
    let deadline = rig.figure(a, "deadline");
    rig.core.yield_task(rig.time(), CpuId(0));
    assert_eq!(rig.figure(a, "vruntime"), deadline);
    assert_eq!(rig.figure(a, "deadline"), deadline + 2_800_000);
    assert_eq!(rig.schedule(0), Some(b));
}

#[test]
fn yield_of_6_12_0_moves_the_deadline_only() {
    let mut rig = Rig::single(1000, &[("yield_mode", "deadline")]);
    let a = rig.spawn_nice(5);
    rig.spawn_nice(5);
    rig.schedule(0);
    let (vruntime, deadline) = (rig.figure(a, "vruntime"), rig.figure(a, "deadline"));
    rig.core.yield_task(rig.time(), CpuId(0));
    assert_eq!(rig.figure(a, "vruntime"), vruntime);
    assert_eq!(rig.figure(a, "deadline"), deadline + 8_558_806);
}

/// Run time per mille of the first of two hogs in a minute.
fn share(nice: [i32; 2], set: &[(&str, &str)]) -> u64 {
    let mut rig = Rig::single(1000, set);
    let first = rig.spawn_nice(nice[0]);
    rig.spawn_nice(nice[1]);
    rig.schedule(0);
    rig.run_until(60_000 * MS);
    rig.run_ns(first) * 100_000 / rig.now
}

#[test]
fn shares_follow_the_weights() {
    // Parts of 100 000; 1024 : 335 is 75 349.
    assert!(share([0, 0], &[]).abs_diff(50_000) <= 5);
    assert!(share([0, 5], &[]).abs_diff(75_349) <= 75, "{}", share([0, 5], &[]));
    let old = [("vruntime_base", "min_vruntime"), ("yield_mode", "deadline")];
    assert_eq!(share([0, 5], &old), share([0, 5], &[]), "the base of the keys changes no number");
}

#[test]
fn slice_hint_shortens_the_turn() {
    let mut rig = Rig::single(1000, &[("hrtick", "on")]);
    let (a, b) = (rig.spawn_nice(0), rig.spawn_nice(0));
    rig.core.set_slice(rig.time(), CpuId(0), a, 1);
    assert_eq!(rig.figure(a, "slice"), 100_000);
    rig.core.set_slice(rig.time(), CpuId(0), b, 500_000_000);
    assert_eq!(rig.figure(b, "slice"), 100_000_000);
    rig.core.set_slice(rig.time(), CpuId(0), b, 0);
    assert_eq!(rig.figure(b, "slice"), 2_800_000);
    assert_eq!(rig.schedule(0), Some(a));
    // The slice timer ends the turn between two ticks.
    let timers: alloc::vec::Vec<_> = (0..).map_while(|at| rig.core.timer_at(at)).collect();
    let last = timers.last().expect("a timer is armed");
    assert_eq!((last.timer, last.at.as_ns()), (0, 100_000));
    rig.now = 100_000;
    rig.core.timer(rig.time(), CpuId(0), 0);
    assert!(rig.need_resched(0));
    assert_eq!(rig.schedule(0), Some(b));
}

#[test]
fn next_buddy_is_preferred_while_eligible() {
    let mut rig = Rig::single(1000, &[("next_buddy", "on"), ("wakeup_preemption", "off")]);
    let woken = rig.spawn_nice(0);
    rig.schedule(0);
    rig.block(0);
    let a = rig.spawn_nice(0);
    rig.schedule(0);
    let b = rig.spawn_nice(0);
    rig.run_until(2 * MS);
    rig.wake(0, woken, None);
    rig.run_until(3 * MS);
    assert_eq!(rig.core.curr(CpuId(0)), Some(woken), "not {a} or {b}");
}

#[test]
fn move_keeps_lag_and_distance_of_the_deadline() {
    let topo = schedlab_policy_api::Topology::flat(2).expect("a machine");
    let mut rig = Rig::new(topo, 1000, &[("base_slice", "2.8ms"), ("migration_cost", "0")]);
    let (a, b, c) = (rig.spawn_nice(0), rig.spawn_nice(0), rig.spawn(&rig.normal(), Some(1)));
    rig.schedule(0);
    rig.schedule(1);
    rig.now = 400_000;
    rig.core.tick(rig.time(), CpuId(0));
    let waiting = if rig.core.curr(CpuId(0)) == Some(a) { b } else { a };
    let lag = rig.figure(waiting, "lag");
    let left = rig.figure(waiting, "deadline") - rig.figure(waiting, "vruntime");
    let only_1 = schedlab_units::CpuSet::single(CpuId(1));
    rig.core.set_affinity(rig.time(), CpuId(0), waiting, &only_1);
    assert_eq!(rig.core.tasks().cpu(waiting), CpuId(1));
    assert_eq!(rig.core.curr(CpuId(1)), Some(c));
    let moved = rig.figure(waiting, "deadline") - rig.figure(waiting, "vruntime");
    assert_eq!(moved, left);
    assert!(rig.figure(waiting, "lag").abs_diff(lag) <= 2, "{lag}");
    assert_eq!(rig.core.tasks().get(waiting).state, TaskState::Runnable);
}
