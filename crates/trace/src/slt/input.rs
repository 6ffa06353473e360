// SPDX-License-Identifier: GPL-2.0-only
//! Bytes and numbers of a file, counted and summed.

use std::io::BufRead;

use schedlab_units::Located;

use crate::checksum::Checksum;

/// A stream that knows where it is.
pub(super) struct Input<R> {
    inner: R,
    /// Bytes taken so far.
    pub(super) offset: u64,
    pub(super) checksum: Checksum,
}

/// Why nothing could be taken.
pub(super) enum Stop {
    /// The stream is over.
    End,
    /// Anything else, a lower-case fragment.
    Fault(String),
}

impl<R: BufRead> Input<R> {
    pub(super) fn new(inner: R) -> Self {
        Self { inner, offset: 0, checksum: Checksum::new() }
    }

    /// Whether the stream is over.
    pub(super) fn at_end(&mut self) -> Result<bool, Stop> {
        loop {
            match self.inner.fill_buf() {
                Ok(chunk) => return Ok(chunk.is_empty()),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Stop::Fault(format!("cannot read on: {error}"))),
            }
        }
    }

    pub(super) fn byte(&mut self) -> Result<u8, Stop> {
        if self.at_end()? {
            return Err(Stop::End);
        }
        // `at_end` filled the buffer, so this does not read.
        let byte = match self.inner.fill_buf() {
            Ok([byte, ..]) => *byte,
            _ => return Err(Stop::End),
        };
        self.inner.consume(1);
        self.offset += 1;
        self.checksum.update(&[byte]);
        Ok(byte)
    }

    pub(super) fn bytes(&mut self, n: usize) -> Result<Vec<u8>, Stop> {
        let mut bytes = Vec::with_capacity(n.min(4096));
        for _ in 0..n {
            bytes.push(self.byte()?);
        }
        Ok(bytes)
    }

    /// A number in LEB128.
    pub(super) fn varint(&mut self) -> Result<u64, Stop> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if shift == 63 && part > 1 {
                break;
            }
            value |= part << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Stop::Fault("a number does not fit 64 bits".to_string()))
    }

    pub(super) fn varint_u32(&mut self) -> Result<u32, Stop> {
        let value = self.varint()?;
        u32::try_from(value).map_err(|_| Stop::Fault(format!("{value} does not fit 32 bits")))
    }

    pub(super) fn u64_le(&mut self) -> Result<u64, Stop> {
        let mut value = 0;
        for shift in (0..64).step_by(8) {
            value |= u64::from(self.byte()?) << shift;
        }
        Ok(value)
    }
}

/// The fault with its place in the file.
pub(super) fn located(stop: Stop, offset: u64, record: u64) -> Located {
    let place = format!("byte {offset}, record {record}");
    match stop {
        Stop::End => Located::whole(format!("{place}: the file ends in the middle of a record"))
            .hint("the run that wrote it was interrupted, or the file was cut when it was copied"),
        Stop::Fault(message) => {
            Located::whole(format!("{place}: {message}")).hint("the file is damaged")
        }
    }
}
