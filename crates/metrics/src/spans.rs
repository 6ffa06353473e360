// SPDX-License-Identifier: GPL-2.0-only
//! A distribution that is filled span by span, outside of a [`crate::Metrics`].

use crate::distribution::{Distribution, Summary};
use crate::histogram::{Arena, Histogram};

/// Spans counted one by one; memory grows with their range, not with their number.
#[derive(Debug)]
pub struct Spans {
    arena: Arena,
    histogram: Histogram,
}

impl Default for Spans {
    fn default() -> Self {
        Self { arena: Arena::default(), histogram: Histogram::EMPTY }
    }
}

impl Spans {
    /// Adds one span of `ns`.
    pub fn record(&mut self, ns: u64) {
        self.histogram.record(&mut self.arena, ns);
    }

    /// The figures; none when there is no span.
    pub fn summary(&self) -> Option<Summary> {
        let mut all = Distribution::default();
        all.add(&self.histogram, &self.arena);
        all.summary()
    }
}
