// SPDX-License-Identifier: GPL-2.0-only
//! The pages of one CPU, one after the other.

use std::io::{Read, Seek};

use schedlab_units::Located;

use super::head::{CpuData, fault, part, unpack};
use crate::bytes::{Bytes, Endian};

/// Where the pages of a CPU come from.
#[derive(Debug)]
pub(super) struct Pages {
    page_size: u64,
    endian: Endian,
    /// Next byte of the file, and the end of what belongs to the CPU.
    at: u64,
    end: u64,
    chunks: Option<Chunks>,
}

/// Packed pages come in chunks.
#[derive(Debug)]
struct Chunks {
    left: u32,
    bytes: Vec<u8>,
    used: usize,
}

impl Pages {
    pub(super) fn open<R: Read + Seek>(
        input: &mut R,
        data: CpuData,
        page_size: u32,
        endian: Endian,
        is_packed: bool,
    ) -> Result<Self, Located> {
        let end = data.offset.checked_add(data.size);
        let end = end.ok_or_else(|| fault(data.offset, "pages lie beyond 64 bits"))?;
        let mut pages =
            Self { page_size: u64::from(page_size), endian, at: data.offset, end, chunks: None };
        if is_packed && data.size > 0 {
            let left = pages.number(input)?;
            pages.chunks = Some(Chunks { left, bytes: Vec::new(), used: 0 });
        }
        Ok(pages)
    }

    fn number<R: Read + Seek>(&mut self, input: &mut R) -> Result<u32, Located> {
        let bytes = part(input, self.at, 4, "packed pages")?;
        self.at += 4;
        Ok(Bytes::new(&bytes, self.endian).u32().unwrap_or(0))
    }

    /// The next page and where it stands (a packed one: where its chunk ends).
    pub(super) fn next<R: Read + Seek>(
        &mut self,
        input: &mut R,
    ) -> Result<Option<(u64, Vec<u8>)>, Located> {
        if self.chunks.is_some() {
            return self.next_packed(input);
        }
        if self.at >= self.end {
            return Ok(None);
        }
        let at = self.at;
        let page = part(input, at, self.page_size.min(self.end - at), "pages")?;
        self.at += page.len() as u64;
        Ok(Some((at, page)))
    }

    fn next_packed<R: Read + Seek>(
        &mut self,
        input: &mut R,
    ) -> Result<Option<(u64, Vec<u8>)>, Located> {
        let Some(mut chunks) = self.chunks.take() else { return Ok(None) };
        if chunks.used == chunks.bytes.len() && chunks.left > 0 {
            let (packed, size) = (self.number(input)?, self.number(input)?);
            let at = self.at;
            let packed = part(input, at, u64::from(packed), "packed pages")?;
            self.at += packed.len() as u64;
            chunks.bytes = unpack(&packed, u64::from(size)).map_err(|why| fault(at, why))?;
            (chunks.used, chunks.left) = (0, chunks.left - 1);
        }
        let rest = &chunks.bytes[chunks.used..];
        let n = rest.len().min(self.page_size as usize);
        let page = (n > 0).then(|| (self.at, rest[..n].to_vec()));
        chunks.used += n;
        self.chunks = Some(chunks);
        Ok(page)
    }
}
