// SPDX-License-Identifier: GPL-2.0-only
//! `schedule` step by step (spec §5.3): the real-time queue, the own queue, other queues, epochs,
//! and what is left as the maximum.

use schedlab_units::{CpuId, Nanos};

use super::rig::{CPU0, CPU1, CPU2, Rig, occupy, sleeper, woken};
use crate::goodness::tests::rig::only;

#[test]
fn real_time_queue_comes_first_and_its_head_wins_among_equals() {
    let mut rig = Rig::new(1, "");
    occupy(&mut rig, &["11"]);
    let tasks = ["6:rr 10", "6:fifo 20", "6:rr 20"].map(|f| woken(&mut rig, f, 0, 2));
    woken(&mut rig, "11/-20", 0, 1);
    assert_eq!(tasks.map(|task| rig.inspect(task, "position")), [2, 1, 0]);
    for expected in [tasks[2], tasks[1], tasks[0]] {
        rig.schedule(CPU0);
        assert_eq!(rig.core.curr(CPU0), Some(expected));
        rig.block(CPU0);
    }
    assert_eq!(rig.core.curr(CPU0).map(|task| rig.inspect(task, "na")), Some(51));
}

#[test]
fn real_time_task_is_found_by_any_cpu_without_a_steal() {
    let mut rig = Rig::new(2, "");
    occupy(&mut rig, &["11:fifo 50", "11:fifo 50"]);
    let rt = woken(&mut rig, "6:fifo 10", 0, 2);
    rig.block(CPU1);
    assert_eq!(rig.core.curr(CPU1), Some(rt));
    assert_eq!((rig.core.tasks().cpu(rt), rig.stat("steals")), (CPU1, 0));
}

#[test]
fn real_time_winner_leaves_the_best_of_the_own_queue_as_maximum() {
    let mut rig = Rig::new(2, "");
    occupy(&mut rig, &["11/-20", "11/-20"]);
    let a = woken(&mut rig, "9", 0, 1);
    let b = woken(&mut rig, "8", 0, 1);
    woken(&mut rig, "6:fifo 10", 0, 1);
    rig.block(CPU0);
    assert_eq!((rig.inspect(a, "is_max"), rig.inspect(a, "max_na")), (1, 29));
    assert_eq!(rig.inspect(b, "is_max"), 0);
}

/// CPU 0 runs na 26, shares nothing with a task of `na` that waits on its queue, and schedules.
fn local_rival_wins(set: &str, na: i64) -> bool {
    let mut rig = Rig::new(2, set);
    occupy(&mut rig, &["6", "6"]);
    let rival = woken(&mut rig, "1/-15", 0, 2);
    rig.core.policy_mut().set_counter(rival, (na - 35) as u32);
    assert_eq!(rig.inspect(rival, "na"), na);
    rig.schedule(CPU0);
    rig.core.curr(CPU0) == Some(rival)
}

#[test]
fn previous_task_has_the_bonus_of_its_cpu_against_its_own_queue() {
    // The quirk: prev counts 26 + 15 + 1 = 42, its rival only na.
    assert!(!local_rival_wins("", 42));
    assert!(local_rival_wins("", 43));
    // Without it: 27.
    assert!(local_rival_wins("prev_bias=off", 36));
}

#[test]
fn bonus_of_the_previous_task_defeats_preemption_at_home() {
    // Row M6: p leads by 2 and is told so, but in `schedule` it counts 28 + 1 against 42.
    for (set, runs) in [("", false), ("prev_bias=off", true)] {
        let mut rig = Rig::new(2, set);
        let running = occupy(&mut rig, &["6", "6"]);
        let p = woken(&mut rig, "8", 1, 1);
        assert!(rig.core.need_resched(CPU1));
        rig.settle(CPU1);
        assert_eq!(rig.core.curr(CPU1), if runs { Some(p) } else { running[1] }, "{set}");
    }
}

