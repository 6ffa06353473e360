// SPDX-License-Identifier: GPL-2.0-only
//! Means over seeds with their confidence intervals.

/// Two-sided 95 % quantiles of Student's t by degrees of freedom, from 1.
const T_95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
];

/// The quantile for `df` ≥ 1 degrees of freedom; between the table's entries the larger one.
fn t_95(df: usize) -> f64 {
    match df {
        0..=30 => T_95[df.max(1) - 1],
        31..=39 => 2.042,
        40..=59 => 2.021,
        60..=119 => 2.000,
        _ => 1.980,
    }
}

/// A mean and how well it is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Estimate {
    /// The mean.
    pub(crate) mean: f64,
    /// Half the width of the 95 % confidence interval; none from a single value.
    pub(crate) half_width: Option<f64>,
}

impl Estimate {
    /// Of independent values; none when there is no value.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        if values.is_empty() {
            return None;
        }
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        if values.len() == 1 {
            return Some(Self { mean, half_width: None });
        }
        let squares: f64 = values.iter().map(|v| (v - mean) * (v - mean)).sum();
        let standard_error = (squares / (n - 1.0) / n).sqrt();
        Some(Self { mean, half_width: Some(t_95(values.len() - 1) * standard_error) })
    }
}

/// How a second policy's figure differs from the first one's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Change {
    /// Second over first; infinite when only the first is zero.
    pub(crate) ratio: f64,
    /// Half the width of the 95 % confidence interval of the paired difference, relative to the
    /// first; none from a single seed.
    pub(crate) half_width: Option<f64>,
    /// Whether the difference is more than the resolution of the figures and of the seeds.
    pub(crate) significant: bool,
}

/// Percentiles are exact to 1/128 each, so a smaller relative difference says nothing.
const RESOLUTION: f64 = 2.0 / 128.0;

impl Change {
    /// From `first` to `second`, paired by seed where both have a value.
    ///
    /// None when no pair has values.
    pub(crate) fn between(first: &[Option<f64>], second: &[Option<f64>]) -> Option<Self> {
        let pairs: Vec<(f64, f64)> =
            first.iter().zip(second).filter_map(|(a, b)| Some(((*a)?, (*b)?))).collect();
        let differences: Vec<f64> = pairs.iter().map(|(a, b)| b - a).collect();
        let difference = Estimate::of(&differences)?;
        let base = pairs.iter().map(|(a, _)| a).sum::<f64>() / pairs.len() as f64;
        let ratio = match (base == 0.0, difference.mean == 0.0) {
            (_, true) => 1.0,
            (true, false) => f64::INFINITY,
            (false, false) => 1.0 + difference.mean / base,
        };
        let by_seeds = difference.half_width.is_none_or(|half| difference.mean.abs() > half);
        Some(Self {
            ratio,
            half_width: difference.half_width.filter(|_| base != 0.0).map(|half| half / base),
            significant: by_seeds && (ratio - 1.0).abs() > RESOLUTION,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimate_of_hand_computed_sample() {
        // mean 3, s² = 2.5, standard error √0.5, t(4) = 2.776
        let estimate = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 5.0]).expect("values");
        assert_eq!(estimate.mean, 3.0);
        let half = estimate.half_width.expect("five values");
        assert!((half - 2.776 * 0.5f64.sqrt()).abs() < 1e-12, "{half}");
        assert_eq!(Estimate::of(&[7.0]), Some(Estimate { mean: 7.0, half_width: None }));
        assert_eq!(Estimate::of(&[]), None);
    }

    #[test]
    fn t_quantile_never_grows() {
        assert!((1..200).all(|df| t_95(df) >= t_95(df + 1)));
    }

    #[test]
    fn change_is_paired_by_seed() {
        // The seeds differ widely, but the second is always lower by ten: the pairing shows it.
        let first = [Some(100.0), Some(200.0), Some(300.0)];
        let second = [Some(90.0), Some(190.0), Some(290.0)];
        let change = Change::between(&first, &second).expect("pairs");
        assert!((change.ratio - 0.95).abs() < 1e-12);
        assert_eq!(change.half_width, Some(0.0));
        assert!(change.significant);
    }

    #[test]
    fn change_within_noise_or_resolution_is_not_significant() {
        let noise = Change::between(&[Some(10.0), Some(20.0)], &[Some(30.0), Some(10.0)]);
        assert!(!noise.expect("pairs").significant);
        let small = Change::between(&[Some(1000.0)], &[Some(1010.0)]).expect("pair");
        assert!(!small.significant);
        let large = Change::between(&[Some(1000.0)], &[Some(1100.0)]).expect("pair");
        assert!(large.significant && large.half_width.is_none());
    }

    #[test]
    fn change_with_gaps_uses_complete_pairs_only() {
        let change = Change::between(&[Some(10.0), None], &[Some(5.0), Some(9.0)]).expect("pair");
        assert_eq!(change.ratio, 0.5);
        assert_eq!(Change::between(&[None], &[Some(1.0)]), None);
    }

    #[test]
    fn change_from_zero_is_infinite_and_from_zero_to_zero_none() {
        assert_eq!(Change::between(&[Some(0.0)], &[Some(3.0)]).expect("pair").ratio, f64::INFINITY);
        assert_eq!(Change::between(&[Some(0.0)], &[Some(0.0)]).expect("pair").ratio, 1.0);
    }
}
