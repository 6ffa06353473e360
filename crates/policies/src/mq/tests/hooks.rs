// SPDX-License-Identifier: GPL-2.0-only
//! What the other hooks do to queues, maxima and `curr_na`.

use alloc::format;

use schedlab_policy_api::SchedClass;
use schedlab_units::Nice;

use super::rig::{CPU0, CPU1, Rig, occupy, sleeper, woken};

#[test]
fn add_raises_the_maximum_only_by_more() {
    let mut rig = Rig::new(2, "");
    occupy(&mut rig, &["21/-20", "21/-20"]);
    let [a, b, c] = ["6", "6", "7"].map(|figures| {
        let task = woken(&mut rig, figures, 0, 1);
        (task, rig.inspect(task, "is_max"))
    });
    assert_eq!((a.1, b.1, c.1), (1, 0, 1));
    assert_eq!(rig.inspect(a.0, "is_max"), 0);
    assert_eq!([a, b, c].map(|(task, _)| rig.inspect(task, "position")), [2, 1, 0]);
}

#[test]
fn tick_notes_curr_na_after_the_decrement_and_spares_idle_cpus() {
    let mut rig = Rig::new(2, "");
    let running = occupy(&mut rig, &["2", "-"]);
    let a = running[0].expect("it runs");
    for (counter, curr_na, asks) in [(1, 21, false), (0, 0, true)] {
        rig.tick(CPU0);
        rig.tick(CPU1);
        assert_eq!((rig.inspect(a, "counter"), rig.inspect(a, "curr_na")), (counter, curr_na));
        assert_eq!(rig.core.need_resched(CPU0), asks);
        assert!(!rig.core.need_resched(CPU1));
    }
}

#[test]
fn fork_splits_ticks_but_curr_na_waits_for_the_tick() {
    let mut rig = Rig::new(2, "");
    let running = occupy(&mut rig, &["6", "-"]);
    let parent = running[0].expect("it runs");
    let new = schedlab_kcore::NewTask::normal(rig.core.topo().all(), 1);
    let child = rig.core.fork(rig.now, CPU0, Some(parent), &new);
    assert_eq!([parent, child].map(|task| rig.inspect(task, "counter")), [3, 3]);
    assert_eq!((rig.inspect(parent, "na"), rig.inspect(parent, "curr_na")), (23, 26));
    rig.tick(CPU0);
    assert_eq!(rig.inspect(parent, "curr_na"), 22);
}

#[test]
fn nice_of_a_waiting_task_does_not_reach_the_maximum() {
    let mut rig = Rig::new(2, "");
    occupy(&mut rig, &["21/-20", "21/-20"]);
    let a = woken(&mut rig, "6", 0, 1);
    rig.core.set_nice(rig.now, CPU1, a, Nice::clamped(19));
    assert_eq!((rig.inspect(a, "na"), rig.inspect(a, "max_na")), (7, 26));
    assert!(!rig.core.need_resched(CPU0) && !rig.core.need_resched(CPU1));
}

#[test]
fn change_of_class_changes_the_queue_and_disturbs_the_caller() {
    let mut rig = Rig::new(2, "");
    occupy(&mut rig, &["21/-20", "21/-20"]);
    let [a, b] = ["6", "5"].map(|figures| woken(&mut rig, figures, 0, 1));
    rig.core.set_class(rig.now, CPU1, a, SchedClass::Fifo, 10);
    assert_eq!((rig.inspect(a, "na"), rig.inspect(a, "position")), (1010, 0));
    assert_eq!((rig.inspect(b, "is_max"), rig.inspect(b, "max_na")), (1, 25));
    assert!(rig.core.need_resched(CPU1) && !rig.core.need_resched(CPU0));
    rig.core.set_class(rig.now, CPU1, a, SchedClass::Normal, 0);
    assert_eq!((rig.inspect(a, "is_max"), rig.inspect(a, "position")), (1, 0));
    // Within its queue the task moves to the head.
    rig.core.set_class(rig.now, CPU1, b, SchedClass::Batch, 0);
    assert_eq!((rig.inspect(b, "position"), rig.inspect(a, "is_max")), (0, 1));
}

#[test]
fn yield_counts_who_is_pending_anywhere() {
    for (n_cpus, n_tasks, rt_waits, acts) in [
        (4, 6, false, true),
        (4, 3, false, false),
        (4, 4, true, true),
        (1, 1, false, false),
        (1, 2, false, true),
    ] {
        let mut rig = Rig::new(n_cpus, "");
        for home in 0..n_tasks {
            woken(&mut rig, "6:fifo 50", home % n_cpus, home);
            rig.settle(CPU0);
        }
        if rt_waits {
            woken(&mut rig, "6:fifo 1", 0, 1);
        }
        assert!(!rig.core.need_resched(CPU0));
        rig.core.yield_task(rig.now, CPU0);
        let context = format!("{n_tasks} tasks on {n_cpus} CPUs");
        assert_eq!(rig.core.need_resched(CPU0), acts, "{context}");
        let yielder = rig.core.curr(CPU0).expect("it runs");
        assert_eq!(rig.inspect(yielder, "yielded"), 0, "a real-time task gets no mark");
    }
}

#[test]
fn task_that_may_not_stay_is_placed_anew() {
    let mut rig = Rig::new(2, "");
    let running = occupy(&mut rig, &["6", "-"]);
    let a = running[0].expect("it runs");
    let waiting = woken(&mut rig, "0", 0, 1);
    for task in [a, waiting] {
        rig.core.set_affinity(rig.now, CPU0, task, &crate::goodness::tests::rig::only(1));
    }
    assert_eq!(rig.core.tasks().cpu(waiting), CPU1);
    rig.settle(CPU0);
    assert_eq!((rig.core.curr(CPU0), rig.core.curr(CPU1)), (None, Some(a)));
    let sleeping = sleeper(&mut rig, "6", 0, 1);
    assert_eq!(rig.inspect(sleeping, "position"), -1);
}
