// SPDX-License-Identifier: GPL-2.0-only
//! The choice of CPUs and balancing.

use alloc::vec::Vec;

use schedlab_kcore::NewTask;
use schedlab_policy_api::{SchedClass, TaskState, Topology};
use schedlab_units::{CpuId, CpuSet, TaskId};

use super::harness::Rig;

const MS: u64 = 1_000_000;

fn machine(nodes: u32, llcs: u32, cores: u32, threads: u32, set: &[(&str, &str)]) -> Rig {
    Rig::new(Topology::new(nodes, llcs, cores, threads).expect("a machine"), 1000, set)
}

fn hogs(rig: &mut Rig, n: u32, on: Option<u32>) -> Vec<TaskId> {
    let new = rig.normal();
    let tasks = (0..n).map(|_| rig.spawn(&new, on)).collect();
    rig.settle();
    tasks
}

/// Number of tasks that run on each core.
fn per_core(rig: &Rig) -> Vec<usize> {
    let topo = rig.core.topo();
    let n_cores = topo.n_cpus() / topo.threads_per_core() as usize;
    let mut running = alloc::vec![0; n_cores];
    for cpu in topo.cpus().filter(|cpu| rig.core.curr(*cpu).is_some()) {
        running[topo.core(cpu)] += 1;
    }
    running
}

#[test]
fn forked_tasks_spread_over_idle_cpus() {
    let mut rig = machine(1, 1, 4, 1, &[]);
    for n in 1..=4 {
        hogs(&mut rig, 1, None);
        assert_eq!(per_core(&rig).iter().sum::<usize>(), n);
    }
    let mut rig = machine(2, 1, 2, 2, &[]);
    for n in 1..=8 {
        hogs(&mut rig, 1, None);
        let cores = per_core(&rig);
        assert_eq!(cores.iter().sum::<usize>(), n);
        assert!(cores.iter().max() <= Some(&n.div_ceil(4)), "{n} on {cores:?}");
    }
}

#[test]
fn woken_task_finds_an_idle_cpu_of_its_cache() {
    let mut rig = machine(2, 1, 2, 1, &[]);
    let sleeper = rig.spawn(&rig.normal(), Some(0));
    rig.settle();
    rig.block(0);
    let hog = hogs(&mut rig, 1, Some(0))[0];
    rig.run_until(5 * MS);
    assert_eq!(rig.wake(0, sleeper, Some(hog)), CpuId(1));
    // All CPUs of the node busy: the last one is taken, the other node is not looked at.
    rig.settle();
    rig.block(1);
    hogs(&mut rig, 1, Some(1));
    assert!([CpuId(0), CpuId(1)].contains(&rig.wake(0, sleeper, Some(hog))));
}

#[test]
fn wakeup_scan_prefers_an_idle_core() {
    let mut rig = machine(1, 1, 4, 2, &[]);
    let sleeper = rig.spawn(&rig.normal(), Some(0));
    rig.settle();
    rig.block(0);
    let hog = hogs(&mut rig, 1, Some(0))[0];
    hogs(&mut rig, 1, Some(1));
    // CPUs 4 and 5 are idle threads of busy cores; core 2 is idle.
    assert_eq!(rig.wake(0, sleeper, Some(hog)), CpuId(2));
}

#[test]
fn remote_wakeups_are_left_to_the_target() {
    let mut rig = machine(2, 1, 2, 1, &[]);
    let task = rig.spawn(&rig.normal(), Some(3));
    rig.settle();
    rig.block(3);
    let wakeup = rig.core.wake(rig.time(), CpuId(0), task, None, false);
    assert!(matches!(wakeup, schedlab_kcore::Wakeup::Sent(_)), "{wakeup:?}");
    let mut rig = machine(2, 1, 2, 1, &[("ttwu_queue", "off")]);
    let task = rig.spawn(&rig.normal(), Some(3));
    rig.settle();
    rig.block(3);
    let wakeup = rig.core.wake(rig.time(), CpuId(0), task, None, false);
    assert!(matches!(wakeup, schedlab_kcore::Wakeup::Queued(_)), "{wakeup:?}");
}

