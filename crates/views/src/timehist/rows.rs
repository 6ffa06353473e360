// SPDX-License-Identifier: GPL-2.0-only
//! The rows of timehist.

use std::io::Write;

use schedlab_policy_api::{Pid, RecordEvent, TraceRecord};
use schedlab_trace::Comms;
use schedlab_units::{CpuId, Time};

use super::{Spans, Timehist};
use crate::figures::{msec_cut, seconds};
use crate::names::{IDLE, Names, printable};

/// Width of the column of names, which grows with the names.
pub(super) const NAME_WIDTH: usize = 30;
/// Width of the column of priorities.
const PRIO_WIDTH: usize = 8;

/// What stands in a row.
pub(super) struct Row {
    time: Time,
    cpu: CpuId,
    name: String,
    /// What the CPU's column shows.
    pub(super) mark: char,
    spans: Option<Spans>,
    prio: String,
    state: Option<char>,
    next: Option<String>,
    pub(super) note: Option<String>,
}

impl Row {
    /// A row of the thread in whose context `record` was written.
    pub(super) fn of(record: &TraceRecord, names: &Names, comms: &Comms) -> Self {
        Self {
            time: record.time,
            cpu: record.cpu,
            name: names.with_ids(record.pid, comms),
            mark: ' ',
            spans: None,
            prio: String::new(),
            state: None,
            next: None,
            note: None,
        }
    }
}

impl<W: Write> Timehist<W> {
    pub(super) fn switch_row(&mut self, record: &TraceRecord, prev: Pid, now: Time, comms: &Comms) {
        let RecordEvent::Switch { prev_state, prev_prio, next, next_comm, .. } = record.event
        else {
            return;
        };
        let mut row = Row::of(record, &self.names, comms);
        row.time = now;
        row.name = match prev {
            IDLE => "<idle>".to_string(),
            prev => self.names.with_ids(prev, comms),
        };
        row.mark = if prev == IDLE { 'i' } else { 's' };
        let thread = self.runtime(prev, record.cpu);
        row.spans = Some(thread.now);
        let came = thread.prio_in.unwrap_or(prev_prio);
        if self.options.prio {
            row.prio = if came == prev_prio {
                prev_prio.to_string()
            } else {
                format!("{came}->{prev_prio}")
            };
        }
        if self.options.state {
            let letter = self.options.perf.letter(prev_state);
            row.state = Some(if prev == IDLE { 'I' } else { letter });
        }
        if self.options.next {
            row.next = Some(format!("next: {}[{}]", printable(comms.name(next_comm)), next.0));
        }
        self.put_row(row);
    }

    /// A notice that the CPU lost `count` events; 0 is an unknown number.
    pub(super) fn lost_row(&mut self, record: &TraceRecord, count: u64) {
        self.head();
        let n = if count == 0 { String::new() } else { format!("{count} ") };
        let (time, cpu) = (seconds(record.time), record.cpu);
        self.out.put(format_args!("{time:>15} lost {n}events on cpu {cpu}\n"));
    }

    pub(super) fn put_row(&mut self, row: Row) {
        self.head();
        self.name_width = self.name_width.max(row.name.chars().count());
        let width = self.name_width;
        let time = seconds(row.time);
        self.out.put(format_args!("{time:>15} [{:04}] ", row.cpu.0));
        if let Some(n_cpus) = self.options.visual_cpus {
            let marks: String =
                (0..n_cpus).map(|cpu| if cpu == row.cpu.0 { row.mark } else { ' ' }).collect();
            self.out.put(format_args!(" {marks} "));
        }
        self.out.put(format_args!(" {:<width$} ", row.name));
        if self.options.prio {
            self.out.put(format_args!("{:<PRIO_WIDTH$} ", row.prio));
        }
        match row.spans {
            Some(spans) => {
                // Only one of them is not nought.
                let wait = msec_cut(spans.sleep.max(spans.iowait).max(spans.preempt));
                let (delay, run) = (msec_cut(spans.delay), msec_cut(spans.run));
                self.out.put(format_args!("{wait:>10} {delay:>10} {run:>10} "));
            }
            None => self.out.put(format_args!("{:>32} ", "")),
        }
        if let Some(state) = row.state {
            self.out.put(format_args!(" {state:>5} "));
        }
        if let Some(next) = row.next {
            self.out.put(format_args!(" {next:<NAME_WIDTH$}"));
        }
        if let Some(note) = row.note {
            self.out.put(format_args!(" {note}"));
        }
        self.out.line("");
    }

    /// The heading, once.
    pub(super) fn head(&mut self) {
        if self.headed {
            return;
        }
        self.headed = true;
        for line in 0..3 {
            let text = |words: [&'static str; 3]| words[line];
            let time = text(["time", "", "---------------"]);
            let cpu = text(["cpu", "", "------"]);
            self.out.put(format_args!("{time:>15} {cpu:>6} "));
            if let Some(n_cpus) = self.options.visual_cpus {
                let marks: String = match line {
                    0 => (0..n_cpus).map(|cpu| digit(cpu % 16)).collect(),
                    1 => " ".repeat(n_cpus as usize),
                    _ => "-".repeat(n_cpus as usize),
                };
                self.out.put(format_args!(" {marks} "));
            }
            let dashes = "-".repeat(NAME_WIDTH);
            let name = ["task name", "[tid/pid]", &dashes][line];
            self.out.put(format_args!(" {name:<NAME_WIDTH$} "));
            if self.options.prio {
                let prio = text(["prio", "", "--------"]);
                self.out.put(format_args!("{prio:<PRIO_WIDTH$} "));
            }
            let span = |name| text([name, "(msec)", "---------"]);
            let (wait, delay, run) = (span("wait time"), span("sch delay"), span("run time"));
            self.out.put(format_args!("{wait:>10} {delay:>10} {run:>10}"));
            if self.options.state {
                let state = text(["state", "", "-----"]);
                self.out.put(format_args!("  {state:>5}"));
            }
            self.out.line("");
        }
    }
}

fn digit(n: u32) -> char {
    char::from_digit(n, 16).unwrap_or('?')
}
