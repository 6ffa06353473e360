// SPDX-License-Identifier: GPL-2.0-only
//! Transcripts of live runs: what the relay reported and what the host decided, in order.
//!
//! The layout of the bytes is described in `docs/transcript.md`. The records themselves are data of
//! this crate, below the host that acts on them, so that a transcript is read like every other trace.

mod block;
mod events;
mod frame;
mod header;
pub mod message;
mod reader;

pub use block::{Block, PREFIX};
pub(crate) use events::read_transcript;
pub use frame::{End, Frame, Output};
pub use header::{Header, SCHEMA};
pub use reader::{Transcript, open};

/// First bytes of every file; the header follows as a line of its own.
pub const MAGIC: [u8; 8] = *b"\x89LIV\r\n\x1a\n";

/// Most bytes of the header.
const MAX_HEADER: u64 = 1 << 20;
