// SPDX-License-Identifier: GPL-2.0-only
//! The wire format of protobuf: written into a buffer, read with every length checked.

/// A message in the making.
#[derive(Clone, Debug, Default)]
pub(super) struct Message {
    pub(super) bytes: Vec<u8>,
}

impl Message {
    fn raw_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
    pub(super) fn varint(&mut self, field: u32, value: u64) {
        self.raw_varint(u64::from(field) << 3);
        self.raw_varint(value);
    }
    /// A negative number takes ten bytes, as protobuf wants it.
    pub(super) fn signed(&mut self, field: u32, value: i64) {
        self.varint(field, value as u64);
    }
    pub(super) fn fixed64(&mut self, field: u32, value: u64) {
        self.raw_varint((u64::from(field) << 3) | 1);
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }
    pub(super) fn blob(&mut self, field: u32, bytes: &[u8]) {
        self.raw_varint((u64::from(field) << 3) | 2);
        self.raw_varint(bytes.len() as u64);
        self.bytes.extend_from_slice(bytes);
    }
    pub(super) fn message(&mut self, field: u32, message: &Self) {
        self.blob(field, &message.bytes);
    }
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
    }
}

/// A value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Number(u64),
    Blob(&'a [u8]),
}

impl<'a> Value<'a> {
    pub(super) fn number(self) -> u64 {
        match self {
            Self::Number(n) => n,
            Self::Blob(_) => 0,
        }
    }
    pub(super) fn blob(self) -> &'a [u8] {
        match self {
            Self::Number(_) => &[],
            Self::Blob(bytes) => bytes,
        }
    }
}

/// Reads a number in LEB128; it and the number of its bytes.
pub(super) fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0u64;
    for (at, byte) in bytes.iter().take(10).enumerate() {
        value |= u64::from(byte & 0x7f).checked_shl(7 * at as u32)?;
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
    }
    None
}

/// The fields of a message, one after the other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields<'a> {
    whole: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    pub(super) fn new(whole: &'a [u8]) -> Self {
        Self { whole, at: 0 }
    }
    /// The next field; none at the end.
    ///
    /// # Errors
    /// A malformed message, with the offset inside it.
    pub(super) fn next(&mut self) -> Result<Option<(u32, Value<'a>)>, usize> {
        if self.at == self.whole.len() {
            return Ok(None);
        }
        let start = self.at;
        self.field().map(Some).ok_or(start)
    }
    fn field(&mut self) -> Option<(u32, Value<'a>)> {
        let tag = self.varint()?;
        let field = u32::try_from(tag >> 3).ok().filter(|field| *field > 0)?;
        let value = match tag & 7 {
            0 => Value::Number(self.varint()?),
            1 => Value::Number(u64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            2 => {
                let length = self.varint()?;
                Value::Blob(self.take(length)?)
            }
            5 => Value::Number(u64::from(u32::from_le_bytes(self.take(4)?.try_into().ok()?))),
            _ => return None,
        };
        Some((field, value))
    }
    fn varint(&mut self) -> Option<u64> {
        let (value, length) = varint(&self.whole[self.at..])?;
        self.at += length;
        Some(value)
    }
    fn take(&mut self, n: u64) -> Option<&'a [u8]> {
        let n = usize::try_from(n).ok().filter(|n| *n <= self.whole.len() - self.at)?;
        let bytes = &self.whole[self.at..self.at + n];
        self.at += n;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_as_written() {
        let mut message = Message::default();
        message.varint(1, u64::MAX);
        message.signed(2, -5);
        message.blob(50_001, b"abc");
        let mut fields = Fields::new(&message.bytes);
        assert_eq!(fields.next(), Ok(Some((1, Value::Number(u64::MAX)))));
        assert_eq!(fields.next(), Ok(Some((2, Value::Number(-5i64 as u64)))));
        assert_eq!(fields.next(), Ok(Some((50_001, Value::Blob(b"abc")))));
        assert_eq!(fields.next(), Ok(None));
    }

    #[test]
    fn message_malformed_says_where() {
        for (bytes, at) in [
            (&[0x08][..], 0),
            (&[0x08, 1, 0x12, 5, 0], 2),
            (&[0x08, 1, 0x0b], 2),
            (&[0x00, 1], 0),
            (&[0xff; 12], 0),
        ] {
            let mut fields = Fields::new(bytes);
            let error = loop {
                match fields.next() {
                    Ok(Some(_)) => {}
                    Ok(None) => panic!("{bytes:?} is malformed"),
                    Err(at) => break at,
                }
            };
            assert_eq!(error, at, "{bytes:?}");
        }
    }
}
