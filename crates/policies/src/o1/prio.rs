// SPDX-License-Identifier: GPL-2.0-only
//! Formulas that all variants share: slices, the interactivity threshold, dynamic priority.

use schedlab_units::Hz;

use super::task::TaskData;
use super::tunables::{Clock, Knobs};
use super::{credit, g3, test1};

/// Number of real-time priorities; those of nice follow (MAX_RT_PRIO).
pub(super) const MAX_RT_PRIO: u8 = 100;
/// The worst priority of nice.
const LOWEST: u8 = 139;

/// Shortest slice in ticks, 10 ms (MIN_TIMESLICE); at least one tick.
fn min_timeslice(hz: Hz) -> u32 {
    (10 * hz.get() / 1000).max(1)
}

/// Longest slice in ticks, 200 ms (MAX_TIMESLICE).
///
/// Source: 2.6.0-test1 `sched.c`; spec §2.
pub(super) fn max_timeslice(hz: Hz) -> u32 {
    (200 * hz.get() / 1000).max(min_timeslice(hz))
}

/// Slice in ticks of a task with static priority 100 … 139.
///
/// Source: 2.6.0-test1 `sched.c` `BASE_TIMESLICE`; spec §2.
pub(super) fn timeslice(static_prio: u8, hz: Hz) -> u32 {
    let (min, max) = (min_timeslice(hz), max_timeslice(hz));
    min + (max - min) * u32::from(LOWEST - static_prio) / 39
}

/// Bonus that makes a task of static priority 100 … 139 interactive.
///
/// The division truncates toward zero, so that nice −10 gives 0, not −1 as the kernel's own comment
/// has it (spec §2).
///
/// Source: 2.6.0-test1 `sched.c` `DELTA`, `INTERACTIVE_DELTA`.
pub(super) fn delta(static_prio: u8, knobs: &Knobs) -> i32 {
    let nice = i64::from(static_prio) - 120;
    (nice * (knobs.bonus_span / 100) / 40) as i32 + 2
}

/// Bonus of a sleep average, −5 … 5 with the default ratio.
pub(super) fn bonus(sleep_avg: u64, knobs: &Knobs) -> i32 {
    match knobs.clock {
        Clock::Tick => test1::bonus(sleep_avg, knobs),
        Clock::Ns => g3::bonus(sleep_avg, knobs),
        Clock::NsCredit => credit::bonus(sleep_avg, knobs),
    }
}

/// Dynamic priority: static priority less bonus within the range of nice; RT tasks keep theirs.
///
/// Source: 2.6.0-test1 `sched.c` `effective_prio`; spec §4.1.
pub(super) fn effective_prio(task: &TaskData, knobs: &Knobs) -> u8 {
    if task.is_rt() {
        return task.prio;
    }
    let prio = i32::from(task.static_prio) - bonus(task.sleep_avg, knobs);
    prio.clamp(i32::from(MAX_RT_PRIO), i32::from(LOWEST)) as u8
}

/// Whether `task` rejoins the active array at the end of its slice.
///
/// Source: 2.6.0-test1 `sched.c` `TASK_INTERACTIVE`; spec §2.
pub(super) fn is_interactive(task: &TaskData, knobs: &Knobs) -> bool {
    i32::from(task.prio) <= i32::from(task.static_prio) - delta(task.static_prio, knobs)
}
