// SPDX-License-Identifier: GPL-2.0-only
//! Single hooks in situations that the vectors leave out: spec bfs §4.3 to §4.14 and §6.

use schedlab_policy_api::{SchedClass, TaskState, Topology};
use schedlab_units::{CpuId, CpuSet, Nice, TaskId};

use super::rig::{DEPTH, Rig};

const CPU0: CpuId = CpuId(0);

fn deadline(rig: &mut Rig, task: TaskId) -> u64 {
    rig.policy().tasks[task.index()].deadline
}

/// Forks a child of `parent` on CPU 0 that shares what `shares` says, and wakes it.
fn fork(rig: &mut Rig, parent: TaskId, shares: &str) -> TaskId {
    let mut new = rig.process();
    let facts = rig.core.tasks().get(parent);
    if shares != "nothing" {
        new.mm = facts.mm;
    }
    if shares == "kernel" {
        new.mm = None;
    }
    if shares == "thread" {
        new.tgid = facts.tgid;
    }
    new.affinity = facts.affinity;
    new.cpu = facts.cpu;
    let child = rig.core.fork(rig.now, facts.cpu, Some(parent), &new);
    rig.core.wake_up_new(rig.now, CPU0, child, None);
    child
}

/// §4.4: a sleeper comes back with the deadline and the quota it left with.
#[test]
fn sleep_keeps_deadline_and_quota() {
    let mut rig = Rig::new(1, 1000, "");
    let task = rig.fresh(0, 1);
    rig.start();
    rig.run_until_ms(2);
    rig.block(0, TaskState::Sleeping);
    let before = deadline(&mut rig, task);
    rig.run_until_ms(1000);
    rig.wake(0, task, false);
    assert_eq!(deadline(&mut rig, task), before);
    assert_eq!(rig.inspect(task, "time_slice"), 6144 - 2 * 976);
}

/// §4.12: BATCH gets a new deadline whenever it leaves its CPU.
#[test]
fn batch_expires_at_every_deschedule() {
    let mut rig = Rig::new(1, 1000, "");
    let task = rig.hog(0, SchedClass::Batch, 1);
    rig.start();
    rig.run_until_ms(2);
    rig.block(0, TaskState::Sleeping);
    assert_eq!(deadline(&mut rig, task), 2_000_000 + 41_091_072);
    assert_eq!(rig.inspect(task, "time_slice"), 6144);
}

/// §4.3: threads beside each other move the deadline by a plain offset, on waking and sleeping.
#[test]
fn group_accounting_moves_deadlines() {
    for (set, moves) in [("group_thread_accounting=1", 41_091_072), ("", 0)] {
        let mut rig = Rig::new(1, 1000, set);
        let process = rig.process();
        let [a, b] = [0; 2].map(|_| rig.create(&process, 1));
        rig.policy().refill(a);
        rig.policy().refill(b);
        let base = deadline(&mut rig, a);
        rig.wake_new(a);
        assert_eq!(deadline(&mut rig, a), base, "alone");
        rig.wake_new(b);
        assert_eq!(deadline(&mut rig, b), base + moves, "{set}");
        rig.schedule(0);
        assert_eq!((rig.curr(0), rig.inspect(a, "threads_running")), (Some(a), 2));
        rig.block(0, TaskState::Sleeping);
        assert_eq!(deadline(&mut rig, a), base - moves, "{set}");
        assert_eq!(rig.inspect(a, "threads_running"), 1);
    }
}

/// §4.7: a child with an address space of its own runs first when no CPU is idle.
#[test]
fn child_runs_first_unless_it_shares_or_a_cpu_is_idle() {
    for (cpus, shares, first) in [
        (1, "nothing", true),
        (1, "mm", false),
        (1, "thread", false),
        (1, "kernel", false),
        (2, "nothing", false),
    ] {
        let mut rig = Rig::new(cpus, 1000, "");
        let parent = rig.fresh(0, 1);
        rig.start();
        rig.run_until_ms(1);
        let child = fork(&mut rig, parent, shares);
        assert_eq!(rig.core.need_resched(CPU0), first, "{cpus} CPUs, shares {shares}");
        rig.settle();
        assert_eq!(rig.curr(0), Some(if first { child } else { parent }));
        assert!(rig.curr(cpus - 1).is_some());
    }
}

