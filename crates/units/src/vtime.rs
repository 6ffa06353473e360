// SPDX-License-Identifier: GPL-2.0-only
//! Virtual time and lag of the fair schedulers.

use core::ops::Neg;

/// Virtual time: service received divided by weight, in virtual nanoseconds.
///
/// Wraps at 2^64 as in the kernel, therefore not `Ord`: compare with [`VTime::before`], key trees
/// by the signed distance to a base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct VTime(pub u64);

impl VTime {
    /// Signed distance `self − base`; exact while the two are less than 2^63 apart.
    #[inline]
    pub const fn delta(self, base: Self) -> i64 {
        self.0.wrapping_sub(base.0) as i64
    }
    /// `self + delta`; wraps.
    #[inline]
    pub const fn offset(self, delta: i64) -> Self {
        Self(self.0.wrapping_add(delta as u64))
    }
    /// `self + delta` for an unsigned virtual span; wraps.
    #[inline]
    pub const fn advance(self, delta: u64) -> Self {
        Self(self.0.wrapping_add(delta))
    }
    /// Whether `self` lies before `other`, by the sign of their difference.
    #[inline]
    pub const fn before(self, other: Self) -> bool {
        self.delta(other) < 0
    }
}

/// Service owed to an entity (positive) or overdrawn by it (negative), in virtual nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lag(pub i64);

impl Lag {
    /// No lag.
    pub const ZERO: Self = Self(0);

    /// The lag limited to `−limit … limit`.
    ///
    /// # Panics
    /// When `limit` is negative.
    pub fn clamp_to(self, limit: i64) -> Self {
        Self(self.0.clamp(-limit, limit))
    }
}

impl Neg for Lag {
    type Output = Self;
    fn neg(self) -> Self {
        Self(-self.0)
    }
}
