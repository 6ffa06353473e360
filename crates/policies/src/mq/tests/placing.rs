// SPDX-License-Identifier: GPL-2.0-only
//! `reschedule_idle` step by step (spec §5.3): where a task is queued and who hears of it.

use alloc::vec;

use schedlab_units::{CpuId, Nanos};

use super::rig::{CPU0, CPU1, CPU2, Rig, all_but, occupy, sleeper, told, woken};
use crate::goodness::tests::rig::only;

#[test]
fn step_1_idle_home_is_taken_before_longer_idle_cpus() {
    let mut rig = Rig::new(4, "");
    occupy(&mut rig, &["6", "-", "6", "-"]);
    rig.advance(Nanos::from_us(5));
    rig.block(CPU2);
    rig.advance(Nanos::from_us(5));
    let p = woken(&mut rig, "6", 2, 1);
    assert_eq!(told(&mut rig), [(2, true)]);
    assert_eq!(rig.core.tasks().cpu(p), CPU2);
    assert_eq!(rig.stat("idle_kicks"), 3);
}

#[test]
fn step_1_idle_home_that_is_forbidden_is_passed_over() {
    let mut rig = Rig::new(4, "");
    occupy(&mut rig, &["6", "-", "-", "6"]);
    rig.advance(Nanos::from_us(5));
    let p = sleeper(&mut rig, "6", 2, 1);
    let others = all_but(&rig, &[CPU2]);
    rig.core.set_affinity(rig.now, CPU0, p, &others);
    rig.wake_new(CPU0, p);
    assert_eq!(told(&mut rig), [(1, true)]);
}

/// CPUs 1 and 3 go idle at 1 s and at 0.5 s, CPUs 0 and 2 run; the time is then `at`.
fn two_idle_cpus(at: Nanos) -> Rig {
    let mut rig = Rig::new(4, "");
    occupy(&mut rig, &["11", "11", "11", "11"]);
    rig.advance(Nanos::from_ms(500));
    rig.block(CpuId(3));
    rig.advance(Nanos::from_ms(500));
    rig.block(CPU1);
    rig.advance(at - Nanos::from_s(1));
    rig
}

#[test]
fn step_2_longest_idle_cpu_is_taken_until_the_cycles_no_longer_fit() {
    // 2^31 ns are 2.147 s: at 4 s both CPUs have been idle for longer, which makes them equal.
    for (at, chosen) in [(1_500, 3), (2_600, 3), (3_147, 3), (3_148, 1), (4_000, 1)] {
        let mut rig = two_idle_cpus(Nanos::from_ms(at));
        let p = woken(&mut rig, "6", 2, 1);
        assert_eq!(told(&mut rig), [(chosen, true)], "at {at} ms");
        assert_eq!(rig.core.tasks().cpu(p), CpuId(chosen));
        assert_eq!(rig.inspect(p, "is_max"), 1);
    }
}

#[test]
fn step_2_task_without_ticks_wants_a_cpu_that_is_idle_for_longer_than_the_threshold() {
    // Limit 0 − 1: one nanosecond of idling is worth −1, which is not below.
    for (idle_ns, taken) in [(0, vec![]), (1, vec![]), (2, vec![(1, true)])] {
        let mut rig = Rig::new(2, "");
        occupy(&mut rig, &["6", "-"]);
        rig.advance(Nanos::from_ns(idle_ns));
        let p = woken(&mut rig, "0", 0, 1);
        assert_eq!(told(&mut rig), taken, "idle for {idle_ns} ns");
        assert_eq!(rig.core.tasks().cpu(p).index(), taken.len());
    }
}

#[test]
fn step_2_equal_values_go_to_the_lowest_cpu() {
    let mut rig = Rig::new(4, "");
    occupy(&mut rig, &["6", "0", "0", "6"]);
    let p = woken(&mut rig, "8", 3, 1);
    assert_eq!(told(&mut rig), [(1, true)]);
    assert_eq!(rig.core.tasks().cpu(p), CPU1, "it moves to the CPU it preempts");
    assert_eq!(rig.stat("preempt_decisions"), 1);
}

#[test]
fn step_3_real_time_task_one_level_above_hits_home_not_the_lowest_cpu() {
    // Under goodness this is CPU 0 (row G7): real-time tasks have no affinity there.
    for (set, expected) in [("", vec![]), ("t=0", vec![(1, true)]), ("rt_scale=2", vec![(1, true)])]
    {
        let mut rig = Rig::new(4, set);
        occupy(&mut rig, &["6:fifo 50"; 4]);
        woken(&mut rig, "6:fifo 51", 1, 2);
        assert_eq!(told(&mut rig), expected, "{set}");
    }
}

