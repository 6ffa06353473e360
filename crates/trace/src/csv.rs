// SPDX-License-Identifier: GPL-2.0-only
//! Comma-separated values: a row for each record, for spreadsheets and data frames.
//!
//! A column that an event does not have is empty. Text stands in quotes where RFC 4180 wants them.

use std::io::{self, Write};

use schedlab_policy_api::{CommId, Pid, RecordContext, RecordEvent, RecordedState, TraceRecord};

use crate::comms::Comms;
use crate::out::Out;
use crate::sink::{RecordSink, RecordWriter};
use crate::summary::event_name;

/// Names of the columns. `pid`, `comm` and `prio` are those of the thread that the event is about:
/// the one that leaves, is woken, moves, is the parent, or ends.
const HEADING: &str = "time_ns,cpu,context_pid,context_comm,context,event,pid,comm,prio,state,\
                       next_pid,next_comm,next_prio,from_cpu,to_cpu,count";

/// A sink that writes CSV. Memory does not grow.
#[derive(Debug)]
pub struct CsvWriter<W: Write> {
    out: Out<W>,
}

/// The cells behind the event.
#[derive(Default)]
struct Cells<'a> {
    who: Option<(Pid, Option<&'a str>, Option<i32>)>,
    state: &'a str,
    next: Option<(Pid, &'a str, Option<i32>)>,
    from_cpu: Option<u32>,
    to_cpu: Option<u32>,
    count: Option<u64>,
}

impl<W: Write> CsvWriter<W> {
    /// A writer to `out`; the heading is written at once.
    pub fn new(out: W) -> Self {
        let mut out = Out::new(out);
        out.text(format_args!("{HEADING}\n"));
        Self { out }
    }

    /// Writes what is left and returns the output.
    ///
    /// # Errors
    /// The first failure of the output, now or earlier.
    pub fn finish(self) -> io::Result<W> {
        self.out.finish()
    }
}

fn cells<'a>(event: &RecordEvent, comms: &'a Comms) -> Cells<'a> {
    let name = |id: CommId| comms.name(id);
    let none = Cells::default;
    match *event {
        RecordEvent::Switch {
            prev,
            prev_comm,
            prev_prio,
            prev_state,
            next,
            next_comm,
            next_prio,
        } => Cells {
            who: Some((prev, Some(name(prev_comm)), Some(prev_prio))),
            state: match prev_state {
                RecordedState::Runnable => "R",
                RecordedState::Preempted => "R+",
                RecordedState::Sleeping => "S",
                RecordedState::Uninterruptible => "D",
                RecordedState::Exited => "Z",
            },
            next: Some((next, name(next_comm), Some(next_prio))),
            ..none()
        },
        RecordEvent::Waking { pid, comm, prio, target_cpu }
        | RecordEvent::Wakeup { pid, comm, prio, target_cpu }
        | RecordEvent::WakeupNew { pid, comm, prio, target_cpu } => Cells {
            who: Some((pid, Some(name(comm)), Some(prio))),
            to_cpu: Some(target_cpu.0),
            ..none()
        },
        RecordEvent::Migrate { pid, comm, prio, orig_cpu, dest_cpu } => Cells {
            who: Some((pid, Some(name(comm)), Some(prio))),
            from_cpu: Some(orig_cpu.0),
            to_cpu: Some(dest_cpu.0),
            ..none()
        },
        RecordEvent::Fork { parent, parent_comm, child, child_comm } => Cells {
            who: Some((parent, Some(name(parent_comm)), None)),
            next: Some((child, name(child_comm), None)),
            ..none()
        },
        RecordEvent::Exec { pid } => Cells { who: Some((pid, None, None)), ..none() },
        RecordEvent::Exit { pid, comm, prio } => {
            Cells { who: Some((pid, Some(name(comm)), Some(prio))), ..none() }
        }
        RecordEvent::StatRuntime { pid, runtime_ns } => {
            Cells { who: Some((pid, None, None)), count: Some(runtime_ns), ..none() }
        }
        RecordEvent::Lost { count } => Cells { count: Some(count), ..none() },
    }
}

/// `text` as a cell.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_string()
    }
}

fn cell<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

impl<W: Write> RecordSink for CsvWriter<W> {
    fn record(&mut self, record: &TraceRecord, comms: &Comms) {
        let TraceRecord { time, cpu, pid, comm, context, ref event } = *record;
        let context = match context {
            RecordContext::Unknown => "unknown",
            RecordContext::Task => "thread",
            RecordContext::Interrupt => "interrupt",
        };
        let Cells { who, state, next, from_cpu, to_cpu, count } = cells(event, comms);
        let row = [
            time.as_ns().to_string(),
            cpu.0.to_string(),
            pid.0.to_string(),
            quoted(comms.name(comm)),
            context.to_string(),
            event_name(event).to_string(),
            cell(who.map(|w| w.0.0)),
            quoted(who.and_then(|w| w.1).unwrap_or("")),
            cell(who.and_then(|w| w.2)),
            state.to_string(),
            cell(next.map(|n| n.0.0)),
            quoted(next.map_or("", |n| n.1)),
            cell(next.and_then(|n| n.2)),
            cell(from_cpu),
            cell(to_cpu),
            cell(count),
        ];
        self.out.text(format_args!("{}\n", row.join(",")));
    }
}

impl<W: Write + Send> RecordWriter for CsvWriter<W> {
    fn close(self: Box<Self>) -> io::Result<()> {
        self.finish().map(drop)
    }
}
