// SPDX-License-Identifier: GPL-2.0-only
//! Merged histograms and the figures read from them.
//!
//! Owns percentiles, mean and standard deviation, all of them integers.

use crate::histogram::{Arena, Histogram, OCTAVES, SUB_BUCKETS, bucket_middle};

/// A histogram that stands on its own, to merge others into.
#[derive(Clone, Debug)]
pub struct Distribution {
    count: u64,
    min: u64,
    max: u64,
    sum: u128,
    sum_sq: u128,
    counts: Vec<u64>,
}

impl Default for Distribution {
    fn default() -> Self {
        Self {
            count: 0,
            min: u64::MAX,
            max: 0,
            sum: 0,
            sum_sq: 0,
            counts: vec![0; OCTAVES * SUB_BUCKETS],
        }
    }
}

impl Distribution {
    /// The distribution of the spans `values` in ns.
    pub fn of(values: impl IntoIterator<Item = u64>) -> Self {
        let (mut arena, mut histogram) = (Arena::default(), Histogram::EMPTY);
        for value in values {
            histogram.record(&mut arena, value);
        }
        let mut all = Self::default();
        all.add(&histogram, &arena);
        all
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        let mut counts = std::mem::take(&mut self.counts);
        counts.fill(0);
        *self = Self { count: 0, min: u64::MAX, max: 0, sum: 0, sum_sq: 0, counts };
    }

    /// Adds all spans of `histogram`.
    pub(crate) fn add(&mut self, histogram: &Histogram, arena: &Arena) {
        self.count += histogram.count;
        self.min = self.min.min(histogram.min);
        self.max = self.max.max(histogram.max);
        self.sum += histogram.sum;
        self.sum_sq = self.sum_sq.saturating_add(histogram.sum_sq);
        for (octave, sub, count) in histogram.buckets(arena) {
            self.counts[octave * SUB_BUCKETS + sub] += count;
        }
    }

    /// Number of spans.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Sum of all spans in ns, exact.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// The figures of a report; none when there is no span.
    pub fn summary(&self) -> Option<Summary> {
        if self.count == 0 {
            return None;
        }
        let [p50, p75, p90, p95, p99, p99_5, p99_9] =
            self.percentiles([500, 750, 900, 950, 990, 995, 999]);
        Some(Summary {
            count: self.count,
            min: self.min,
            mean: self.mean(),
            sum: self.sum,
            sum_sq: self.sum_sq,
            sd: self.sd(),
            p50,
            p75,
            p90,
            p95,
            p99,
            p99_5,
            p99_9,
            max: self.max,
        })
    }

    /// Nearest-rank percentiles at ascending per-mille values.
    ///
    /// The value of rank ⌈count · per_mille / 1000⌉, taken as the middle of its bucket and clipped
    /// to the smallest and largest span: exact below 128 ns and for the first and last rank, else
    /// off by less than 1/128.
    fn percentiles<const N: usize>(&self, per_mille: [u64; N]) -> [u64; N] {
        let mut out = [self.max; N];
        let mut buckets = self.counts.iter().enumerate().filter(|(_, count)| **count != 0);
        let (mut index, mut seen) = (0, 0);
        for (value, wanted) in out.iter_mut().zip(per_mille) {
            let rank = (u128::from(self.count) * u128::from(wanted)).div_ceil(1000);
            while u128::from(seen) < rank {
                let (next, count) = buckets.next().expect("the counts add up to count");
                (index, seen) = (next, seen + count);
            }
            *value = if rank == 1 {
                self.min
            } else if rank == u128::from(self.count) {
                self.max
            } else {
                let middle = bucket_middle(index / SUB_BUCKETS, index % SUB_BUCKETS);
                middle.clamp(self.min, self.max)
            };
        }
        out
    }

    /// Mean, rounded to the nearest ns.
    fn mean(&self) -> u64 {
        let n = u128::from(self.count);
        // The mean of 64-bit values fits 64 bits.
        ((self.sum + n / 2) / n) as u64
    }

    /// Standard deviation of the whole population, rounded to the nearest ns.
    ///
    /// σ = √(n·Σx² − (Σx)²) / n; the root is taken of the fourfold radicand, which gives 2nσ, so
    /// that the division can round. Where the products leave 128 bits (runs of many years) both
    /// sums are scaled down first.
    fn sd(&self) -> u64 {
        let n = u128::from(self.count);
        let exact = || {
            let square = self.sum.checked_mul(self.sum)?;
            let radicand = n.checked_mul(self.sum_sq)?.checked_sub(square)?.checked_mul(4)?;
            Some(((radicand.isqrt() + n) / (2 * n)) as u64)
        };
        exact().unwrap_or_else(|| {
            let mean = self.sum / n;
            (self.sum_sq / n).saturating_sub(mean.saturating_mul(mean)).isqrt() as u64
        })
    }
}