#[test]
fn delayed_task_wakes_where_it_is() {
    let mut rig = machine(1, 1, 4, 1, &[("base_slice", "2.8ms")]);
    let two = hogs(&mut rig, 2, Some(0));
    let only_0 = CpuSet::single(CpuId(0));
    rig.core.set_affinity(rig.time(), CpuId(0), two[1], &only_0);
    rig.run_until(MS);
    let overserved = rig.core.curr(CpuId(0)).expect("one of them runs");
    rig.block(0);
    assert_eq!(rig.figure(overserved, "delayed"), 1);
    assert_eq!(rig.wake(2, overserved, None), CpuId(0), "although three CPUs idle");
}

#[test]
fn delayed_task_leaves_a_forbidden_cpu() {
    let mut rig = machine(1, 1, 2, 1, &[("base_slice", "2.8ms")]);
    hogs(&mut rig, 1, Some(1));
    hogs(&mut rig, 2, Some(0));
    rig.run_until(MS);
    let task = rig.core.curr(CpuId(0)).expect("one of them runs");
    rig.block(0);
    assert_eq!(rig.figure(task, "delayed"), 1);
    rig.core.set_affinity(rig.time(), CpuId(0), task, &CpuSet::single(CpuId(1)));
    assert_eq!(rig.figure(task, "delayed"), 1);
    assert_eq!(rig.wake(0, task, None), CpuId(1));
}

#[test]
fn newly_idle_cpu_pulls_a_waiting_task() {
    let mut rig = machine(1, 1, 2, 1, &[("migration_cost", "100us")]);
    let on_1 = hogs(&mut rig, 1, Some(1))[0];
    let on_0 = hogs(&mut rig, 2, Some(0));
    rig.run_until(3 * MS);
    rig.block(1);
    let pulled = rig.core.curr(CpuId(1)).expect("a task was pulled");
    assert!(on_0.contains(&pulled) && pulled != on_1);
}

#[test]
fn newly_idle_cpu_does_not_search_when_it_idles_briefly() {
    let set = [("migration_cost", "100us"), ("newidle_cost_per_cpu", "1ms")];
    let mut rig = machine(1, 1, 2, 1, &set);
    hogs(&mut rig, 2, Some(0));
    let sleeper = rig.spawn(&rig.normal(), Some(1));
    rig.settle();
    // The first search records its cost of 2 ms, the second is not made.
    for moved in [true, false] {
        rig.now += 3 * MS;
        rig.core.set_affinity(rig.time(), CpuId(1), sleeper, &CpuSet::single(CpuId(1)));
        while rig.core.curr(CpuId(1)) != Some(sleeper) {
            rig.block(1);
        }
        rig.block(1);
        assert_eq!(rig.core.curr(CpuId(1)).is_some(), moved);
        if let Some(pulled) = rig.core.curr(CpuId(1)) {
            rig.core.set_affinity(rig.time(), CpuId(0), pulled, &CpuSet::single(CpuId(0)));
            rig.settle();
        }
        rig.wake(1, sleeper, None);
        rig.settle();
    }
}

#[test]
fn hogs_on_one_cpu_are_spread_by_periodic_balancing() {
    let mut rig = machine(2, 1, 2, 2, &[]);
    let tasks = hogs(&mut rig, 16, Some(0));
    rig.run_until(2_000 * MS);
    assert_eq!(per_core(&rig), [2, 2, 2, 2]);
    let runs: Vec<u64> = tasks.iter().map(|task| rig.run_ns(*task)).collect();
    assert!(runs.iter().all(|run| *run > 500 * MS), "{runs:?}");
}

