// SPDX-License-Identifier: GPL-2.0-only
//! Reads `.slt` files.

use std::io::BufRead;

use schedlab_policy_api::{Fingerprint, Observer, SchedClass, SchedEvent, TraceRecord};
use schedlab_units::{Located, Nice, TaskId, Time};

use super::code::{END, Fields, LABEL};
use super::input::{Input, Stop, located};
use super::{MAGIC, MAX_HEADER, MAX_NAME, SltHeader, VERSION};
use crate::comms::Comms;
use crate::format::Format;
use crate::kernel_view::TaskLabel;
use crate::recorder::Recorder;
use crate::sink::RecordSink;
use crate::summary::ReadSummary;

/// One record of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SltRecord {
    /// An event and its time.
    Event(Time, SchedEvent),
    /// Name and parameters of the task whose fork was the event before.
    Label {
        /// The task.
        task: TaskId,
        /// Its name.
        name: String,
        /// Its nice value.
        nice: Nice,
        /// Its class.
        class: SchedClass,
        /// Its real-time priority.
        rt_priority: u8,
    },
}

/// Hands out the records of a file one by one; memory does not grow with the file.
///
/// Damage may be noticed late: only the end of the file proves that all before it is whole.
pub struct SltReader<R> {
    input: Input<R>,
    header: SltHeader,
    fingerprint: Fingerprint,
    last: Time,
    n_records: u64,
    n_slots: u32,
    /// The end or a fault was reached.
    over: bool,
}

impl<R: BufRead> SltReader<R> {
    /// Opens a file and reads its header.
    ///
    /// # Errors
    /// Not a `.slt` file, a version newer than [`VERSION`], a malformed header; with the offset.
    pub fn open(input: R) -> Result<Self, Located> {
        let mut input = Input::new(input);
        match open(&mut input) {
            Ok(header) => Ok(Self {
                input,
                header,
                fingerprint: Fingerprint::default(),
                last: Time::ZERO,
                n_records: 0,
                n_slots: 0,
                over: false,
            }),
            Err(OpenFault::NotSlt(message, hint)) => Err(Located::whole(message).hint(hint)),
            Err(OpenFault::At(Stop::End)) => Err(Located::whole(format!(
                "byte {}: the file ends in the middle of its header",
                input.offset
            ))),
            Err(OpenFault::At(Stop::Fault(message))) => {
                Err(Located::whole(format!("byte {}: {message}", input.offset)))
            }
        }
    }

    /// Which run the file records.
    pub fn header(&self) -> &SltHeader {
        &self.header
    }

    /// Fingerprint of the events so far; at the end that of the run.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// The next record; `None` after the last.
    ///
    /// # Errors
    /// A file that was cut or damaged, with the offset of the fault; from then on `None`.
    pub fn next_record(&mut self) -> Result<Option<SltRecord>, Located> {
        if self.over {
            return Ok(None);
        }
        let at = self.input.offset;
        let result = self.record().map_err(|stop| {
            // A cut is where the file ends, damage where the record begins.
            let offset = if matches!(stop, Stop::End) { self.input.offset } else { at };
            located(stop, offset, self.n_records)
        });
        match &result {
            Ok(Some(record)) => {
                self.n_records += 1;
                if let SltRecord::Event(time, event) = record {
                    self.fingerprint.event(*time, event);
                }
            }
            _ => self.over = true,
        }
        result
    }

    fn record(&mut self) -> Result<Option<SltRecord>, Stop> {
        let kind = self.input.byte()?;
        if kind == END {
            return self.end().map(|()| None);
        }
        let mut fields = Fields { input: &mut self.input, n_slots: &mut self.n_slots };
        if kind == LABEL {
            let task = fields.task()?;
            let (nice, class, rt_priority) = fields.sched()?;
            let length = self.input.varint()?;
            if length > MAX_NAME as u64 {
                return Err(Stop::Fault(format!("a task name of {length} bytes")));
            }
            let name = String::from_utf8(self.input.bytes(length as usize)?)
                .map_err(|_| Stop::Fault("a task name is not UTF-8".to_string()))?;
            return Ok(Some(SltRecord::Label { task, name, nice, class, rt_priority }));
        }
        let since = fields.input.varint()?;
        let event = fields.event(kind)?;
        let now = self.last.as_ns().checked_add(since);
        let now = now.ok_or_else(|| Stop::Fault("time runs beyond 64 bits".to_string()))?;
        self.last = Time::from_ns(now);
        Ok(Some(SltRecord::Event(self.last, event)))
    }