/// Quirk Q14: a new thread is counted to the CPU of its process's parent.
#[test]
fn thread_starts_where_the_parent_of_its_process_is() {
    let mut rig = Rig::new(2, 1000, "");
    let parent = rig.fresh(0, 1);
    rig.start();
    assert_eq!(rig.curr(0), Some(parent));
    let process = fork(&mut rig, parent, "nothing");
    rig.settle();
    assert_eq!(rig.curr(1), Some(process));
    let mut new = rig.process();
    new.tgid = rig.core.tasks().get(process).tgid;
    new.cpu = CpuId(1);
    let thread = rig.core.fork(rig.now, CpuId(1), Some(process), &new);
    let at = rig.core.wake_up_new(rig.now, CpuId(1), thread, None);
    assert_eq!(at, CPU0);
    // The parent has gone: init took over, which is nowhere.
    rig.wake(0, parent, false);
    rig.core.exit(rig.now, CPU0);
    rig.core.finish_switch(rig.now, CPU0);
    rig.core.orphan(process);
    rig.core.reap(rig.now, CPU0, parent);
    let thread = rig.core.fork(rig.now, CpuId(1), Some(process), &new);
    let at = rig.core.wake_up_new(rig.now, CpuId(1), thread, None);
    assert_eq!(at, CpuId(1));
}

/// Quirk Q2: the copy of a task that is chosen again keeps the old deadline, so waking is harder.
#[test]
fn rerun_keeps_the_old_copy() {
    for (set, slice_is_new) in [("", false), ("reload_on_rerun=1", true)] {
        for cpus in [1, 2] {
            let mut rig = Rig::new(cpus, 1000, &alloc::format!("rr_interval=6;{set}"));
            let task = rig.fresh(0, 1);
            rig.start();
            rig.run_until_ms(10);
            let slice = rig.inspect(task, "time_slice");
            assert_eq!(slice > 0, slice_is_new, "{set}, {cpus} CPUs: {slice}");
            let copy = rig.policy().cpus[0].rq_deadline;
            assert_eq!(copy > 41_091_072, slice_is_new, "{set}, {cpus} CPUs");
            assert!(deadline(&mut rig, task) > 41_091_072, "the record was refreshed");
        }
    }
}

/// §4.13: a running task's deadline change is lost; a higher nice value gives the CPU up.
#[test]
fn renicing_a_running_task() {
    for (nice, resched) in [(5, true), (-5, false)] {
        let mut rig = Rig::new(1, 1000, "");
        let task = rig.fresh(0, 1);
        rig.start();
        let copy = rig.policy().cpus[0].rq_deadline;
        rig.core.set_nice(rig.now, CPU0, task, Nice::new(nice).expect("legal"));
        assert_eq!(rig.core.need_resched(CPU0), resched);
        rig.schedule(0);
        assert_eq!(deadline(&mut rig, task), copy);
    }
}

/// §4.14: class changes of running and queued tasks.
#[test]
fn class_changes() {
    let mut rig = Rig::new(1, 1000, "");
    let a = rig.fresh(0, 1);
    let b = rig.fresh(0, 1);
    rig.start();
    rig.core.set_class(rig.now, CPU0, b, SchedClass::Fifo, 50);
    rig.settle();
    assert_eq!((rig.curr(0), rig.inspect(b, "pri")), (Some(b), -51));
    // Down to NORMAL: the prio number grows. Its deadline is still that of `a`, which waits longer.
    rig.core.set_class(rig.now, CPU0, b, SchedClass::Normal, 0);
    assert!(rig.core.need_resched(CPU0));
    rig.settle();
    assert_eq!(rig.curr(0), Some(a));
    // Up: nobody has to look.
    rig.core.set_class(rig.now, CPU0, a, SchedClass::Iso, 0);
    assert!(!rig.core.need_resched(CPU0));
    rig.core.set_class(rig.now, CPU0, a, SchedClass::Rr, 1);
    assert!(rig.core.need_resched(CPU0), "rt_priority grew");
}

