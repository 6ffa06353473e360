// SPDX-License-Identifier: GPL-2.0-only
//! The last form before CFS, 2.6.17 to 2.6.22, where it differs from 2.6.6: no interactive credit,
//! no multiplied sleep, longer slices for negative nice values, and a threshold rounded down.
//!
//! Reference material: moves between CPUs are those of 2.6.0, since scheduler domains are not
//! modelled, and what the spec does not name is as in 2.6.6. A child gives back at most a slice of
//! its own nice value, for the 200 ms of older kernels would cut the slices of this one.
//!
//! Source: 2.6.17 to 2.6.22 `sched.c`; spec linux-2.6-o1 §5.8.

use schedlab_units::Hz;

use super::prio::effective_prio;
use super::task::TaskData;
use super::tunables::Knobs;
use crate::linux_2_6::sleep_avg::Activated;

/// Slice in ticks of a task with static priority 100 … 139: 100 ms at nice 0 and in steps of 5 ms
/// down to 5; 420 at nice −1 and in steps of 20 ms up to 800.
///
/// Source: 2.6.17 `sched.c` `static_prio_timeslice`, `SCALE_PRIO`; spec §5.8.
pub(super) fn timeslice(static_prio: u8, hz: Hz) -> u32 {
    let (min, default) = ((5 * hz.get() / 1000).max(1), 100 * hz.get() / 1000);
    let base = if static_prio < 120 { 4 * default } else { default };
    (base * (140 - u32::from(static_prio)) / 20).max(min)
}

/// Bonus that makes a task of static priority 100 … 139 interactive; `max_bonus` is 10 in the
/// kernel. The nice value counts from −20, so that the division rounds down.
///
/// Source: 2.6.17 `sched.c` `DELTA`; spec §5.8.
pub(super) fn delta(static_prio: u8, max_bonus: u64) -> i64 {
    let max_bonus = max_bonus as i64;
    i64::from(static_prio - 100) * max_bonus / 40 - max_bonus / 2 + 2
}

/// Sleep in ns that makes a task of this static priority just interactive (INTERACTIVE_SLEEP).
///
/// Source: 2.6.17 `sched.c`; spec §5.8.
pub(super) fn interactive_sleep(static_prio: u8, knobs: &Knobs) -> u64 {
    let scale = &knobs.scale;
    let points = scale.max_bonus as i64 / 2 + delta(static_prio, scale.max_bonus) + 1;
    let jiffies = scale.max_sleep_avg as i64 * points / (scale.max_bonus as i64).max(1) - 1;
    u64::try_from(jiffies).unwrap_or(0) * scale.jiffy_ns
}

/// Credits the time from `timestamp` to `now`, for SCHED_BATCH nothing. One long sleep lifts a user
/// task (`is_user`) no further than to the threshold, nor does uninterruptible sleep.
///
/// Source: 2.6.17 `sched.c` `recalc_task_prio`; spec §5.8.
pub(super) fn recalc_task_prio(
    task: &mut TaskData,
    now: u64,
    is_user: bool,
    is_batch: bool,
    knobs: &Knobs,
) {
    let ceiling = interactive_sleep(task.static_prio, knobs);
    let avg = &mut task.avg;
    let sleep_time = if is_batch { 0 } else { now.saturating_sub(avg.timestamp) };
    if is_user && sleep_time > ceiling && avg.sleep_avg < ceiling {
        avg.sleep_avg = ceiling;
        avg.activated = Activated::Uninterruptible;
    } else {
        let longer = avg.sleep_avg.saturating_add(sleep_time);
        avg.sleep_avg = if is_user && avg.activated == Activated::Uninterruptible {
            // Up to the threshold; what lies above it stays.
            longer.min(ceiling).max(avg.sleep_avg)
        } else {
            longer
        };
    }
    avg.sleep_avg = avg.sleep_avg.min(knobs.max_sleep_avg);
    task.prio = effective_prio(task, knobs);
}

/// Charges the time since `timestamp`, to all tasks the less the higher their bonus.
///
/// Source: 2.6.17 `sched.c` `schedule`; spec §5.8.
pub(super) fn charge(task: &mut TaskData, now: u64, knobs: &Knobs) {
    let avg = &mut task.avg;
    let run_time = now.saturating_sub(avg.timestamp).min(knobs.max_sleep_avg);
    let price = run_time / avg.bonus(&knobs.scale).max(1);
    avg.sleep_avg = avg.sleep_avg.saturating_sub(price);
    avg.timestamp = now;
}
