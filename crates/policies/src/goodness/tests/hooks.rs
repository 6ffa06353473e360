// SPDX-License-Identifier: GPL-2.0-only
//! Rows of linux-2.4-goodness §9, J and K, and what each hook does to list, marks and requests.

use alloc::format;
use alloc::vec::Vec;

use schedlab_policy_api::{SchedClass, TaskState};
use schedlab_units::{CpuId, Nanos, Nice, TaskId};

use super::rig::{Figures, Rig, mm, only};

const CPU0: CpuId = CpuId(0);
const CPU1: CpuId = CpuId(1);

/// A task that has slept since it last ran on the idle CPU 0.
fn sleeper(rig: &mut Rig, figures: &str) -> TaskId {
    let task = rig.hog(figures);
    rig.wake_new(CPU0, task);
    rig.settle(CPU0);
    assert_eq!(rig.core.curr(CPU0), Some(task));
    rig.block(CPU0);
    rig.core.policy_mut().set_counter(task, Figures::parse(figures).counter);
    task
}

fn start(rig: &mut Rig, figures: &str) -> TaskId {
    let task = rig.hog(figures);
    rig.wake_new(CPU0, task);
    rig.settle(CPU0);
    task
}

#[test]
fn vectors_j1_yield_to_an_exhausted_task_starts_an_epoch() {
    let mut rig = Rig::new(1, "");
    let tasks = ["5", "0"].map(|figures| {
        let figures = Figures::parse(figures);
        let mut new = rig.process(figures);
        new.mm = mm(1);
        rig.create(&new, figures.counter)
    });
    let [a, b] = tasks;
    rig.wake_new(CPU0, a);
    rig.settle(CPU0);
    rig.wake_new(CPU0, b);
    rig.core.yield_task(rig.now, CPU0);
    rig.settle(CPU0);
    assert_eq!(rig.stat("epochs"), 1);
    assert_eq!((rig.inspect(a, "counter"), rig.inspect(b, "counter")), (8, 6));
    assert_eq!(rig.core.curr(CPU0), Some(b));
    assert_eq!(rig.inspect(b, "goodness"), 27);
}

#[test]
fn vectors_j2_yield_to_the_least_task_starts_none() {
    let mut rig = Rig::new(1, "");
    let a = start(&mut rig, "5");
    let b = rig.hog("1/19");
    rig.wake_new(CPU0, b);
    assert!(!rig.core.need_resched(CPU0));
    rig.core.yield_task(rig.now, CPU0);
    assert_eq!((rig.inspect(a, "goodness"), rig.inspect(b, "goodness")), (-1, 2));
    rig.core.schedule(rig.now, CPU0);
    assert_eq!(rig.core.curr(CPU0), Some(b));
    assert_eq!(rig.inspect(a, "yielded"), 1);
    rig.core.finish_switch(rig.now, CPU0);
    assert_eq!(rig.inspect(a, "yielded"), 0);
    assert_eq!(rig.stat("epochs"), 0);
}

/// Two CPUs; a on CPU 0 yields while the only waiting task may not run there.
fn yielder_chosen_again(set: &str) -> (Rig, TaskId) {
    let mut rig = Rig::new(2, set);
    let a = start(&mut rig, "6");
    for figures in ["6", "1/19"] {
        let mut new = rig.process(Figures::parse(figures));
        new.affinity = only(1);
        new.cpu = CPU1;
        let task = rig.create(&new, Figures::parse(figures).counter);
        rig.wake_new(CPU1, task);
        rig.settle(CPU1);
    }
    rig.core.yield_task(rig.now, CPU0);
    assert!(rig.core.need_resched(CPU0));
    rig.settle(CPU0);
    assert_eq!(rig.core.curr(CPU0), Some(a));
    (rig, a)
}

#[test]
fn vectors_j3_yielder_chosen_again_keeps_its_mark() {
    // The least possible waker has Δ = 2 − (−1) = 3.
    for (t_smp, preempts) in [(1, true), (2, true), (3, false)] {
        let (mut rig, a) = yielder_chosen_again(&format!("t_smp={t_smp}"));
        assert_eq!((rig.inspect(a, "yielded"), rig.inspect(a, "goodness")), (1, -1));
        let mut new = rig.process(Figures::parse("1/19"));
        new.cpu = CPU1;
        let waker = rig.create(&new, 1);
        rig.wake_new(CPU1, waker);
        assert_eq!(rig.core.need_resched(CPU0), preempts, "T = {t_smp}");
        assert!(!rig.core.need_resched(CPU1), "T = {t_smp}");
    }
}

#[test]
fn vectors_j3_mark_is_cleared_at_once_from_2_4_7() {
    let (rig, a) = yielder_chosen_again("clear_yield_same=on");
    assert_eq!((rig.inspect(a, "yielded"), rig.inspect(a, "goodness")), (0, 42));
}

