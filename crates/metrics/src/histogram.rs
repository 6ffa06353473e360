// SPDX-License-Identifier: GPL-2.0-only
//! A compact histogram of spans: log-linear buckets in pages of one octave, taken from an arena.
//!
//! It owns how values become buckets and where the counts lie. Percentiles and merging are the
//! affair of [`crate::Distribution`].

/// Buckets of an octave; also the number of smallest values that have a bucket each.
pub(crate) const SUB_BUCKETS: usize = 64;
/// Octaves of a 64-bit value: one for all values below 64, then one per power of two.
pub(crate) const OCTAVES: usize = 59;

/// Octave and bucket within it of `value`.
///
/// Octave 0 holds 0 … 63 and octave 1 holds 64 … 127, both exactly. Octave o > 0 begins at
/// 64 · 2^(o−1) and its buckets are 2^(o−1) wide, that is at most 1/64 of any value in them.
#[inline]
fn bucket(value: u64) -> (usize, usize) {
    let octave = (value | (SUB_BUCKETS as u64 - 1)).ilog2() - 5;
    let sub = (value >> octave.saturating_sub(1)) & (SUB_BUCKETS as u64 - 1);
    (octave as usize, sub as usize)
}

/// The middle of a bucket, rounded down: off by at most 1/128 of any value in the bucket.
pub(crate) fn bucket_middle(octave: usize, sub: usize) -> u64 {
    if octave == 0 {
        return sub as u64;
    }
    let width = 1u64 << (octave - 1);
    (SUB_BUCKETS + sub) as u64 * width + (width - 1) / 2
}

/// Pages of counts that many histograms share.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    pages: Vec<[u32; SUB_BUCKETS]>,
    /// Page and bucket of each count that ran over, once per 2^32.
    carries: Vec<(u32, u32)>,
}

impl Arena {
    /// An arena that takes `pages` pages without allocating again.
    pub(crate) fn with_capacity(pages: usize) -> Self {
        Self { pages: Vec::with_capacity(pages), carries: Vec::new() }
    }
    /// Takes all pages back.
    pub(crate) fn clear(&mut self) {
        self.pages.clear();
        self.carries.clear();
    }
    /// A fresh page, as its number from 1.
    #[cold]
    fn take_page(&mut self) -> u32 {
        self.pages.push([0; SUB_BUCKETS]);
        u32::try_from(self.pages.len()).expect("fewer than 2^32 pages")
    }
    #[inline]
    fn increment(&mut self, page: u32, sub: usize) {
        let count = &mut self.pages[page as usize - 1][sub];
        let (next, carried) = count.overflowing_add(1);
        *count = next;
        if carried {
            self.carries.push((page, sub as u32));
        }
    }
    fn count(&self, page: u32, sub: usize) -> u64 {
        let carries = self.carries.iter().filter(|c| **c == (page, sub as u32)).count();
        u64::from(self.pages[page as usize - 1][sub]) + ((carries as u64) << 32)
    }
}

/// Counts and exact moments of a set of spans.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    pub(crate) count: u64,
    pub(crate) min: u64,
    pub(crate) max: u64,
    pub(crate) sum: u128,
    /// Saturates; spans of one task that do not overlap stay below elapsed² < 2^128.
    pub(crate) sum_sq: u128,
    /// Number of the page of each octave, 0 = none yet.
    pages: [u32; OCTAVES],
}

impl Histogram {
    /// A histogram of nothing.
    pub(crate) const EMPTY: Self =
        Self { count: 0, min: u64::MAX, max: 0, sum: 0, sum_sq: 0, pages: [0; OCTAVES] };

    /// Adds one span of `value` ns.
    ///
    /// Complexity: constant; takes a page from `arena` when the first value of an octave arrives.
    #[inline]
    pub(crate) fn record(&mut self, arena: &mut Arena, value: u64) {
        self.count += 1;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.sum += u128::from(value);
        self.sum_sq = self.sum_sq.saturating_add(u128::from(value) * u128::from(value));
        let (octave, sub) = bucket(value);
        let page = &mut self.pages[octave];
        if *page == 0 {
            *page = arena.take_page();
        }
        arena.increment(*page, sub);
    }

    /// All buckets that hold something, ascending: octave, bucket, count.
    pub(crate) fn buckets<'a>(
        &'a self,
        arena: &'a Arena,
    ) -> impl Iterator<Item = (usize, usize, u64)> + 'a {
        let used = self.pages.iter().enumerate().filter(|(_, page)| **page != 0);
        used.flat_map(move |(octave, page)| {
            (0..SUB_BUCKETS).map(move |sub| (octave, sub, arena.count(*page, sub)))
        })
        .filter(|(_, _, count)| *count != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn bucket_small_values_have_one_each() {
        for value in 0..128 {
            let (octave, sub) = bucket(value);
            assert_eq!(bucket_middle(octave, sub), value);
        }
        assert_eq!(bucket(u64::MAX), (OCTAVES - 1, SUB_BUCKETS - 1));
    }

    #[test]
    fn count_beyond_32_bits_is_carried() {
        let mut arena = Arena::default();
        let mut histogram = Histogram::EMPTY;
        histogram.record(&mut arena, 1000);
        let (octave, sub) = bucket(1000);
        arena.pages[histogram.pages[octave] as usize - 1][sub] = u32::MAX;
        histogram.record(&mut arena, 1000);
        let buckets: Vec<_> = histogram.buckets(&arena).collect();
        assert_eq!(buckets, [(octave, sub, 1 << 32)]);
    }

    proptest! {
        #[test]
        fn bucket_middle_errs_below_one_percent(shift in 0u32..64, bits in any::<u64>()) {
            let value = bits >> shift;
            let (octave, sub) = bucket(value);
            let off = bucket_middle(octave, sub).abs_diff(value);
            prop_assert!(off <= value / 128, "{value} is off by {off}");
        }

        #[test]
        fn bucket_order_follows_value_order(a in any::<u64>(), b in any::<u64>()) {
            prop_assert!(a > b || bucket(a) <= bucket(b));
        }
    }
}
