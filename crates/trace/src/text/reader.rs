// SPDX-License-Identifier: GPL-2.0-only
//! The two readers of text: which lines are records, which are decoration, which are faults.

use std::io::BufRead;

use schedlab_units::{CpuId, Located};

use super::body;
use super::lines::{Line, Lines, MAX_LINE_BYTES};
use super::prefix::{self, Layout, Prefix};
use super::scan::{Fault, find, take_unsigned, trim};
use crate::comms::Comms;
use crate::format::Format;
use crate::intake::{Intake, Stamp, StepBack};
use crate::sink::{Collect, RecordSink};
use crate::summary::ReadSummary;

/// Reads the text of `perf script`.
///
/// # Errors
/// A line that is neither a record nor decoration, a record whose body does not have the form of
/// its event, a clock that jumps back, a line longer than [`super::MAX_LINE_BYTES`], a file without
/// any scheduling event; all but the last with their place.
pub(crate) fn read_perf_script<R: BufRead>(
    input: R,
    sink: &mut dyn RecordSink,
) -> Result<(ReadSummary, Comms), Located> {
    read_lines(input, Layout::Perf, sink)
}

/// Reads the text of tracefs' `trace` file or of `trace-cmd report`.
///
/// # Errors
/// As [`read_perf_script`].
pub(crate) fn read_ftrace<R: BufRead>(
    input: R,
    sink: &mut dyn RecordSink,
) -> Result<(ReadSummary, Comms), Located> {
    read_lines(input, Layout::Ftrace, sink)
}

/// Reads a text whose form is not recognised, to say what is wrong with it.
///
/// # Errors
/// As [`read_perf_script`], or the likelier account of the other form.
pub(crate) fn read_text<R: BufRead>(
    mut input: R,
    sink: &mut dyn RecordSink,
) -> Result<(ReadSummary, Comms), Located> {
    let start = input
        .fill_buf()
        .map_err(|error| Located::whole(format!("cannot read the trace: {error}")))?;
    let head = start[..start.len().min(MAX_LINE_BYTES)].to_vec();
    read_perf_script(input, sink).map_err(|error| no_trace(error, &head))
}

/// The most helpful account of a file whose form is not recognised.
///
/// `error` is what reading it as `perf script` text gave, `head` its first bytes.
fn no_trace(error: Located, head: &[u8]) -> Located {
    if error.message != prefix::NOT_PERF {
        return error;
    }
    match read_ftrace(head, &mut Collect::new()) {
        Err(other) if other.message != prefix::NOT_FTRACE && other.at.is_some() => other,
        _ => Located { message: "this is no line of a scheduler trace".to_string(), ..error }.hint(
            "expected the text of `perf script`, of the `trace` file of tracefs, or of \
             `trace-cmd report`",
        ),
    }
}

fn read_lines<R: BufRead>(
    input: R,
    layout: Layout,
    sink: &mut dyn RecordSink,
) -> Result<(ReadSummary, Comms), Located> {
    let format = match layout {
        Layout::Perf => Format::PerfScript,
        Layout::Ftrace => Format::FtraceText,
    };
    let mut lines = Lines::new(input);
    let mut intake = Intake::new(format, sink);
    // Whether the line before was a record or a frame of its call chain.
    let mut after_record = false;
    while let Some(line) = lines.next()? {
        after_record = take_line(&mut intake, layout, line, after_record)
            .map_err(|fault| locate(fault, line))?;
        intake.summary.final_newline = line.ended;
    }
    if lines.number() == 0 {
        return Err(empty());
    }
    intake.summary.lines = lines.number() as u64;
    let (summary, comms) = intake.finish();
    if summary.records == 0 {
        return Err(no_events(&summary));
    }
    Ok((summary, comms))
}

/// Takes one line; true when it is a record or belongs to one.
fn take_line(
    intake: &mut Intake<'_>,
    layout: Layout,
    line: Line<'_>,
    after_record: bool,
) -> Result<bool, Fault> {
    let bytes = line.bytes;
    if trim(bytes).is_empty() {
        return Ok(false);
    }
    if let Some(notice) = notice(bytes, layout)? {
        if let Notice::Lost { cpu, count } = notice {
            intake.lost(cpu, count);
        }
        return Ok(false);
    }
    let prefix = match prefix::parse(bytes, layout) {
        Ok(prefix) => prefix,
        Err(_) if after_record && layout == Layout::Perf && is_call_chain_frame(bytes) => {
            intake.summary.call_chain_lines += 1;
            return Ok(true);
        }
        Err(fault) => return Err(fault),
    };
    if !line.ended && !prefix.event_ended {
        return Err(Fault::new(bytes.len(), "the event name has no end"));
    }
    let body = &bytes[prefix.body_at..];
    if layout == Layout::Perf && prefix.event.starts_with(b"PERF_RECORD_LOST") {
        intake.lost(prefix.cpu, perf_lost(body));
    }
    let comms = &mut intake.comms;
    let parsed = body::parse(prefix.event, body, &mut |name| comms.intern(name))
        .map_err(|fault| fault.shifted(prefix.body_at))?;
    if !line.ended && parsed.is_none() && body.is_empty() {
        // `sched:` may be the beginning of `sched:sched_switch:`.
        return Err(Fault::new(bytes.len(), "the event has no body"));
    }
    push(intake, &prefix, parsed)?;
    Ok(true)
}

