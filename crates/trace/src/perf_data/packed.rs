// SPDX-License-Identifier: GPL-2.0-only
//! Records that `perf record -z` packed: one stream of zstd, cut into records of its own.
//!
//! perf flushes the stream but never ends it, and the decoder keeps back as much as later blocks
//! may refer to, so the last records come out only when an empty block is put behind them.
//! Blocks are unpacked one at a time: a few bytes may stand for 128 KiB.
//! Source: Linux 6.12 tools/perf/util/zstd.c, tools/perf/builtin-record.c (`zstd_compress`); RFC
//! 8878 §3.1.1.

use ruzstd::decoding::FrameDecoder;

use super::reader::Header;
use crate::bytes::{Bytes, Endian};

/// The last block of a frame, without content.
const LAST_BLOCK: [u8; 3] = [1, 0, 0];
/// Offset of the flags in the head of a frame, and the one of a checksum behind the last block.
const FRAME_FLAGS: usize = 4;
const FLAG_CHECKSUM: u8 = 1 << 2;
/// Longest head of a frame.
const FRAME_HEAD_MAX: usize = 18;
/// Most bytes of a block, and what it unpacks to.
const BLOCK_MAX: usize = 128 << 10;
/// The most that later blocks may refer to, which is held in memory: that of level 22, the highest.
const WINDOW_MAX: u64 = 128 << 20;

/// Unpacks the stream piece by piece.
pub(super) struct Unpacker {
    decoder: FrameDecoder,
    packed: Queue,
    plain: Queue,
    /// Room for a block.
    out: Vec<u8>,
}

/// Bytes that are taken from the front.
#[derive(Default)]
struct Queue {
    bytes: Vec<u8>,
    used: usize,
}

impl Queue {
    fn rest(&self) -> &[u8] {
        &self.bytes[self.used..]
    }
    fn push(&mut self, bytes: &[u8]) {
        if self.used > BLOCK_MAX {
            self.bytes.drain(..self.used);
            self.used = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }
}

impl Unpacker {
    pub(super) fn new() -> Self {
        let (packed, plain) = (Queue::default(), Queue::default());
        Self { decoder: decoder(), packed, plain, out: vec![0; BLOCK_MAX] }
    }

    /// Takes a piece of the stream.
    pub(super) fn push(&mut self, piece: &[u8]) {
        self.packed.push(piece);
    }

    /// Ends the stream, after all records were taken.
    ///
    /// # Errors
    /// A stream that was cut inside a block.
    pub(super) fn finish(&mut self) -> Result<(), String> {
        if !self.packed.rest().is_empty() {
            return Err("the compressed records end in the middle of a block".to_string());
        }
        if !self.decoder.is_finished() {
            self.push(&LAST_BLOCK);
        }
        Ok(())
    }

    /// Whether every byte was taken.
    pub(super) fn is_empty(&self) -> bool {
        self.packed.rest().is_empty() && self.plain.rest().is_empty()
    }

    /// The next complete record, its content in `body`; `None` when more pieces are needed.
    ///
    /// # Errors
    /// What is no valid zstd; a record shorter than its header.
    pub(super) fn next_record(
        &mut self,
        endian: Endian,
        body: &mut Vec<u8>,
    ) -> Result<Option<Header>, String> {
        loop {
            let mut fields = Bytes::new(self.plain.rest(), endian);
            if let (Some(kind), Some(misc), Some(size)) = (fields.u32(), fields.u16(), fields.u16())
            {
                let length = u64::from(size).checked_sub(8);
                let length = length.ok_or_else(|| format!("a record of {size} bytes"))?;
                if let Some(content) = fields.take(length) {
                    body.clear();
                    body.extend_from_slice(content);
                    self.plain.used += usize::from(size);
                    return Ok(Some(Header { kind, misc }));
                }
            }
            if !self.unpack_block()? {
                return Ok(None);
            }
        }
    }

    /// Unpacks a block; false when there is no whole one.
    fn unpack_block(&mut self) -> Result<bool, String> {
        let damaged =
            |why: &dyn std::fmt::Display| format!("the compressed records are damaged: {why}");
        if self.decoder.is_finished() && self.decoder.can_collect() == 0 {
            if self.packed.rest().len() < FRAME_HEAD_MAX {
                return Ok(false);
            }
            let mut rest = self.packed.rest();
            let before = rest.len();
            let flags = rest[FRAME_FLAGS];
            self.decoder = decoder();
            self.decoder.init(&mut rest).map_err(|error| damaged(&error))?;
            self.packed.used += before - rest.len();
            // The decoder would wait for one without telling so.
            if flags & FLAG_CHECKSUM != 0 {
                return Err(damaged(&"a checksum, which perf does not write"));
            }
        }
        let block = whole_block(self.packed.rest()).map_err(|why| damaged(&why))?;
        let (read, written) = self
            .decoder
            .decode_from_to(&self.packed.rest()[..block], &mut self.out)
            .map_err(|error| damaged(&error))?;
        let taken = read.min(block);
        self.packed.used += taken;
        self.plain.push(&self.out[..written]);
        Ok(taken > 0 || written > 0)
    }
}

fn decoder() -> FrameDecoder {
    let mut decoder = FrameDecoder::new();
    decoder.set_max_window_size(WINDOW_MAX);
    decoder
}

/// Length of the block that `bytes` begin with; 0 when it is not whole.
fn whole_block(bytes: &[u8]) -> Result<usize, &'static str> {
    let Some(head) = bytes.get(..3) else { return Ok(0) };
    let head = Endian::Little.unsigned(head) as usize;
    let (kind, size) = (head >> 1 & 3, head >> 3);
    if size > BLOCK_MAX {
        return Err("a block is too long");
    }
    // A run is stored as one byte.
    let length = 3 + if kind == 1 { 1 } else { size };
    Ok(if bytes.len() < length { 0 } else { length })
}
