// SPDX-License-Identifier: GPL-2.0-only
//! Drawing from the distributions of the intermediate form, by integer arithmetic only.

use schedlab_units::Rng;

use crate::ir::Dist;

impl Dist {
    /// One value; a constant takes nothing from the stream.
    ///
    /// # Panics
    /// When the bounds of a uniform distribution run backwards; [`crate::validate()`] excludes it.
    #[inline]
    pub fn draw(self, rng: &mut Rng) -> u64 {
        match self {
            Self::Const(value) => value,
            Self::Uniform(low, high) => rng.range(low, high),
            Self::Exponential(mean) => rng.exponential(mean).min(mean.saturating_mul(10)),
            Self::LogNormal { median, sigma_percent } => {
                scaled_exp(median, sigma_percent, normal(rng))
            }
        }
    }

    /// The largest value that [`Dist::draw`] can yield.
    pub fn max(self) -> u64 {
        match self {
            Self::Const(value) => value,
            Self::Uniform(_, high) => high,
            Self::Exponential(mean) => mean.saturating_mul(10),
            Self::LogNormal { median, sigma_percent } => scaled_exp(median, sigma_percent, 6 * ONE),
        }
    }
}

/// 1 in 32.32 fixed point.
const ONE: i64 = 1 << 32;

/// A number of the standard normal distribution in 32.32 fixed point: the sum of twelve uniform
/// ones, whose variance is 1, less its mean of 6; it lies between −6 and 6.
fn normal(rng: &mut Rng) -> i64 {
    let sum: u64 = (0..12).map(|_| rng.next_u64() >> 32).sum();
    sum as i64 - 6 * ONE
}

/// median · e^(sigma · g), with `g` between −6 and 6 in 32.32 fixed point.
///
/// e^x = 2^n · e^r with n = ⌊x / ln 2⌋ and 0 ≤ r < ln 2; e^r is the sum of r^k / k!, of which the
/// 14th is below 2^-32.
fn scaled_exp(median: u64, sigma_percent: u8, g: i64) -> u64 {
    /// ln 2 · 2^32, rounded.
    const LN_2: i64 = 2_977_044_472;
    let x = (i128::from(g) * i128::from(sigma_percent) / 100) as i64;
    let (n, r) = (x.div_euclid(LN_2), x.rem_euclid(LN_2) as u128);
    let mut term = 1u128 << 60;
    let mut sum = term;
    for k in 1..14 {
        term = ((term * r) >> 32) / k;
        sum += term;
    }
    // The sum, with 60 fractional bits, is below 2^61, and n between −18 and 17.
    let value = (u128::from(median) * sum) >> (60 - n);
    u64::try_from(value).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(dist: Dist) -> Vec<u64> {
        let mut rng = Rng::stream(1, "test", 0);
        (0..100_000).map(|_| dist.draw(&mut rng)).collect()
    }

    #[test]
    fn const_draw_leaves_the_stream_alone() {
        let mut rng = Rng::stream(1, "test", 0);
        let before = rng.clone();
        assert_eq!(Dist::Const(7).draw(&mut rng), 7);
        assert_eq!(rng, before);
    }

    #[test]
    fn uniform_draw_reaches_both_bounds() {
        let values = draws(Dist::Uniform(3, 5));
        assert!((3..=5).all(|v| values.contains(&v)));
        assert!(values.iter().all(|v| (3..=5).contains(v)));
    }

    #[test]
    fn exponential_draw_is_cut_at_ten_means() {
        let values = draws(Dist::Exponential(1000));
        // P(x > 10 means) is e^−10, about 4.5 in 100 000 draws: the cut is met, not passed.
        assert_eq!(values.iter().max(), Some(&10_000));
        let mean = values.iter().sum::<u64>() / 100_000;
        assert!(mean.abs_diff(1000) < 20, "{mean}");
    }

    #[test]
    fn lognormal_draw_has_its_median_and_mean() {
        let dist = Dist::LogNormal { median: 250_000_000, sigma_percent: 60 };
        let mut values = draws(dist);
        values.sort_unstable();
        assert!(values[50_000].abs_diff(250_000_000) < 2_500_000, "{}", values[50_000]);
        // The mean is the median times e^(0.18), 299.3 ms; a sixth is above e^0.6 medians.
        let mean = values.iter().sum::<u64>() / 100_000;
        assert!(mean.abs_diff(299_300_000) < 3_000_000, "{mean}");
        assert!(values[84_134].abs_diff(455_530_000) < 6_000_000, "{}", values[84_134]);
        assert!(*values.last().expect("some") <= dist.max());
    }

    #[test]
    fn lognormal_factor_is_exact_to_nine_digits() {
        let factor = |sigma, g| scaled_exp(1_000_000_000_000, sigma, g);
        assert_eq!(factor(60, 0), 1_000_000_000_000);
        assert!(factor(100, ONE).abs_diff(2_718_281_828_459) < 3_000);
        assert!(factor(100, -ONE).abs_diff(367_879_441_171) < 1_000);
        assert!(factor(200, 6 * ONE).abs_diff(162_754_791_419_003_921) < 400_000_000);
        assert_eq!(scaled_exp(u64::MAX, 200, 6 * ONE), u64::MAX);
        assert_eq!(scaled_exp(0, 200, -6 * ONE), 0);
    }
}
