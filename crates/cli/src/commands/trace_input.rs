// SPDX-License-Identifier: GPL-2.0-only
//! Traces that commands read: a file or standard input, of any form.

use std::fs::File;
use std::io::Read;

use schedlab_policy_api::Recording;
use schedlab_trace::{
    Collect, Comms, Format, ReadSummary, RecordSink, detect, read_file, read_into,
};
use schedlab_units::Located;

use crate::excerpt::Source;
use crate::exit::{Exit, Failure};

/// The name that messages give `file`.
pub(crate) fn shown_name(file: &str) -> &str {
    if file == "-" { "standard input" } else { file }
}

/// Reads the trace in `file` into `sink`; `-` is standard input.
///
/// # Errors
/// A file that cannot be opened (exit 2); one that is no trace or is damaged, with the place
/// (exit 3).
pub(crate) fn feed(file: &str, sink: &mut dyn RecordSink) -> Result<(ReadSummary, Comms), Failure> {
    let name = shown_name(file);
    if file == "-" {
        return read_into(std::io::stdin().lock(), sink)
            .map_err(|fault: Located| Failure::located(Exit::Input, name, &fault, &Source::Gone));
    }
    let input = File::open(file).map_err(|error| {
        Failure::new(Exit::Usage, format!("{file}: the trace cannot be read: {error}"))
    })?;
    read_file(input, sink)
        .map_err(|fault| Failure::located(Exit::Input, name, &fault, &source_of(file)))
}

/// Where the lines of `file` can be had again.
fn source_of(file: &str) -> Source<'_> {
    let mut start = Vec::new();
    let read = File::open(file).and_then(|input| input.take(16).read_to_end(&mut start));
    match detect(&start) {
        Some(Format::Gzip | Format::Zstd) => Source::Gone,
        _ if read.is_err() => Source::Gone,
        _ => Source::File(file),
    }
}

/// Reads the trace in `file` into memory.
///
/// # Errors
/// As [`feed`].
pub(crate) fn collect(file: &str) -> Result<(ReadSummary, Recording), Failure> {
    let mut sink = Collect::new();
    let (summary, comms) = feed(file, &mut sink)?;
    let recording = sink.finish(comms, summary.n_cpus);
    Ok((summary, recording))
}
