// SPDX-License-Identifier: GPL-2.0-only
//! The interactivity estimator of 2.6.0-test1: sleep and run counted in ticks.
//!
//! A tick takes one from `sleep_avg`, a wake-up adds the ticks slept less one, ten seconds are the
//! most. What a task does between two ticks is not seen. [`super::g3`] replaces all of this.

use super::prio::effective_prio;
use super::task::TaskData;
use super::tunables::Knobs;

/// `EXIT_WEIGHT`: a child weighs a fourth.
const EXIT_WEIGHT: u64 = 3;

/// Bonus of a sleep average in ticks.
///
/// Source: 2.6.0-test1 `sched.c` `effective_prio`; spec §4.1.
pub(super) fn bonus(sleep_avg: u64, knobs: &Knobs) -> i32 {
    let scaled = knobs.bonus_span * sleep_avg as i64 / knobs.max_sleep_avg as i64 / 100;
    (scaled - knobs.bonus_span / 100 / 2) as i32
}

/// Sleep averages of parent and child after a fork by a parent that had `sleep_avg`.
///
/// Source: 2.6.0-test1 `sched.c` `wake_up_forked_process`; spec §4.2.
pub(super) fn fork_sleep_avg(sleep_avg: u64, knobs: &Knobs) -> u64 {
    sleep_avg * knobs.child_penalty / 100
}

/// Sleep average of a parent that had `parent` when it collects a child that had `child`.
///
/// Source: 2.6.0-test1 `sched.c` `sched_exit`; spec §4.4.
pub(super) fn exit_sleep_avg(parent: u64, child: u64) -> u64 {
    if child < parent { (parent * EXIT_WEIGHT + child) / (EXIT_WEIGHT + 1) } else { parent }
}

/// Credits a sleep that ends at jiffy `jiffies`.
///
/// The priority is not looked at again when the average stays as it is. What exceeds the maximum
/// is lost. Returns the ticks that were credited before the maximum cut them.
///
/// Source: 2.6.0-test1 `sched.c` `activate_task`; spec §4.3.
pub(super) fn activate(task: &mut TaskData, jiffies: u64, knobs: &Knobs) -> i64 {
    // Signed in the kernel: a task that slept across no tick has slept for −1.
    let slept = (jiffies - task.last_run) as i64 - i64::from(knobs.sleep_minus_one);
    if slept > 0 {
        let sleep_avg = (task.avg.sleep_avg + slept as u64).min(knobs.max_sleep_avg);
        if sleep_avg != task.avg.sleep_avg {
            task.avg.sleep_avg = sleep_avg;
            task.prio = effective_prio(task, knobs);
        }
    }
    slept.max(0)
}

/// A tick while `task` is current.
///
/// Source: 2.6.0-test1 `sched.c` `scheduler_tick`; spec §4.5 step 3.
pub(super) fn tick(task: &mut TaskData) {
    task.avg.sleep_avg = task.avg.sleep_avg.saturating_sub(1);
}

/// Whether a pulled task with `pulled` ticks left disturbs a current one of equal priority with
/// `curr` ticks left.
///
/// Source: 2.6.0-test1 `sched.c` `load_balance`; spec §4.10 step 6.
pub(super) fn pulled_equal_preempts(pulled: u32, curr: u32) -> bool {
    pulled > curr
}
