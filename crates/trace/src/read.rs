// SPDX-License-Identifier: GPL-2.0-only
//! One way in for every form of trace.

use std::io::BufRead;

use schedlab_units::Located;

use crate::comms::Comms;
use crate::format::{Format, detect};
use crate::sink::{Collect, RecordSink};
use crate::summary::{Read, ReadSummary};
use crate::{slt, text};

/// Reads a trace of any form into `sink`; what was found, and the names.
///
/// # Errors
/// An empty file; a file that is no trace, or one of a form that is not read, with the way to
/// convert it; a truncated or corrupted one, with the line or the byte offset of the fault.
pub fn read_into<R: BufRead>(
    mut input: R,
    sink: &mut dyn RecordSink,
) -> Result<(ReadSummary, Comms), Located> {
    let start = input
        .fill_buf()
        .map_err(|error| Located::whole(format!("cannot read the trace: {error}")))?;
    if start.is_empty() {
        return Err(text::empty());
    }
    match detect(start) {
        Some(format) => read_as(format, input, sink),
        None => text::read_text(input, sink),
    }
}

/// Reads a trace of this form into `sink`, without looking for others.
///
/// # Errors
/// As [`read_into`].
pub fn read_as<R: BufRead>(
    format: Format,
    input: R,
    sink: &mut dyn RecordSink,
) -> Result<(ReadSummary, Comms), Located> {
    match format {
        Format::PerfScript => text::read_perf_script(input, sink),
        Format::FtraceText => text::read_ftrace(input, sink),
        Format::Slt => slt::read_slt(input, sink),
        other => Err(other.not_read()),
    }
}

/// Reads a trace of any form into memory.
///
/// # Errors
/// As [`read_into`].
pub fn read<R: BufRead>(input: R) -> Result<Read, Located> {
    let mut sink = Collect::new();
    let (summary, comms) = read_into(input, &mut sink)?;
    let recording = sink.finish(comms, summary.n_cpus);
    Ok(Read { recording, summary })
}
