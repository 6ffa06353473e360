// SPDX-License-Identifier: GPL-2.0-only
//! `perf sched latency`: CPU time and delays of every thread.
//!
//! A thread is in one of a few states: asleep, waiting for a CPU, or on one. A switch-out while
//! runnable and a wake-up of a sleeper start a delay, the next switch-in ends it. A wake-up of a
//! thread that waits already restarts nothing. CPU time is what `sched_stat_runtime` says; where a
//! trace has none, as those of simulated runs, it is the time from switch to switch.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{self, Write};

use schedlab_policy_api::{Pid, RecordEvent, RecordedState, TraceRecord};
use schedlab_trace::{Comms, RecordSink};
use schedlab_units::Time;

use crate::dialect::{Perf, Wakes};
use crate::figures::{msec_rounded, percent, seconds};
use crate::names::{IDLE, Names};
use crate::out::Out;

/// A column to sort by, the largest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SortKey {
    /// CPU time.
    Runtime,
    /// Number of delays.
    Switch,
    /// Mean delay.
    Avg,
    /// Longest delay.
    Max,
}

/// What [`Latency`] shows.
#[derive(Clone, Debug)]
pub struct LatencyOptions {
    /// Columns to sort by, the first one first.
    pub sort: Vec<SortKey>,
    /// One row a thread instead of one a name.
    pub pids: bool,
    /// The trace holds one CPU only: wake-ups of threads whose sleep was not seen start a delay,
    /// and so does a migration. It selects no records.
    pub one_cpu: bool,
    /// Whose way of counting.
    pub perf: Perf,
}

