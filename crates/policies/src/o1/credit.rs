// SPDX-License-Identifier: GPL-2.0-only
//! The interactivity estimator of 2.6.0: Molnar's ns clock with Con Kolivas' rules on top.
//!
//! A sleep is multiplied, the more the lower the bonus; a very long one gives a fixed average just
//! below the maximum; tasks that often reach the ends of the scale collect interactive credit,
//! which changes the prices.
//!
//! Source: 2.6.0 `sched.c`; spec §5.7.

use super::g3::end_of_credited_wait;
use super::prio::{delta, effective_prio, timeslice};
use super::task::{Activated, TaskData};
use super::tunables::{Knobs, RqWait};

/// Interactive credit beyond which a task counts as well known (CREDIT_LIMIT).
const CREDIT_LIMIT: i32 = 100;

/// Number of priorities that the bonus spans (MAX_BONUS).
fn max_bonus(knobs: &Knobs) -> u64 {
    (knobs.bonus_span / 100) as u64
}

/// Bonus before half of its span is taken off, 0 … 10 (`CURRENT_BONUS`).
pub(super) fn current_bonus(sleep_avg: u64, knobs: &Knobs) -> u64 {
    let ticks = sleep_avg / knobs.hz.tick().as_ns();
    ticks * max_bonus(knobs) / knobs.max_sleep_ticks
}

/// Bonus of a sleep average in ns.
pub(super) fn bonus(sleep_avg: u64, knobs: &Knobs) -> i32 {
    (current_bonus(sleep_avg, knobs) as i64 - knobs.bonus_span / 200) as i32
}

/// Sleep averages of parent and child after a fork by a parent that had `sleep_avg`: cut to what
/// the whole bonus costs.
///
/// Source: 2.6.0 `sched.c` `wake_up_forked_process`.
pub(super) fn fork_sleep_avg(sleep_avg: u64, knobs: &Knobs) -> (u64, u64) {
    let bonus = current_bonus(sleep_avg, knobs);
    let price = |bonus: u64| match max_bonus(knobs) {
        0 => 0,
        max => knobs.ticks_to_ns(bonus * knobs.max_sleep_ticks / max),
    };
    (price(bonus), price(bonus * knobs.child_penalty / 100))
}

/// Sleep in ns that makes a task of this static priority just interactive
/// (`INTERACTIVE_SLEEP`).
pub(super) fn interactive_sleep(static_prio: u8, knobs: &Knobs) -> u64 {
    let bonus = i64::from(delta(static_prio, knobs)) + knobs.bonus_span / 200 + 1;
    let max = (max_bonus(knobs) as i64).max(1);
    let ticks = knobs.max_sleep_ticks as i64 * bonus / max - 1;
    knobs.ticks_to_ns(u64::try_from(ticks).unwrap_or(0))
}

/// Keeps what a 32-bit `unsigned long` keeps, if that is asked for.
fn narrow(ns: u64, knobs: &Knobs) -> u64 {
    if knobs.wrap_32_bit { u64::from(ns as u32) } else { ns }
}

/// Credits the time from `timestamp` to `now`. `is_user`: the task has an address space.
///
/// Source: 2.6.0 `sched.c` `recalc_task_prio`.
pub(super) fn recalc_task_prio(task: &mut TaskData, now: u64, is_user: bool, knobs: &Knobs) {
    let slept = (now - task.timestamp).min(knobs.max_sleep_avg);
    if slept > 0 {
        let interactive = interactive_sleep(task.static_prio, knobs);
        let from_disk = task.activated == Activated::FromUninterruptible;
        if is_user && !from_disk && slept > interactive {
            let below_max = knobs.max_sleep_ticks.saturating_sub(knobs.avg_timeslice());
            task.sleep_avg = knobs.ticks_to_ns(below_max);
            earn_credit(task);
        } else {
            let credited = price_of_sleep(task, slept, is_user && from_disk, knobs);
            task.sleep_avg = narrow(task.sleep_avg + credited, knobs);
            if task.sleep_avg > knobs.max_sleep_avg {
                task.sleep_avg = knobs.max_sleep_avg;
                earn_credit(task);
            }
        }
    }
    task.prio = effective_prio(task, knobs);
}

