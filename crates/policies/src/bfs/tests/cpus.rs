// SPDX-License-Identifier: GPL-2.0-only
//! Rows 29 to 36 of spec bfs §9: which CPU is kicked or preempted.

use schedlab_policy_api::{SchedClass, Topology};
use schedlab_units::{CpuId, CpuSet, TaskId};

use super::rig::Rig;
use crate::bfs::idle_cpu::{best_idle, locality};
use crate::csv::rows;

fn machine(text: &str) -> Topology {
    let mut counts = text.split('/').map(|n| n.parse().expect("a number"));
    let mut next = || counts.next().expect("four numbers");
    Topology::new(next(), next(), next(), next()).expect("a machine")
}

#[test]
fn vectors_29_to_33_best_idle() {
    for row in rows(include_str!("../vectors/idle_cpu.csv")) {
        let topo = machine(row.text("machine"));
        let idle = match row.text("idle") {
            "" => CpuSet::EMPTY,
            list => CpuSet::parse(&list.replace(' ', ",")).expect("a list"),
        };
        let origin = CpuId(row.get("origin"));
        let found = best_idle(&topo, &idle, &idle, origin, row.text("foreign") == "yes");
        let expected = (row.text("cpu") != "none").then(|| CpuId(row.get("cpu")));
        assert_eq!(found, expected, "row {} on {}", row.text("id"), row.text("machine"));
    }
}

#[test]
fn locality_follows_caches_and_nodes() {
    for (topo, from, to, distance) in [
        ("1/1/4/2", 0, 7, 0),
        ("1/2/2/1", 1, 2, 1),
        ("2/1/2/1", 0, 3, 1),
        ("16/1/1/1", 0, 15, 1),
        ("18/1/1/1", 0, 15, 1),
        ("18/1/1/1", 0, 16, 3),
        ("18/1/1/1", 17, 0, 1),
    ] {
        let found = locality(&machine(topo), CpuId(from), CpuId(to));
        assert_eq!(found, distance, "{topo}: {from} to {to}");
    }
}

/// Two busy CPUs with these priorities and deadlines, and a third task that is queued.
fn busy(topo: &str, cpus: [(u8, u64); 2], deadline: u64) -> (Rig, TaskId) {
    let mut rig = Rig::on(machine(topo), 1000, "rr_interval=9");
    for _ in 0..2 {
        rig.fresh(0, 1);
    }
    rig.start();
    let task = rig.fresh(0, 1);
    rig.core.clear_resched();
    for (rq, (prio, deadline)) in rig.policy().cpus.iter_mut().zip(cpus) {
        (rq.rq_prio, rq.rq_deadline) = (prio, deadline);
    }
    rig.policy().tasks[task.index()].deadline = deadline;
    (rig, task)
}

/// The CPU that is asked to schedule when `task` is queued.
fn preempted(rig: &mut Rig, task: TaskId, this: u32) -> Option<CpuId> {
    use schedlab_policy_api::{Ctx, Effects};
    use schedlab_units::{Jiffies, Rng};
    let topo = rig.core.topo().clone();
    let tasks = rig.core.tasks().clone();
    let curr = [rig.curr(0), rig.curr(1)];
    let mut fx = Effects::new(2);
    let mut rng = Rng::stream(0, "test", 0);
    let mut cx = Ctx {
        now: rig.now,
        jiffies: Jiffies(0),
        this_cpu: CpuId(0),
        topo: &topo,
        tasks: &tasks,
        curr: &curr,
        wake_pending: &[0, 0],
        rng: &mut rng,
        fx: &mut fx,
    };
    rig.core.policy_mut().try_preempt(&mut cx, task, CpuId(this));
    fx.resched.first().map(|resched| resched.cpu)
}

#[test]
fn vectors_34_35_preemption() {
    for (id, cpus, deadline, expected) in [
        ("34", [(101, 900), (101, 700)], 500, Some(0)),
        ("34", [(101, 900), (101, 700)], 900, None),
        ("35", [(101, 900), (102, 100)], 500, Some(1)),
    ] {
        let (mut rig, task) = busy("1/1/2/1", cpus, deadline);
        assert_eq!(preempted(&mut rig, task, 0), expected.map(CpuId), "row {id}");
    }
}

#[test]
fn vectors_36_preemption_and_locality() {
    let (mut rig, task) = busy("1/2/1/1", [(101, 1000), (101, 950)], 960);
    assert_eq!(preempted(&mut rig, task, 1), None);
    // On CPU 0 itself nothing is taken off, so 1000 > 960 wins.
    assert_eq!(preempted(&mut rig, task, 0), Some(CpuId(0)));
    // Nor if the task was the last to leave CPU 0.
    let life = rig.policy().life(task);
    rig.policy().cpus[0].last_task = Some(life);
    assert_eq!(preempted(&mut rig, task, 1), Some(CpuId(0)));
}

/// Quirk Q7, and IDLEPRIO never preempts.
#[test]
fn idleprio_tells_no_cpu() {
    let mut rig = Rig::new(2, 1000, "");
    rig.hog(0, SchedClass::Idle, 1);
    assert!(!rig.core.need_resched(CpuId(0)) && !rig.core.need_resched(CpuId(1)));
    assert_eq!(rig.stat("idle_kicks"), 0);
}

/// Quirk Q5: the second of two wake-ups kicks a CPU that is kicked already.
#[test]
fn two_wakeups_kick_one_cpu() {
    let mut rig = Rig::new(2, 1000, "");
    rig.hog(0, SchedClass::Normal, 1);
    rig.hog(0, SchedClass::Normal, 1);
    assert!(rig.core.need_resched(CpuId(0)) && !rig.core.need_resched(CpuId(1)));
    assert_eq!(rig.stat("idle_kicks"), 2);
}

/// Quirk Q6 and its repair: a CPU that may run nothing of what is queued.
#[test]
fn idle_bit_of_a_cpu_without_allowed_tasks() {
    for (set, bit) in [("", false), ("keep_idle_bit=1", true)] {
        let mut rig = Rig::new(2, 1000, set);
        for _ in 0..2 {
            let mut new = rig.process();
            new.affinity = CpuSet::single(CpuId(0));
            let task = rig.create(&new, 1);
            rig.wake_new(task);
        }
        rig.start();
        assert_eq!(rig.curr(1), None);
        assert_eq!(rig.policy().idle.contains(CpuId(1)), bit, "{set}");
    }
}

/// A synchronous wake-up preempts nobody; with an idle CPU it is like another.
#[test]
fn synchronous_wakeups() {
    use schedlab_policy_api::TaskState;
    for (cpus, sync, resched) in [(1, false, true), (1, true, false), (2, true, true)] {
        let mut rig = Rig::new(cpus, 1000, "");
        let sleeper = rig.hog(-5, SchedClass::Normal, 1);
        rig.start();
        rig.block(0, TaskState::Sleeping);
        rig.fresh(0, 1);
        rig.settle();
        rig.wake(0, sleeper, sync);
        let asked = rig.core.topo().cpus().any(|cpu| rig.core.need_resched(cpu));
        assert_eq!(asked, resched, "{cpus} CPUs, sync {sync}");
    }
}
