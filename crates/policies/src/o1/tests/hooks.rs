// SPDX-License-Identifier: GPL-2.0-only
//! Rows of linux-2.6-o1 §9 about single steps, and the steps of the hooks.

use schedlab_policy_api::SchedClass;
use schedlab_units::{CpuId, Nanos, TaskId};

use super::rig::{CPU0, MS, Rig, nice};
use crate::csv::rows;

#[test]
fn vectors_13_fork_slice() {
    for row in rows(include_str!("../vectors/fork_slice.csv")) {
        let mut rig = Rig::up("2.6.0-test1");
        let parent = rig.task(500);
        rig.schedule(CPU0);
        rig.core.policy_mut().tasks[parent.index()].time_slice = row.get("before");
        let child = rig.fork(CPU0);
        let found = [child, parent].map(|task| rig.figure(task, "time_slice"));
        let before = row.text("before");
        assert_eq!(found, [row.get("child"), row.get("parent")], "{before}");
        let expires: bool = row.get("expires");
        assert_eq!(rig.figure(parent, "array"), i64::from(!expires), "{before}");
        // The child goes before the parent wherever that is, at the parent's priority.
        assert_eq!(rig.figure(child, "array"), i64::from(!expires), "{before}");
        assert_eq!(rig.figure(child, "prio"), rig.figure(parent, "prio"), "{before}");
        // The forced tick costs the parent one tick of sleep average, not the child.
        assert_eq!(rig.figure(parent, "sleep_avg"), 500 - i64::from(expires), "{before}");
        assert_eq!(rig.figure(child, "sleep_avg"), 250, "{before}");
        rig.settle();
        assert_eq!(rig.core.curr(CPU0), Some(child), "{before}: the child runs first");
    }
}

#[test]
fn vectors_19_exit_slice() {
    for (first, after) in [(true, 200), (false, 150)] {
        let mut rig = Rig::up("2.6.0-test1");
        let parent = rig.task(0);
        rig.schedule(CPU0);
        let child = rig.fork(CPU0);
        rig.settle();
        let policy = rig.core.policy_mut();
        policy.tasks[parent.index()].time_slice = 150;
        policy.tasks[child.index()].time_slice = 80;
        policy.tasks[child.index()].first_time_slice = first;
        rig.core.exit(rig.now, CPU0);
        rig.core.finish_switch(rig.now, CPU0);
        rig.core.reap(rig.now, CPU0, child);
        assert_eq!(rig.figure(parent, "time_slice"), after);
    }
}

/// A task with sleep average 3000 that sleeps since now, beside a nice 19 hog that runs.
fn sleeper_beside_hog(variant: &str) -> (Rig, TaskId, TaskId) {
    let mut rig = Rig::up(variant);
    let sleeper = rig.task(3000);
    rig.schedule(CPU0);
    let mut new = rig.process();
    new.nice = nice(19);
    let hog = rig.start(&new, 0);
    rig.block(CPU0);
    assert_eq!(rig.core.curr(CPU0), Some(hog));
    (rig, sleeper, hog)
}

#[test]
fn vectors_52_sync_wake() {
    let (mut rig, sleeper, hog) = sleeper_beside_hog("2.6.0-test1");
    rig.advance(Nanos::from_s(5));
    let prio = rig.figure(sleeper, "prio");
    assert_eq!(rig.figure(hog, "prio"), 139);
    rig.core.wake(rig.now, CPU0, sleeper, Some(hog), true);
    assert!(!rig.core.need_resched(CPU0));
    assert_eq!(rig.figure(sleeper, "sleep_avg"), 3000);
    assert_eq!(rig.figure(sleeper, "prio"), prio);
}

#[test]
fn wake_up_credits_sleep_and_preempts_the_worse_only() {
    let (mut rig, sleeper, _) = sleeper_beside_hog("2.6.0-test1");
    rig.advance(Nanos::from_s(2));
    rig.wake(sleeper);
    assert_eq!(rig.figure(sleeper, "sleep_avg"), 3000 + 2000 - 1);
    assert_eq!(rig.core.curr(CPU0), Some(sleeper));
    let equal = rig.task(4999);
    assert!(!rig.core.need_resched(CPU0), "equal priority does not preempt");
    assert_eq!(rig.figure(equal, "prio"), rig.figure(sleeper, "prio"));
}

