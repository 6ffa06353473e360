// SPDX-License-Identifier: GPL-2.0-only
//! Load weights and the fixed-point division by them.

use schedlab_policy_api::SchedClass;
use schedlab_units::kmath::{fls, mul_u64_u32_shr};
use schedlab_units::{NICE_0_LOAD, Nice, SCHED_IDLE_WEIGHT, SCHED_IDLE_WMULT};

/// Largest inverse weight (kernel `WMULT_CONST`).
const WMULT_CONST: u64 = u32::MAX as u64;
/// An inverse weight is scaled by 2^32.
const WMULT_SHIFT: u32 = 32;
/// Internal weights are table weights scaled by 2^10 (`SCHED_FIXEDPOINT_SHIFT`).
const LOAD_SHIFT: u32 = 10;

/// A load weight with its inverse (kernel `struct load_weight`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Load {
    /// Weight in internal units: nice 0 = 2^20.
    pub(crate) weight: u64,
    /// `2^32 / weight` as the kernel's table has it; 0 = to be computed.
    inv_weight: u32,
}

impl Load {
    /// The weight of a task; its inverse comes from the table.
    ///
    /// Source: v6.12 `core.c` `set_load_weight`.
    pub(crate) fn of_task(class: SchedClass, nice: Nice) -> Self {
        let (weight, inv_weight) = if class == SchedClass::Idle {
            (SCHED_IDLE_WEIGHT, SCHED_IDLE_WMULT)
        } else {
            let table = nice.weight();
            (table.weight, table.wmult)
        };
        Self { weight: u64::from(weight) << LOAD_SHIFT, inv_weight }
    }

    /// A weight that is no task's, such as a sum; its inverse is computed, and for powers of two
    /// that gives one less than the table (spec cfs-eevdf Q1).
    pub(crate) const fn of_sum(weight: u64) -> Self {
        Self { weight, inv_weight: 0 }
    }

    /// The inverse weight.
    ///
    /// Source: v6.12 `fair.c` `__update_inv_weight`.
    pub(crate) fn inv_weight(&self) -> u32 {
        if self.inv_weight != 0 {
            return self.inv_weight;
        }
        let inverse = match scale_load_down(self.weight) {
            0 => WMULT_CONST,
            w if w >= WMULT_CONST => 1,
            w => WMULT_CONST / w,
        };
        inverse as u32
    }
}

/// An internal weight in the units of the table, at least 2 unless it is 0.
///
/// Source: v6.12 `sched.h` `scale_load_down`.
#[inline]
pub(crate) const fn scale_load_down(weight: u64) -> u64 {
    if weight == 0 {
        return 0;
    }
    let down = weight >> LOAD_SHIFT;
    if down < 2 { 2 } else { down }
}

/// `delta × weight / load` in the kernel's fixed point; the result is truncated to 64 bits.
///
/// The quotient is taken as `delta × (weight × 2^32/load) >> 32`; the factor in brackets loses low
/// bits until it fits 32 bits, so the product needs 96.
///
/// Source: v6.12 `fair.c` `__calc_delta`; spec cfs-eevdf §2.
pub(crate) fn calc_delta(delta: u64, weight: u64, load: &Load) -> u64 {
    let mut factor = scale_load_down(weight);
    let mut shift = WMULT_SHIFT;
    let mut fit = |factor: u64| {
        let excess = fls((factor >> 32) as u32);
        shift -= excess;
        factor >> excess
    };
    factor = fit(factor);
    factor = fit(factor * u64::from(load.inv_weight()));
    mul_u64_u32_shr(delta, factor as u32, shift)
}

/// Wall time `delta` in ns as virtual time of an entity with weight `load`: `delta × 1024 / w`.
///
/// Source: v6.12 `fair.c` `calc_delta_fair`; spec cfs-eevdf §2.
#[inline]
pub(crate) fn calc_delta_fair(delta: u64, load: &Load) -> u64 {
    if load.weight == NICE_0_LOAD { delta } else { calc_delta(delta, NICE_0_LOAD, load) }
}

/// How tunables grow with the number of CPUs (kernel `sched_tunable_scaling`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scaling {
    /// Not at all.
    None,
    /// By 1 + ⌊log2 n⌋.
    Log,
    /// By n.
    Linear,
}

impl Scaling {
    /// The scaling with index `index` of `none`, `log`, `linear`.
    pub(crate) const fn from_index(index: usize) -> Self {
        match index {
            0 => Self::None,
            1 => Self::Log,
            _ => Self::Linear,
        }
    }
    /// Factor for a machine of `n_cpus`, of which at most eight count.
    ///
    /// Source: v6.12 `fair.c` `get_update_sysctl_factor`; spec cfs-eevdf §2.
    pub(crate) fn factor(self, n_cpus: usize) -> u64 {
        let cpus = n_cpus.clamp(1, 8) as u64;
        match self {
            Self::None => 1,
            Self::Log => 1 + u64::from(cpus.ilog2()),
            Self::Linear => cpus,
        }
    }
}
