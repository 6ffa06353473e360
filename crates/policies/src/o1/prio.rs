// SPDX-License-Identifier: GPL-2.0-only
//! Formulas that all variants share: the interactivity threshold and dynamic priority.

use super::task::TaskData;
use super::tunables::{Clock, Knobs};
use super::{credit, g3, linux_2_6_17, test1};
use crate::linux_2_6::sleep_avg;
pub(super) use crate::linux_2_6::sleep_avg::max_timeslice;

/// Number of real-time priorities; those of nice follow (MAX_RT_PRIO).
pub(super) const MAX_RT_PRIO: u8 = 100;
/// The worst priority of nice.
const LOWEST: u8 = 139;

/// Bonus that makes a task of static priority 100 … 139 interactive.
///
/// The division truncates toward zero, so that nice −10 gives 0, not −1 as the kernel's own comment
/// has it (spec §2); 2.6.17 rounds down.
///
/// Source: 2.6.0-test1 `sched.c` `DELTA`, `INTERACTIVE_DELTA`.
pub(super) fn delta(static_prio: u8, knobs: &Knobs) -> i32 {
    let max_bonus = knobs.bonus_span.unsigned_abs() / 100;
    let delta = if knobs.linux_2_6_17 {
        linux_2_6_17::delta(static_prio, max_bonus)
    } else {
        sleep_avg::delta(i32::from(static_prio) - 120, max_bonus)
    };
    delta as i32
}

/// Slice in ticks of a task with static priority 100 … 139.
pub(super) fn timeslice(static_prio: u8, knobs: &Knobs) -> u32 {
    if knobs.linux_2_6_17 {
        linux_2_6_17::timeslice(static_prio, knobs.hz)
    } else {
        sleep_avg::timeslice(static_prio, knobs.hz)
    }
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
    let prio = i32::from(task.static_prio) - bonus(task.avg.sleep_avg, knobs);
    prio.clamp(i32::from(MAX_RT_PRIO), i32::from(LOWEST)) as u8
}

/// Whether `task` rejoins the active array at the end of its slice.
///
/// Source: 2.6.0-test1 `sched.c` `TASK_INTERACTIVE`; spec §2.
pub(super) fn is_interactive(task: &TaskData, knobs: &Knobs) -> bool {
    i32::from(task.prio) <= i32::from(task.static_prio) - delta(task.static_prio, knobs)
}