impl Default for LatencyOptions {
    fn default() -> Self {
        Self {
            sort: vec![SortKey::Avg, SortKey::Max, SortKey::Switch, SortKey::Runtime],
            pids: false,
            one_cpu: false,
            perf: Perf::default(),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Asleep,
    Waiting,
    /// Switched in, or its times contradict each other: it waits for its next switch-out.
    Done,
}

#[derive(Clone, Copy, Debug, Default)]
struct Thread {
    state: State,
    out: Time,
    since: Time,
    runtime: u64,
    /// Time from switch-in to switch-out.
    on_cpu: u64,
    delays: u64,
    delay: u64,
    max: u64,
    max_from: Time,
    max_to: Time,
    /// Threads in this row.
    merged: u64,
}

impl Thread {
    fn switched_out(&mut self, now: Time, runnable: bool) {
        self.out = now;
        self.state = if runnable { State::Waiting } else { State::Asleep };
        self.since = now;
    }

    fn switched_in(&mut self, now: Time) {
        if self.state != State::Waiting {
            return;
        }
        self.state = State::Done;
        if now < self.since {
            return;
        }
        let delay = (now - self.since).as_ns();
        self.delay = self.delay.saturating_add(delay);
        self.delays += 1;
        if delay > self.max {
            (self.max, self.max_from, self.max_to) = (delay, self.since, now);
        }
    }

    fn mean(&self) -> u64 {
        self.delay.checked_div(self.delays).unwrap_or(0)
    }

    fn merge(&mut self, other: &Self) {
        self.merged += 1;
        self.runtime = self.runtime.saturating_add(other.runtime);
        self.on_cpu = self.on_cpu.saturating_add(other.on_cpu);
        self.delays += other.delays;
        self.delay = self.delay.saturating_add(other.delay);
        if self.max < other.max {
            (self.max, self.max_from, self.max_to) = (other.max, other.max_from, other.max_to);
        }
    }

    fn key(&self, key: SortKey) -> u64 {
        match key {
            SortKey::Runtime => self.runtime,
            SortKey::Switch => self.delays,
            SortKey::Avg => self.mean(),
            SortKey::Max => self.max,
        }
    }
}

/// The view; [`Latency::finish`] writes it.
#[derive(Debug)]
pub struct Latency {
    options: LatencyOptions,
    threads: BTreeMap<Pid, Thread>,
    names: Names,
    wakes: Wakes,
    /// The latest switch by CPU: to whom, and when.
    current: Vec<Option<(Pid, Time)>>,
    /// CPU time is told by records of its own.
    told: bool,
    records: u64,
    stamps: u64,
    unordered: u64,
    switch_bugs: u64,
    lost: u64,
    lost_chunks: u64,
}

impl Latency {
    /// An empty one.
    pub fn new(options: LatencyOptions) -> Self {
        Self {
            options,
            threads: BTreeMap::new(),
            names: Names::default(),
            wakes: Wakes::default(),
            current: Vec::new(),
            told: false,
            records: 0,
            stamps: 0,
            unordered: 0,
            switch_bugs: 0,
            lost: 0,
            lost_chunks: 0,
        }
    }

    /// The thread, which is `runnable` since `now` if it is heard of for the first time.
    fn thread(&mut self, pid: Pid, now: Time, runnable: bool) -> &mut Thread {
        self.threads.entry(pid).or_insert_with(|| {
            let mut thread = Thread { merged: 1, ..Thread::default() };
            thread.switched_out(now, runnable);
            thread
        })
    }

    fn switch(&mut self, record: &TraceRecord, prev: Pid, state: RecordedState, next: Pid) {
        let cpu = record.cpu.index();
        if self.current.len() <= cpu {
            self.current.resize(cpu + 1, None);
        }
        let mut on_cpu = 0;
        match self.current[cpu] {
            Some((current, since)) if current == prev => {
                on_cpu = record.time.saturating_since(since).as_ns();
            }
            Some(_) => self.switch_bugs += 1,
            None => {}
        }
        self.current[cpu] = Some((next, record.time));
        let runnable = self.options.perf.letter(state) == 'R';
        let thread = self.thread(prev, record.time, runnable);
        thread.on_cpu = thread.on_cpu.saturating_add(on_cpu);
        thread.switched_out(record.time, runnable);
        self.thread(next, record.time, true).switched_in(record.time);
    }

    fn wake(&mut self, pid: Pid, now: Time) {
        let one_cpu = self.options.one_cpu;
        let thread = self.thread(pid, now, false);
        // Without the other CPUs a sleep may have been missed, so that any state may be a sleep.
        if !one_cpu && thread.state != State::Asleep {
            return;
        }
        let early = now < thread.out;
        if !early {
            thread.state = State::Waiting;
            thread.since = now;
        }
        self.count_stamp(early);
    }

    fn migrate(&mut self, pid: Pid, now: Time) {
        if !self.options.one_cpu {
            return;
        }
        let thread = self.thread(pid, now, true);
        let early = now < thread.out;
        (thread.out, thread.since) = (now, now);
        self.count_stamp(early);
    }

    fn count_stamp(&mut self, early: bool) {
        self.stamps += 1;
        self.unordered += u64::from(early);
    }

    fn is_wake(&mut self, event: &RecordEvent) -> bool {
        match self.options.perf {
            Perf::V6_1 => {
                matches!(event, RecordEvent::Wakeup { .. } | RecordEvent::WakeupNew { .. })
            }
            Perf::V6_12 => self.wakes.counts(event),
        }
    }

    /// Rows in their order, with the name column.
    fn rows(&self, comms: &Comms) -> Vec<(String, Thread)> {
        let busy = self.threads.iter().rev().filter(|(pid, _)| **pid != IDLE);
        let mut rows: Vec<(String, Thread)> = if self.options.pids {
            busy.map(|(pid, thread)| (self.label(*pid, comms), *thread)).collect()
        } else {
            let mut merged: BTreeMap<Reverse<String>, (Pid, Thread)> = BTreeMap::new();
            for (pid, thread) in busy {
                merged
                    .entry(Reverse(self.names.of(*pid, comms)))
                    .and_modify(|(_, row)| row.merge(thread))
                    .or_insert((*pid, *thread));
            }
            let label = |name: String, pid, row: &Thread| match row.merged {
                1 => self.label(pid, comms),
                n => format!("{name}:({n})"),
            };
            merged.into_iter().map(|(name, (pid, row))| (label(name.0, pid, &row), row)).collect()
        };
        rows.retain(|(_, row)| row.delays > 0);
        // Rows with equal keys stay in descending order of thread or name.
        rows.sort_by_key(|(_, row)| {
            Reverse(self.options.sort.iter().map(|key| row.key(*key)).collect::<Vec<_>>())
        });
        rows
    }

    fn label(&self, pid: Pid, comms: &Comms) -> String {
        format!("{}:{}", self.names.of(pid, comms), pid.0)
    }

    /// Writes the table and what must be known before trusting it.
    ///
    /// # Errors
    /// When the output does not take it.
    pub fn finish<W: Write>(mut self, comms: &Comms, out: W) -> io::Result<W> {
        if !self.told {
            self.threads.values_mut().for_each(|thread| thread.runtime = thread.on_cpu);
        }
        let mut out = Out::new(out);
        let rule = "-".repeat(139);
        let count = match self.options.perf {
            Perf::V6_1 => " Switches ",
            Perf::V6_12 => "  Count   ",
        };
        out.put(format_args!("\n {rule}\n"));
        out.put(format_args!(
            "  Task                  |   Runtime ms  |{count}| Avg delay ms    | Max delay ms    | \
             Max delay start           | Max delay end          |\n {rule}\n"
        ));
        let (mut runtime, mut delays) = (0u64, 0u64);
        for (name, row) in self.rows(comms) {
            runtime = runtime.saturating_add(row.runtime);
            delays += row.delays;
            out.put(format_args!(
                "  {name:<21} |{:>11} ms |{:>9} | avg:{:>8} ms | max:{:>8} ms | \
                 max start: {:>12} s | max end: {:>12} s\n",
                msec_rounded(row.runtime),
                row.delays,
                msec_rounded(row.mean()),
                msec_rounded(row.max),
                seconds(row.max_from),
                seconds(row.max_to),
            ));
        }
        out.put(format_args!(" {}\n", "-".repeat(113)));
        let total = msec_rounded(runtime);
        out.put(format_args!("  TOTAL:                |{total:>11} ms |{delays:>9} |\n"));
        out.put(format_args!(" {}\n", "-".repeat(51)));
        self.notes(&mut out);
        out.line("");
        out.finish()
    }

    fn notes<W: Write>(&self, out: &mut Out<W>) {
        if !self.told {
            out.line(
                "  INFO: no sched_stat_runtime in the trace: Runtime is from switch to switch",
            );
        }
        if self.unordered > 0 {
            let share = percent(self.unordered, self.stamps, 3);
            let (n, of) = (self.unordered, self.stamps);
            out.put(format_args!("  INFO: {share}% unordered timestamps ({n} out of {of})\n"));
        }
        if self.lost_chunks > 0 {
            let (n, of) = (self.lost, self.records.saturating_add(self.lost));
            let (share, chunks) = (percent(n, of, 3), self.lost_chunks);
            out.put(format_args!(
                "  INFO: {share}% lost events ({n} out of {of}, in {chunks} chunks)\n"
            ));
        }
        if self.switch_bugs > 0 && self.stamps > 0 {
            let share = percent(self.switch_bugs, self.stamps, 3);
            let (n, of) = (self.switch_bugs, self.stamps);
            let why = if self.lost_chunks > 0 { " (due to lost events?)" } else { "" };
            out.put(format_args!("  INFO: {share}% context switch bugs ({n} out of {of}){why}\n"));
        }
    }
}

impl RecordSink for Latency {
    fn record(&mut self, record: &TraceRecord, comms: &Comms) {
        self.records += 1;
        self.names.learn(record, comms);
        match record.event {
            RecordEvent::Switch { prev, prev_state, next, .. } => {
                self.switch(record, prev, prev_state, next);
            }
            RecordEvent::Waking { pid, .. }
            | RecordEvent::Wakeup { pid, .. }
            | RecordEvent::WakeupNew { pid, .. } => {
                if self.is_wake(&record.event) {
                    self.wake(pid, record.time);
                }
            }
            RecordEvent::Migrate { pid, .. } => self.migrate(pid, record.time),
            RecordEvent::StatRuntime { pid, runtime_ns } => {
                self.told = true;
                let thread = self.thread(pid, record.time, true);
                thread.runtime = thread.runtime.saturating_add(runtime_ns);
            }
            RecordEvent::Lost { count } => {
                self.records -= 1;
                self.lost_chunks += 1;
                self.lost = self.lost.saturating_add(count);
            }
            RecordEvent::Fork { .. } | RecordEvent::Exec { .. } | RecordEvent::Exit { .. } => {}
        }
    }
    fn process(&mut self, thread: Pid, process: Pid) {
        self.names.process(thread, process);
    }
}
