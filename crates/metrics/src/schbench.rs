// SPDX-License-Identifier: GPL-2.0-only
//! The histogram of schbench, versions of 2016 to 2019, and the percentiles it prints.
//!
//! Source: spec cfs-eevdf §7.3.

/// Values below this have a bucket each.
const EXACT: u64 = 512;
/// Buckets of an octave.
const PER_OCTAVE: u64 = 256;
/// All buckets; the last one takes whatever is larger, from 67 s on.
const BUCKETS: usize = 19 * PER_OCTAVE as usize;

/// Percentiles in the program's order, as per mille.
pub const SCHBENCH_PERCENTILES: [u64; 7] = [500, 750, 900, 950, 990, 995, 999];

/// The bucket of a latency of `us` µs: 256·k + (x ≫ k) with k = ⌊log2 x⌋ − 8 from 512 on.
pub const fn schbench_bucket(us: u64) -> usize {
    if us < EXACT {
        return us as usize;
    }
    let k = us.ilog2() - 8;
    let bucket = PER_OCTAVE as usize * k as usize + (us >> k) as usize;
    if bucket < BUCKETS { bucket } else { BUCKETS - 1 }
}

/// The µs that the program prints for a bucket: its middle, (x ≫ k)·2^k + 2^(k−1).
pub const fn schbench_printed(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < EXACT {
        return bucket;
    }
    // x ≫ k is in 256 … 511, so the quotient by 256 is k + 1.
    let k = bucket / PER_OCTAVE - 1;
    ((bucket - PER_OCTAVE * k) << k) + (1 << (k - 1))
}

/// Latencies as the program counts them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchbenchHistogram {
    counts: Vec<u64>,
    count: u64,
    max_us: u64,
}

impl Default for SchbenchHistogram {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS], count: 0, max_us: 0 }
    }
}

impl SchbenchHistogram {
    /// Adds a latency in µs; the program leaves out those of zero.
    pub fn record(&mut self, us: u64) {
        if us > 0 {
            self.counts[schbench_bucket(us)] += 1;
            self.count += 1;
            self.max_us = self.max_us.max(us);
        }
    }

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.counts.fill(0);
        (self.count, self.max_us) = (0, 0);
    }

    /// Adds the latencies of another run.
    pub fn add(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        self.count += other.count;
        self.max_us = self.max_us.max(other.max_us);
    }

    /// Number of latencies.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The largest in µs, exact.
    pub const fn max_us(&self) -> u64 {
        self.max_us
    }

    /// The printed µs of [`SCHBENCH_PERCENTILES`]: the first bucket at which the share of the
    /// latencies so far reaches the percentile; none without latencies.
    pub fn percentiles(&self) -> Option<[u64; 7]> {
        if self.count == 0 {
            return None;
        }
        let mut printed = [0; 7];
        let mut wanted = printed.iter_mut().zip(SCHBENCH_PERCENTILES).peekable();
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            let reached = |per_mille: u64| {
                u128::from(seen) * 1000 >= u128::from(per_mille) * u128::from(self.count)
            };
            while let Some((value, _)) = wanted.next_if(|(_, per_mille)| reached(*per_mille)) {
                *value = schbench_printed(bucket);
            }
        }
        Some(printed)
    }
}

#[cfg(test)]
mod tests {
    //! Rows of cfs-eevdf §9: schbench's buckets.
    use super::*;

    #[test]
    fn vectors_70_schbench_buckets() {
        for (us, bucket, printed) in [
            (83, 83, 83),
            (511, 511, 511),
            (512, 512, 513),
            (722, 617, 723),
            (985, 748, 985),
            (1110, 789, 1110),
            (1522, 892, 1522),
        ] {
            assert_eq!(schbench_bucket(us), bucket, "{us}");
            assert_eq!(schbench_printed(bucket), printed, "{us}");
        }
    }

    #[test]
    fn buckets_hold_their_printed_value() {
        for bucket in 0..BUCKETS {
            assert_eq!(schbench_bucket(schbench_printed(bucket)), bucket);
        }
        assert_eq!(schbench_bucket((1 << 26) - 1), BUCKETS - 1);
        assert_eq!(schbench_bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn percentiles_are_those_of_the_program() {
        let mut histogram = SchbenchHistogram::default();
        assert_eq!(histogram.percentiles(), None);
        (0..=1000).for_each(|us| histogram.record(us));
        // Zero is not counted: 1000 latencies, of which the 500th is 500, the 750th in a bucket of 2.
        assert_eq!((histogram.count(), histogram.max_us()), (1000, 1000));
        assert_eq!(histogram.percentiles(), Some([500, 751, 901, 951, 991, 995, 999]));
        let mut both = SchbenchHistogram::default();
        both.add(&histogram);
        both.add(&histogram);
        assert_eq!(both.count(), 2000);
        assert_eq!(both.percentiles(), histogram.percentiles());
        both.clear();
        assert_eq!(both, SchbenchHistogram::default());
    }
}
