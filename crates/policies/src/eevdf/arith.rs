// SPDX-License-Identifier: GPL-2.0-only
//! The arithmetic of EEVDF on plain numbers, with the kernel's widths and rounding.
//!
//! It knows no queue and no task. Products wrap at 64 bits as the kernel's do; about 44
//! bits are used by ordinary loads.

use schedlab_policy_api::Company;
use schedlab_units::kmath::div_s64;
use schedlab_units::{Nice, VTime};

/// Shortest slice a task may ask for, ns.
pub const SLICE_MIN: u64 = 100_000;
/// Longest slice a task may ask for, ns.
pub const SLICE_MAX: u64 = 100_000_000;

/// Lag V − v within ±`limit`, the virtual length of two slices or of a tick.
///
/// Source: v6.12 `fair.c` `entity_lag`; spec cfs-eevdf §4C.
#[inline]
pub fn entity_lag(avg_vruntime: VTime, vruntime: VTime, limit: u64) -> i64 {
    let limit = limit as i64;
    avg_vruntime.delta(vruntime).clamp(-limit, limit)
}

/// Distance below V at which an entity with lag `vlag` and weight `w` is to be placed into a queue
/// of weight `load`, so that its lag is `vlag` once it counts.
///
/// Inserting at V − l moves V by −w·l/(load + w), hence l = vlag·(load + w)/load. The product wraps
/// at 64 bits, the quotient is truncated.
///
/// Source: v6.12 `fair.c` `place_entity`.
#[inline]
pub fn placed_lag(vlag: i64, load: i64, w: u64) -> i64 {
    div_s64(vlag.wrapping_mul(load + w as i64), load.max(1))
}

/// Virtual time and deadline of a queued entity after its weight changed from `old` to `new`:
/// distances from V scale by old/new, V itself stays.
///
/// Only entities of groups change their weight on the queue; a task is taken off before.
///
/// Source: v6.12 `fair.c` `reweight_eevdf`; spec cfs-eevdf §4D.
pub fn reweight_queued(
    avg_vruntime: VTime,
    vruntime: VTime,
    deadline: VTime,
    limit: u64,
    old: u64,
    new: u64,
) -> (VTime, VTime) {
    let scale = |delta: i64| reweight_lag(delta, old, new);
    let placed = if avg_vruntime == vruntime {
        vruntime
    } else {
        avg_vruntime.offset(scale(entity_lag(avg_vruntime, vruntime, limit)).wrapping_neg())
    };
    (placed, avg_vruntime.offset(scale(deadline.delta(avg_vruntime))))
}

/// Deadline of a queued entity after its weight changed from `old` to `new`, as 6.6 has it: the
/// distance from its virtual time, which stays, scales by old/new.
///
/// Source: v6.6 `fair.c` `reweight_entity`; spec cfs-eevdf §4C.
pub fn reweight_deadline(vruntime: VTime, deadline: VTime, old: u64, new: u64) -> VTime {
    vruntime.offset(reweight_lag(deadline.delta(vruntime), old, new))
}

/// Lag of an entity off the queue after its weight changed from `old` to `new`: w·lag is kept.
///
/// Source: v6.12 `fair.c` `reweight_entity`.
#[inline]
pub fn reweight_lag(vlag: i64, old: u64, new: u64) -> i64 {
    div_s64(vlag.wrapping_mul(old as i64), new as i64)
}

/// Longest wait in ns of a hog beside hogs when no turn is longer than `turn` ns.
///
/// Among equals everybody ahead has a turn, and so has the own unfinished request. In general the
/// lag of a task in wall time stays within ± its longest turn R, and grows by w/W of the time that
/// it waits; so it waits for 2·R·W/w at most. W is below 2^17 · the number of tasks.
///
/// Source: Stoica and Abdel-Wahab 1995, theorem 1.
pub(crate) fn lag_bound(turn: u64, company: Company<'_>) -> u64 {
    let weight = |nice: Nice| u64::from(nice.weight().weight);
    let own = weight(company.nice);
    if company.others.iter().all(|nice| *nice == company.nice) {
        return turn * (company.others.len() as u64 + 1);
    }
    let sum = own + company.others.iter().map(|nice| weight(*nice)).sum::<u64>();
    (2 * turn * sum).div_ceil(own)
}

/// Slice of a task that asked for `request` ns; none when it asked for nothing.
///
/// Source: v6.12 `syscalls.c` `__setscheduler_params`.
pub fn custom_slice(request: u64) -> Option<u64> {
    (request != 0).then(|| request.clamp(SLICE_MIN, SLICE_MAX))
}
