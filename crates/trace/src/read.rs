// SPDX-License-Identifier: GPL-2.0-only
//! One way in for every form of trace.

use std::io::{self, BufReader, Cursor, Read, Seek, SeekFrom};

use schedlab_units::Located;

use crate::comms::Comms;
use crate::compression::unpack;
use crate::format::{Format, detect};
use crate::sink::{Collect, RecordSink};
use crate::summary::{Read as Trace, ReadSummary};
use crate::{chrome, perf_data, perfetto, slt, text, trace_dat, transcript};

/// Bytes by which a form is recognised, and size of the buffers of streams.
const HEAD: usize = 1 << 16;

/// The most that a stream may hold of a form that needs seeking.
const IN_MEMORY_MAX: u64 = 1 << 30;

/// Reads a trace of any form from a file into `sink`, unpacking it if need be; what was found, and
/// the names.
///
/// # Errors
/// An empty file; a file that is no trace, or one of a form that is not read, with the way to
/// convert it; a truncated or corrupted one, with the line or the byte offset of the fault.
pub fn read_file<R: Read + Seek>(
    mut input: R,
    sink: &mut dyn RecordSink,
) -> Result<(ReadSummary, Comms), Located> {
    let start = head(&mut input)?;
    input.seek(SeekFrom::Start(0)).map_err(|error| cannot_read(&error))?;
    match detect(&start) {
        Some(Format::PerfData) => perf_data::read_perf_data(input, sink),
        Some(Format::TraceDat) => trace_dat::read_trace_dat(input, sink),
        _ => read_into(input, sink),
    }
}

/// Reads a trace of any form from a stream into `sink`.
///
/// A form that needs seeking is taken into memory first.
///
/// # Errors
/// As [`read_file`].
pub fn read_into<R: Read>(
    input: R,
    sink: &mut dyn RecordSink,
) -> Result<(ReadSummary, Comms), Located> {
    read_stream(input, None, sink)
}

/// Reads a trace of this form into `sink`, without looking for others.
///
/// # Errors
/// As [`read_file`].
pub fn read_as<R: Read>(
    format: Format,
    input: R,
    sink: &mut dyn RecordSink,
) -> Result<(ReadSummary, Comms), Located> {
    let buffered = |input| BufReader::with_capacity(HEAD, input);
    match format {
        Format::PerfScript => text::read_perf_script(buffered(input), sink),
        Format::FtraceText => text::read_ftrace(buffered(input), sink),
        Format::Slt => slt::read_slt(buffered(input), sink),
        Format::LiveTranscript => transcript::read_transcript(buffered(input), sink),
        Format::Perfetto => perfetto::read_perfetto(buffered(input), sink),
        Format::Chrome => chrome::read_chrome(buffered(input), sink),
        Format::PerfData => perf_data::read_perf_data(in_memory(input)?, sink),
        Format::TraceDat => trace_dat::read_trace_dat(in_memory(input)?, sink),
        other => Err(other.not_read()),
    }
}

/// Reads a trace of any form into memory.
///
/// # Errors
/// As [`read_file`].
pub fn read<R: Read>(input: R) -> Result<Trace, Located> {
    let mut sink = Collect::new();
    let (summary, comms) = read_into(input, &mut sink)?;
    let recording = sink.finish(comms, summary.n_cpus);
    Ok(Trace { recording, summary })
}

/// `packed` tells how the stream was packed.
fn read_stream<R: Read>(
    mut input: R,
    packed: Option<Format>,
    sink: &mut dyn RecordSink,
) -> Result<(ReadSummary, Comms), Located> {
    let start = head(&mut input)?;
    let form = detect(&start);
    let whole = Cursor::new(&start).chain(input);
    match (form, packed) {
        (Some(Format::Gzip | Format::Zstd), Some(outside)) => {
            let message = format!("the file is packed twice, the outer time with {outside}");
            Err(Located::whole(message).hint("unpack it once"))
        }
        (Some(packing @ (Format::Gzip | Format::Zstd)), None) => {
            let whole: Box<dyn Read + '_> = Box::new(whole);
            read_stream(unpack(packing, whole), Some(packing), sink)
        }
        (Some(format), _) => read_as(format, whole, sink),
        (None, _) if start.is_empty() => Err(text::empty()),
        (None, _) => text::read_text(BufReader::with_capacity(HEAD, whole), sink),
    }
}

fn in_memory<R: Read>(input: R) -> Result<Cursor<Vec<u8>>, Located> {
    let mut bytes = Vec::new();
    let read = input.take(IN_MEMORY_MAX + 1).read_to_end(&mut bytes);
    read.map_err(|error| cannot_read(&error))?;
    if bytes.len() as u64 > IN_MEMORY_MAX {
        let message = format!("the stream holds more than {IN_MEMORY_MAX} bytes");
        return Err(Located::whole(message).hint("give it as an unpacked file"));
    }
    Ok(Cursor::new(bytes))
}

/// The first bytes of `input`, up to [`HEAD`].
fn head<R: Read>(input: &mut R) -> Result<Vec<u8>, Located> {
    let mut start = Vec::with_capacity(HEAD);
    let mut chunk = vec![0; HEAD];
    while start.len() < HEAD {
        match input.read(&mut chunk[..HEAD - start.len()]) {
            Ok(0) => break,
            Ok(n) => start.extend_from_slice(&chunk[..n]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            // Reading on meets the fault again, and then the place is known.
            Err(_) if !start.is_empty() => break,
            Err(error) => return Err(cannot_read(&error)),
        }
    }
    Ok(start)
}

fn cannot_read(error: &io::Error) -> Located {
    Located::whole(format!("cannot read the trace: {error}"))
}
