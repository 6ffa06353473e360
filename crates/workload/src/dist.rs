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
            Self::LogNormal(mean, percent) => {
                rng.log_normal(mean, percent).min(mean.saturating_mul(10))
            }
        }
    }

    /// The largest value that [`Dist::draw`] can yield.
    pub const fn max(self) -> u64 {
        match self {
            Self::Const(value) => value,
            Self::Uniform(_, high) => high,
            Self::Exponential(mean) | Self::LogNormal(mean, _) => mean.saturating_mul(10),
        }
    }
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
    fn log_normal_draw_has_mean_and_median() {
        let mut values = draws(Dist::LogNormal(1_000_000, 60));
        values.sort_unstable();
        let mean = values.iter().sum::<u64>() / 100_000;
        assert!(mean.abs_diff(1_000_000) < 10_000, "{mean}");
        // The median is e^(−σ²/2) of the mean, 0.8353; one σ above it is e^0.6 times that.
        assert!(values[50_000].abs_diff(835_270) < 9_000, "{}", values[50_000]);
        assert!(values[84_134].abs_diff(1_521_962) < 25_000, "{}", values[84_134]);
        assert!(values[99_999] <= 10_000_000);
    }

    #[test]
    fn exponential_draw_is_cut_at_ten_means() {
        let values = draws(Dist::Exponential(1000));
        // P(x > 10 means) is e^−10, about 4.5 in 100 000 draws: the cut is met, not passed.
        assert_eq!(values.iter().max(), Some(&10_000));
        let mean = values.iter().sum::<u64>() / 100_000;
        assert!(mean.abs_diff(1000) < 20, "{mean}");
    }
}
