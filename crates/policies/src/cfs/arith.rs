// SPDX-License-Identifier: GPL-2.0-only
//! Slices, placement and the test for preemption, as functions of numbers alone.
//!
//! Source: v6.1.170 `fair.c`; spec cfs-eevdf §4A.

use schedlab_units::VTime;

use crate::fair::{Load, calc_delta, calc_delta_fair, scale_load_down};

/// Spans that the algorithm works with, scaled to the machine, ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Spans {
    /// In which every task of a short queue runs once (kernel `sysctl_sched_latency`).
    pub(super) latency: u64,
    /// Least slice (kernel `sysctl_sched_min_granularity`).
    pub(super) min_granularity: u64,
    /// Least slice of a SCHED_IDLE task beside others (kernel
    /// `sysctl_sched_idle_min_granularity`).
    pub(super) idle_min_granularity: u64,
    /// Lead in virtual time that a woken task needs to preempt (kernel
    /// `sysctl_sched_wakeup_granularity`).
    pub(super) wakeup_granularity: u64,
}

impl Spans {
    /// Number of tasks above which the period grows (kernel `sched_nr_latency`).
    pub(super) fn nr_latency(&self) -> u64 {
        self.latency.div_ceil(self.min_granularity)
    }

    /// Time in which each of `nr` tasks runs once.
    ///
    /// Source: v6.1 `fair.c` `__sched_period`.
    pub(super) fn period(&self, nr: u64) -> u64 {
        if nr > self.nr_latency() { nr * self.min_granularity } else { self.latency }
    }
}

/// The part of `period` that falls to a task of weight `weight` on a queue of `queue_load`, which
/// counts the task. The inverse of the sum is computed, so even shares are rounded down (spec
/// cfs-eevdf Q1).
///
/// Source: v6.1 `fair.c` `sched_slice`.
pub(super) fn share_of_period(period: u64, weight: u64, queue_load: u64) -> u64 {
    calc_delta(period, weight, &Load::of_sum(queue_load))
}

/// Length of a sleep in ns above which virtual times are too far apart to be compared: the queue
/// gains at most NICE_0_LOAD/2 ns of virtual time for one of wall time.
///
/// Source: v6.1.170 `fair.c` `entity_is_long_sleeper`.
pub(super) const LONG_SLEEP: u64 = (1 << 63) / scale_load_down(schedlab_units::NICE_0_LOAD);

/// Virtual time of a woken task: its own, unless that is more than `credit` behind the queue.
///
/// `long_sleeper`: its own virtual time no longer means anything.
///
/// Source: v6.1 `fair.c` `place_entity`.
pub(super) fn place_sleeper(
    own: VTime,
    min_vruntime: VTime,
    credit: u64,
    long_sleeper: bool,
) -> VTime {
    // Wraps below the start of the clock, as all virtual times do.
    let earliest = VTime(min_vruntime.0.wrapping_sub(credit));
    if long_sleeper || own.before(earliest) { earliest } else { own }
}

/// Whether an entity at `curr` should make way for one of weight `load` at `other`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lead {
    /// The other is not behind: −1 in the kernel.
    None,
    /// The other is behind, but by no more than the granularity: 0 in the kernel.
    Small,
    /// The other is behind by more: 1 in the kernel.
    Large,
}

/// How far `other`, of weight `load`, is behind `curr`; `granularity` is wall time, converted with
/// the weight of `other`.
///
/// Source: v6.1 `fair.c` `wakeup_preempt_entity`, `wakeup_gran`.
pub(super) fn wakeup_lead(curr: VTime, other: VTime, granularity: u64, load: &Load) -> Lead {
    let behind = curr.delta(other);
    if behind <= 0 {
        Lead::None
    } else if behind as u64 > calc_delta_fair(granularity, load) {
        Lead::Large
    } else {
        Lead::Small
    }
}
