// SPDX-License-Identifier: GPL-2.0-only
//! Pages of the kernel's trace buffer, as trace.dat files and `trace_pipe_raw` hold them.
//!
//! Source: spec formats-and-ecosystem §2.7.

use crate::bytes::{Bytes, Endian};

/// Bits of the commit word: length of the data, events were lost before this page, and their number
/// is stored behind the data.
const COMMIT_LENGTH: u64 = (1 << 27) - 1;
const COMMIT_LOST: u64 = 1 << 31;
const COMMIT_LOST_COUNTED: u64 = 1 << 30;

/// `type_len` of words that are no event.
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// Bits of the time difference in a word.
const DELTA_BITS: u32 = 27;
/// Bits that an absolute stamp replaces; those above come from the time before.
const STAMP_BITS: u32 = 32 + DELTA_BITS;

/// How the recorded kernel lays out its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    pub(crate) endian: Endian,
    /// Size of a `long`, bytes.
    pub(crate) long_size: u8,
}

/// Events lost before a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LostBefore {
    /// How many; none = unknown.
    pub(crate) count: Option<u64>,
}

/// The events of one page: times in ns, and payloads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page<'a> {
    data: Bytes<'a>,
    time: u64,
    /// Offset of the end of the data.
    end: usize,
    pub(crate) lost: Option<LostBefore>,
}

/// How far a page has been read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Offset of the next event, and of the end of the data.
    pub(crate) at: usize,
    end: usize,
    /// Time of the event before.
    time: u64,
}

impl<'a> Page<'a> {
    /// A page; its bytes may end before the page does.
    ///
    /// # Errors
    /// What is wrong with its head.
    pub(crate) fn new(bytes: &'a [u8], layout: Layout) -> Result<Self, String> {
        let mut input = Bytes::new(bytes, layout.endian);
        let head = input.u64().and_then(|time| {
            let word = input.take(u64::from(layout.long_size))?;
            Some((time, layout.endian.unsigned(word)))
        });
        let (time, commit) = head.ok_or("the file ends inside the head of a page")?;
        let length = commit & COMMIT_LENGTH;
        let data = input.take(length).ok_or_else(|| {
            format!("a page claims {length} bytes of data and has {}", input.rest.len())
        })?;
        let lost = (commit & COMMIT_LOST != 0).then(|| {
            let is_counted = commit & COMMIT_LOST_COUNTED != 0;
            let count = is_counted.then(|| input.take(u64::from(layout.long_size))).flatten();
            LostBefore { count: count.map(|word| layout.endian.unsigned(word)) }
        });
        let end = 8 + usize::from(layout.long_size) + data.len();
        Ok(Self { data: Bytes::new(data, layout.endian), time, end, lost })
    }

    /// The page of these bytes again, read as far as `mark`.
    pub(crate) fn resume(bytes: &'a [u8], layout: Layout, mark: Mark) -> Self {
        let Mark { at, end, time } = mark;
        let data = Bytes::new(bytes.get(at..end).unwrap_or(&[]), layout.endian);
        Self { data, time, end, lost: None }
    }
    /// How far the page has been read.
    pub(crate) fn mark(&self) -> Mark {
        Mark { at: self.end - self.data.rest.len(), end: self.end, time: self.time }
    }

