// SPDX-License-Identifier: GPL-2.0-only
//! How sections and pages of version 7 are packed.

use std::io::Read;

use flate2::read::ZlibDecoder;
use ruzstd::decoding::StreamingDecoder;

/// A way of packing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Packing {
    Zstd,
    Zlib,
}

/// The most that the parts of a block may refer back to, which is held in memory.
const WINDOW_MAX: u64 = 32 << 20;

impl Packing {
    /// Unpacks a block that says how long it becomes; the caller has checked that length.
    pub(super) fn unpack(self, packed: &[u8], size: u64) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        let read = match self {
            Self::Zlib => ZlibDecoder::new(packed)
                .take(size + 1)
                .read_to_end(&mut bytes)
                .map_err(|error| format!("a block is no valid zlib: {error}")),
            Self::Zstd => {
                let invalid = |error| format!("a block is no valid zstd: {error}");
                StreamingDecoder::new_with_max_window_size(packed, WINDOW_MAX)
                    .map_err(|error| invalid(error.to_string()))?
                    .take(size + 1)
                    .read_to_end(&mut bytes)
                    .map_err(|error| invalid(error.to_string()))
            }
        };
        read?;
        if bytes.len() as u64 != size {
            return Err(format!("a block should unpack to {size} bytes"));
        }
        Ok(bytes)
    }
}
