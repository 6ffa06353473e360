// SPDX-License-Identifier: GPL-2.0-only
//! Rows of linux-2.6-spa §9 about balancing, and the moves between CPUs.

use alloc::vec::Vec;

use schedlab_policy_api::TaskState;
use schedlab_units::{CpuId, CpuSet, Nanos, TaskId, Time};

use super::rig::Rig;
use crate::csv::rows;
use crate::linux_2_6::busiest::find_busiest;

fn numbers(text: &str) -> Vec<u32> {
    text.split(' ').map(|n| n.parse().expect("a number")).collect()
}

/// How many tasks a budget lets a CPU take of `movable` ones.
fn pulls(idle: bool, budget: i64, movable: usize) -> usize {
    let stops = |taken: &usize| idle || budget - *taken as i64 == 0;
    (1..=movable).find(stops).unwrap_or(movable)
}

#[test]
fn vectors_49_to_53_find_busiest() {
    for row in rows(include_str!("../vectors/balance.csv")) {
        let (lengths, mut prev) = (numbers(row.text("nr_running")), numbers(row.text("prev")));
        let idle = row.text("idle") == "1";
        let found = find_busiest(0, idle, 0..lengths.len(), |cpu| lengths[cpu], &mut prev);
        let id = row.text("id");
        assert_eq!(prev, lengths, "row {id}: the lengths are remembered");
        if row.text("from") == "-" {
            assert_eq!(found, None, "row {id}");
            continue;
        }
        let budget = row.get("budget");
        assert_eq!(found, Some((row.get("from"), budget)), "row {id}");
        assert_eq!(pulls(idle, budget, 9), row.get("pulls"), "row {id}");
    }
}

/// `n` hogs that start on `cpu`.
fn hogs(rig: &mut Rig, cpu: u32, n: usize) -> Vec<TaskId> {
    let mut new = rig.process(0);
    new.cpu = CpuId(cpu);
    let tasks = (0..n).map(|_| rig.start(&new, 816)).collect();
    rig.settle();
    tasks
}

fn on(rig: &Rig, cpu: u32) -> usize {
    rig.core.tasks().iter().filter(|(_, facts)| facts.cpu == CpuId(cpu)).count()
}

#[test]
fn idle_tick_pulls_one_task_from_the_tail() {
    let mut rig = Rig::new(2, "", true);
    let tasks = hogs(&mut rig, 0, 4);
    rig.now = rig.now + Nanos::from_ms(1);
    rig.core.tick(rig.now, CpuId(1));
    assert_eq!(rig.core.tasks().cpu(tasks[3]), CpuId(1));
    assert_eq!(rig.stat("pulls"), 1);
    assert!(rig.core.need_resched(CpuId(1)));
}

#[test]
fn cpu_that_runs_dry_pulls_at_once() {
    let mut rig = Rig::new(2, "", true);
    let tasks = hogs(&mut rig, 0, 3);
    let other = hogs(&mut rig, 1, 1)[0];
    assert_eq!(rig.core.curr(CpuId(1)), Some(other));
    rig.block(CpuId(1), TaskState::Sleeping);
    assert_eq!(rig.core.curr(CpuId(1)), Some(tasks[2]));
}

#[test]
fn idle_cpu_leaves_a_single_runnable_task_alone() {
    let mut rig = Rig::new(2, "", true);
    hogs(&mut rig, 0, 1);
    rig.run_ms(10);
    assert_eq!((on(&rig, 0), rig.stat("pulls")), (1, 0));
}

/// Row 51's situation in the machine: with a budget of 0 everything movable follows (Q7).
#[test]
fn busy_cpu_overpulls() {
    let mut rig = Rig::new(2, "word_bits=64", true);
    hogs(&mut rig, 1, 1);
    rig.now = rig.now + Nanos::from_ms(100);
    let tasks = hogs(&mut rig, 0, 2);
    // The lengths 1 and 2 must be seen twice before they count.
    rig.run_ms(100);
    assert_eq!(rig.stat("pulls"), 0);
    rig.run_ms(200);
    assert_eq!(rig.stat("pulls"), 1, "imbalance 1, budget 0, one movable task");
    assert!(tasks.iter().any(|task| rig.core.tasks().cpu(*task) == CpuId(1)));
}