#[test]
fn step_3_home_with_too_small_a_lead_is_struck_off_and_the_task_waits() {
    // na 28, home at 26 < 27, but without the bonus of the address space Δ = 43 − 42.
    let mut rig = Rig::new(2, "");
    occupy(&mut rig, &["6", "6"]);
    let p = woken(&mut rig, "8", 1, 2);
    assert_eq!(told(&mut rig), []);
    assert_eq!(rig.core.tasks().cpu(p), CPU1);
}

#[test]
fn step_3_cpu_struck_off_makes_way_for_the_next_smallest() {
    // T = 0, na 28. Home, CPU 1, runs na 27 of another address space: Δ = 43 − 43. CPU 2 stands at
    // 12 + 15 = 27 too and has the same address space: Δ = 29 − 28.
    let mut rig = Rig::new(3, "t=0");
    occupy(&mut rig, &["11", "7", "11/19"]);
    rig.block(CPU1);
    woken(&mut rig, "7", 1, 2);
    rig.settle(CPU0);
    rig.take_resched();
    assert_eq!(rig.core.curr(CPU1).map(|task| rig.inspect(task, "curr_na")), Some(27));
    let p = woken(&mut rig, "8", 1, 1);
    assert_eq!(told(&mut rig), [(2, true)]);
    assert_eq!(rig.core.tasks().cpu(p), CPU2);
    rig.settle(CPU2);
    assert_eq!(rig.core.curr(CPU2), Some(p));
}

#[test]
fn step_4_task_nobody_wants_waits_on_an_allowed_queue() {
    let mut rig = Rig::new(3, "");
    occupy(&mut rig, &["11", "11", "11"]);
    let p = sleeper(&mut rig, "6", 0, 1);
    rig.core.set_affinity(rig.now, CPU0, p, &all_but(&rig, &[CPU0]));
    rig.wake_new(CPU0, p);
    assert_eq!(told(&mut rig), []);
    assert_eq!(rig.core.tasks().cpu(p), CPU1);
}

#[test]
fn sync_wakeup_waits_at_home_unless_the_waker_cpu_is_forbidden() {
    for (mask, expected) in [(None, vec![]), (Some(only(1)), vec![(1, true)])] {
        let mut rig = Rig::new(2, "");
        let running = occupy(&mut rig, &["6", "-"]);
        let p = woken(&mut rig, "11", 1, 1);
        rig.settle(CPU0);
        rig.block(CPU1);
        if let Some(mask) = mask {
            rig.core.set_affinity(rig.now, CPU0, p, &mask);
        }
        rig.take_resched();
        rig.core.wake(rig.now, CPU0, p, running[0], true);
        assert_eq!(told(&mut rig), expected);
        assert_eq!(rig.core.tasks().cpu(p), CPU1);
    }
}

#[test]
fn displaced_task_moves_to_an_idle_cpu_unless_it_yielded() {
    for yields in [false, true] {
        let mut rig = Rig::new(2, "");
        let running = occupy(&mut rig, &["6", "-"]);
        let a = running[0].expect("it runs");
        rig.advance(Nanos::from_us(1));
        let rival = sleeper(&mut rig, "6:fifo 1", 0, 2);
        rig.core.set_affinity(rig.now, CPU0, rival, &only(0));
        rig.wake_new(CPU0, rival);
        if yields {
            rig.core.yield_task(rig.now, CPU0);
        }
        rig.take_resched();
        rig.core.take_work();
        rig.schedule(CPU0);
        assert_eq!(rig.core.curr(CPU0), Some(rival));
        let expected = if yields { vec![] } else { vec![(1, true)] };
        assert_eq!(told(&mut rig), expected);
        assert_eq!(rig.core.tasks().cpu(a).index(), usize::from(!yields));
        assert_eq!(rig.stat("offers"), i64::from(!yields));
        assert_eq!(rig.core.take_work(), (2, u32::from(!yields)));
    }
}

#[test]
fn task_placed_by_the_host_is_offered_like_a_displaced_one() {
    let mut rig = Rig::new(2, "");
    occupy(&mut rig, &["6", "-"]);
    rig.advance(Nanos::from_us(1));
    let p = sleeper(&mut rig, "6", 1, 1);
    rig.core.wake_up_new(rig.now, CPU0, p, Some(CPU0));
    assert_eq!(told(&mut rig), [(1, true)]);
    assert_eq!(rig.core.tasks().cpu(p), CPU1);
}