/// What is added for a sleep of `slept` ns; a user task's wait for a disk (`is_disk`) lifts it no
/// higher than just interactive.
fn price_of_sleep(task: &mut TaskData, slept: u64, is_disk: bool, knobs: &Knobs) -> u64 {
    let missing = max_bonus(knobs) - current_bonus(task.sleep_avg, knobs).min(max_bonus(knobs));
    let mut credited = narrow(slept * missing.max(1), knobs);
    if task.interactive_credit < -CREDIT_LIMIT {
        let slice = timeslice(task.static_prio, knobs.hz);
        credited = credited.min(knobs.ticks_to_ns(slice.into()));
    }
    if is_disk && task.interactive_credit <= CREDIT_LIMIT {
        let interactive = interactive_sleep(task.static_prio, knobs);
        if task.sleep_avg >= interactive {
            credited = 0;
        } else if task.sleep_avg + credited >= interactive {
            task.sleep_avg = interactive;
            credited = 0;
        }
    }
    credited
}

fn earn_credit(task: &mut TaskData) {
    if task.interactive_credit <= CREDIT_LIMIT {
        task.interactive_credit += 1;
    }
}

/// A wake-up that is no synchronous one.
///
/// Source: 2.6.0 `sched.c` `activate_task`.
pub(super) fn activate(
    task: &mut TaskData,
    now: u64,
    by_interrupt: bool,
    is_user: bool,
    knobs: &Knobs,
) {
    if !(knobs.interruptible_only_credit && task.uninterruptible) {
        recalc_task_prio(task, now, is_user, knobs);
    }
    if task.activated == Activated::No && knobs.rq_wait_credit != RqWait::None {
        task.activated = if by_interrupt { Activated::ByInterrupt } else { Activated::ByTask };
    }
    task.timestamp = now;
}

/// `task` was chosen for the first time since its wake-up: its wait is credited.
///
/// Source: 2.6.0 `sched.c` `schedule`.
pub(super) fn credit_rq_wait(task: &mut TaskData, now: u64, is_user: bool, knobs: &Knobs) {
    let end = end_of_credited_wait(task, now, knobs);
    recalc_task_prio(task, end, is_user, knobs);
}

/// `schedule` ends the stint of `task`; a task of high credit pays the less the higher its bonus.
///
/// Source: 2.6.0 `sched.c` `schedule`.
pub(super) fn charge(task: &mut TaskData, now: u64, knobs: &Knobs) {
    let mut run = (now - task.timestamp).min(knobs.max_sleep_avg);
    if task.interactive_credit > CREDIT_LIMIT {
        run /= current_bonus(task.sleep_avg, knobs).max(1);
    }
    task.sleep_avg = task.sleep_avg.saturating_sub(run);
    task.timestamp = now;
    if task.sleep_avg == 0 && (-CREDIT_LIMIT..=CREDIT_LIMIT).contains(&task.interactive_credit) {
        task.interactive_credit -= 1;
    }
}

/// Ticks after which a task of this sleep average goes behind its equals: short for the
/// interactive, and longer the more CPUs there are.
///
/// Source: 2.6.0 `sched.c` `TIMESLICE_GRANULARITY`.
pub(super) fn granularity(sleep_avg: u64, knobs: &Knobs) -> u64 {
    let missing = max_bonus(knobs) - current_bonus(sleep_avg, knobs).min(max_bonus(knobs));
    let unit = u64::from(10 * knobs.hz.get() / 1000).max(1);
    (unit << (missing.max(1) - 1)) * u64::from(knobs.n_cpus)
}
