// SPDX-License-Identifier: GPL-2.0-only
//! Figures of each thread from records, alike for recordings of kernels and for simulated runs, so
//! that both can be compared.

use std::collections::BTreeMap;

use schedlab_policy_api::{Pid, RecordEvent, RecordedState, TraceRecord};
use schedlab_units::Time;

use crate::comms::Comms;
use crate::sink::RecordSink;

/// Figures of one thread, times in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadFigures {
    /// Its last name.
    pub name: String,
    /// Time on CPUs, from switch-in to switch-out.
    pub run: u64,
    /// CPU time that `sched_stat_runtime` tells.
    pub stat_runtime: u64,
    /// Time on run queues, from wake-up or preemption to switch-in.
    pub wait: u64,
    /// Switches away to sleep or to end.
    pub voluntary: u64,
    /// Switches away while willing to run.
    pub involuntary: u64,
    /// Wake-ups.
    pub wakeups: u64,
    /// Wake-up to the next switch-in, sorted.
    pub latencies: Vec<u64>,
}

impl ThreadFigures {
    /// CPU time: what `sched_stat_runtime` tells, or else the time on CPUs.
    pub fn cpu_time(&self) -> u64 {
        if self.stat_runtime > 0 { self.stat_runtime } else { self.run }
    }
    /// Latency of which `per_mille` of all are no larger, by nearest rank; none without wake-ups.
    pub fn latency(&self, per_mille: u64) -> Option<u64> {
        let n = self.latencies.len() as u64;
        let rank = (n * per_mille).div_ceil(1000).max(1);
        self.latencies.get(rank as usize - 1).copied()
    }
}

#[derive(Clone, Debug, Default)]
struct Thread {
    figures: ThreadFigures,
    running: Option<Time>,
    waiting: Option<Time>,
    woken: Option<Time>,
}

/// A sink that keeps figures of every thread but the idle ones. Memory grows with wake-ups.
#[derive(Clone, Debug, Default)]
pub struct RecordFigures {
    threads: BTreeMap<Pid, Thread>,
    /// Whether wakings are recorded, so that wake-ups need not be counted too.
    has_wakings: bool,
    span: Option<(Time, Time)>,
}

impl RecordFigures {
    /// None yet.
    pub fn new() -> Self {
        Self::default()
    }
    /// The figures by thread; what is still open at the end counts up to the last record.
    pub fn finish(self) -> BTreeMap<Pid, ThreadFigures> {
        let end = self.span.map_or(Time::ZERO, |(_, end)| end);
        let close = |(pid, mut thread): (Pid, Thread)| {
            add(&mut thread.figures.run, since(thread.running, end));
            add(&mut thread.figures.wait, since(thread.waiting, end));
            thread.figures.latencies.sort_unstable();
            (pid, thread.figures)
        };
        self.threads.into_iter().map(close).collect()
    }

    fn thread(&mut self, pid: Pid, name: &str) -> &mut Thread {
        let thread = self.threads.entry(pid).or_default();
        if thread.figures.name != name {
            thread.figures.name = name.to_string();
        }
        thread
    }

    fn wake(&mut self, pid: Pid, name: &str, now: Time) {
        let thread = self.thread(pid, name);
        thread.figures.wakeups += 1;
        if thread.running.is_none() {
            thread.waiting.get_or_insert(now);
            thread.woken.get_or_insert(now);
        }
    }
}

/// Adds times that a trace claims, however absurd.
fn add(sum: &mut u64, ns: u64) {
    *sum = sum.saturating_add(ns);
}

fn since(start: Option<Time>, now: Time) -> u64 {
    start.map_or(0, |start| now.saturating_since(start).as_ns())
}

