// SPDX-License-Identifier: GPL-2.0-only
//! interbench's statistic of latencies, with its own formula for the deviation and the proper one.
//!
//! Source: spec bfs §7.5, report columns.

use crate::distribution::Summary;

/// Exact moments of samples in ns; those of several runs add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterbenchSamples {
    /// Number of samples.
    pub count: u64,
    /// Their sum.
    pub sum: u128,
    /// Sum of their squares.
    pub sum_sq: u128,
    /// The largest.
    pub max: u64,
}

impl InterbenchSamples {
    /// The moments of a distribution.
    pub const fn of(summary: &Summary) -> Self {
        let Summary { count, sum, sum_sq, max, .. } = *summary;
        Self { count, sum, sum_sq, max }
    }

    /// The samples of both.
    pub fn and(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            sum: self.sum + other.sum,
            sum_sq: self.sum_sq.saturating_add(other.sum_sq),
            max: self.max.max(other.max),
        }
    }

    /// Average in ns: ⌊sum / n⌋ in whole µs, as the program divides; zero without samples.
    pub fn average(&self) -> u64 {
        let us = self.sum / 1000;
        (us / u128::from(self.count.max(1)) * 1000) as u64
    }

    /// The program's deviation in ns, √((Σx² − avg²/n) / (n − 1)); none below two samples.
    ///
    /// It takes avg²/n where n·avg² belongs, so it is nearly the root mean square.
    pub fn sd_interbench(&self) -> Option<u64> {
        let avg = u128::from(self.average());
        self.root(self.sum_sq.saturating_mul(u128::from(self.count)).saturating_sub(avg * avg))
    }

    /// The deviation of the sample in ns, √((Σx² − n·mean²) / (n − 1)) with the exact mean; none
    /// below two samples.
    pub fn sd_true(&self) -> Option<u64> {
        let square = self.sum.saturating_mul(self.sum);
        self.root(self.sum_sq.saturating_mul(u128::from(self.count)).saturating_sub(square))
    }

    /// √(n·S / (n·(n − 1))) for a sum of squares S times n.
    fn root(&self, n_squares: u128) -> Option<u64> {
        let n = u128::from(self.count);
        (n > 1).then(|| (n_squares / (n * (n - 1))).isqrt() as u64)
    }
}

#[cfg(test)]
mod tests {
    //! Rows of bfs §9: interbench's statistic.
    use super::*;
    use crate::distribution::Distribution;

    fn samples(us: &[u64]) -> InterbenchSamples {
        let distribution = Distribution::of(us.iter().map(|us| us * 1000));
        InterbenchSamples::of(&distribution.summary().expect("samples"))
    }

    /// In units of a tenth of a µs, rounded.
    fn tenths(ns: Option<u64>) -> u64 {
        (ns.expect("more than one") + 50) / 100
    }

    #[test]
    fn vectors_45_average_and_both_deviations() {
        let samples = samples(&[0, 0, 2000, 4000]);
        assert_eq!((samples.average(), samples.max), (1_500_000, 4_000_000));
        assert_eq!(tenths(samples.sd_interbench()), 25_454);
        assert_eq!(tenths(samples.sd_true()), 19_149);
    }

    #[test]
    fn vectors_46_equal_samples_deviate_in_the_program_only() {
        let samples = samples(&[500; 4]);
        assert_eq!((samples.average(), samples.max), (500_000, 500_000));
        assert_eq!(tenths(samples.sd_interbench()), 5_590);
        assert_eq!(samples.sd_true(), Some(0));
    }

    #[test]
    fn average_is_rounded_down_to_whole_microseconds() {
        assert_eq!(samples(&[1, 2]).average(), 1000);
        assert_eq!(InterbenchSamples::default().average(), 0);
        assert_eq!(samples(&[7]).sd_interbench(), None);
    }

    #[test]
    fn samples_of_two_runs_are_those_of_one() {
        assert_eq!(samples(&[1, 5]).and(samples(&[9])), samples(&[1, 5, 9]));
    }
}
