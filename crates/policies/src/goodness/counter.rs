// SPDX-License-Identifier: GPL-2.0-only
//! Ticks of a task: the quantum by nice, the epoch rule, the split at fork, the refund at reaping.
//!
//! All values are ticks of 1/HZ s. Nothing here knows of lists or CPUs.

use schedlab_policy_api::Company;
use schedlab_units::{Hz, Nanos, Nice};

/// How a fork divides the parent's ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForkSplit {
    /// In halves, the odd tick to the child.
    Half,
    /// Everything to the child.
    AllToChild,
}

/// Ticks after a fork.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Forked {
    /// What the child starts with.
    pub(crate) child: i32,
    /// What the parent keeps; at 0 it has to give up its CPU.
    pub(crate) parent: i32,
}

/// Scales a count of 1/100 s to ticks, roughly: the slice stays near 50 ms at every HZ.
///
/// Source: 2.4.5 `sched.c` `TICK_SCALE`; spec §2.
fn tick_scale(x: i32, hz: Hz) -> i32 {
    match hz.get() {
        ..200 => x >> 2,
        200..400 => x >> 1,
        400..800 => x,
        800..1600 => x << 1,
        _ => x << 2,
    }
}

/// Ticks that an epoch grants to a task, 1 … 161.
///
/// Source: 2.4.5 `sched.c` `NICE_TO_TICKS`; spec §2.
pub(crate) fn quantum(nice: Nice, hz: Hz) -> i32 {
    tick_scale(20 - nice.get(), hz) + 1
}

/// The counter after an epoch: half of the rest and a fresh quantum.
///
/// Repeated without running it converges to `2 · quantum − 1`: c = ⌊c/2⌋ + q has the solutions
/// 2q − 2 and 2q − 1, and a sequence that starts below 2q − 2 ends at one of the two.
///
/// Source: 2.4.5 `sched.c` `schedule`, label `recalculate`; spec §4.7 S6.
#[inline]
pub(crate) fn recharge(counter: i32, quantum: i32) -> i32 {
    (counter >> 1) + quantum
}

/// Divides the parent's `counter`; the sum is conserved.
///
/// Source: 2.4.5 `fork.c` `do_fork`; spec §4.10; all to the child: 2.4.4.
pub(crate) fn fork(rule: ForkSplit, counter: i32) -> Forked {
    match rule {
        ForkSplit::Half => Forked { child: (counter + 1) >> 1, parent: counter >> 1 },
        ForkSplit::AllToChild => Forked { child: counter, parent: 0 },
    }
}

/// Ticks above which no refund lifts a parent (`MAX_COUNTER`), 200 ms.
///
/// Source: 2.4.5 `sched.h`; spec §2.
pub(crate) fn max_counter(hz: Hz) -> i32 {
    (20 * hz.get() / 100) as i32
}

/// The parent's ticks after it has collected a child that had `child` left.
///
/// The cap also lowers a parent that was above it: nice −20 at HZ 100 can hold 21.
///
/// Source: 2.4.5 `exit.c` `release_task`; spec §4.11.
pub(crate) fn reap(parent: i32, child: i32, hz: Hz) -> i32 {
    (parent + child).min(max_counter(hz))
}

/// Priority of `/proc/PID/stat` of a task with `counter` ticks: 20 less its ticks in tenths of what
/// 100 ms hold, rounded.
///
/// Source: 2.4.5 `fs/proc/array.c` `proc_pid_stat`, `DEF_COUNTER`.
pub(crate) fn shown_prio(counter: i32, hz: Hz) -> i32 {
    let def_counter = ((hz.get() / 10) as i32).max(1);
    20 - (counter * 10 + def_counter / 2) / def_counter
}

/// The most ticks a task can ever own: the fixed point of nice −20, or the cap of the refund.
pub(crate) fn counter_bound(hz: Hz) -> i32 {
    (2 * quantum(Nice::MIN, hz) - 1).max(max_counter(hz))
}

/// Longest wait of a hog in `company` on one CPU; none beside tasks that sleep.
///
/// A task that ran first in one epoch and runs last in the next waits for each competitor's quantum
/// twice; one tick more for where in a tick it began. All counters are 0 when an epoch of hogs ends,
/// so it hands out exactly a quantum each.
pub(crate) fn wait_bound(company: Company<'_>, hz: Hz) -> Option<Nanos> {
    let ticks = 2 * company.others.iter().map(|nice| quantum(*nice, hz) as u64).sum::<u64>() + 1;
    (!company.sleepers).then(|| hz.tick() * ticks)
}