impl RecordSink for RecordFigures {
    fn record(&mut self, record: &TraceRecord, comms: &Comms) {
        let now = record.time;
        let first = self.span.map_or(now, |(first, _)| first);
        self.span = Some((first, now));
        match record.event {
            RecordEvent::Switch { prev, prev_comm, prev_state, next, next_comm, .. } => {
                if prev != Pid(0) {
                    let thread = self.thread(prev, comms.name(prev_comm));
                    add(&mut thread.figures.run, since(thread.running.take(), now));
                    thread.woken = None;
                    thread.waiting = None;
                    if matches!(prev_state, RecordedState::Runnable | RecordedState::Preempted) {
                        thread.figures.involuntary += 1;
                        thread.waiting = Some(now);
                    } else {
                        thread.figures.voluntary += 1;
                    }
                }
                if next != Pid(0) {
                    let thread = self.thread(next, comms.name(next_comm));
                    add(&mut thread.figures.wait, since(thread.waiting.take(), now));
                    if let Some(woken) = thread.woken.take() {
                        thread.figures.latencies.push(since(Some(woken), now));
                    }
                    thread.running = Some(now);
                }
            }
            RecordEvent::Waking { pid, comm, .. } => {
                self.has_wakings = true;
                self.wake(pid, comms.name(comm), now);
            }
            RecordEvent::Wakeup { pid, comm, .. } if !self.has_wakings => {
                self.wake(pid, comms.name(comm), now);
            }
            RecordEvent::WakeupNew { pid, comm, .. } => self.wake(pid, comms.name(comm), now),
            RecordEvent::StatRuntime { pid, runtime_ns } if pid != Pid(0) => {
                add(&mut self.threads.entry(pid).or_default().figures.stat_runtime, runtime_ns);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_policy_api::{CommId, RecordContext};
    use schedlab_units::CpuId;

    fn at(ns: u64, event: RecordEvent) -> TraceRecord {
        TraceRecord {
            time: Time::from_ns(ns),
            cpu: CpuId(0),
            pid: Pid(0),
            comm: CommId(0),
            context: RecordContext::Unknown,
            event,
        }
    }
    fn switch(prev: u32, prev_state: RecordedState, next: u32) -> RecordEvent {
        let comm = CommId(0);
        RecordEvent::Switch {
            prev: Pid(prev),
            prev_comm: comm,
            prev_prio: 120,
            prev_state,
            next: Pid(next),
            next_comm: comm,
            next_prio: 120,
        }
    }

    #[test]
    fn absurd_runtimes_do_not_overflow() {
        let mut figures = RecordFigures::new();
        let event = RecordEvent::StatRuntime { pid: Pid(5), runtime_ns: u64::MAX };
        for ns in [1, 2] {
            figures.record(&at(ns, event), &Comms::default());
        }
        assert_eq!(figures.finish()[&Pid(5)].cpu_time(), u64::MAX);
    }

    #[test]
    fn thread_is_followed_from_wake_up_to_sleep() {
        let mut comms = Comms::default();
        comms.intern(b"a");
        let mut figures = RecordFigures::new();
        let target_cpu = CpuId(0);
        let waking = RecordEvent::Waking { pid: Pid(5), comm: CommId(0), prio: 120, target_cpu };
        for record in [
            at(10, waking),
            at(15, switch(0, RecordedState::Runnable, 5)),
            at(40, switch(5, RecordedState::Preempted, 6)),
            at(70, switch(6, RecordedState::Sleeping, 5)),
            at(100, switch(5, RecordedState::Sleeping, 0)),
        ] {
            figures.record(&record, &comms);
        }
        let figures = figures.finish();
        let five = &figures[&Pid(5)];
        assert_eq!((five.run, five.wait, five.wakeups), (55, 35, 1));
        assert_eq!((five.voluntary, five.involuntary), (1, 1));
        assert_eq!(
            (five.latency(500), five.latency(1000), five.cpu_time()),
            (Some(5), Some(5), 55)
        );
        assert_eq!((figures[&Pid(6)].run, figures[&Pid(6)].latency(500)), (30, None));
    }
}