#[test]
fn vectors_53_yield() {
    let mut rig = Rig::up("2.6.0-test1");
    // 7000 ticks are bonus 2, priority 118.
    let (task, other) = (rig.task(7000), rig.task(7000));
    rig.schedule(CPU0);
    rig.core.policy_mut().tasks[task.index()].time_slice = 40;
    rig.core.yield_task(rig.now, CPU0);
    rig.settle();
    assert_eq!(rig.core.curr(CPU0), Some(other));
    let found = ["prio", "array", "time_slice", "expired_timestamp"];
    assert_eq!(found.map(|name| rig.figure(task, name)), [118, 0, 40, 0]);
}

#[test]
fn yield_while_alone_swaps_the_arrays() {
    let mut rig = Rig::up("2.6.0-test1");
    let task = rig.task(0);
    rig.schedule(CPU0);
    rig.core.yield_task(rig.now, CPU0);
    rig.settle();
    assert_eq!(rig.core.curr(CPU0), Some(task));
    assert_eq!(rig.stat("array_switches"), 1);
}

#[test]
fn vectors_54_renice() {
    for (n, static_prio) in [(-20, 100), (5, 125)] {
        let mut rig = Rig::up("2.6.0-test1");
        let task = rig.task(10_000);
        rig.schedule(CPU0);
        assert_eq!(rig.figure(task, "prio"), 115);
        rig.core.set_nice(rig.now, CPU0, task, nice(n));
        assert!(rig.core.need_resched(CPU0), "it is running");
        let found = ["static_prio", "prio", "time_slice"].map(|name| rig.figure(task, name));
        assert_eq!(found, [static_prio, static_prio, 102], "T is not rescaled");
        if n == 5 {
            // The next wake-up with credit computes the priority anew; 10 000 less the first tick.
            rig.tick();
            rig.block(CPU0);
            rig.advance(Nanos::from_s(3));
            rig.wake(task);
            assert_eq!(rig.figure(task, "prio"), 120);
        }
    }
}

/// Row 45, real-time priorities.
#[test]
fn vectors_45_rt_priorities() {
    let mut rig = Rig::up("2.6.0-test1");
    for (rt_priority, prio) in [(1, 98), (50, 49), (99, 0)] {
        let task = rig.task(0);
        rig.core.set_class(rig.now, CPU0, task, SchedClass::Rr, rt_priority);
        assert_eq!(rig.figure(task, "prio"), prio);
    }
}

/// §4.5 step 4, §4.7: RR goes round by slices of its nice value, FIFO does not.
#[test]
fn rr_rotates_and_fifo_stays() {
    let mut rig = Rig::up("2.6.0-test1");
    let tasks = [rig.task(0), rig.task(0)];
    for task in tasks {
        rig.core.set_class(rig.now, CPU0, task, SchedClass::Rr, 10);
    }
    rig.schedule(CPU0);
    assert_eq!(rig.stints(306, &tasks), [(0, 102), (1, 102), (0, 102)]);
    rig.core.set_class(rig.now, CPU0, tasks[1], SchedClass::Fifo, 10);
    rig.schedule(CPU0);
    let stints = rig.stints(300, &tasks);
    assert_eq!(stints.last().expect("somebody").0, 1, "{stints:?}");
    assert!(stints.last().expect("somebody").1 >= 198, "{stints:?}");
    rig.core.yield_task(rig.now, CPU0);
    rig.settle();
    assert_eq!(rig.core.curr(CPU0), Some(tasks[0]));
}

/// §5.2 and claim O1-09: a wait after a wake-up is credited up to the first run, later ones not.
#[test]
fn g3_credits_the_wait_before_the_first_run_only() {
    let mut rig = Rig::up("g3");
    let task = rig.task(1_000 * MS);
    rig.schedule(CPU0);
    let rt = rig.fifo();
    rig.block(CPU0);
    assert_eq!(rig.core.curr(CPU0), Some(rt));
    rig.ticks(10);
    rig.wake(task);
    rig.ticks(20);
    // Slept 10 ms, waits 20 ms.
    assert_eq!(rig.figure(task, "sleep_avg"), 1_010 * MS as i64);
    rig.block(CPU0);
    assert_eq!(rig.core.curr(CPU0), Some(task));
    assert_eq!(rig.figure(task, "sleep_avg"), 1_030 * MS as i64);
    rig.ticks(5);
    rig.wake(rt);
    rig.ticks(100);
    // Ran 5 ms, waited 100 ms for nothing.
    assert_eq!(rig.figure(task, "sleep_avg"), 1_025 * MS as i64);
    rig.block(CPU0);
    assert_eq!(rig.core.curr(CPU0), Some(task));
    assert_eq!(rig.figure(task, "sleep_avg"), 1_025 * MS as i64);
}

