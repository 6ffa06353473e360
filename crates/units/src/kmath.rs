// SPDX-License-Identifier: GPL-2.0-only
//! Integer arithmetic of the kernel, with the kernel's names and widths.

/// `(a × mul) >> shift` with a 96-bit product, truncated to 64 bits.
///
/// Source: kernel `mul_u64_u32_shr`.
#[inline]
pub const fn mul_u64_u32_shr(a: u64, mul: u32, shift: u32) -> u64 {
    ((a as u128 * mul as u128) >> shift) as u64
}

/// Position of the highest set bit counted from 1; 0 for 0.
///
/// Source: kernel `fls`.
#[inline]
pub const fn fls(x: u32) -> u32 {
    32 - x.leading_zeros()
}

/// Signed division truncating toward zero.
///
/// # Panics
/// When `divisor` is zero.
///
/// Source: kernel `div_s64`.
#[inline]
pub const fn div_s64(dividend: i64, divisor: i64) -> i64 {
    dividend / divisor
}

/// Signed division rounding toward negative infinity, for a positive divisor.
///
/// # Panics
/// When `divisor` is not positive.
#[inline]
pub const fn div_floor(dividend: i64, divisor: i64) -> i64 {
    assert!(divisor > 0, "the divisor is positive");
    dividend.div_euclid(divisor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn division_forms_differ_below_zero() {
        assert_eq!(div_s64(-7, 2), -3);
        assert_eq!(div_floor(-7, 2), -4);
        assert_eq!(div_s64(7, 2), div_floor(7, 2));
    }

    #[test]
    fn fls_counts_from_one() {
        assert_eq!((fls(0), fls(1), fls(0x8000_0000)), (0, 1, 32));
    }
}
