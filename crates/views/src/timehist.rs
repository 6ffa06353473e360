// SPDX-License-Identifier: GPL-2.0-only
//! `perf sched timehist`: one row a switch, and sums by thread.
//!
//! A row is written when a thread leaves a CPU. Its run time reaches back to the CPU's previous
//! switch; its delay from there to its wake-up; its wait from there to when it left a CPU last.

mod rows;
mod table;

use std::collections::BTreeMap;
use std::io::{self, Write};

use schedlab_policy_api::{Pid, RecordEvent, RecordedState, TraceRecord};
use schedlab_trace::{Comms, RecordSink};
use schedlab_units::{CpuId, Time};

use crate::dialect::{Perf, Wakes};
use crate::figures::Stats;
use crate::names::{IDLE, Names};
use crate::out::Out;
use crate::sample::Choice;
use rows::{NAME_WIDTH, Row};

/// Whether the sums by thread are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SummaryMode {
    /// Rows only.
    #[default]
    Rows,
    /// Rows, then sums.
    Both,
    /// Sums only.
    Only,
}

/// What [`Timehist`] shows.
#[derive(Clone, Debug, Default)]
pub struct TimehistOptions {
    /// Rows for wake-ups.
    pub wakeups: bool,
    /// Rows for migrations.
    pub migrations: bool,
    /// The thread switched to.
    pub next: bool,
    /// A column for each CPU, this many.
    pub visual_cpus: Option<u32>,
    /// Only idle time: who left the CPU idle, and for how long.
    pub idle: bool,
    /// The state in which a thread left its CPU, and sums of waiting by cause.
    pub state: bool,
    /// The priority, or `OLD->NEW` if it changed on the CPU.
    pub prio: bool,
    /// Rows, sums, or both.
    pub summary: SummaryMode,
    /// Only these processes; all if empty.
    pub processes: Vec<u32>,
    /// Only these threads; all if empty.
    pub threads: Vec<u32>,
    /// Only these CPUs; all if empty.
    pub cpus: Vec<u32>,
    /// Nothing before this time.
    pub start: Option<Time>,
    /// Nothing after this time.
    pub stop: Option<Time>,
    /// Whose letters and states.
    pub perf: Perf,
}

#[derive(Clone, Copy, Debug, Default)]
struct Thread {
    last_out: Option<(Time, RecordedState)>,
    woken: Option<Time>,
    now: Spans,
    run: Stats,
    sleep: u64,
    iowait: u64,
    preempt: u64,
    delay: u64,
    migrations: u64,
    prio_in: Option<i32>,
}

/// Times of the latest row of a thread.
#[derive(Clone, Copy, Debug, Default)]
struct Spans {
    run: u64,
    delay: u64,
    sleep: u64,
    iowait: u64,
    preempt: u64,
}

impl Thread {
    /// Books the stretch from the CPU's previous switch at `prev`, if it was seen, to `now`.
    fn book(&mut self, now: Time, prev: Option<Time>, perf: Perf) {
        self.now = Spans::default();
        if let Some(prev) = prev {
            self.now.run = now.saturating_since(prev).as_ns();
            self.now.delay = self.woken.map_or(0, |woken| prev.saturating_since(woken).as_ns());
            if let Some((out, state)) = self.last_out {
                let wait = prev.saturating_since(out).as_ns();
                match perf.letter(state) {
                    'R' => self.now.preempt = wait,
                    'D' => self.now.iowait = wait,
                    _ => self.now.sleep = wait,
                }
            }
        }
        self.run.add(self.now.run);
        self.delay = self.delay.saturating_add(self.now.delay);
        self.sleep = self.sleep.saturating_add(self.now.sleep);
        self.iowait = self.iowait.saturating_add(self.now.iowait);
        self.preempt = self.preempt.saturating_add(self.now.preempt);
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    switched: Option<Time>,
    idle: Thread,
    /// Who left this CPU idle, until the idle stretch has been booked.
    left_by: Option<Pid>,
}

/// The view; [`Timehist::finish`] ends it.
#[derive(Debug)]
pub struct Timehist<W: Write> {
    out: Out<W>,
    options: TimehistOptions,
    choice: Choice,
    names: Names,
    wakes: Wakes,
    threads: BTreeMap<Pid, Thread>,
    cpus: Vec<Cpu>,
    name_width: usize,
    headed: bool,
    /// Records left out because of their thread: idle time is unknown then.
    skipped: bool,
    first: Option<Time>,
    last: Option<Time>,
}

impl<W: Write> Timehist<W> {
    /// A view that writes to `out`.
    pub fn new(options: TimehistOptions, out: W) -> Self {
        let choice = Choice {
            processes: options.processes.iter().copied().collect(),
            threads: options.threads.iter().copied().collect(),
            cpus: options.cpus.iter().copied().collect(),
            start: options.start,
            stop: options.stop,
        };
        Self {
            out: Out::new(out),
            options,
            choice,
            names: Names::default(),
            wakes: Wakes::default(),
            threads: BTreeMap::new(),
            cpus: Vec::new(),
            name_width: NAME_WIDTH,
            headed: false,
            skipped: false,
            first: None,
            last: None,
        }
    }

    fn rows_wanted(&self) -> bool {
        self.options.summary != SummaryMode::Only
    }

    fn cpu(&mut self, cpu: CpuId) -> &mut Cpu {
        if self.cpus.len() <= cpu.index() {
            self.cpus.resize(cpu.index() + 1, Cpu::default());
        }
        &mut self.cpus[cpu.index()]
    }

    fn runtime(&mut self, pid: Pid, cpu: CpuId) -> &mut Thread {
        if pid == IDLE { &mut self.cpu(cpu).idle } else { self.threads.entry(pid).or_default() }
    }

