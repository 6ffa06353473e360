// SPDX-License-Identifier: GPL-2.0-only
//! How perf prints times: sums are integers, and only printing divides.

use schedlab_units::Time;

/// Milliseconds with three decimals, cut off, as timehist prints them.
pub(crate) fn msec_cut(ns: u64) -> String {
    format!("{}.{:03}", ns / 1_000_000, ns / 1000 % 1000)
}

/// Milliseconds with three decimals, rounded, as latency prints them.
///
/// perf divides as a floating-point number and lets `printf` round; so do we, because a half can
/// go either way there.
pub(crate) fn msec_rounded(ns: u64) -> String {
    format!("{:.3}", ns as f64 / 1e6)
}

/// Seconds with six decimals, cut off.
pub(crate) fn seconds(time: Time) -> String {
    let us = time.as_ns() / 1000;
    format!("{}.{:06}", us / 1_000_000, us % 1_000_000)
}

/// `part` of `whole` in per cent with `digits` decimals; nought of nothing is nought.
pub(crate) fn percent(part: u64, whole: u64, digits: usize) -> String {
    let percent = if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 };
    format!("{percent:.digits$}")
}

/// Number, sum, extremes and spread of times.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Stats {
    pub(crate) n: u64,
    pub(crate) sum: u64,
    squares: u128,
    pub(crate) min: u64,
    pub(crate) max: u64,
}

impl Stats {
    pub(crate) fn add(&mut self, ns: u64) {
        self.min = if self.n == 0 { ns } else { self.min.min(ns) };
        self.max = self.max.max(ns);
        self.n += 1;
        self.sum = self.sum.saturating_add(ns);
        let square = u128::from(ns) * u128::from(ns);
        self.squares = self.squares.saturating_add(square);
    }

    /// The mean, cut off; 0 for none.
    pub(crate) fn mean(&self) -> u64 {
        self.sum.checked_div(self.n).unwrap_or(0)
    }

    /// Standard deviation of the mean in per cent of the mean; 0 below two values.
    pub(crate) fn spread_percent(&self) -> f64 {
        if self.n < 2 || self.sum == 0 {
            return 0.0;
        }
        // Σ(x − m)² = (n·Σx² − (Σx)²) / n; the sample variance divides by n − 1, that of the mean
        // by n again.
        let (n, sum) = (u128::from(self.n), u128::from(self.sum));
        let scaled = match (n.checked_mul(self.squares), sum.checked_mul(sum)) {
            (Some(left), Some(right)) => left.saturating_sub(right) as f64,
            _ => return 0.0,
        };
        let n = self.n as f64;
        let variance_of_mean = scaled / n / (n - 1.0) / n;
        100.0 * variance_of_mean.sqrt() / (self.sum as f64 / n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_cut_or_rounded_as_perf_does() {
        assert_eq!(msec_cut(1_234_999), "1.234");
        assert_eq!(msec_rounded(1_234_999), "1.235");
        assert_eq!(seconds(Time::from_ns(5_646_493_999)), "5.646493");
        assert_eq!(percent(1, 3, 2), "33.33");
        assert_eq!(percent(1, 0, 3), "0.000");
    }

    #[test]
    fn spread_of_two_values_is_half_their_distance() {
        let mut stats = Stats::default();
        stats.add(10);
        assert_eq!(stats.spread_percent(), 0.0);
        stats.add(30);
        assert_eq!((stats.mean(), stats.min, stats.max), (20, 10, 30));
        assert!((stats.spread_percent() - 50.0).abs() < 1e-9);
    }
}
