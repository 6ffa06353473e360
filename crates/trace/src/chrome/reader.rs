// SPDX-License-Identifier: GPL-2.0-only
//! Reads the files of the writer back, line by line.

use std::io::BufRead;

use schedlab_policy_api::RecordEvent;
use schedlab_units::Located;
use serde::Deserialize;

use super::record::Args;
use super::{FIRST_LINE, LAST_LINE};
use crate::comms::Comms;
use crate::format::Format;
use crate::intake::{Intake, Stamp, StepBack};
use crate::sink::RecordSink;
use crate::summary::ReadSummary;
use crate::text::{Lines, no_events};

/// Whether a file may be Chrome's JSON: an object or a list of events.
pub(crate) fn looks_like(start: &[u8]) -> bool {
    let text = String::from_utf8_lossy(&start[..start.len().min(4096)]);
    let text = text.trim_start();
    text.starts_with('{') && text.contains("\"traceEvents\"")
        || text.starts_with('[') && text.contains("\"ph\"")
}

/// A line; those of names and counters have no record.
#[derive(Deserialize)]
struct Line {
    ph: String,
    args: Option<serde_json::Value>,
}

/// Reads a file into `sink`.
///
/// # Errors
/// A file of another program; one that was cut or is damaged, with its line.
pub(crate) fn read_chrome<R: BufRead>(
    input: R,
    sink: &mut dyn RecordSink,
) -> Result<(ReadSummary, Comms), Located> {
    let mut lines = Lines::new(input);
    let is_ours = lines.next()?.is_some_and(|line| line.bytes == FIRST_LINE.as_bytes());
    if !is_ours {
        return Err(Located::whole("this Chrome JSON was not written by schedlab").hint(
            "its events do not tell who was ready to run; convert the trace it was made of",
        ));
    }
    let mut intake = Intake::new(Format::Chrome, sink);
    let mut is_complete = false;
    while let Some(line) = lines.next()? {
        if is_complete {
            return Err(Located::at(line.number, 1, "more lines follow the end"));
        }
        if line.bytes == LAST_LINE.as_bytes() {
            is_complete = true;
            continue;
        }
        take(&mut intake, line.bytes)
            .map_err(|(column, message)| Located::at(line.number, column, message))?;
    }
    if !is_complete {
        return Err(Located::at(lines.number() + 1, 1, "the file ends before its last line")
            .hint("the file was cut: copy it again"));
    }
    intake.summary.lines = lines.number() as u64;
    let (summary, comms) = intake.finish();
    if summary.records == 0 {
        return Err(no_events(&summary));
    }
    Ok((summary, comms))
}

fn take(intake: &mut Intake<'_>, bytes: &[u8]) -> Result<(), (usize, String)> {
    let bytes = bytes.strip_suffix(b",").ok_or((bytes.len() + 1, "`,` expected".to_string()))?;
    let line: Line = serde_json::from_slice(bytes)
        .map_err(|error| (error.column().max(1), error.to_string()))?;
    let Some(args) = line.args.filter(|_| matches!(line.ph.as_str(), "B" | "E" | "i")) else {
        return Ok(());
    };
    let args: Args = serde_json::from_value(args).map_err(|error| (1, error.to_string()))?;
    let record = args.record(&mut intake.comms).map_err(|message| (1, message))?;
    if let RecordEvent::Lost { count } = record.event {
        intake.lost(record.cpu, (count > 0).then_some(count));
        return Ok(());
    }
    let comm = intake.comms.name(record.comm).to_string();
    let stamp = Stamp {
        time: record.time,
        cpu: record.cpu,
        pid: Some(record.pid.0),
        tgid: None,
        comm: comm.as_bytes(),
        context: record.context,
    };
    let taken = intake.take(&stamp, record.event);
    taken.map_err(|back: StepBack| (1, back.message()))
}