fn push(
    intake: &mut Intake<'_>,
    prefix: &Prefix<'_>,
    parsed: Option<body::Parsed>,
) -> Result<(), Fault> {
    let Prefix { time, cpu, pid, tgid, comm, context, .. } = *prefix;
    let stamp = Stamp { time, cpu, pid, tgid, comm, context };
    let taken = match parsed {
        Some(body::Parsed { event, extra }) => {
            intake.summary.extra_fields += u64::from(extra);
            intake.take(&stamp, event)
        }
        // Side records may come from before the recording, at time zero.
        None if prefix.event.starts_with(b"PERF_RECORD_") => {
            intake.summary.count_other(prefix.event);
            Ok(())
        }
        None => intake.pass(&stamp, prefix.event),
    };
    taken.map_err(|back| Fault::new(0, back.message()).hint(StepBack::HINT))
}

/// The fault, or for a last line without line feed the likelier cause.
fn locate(fault: Fault, line: Line<'_>) -> Located {
    let foreign = fault.message == prefix::NOT_PERF || fault.message == prefix::NOT_FTRACE;
    if line.ended || (line.number == 1 && foreign) {
        return fault.in_line(line.number, line.bytes);
    }
    let message = format!("the file ends in the middle of a record: {}", fault.message);
    Fault::new(line.bytes.len(), message)
        .hint("the trace was cut: record or copy it again, or delete its last line")
        .in_line(line.number, line.bytes)
}

/// A line that is no record.
enum Notice {
    Comment,
    Lost { cpu: CpuId, count: Option<u64> },
}

/// Recognises comments and notices of lost events.
///
/// - `CPU:3 [LOST 17 EVENTS]`, `CPU:3 [LOST EVENTS]`: tracefs.
/// - `CPU:3 [17 EVENTS DROPPED]`, `CPU:3 [EVENTS DROPPED]`, `CPU 3: 17 EVENTS DROPPED`: trace-cmd.
/// - `##### CPU 3 buffer started ####`: tracefs, when older events of that CPU were overwritten.
/// - `cpus=4`, `version = 7`, `CPU 3 is empty`: heading of trace-cmd.
fn notice(bytes: &[u8], layout: Layout) -> Result<Option<Notice>, Fault> {
    let text = trim(bytes);
    if let Some(comment) = text.strip_prefix(b"#") {
        let comment = comment.strip_prefix(b"#### CPU ").filter(|_| layout == Layout::Ftrace);
        return Ok(Some(match comment.and_then(take_unsigned) {
            Some((cpu, rest)) if find(rest, b"buffer started").is_some() => {
                Notice::Lost { cpu: body::cpu_id(cpu)?, count: None }
            }
            _ => Notice::Comment,
        }));
    }
    if layout == Layout::Perf {
        return Ok(None);
    }
    if let Some(rest) = text.strip_prefix(b"CPU") {
        let rest = rest.strip_prefix(b":").or_else(|| rest.strip_prefix(b" "));
        let Some((cpu, rest)) = rest.and_then(take_unsigned) else { return Ok(None) };
        if trim(rest) == b"is empty" {
            return Ok(Some(Notice::Comment));
        }
        let lost = find(rest, b"LOST").or_else(|| find(rest, b"DROPPED")).is_some();
        if !lost || find(rest, b"EVENTS").is_none() {
            return Ok(None);
        }
        let count = rest.iter().position(u8::is_ascii_digit);
        let count = count.and_then(|at| take_unsigned(&rest[at..])).map(|(n, _)| n);
        return Ok(Some(Notice::Lost { cpu: body::cpu_id(cpu)?, count }));
    }
    let heading = text.strip_prefix(b"cpus=").or_else(|| text.strip_prefix(b"version = "));
    Ok(heading.filter(|n| n.iter().all(u8::is_ascii_digit)).map(|_| Notice::Comment))
}

/// `lost N` behind `PERF_RECORD_LOST`.
fn perf_lost(body: &[u8]) -> Option<u64> {
    let at = body.iter().position(u8::is_ascii_digit)?;
    take_unsigned(&body[at..]).map(|(n, _)| n)
}

/// `TAB ffffffff810a1b2c function+0x1c (object)`: a frame of a call chain.
fn is_call_chain_frame(bytes: &[u8]) -> bool {
    let text = trim(bytes);
    let word = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    bytes[0] == b'\t' && text[..word].iter().all(u8::is_ascii_hexdigit)
}

pub(crate) fn empty() -> Located {
    Located::whole("the file is empty").hint("a trace needs at least one scheduling event")
}

pub(crate) fn no_events(summary: &ReadSummary) -> Located {
    let message = match summary.n_other() {
        0 => "the trace holds no event".to_string(),
        n => format!("the trace holds no scheduling event, only {n} others"),
    };
    Located::whole(message).hint(
        "record sched_switch and sched_waking, and if possible sched_wakeup_new, \
         sched_process_fork, sched_process_exec, sched_process_exit, sched_stat_runtime",
    )
}
