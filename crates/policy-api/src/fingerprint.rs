// SPDX-License-Identifier: GPL-2.0-only
//! A hash of the event stream: equal runs have equal fingerprints on every machine.

use core::fmt;
use core::hash::{Hash, Hasher};

use schedlab_units::Time;

use crate::{Observer, SchedEvent};

/// Running 64-bit hash of all events and their times.
///
/// FNV-1a over whole words with a final mix: not cryptographic, but the same on every platform,
/// because only fixed-width integers are hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    state: u64,
}

impl Default for Fingerprint {
    fn default() -> Self {
        Self { state: 0xcbf2_9ce4_8422_2325 }
    }
}

impl Fingerprint {
    #[inline]
    fn word(&mut self, word: u64) {
        self.state = (self.state.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    /// The hash of what was seen so far.
    pub fn value(&self) -> u64 {
        let z = (self.state ^ (self.state >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z ^ (z >> 29)
    }
}

impl fmt::Display for Fingerprint {
    /// Sixteen hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.value())
    }
}

impl Hasher for Fingerprint {
    fn finish(&self) -> u64 {
        self.value()
    }
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.word(u64::from(*byte));
        }
    }
    #[inline]
    fn write_u8(&mut self, n: u8) {
        self.word(u64::from(n));
    }
    #[inline]
    fn write_u32(&mut self, n: u32) {
        self.word(u64::from(n));
    }
    #[inline]
    fn write_u64(&mut self, n: u64) {
        self.word(n);
    }
    /// Discriminants arrive here; they are widened so that 32- and 64-bit machines agree.
    #[inline]
    fn write_isize(&mut self, n: isize) {
        self.word(n as i64 as u64);
    }
    #[inline]
    fn write_usize(&mut self, n: usize) {
        self.word(n as u64);
    }
}

impl Observer for Fingerprint {
    #[inline]
    fn event(&mut self, now: Time, event: &SchedEvent) {
        self.word(now.as_ns());
        event.hash(self);
    }
}