#[test]
fn two_hogs_on_one_core_are_parted() {
    let mut rig = machine(1, 1, 2, 2, &[]);
    let mut here = rig.normal();
    for cpu in [0, 2] {
        here.affinity = CpuSet::single(CpuId(cpu));
        rig.spawn(&here, Some(cpu));
    }
    rig.settle();
    assert_eq!(per_core(&rig), [2, 0]);
    for task in [0, 1] {
        let all = *rig.core.topo().all();
        rig.core.set_affinity(rig.time(), CpuId(0), TaskId(task), &all);
    }
    // Only active balancing can move a task that never waits.
    rig.run_until(1_000 * MS);
    assert_eq!(per_core(&rig), [1, 1]);
}

/// A preference must not keep a task that another CPU has asked for.
#[test]
fn preferred_task_leaves_when_it_is_asked_for() {
    let mut rig = machine(1, 1, 2, 1, &[("next_buddy", "on")]);
    let sleeper = rig.spawn(&rig.normal(), Some(0));
    rig.settle();
    rig.block(0);
    let pinned = NewTask { affinity: CpuSet::single(CpuId(0)), ..rig.normal() };
    let hog = rig.spawn(&pinned, Some(0));
    let busy = NewTask { affinity: CpuSet::single(CpuId(1)), ..rig.normal() };
    rig.spawn(&busy, Some(1));
    rig.settle();
    rig.now += 100_000;
    assert_eq!(rig.wake(0, sleeper, Some(hog)), CpuId(0));
    let fair = &mut rig.core.policy_mut().fair;
    assert_eq!(fair.cpu(CpuId(0)).next, Some(sleeper));
    fair.cpu_mut(CpuId(0)).push_cpu = Some(CpuId(1));
    assert_eq!(rig.schedule(0), Some(hog));
    assert_eq!(rig.core.tasks().cpu(sleeper), CpuId(1));
}

#[test]
fn pinned_tasks_stay_and_others_make_room() {
    let mut rig = machine(1, 1, 4, 1, &[]);
    let pinned = NewTask { affinity: CpuSet::single(CpuId(0)), ..rig.normal() };
    let pinned: Vec<TaskId> = (0..2).map(|_| rig.spawn(&pinned, Some(0))).collect();
    hogs(&mut rig, 3, Some(0));
    rig.run_until(2_000 * MS);
    assert_eq!(per_core(&rig), [1, 1, 1, 1]);
    for task in &pinned {
        assert_eq!(rig.core.tasks().cpu(*task), CpuId(0));
        assert!(rig.run_ns(*task) > 900 * MS, "{}", rig.run_ns(*task));
    }
}

#[test]
fn cpu_with_sched_idle_tasks_counts_as_idle() {
    let mut rig = machine(1, 1, 2, 1, &[]);
    let idle = NewTask { class: SchedClass::Idle, ..rig.normal() };
    rig.spawn(&idle, Some(1));
    let sleeper = rig.spawn(&rig.normal(), Some(0));
    rig.settle();
    rig.block(0);
    let hog = hogs(&mut rig, 1, Some(0))[0];
    assert_eq!(rig.wake(0, sleeper, Some(hog)), CpuId(1));
    rig.settle();
    assert_eq!(rig.core.curr(CpuId(1)), Some(sleeper));
}

#[test]
fn exec_moves_to_an_idle_cpu() {
    let mut rig = machine(1, 1, 2, 1, &[]);
    let two = hogs(&mut rig, 2, Some(0));
    let running = rig.core.curr(CpuId(0)).expect("one of them runs");
    rig.core.exec(rig.time(), CpuId(0), schedlab_policy_api::Mm(9));
    rig.settle();
    assert_eq!(rig.core.curr(CpuId(1)), Some(running));
    assert_eq!(rig.core.tasks().get(running).state, TaskState::Running);
    assert!(rig.core.curr(CpuId(0)).is_some_and(|other| two.contains(&other)));
}
