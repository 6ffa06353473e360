// SPDX-License-Identifier: GPL-2.0-only
//! Balancing on two CPUs.

use schedlab_policy_api::Topology;
use schedlab_units::{CpuId, CpuSet};

use super::rig::{CPU0, Rig};

const CPU1: CpuId = CpuId(1);

/// Tasks on the queue of `cpu`.
fn n_on(rig: &Rig, cpu: CpuId) -> u32 {
    rig.core.policy().rqs[cpu.index()].nr_running
}

/// §4.9, §4.10: the idle CPU takes one task a tick, once it is no longer cache-hot.
#[test]
fn idle_cpu_pulls_one_task_a_tick() {
    let mut rig = Rig::new(2, "2.6.0-test1", "");
    for _ in 0..5 {
        rig.task(0);
    }
    rig.schedule(CPU0);
    assert_eq!((n_on(&rig, CPU0), n_on(&rig, CPU1)), (5, 0));
    rig.tick();
    assert_eq!(n_on(&rig, CPU1), 0, "born at jiffy 0, hot at jiffy 1");
    rig.tick();
    assert_eq!((n_on(&rig, CPU0), n_on(&rig, CPU1)), (4, 1));
    rig.ticks(10);
    assert_eq!((n_on(&rig, CPU0), n_on(&rig, CPU1)), (4, 1), "a busy CPU waits for its turn");
}

/// The busy CPU balances at every 200th jiffy, by the smaller of the present and the last load.
#[test]
fn busy_cpu_balances_every_200_ticks() {
    let mut rig = Rig::new(2, "2.6.0-test1", "");
    for _ in 0..7 {
        rig.task(0);
    }
    rig.schedule(CPU0);
    rig.ticks(199);
    assert_eq!((n_on(&rig, CPU0), n_on(&rig, CPU1)), (6, 1));
    rig.tick();
    // CPU 1 saw 7 on CPU 0 when it last looked, now there are 6: (6 − 1) / 2 = 2 of at least 2.
    assert_eq!((n_on(&rig, CPU0), n_on(&rig, CPU1)), (4, 3));
}

/// §6.14: a busy CPU under 2.6.0 with one task less takes everything that waits.
#[test]
fn busy_cpu_of_2_6_0_overpulls() {
    let mut rig = Rig::new(2, "2.6.0", "");
    for _ in 0..3 {
        rig.task(0);
    }
    rig.schedule(CPU0);
    rig.tick();
    assert_eq!((n_on(&rig, CPU0), n_on(&rig, CPU1)), (2, 1), "cache heat does not bind the idle");
    rig.ticks(199);
    let loads = (n_on(&rig, CPU0), n_on(&rig, CPU1));
    // CPU 0 balances first and finds itself the busier; CPU 1 then takes the one that waits.
    assert_eq!(loads, (1, 2));
}

/// §4.6 step 3: before it goes idle a CPU looks once for work.
#[test]
fn newly_idle_cpu_pulls() {
    let mut rig = Rig::new(2, "2.6.0-test1", "");
    let tasks = [rig.task(0), rig.task(0), rig.task(0)];
    rig.schedule(CPU0);
    rig.ticks(20);
    let on_1 = rig.core.curr(CPU1).expect("it pulled");
    assert!(tasks.contains(&on_1));
    assert_eq!(n_on(&rig, CPU0), 2);
    rig.block(CPU1);
    assert!(rig.core.curr(CPU1).is_some_and(|task| task != on_1));
    assert_eq!((n_on(&rig, CPU0), n_on(&rig, CPU1)), (1, 1));
    // The next has nothing to take: one task is no reason to move it.
    rig.block(CPU1);
    assert_eq!(rig.core.curr(CPU1), None);
    assert_eq!((n_on(&rig, CPU0), n_on(&rig, CPU1)), (1, 0));
}

/// §4.3, the task that nobody looks at: a synchronous wake-up by a CPU it may not run on.
#[test]
fn sync_wake_up_on_an_idle_forbidden_cpu_goes_unnoticed() {
    let mut rig = Rig::new(2, "2.6.0-test1", "");
    let mut new = rig.process();
    new.affinity = CpuSet::single(CPU0);
    let task = rig.start(&new, 0);
    rig.schedule(CPU0);
    rig.block(CPU0);
    rig.core.wake(rig.now, CPU1, task, None, true);
    assert!(!rig.core.need_resched(CPU0));
    rig.ticks(5);
    assert_eq!(rig.core.curr(CPU0), None);
    assert_eq!(n_on(&rig, CPU0), 1);
}

/// §2, §4.10: idle CPUs look at other nodes at every fifth jiffy, each by its own view of loads.
#[test]
fn idle_cpu_pulls_from_the_busiest_node_every_5_ticks() {
    let topo = Topology::new(2, 1, 2, 1).expect("two nodes of two CPUs");
    let mut rig = Rig::on(topo, "2.6.0-test1", "", true);
    for _ in 0..6 {
        rig.task(0);
    }
    rig.schedule(CPU0);
    let loads = |rig: &Rig| [0, 1, 2, 3].map(|cpu| n_on(rig, CpuId(cpu)));
    rig.ticks(4);
    assert_eq!(loads(&rig), [5, 1, 0, 0], "within the node only");
    rig.tick();
    // CPU 2 sees 6 against 0; CPU 3 then sees 5 against 1, more than 125 %.
    assert_eq!(loads(&rig), [3, 1, 1, 1]);
}

/// §5.6 f: a pulled task stays on the list of waiting tasks of the CPU it comes from.
#[test]
fn pulled_task_stays_listed_where_it_waited() {
    let mut rig = Rig::new(2, "gfc", "");
    let tasks = [rig.task(0), rig.task(0), rig.task(0)];
    rig.schedule(CPU0);
    let busy = rig.process();
    let busy = rig.core.fork(rig.now, CPU1, None, &busy);
    rig.core.wake_up_new(rig.now, CPU1, busy, Some(CPU1));
    rig.settle();
    rig.ticks(2);
    assert_eq!(rig.core.curr(CPU1), Some(busy));
    rig.core.block(rig.now, CPU1, schedlab_policy_api::TaskState::Sleeping);
    let pulled = rig.core.curr(CPU1).expect("it pulled");
    assert!(tasks.contains(&pulled));
    assert_eq!(rig.core.policy().waiting.array_of(pulled), None, "it runs");
    let listed = tasks.iter().filter(|t| rig.core.policy().waiting.array_of(**t) == Some(0));
    assert_eq!(listed.count(), 1);
}