/// CPU 1 runs na 26 and schedules while a task of `na` waits for CPU 0.
fn remote_rival_is_stolen(set: &str, na: i64) -> bool {
    let mut rig = Rig::new(2, set);
    occupy(&mut rig, &["21/-20", "6"]);
    let rival = woken(&mut rig, "1/-20", 0, 2);
    rig.core.policy_mut().set_counter(rival, (na - 40) as u32);
    assert_eq!((rig.inspect(rival, "max_na"), rig.core.tasks().cpu(rival)), (na, CPU0));
    rig.schedule(CPU1);
    let stolen = rig.core.curr(CPU1) == Some(rival);
    assert_eq!(rig.stat("steals"), i64::from(stolen));
    stolen
}

#[test]
fn previous_task_has_the_bonus_twice_against_other_queues() {
    assert!(!remote_rival_is_stolen("", 57));
    assert!(remote_rival_is_stolen("", 58));
    assert!(!remote_rival_is_stolen("prev_bias=off", 42));
    assert!(remote_rival_is_stolen("prev_bias=off", 43));
}

#[test]
fn stolen_task_makes_the_local_best_the_maximum_and_leaves_the_first_with_ticks_behind() {
    let mut rig = Rig::new(2, "");
    let running = occupy(&mut rig, &["21/-20", "6"]);
    let [best, exhausted, second, third] =
        ["1/-20", "0", "9", "3"].map(|figures| woken(&mut rig, figures, 0, 2));
    // Head first: third, second, exhausted, best.
    rig.core.policy_mut().set_counter(best, 21);
    rig.schedule(CPU1);
    assert_eq!(rig.core.curr(CPU1), Some(best));
    let prev = running[1].expect("it ran");
    assert_eq!((rig.inspect(prev, "is_max"), rig.inspect(prev, "max_na")), (1, 26));
    // The true maximum would be the second.
    let is_max = [third, second, exhausted].map(|task| rig.inspect(task, "is_max"));
    assert_eq!((is_max, rig.inspect(third, "max_na")), ([1, 0, 0], 23));
}

#[test]
fn equal_maxima_are_stolen_from_the_lowest_queue_that_may_be_used() {
    for forbidden in [false, true] {
        let mut rig = Rig::new(4, "");
        occupy(&mut rig, &["11", "11", "11", "11"]);
        let tasks = [0, 1, 2].map(|home| woken(&mut rig, "6", home, 2));
        if forbidden {
            rig.core.set_affinity(rig.now, CPU0, tasks[0], &only(0));
        }
        rig.block(CpuId(3));
        let expected = tasks[usize::from(forbidden)];
        assert_eq!(rig.core.curr(CpuId(3)), Some(expected));
    }
}

#[test]
fn task_that_is_still_being_switched_away_from_is_not_stolen() {
    let mut rig = Rig::new(2, "");
    let running = occupy(&mut rig, &["6", "-"]);
    let a = running[0].expect("it runs");
    woken(&mut rig, "6:fifo 10", 0, 2);
    rig.core.schedule(rig.now, CPU0);
    assert_eq!((rig.inspect(a, "is_max"), rig.inspect(a, "max_na")), (1, 26));
    rig.schedule(CPU1);
    assert_eq!(rig.core.curr(CPU1), None);
    rig.core.finish_switch(rig.now, CPU0);
    rig.schedule(CPU1);
    assert_eq!(rig.core.curr(CPU1), Some(a));
}

#[test]
fn runner_up_becomes_the_maximum_and_nobody_when_there_is_none() {
    let mut rig = Rig::new(2, "");
    let running = occupy(&mut rig, &["11", "11/-20"]);
    let [a, b, c] = ["6", "9", "8"].map(|figures| woken(&mut rig, figures, 0, 2));
    rig.block(CPU0);
    assert_eq!(rig.core.curr(CPU0), Some(b));
    assert_eq!((rig.inspect(c, "is_max"), rig.inspect(c, "max_na")), (1, 28));
    rig.block(CPU0);
    assert_eq!((rig.core.curr(CPU0), rig.inspect(a, "is_max")), (Some(c), 1));
    rig.block(CPU0);
    assert_eq!((rig.core.curr(CPU0), rig.inspect(a, "max_na")), (Some(a), -10_000));
    assert_eq!(rig.inspect(running[1].expect("it runs"), "max_na"), -10_000);
}

