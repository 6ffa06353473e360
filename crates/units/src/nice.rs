// SPDX-License-Identifier: GPL-2.0-only
//! Nice levels, priorities and load weights.

use core::fmt;

/// The nice value of a task, −20 (most CPU) … 19 (least).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nice(i8);

impl Nice {
    /// Nice 0, the default.
    pub const ZERO: Self = Self(0);
    /// The smallest nice value, the most CPU time.
    pub const MIN: Self = Self(-20);
    /// The largest nice value, the least CPU time.
    pub const MAX: Self = Self(19);

    /// The nice value `n`, or `None` outside −20 … 19.
    pub const fn new(n: i32) -> Option<Self> {
        if n >= -20 && n <= 19 { Some(Self(n as i8)) } else { None }
    }
    /// The nice value nearest to `n`.
    pub fn clamped(n: i32) -> Self {
        Self(n.clamp(-20, 19) as i8)
    }
    /// The value, −20 … 19.
    #[inline]
    pub const fn get(self) -> i32 {
        self.0 as i32
    }
    /// Static priority 100 … 139 of the kernel's scale.
    pub const fn prio(self) -> Prio {
        Prio((120 + self.0 as i16) as u8)
    }
    /// Load weight and its inverse.
    ///
    /// Source: v6.12 `core.c` `sched_prio_to_weight`; spec cfs-eevdf §2.
    #[inline]
    pub const fn weight(self) -> Weight {
        let (weight, wmult) = WEIGHTS[(self.0 + 20) as usize];
        Weight { weight, wmult }
    }
}

impl fmt::Display for Nice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A priority on the kernel's scale: 0 … 99 real time (0 highest), 100 … 139 from nice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Prio(pub u8);

/// Load weight of a nice level: share factor and `2^32 / weight`.
///
/// Nice 0 has weight 1024; one nice step is about ×1.25.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weight {
    /// Share factor as in the kernel's table, not scaled up.
    pub weight: u32,
    /// `2^32 / weight` as in the kernel's table.
    pub wmult: u32,
}

/// Internal load of a nice 0 task: the table weight scaled up by 2^10.
pub const NICE_0_LOAD: u64 = 1 << 20;
/// Table weight of SCHED_IDLE.
pub const SCHED_IDLE_WEIGHT: u32 = 3;
/// Inverse of [`SCHED_IDLE_WEIGHT`].
pub const SCHED_IDLE_WMULT: u32 = 1_431_655_765;

/// Weight and inverse by nice −20 … 19.
const WEIGHTS: [(u32, u32); 40] = [
    (88761, 48388),
    (71755, 59856),
    (56483, 76040),
    (46273, 92818),
    (36291, 118348),
    (29154, 147320),
    (23254, 184698),
    (18705, 229616),
    (14949, 287308),
    (11916, 360437),
    (9548, 449829),
    (7620, 563644),
    (6100, 704093),
    (4904, 875809),
    (3906, 1099582),
    (3121, 1376151),
    (2501, 1717300),
    (1991, 2157191),
    (1586, 2708050),
    (1277, 3363326),
    (1024, 4194304),
    (820, 5237765),
    (655, 6557202),
    (526, 8165337),
    (423, 10153587),
    (335, 12820798),
    (272, 15790321),
    (215, 19976592),
    (172, 24970740),
    (137, 31350126),
    (110, 39045157),
    (87, 49367440),
    (70, 61356676),
    (56, 76695844),
    (45, 95443717),
    (36, 119304647),
    (29, 148102320),
    (23, 186737708),
    (18, 238609294),
    (15, 286331153),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wmult_is_rounded_inverse_of_weight() {
        for nice in -20..=19 {
            let w = Nice::new(nice).expect("legal").weight();
            let exact = (1u64 << 32) / u64::from(w.weight);
            let off = exact.abs_diff(u64::from(w.wmult));
            assert!(off <= 1, "nice {nice}: {} against {exact}", w.wmult);
        }
    }

    #[test]
    fn nice_range_maps_to_prio_100_to_139() {
        assert_eq!(Nice::MIN.prio(), Prio(100));
        assert_eq!(Nice::ZERO.prio(), Prio(120));
        assert_eq!(Nice::MAX.prio(), Prio(139));
    }

    #[test]
    fn nice_out_of_range_is_refused() {
        assert_eq!(Nice::new(20), None);
        assert_eq!(Nice::new(-21), None);
        assert_eq!(Nice::clamped(400), Nice::MAX);
    }
}
