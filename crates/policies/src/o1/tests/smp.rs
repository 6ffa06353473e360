// SPDX-License-Identifier: GPL-2.0-only
//! Balancing on two CPUs.

use schedlab_units::CpuId;

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
    new.affinity = schedlab_units::CpuSet::single(CPU0);
    let task = rig.start(&new, 0);
    rig.schedule(CPU0);
    rig.block(CPU0);
    rig.core.wake(rig.now, CPU1, task, None, true);
    assert!(!rig.core.need_resched(CPU0));
    rig.ticks(5);
    assert_eq!(rig.core.curr(CPU0), None);
    assert_eq!(n_on(&rig, CPU0), 1);
}