    fn hides(&mut self, pid: Pid) -> bool {
        let hidden = !self.choice.thread(pid, &self.names);
        self.skipped |= hidden;
        hidden
    }

    fn switch(&mut self, record: &TraceRecord, prev: Pid, state: RecordedState, comms: &Comms) {
        let RecordEvent::Switch { next, next_prio, .. } = record.event else { return };
        let cpu = record.cpu;
        if self.options.idle && next == IDLE {
            self.cpu(cpu).left_by = Some(prev);
        }
        let skipped = self.hides(prev) || (self.options.idle && prev != IDLE && next != IDLE);
        let mut now = record.time;
        if !skipped {
            if let Some((end, since)) = self.window(record) {
                now = end;
                self.account(record, prev, (end, since), comms);
            }
            let thread = self.runtime(prev, cpu);
            thread.last_out = Some((record.time, state));
            thread.woken = None;
        }
        self.runtime(next, cpu).prio_in = Some(next_prio);
        self.cpu(cpu).switched = Some(record.time);
        if self.first.is_none() && self.options.start.is_none_or(|start| now >= start) {
            self.first = Some(now);
        }
        if self.options.stop.is_none_or(|stop| now <= stop) {
            self.last = Some(now);
        }
    }

    /// End and begin of the stretch that a switch ends, cut to the chosen times; none if nothing of
    /// it lies there, or if it cannot be known.
    fn window(&mut self, record: &TraceRecord) -> Option<(Time, Option<Time>)> {
        let mut since = self.cpu(record.cpu).switched;
        let mut now = record.time;
        if let Some(start) = self.options.start {
            if now < start {
                return None;
            }
            since = since.map(|since| since.max(start));
        }
        if let Some(stop) = self.options.stop {
            // A stretch of unknown begin is not cut.
            if since.is_none_or(|since| since > stop) {
                return None;
            }
            now = now.min(stop);
        }
        Some((now, since))
    }

    fn account(
        &mut self,
        record: &TraceRecord,
        prev: Pid,
        (now, since): (Time, Option<Time>),
        comms: &Comms,
    ) {
        let perf = self.options.perf;
        if !self.options.idle || prev == IDLE {
            if self.choice.cpu(record.cpu) {
                self.runtime(prev, record.cpu).book(now, since, perf);
            }
            if self.options.idle {
                let Some(sleeper) = self.cpu(record.cpu).left_by.take() else { return };
                let sleeper = self.runtime(sleeper, record.cpu);
                sleeper.book(now, since, perf);
                sleeper.now = Spans::default();
            }
        }
        if self.rows_wanted() && self.choice.cpu(record.cpu) {
            self.switch_row(record, prev, now, comms);
        }
    }

    fn wake(&mut self, record: &TraceRecord, pid: Pid, comms: &Comms) {
        let thread = self.runtime(pid, record.cpu);
        thread.woken.get_or_insert(record.time);
        if self.options.wakeups && self.shows_row_of(record, pid) {
            let mut row = Row::of(record, &self.names, comms);
            row.note = Some(format!("awakened: {}", self.names.with_ids(pid, comms)));
            self.put_row(row);
        }
    }

    fn migrate(&mut self, record: &TraceRecord, pid: Pid, comms: &Comms) {
        if self.choice.time(record.time) {
            self.runtime(pid, record.cpu).migrations += 1;
        }
        if self.options.migrations && self.shows_row_of(record, pid) {
            let RecordEvent::Migrate { orig_cpu, dest_cpu, .. } = record.event else { return };
            let who = self.names.with_ids(pid, comms);
            let mut row = Row::of(record, &self.names, comms);
            row.mark = 'm';
            row.note = Some(format!("migrated: {who} cpu {orig_cpu} => {dest_cpu}"));
            self.put_row(row);
        }
    }

    /// Whether a wake-up or migration of `pid` is shown: if it or the thread of the context is.
    fn shows_row_of(&mut self, record: &TraceRecord, pid: Pid) -> bool {
        self.rows_wanted()
            && !self.options.idle
            && self.choice.time(record.time)
            && self.choice.cpu(record.cpu)
            && !(self.hides(record.pid) && self.hides(pid))
    }

    /// Writes what is left; `n_cpus` is the number of CPUs of the trace.
    ///
    /// # Errors
    /// The first failure of the output, now or earlier.
    pub fn finish(mut self, comms: &Comms, n_cpus: u32) -> io::Result<W> {
        if self.rows_wanted() {
            self.head();
        }
        if self.options.summary != SummaryMode::Rows {
            self.table(comms, n_cpus);
        }
        self.out.finish()
    }
}

impl<W: Write> RecordSink for Timehist<W> {
    fn record(&mut self, record: &TraceRecord, comms: &Comms) {
        self.names.learn(record, comms);
        match record.event {
            RecordEvent::Switch { prev, prev_state, .. } => {
                self.switch(record, prev, prev_state, comms);
            }
            RecordEvent::Waking { pid, .. }
            | RecordEvent::Wakeup { pid, .. }
            | RecordEvent::WakeupNew { pid, .. }
                if self.wakes.counts(&record.event) =>
            {
                self.wake(record, pid, comms);
            }
            RecordEvent::Migrate { pid, .. } => self.migrate(record, pid, comms),
            RecordEvent::Lost { count } if self.rows_wanted() && self.choice.time(record.time) => {
                self.lost_row(record, count);
            }
            RecordEvent::Fork { child, .. } => {
                // A number used again is another thread; what the old one had is in its sums.
                if let Some(thread) = self.threads.get_mut(&child) {
                    (thread.last_out, thread.woken) = (None, None);
                }
            }
            _ => {}
        }
    }
    fn process(&mut self, thread: Pid, process: Pid) {
        self.names.process(thread, process);
    }
}
