// SPDX-License-Identifier: GPL-2.0-only
//! An integer random generator with a separate stream for each purpose.
//!
//! The generator and every distribution are fixed for good: stored results depend on them.

/// xoshiro256++ (Blackman and Vigna, 2018), seeded through SplitMix64.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng {
    s: [u64; 4],
}

/// One step of SplitMix64: the stream's next state and a well-mixed word.
const fn split_mix(state: u64) -> (u64, u64) {
    let state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (state, z ^ (z >> 31))
}

/// 2^(1/2), 2^(1/4), … as 2.62 fixed point.
const ROOTS_OF_2: [u128; 32] = {
    let mut roots = [0; 32];
    let mut last = 2u128 << 62;
    let mut bit = 0;
    while bit < 32 {
        last = (last << 62).isqrt();
        roots[bit] = last;
        bit += 1;
    }
    roots
};

impl Rng {
    /// The stream of `purpose` and `id` under `seed`.
    ///
    /// Streams are derived by name, so a new consumer disturbs no other.
    pub fn stream(seed: u64, purpose: &str, id: u64) -> Self {
        let (_, mut state) = split_mix(seed);
        for byte in purpose.bytes() {
            state = split_mix(state ^ u64::from(byte)).1;
        }
        state = split_mix(state ^ id).1;
        let mut s = [0; 4];
        for word in &mut s {
            (state, *word) = split_mix(state);
        }
        Self { s }
    }

    /// The next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.s;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number uniform in `0 … n − 1`, by the high half of a 128-bit product.
    ///
    /// The bias is below `n / 2^64`.
    ///
    /// # Panics
    /// When `n` is zero.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "an empty range has no member");
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u64
    }

    /// A number uniform in `low … high`, both included.
    ///
    /// # Panics
    /// When `low` is above `high`.
    pub fn range(&mut self, low: u64, high: u64) -> u64 {
        assert!(low <= high, "the range runs forwards");
        match (high - low).checked_add(1) {
            Some(n) => low + self.below(n),
            None => self.next_u64(),
        }
    }

    /// A log-normally distributed number with the given mean, by integer arithmetic only; the
    /// standard deviation of its logarithm is `percent` / 100.
    ///
    /// x = mean · e^(σz − σ²/2) with z the sum of twelve uniform numbers less 6: of mean 0 and
    /// deviation 1, and normal but for its ends, which are at ±6. e^y = 2^(y · log2 e) is the
    /// product of the roots of 2 that belong to the bits of the fraction, shifted by the rest.
    ///
    /// # Panics
    /// When `percent` is above 100.
    pub fn log_normal(&mut self, mean: u64, percent: u32) -> u64 {
        const LOG2_E: i128 = 6_196_328_019; // log2 e · 2^32, rounded
        assert!(percent <= 100, "a deviation of the logarithm is at most 1, not {percent} percent");
        let sum: i128 = (0..12).map(|_| i128::from(self.next_u64() >> 32)).sum();
        let (z, sigma) = (sum - (6 << 32), i128::from(percent));
        let natural = sigma * z / 100 - ((sigma * sigma) << 32) / 20_000;
        let y = (natural * LOG2_E) >> 32;
        let (whole, fraction) = (y >> 32, y as u32);
        let mut factor = 1u128 << 62;
        for (bit, root) in ROOTS_OF_2.iter().enumerate() {
            if fraction & (1 << (31 - bit)) != 0 {
                factor = (factor * root) >> 62;
            }
        }
        // |y| is below 10: the product has at most 64 + 63 bits.
        let product = u128::from(mean) * factor;
        let x = if whole >= 0 { (product >> 62) << whole } else { product >> (62 - whole) };
        u64::try_from(x).unwrap_or(u64::MAX)
    }

    /// An exponentially distributed number with the given mean, by integer arithmetic only.
    ///
    /// With `u` uniform in (0, 1]: x = −mean · ln u = mean · ln 2 · (−log2 u). The logarithm is
    /// computed to 32 fractional bits by repeated squaring; x is at most 45 means.
    pub fn exponential(&mut self, mean: u64) -> u64 {
        const LN_2: u128 = 2_977_044_472; // ln 2 · 2^32, rounded
        let u = self.next_u64() | 1;
        let exponent = u.leading_zeros();
        // u = m · 2^(−exponent) / 2, with m in [1, 2) held as 1.63 fixed point.
        let mut mantissa = u << exponent;
        let mut fraction = 0u64;
        for bit in (0..32).rev() {
            let square = u128::from(mantissa) * u128::from(mantissa); // 2.126
            let (high, low) = ((square >> 64) as u64, square as u64);
            // Below 2 the bit is 0 and the square stays, from 2 on it is 1 and the square is
            // halved: square >> 63 or square >> 64. A branch would be mispredicted half the time.
            let is_two = high >> 63;
            let below_two = 1 - is_two;
            fraction |= is_two << bit;
            mantissa = (high << below_two) | ((low >> 63) & below_two);
        }
        // −log2 u = exponent + 1 − fraction, in 32.32 fixed point.
        let log2 = (u128::from(exponent + 1) << 32) - u128::from(fraction);
        ((u128::from(mean) * ((log2 * LN_2) >> 32)) >> 32) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stream_values_are_fixed_for_good() {
        let mut rng = Rng::stream(1, "vm", 7);
        let first: alloc::vec::Vec<u64> = (0..3).map(|_| rng.next_u64()).collect();
        assert_eq!(
            first,
            [7_509_447_423_544_098_288, 14_675_559_161_641_313_694, 2_300_364_322_845_383_296]
        );
    }

    #[test]
    fn exponential_values_are_fixed_for_good() {
        let mut rng = Rng::stream(1, "vm", 7);
        let first: alloc::vec::Vec<u64> = (0..4).map(|_| rng.exponential(1_000_000_000)).collect();
        assert_eq!(first, [898_725_997, 228_704_414, 2_081_820_370, 1_612_758_532]);
    }

    #[test]
    fn log_normal_values_are_fixed_for_good() {
        let mut rng = Rng::stream(1, "vm", 7);
        assert_eq!(rng.clone().log_normal(1_000_000_000, 0), 1_000_000_000);
        // The formula in floating point gives 442 676 174.98, 690 893 097.25, 1 663 434 254.55 and
        // 965 053 463.75.
        for (percent, x) in
            [(60, 442_676_174), (60, 690_893_097), (60, 1_663_434_254), (100, 965_053_463)]
        {
            assert_eq!(rng.log_normal(1_000_000_000, percent), x);
        }
    }

    #[test]
    fn stream_of_another_purpose_differs() {
        assert_ne!(Rng::stream(1, "a", 0).next_u64(), Rng::stream(1, "b", 0).next_u64());
        assert_ne!(Rng::stream(1, "a", 0).next_u64(), Rng::stream(1, "a", 1).next_u64());
        assert_ne!(Rng::stream(1, "a", 0).next_u64(), Rng::stream(2, "a", 0).next_u64());
    }

    #[test]
    fn distributions_have_their_means() {
        let mut rng = Rng::stream(1, "test", 0);
        let n = 100_000;
        let uniform: u64 = (0..n).map(|_| rng.range(100, 300)).sum();
        assert!((uniform / n).abs_diff(200) <= 1);
        let exponential: u64 = (0..n).map(|_| rng.exponential(1_000_000)).sum();
        assert!((exponential / n).abs_diff(1_000_000) < 10_000);
    }
}
