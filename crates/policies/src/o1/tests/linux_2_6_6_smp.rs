// SPDX-License-Identifier: GPL-2.0-only
//! Rows of linux-2.6-spa §9: balancing and moves between CPUs under 2.6.6.

use alloc::vec::Vec;

use schedlab_policy_api::{Mm, TaskState, Topology};
use schedlab_units::{CpuId, CpuSet, Nanos, Time};

use super::linux_2_6_6::{Rig, machine};
use crate::csv::rows;
use crate::linux_2_6::rig::CPU;
use crate::linux_2_6::sleep_avg::Activated;

const CPU1: CpuId = CpuId(1);

fn numbers(text: &str) -> Vec<u32> {
    text.split(' ').map(|n| n.parse().expect("a number")).collect()
}

/// CPU 0 balances at a tick in whose jiffy a busy CPU does so too, with run queues and memory of the
/// row; all that wait may be moved.
#[test]
fn vectors_49_to_53_balance() {
    for row in rows(include_str!("../../spa/vectors/balance.csv")) {
        let (lengths, prev) = (numbers(row.text("nr_running")), numbers(row.text("prev")));
        let mut rig = machine(lengths.len() as u32, "");
        for (cpu, n) in lengths.iter().enumerate() {
            for _ in 0..*n {
                let mut new = rig.process(0);
                new.cpu = CpuId::from_index(cpu);
                rig.start(&new, 0);
            }
        }
        rig.settle();
        let queues = |rig: &Rig| -> Vec<u32> {
            rig.core.policy().rqs.iter().map(|rq| rq.nr_running).collect()
        };
        assert_eq!(queues(&rig), lengths);
        rig.now = rig.now + Nanos::from_ms(200);
        rig.core.policy_mut().rqs[0].prev_cpu_load = prev;
        // All that wait on the row's CPU, if it takes everything.
        let from: Option<usize> = (row.text("from") != "-").then(|| row.get("from"));
        let waiting = from.map_or(0, |cpu| lengths[cpu] - 1);
        let pulls = row.get::<u32>("pulls").min(waiting);
        rig.core.tick(rig.now, CPU);
        let id = row.text("id");
        assert_eq!(rig.core.policy().rqs[0].prev_cpu_load, lengths, "row {id}: remembered");
        let mut expected = lengths.clone();
        expected[0] += pulls;
        if let Some(cpu) = from {
            expected[cpu] -= pulls;
        }
        assert_eq!(queues(&rig), expected, "row {id}");
    }
}

/// Quirk Q6: after 4.29 s of uptime a pulled task's time stamp lies in the future on 32 bits; the
/// wait that wraps gives it bonus 9.
#[test]
fn truncated_clock_of_a_pull_gives_bonus_9() {
    for (set, bonus) in [("wrap_32_bit=on", 4), ("wrap_32_bit=off", -4)] {
        let mut rig = machine(2, set);
        assert!(rig.now > Time::ZERO + Nanos::from_s(5));
        let new = rig.process(0);
        let sleeper = rig.start(&new, 102);
        rig.settle();
        rig.block(CPU, TaskState::Sleeping);
        let first = rig.start(&rig.process(-20), 0);
        rig.settle();
        rig.core.tick(rig.now, CPU);
        rig.core.wake(rig.now, CPU, sleeper, None, false);
        rig.settle();
        assert_eq!(rig.core.curr(CPU), Some(first));
        rig.core.tick(rig.now, CPU1);
        rig.settle();
        assert_eq!(rig.core.curr(CPU1), Some(sleeper), "pulled");
        assert_eq!(rig.inspect(sleeper, "bonus"), bonus, "{set}");
    }
}

/// Q6, second half: on 32 bits the test for hot caches passes everybody.
#[test]
fn truncated_clock_makes_every_task_cold() {
    // (5 − 1) / 2 tasks if any may come.
    for (set, on_1) in [("wrap_32_bit=on", 3), ("wrap_32_bit=off", 1)] {
        let mut rig = machine(2, set);
        let other = CpuSet::single(CPU1);
        let mut new = rig.process(0);
        (new.cpu, new.affinity) = (CPU1, other);
        rig.start(&new, 0);
        rig.run_ms(199);
        // Born within the last tick: hot.
        (0..5).for_each(|_| {
            rig.start(&rig.process(0), 0);
        });
        rig.settle();
        rig.now = rig.now + Nanos::from_ms(1);
        rig.core.policy_mut().rqs[1].prev_cpu_load = alloc::vec![5, 1];
        rig.core.tick(rig.now, CPU);
        rig.core.tick(rig.now, CPU1);
        assert_eq!(rig.core.policy().rqs[1].nr_running, on_1, "{set}");
    }
}

/// The migration thread activates in full and dates the task by the last tick of the new CPU.
#[test]
fn change_of_affinity_activates_on_the_new_cpu() {
    let mut rig = machine(2, "wrap_32_bit=off");
    rig.core.tick(rig.now, CPU1);
    let tick = rig.now.as_ns();
    let tasks = [816, 816].map(|ms| rig.start(&rig.process(0), ms));
    rig.settle();
    rig.now = rig.now + Nanos::from_ms(5);
    rig.core.set_affinity(rig.now, CPU, tasks[1], &CpuSet::single(CPU1));
    assert_eq!(rig.core.tasks().cpu(tasks[1]), CPU1);
    // Five milliseconds of waiting count as sleep, twice each at bonus 8.
    assert_eq!(rig.inspect(tasks[1], "sleep_avg"), 826_000_000);
    let avg = rig.core.policy().tasks[tasks[1].index()].avg;
    assert_eq!((avg.activated, avg.timestamp), (Activated::ByTask, tick));
    assert!(rig.core.need_resched(CPU1));
}

/// NUMA: nodes are compared by tasks in a tenth of a CPU, and an exec leaves a long queue.
#[test]
fn exec_goes_to_the_least_loaded_node() {
    let topo = Topology::new(2, 1, 2, 1).expect("two nodes of two CPUs");
    let mut rig = Rig::on(topo, "@2.6.6", true);
    let tasks = [0, 0, 0].map(|ms| rig.start(&rig.process(0), ms));
    rig.schedule(CPU);
    assert_eq!(rig.core.curr(CPU), Some(tasks[0]));
    rig.core.exec(rig.now, CPU, Mm(9));
    rig.settle();
    assert_eq!(rig.core.tasks().cpu(tasks[0]), CpuId(2));
    // Two tasks are few enough to stay.
    let second = rig.core.curr(CPU).expect("the next runs");
    rig.core.exec(rig.now, CPU, Mm(10));
    rig.settle();
    assert_eq!(rig.core.curr(CPU), Some(second));
}