/// §5.2: with `rq_wait_credit` off the wait is lost, the sleep is not.
#[test]
fn g3_without_credit_loses_the_wait() {
    let mut rig = Rig::new(1, "g3", "rq_wait_credit=none");
    let task = rig.task(1_000 * MS);
    rig.schedule(CPU0);
    rig.fifo();
    rig.block(CPU0);
    rig.ticks(10);
    rig.wake(task);
    rig.ticks(20);
    rig.block(CPU0);
    assert_eq!(rig.figure(task, "sleep_avg"), 1_010 * MS as i64);
}

/// §5.4: G7 takes 38/128 of a wait unless an interrupt woke the task.
#[test]
fn g7_weighs_the_wait_by_the_waker() {
    for (by_task, credited) in [(true, 20 * MS * 38 / 128), (false, 20 * MS)] {
        let mut rig = Rig::up("g7");
        let task = rig.task(500 * MS);
        rig.schedule(CPU0);
        let rt = rig.fifo();
        rig.block(CPU0);
        rig.core.wake(rig.now, CPU0, task, by_task.then_some(rt), false);
        rig.ticks(20);
        rig.block(CPU0);
        assert_eq!(rig.figure(task, "sleep_avg"), (500 * MS + credited) as i64);
    }
}

/// Quirk 9: the task that a pick credits runs, but stands at the tail of its list.
#[test]
fn g3_pick_leaves_the_credited_task_at_the_tail() {
    let mut rig = Rig::up("g3");
    let (task, other) = (rig.task(2_000 * MS), rig.task(2_000 * MS));
    rig.schedule(CPU0);
    rig.block(CPU0);
    let third = rig.task(2_000 * MS);
    rig.block(CPU0);
    assert_eq!(rig.core.curr(CPU0), Some(third));
    rig.wake(other);
    rig.wake(task);
    rig.block(CPU0);
    assert_eq!(rig.core.curr(CPU0), Some(other));
    rig.schedule(CPU0);
    assert_eq!(rig.core.curr(CPU0), Some(task), "any schedule now picks another");
}

/// §5.1 `interruptible_only_credit`.
#[test]
fn uninterruptible_sleep_earns_nothing_if_so_set() {
    for (set, sleep_avg) in [("", 3000 + 999), ("interruptible_only_credit=on", 3000)] {
        let mut rig = Rig::new(1, "2.6.0-test1", set);
        let task = rig.task(3000);
        rig.schedule(CPU0);
        rig.core.block(rig.now, CPU0, schedlab_policy_api::TaskState::Uninterruptible);
        rig.core.finish_switch(rig.now, CPU0);
        rig.advance(Nanos::from_s(1));
        rig.wake(task);
        assert_eq!(rig.figure(task, "sleep_avg"), sleep_avg, "{set}");
    }
}

/// §5.7: 2.6.0 looks around when a renice lifts a waiting task above its dynamic priority.
#[test]
fn renice_of_a_waiting_task_is_noticed_by_2_6_0_only() {
    for (variant, noticed) in [("2.6.0-test1", false), ("g3", false), ("2.6.0", true)] {
        let mut rig = Rig::up(variant);
        rig.task(0);
        rig.schedule(CPU0);
        let waiting = rig.task(0);
        rig.core.set_nice(rig.now, CPU0, waiting, nice(-20));
        assert_eq!(rig.core.need_resched(CPU0), noticed, "{variant}");
    }
}

/// §4.3: a task goes to the waker's CPU when the waker is about to sleep, else to its last.
#[test]
fn select_cpu_follows_the_sync_waker() {
    for (sync, cpu) in [(true, 1), (false, 0)] {
        let mut rig = Rig::new(2, "2.6.0-test1", "");
        let task = rig.task(0);
        rig.schedule(CPU0);
        rig.block(CPU0);
        rig.core.wake(rig.now, CpuId(1), task, None, sync);
        assert_eq!(rig.core.tasks().cpu(task), CpuId(cpu));
    }
}
