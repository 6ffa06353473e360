// SPDX-License-Identifier: GPL-2.0-only
//! Blocks: frames of one piece, with their length and checksum in front.

use super::frame::{self, Frame};
use super::message::Message;
use crate::checksum::Checksum;

/// Bytes in front of a block's frames: their length (u32), then their checksum (u64).
pub const PREFIX: usize = 12;

/// From this size on a block is full.
const FULL: usize = 64 << 10;

/// Longest block that is read; a full one and its last frame are far below it.
pub(super) const MAX_BLOCK: usize = 1 << 20;

/// Frames that are written in one piece.
#[derive(Debug)]
pub struct Block(Vec<u8>);

impl Block {
    /// An empty one, with room for all it will ever hold.
    pub fn new() -> Self {
        Self::reuse(Vec::with_capacity(FULL + (4 << 10)))
    }

    /// An empty one in the memory of another.
    pub fn reuse(mut bytes: Vec<u8>) -> Self {
        bytes.clear();
        bytes.resize(PREFIX, 0);
        Self(bytes)
    }

    /// Appends a frame.
    pub fn push(&mut self, frame: &Frame) {
        frame.write(&mut self.0);
    }

    /// Appends [`Frame::Record`] without a copy of the record.
    pub fn push_record(&mut self, message: &Message) {
        frame::record(&mut self.0, message);
    }

    /// Whether no frame is in it.
    pub fn is_empty(&self) -> bool {
        self.0.len() == PREFIX
    }

    /// Whether it should be written and another one begun.
    pub fn is_full(&self) -> bool {
        self.0.len() >= FULL
    }

    /// The bytes of the file.
    pub fn seal(mut self) -> Vec<u8> {
        let length = u32::try_from(self.0.len() - PREFIX).expect("a block is small");
        let sum = sum(&self.0[PREFIX..]);
        self.0[..4].copy_from_slice(&length.to_le_bytes());
        self.0[4..PREFIX].copy_from_slice(&sum.to_le_bytes());
        self.0
    }
}

impl Default for Block {
    fn default() -> Self {
        Self::new()
    }
}

/// The checksum of a block's frames.
pub(super) fn sum(frames: &[u8]) -> u64 {
    let mut checksum = Checksum::new();
    checksum.update(frames);
    checksum.value()
}
