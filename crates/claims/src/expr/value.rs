// SPDX-License-Identifier: GPL-2.0-only
//! Values of expressions, and the statistics over seeds.

/// A number or truth value for every seed; of length 1 if it is the same for all.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Numbers; NaN where a figure is missing.
    Numbers(Vec<f64>),
    /// Truth values.
    Flags(Vec<bool>),
}

impl Value {
    /// One number.
    pub fn number(x: f64) -> Self {
        Self::Numbers(vec![x])
    }

    /// Whether it is a truth value and true for every seed.
    pub fn holds(&self) -> bool {
        matches!(self, Self::Flags(flags) if flags.iter().all(|flag| *flag))
    }
}

/// Upper 97.5 % points of Student's t for 1 … 30 degrees of freedom, rounded up in the third place.
/// Source: any table; for more degrees the last is used, which is on the safe side.
const T_975: [f64; 30] = [
    12.707, 4.303, 3.183, 2.777, 2.571, 2.447, 2.365, 2.307, 2.263, 2.229, 2.202, 2.179, 2.161,
    2.145, 2.132, 2.120, 2.110, 2.101, 2.094, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.049, 2.046, 2.043,
];

/// Sum in the order of the seeds, so that it is the same everywhere.
pub(crate) fn sum(xs: &[f64]) -> f64 {
    xs.iter().fold(0.0, |sum, x| sum + x)
}

/// Arithmetic mean; NaN of nothing.
pub(crate) fn mean(xs: &[f64]) -> f64 {
    sum(xs) / xs.len() as f64
}

/// Standard deviation of a sample: √(Σ(x − mean)² / (n − 1)); 0 of a single one.
pub(crate) fn sd(xs: &[f64]) -> f64 {
    if xs.len() < 2 {
        return 0.0;
    }
    let mean = mean(xs);
    let squares: Vec<f64> = xs.iter().map(|x| (x - mean) * (x - mean)).collect();
    (sum(&squares) / (xs.len() - 1) as f64).sqrt()
}

/// Half the width of the 95 % interval of the mean: t · sd / √n; infinite of a single one.
pub(crate) fn half_width(xs: &[f64]) -> f64 {
    if xs.len() < 2 {
        return f64::INFINITY;
    }
    let t = T_975[(xs.len() - 2).min(T_975.len() - 1)];
    t * sd(xs) / (xs.len() as f64).sqrt()
}

/// The middle one, or the mean of the two middle ones; NaN of nothing.
pub(crate) fn median(xs: &[f64]) -> f64 {
    let mut xs = xs.to_vec();
    xs.sort_by(f64::total_cmp);
    match xs.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => xs[n / 2],
        n => f64::midpoint(xs[n / 2 - 1], xs[n / 2]),
    }
}

/// Geometric mean of positive numbers, NaN otherwise: the root of degree n of their product.
///
/// Newton's iteration instead of `powf`, whose last bits differ between platforms:
/// g ← g − (g − p / gⁿ⁻¹) / n, from above, where it falls until rounding stops it.
pub(crate) fn geometric_mean(xs: &[f64]) -> f64 {
    let n = xs.len();
    if n == 0 || xs.iter().any(|x| x.is_nan() || *x <= 0.0) {
        return f64::NAN;
    }
    let product = xs.iter().fold(1.0, |p, x| p * x);
    let mut g = xs.iter().copied().fold(0.0, f64::max);
    for _ in 0..200 {
        let power = (1..n).fold(1.0, |p, _| p * g);
        let next = g - (g - product / power) / n as f64;
        if next >= g {
            break;
        }
        g = next;
    }
    g
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_of_small_samples_match_hand_computation() {
        let xs = [2.0, 4.0, 4.0, 6.0];
        assert_eq!((mean(&xs), median(&xs)), (4.0, 4.0));
        assert!((sd(&xs) - (8.0f64 / 3.0).sqrt()).abs() < 1e-12);
        assert!((half_width(&xs) - 3.183 * sd(&xs) / 2.0).abs() < 1e-12);
        assert_eq!((sd(&[3.0]), half_width(&[3.0])), (0.0, f64::INFINITY));
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert!(mean(&[]).is_nan() && median(&[]).is_nan());
    }

    #[test]
    fn geometric_mean_is_the_root_of_the_product() {
        assert!((geometric_mean(&[1.067, 1.082, 1.330, 1.417, 1.208, 1.131]) - 1.199).abs() < 5e-4);
        assert!((geometric_mean(&[2.0, 8.0]) - 4.0).abs() < 1e-12);
        assert_eq!(geometric_mean(&[5.0]), 5.0);
        assert!(geometric_mean(&[1.0, 0.0]).is_nan());
    }
}
