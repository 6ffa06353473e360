// SPDX-License-Identifier: GPL-2.0-only
//! What Ingo Molnar's `sched-2.6.0-test1-G3` of 25 July 2003 changed, all in one place.
//!
//! Compared with 2.6.0-test1 ([`super::test1`]):
//!
//! 1. Sleep and run are measured in ns, and two seconds instead of ten buy the whole bonus
//!    ([`bonus`], [`recalc_task_prio`]; `max_sleep_avg`).
//! 2. Running is charged when `schedule` ends a stint, not by ticks ([`charge`]).
//! 3. The wait from a wake-up to the first run is credited like sleep ([`activate`],
//!    [`credit_rq_wait`]); a preempted task gets nothing. A credited task runs at once but goes to
//!    the tail of its list.
//! 4. A task goes behind its equals whenever its remaining ticks are a multiple of 50, within a
//!    slice ([`requeues_now`]).
//! 5. A woken task of equal priority preempts if it has more than twice the ticks left
//!    ([`equal_preempts`]).
//! 6. Divisions come first in the sums at fork and exit ([`fork_sleep_avg`], [`exit_sleep_avg`]).
//!
//! Unchanged: slices, the arrays, the rule against starvation, CHILD_PENALTY 50. G6 counts the
//! spans of 4 from the start of the slice and makes them 25 ticks; G7 weights 3.
//!
//! Source: the patch as re-based on test1-bk2 by R. Thomas, 25 Jul 2003; spec §5.2, §5.4.

use super::prio::effective_prio;
use super::task::TaskData;
use super::tunables::{Knobs, RqWait};
use crate::linux_2_6::sleep_avg::Activated;

/// `EXIT_WEIGHT`: a child weighs a fourth.
const EXIT_WEIGHT: u64 = 3;

/// Bonus of a sleep average in ns. Both are cut to units of 1024 ns first.
///
/// Source: G3 `sched.c` `effective_prio`.
pub(super) fn bonus(sleep_avg: u64, knobs: &Knobs) -> i32 {
    let (part, whole) = ((sleep_avg / 1024) as i64, (knobs.max_sleep_avg / 1024) as i64);
    (knobs.bonus_span * part / whole / 100 - knobs.bonus_span / 100 / 2) as i32
}

/// Sleep averages of parent and child after a fork by a parent that had `sleep_avg`.
///
/// Source: G3 `sched.c` `wake_up_forked_process`.
pub(super) fn fork_sleep_avg(sleep_avg: u64, knobs: &Knobs) -> (u64, u64) {
    (sleep_avg / 100 * 100, sleep_avg / 100 * knobs.child_penalty)
}

/// Sleep average of a parent that had `parent` when it collects a child that had `child`.
///
/// Source: G3 `sched.c` `sched_exit`.
pub(super) fn exit_sleep_avg(parent: u64, child: u64) -> u64 {
    let parts = EXIT_WEIGHT + 1;
    if child < parent { parent / parts * EXIT_WEIGHT + child / parts } else { parent }
}

/// Credits the time from `timestamp` to `now`.
///
/// Source: G3 `sched.c` `recalc_task_prio`.
pub(super) fn recalc_task_prio(task: &mut TaskData, now: u64, knobs: &Knobs) {
    // A move to another CPU can date a task ahead (`smp_rules=2.6.6`); the kernel's u64 wraps.
    let slept = now.wrapping_sub(task.avg.timestamp).min(knobs.max_sleep_avg);
    let sleep_avg = (task.avg.sleep_avg + slept).min(knobs.max_sleep_avg);
    if sleep_avg != task.avg.sleep_avg {
        task.avg.sleep_avg = sleep_avg;
        task.prio = effective_prio(task, knobs);
    }
}

/// A wake-up that is no synchronous one: sleep is credited, and the wait begins.
///
/// Source: G3 `sched.c` `activate_task`.
pub(super) fn activate(task: &mut TaskData, now: u64, by_interrupt: bool, knobs: &Knobs) {
    if !(knobs.interruptible_only_credit && task.uninterruptible) {
        recalc_task_prio(task, now, knobs);
    }
    task.avg.activated = match knobs.rq_wait_credit {
        RqWait::None => Activated::No,
        _ if by_interrupt => Activated::ByInterrupt,
        _ => Activated::ByTask,
    };
    task.avg.timestamp = now;
}

/// Moves `timestamp` so that only the share of the wait that counts lies between it and the
/// result, up to which the caller credits.
///
/// Source: A3 `sched.c` `schedule`, `ON_RUNQUEUE_WEIGHT`.
pub(super) fn end_of_credited_wait(task: &TaskData, now: u64, knobs: &Knobs) -> u64 {
    task.avg.end_of_wait(now, knobs.rq_wait_credit == RqWait::Weighted)
}

/// `task` was chosen for the first time since its wake-up: its wait is credited.
///
/// Source: G3 `sched.c` `schedule`.
pub(super) fn credit_rq_wait(task: &mut TaskData, now: u64, knobs: &Knobs) {
    let end = end_of_credited_wait(task, now, knobs);
    task.avg.activated = Activated::No;
    recalc_task_prio(task, end, knobs);
}

/// `schedule` ends the stint of `task`, which began at its `timestamp`.
///
/// Source: G3 `sched.c` `schedule`.
pub(super) fn charge(task: &mut TaskData, now: u64, knobs: &Knobs) {
    let run = (now - task.avg.timestamp).min(knobs.max_sleep_avg);
    task.avg.sleep_avg = task.avg.sleep_avg.saturating_sub(run);
    task.avg.timestamp = now;
}

/// Whether a task with `time_slice` of `timeslice` ticks left, not 0, goes behind its equals.
///
/// Source: G3 and A3 `sched.c` `scheduler_tick`.
pub(super) fn requeues_now(time_slice: u32, timeslice: u32, knobs: &Knobs) -> bool {
    // A slice can be longer than the nice value's after a renice or the collection of a child; the
    // kernel's unsigned difference wraps then.
    let ticks = if knobs.elapsed_phase { timeslice.wrapping_sub(time_slice) } else { time_slice };
    knobs.granularity != 0 && ticks.is_multiple_of(knobs.granularity)
}

/// Whether a woken task with `woken` ticks left preempts one of equal priority with `curr` left.
///
/// Source: G3 `sched.c` `TASK_PREEMPTS_CURR`.
pub(super) fn equal_preempts(woken: u32, curr: u32) -> bool {
    woken > 2 * curr
}
