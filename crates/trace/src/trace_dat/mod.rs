// SPDX-License-Identifier: GPL-2.0-only
//! `trace.dat`, written by trace-cmd: versions 6 and 7, the latter packed with zstd, zlib or not.
//!
//! Source: spec formats-and-ecosystem §2.7.

mod head;
mod options;
mod packing;
mod pages;
mod reader;

pub(crate) use reader::read_trace_dat;