#[test]
fn vectors_j4_yield_with_nobody_pending_is_a_no_op() {
    for (n_cpus, n_tasks, reschedules) in [(4, 6, true), (4, 3, false), (1, 1, false), (1, 2, true)]
    {
        let mut rig = Rig::new(n_cpus, "");
        for _ in 0..n_tasks {
            let task = rig.hog("6");
            rig.wake_new(CPU0, task);
            rig.settle(CPU0);
        }
        let n_busy = rig.core.topo().cpus().filter(|cpu| rig.core.curr(*cpu).is_some()).count();
        assert_eq!(n_busy as u32, n_tasks.min(n_cpus));
        let yielder = rig.core.curr(CPU0).expect("it runs");
        rig.core.yield_task(rig.now, CPU0);
        let context = format!("{n_tasks} tasks on {n_cpus} CPUs");
        assert_eq!(rig.core.need_resched(CPU0), reschedules, "{context}");
        assert_eq!(rig.inspect(yielder, "yielded"), i64::from(reschedules), "{context}");
    }
}

#[test]
fn vectors_k1_last_woken_wins_among_equals() {
    let mut rig = Rig::new(1, "");
    let [x, y, z] = ["6", "6", "6"].map(|figures| rig.hog(figures));
    for task in [x, y, z] {
        rig.wake_new(CPU0, task);
    }
    assert_eq!(rig.list(), [z, y, x]);
    rig.settle(CPU0);
    assert_eq!(rig.core.curr(CPU0), Some(z));
}

#[test]
fn vectors_k2_idle_task_favours_the_mm_it_holds() {
    let mut rig = Rig::new(1, "");
    let x = sleeper(&mut rig, "6");
    let [y, z] = ["6", "6"].map(|figures| rig.hog(figures));
    rig.wake(CPU0, x);
    rig.wake_new(CPU0, y);
    rig.wake_new(CPU0, z);
    assert_eq!((rig.inspect(x, "goodness"), rig.inspect(z, "goodness")), (27, 26));
    rig.settle(CPU0);
    assert_eq!(rig.core.curr(CPU0), Some(x));
}

#[test]
fn vectors_k3_epoch_reaches_sleepers() {
    let mut rig = Rig::new(1, "");
    let s1 = sleeper(&mut rig, "11");
    let s2 = sleeper(&mut rig, "3/10");
    let x = start(&mut rig, "1");
    rig.tick(CPU0);
    assert_eq!(rig.inspect(x, "counter"), 0);
    rig.settle(CPU0);
    assert_eq!(rig.stat("epochs"), 1);
    assert_eq!([x, s1, s2].map(|task| rig.inspect(task, "counter")), [6, 11, 4]);
    assert_eq!(rig.core.curr(CPU0), Some(x));
    assert_eq!(rig.inspect(x, "goodness"), 27);
}

#[test]
fn first_task_owns_one_quantum() {
    let mut rig = Rig::new(1, "");
    for (nice, ticks) in [(-20, 11), (0, 6), (19, 1)] {
        let new = rig.process(Figures { nice: Nice::clamped(nice), ..Figures::parse("0") });
        let task = rig.core.fork(rig.now, CPU0, None, &new);
        assert_eq!(rig.inspect(task, "counter"), ticks, "nice {nice}");
    }
}

#[test]
fn sync_wakeup_disturbs_nobody_unless_the_waker_cpu_is_forbidden() {
    for (affinity, disturbed) in [(only(0), None), (only(1), Some(CPU1))] {
        let mut rig = Rig::new(2, "");
        let waker = start(&mut rig, "6");
        let mut new = rig.process(Figures::parse("11"));
        new.affinity = affinity;
        new.cpu = CPU1;
        let wakee = rig.create(&new, 11);
        // It sleeps on CPU 1 at first.
        new.affinity = only(1);
        rig.core.set_affinity(rig.now, CPU1, wakee, &only(1));
        rig.wake_new(CPU1, wakee);
        rig.settle(CPU1);
        rig.block(CPU1);
        rig.core.set_affinity(rig.now, CPU1, wakee, &affinity);
        rig.take_resched();
        rig.core.wake(rig.now, CPU0, wakee, Some(waker), true);
        let cpus: Vec<CpuId> = rig.take_resched().iter().map(|request| request.cpu).collect();
        assert_eq!(cpus.first().copied(), disturbed);
        assert_eq!(cpus.len(), usize::from(disturbed.is_some()));
    }
}