    /// The next event.
    ///
    /// # Errors
    /// An event that reaches beyond the data of its page.
    pub(crate) fn next_event(&mut self) -> Result<Option<(u64, &'a [u8])>, &'static str> {
        const BEYOND: &str = "an event reaches beyond its page";
        while !self.data.rest.is_empty() {
            let word = self.data.u32().ok_or(BEYOND)?;
            let (type_len, delta) = match self.data.endian {
                Endian::Little => (word & 0x1f, word >> 5),
                Endian::Big => (word >> DELTA_BITS, word & ((1 << DELTA_BITS) - 1)),
            };
            let delta = u64::from(delta);
            match type_len {
                PADDING if delta == 0 => return Ok(None),
                PADDING => {
                    let length = self.data.u32().ok_or(BEYOND)?;
                    let rest = u64::from(length).checked_sub(4).ok_or(BEYOND)?;
                    self.data.take(rest).ok_or(BEYOND)?;
                    self.time = self.time.wrapping_add(delta);
                }
                TIME_EXTEND => {
                    let high = u64::from(self.data.u32().ok_or(BEYOND)?);
                    self.time = self.time.wrapping_add((high << DELTA_BITS) + delta);
                }
                TIME_STAMP => {
                    let high = u64::from(self.data.u32().ok_or(BEYOND)?);
                    let above = self.time >> STAMP_BITS << STAMP_BITS;
                    self.time = above | (high << DELTA_BITS) | delta;
                }
                0 => {
                    self.time = self.time.wrapping_add(delta);
                    // The length counts itself, and data are aligned to four bytes.
                    let length = u64::from(self.data.u32().ok_or(BEYOND)?);
                    let length = length.checked_sub(4).ok_or(BEYOND)?.next_multiple_of(4);
                    return self.data.take(length).ok_or(BEYOND).map(|raw| Some((self.time, raw)));
                }
                words => {
                    self.time = self.time.wrapping_add(delta);
                    let raw = self.data.take(4 * u64::from(words)).ok_or(BEYOND)?;
                    return Ok(Some((self.time, raw)));
                }
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYOUT: Layout = Layout { endian: Endian::Little, long_size: 8 };

    fn page(commit_flags: u64, words: &[u32], behind: &[u8]) -> Vec<u8> {
        let mut bytes = 1000u64.to_le_bytes().to_vec();
        bytes.extend((commit_flags | (4 * words.len() as u64)).to_le_bytes());
        words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        bytes.extend(behind);
        bytes
    }
    fn events(bytes: &[u8]) -> Result<Vec<(u64, usize)>, &'static str> {
        let mut page = Page::new(bytes, LAYOUT).expect("a head");
        let mut events = Vec::new();
        while let Some((time, raw)) = page.next_event()? {
            events.push((time, raw.len()));
        }
        Ok(events)
    }
    const fn word(type_len: u32, delta: u32) -> u32 {
        type_len | delta << 5
    }

    #[test]
    fn every_kind_of_word_is_read() {
        let words = [
            word(2, 5), // 1005, eight bytes
            0,
            0,
            word(TIME_EXTEND, 7),
            1, // + 2^27 + 7
            word(0, 1),
            9,
            0,
            0, // nine bytes counting the length: eight after padding
            word(PADDING, 3),
            8,
            0, // skipped, + 3
            word(TIME_STAMP, 11),
            1 << 5, // absolute: 2^32 + 11
            word(1, 0),
            0,
            word(PADDING, 0),
            77,
            77, // the end
        ];
        let extended = 1005 + (1 << 27) + 7 + 1;
        let expect = vec![(1005, 8), (extended, 8), ((1 << 32) + 11, 4)];
        assert_eq!(events(&page(0, &words, &[])), Ok(expect));
    }

    #[test]
    fn losses_are_told_with_and_without_their_number() {
        let lost = |bytes: &[u8]| Page::new(bytes, LAYOUT).expect("a head").lost;
        assert_eq!(lost(&page(0, &[], &[])), None);
        assert_eq!(lost(&page(COMMIT_LOST, &[], &[])), Some(LostBefore { count: None }));
        let counted = page(COMMIT_LOST | COMMIT_LOST_COUNTED, &[], &17u64.to_le_bytes());
        assert_eq!(lost(&counted), Some(LostBefore { count: Some(17) }));
    }

    #[test]
    fn event_beyond_its_page_is_an_error() {
        for words in
            [&[word(3, 0), 0][..], &[word(0, 0)], &[word(0, 0), 3], &[word(PADDING, 1), 99]]
        {
            assert!(events(&page(0, words, &[])).is_err(), "{words:?}");
        }
        let mut cut = page(0, &[word(1, 0), 0], &[]);
        cut.pop();
        assert!(Page::new(&cut, LAYOUT).is_err());
        assert!(Page::new(&cut[..12], LAYOUT).is_err());
    }
}