#[test]
fn affinity_and_heat_keep_tasks_where_they_are() {
    let mut rig = Rig::new(2, "", true);
    let mut new = rig.process(0);
    new.affinity = CpuSet::single(CpuId(0));
    rig.start(&new, 816);
    rig.start(&new, 816);
    rig.settle();
    rig.run_ms(50);
    assert_eq!((on(&rig, 0), rig.stat("pulls")), (2, 0));
}

/// Q6: after 4.29 s of uptime a pulled task's time stamp lies in the future on 32 bits; the wait
/// that wraps gives it bonus 9.
#[test]
fn truncated_clock_of_a_pull_gives_bonus_9() {
    for (set, bonus) in [("", 9), ("word_bits=64", 1)] {
        let mut rig = Rig::new(2, set, true);
        assert!(rig.now > Time::ZERO + Nanos::from_s(5));
        let tasks = hogs(&mut rig, 0, 2);
        let sleeper = tasks[1];
        rig.core.policy_mut().set_sleep_avg(tasks[0], 0);
        // The first runs; let the second run and sleep, then wake it behind the first.
        let first = rig.core.curr(CpuId(0)).expect("a hog runs");
        rig.core.yield_task(rig.now, CpuId(0));
        rig.settle();
        assert_eq!(rig.core.curr(CpuId(0)), Some(sleeper));
        rig.block(CpuId(0), TaskState::Sleeping);
        rig.core.policy_mut().set_sleep_avg(sleeper, 102_000_000);
        rig.core.set_nice(rig.now, CpuId(0), first, schedlab_units::Nice::MIN);
        rig.settle();
        rig.core.tick(rig.now, CpuId(0));
        rig.core.wake(rig.now, CpuId(0), sleeper, None, false);
        rig.settle();
        assert_eq!(rig.core.curr(CpuId(0)), Some(first));
        rig.core.tick(rig.now, CpuId(1));
        rig.settle();
        assert_eq!(rig.core.curr(CpuId(1)), Some(sleeper), "pulled");
        assert_eq!(rig.inspect(sleeper, "bonus"), bonus, "`{set}`");
    }
}

#[test]
fn sync_wake_up_follows_the_waker() {
    let mut rig = Rig::new(2, "", true);
    let sleeper = hogs(&mut rig, 1, 1)[0];
    rig.block(CpuId(1), TaskState::Sleeping);
    let waker = hogs(&mut rig, 0, 1)[0];
    rig.core.wake(rig.now, CpuId(0), sleeper, Some(waker), true);
    assert_eq!(rig.core.tasks().cpu(sleeper), CpuId(0));
    assert!(!rig.core.need_resched(CpuId(0)) && !rig.core.need_resched(CpuId(1)));
}

#[test]
fn woken_task_stays_on_its_last_cpu() {
    let mut rig = Rig::new(2, "", true);
    let sleeper = hogs(&mut rig, 0, 1)[0];
    rig.block(CpuId(0), TaskState::Sleeping);
    hogs(&mut rig, 0, 1);
    rig.core.wake(rig.now, CpuId(1), sleeper, None, false);
    assert_eq!(rig.core.tasks().cpu(sleeper), CpuId(0));
}

/// The new time stamp is the new CPU's last tick, an `unsigned long` too: on 32 bits its difference
/// to the clock wraps like that of Q6.
#[test]
fn change_of_affinity_activates_on_the_new_cpu() {
    for (set, picked) in [("word_bits=64", 828_968_750), ("", 918_000_000)] {
        let mut rig = Rig::new(2, set, true);
        rig.core.tick(rig.now, CpuId(1));
        let tasks = hogs(&mut rig, 0, 2);
        rig.now = rig.now + Nanos::from_ms(5);
        rig.core.set_affinity(rig.now, CpuId(0), tasks[1], &CpuSet::single(CpuId(1)));
        assert_eq!(rig.core.tasks().cpu(tasks[1]), CpuId(1));
        assert_eq!(rig.inspect(tasks[1], "activated"), 1);
        // Five milliseconds of waiting count as sleep, twice each at bonus 8.
        assert_eq!(rig.inspect(tasks[1], "sleep_avg"), 826_000_000);
        assert!(rig.core.need_resched(CpuId(1)));
        // And once more when it is picked: 38 of 128 of the time since the last tick.
        rig.settle();
        assert_eq!(rig.core.curr(CpuId(1)), Some(tasks[1]));
        assert_eq!(rig.inspect(tasks[1], "sleep_avg"), picked, "`{set}`");
    }
}
