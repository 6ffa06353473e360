// SPDX-License-Identifier: GPL-2.0-only
//! `perf.data`, written by `perf record` and `perf sched record`: seekable files and pipes.
//!
//! Read here rather than by a library, because the one there is allocates what lengths in the file
//! ask for (decision 0265).
//! Source: spec formats-and-ecosystem §2.6.

mod attr;
mod file;
mod item;
mod order;
mod packed;
mod reader;
mod sample;

pub(crate) use reader::read_perf_data;
