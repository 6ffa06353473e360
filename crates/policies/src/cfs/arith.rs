// SPDX-License-Identifier: GPL-2.0-only
//! Slices, placement and the test for preemption, as functions of numbers alone.
//!
//! Source: v6.1.170 `fair.c`; spec cfs-eevdf §4A.

use schedlab_policy_api::Company;
use schedlab_units::kmath::div_s64;
use schedlab_units::{Nice, VTime};

use crate::fair::{Fluid, Load, calc_delta, calc_delta_fair, scale_load_down};

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

/// Wall time per virtual deadline under a latency-nice value: the granularity, divided by the
/// weight of that nice value, 1 for 0.
///
/// Source: 6 March 2023, 5/10 and 10/10 `calc_latency_offset`; spec cfs-eevdf §4B.
pub(super) fn latency_request(min_granularity: u64, latency_nice: Nice) -> u64 {
    (min_granularity << 10) / u64::from(latency_nice.weight().weight)
}

/// Longest wait in ns of a task that always wants the CPU under CFS, when no turn is longer than
/// `turn` ns, buddies may be ahead by `granularity` ns of its own run time, and who wakes is placed
/// no more than `credit` ns of virtual time behind.
///
/// When it stops running it was first at the start of its turn, so it is ahead of everybody by no
/// more than the turn; it is passed over for buddies that are ahead by up to the granularity. With
/// weight w it waits until each other, of weight u, has made up for that in virtual time, sleepers
/// for their credit too, and has ended a turn: Σ ((turn + granularity)/w + credit/1024)·u + turn.
pub(super) fn vruntime_bound(
    turn: u64,
    granularity: u64,
    credit: u64,
    company: Company<'_>,
) -> u64 {
    let weight = |nice: Nice| u64::from(nice.weight().weight);
    let lead = ((turn + granularity) * 1024).div_ceil(weight(company.nice)) + credit;
    company.others.iter().map(|nice| (lead * weight(*nice)).div_ceil(1024) + turn).sum()
}

/// V − v0, rounded towards v0; 0 when nothing is counted.
///
/// Source: 6 March 2023, 6/10 `avg_vruntime`.
pub(super) fn truncated_mean(fluid: &Fluid) -> i64 {
    if fluid.weight == 0 { 0 } else { div_s64(fluid.sum, fluid.weight) }
}

/// Lag that becomes `lag` once an entity of weight `weight` has joined others of weight `load`:
/// lag·(W + w)/W. An empty queue forgets it.
///
/// Source: queue of 11 March 2023 `place_entity`.
pub(super) fn inflated_lag(lag: i64, load: i64, weight: u64) -> i64 {
    if load > 0 { div_s64(lag.wrapping_mul(load + weight as i64), load) } else { 0 }
}

/// The place of an entity around V, lag after the bonus: its own time may be undercut.
///
/// `credit`: how far before V it may come by its own time, none = not at all.
///
/// Source: 6 March 2023, 8/10 `place_entity`.
pub(super) fn place_lag_last(
    own: VTime,
    avg_vruntime: VTime,
    lag: i64,
    credit: Option<u64>,
    long_sleeper: bool,
) -> VTime {
    let base = match credit {
        Some(credit) => place_sleeper(own, avg_vruntime, credit, long_sleeper),
        None => avg_vruntime,
    };
    base.offset(lag.wrapping_neg())
}

/// The place of an entity around V, lag before the bonus: with one, virtual time never goes
/// backwards.
///
/// Source: mail of 9 March 2023 17:42 `place_entity`.
pub(super) fn place_lag_first(
    own: VTime,
    avg_vruntime: VTime,
    lag: i64,
    credit: Option<u64>,
) -> VTime {
    let base = avg_vruntime.offset(lag.wrapping_neg());
    match credit {
        Some(credit) => place_sleeper(own, base, credit, false),
        None => base,
    }
}
