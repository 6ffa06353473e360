// SPDX-License-Identifier: GPL-2.0-only
//! Raw tracepoints: what their format texts say, and how a payload becomes a record.
//!
//! perf.data and trace.dat files carry these texts with them; a running kernel shows them in
//! `events/sched/*/format` of tracefs.
//! Source: spec formats-and-ecosystem §2.1, §2.2, §2.6.

mod decode;
mod format;
mod names;
mod tracing_data;

pub(crate) use decode::{Hit, Tracepoints};
pub(crate) use names::{Names, comm};
pub(crate) use tracing_data::{
    MAGIC, TracingData, parse_cmdlines, parse_formats, parse_header_info,
};
