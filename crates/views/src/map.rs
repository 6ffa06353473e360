// SPDX-License-Identifier: GPL-2.0-only
//! `perf sched map`: a column a CPU, a code a thread, a row a switch.

use std::collections::BTreeMap;
use std::io::{self, Write};

use schedlab_policy_api::{CommId, Pid, RecordEvent, TraceRecord};
use schedlab_trace::{Comms, RecordSink};
use schedlab_units::CpuId;

use crate::figures::seconds;
use crate::names::{IDLE, Names};
use crate::out::Out;

const PLAIN: &str = "\x1b[0m";
const CPU_COLOR: &str = "\x1b[1;34m";
const THREAD_COLOR: &str = "\x1b[1;35m";

/// What [`Map`] shows.
#[derive(Clone, Debug, Default)]
pub struct MapOptions {
    /// Number of CPUs; columns are added where it turns out to be larger.
    pub n_cpus: u32,
    /// Only CPUs that had a switch, in the order of their first one.
    pub compact: bool,
    /// Only these CPUs; all if empty.
    pub cpus: Vec<u32>,
    /// CPUs whose columns are coloured.
    pub color_cpus: Vec<u32>,
    /// Threads whose codes are coloured.
    pub color_pids: Vec<u32>,
    /// Only threads of these names; the others are `-`. All if empty.
    pub task_names: Vec<String>,
    /// A name need only contain one of [`MapOptions::task_names`].
    pub fuzzy: bool,
}

/// The code of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Code([char; 2]);

const CODE_IDLE: Code = Code(['.', ' ']);
const CODE_OTHER: Code = Code(['-', ' ']);

/// Codes of threads in order of first sight: A0 … Z0, A1 … Z9, then from the start again.
#[derive(Debug)]
struct Codes {
    next: u32,
    known: BTreeMap<Pid, Known>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    code: Code,
    /// The name that a row told last; any name does for the idle thread.
    told: Option<Option<CommId>>,
}

impl Codes {
    fn fresh(&mut self) -> Code {
        let n = self.next % 260;
        self.next += 1;
        let letter = char::from(b'A' + (n % 26) as u8);
        let digit = char::from(b'0' + (n / 26) as u8);
        Code([letter, digit])
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    shown: Option<(Code, Pid)>,
}

impl Default for Code {
    fn default() -> Self {
        CODE_IDLE
    }
}

/// The view; rows are written as switches come.
#[derive(Debug)]
pub struct Map<W: Write> {
    out: Out<W>,
    options: MapOptions,
    names: Names,
    codes: Codes,
    cpus: Vec<Cpu>,
    /// The CPUs of a compact map, in the order of their columns.
    columns: Vec<CpuId>,
}

impl<W: Write> Map<W> {
    /// A view that writes to `out`.
    pub fn new(options: MapOptions, out: W) -> Self {
        let cpus = vec![Cpu::default(); options.n_cpus as usize];
        Self {
            out: Out::new(out),
            options,
            names: Names::default(),
            codes: Codes { next: 0, known: BTreeMap::new() },
            cpus,
            columns: Vec::new(),
        }
    }

    /// Whether a thread has a code of its own; the idle thread always has.
    fn chosen(&self, pid: Pid, comms: &Comms) -> bool {
        let names = &self.options.task_names;
        if names.is_empty() || pid == IDLE {
            return true;
        }
        let name = self.names.of(pid, comms);
        names.iter().any(|n| if self.options.fuzzy { name.contains(n) } else { name == *n })
    }

    /// The code of the thread that comes.
    fn code(&mut self, pid: Pid, comms: &Comms) -> Code {
        if !self.chosen(pid, comms) {
            return CODE_OTHER;
        }
        if let Some(known) = self.codes.known.get(&pid) {
            return known.code;
        }
        let code = if pid == IDLE { CODE_IDLE } else { self.codes.fresh() };
        self.codes.known.insert(pid, Known { code, told: None });
        code
    }

    /// Whether the name of the thread that comes is told: at first sight, and when it is another.
    fn tells(&mut self, pid: Pid) -> bool {
        let comm = if pid == IDLE { Some(CommId(0)) } else { self.names.comm(pid) };
        let Some(known) = self.codes.known.get_mut(&pid) else { return false };
        let before = known.told.replace(comm);
        before != Some(comm)
    }

    fn switch(&mut self, record: &TraceRecord, prev: Pid, next: Pid, comms: &Comms) {
        let cpu = record.cpu;
        if self.cpus.len() <= cpu.index() {
            self.cpus.resize(cpu.index() + 1, Cpu::default());
        }
        let new_column = self.options.compact && !self.columns.contains(&cpu);
        if new_column {
            self.columns.push(cpu);
        }
        let code = self.code(next, comms);
        self.cpus[cpu.index()].shown = Some((code, next));
        if !self.options.task_names.is_empty() {
            let of_interest = |pid| pid != IDLE && self.chosen(pid, comms);
            if !of_interest(prev) && !of_interest(next) {
                return;
            }
        }
        self.out.put(format_args!("  "));
        self.cells(cpu);
        // perf ends the row of a CPU that is not shown here; so do we.
        if self.shows(cpu) {
            self.out.put(format_args!("  {:>12} secs ", seconds(record.time)));
            if code != CODE_OTHER && self.tells(next) {
                let [letter, digit] = code.0;
                let name = self.names.of(next, comms);
                self.out.put(format_args!("{letter}{digit} => {name}:{}", next.0));
            }
            if new_column {
                self.out.put(format_args!(" (CPU {cpu})"));
            }
        }
        self.out.line("");
    }

    fn shows(&self, cpu: CpuId) -> bool {
        self.options.cpus.is_empty() || self.options.cpus.contains(&cpu.0)
    }

    fn cells(&mut self, event: CpuId) {
        let n_columns = if self.options.compact { self.columns.len() } else { self.cpus.len() };
        for column in 0..n_columns {
            let cpu = match self.options.compact {
                true => self.columns[column],
                false => CpuId::from_index(column),
            };
            if !self.shows(cpu) {
                continue;
            }
            let mark = if cpu == event { '*' } else { ' ' };
            let (color, plain) = self.color(cpu);
            let [letter, digit] = match self.cpus[cpu.index()].shown {
                Some((code, _)) => code.0,
                None => [' ', ' '],
            };
            self.out.put(format_args!("{color}{mark}{letter}{digit} {plain}"));
        }
    }

    fn color(&self, cpu: CpuId) -> (&'static str, &'static str) {
        let thread = self.cpus[cpu.index()].shown.map(|(_, pid)| pid.0);
        if thread.is_some_and(|pid| self.options.color_pids.contains(&pid)) {
            (THREAD_COLOR, PLAIN)
        } else if self.options.color_cpus.contains(&cpu.0) {
            (CPU_COLOR, PLAIN)
        } else {
            ("", "")
        }
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// The first failure of the output, now or earlier.
    pub fn finish(self) -> io::Result<W> {
        self.out.finish()
    }
}

impl<W: Write> RecordSink for Map<W> {
    fn record(&mut self, record: &TraceRecord, comms: &Comms) {
        self.names.learn(record, comms);
        if let RecordEvent::Switch { prev, next, .. } = record.event {
            self.switch(record, prev, next, comms);
        }
    }
}
