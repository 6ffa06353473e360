// SPDX-License-Identifier: GPL-2.0-only
//! Chrome's JSON, for viewers that read nothing else: a row per CPU.
//!
//! One event a line. Every record has a line whose `args` hold all of it, so that our own files
//! read back exactly; files of others are not read.
//! Source: spec formats-and-ecosystem §3.3.

mod reader;
mod record;
mod writer;

pub(crate) use reader::{looks_like, read_chrome};
pub use writer::ChromeWriter;

/// First line of our files; the version is that of what `args` hold.
const FIRST_LINE: &str = "{\"otherData\":{\"writer\":\"schedlab\",\"version\":1},\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
/// Last line.
const LAST_LINE: &str = "{}]}";
