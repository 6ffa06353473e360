// SPDX-License-Identifier: GPL-2.0-only
//! The pages of one CPU, one after the other.

use std::io::{Read, Seek};

use schedlab_units::Located;

use super::head::{CpuData, Head, Packing, fault, part};
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
    packing: Packing,
    /// The most that a chunk may unpack to.
    room: u64,
    left: u32,
    /// The current chunk: where it stands, what it holds, how much of that is taken.
    at: u64,
    bytes: Vec<u8>,
    used: usize,
}

impl Pages {
    /// The pages of `data`; no chunk of them may take more than `room` bytes in memory.
    pub(super) fn open<R: Read + Seek>(
        input: &mut R,
        data: CpuData,
        head: &Head,
        room: u64,
    ) -> Result<Self, Located> {
        let end = data.offset.checked_add(data.size);
        let end = end.ok_or_else(|| fault(data.offset, "pages lie beyond 64 bits"))?;
        let (page_size, endian) = (u64::from(head.page_size), head.layout.endian);
        let mut pages = Self { page_size, endian, at: data.offset, end, chunks: None };
        if let Some(packing) = head.packing.filter(|_| data.size > 0) {
            let left = pages.number(input)?;
            let (at, bytes, used) = (0, Vec::new(), 0);
            pages.chunks = Some(Chunks { packing, room, left, at, bytes, used });
        }
        Ok(pages)
    }

    fn number<R: Read + Seek>(&mut self, input: &mut R) -> Result<u32, Located> {
        let bytes = self.packed(input, 4)?;
        Ok(Bytes::new(&bytes, self.endian).u32().unwrap_or(0))
    }

    /// The next `n` bytes of packed pages. Their end is where their number says: trace-cmd before
    /// 3.2 gives the part of the CPU a size without the heads of the chunks.
    fn packed<R: Read + Seek>(&mut self, input: &mut R, n: u32) -> Result<Vec<u8>, Located> {
        let bytes = part(input, self.at, u64::from(n), "packed pages")?;
        self.at += u64::from(n);
        Ok(bytes)
    }

    /// The next page and where it stands (a packed one: where its chunk does).
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
        while chunks.used == chunks.bytes.len() && chunks.left > 0 {
            let at = self.at;
            let (packed, size) = (self.number(input)?, u64::from(self.number(input)?));
            if size > chunks.room {
                return Err(fault(at, format!("{size} bytes of pages in one piece")));
            }
            let packed = self.packed(input, packed)?;
            let unpacked = chunks.packing.unpack(&packed, size);
            chunks.bytes = unpacked.map_err(|why| fault(at, why))?;
            (chunks.at, chunks.used, chunks.left) = (at, 0, chunks.left - 1);
        }
        let rest = &chunks.bytes[chunks.used..];
        let n = rest.len().min(self.page_size as usize);
        let page = (n > 0).then(|| (chunks.at, rest[..n].to_vec()));
        chunks.used += n;
        self.chunks = Some(chunks);
        Ok(page)
    }
}
