// SPDX-License-Identifier: GPL-2.0-only
//! Our own view: what the file holds, figures of every thread, and what each CPU did.
//!
//! Only what two switches in a row of one CPU enclose is known. Where a record contradicts the one
//! before it, the stretch between them counts as unknown, never as idle.

mod print;

use std::collections::BTreeMap;
use std::io::{self, Write};

use schedlab_metrics::Spans;
use schedlab_policy_api::{Pid, RecordEvent, RecordedState, TraceRecord};
use schedlab_trace::{Comms, ReadSummary, RecordSink};
use schedlab_units::{CpuId, Time};

use crate::dialect::Wakes;
use crate::names::{IDLE, Names};

pub use print::SUMMARY_SCHEMA;

#[derive(Debug, Default)]
struct Thread {
    run: u64,
    voluntary: u64,
    involuntary: u64,
    wakeups: u64,
    migrations: u64,
    /// The CPU it was on last.
    cpu: Option<CpuId>,
    /// Woken at this time and not on a CPU since.
    woken: Option<Time>,
    on_cpu: bool,
    latency: Spans,
}

#[derive(Clone, Copy, Debug, Default)]
struct Cpu {
    /// The latest switch: when, and to whom.
    since: Option<(Time, Pid)>,
    /// A record since then was not of that thread.
    contradicted: bool,
    busy: u64,
    idle: u64,
    contradictions: u64,
}

/// The view; [`Summary::text`] or [`Summary::json`] writes it.
#[derive(Debug, Default)]
pub struct Summary {
    threads: BTreeMap<Pid, Thread>,
    cpus: Vec<Cpu>,
    names: Names,
    wakes: Wakes,
    /// The trace has migration records, so that they need not be guessed from the CPUs.
    migrate_seen: bool,
}

impl Summary {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes tables for people.
    ///
    /// # Errors
    /// When the output does not take it.
    pub fn text<W: Write>(&self, found: &ReadSummary, comms: &Comms, out: W) -> io::Result<W> {
        print::text(self, found, comms, out)
    }

    /// Writes one JSON document; times are integer ns.
    ///
    /// # Errors
    /// When the output does not take it.
    pub fn json<W: Write>(&self, found: &ReadSummary, comms: &Comms, out: W) -> io::Result<W> {
        print::json(self, found, comms, out)
    }

    fn cpu(&mut self, cpu: CpuId) -> &mut Cpu {
        if self.cpus.len() <= cpu.index() {
            self.cpus.resize(cpu.index() + 1, Cpu::default());
        }
        &mut self.cpus[cpu.index()]
    }

    fn thread(&mut self, pid: Pid) -> &mut Thread {
        self.threads.entry(pid).or_default()
    }

    fn switch(&mut self, record: &TraceRecord, prev: Pid, state: RecordedState, next: Pid) {
        let now = record.time;
        let cpu = self.cpu(record.cpu);
        let known = match cpu.since {
            Some((since, pid)) if pid == prev && !cpu.contradicted => {
                Some(now.saturating_since(since).as_ns())
            }
            Some(_) => {
                cpu.contradictions += 1;
                None
            }
            None => None,
        };
        if let Some(ns) = known {
            if prev == IDLE {
                cpu.idle = cpu.idle.saturating_add(ns);
            } else {
                cpu.busy = cpu.busy.saturating_add(ns);
            }
        }
        (cpu.since, cpu.contradicted) = (Some((now, next)), false);
        if prev != IDLE {
            let thread = self.thread(prev);
            thread.run = thread.run.saturating_add(known.unwrap_or(0));
            match state {
                RecordedState::Runnable | RecordedState::Preempted => thread.involuntary += 1,
                _ => thread.voluntary += 1,
            }
            (thread.on_cpu, thread.cpu, thread.woken) = (false, Some(record.cpu), None);
        }
        if next != IDLE {
            let migrate_seen = self.migrate_seen;
            let thread = self.thread(next);
            if let Some(woken) = thread.woken.take() {
                thread.latency.record(now.saturating_since(woken).as_ns());
            }
            if !migrate_seen && thread.cpu.is_some_and(|cpu| cpu != record.cpu) {
                thread.migrations += 1;
            }
            (thread.on_cpu, thread.cpu) = (true, Some(record.cpu));
        }
    }

    fn migrate(&mut self, pid: Pid) {
        // What was counted by CPUs before the first such record stays; records count from here.
        self.migrate_seen = true;
        self.thread(pid).migrations += 1;
    }

    fn wake(&mut self, pid: Pid, now: Time, new: bool) {
        let thread = self.thread(pid);
        thread.wakeups += u64::from(!new);
        if !thread.on_cpu {
            thread.woken.get_or_insert(now);
        }
    }
}

impl RecordSink for Summary {
    fn record(&mut self, record: &TraceRecord, comms: &Comms) {
        self.names.learn(record, comms);
        let counts = self.wakes.counts(&record.event);
        match record.event {
            RecordEvent::Switch { prev, prev_state, next, .. } => {
                self.switch(record, prev, prev_state, next);
                return;
            }
            RecordEvent::Waking { pid, .. }
            | RecordEvent::Wakeup { pid, .. }
            | RecordEvent::WakeupNew { pid, .. } => {
                if counts {
                    let new = matches!(record.event, RecordEvent::WakeupNew { .. });
                    self.wake(pid, record.time, new);
                }
            }
            RecordEvent::Migrate { pid, .. } => self.migrate(pid),
            RecordEvent::Fork { child, .. } => {
                self.thread(child);
            }
            RecordEvent::Lost { .. } => {
                self.cpu(record.cpu).contradicted = true;
                return;
            }
            RecordEvent::Exec { .. }
            | RecordEvent::Exit { .. }
            | RecordEvent::StatRuntime { .. } => {}
        }
        let pid = record.pid;
        let cpu = self.cpu(record.cpu);
        if pid != schedlab_trace::UNKNOWN_PID && cpu.since.is_some_and(|(_, now)| now != pid) {
            cpu.contradicted = true;
        }
    }
    fn process(&mut self, thread: Pid, process: Pid) {
        self.names.process(thread, process);
    }
}
