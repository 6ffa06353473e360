// SPDX-License-Identifier: GPL-2.0-only
//! `.slt`, the native trace format: every event of a simulated run, exactly and in order.
//!
//! The layout of the bytes is described in `docs/slt-format.md`.

mod code;
mod header;
mod input;
mod reader;
mod writer;

pub use header::SltHeader;
pub(crate) use reader::read_slt;
pub use reader::{SltReader, SltRecord};
pub use writer::SltWriter;

/// First bytes of every file. The line ends in it show when a transfer changed line ends.
pub const MAGIC: [u8; 8] = *b"\x89SLT\r\n\x1a\n";

/// Version of the format that this crate writes, and the newest it reads.
pub const VERSION: u64 = 1;

/// Longest header, bytes.
const MAX_HEADER: u64 = 1 << 20;

/// Longest task name, bytes.
const MAX_NAME: usize = 4096;
