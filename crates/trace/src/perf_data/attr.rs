// SPDX-License-Identifier: GPL-2.0-only
//! Which fields the samples of an event have.

use crate::bytes::{Bytes, Endian};

/// Bits of `sample_type`.
pub(super) mod bit {
    pub(crate) const IP: u64 = 1 << 0;
    pub(crate) const TID: u64 = 1 << 1;
    pub(crate) const TIME: u64 = 1 << 2;
    pub(crate) const ADDR: u64 = 1 << 3;
    pub(crate) const READ: u64 = 1 << 4;
    pub(crate) const CALLCHAIN: u64 = 1 << 5;
    pub(crate) const ID: u64 = 1 << 6;
    pub(crate) const CPU: u64 = 1 << 7;
    pub(crate) const PERIOD: u64 = 1 << 8;
    pub(crate) const STREAM_ID: u64 = 1 << 9;
    pub(crate) const RAW: u64 = 1 << 10;
    pub(crate) const IDENTIFIER: u64 = 1 << 16;
}

/// `type` of the kernel's tracepoints.
const TYPE_TRACEPOINT: u32 = 2;

/// Least size of a `perf_event_attr`: that of its first version.
pub(super) const ATTR_SIZE_MIN: u64 = 64;

/// The parts of a `perf_event_attr` that reading needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Attr {
    /// Whether it is one of the kernel's tracepoints, and no counter.
    pub(super) is_tracepoint: bool,
    pub(super) sample_type: u64,
    pub(super) read_format: u64,
    /// Whether records that are no samples end with ids, too.
    pub(super) sample_id_all: bool,
}

impl Attr {
    /// Reads the structure; `None` when it is too short.
    pub(super) fn parse(bytes: &[u8], endian: Endian) -> Option<Self> {
        let mut input = Bytes::new(bytes, endian);
        let is_tracepoint = input.u32()? == TYPE_TRACEPOINT;
        // size, config, sample_period
        input.take(4 + 8 + 8)?;
        let (sample_type, read_format) = (input.u64()?, input.u64()?);
        // Bit fields are laid out from the other end where the order of bytes is the other.
        let flags = input.u64()?;
        let sample_id_all = match endian {
            Endian::Little => flags >> 18 & 1,
            Endian::Big => flags >> (63 - 18) & 1,
        };
        Some(Self { is_tracepoint, sample_type, read_format, sample_id_all: sample_id_all == 1 })
    }
    /// Whether the records of both have the same fields.
    fn is_like(&self, other: &Self) -> bool {
        (self.sample_type, self.read_format, self.sample_id_all)
            == (other.sample_type, other.read_format, other.sample_id_all)
    }
}

/// The attributes of all events of a file, and which event has which id.
#[derive(Clone, Debug, Default)]
pub(super) struct Attrs {
    all: Vec<Attr>,
    ids: Vec<(u64, usize)>,
    is_sorted: bool,
    /// Whether there are several layouts, so that a sample must say which is its own.
    is_mixed: bool,
    /// Whether some layout has the id of the event elsewhere than in front.
    lacks_identifier: bool,
}

impl Attrs {
    pub(super) fn push(&mut self, attr: Attr, ids: impl Iterator<Item = u64>) {
        let index = self.all.len();
        self.is_mixed |= self.all.first().is_some_and(|first| !first.is_like(&attr));
        self.lacks_identifier |= attr.sample_type & bit::IDENTIFIER == 0;
        self.all.push(attr);
        self.ids.extend(ids.map(|id| (id, index)));
        self.is_sorted = false;
    }
    /// How many ids there are.
    pub(super) fn n_ids(&self) -> u64 {
        self.ids.len() as u64
    }
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
    /// The attributes of a sample that begins with `body`; with one layout for all, no id is
    /// needed.
    pub(super) fn of_sample(&mut self, body: &[u8], endian: Endian) -> Option<Attr> {
        if !self.is_mixed {
            return self.all.first().copied();
        }
        // Only the identifier has the same place in every layout.
        if self.lacks_identifier {
            return None;
        }
        if !self.is_sorted {
            self.ids.sort_unstable();
            self.is_sorted = true;
        }
        let id = Bytes::new(body, endian).u64()?;
        let at = self.ids.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some(self.all[self.ids[at].1])
    }
    /// The attributes that say how other records end; the kernel demands the same of all.
    pub(super) fn of_others(&self) -> Option<Attr> {
        self.all.first().copied().filter(|attr| attr.sample_id_all)
    }
}
