// SPDX-License-Identifier: GPL-2.0-only
//! The fluid clock of a queue: the weighted mean of its virtual times.
//!
//! Sums and products wrap at 64 bits as the kernel's do; about 44 bits are used by ordinary loads.

use schedlab_units::VTime;
use schedlab_units::kmath::div_floor;

/// Weighted virtual times of a queue relative to a base: the fluid clock V.
///
/// With key_i = v_i − v0, sum = Σ w_i·key_i and weight = Σ w_i, the mean of the v_i is
/// V = v0 + sum / weight; weights are in table units, nice 0 = 1024.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fluid {
    /// Base v0 of the keys.
    pub(crate) base: VTime,
    /// Σ w·key.
    pub(crate) sum: i64,
    /// Σ w.
    pub(crate) weight: i64,
}

impl Fluid {
    /// Adds an entity at `vruntime` with weight `w`.
    ///
    /// Source: v6.12 `fair.c` `avg_vruntime_add`.
    #[inline]
    pub(crate) fn add(&mut self, vruntime: VTime, w: u64) {
        self.sum = self.sum.wrapping_add(vruntime.delta(self.base).wrapping_mul(w as i64));
        self.weight += w as i64;
    }
    /// Takes out an entity at `vruntime` with weight `w`.
    ///
    /// Source: v6.12 `fair.c` `avg_vruntime_sub`.
    #[inline]
    pub(crate) fn sub(&mut self, vruntime: VTime, w: u64) {
        self.sum = self.sum.wrapping_sub(vruntime.delta(self.base).wrapping_mul(w as i64));
        self.weight -= w as i64;
    }
    /// Moves the base by `delta`: Σ w·(key − delta) = sum − delta·weight.
    ///
    /// Source: v6.12.117 `fair.c` `update_zero_vruntime`.
    #[inline]
    pub(crate) fn rebase(&mut self, delta: i64) {
        self.sum = self.sum.wrapping_sub(self.weight.wrapping_mul(delta));
        self.base = self.base.offset(delta);
    }
    /// ⌊V⌋ − v0; 0 when nothing is counted.
    ///
    /// Rounded down, so that an entity placed at ⌊V⌋ is eligible.
    ///
    /// Source: v6.12 `fair.c` `avg_vruntime`.
    #[inline]
    pub(crate) fn mean(&self) -> i64 {
        if self.weight == 0 { 0 } else { div_floor(self.sum, self.weight) }
    }
    /// Whether an entity at `vruntime` has received no more than its share: V ≥ v, as
    /// sum ≥ (v − v0)·weight without the loss of a division.
    ///
    /// Source: v6.12 `fair.c` `vruntime_eligible`.
    #[inline]
    pub(crate) fn eligible(&self, vruntime: VTime) -> bool {
        self.sum >= vruntime.delta(self.base).wrapping_mul(self.weight)
    }
}