#[test]
fn fork_child_inherits_need_resched_of_its_parent() {
    let mut rig = Rig::new(1, "");
    let parent = start(&mut rig, "6");
    for _ in 0..6 {
        rig.tick(CPU0);
    }
    assert!(rig.core.need_resched(CPU0), "its ticks are used up");
    rig.core.policy_mut().set_counter(parent, 6);
    let new = rig.process(Figures::parse("0"));
    let child = rig.core.fork(rig.now, CPU0, Some(parent), &new);
    rig.wake_new(CPU0, child);
    rig.core.block(rig.now, CPU0, TaskState::Sleeping);
    rig.core.finish_switch(rig.now, CPU0);
    assert_eq!(rig.core.curr(CPU0), Some(child));
    assert!(rig.core.need_resched(CPU0), "the copied flag takes effect");
    rig.settle(CPU0);
    assert_eq!(rig.core.curr(CPU0), Some(child));
    assert!(!rig.core.need_resched(CPU0), "but only once");
}

#[test]
fn displaced_task_is_offered_unless_it_yielded() {
    for yields in [false, true] {
        let mut rig = Rig::new(2, "");
        let displaced = start(&mut rig, "1");
        let mut new = rig.process(Figures::parse("11:fifo 1"));
        new.affinity = only(0);
        let rival = rig.create(&new, 11);
        rig.wake_new(CPU0, rival);
        if yields {
            rig.core.yield_task(rig.now, CPU0);
        }
        rig.core.take_work();
        rig.schedule(CPU0);
        assert_eq!(rig.core.curr(CPU0), Some(rival));
        // It is worth CPU 1's while, which is idle.
        assert_eq!(rig.core.need_resched(CPU1), !yields);
        assert_eq!(rig.stat("offers"), i64::from(!yields));
        let (scanned, sections) = rig.core.take_work();
        assert_eq!((scanned, sections), (2, u32::from(!yields)));
        assert_eq!(rig.inspect(displaced, "yielded"), 0);
    }
}

#[test]
fn scan_is_charged_for_the_list_at_the_request() {
    let mut rig = Rig::new(1, "");
    let [a, _, _] = ["6", "6", "6"].map(|figures| {
        let task = rig.hog(figures);
        rig.wake_new(CPU0, task);
        task
    });
    rig.core.take_work();
    rig.settle(CPU0);
    assert_eq!(rig.core.take_work().0, 3);
    rig.block(CPU0);
    assert_eq!(rig.core.take_work().0, 3, "the one that blocks included");
    rig.block(CPU0);
    assert_eq!(rig.core.curr(CPU0), Some(a));
    rig.core.take_work();
    rig.block(CPU0);
    assert_eq!(rig.core.take_work().0, 1);
    rig.schedule(CPU0);
    assert_eq!(rig.core.take_work().0, 0);
}

#[test]
fn change_of_class_moves_to_the_head_and_disturbs_the_caller() {
    for (set, first) in [("", 0), ("class_moves_first=off", 2)] {
        let mut rig = Rig::new(2, set);
        let caller = start(&mut rig, "6");
        let [p, q] = ["6", "6"].map(|figures| {
            let figures = Figures::parse(figures);
            let mut new = rig.process(figures);
            new.affinity = only(0);
            rig.create(&new, figures.counter)
        });
        rig.wake_new(CPU0, p);
        rig.wake_new(CPU0, q);
        assert_eq!(rig.list(), [q, p, caller]);
        rig.core.set_class(rig.now, CPU0, caller, SchedClass::Rr, 10);
        assert_eq!(rig.list()[first], caller);
        assert!(rig.core.need_resched(CPU0));
        rig.settle(CPU0);
        // Q14: only the caller's CPU hears of it.
        rig.core.set_class(rig.now, CPU1, p, SchedClass::Fifo, 20);
        assert!(rig.core.need_resched(CPU1) && !rig.core.need_resched(CPU0));
        assert_eq!(rig.inspect(p, "goodness"), 1020);
    }
}

#[test]
fn change_of_class_wipes_the_yield_mark() {
    let (mut rig, a) = yielder_chosen_again("");
    rig.core.set_class(rig.now, CPU0, a, SchedClass::Normal, 0);
    assert_eq!(rig.inspect(a, "yielded"), 0);
}

#[test]
fn change_of_nice_counts_at_the_next_look_and_the_next_epoch() {
    let mut rig = Rig::new(1, "");
    let a = start(&mut rig, "6");
    let b = rig.hog("6");
    rig.wake_new(CPU0, b);
    let before = (rig.inspect(b, "position"), rig.inspect(b, "counter"));
    rig.core.set_nice(rig.now, CPU0, b, Nice::clamped(-5));
    assert!(!rig.core.need_resched(CPU0));
    assert_eq!((rig.inspect(b, "position"), rig.inspect(b, "counter")), before);
    assert_eq!(rig.inspect(b, "goodness"), 31);
    rig.core.policy_mut().set_counter(a, 0);
    rig.core.policy_mut().set_counter(b, 0);
    rig.schedule(CPU0);
    assert_eq!((rig.inspect(a, "counter"), rig.inspect(b, "counter")), (6, 7));
    assert_eq!(rig.core.curr(CPU0), Some(b));
}