/// The figures of a distribution; spans in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Number of spans, above zero.
    pub count: u64,
    /// Smallest, exact.
    pub min: u64,
    /// Mean, rounded to the nearest ns.
    pub mean: u64,
    /// Sum in ns, exact.
    pub sum: u128,
    /// Sum of squares in ns²; saturates.
    pub sum_sq: u128,
    /// Standard deviation of the population, rounded to the nearest ns.
    pub sd: u64,
    /// Median. Percentiles are nearest-rank, off by less than 1/128.
    pub p50: u64,
    /// 75th percentile.
    pub p75: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 95th percentile.
    pub p95: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.5th percentile.
    pub p99_5: u64,
    /// 99.9th percentile.
    pub p99_9: u64,
    /// Largest, exact.
    pub max: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn summary_of_nothing_is_none() {
        assert_eq!(Distribution::default().summary(), None);
    }

    #[test]
    fn summary_of_one_span_is_that_span() {
        let summary = Distribution::of([1_000_003]).summary().expect("one span");
        assert_eq!((summary.min, summary.mean, summary.sd), (1_000_003, 1_000_003, 0));
        assert_eq!((summary.p50, summary.p99_9, summary.max), (1_000_003, 1_000_003, 1_000_003));
    }

    #[test]
    fn summary_of_first_thousand_is_nearest_rank() {
        // 1 … 100 lie in buckets of width 1, so every percentile is exact.
        let summary = Distribution::of(1..=100).summary().expect("spans");
        assert_eq!((summary.p50, summary.p75, summary.p90, summary.p95), (50, 75, 90, 95));
        assert_eq!((summary.p99, summary.p99_5, summary.p99_9), (99, 100, 100));
        // mean 50.5 and variance (100² − 1)/12 = 833.25
        assert_eq!((summary.mean, summary.sd), (51, 29));
    }

    #[test]
    fn sd_of_huge_spans_does_not_overflow() {
        let summary = Distribution::of([u64::MAX, u64::MAX, u64::MAX]).summary().expect("spans");
        assert_eq!((summary.mean, summary.max), (u64::MAX, u64::MAX));
    }

    /// The naive twin: sorts the spans and counts.
    fn naive(values: &[u64], per_mille: usize) -> u64 {
        let mut sorted = values.to_vec();
        sorted.sort_unstable();
        sorted[(sorted.len() * per_mille).div_ceil(1000) - 1]
    }

    fn span() -> impl Strategy<Value = u64> {
        (0u32..50, any::<u64>()).prop_map(|(bits, x)| x >> (63 - bits))
    }

    proptest! {
        #[test]
        fn summary_agrees_with_sorted_list(values in prop::collection::vec(span(), 1..400)) {
            let summary = Distribution::of(values.iter().copied()).summary().expect("spans");
            let sum: u128 = values.iter().map(|v| u128::from(*v)).sum();
            let n = values.len() as u128;
            prop_assert_eq!(summary.count, values.len() as u64);
            prop_assert_eq!(Some(summary.min), values.iter().copied().min());
            prop_assert_eq!(Some(summary.max), values.iter().copied().max());
            prop_assert_eq!(u128::from(summary.mean), (2 * sum + n) / (2 * n));
            for (per_mille, got) in [
                (500, summary.p50), (750, summary.p75), (900, summary.p90), (950, summary.p95),
                (990, summary.p99), (995, summary.p99_5), (999, summary.p99_9),
            ] {
                let exact = naive(&values, per_mille);
                prop_assert!(got.abs_diff(exact) <= exact / 128, "{got} against {exact}");
            }
        }

        #[test]
        fn sd_agrees_with_squared_differences(values in prop::collection::vec(0u64..1 << 40, 1..200)) {
            let n = values.len() as u128;
            let sum: u128 = values.iter().map(|v| u128::from(*v)).sum();
            // n²·Σ(x − mean)² without fractions: Σ(n·x − Σx)² = n³σ².
            let squares: u128 =
                values.iter().map(|v| (n * u128::from(*v)).abs_diff(sum).pow(2)).sum();
            let sd = u128::from(Distribution::of(values).summary().expect("spans").sd);
            let cubed = |x: u128| x * x * n * n * n;
            prop_assert!(cubed(sd.saturating_sub(1)) <= squares && squares <= cubed(sd + 1));
        }

        #[test]
        fn merge_equals_distribution_of_all(
            a in prop::collection::vec(span(), 0..100), b in prop::collection::vec(span(), 0..100),
        ) {
            let mut arena = Arena::default();
            let (mut ha, mut hb) = (Histogram::EMPTY, Histogram::EMPTY);
            a.iter().for_each(|v| ha.record(&mut arena, *v));
            b.iter().for_each(|v| hb.record(&mut arena, *v));
            let mut merged = Distribution::default();
            merged.add(&ha, &arena);
            merged.add(&hb, &arena);
            let all = Distribution::of(a.iter().chain(&b).copied());
            prop_assert_eq!(merged.summary(), all.summary());
            prop_assert_eq!(merged.counts, all.counts);
        }
    }
}