#[test]
fn displaced_previous_task_is_the_runner_up_by_its_value_with_the_bonus() {
    // prev counts 42 and stays ahead of na 38 of its queue, although without the bonus it is 26.
    let mut rig = Rig::new(2, "");
    let running = occupy(&mut rig, &["6", "21/-20"]);
    let [rival, other] = ["1/-15", "1/-15"].map(|figures| woken(&mut rig, figures, 0, 2));
    rig.core.policy_mut().set_counter(rival, 9);
    rig.core.policy_mut().set_counter(other, 3);
    rig.schedule(CPU0);
    assert_eq!(rig.core.curr(CPU0), Some(rival));
    let prev = running[0].expect("it ran");
    assert_eq!((rig.inspect(prev, "is_max"), rig.inspect(prev, "max_na")), (1, 26));
}

#[test]
fn epoch_starts_when_the_best_that_any_queue_offers_has_no_ticks() {
    let mut rig = Rig::new(2, "");
    let running = occupy(&mut rig, &["1", "11"]);
    // Something with ticks on the other queue is stolen instead.
    let other = woken(&mut rig, "6", 1, 2);
    rig.tick(CPU0);
    rig.settle(CPU0);
    assert_eq!((rig.core.curr(CPU0), rig.stat("epochs")), (Some(other), 0));
    // Now nothing is left.
    for _ in 0..6 {
        rig.tick(CPU0);
    }
    rig.settle(CPU0);
    assert_eq!(rig.stat("epochs"), 1);
    assert_eq!(
        [running[0], running[1]].map(|t| rig.inspect(t.expect("it ran"), "counter")),
        [6, 11]
    );
    assert_eq!(rig.core.curr(CPU0), Some(other));
    assert_eq!(rig.inspect(running[0].expect("it ran"), "max_na"), 26);
    assert_eq!(rig.inspect(running[1].expect("it runs"), "curr_na"), 31);
}

#[test]
fn task_stolen_before_an_epoch_stays_when_a_better_one_follows() {
    let mut rig = Rig::new(3, "");
    occupy(&mut rig, &["-", "11", "11/-20"]);
    // At time 0 no CPU has been idle for long enough for tasks without ticks.
    let first = woken(&mut rig, "0", 1, 1);
    let better = woken(&mut rig, "0/-20", 2, 2);
    assert_eq!([first, better].map(|task| rig.core.tasks().cpu(task)), [CPU1, CPU2]);
    rig.schedule(CPU0);
    assert_eq!((rig.stat("epochs"), rig.stat("steals")), (1, 2));
    assert_eq!(rig.core.curr(CPU0), Some(better));
    assert_eq!(rig.core.tasks().cpu(first), CPU0);
    assert_eq!((rig.inspect(first, "is_max"), rig.inspect(first, "position")), (1, 1));
}

#[test]
fn yielder_chosen_again_loses_its_mark() {
    let mut rig = Rig::new(2, "");
    let running = occupy(&mut rig, &["6", "11"]);
    let p = sleeper(&mut rig, "6", 1, 1);
    rig.core.set_affinity(rig.now, CPU0, p, &only(1));
    rig.wake_new(CPU0, p);
    rig.core.yield_task(rig.now, CPU0);
    rig.settle(CPU0);
    assert_eq!(rig.core.curr(CPU0), running[0]);
    assert_eq!(rig.inspect(running[0].expect("it runs"), "yielded"), 0);
}

#[test]
fn scan_is_charged_for_the_own_and_the_real_time_queue() {
    let mut rig = Rig::new(2, "");
    occupy(&mut rig, &["11/-20", "11/-20"]);
    woken(&mut rig, "6", 0, 1);
    woken(&mut rig, "6", 1, 1);
    rig.advance(Nanos::from_us(1));
    rig.core.take_work();
    rig.schedule(CPU0);
    assert_eq!(rig.core.take_work().0, 2);
    woken(&mut rig, "6:fifo 1", 1, 1);
    rig.block(CPU0);
    assert_eq!(rig.core.take_work().0, 3, "the one that blocks included");
}