#[test]
fn yield_of_rt_task_among_equals_changes_nothing() {
    let mut rig = Rig::new(1, "");
    let a = start(&mut rig, "6:fifo 10");
    let b = rig.hog("6:fifo 10");
    rig.wake_new(CPU0, b);
    rig.core.yield_task(rig.now, CPU0);
    assert_eq!(rig.inspect(a, "yielded"), 0);
    rig.settle(CPU0);
    assert_eq!(rig.core.curr(CPU0), Some(a));
}

#[test]
fn yield_tail_without_prev_bias_rotates_rt_equals() {
    let mut rig = Rig::new(1, "prev_bias=off;yield_tail=on");
    let a = start(&mut rig, "6:fifo 10");
    let b = rig.hog("6:fifo 10");
    rig.wake_new(CPU0, b);
    assert_eq!(rig.list(), [b, a]);
    rig.settle(CPU0);
    rig.core.yield_task(rig.now, CPU0);
    rig.settle(CPU0);
    assert_eq!(rig.core.curr(CPU0), Some(b));
    rig.core.yield_task(rig.now, CPU0);
    assert_eq!(rig.list(), [a, b]);
    rig.settle(CPU0);
    assert_eq!(rig.core.curr(CPU0), Some(a));
}

#[test]
fn add_at_tail_queues_behind() {
    for (set, expected) in [
        ("add_at=head", [3, 2, 1, 0]),
        ("add_at=tail", [0, 1, 2, 3]),
        ("add_at=tail_if_rt", [2, 0, 1, 3]),
    ] {
        let mut rig = Rig::new(1, set);
        let tasks = ["6", "6:fifo 10", "6", "6:rr 10"].map(|figures| {
            let task = rig.hog(figures);
            rig.wake_new(CPU0, task);
            task
        });
        assert_eq!(rig.list(), expected.map(|i: usize| tasks[i]), "{set}");
    }
}

#[test]
fn fifo_tick_without_resched_never_gives_way_to_equals() {
    for (set, asked) in [("", true), ("fifo_tick_resched=off", false)] {
        let mut rig = Rig::new(1, set);
        start(&mut rig, "1:fifo 10");
        rig.tick(CPU0);
        assert_eq!(rig.core.need_resched(CPU0), asked, "{set}");
    }
    let mut rig = Rig::new(1, "fifo_tick_resched=off");
    start(&mut rig, "1:rr 10");
    rig.tick(CPU0);
    assert!(rig.core.need_resched(CPU0), "the knob is about FIFO alone");
}

#[test]
fn still_allowed_drops_the_current_task_from_a_forbidden_cpu() {
    for (set, stays) in [("", true), ("still_allowed=on", false)] {
        let mut rig = Rig::new(2, set);
        let a = start(&mut rig, "6");
        rig.core.set_affinity(rig.now, CPU0, a, &only(1));
        rig.schedule(CPU0);
        assert_eq!(rig.core.curr(CPU0) == Some(a), stays, "{set}");
        assert_eq!(rig.core.need_resched(CPU1), !stays, "{set}");
    }
}

#[test]
fn exec_loads_the_new_address_space() {
    let mut rig = Rig::new(1, "");
    let a = start(&mut rig, "6");
    rig.core.exec(rig.now, CPU0, mm(77).expect("given"));
    assert_eq!(rig.inspect(a, "goodness"), 27);
    rig.block(CPU0);
    let mut new = rig.process(Figures::parse("6"));
    new.mm = mm(77);
    let thread = rig.create(&new, 6);
    assert_eq!(rig.inspect(thread, "goodness"), 27, "the idle task holds it");
}

#[test]
fn kernel_thread_borrows_the_loaded_address_space() {
    let mut rig = Rig::new(1, "");
    let a = sleeper(&mut rig, "6");
    let mut new = rig.process(Figures::parse("6"));
    new.mm = None;
    let kernel_thread = rig.create(&new, 6);
    rig.wake_new(CPU0, kernel_thread);
    rig.settle(CPU0);
    assert_eq!(rig.inspect(kernel_thread, "goodness"), 27);
    assert_eq!(rig.inspect(a, "goodness"), 27, "what a left is still loaded");
}

#[test]
fn idle_tick_charges_nobody() {
    let mut rig = Rig::new(2, "");
    let a = start(&mut rig, "6");
    rig.advance(Nanos::from_ms(10));
    rig.tick(CPU1);
    assert_eq!(rig.inspect(a, "counter"), 6);
    assert!(!rig.core.need_resched(CPU1));
    rig.tick(CPU0);
    assert_eq!(rig.inspect(a, "counter"), 5);
}
