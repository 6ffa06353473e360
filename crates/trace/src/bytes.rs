// SPDX-License-Identifier: GPL-2.0-only
//! Numbers and strings from bytes of either order, with every length checked.

/// Order of the bytes of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endian {
    Little,
    Big,
}

impl Endian {
    /// The number that these bytes hold; at most eight.
    pub(crate) fn unsigned(self, bytes: &[u8]) -> u64 {
        let fold = |value: u64, byte: &u8| (value << 8) | u64::from(*byte);
        match self {
            Self::Little => bytes.iter().rev().fold(0, fold),
            Self::Big => bytes.iter().fold(0, fold),
        }
    }
}

/// A reader over bytes in memory; `None` where they end too early.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes<'a> {
    pub(crate) rest: &'a [u8],
    pub(crate) endian: Endian,
}

impl<'a> Bytes<'a> {
    pub(crate) fn new(rest: &'a [u8], endian: Endian) -> Self {
        Self { rest, endian }
    }
    pub(crate) fn take(&mut self, n: u64) -> Option<&'a [u8]> {
        let n = usize::try_from(n).ok().filter(|n| *n <= self.rest.len())?;
        let (head, rest) = self.rest.split_at(n);
        self.rest = rest;
        Some(head)
    }
    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|b| b[0])
    }
    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.number(2).map(|n| n as u16)
    }
    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.number(4).map(|n| n as u32)
    }
    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.number(8)
    }
    fn number(&mut self, n: u64) -> Option<u64> {
        let endian = self.endian;
        self.take(n).map(|bytes| endian.unsigned(bytes))
    }
    /// A string that a NUL ends; the NUL is taken too.
    pub(crate) fn c_string(&mut self) -> Option<&'a [u8]> {
        let end = self.rest.iter().position(|b| *b == 0)?;
        let text = &self.rest[..end];
        self.rest = &self.rest[end + 1..];
        Some(text)
    }
}

/// The bytes before the first NUL.
pub(crate) fn until_nul(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_the_order_of_bytes() {
        let mut little = Bytes::new(&[1, 2, 3, 4, 5, 6, 7], Endian::Little);
        assert_eq!(
            (little.u16(), little.u32(), little.u8()),
            (Some(0x201), Some(0x0605_0403), Some(7))
        );
        assert_eq!(little.u8(), None);
        let mut big = Bytes::new(&[1, 2, 3], Endian::Big);
        assert_eq!((big.u16(), big.u32()), (Some(0x102), None));
    }

    #[test]
    fn string_without_its_end_is_none() {
        let mut bytes = Bytes::new(b"ab\0cd", Endian::Little);
        assert_eq!(bytes.c_string(), Some(&b"ab"[..]));
        assert_eq!(bytes.c_string(), None);
    }
}