/// §4.14: a task that may no longer stay leaves; an idle CPU is told.
#[test]
fn affinity_changes() {
    let mut rig = Rig::new(2, 1000, "");
    let task = rig.fresh(0, 1);
    rig.start();
    rig.core.set_affinity(rig.now, CpuId(1), task, &CpuSet::single(CpuId(1)));
    assert!(rig.core.need_resched(CPU0));
    rig.settle();
    assert_eq!((rig.curr(0), rig.curr(1)), (None, Some(task)));
    let other = rig.fresh(0, 1);
    rig.core.set_affinity(rig.now, CpuId(1), other, &CpuSet::single(CpuId(1)));
    assert_eq!(rig.core.tasks().cpu(other), CpuId(1), "a queued task is counted elsewhere");
    rig.settle();
    assert_eq!(rig.curr(0), None);
    rig.core.set_affinity(rig.now, CpuId(1), other, rig.core.topo().clone().all());
    rig.settle();
    assert_eq!(rig.curr(0), Some(other));
}

/// §4.11: real-time levels first and in order of arrival, ISO by deadline, IDLEPRIO last.
#[test]
fn order_of_classes() {
    let mut rig = Rig::new(1, 1000, "");
    let mut queue = |class, rt_priority, nice| {
        let mut new = rig.process();
        (new.class, new.rt_priority) = (class, rt_priority);
        new.nice = Nice::new(nice).expect("legal");
        let task = rig.create(&new, 1);
        rig.policy().refill(task);
        rig.wake_new(task);
        task
    };
    let idle = queue(SchedClass::Idle, 0, 0);
    let iso_late = queue(SchedClass::Iso, 0, 5);
    let iso = queue(SchedClass::Iso, 0, 0);
    let batch = queue(SchedClass::Batch, 0, 0);
    let normal = queue(SchedClass::Normal, 0, -1);
    let rr_first = queue(SchedClass::Rr, 3, 0);
    let rr = queue(SchedClass::Rr, 3, -5);
    let fifo = queue(SchedClass::Fifo, 4, 0);
    for expected in [fifo, rr_first, rr, iso, iso_late, normal, batch, idle] {
        if rig.curr(0).is_none() {
            rig.schedule(0);
        }
        assert_eq!(rig.curr(0), Some(expected));
        rig.block(0, TaskState::Sleeping);
    }
}

/// A CPU that had to pass over a task in the middle of a switch looks again after it.
#[test]
fn task_being_switched_away_from_is_found_later() {
    let mut rig = Rig::on(Topology::flat(2).expect("a machine"), 1000, DEPTH);
    let mut new = rig.process();
    (new.class, new.rt_priority) = (SchedClass::Fifo, 10);
    new.affinity = CpuSet::single(CPU0);
    let pinned = rig.create(&new, 1);
    let task = rig.fresh(0, 1);
    rig.start();
    assert_eq!(rig.curr(0), Some(task));
    rig.wake_new(pinned);
    // CPU 0 is in the middle of the switch when CPU 1 looks for work.
    rig.core.schedule(rig.now, CPU0);
    assert_eq!(rig.core.curr(CPU0), Some(pinned));
    rig.core.schedule(rig.now, CpuId(1));
    assert_eq!(rig.curr(1), None);
    rig.core.finish_switch(rig.now, CPU0);
    assert!(rig.core.need_resched(CpuId(1)));
    rig.settle();
    assert_eq!(rig.curr(1), Some(task));
}
