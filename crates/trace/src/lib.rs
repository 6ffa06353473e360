// SPDX-License-Identifier: GPL-2.0-only
//! Readers and writers of scheduler traces.
//!
//! Reads what tools print about real kernels (`perf script`, tracefs, `trace-cmd report`) into a
//! [`schedlab_policy_api::Recording`], and writes simulated runs as ftrace text and as our own
//! `.slt` files, which it reads back.
//! It does not interpret traces: turning a recording into a workload is the `workload` crate's job.
#![forbid(unsafe_code)]

mod bytes;
mod checksum;
mod chrome;
mod comms;
mod compression;
mod csv;
mod figures;
mod format;
mod ftrace_writer;
mod intake;
mod kernel_view;
mod live;
mod out;
mod perf_data;
mod perfetto;
mod read;
mod recorder;
mod reorder;
mod ring;
mod runqueue;
mod sink;
pub mod slt;
mod summary;
mod tep;
mod text;
mod trace_dat;
pub mod transcript;
mod written;

pub use chrome::ChromeWriter;
pub use comms::Comms;
pub use csv::CsvWriter;
pub use figures::{RecordFigures, ThreadFigures};
pub use format::{Format, detect};
pub use ftrace_writer::FtraceWriter;
pub use intake::UNKNOWN_PID;
pub use kernel_view::TaskLabel;
pub use live::Live;
pub use perfetto::{PerfettoWriter, SideBySide};
pub use read::{read, read_as, read_file, read_into};
pub use recorder::Recorder;
pub use sink::{Collect, PolicyValue, RecordSink, RecordWriter, ValueOf};
pub use summary::{Read, ReadSummary, event_name};
pub use text::MAX_LINE_BYTES;
pub use written::{WRITTEN, WrittenForm, written_form};
