// SPDX-License-Identifier: GPL-2.0-only
//! The interactivity estimator of 2.6.0 and 2.6.6: Molnar's ns clock with Con Kolivas' rules on
//! top.
//!
//! A sleep is multiplied, the more the lower the bonus; a very long one gives a fixed average just
//! below the maximum; tasks that often reach the ends of the scale collect interactive credit,
//! which changes the prices. The sums are [`crate::linux_2_6::sleep_avg`]'s; here is what of them
//! depends on the policy's knobs.
//!
//! Source: 2.6.0 and 2.6.6 `sched.c`; specs linux-2.6-o1 §5.7, linux-2.6-spa §4.1.

use schedlab_policy_api::{SchedClass, Task};

use super::linux_2_6_17;
use super::prio::effective_prio;
use super::task::TaskData;
use super::tunables::{Knobs, RqWait};
use crate::linux_2_6::sleep_avg::{Activated, Facts};

/// Bonus before half of its span is taken off, 0 … 10 (`CURRENT_BONUS`).
pub(super) fn current_bonus(sleep_avg: u64, knobs: &Knobs) -> u64 {
    knobs.scale.bonus(sleep_avg)
}

/// Bonus of a sleep average in ns.
pub(super) fn bonus(sleep_avg: u64, knobs: &Knobs) -> i32 {
    (current_bonus(sleep_avg, knobs) as i64 - knobs.bonus_span / 200) as i32
}

/// What the kernel asks of a task beside its sleep average.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sleeper {
    /// It has an address space.
    pub(super) is_user: bool,
    /// It is of SCHED_BATCH, which only 2.6.17 knows.
    pub(super) is_batch: bool,
}

impl Sleeper {
    pub(super) fn of(facts: &Task) -> Self {
        Self { is_user: facts.mm.is_some(), is_batch: facts.class == SchedClass::Batch }
    }
}

/// Credits the time from `timestamp` to `now`.
///
/// Source: 2.6.0 `sched.c` `recalc_task_prio`.
pub(super) fn recalc_task_prio(task: &mut TaskData, now: u64, who: Sleeper, knobs: &Knobs) {
    if knobs.linux_2_6_17 {
        return linux_2_6_17::recalc_task_prio(task, now, who.is_user, who.is_batch, knobs);
    }
    let facts = Facts { nice: i32::from(task.static_prio) - 120, has_mm: who.is_user };
    task.avg.recalc(&knobs.scale, facts, now);
    task.prio = effective_prio(task, knobs);
}

/// A wake-up that is no synchronous one.
///
/// Source: 2.6.0 `sched.c` `activate_task`.
pub(super) fn activate(
    task: &mut TaskData,
    now: u64,
    by_interrupt: bool,
    who: Sleeper,
    knobs: &Knobs,
) {
    if !(knobs.interruptible_only_credit && task.uninterruptible) {
        recalc_task_prio(task, now, who, knobs);
    }
    if task.avg.activated == Activated::No && knobs.rq_wait_credit != RqWait::None {
        task.avg.activated = if by_interrupt { Activated::ByInterrupt } else { Activated::ByTask };
    }
    task.avg.timestamp = now;
}

/// `task` was chosen for the first time since its wake-up: its wait is credited.
///
/// Source: 2.6.0 `sched.c` `schedule`.
pub(super) fn credit_rq_wait(task: &mut TaskData, now: u64, who: Sleeper, knobs: &Knobs) {
    let end = task.avg.end_of_wait(now, knobs.rq_wait_credit == RqWait::Weighted);
    recalc_task_prio(task, end, who, knobs);
}

/// Ticks after which a task of this sleep average goes behind its equals: short for the
/// interactive, and longer the more CPUs there are.
///
/// Source: 2.6.0 `sched.c` `TIMESLICE_GRANULARITY`.
pub(super) fn granularity(sleep_avg: u64, knobs: &Knobs) -> u64 {
    knobs.scale.granularity(current_bonus(sleep_avg, knobs), knobs.n_cpus.into())
}
