// SPDX-License-Identifier: GPL-2.0-only
//! Changes of affinity at awkward moments.

use schedlab_kcore::{Core, CoreConfig, NewTask};
use schedlab_policies::{Rr, RrTunables};
use schedlab_policy_api::{Build, NoObserver, PolicyDef, TaskState, Topology};
use schedlab_units::{CpuId, CpuSet, Hz, TaskId, Time};

const CPU0: CpuId = CpuId(0);
const CPU1: CpuId = CpuId(1);
const NOW: Time = Time::ZERO;

/// Two CPUs under round robin, and `n` tasks that wait for CPU 0.
fn core(n: usize) -> (Core<Rr, NoObserver>, Vec<TaskId>) {
    let topo = Topology::flat(2).expect("legal");
    let hz = Hz::new(1000);
    let policy = Rr::build(&RrTunables::default(), Build { topo: &topo, hz, n_tasks: n });
    let all = *topo.all();
    let config = CoreConfig { topo, hz, seed: 1, n_tasks: n, check: true };
    let mut core = Core::new(policy, NoObserver, config);
    let tasks = (0..n).map(|i| {
        let task = core.fork(NOW, CPU0, None, &NewTask::normal(&all, i as u32));
        core.wake_up_new(NOW, CPU0, task, Some(CPU0));
        task
    });
    let tasks = tasks.collect();
    (core, tasks)
}

#[test]
fn affinity_of_waiting_task_changed_moves_it_at_once() {
    let (mut core, tasks) = core(2);
    core.schedule(NOW, CPU0);
    core.finish_switch(NOW, CPU0);
    core.set_affinity(NOW, CPU0, tasks[1], &CpuSet::single(CPU1));
    assert_eq!(core.tasks().cpu(tasks[1]), CPU1);
    assert!(core.need_resched(CPU1));
    assert_eq!(core.schedule(NOW, CPU1).next, Some(tasks[1]));
}

#[test]
fn affinity_of_running_task_changed_expels_it_after_the_switch() {
    let (mut core, tasks) = core(1);
    core.schedule(NOW, CPU0);
    core.finish_switch(NOW, CPU0);
    core.set_affinity(NOW, CPU0, tasks[0], &CpuSet::single(CPU1));
    assert!(core.need_resched(CPU0));
    assert_eq!(core.schedule(NOW, CPU0).next, None);
    assert_eq!(core.tasks().get(tasks[0]).state, TaskState::Waking);
    core.finish_switch(NOW, CPU0);
    assert_eq!(core.schedule(NOW, CPU1).next, Some(tasks[0]));
}

#[test]
fn affinity_of_task_being_switched_from_changed_waits_for_the_switch() {
    let (mut core, tasks) = core(2);
    core.schedule(NOW, CPU0);
    core.finish_switch(NOW, CPU0);
    core.yield_task(NOW, CPU0);
    let switch = core.schedule(NOW, CPU0);
    assert_eq!((switch.prev, switch.next), (Some(tasks[0]), Some(tasks[1])));
    core.set_affinity(NOW, CPU1, tasks[0], &CpuSet::single(CPU1));
    assert_eq!(core.tasks().cpu(tasks[0]), CPU0, "it is still being switched from");
    core.finish_switch(NOW, CPU0);
    assert_eq!(core.tasks().cpu(tasks[0]), CPU1);
    assert_eq!(core.schedule(NOW, CPU1).next, Some(tasks[0]));
}
