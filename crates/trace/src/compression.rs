// SPDX-License-Identifier: GPL-2.0-only
//! Files packed with gzip or zstd, recognised by their first bytes.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;
use schedlab_units::Located;

use crate::format::Format;

/// The unpacked bytes of `input`. A packed file that was cut or is damaged fails while reading.
///
/// # Errors
/// A damaged head.
pub(crate) fn unpack<'r, R: Read + 'r>(
    packed: Format,
    input: R,
) -> Result<Box<dyn Read + 'r>, Located> {
    match packed {
        Format::Zstd => {
            let decoder = StreamingDecoder::new(input).map_err(|error| {
                Located::whole(format!("the file is no valid {packed} file: {error}"))
            })?;
            Ok(Box::new(Unpacked { inner: decoder, packed }))
        }
        _ => Ok(Box::new(Unpacked { inner: MultiGzDecoder::new(input), packed })),
    }
}

/// Says in its errors that it is the packing that is damaged.
struct Unpacked<R> {
    inner: R,
    packed: Format,
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buf).map_err(|error| {
            let what = match error.kind() {
                io::ErrorKind::Interrupted => return error,
                io::ErrorKind::UnexpectedEof => "was cut".to_string(),
                _ => format!("is damaged ({error})"),
            };
            io::Error::new(io::ErrorKind::InvalidData, format!("the {} file {what}", self.packed))
        })
    }
}
