// SPDX-License-Identifier: GPL-2.0-only
//! Perfetto's protobuf traces: ftrace packets written and read, counters written.
//!
//! What a record holds beyond Perfetto's own messages (exact numbers of lost events, the time of
//! `sched_stat_runtime`, a context whose name the switches do not tell) stands in fields with
//! numbers of our own, which other readers skip.
//! Source: spec formats-and-ecosystem §3.1; field numbers of protos of v58.

mod fields;
mod message;
mod names;
mod reader;
mod side_by_side;
mod wire;
mod writer;

pub(crate) use reader::{looks_like, read_perfetto};
pub use side_by_side::SideBySide;
pub use writer::PerfettoWriter;