    fn end(&mut self) -> Result<(), Stop> {
        let count = self.input.varint()?;
        if count != self.n_records {
            let message = format!("the file should hold {count} records");
            return Err(Stop::Fault(message));
        }
        let fingerprint = self.input.u64_le()?;
        if fingerprint != self.fingerprint.value() {
            return Err(Stop::Fault(
                "the events do not have the fingerprint of the run".to_string(),
            ));
        }
        let checksum = self.input.checksum.value();
        if self.input.u64_le()? != checksum {
            return Err(Stop::Fault("the checksum is wrong".to_string()));
        }
        if !self.input.at_end()? {
            return Err(Stop::Fault("more bytes follow the end".to_string()));
        }
        Ok(())
    }
}

enum OpenFault {
    NotSlt(String, &'static str),
    At(Stop),
}

impl From<Stop> for OpenFault {
    fn from(stop: Stop) -> Self {
        Self::At(stop)
    }
}

fn open<R: BufRead>(input: &mut Input<R>) -> Result<SltHeader, OpenFault> {
    if input.at_end()? {
        return Err(OpenFault::NotSlt("the file is empty".to_string(), ""));
    }
    for expected in MAGIC {
        match input.byte() {
            Ok(byte) if byte == expected => {}
            Ok(_) if input.offset > 4 => {
                return Err(OpenFault::NotSlt(
                    format!("byte {}: the line ends of the heading were changed", input.offset - 1),
                    "the file was transferred as text; copy it again as binary",
                ));
            }
            Ok(_) => return Err(OpenFault::NotSlt("this is no .slt file".to_string(), "")),
            Err(stop) => return Err(stop.into()),
        }
    }
    let version = input.varint()?;
    if version == 0 || version > VERSION {
        return Err(OpenFault::NotSlt(
            format!(
                "the file has version {version} of the format, this program reads up to {VERSION}"
            ),
            "read it with the version of schedlab that wrote it, or a newer one",
        ));
    }
    let length = input.varint()?;
    if length > MAX_HEADER {
        return Err(Stop::Fault(format!("a header of {length} bytes")).into());
    }
    let text = String::from_utf8(input.bytes(length as usize)?)
        .map_err(|_| Stop::Fault("the header is not UTF-8".to_string()))?;
    SltHeader::from_text(&text).map_err(|message| Stop::Fault(message).into())
}

/// Reads a whole file into `sink`, as tracepoints of a kernel would show the run.
///
/// # Errors
/// As [`SltReader::open`] and [`SltReader::next_record`]; a file without events.
pub(crate) fn read_slt<R: BufRead>(
    input: R,
    sink: &mut dyn RecordSink,
) -> Result<(ReadSummary, Comms), Located> {
    let mut reader = SltReader::open(input)?;
    let mut summary = ReadSummary::new(Format::Slt);
    summary.origin = reader.header().origin();
    let mut recorder = Recorder::new(Counted { sink, summary });
    while let Some(record) = reader.next_record()? {
        match record {
            SltRecord::Event(now, event) => {
                recorder.event(now, &event);
            }
            SltRecord::Label { task, name, nice, class, rt_priority } => {
                recorder.name_task(task, TaskLabel { name: &name, nice, class, rt_priority });
            }
        }
    }
    let (Counted { mut summary, .. }, comms, n_cpus) = recorder.finish();
    if summary.records == 0 {
        return Err(Located::whole("the file holds no scheduling event"));
    }
    summary.n_cpus = n_cpus;
    Ok((summary, comms))
}

/// Counts what passes.
struct Counted<'s> {
    sink: &'s mut dyn RecordSink,
    summary: ReadSummary,
}

impl RecordSink for Counted<'_> {
    fn record(&mut self, record: &TraceRecord, comms: &Comms) {
        self.summary.count(record);
        self.summary.span(record.time);
        self.sink.record(record, comms);
    }
}
