// SPDX-License-Identifier: GPL-2.0-only
//! Several runs in one Perfetto trace, each a process with a track for each CPU, so that they are
//! seen one below the other on one axis of time.
//!
//! A trace has one set of CPUs, so the CPUs of several runs cannot all come from ftrace packets:
//! here they are tracks with a slice for each stay of a thread. Wake-ups are flows to the slice
//! they lead to. The times of each run count from its first record, so that recordings of
//! different hours stand side by side. Such a file is to be looked at; it is not read back.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schedlab_policy_api::{Pid, RecordEvent, TraceRecord};
use schedlab_units::{CpuId, Time};

use super::fields::packet;
use super::wire::Message;
use crate::comms::Comms;
use crate::out::Out;
use crate::runqueue::Runqueues;
use crate::sink::{PolicyValue, RecordSink, RecordWriter, ValueOf};

const SEQUENCE: u64 = 1;
const SEQUENCE_STATE_CLEARED: u64 = 1;
/// `TrackEvent` types.
const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;
/// Fields of `TrackEvent`.
const TYPE: u32 = 9;
const TRACK: u32 = 11;
const NAME: u32 = 23;
const COUNTER_VALUE: u32 = 30;
const FLOW: u32 = 47;
const FLOW_END: u32 = 48;

/// Where the bytes go.
type Output = Box<dyn Write + Send>;

/// A writer of several runs; each is fed through the writer that [`SideBySide::run`] gives.
///
/// Runs are written one after the other. Memory grows with the threads and values of one run.
pub struct SideBySide(Arc<Mutex<Shared>>);

/// The writer of one run.
struct Run {
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    out: Option<Out<Output>>,
    packet: Message,
    n_runs: u64,
    n_flows: u64,
    state: State,
}

/// What is known of the run under way.
#[derive(Default)]
struct State {
    cpus: BTreeMap<CpuId, Cpu>,
    runqueues: Runqueues,
    /// Flows of wake-ups that have not led to a slice yet.
    flows: BTreeMap<Pid, u64>,
    counters: BTreeMap<(ValueOf, String), (u64, i64)>,
    names: BTreeMap<Pid, String>,
    /// Its first record, from which its times count, and its last one.
    first: Option<Time>,
    last: Time,
}

/// A CPU of the run.
struct Cpu {
    track: u64,
    /// Whether a slice is open.
    is_open: bool,
}

impl SideBySide {
    /// A writer to `out`.
    pub fn new(out: Output) -> Self {
        let mut shared = Shared {
            out: Some(Out::new(out)),
            packet: Message::default(),
            n_runs: 0,
            n_flows: 0,
            state: State::default(),
        };
        shared.packet.varint(packet::SEQUENCE_FLAGS, SEQUENCE_STATE_CLEARED);
        shared.packet.varint(packet::SCHEDLAB_RUNS, 1);
        shared.end_packet();
        Self(Arc::new(Mutex::new(shared)))
    }

    /// Begins a run called `name`; it is over when the writer is closed.
    pub fn run(&self, name: &str) -> Box<dyn RecordWriter> {
        lock(&self.0).begin(name);
        Box::new(Run { shared: Arc::clone(&self.0) })
    }

    /// Writes what is left.
    ///
    /// # Errors
    /// The first failure of the output, now or earlier.
    pub fn finish(self) -> io::Result<()> {
        lock(&self.0).out.take().map_or(Ok(()), |out| out.finish().map(drop))
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RecordSink for Run {
    fn record(&mut self, record: &TraceRecord, comms: &Comms) {
        lock(&self.shared).record(record, comms);
    }
    fn value(&mut self, value: &PolicyValue<'_>) {
        let mut shared = lock(&self.shared);
        let name = match value.of {
            ValueOf::Thread(pid) => {
                let known = shared.state.names.get(&pid).map_or("", String::as_str);
                format!("{known} {} {}", pid.0, value.name)
            }
            ValueOf::Cpu(cpu) => format!("CPU {cpu} {}", value.name),
        };
        shared.counter(value.time, value.of, &name, value.value);
    }
}

impl RecordWriter for Run {
    fn close(self: Box<Self>) -> io::Result<()> {
        lock(&self.shared).end_run();
        Ok(())
    }
}

impl Shared {
    fn end_packet(&mut self) {
        self.packet.varint(packet::SEQUENCE_ID, SEQUENCE);
        let mut framed = Message::default();
        framed.message(1, &self.packet);
        self.packet.clear();
        if let Some(out) = &mut self.out {
            out.bytes(&framed.bytes);
        }
    }

    /// Numbers of tracks: the run in the upper half; its own track is 0, then CPUs and counters.
    fn track(&self, n: u64) -> u64 {
        (self.n_runs << 32) | n
    }

    fn begin(&mut self, name: &str) {
        self.end_run();
        self.n_runs += 1;
        self.state = State::default();
        let (mut track, mut process) = (Message::default(), Message::default());
        process.varint(1, self.n_runs);
        process.blob(6, name.as_bytes());
        track.varint(1, self.track(0));
        track.message(3, &process);
        self.describe(&track);
    }

    fn describe(&mut self, track: &Message) {
        self.packet.message(packet::TRACK_DESCRIPTOR, track);
        self.end_packet();
    }

    /// Closes the slices that are open.
    fn end_run(&mut self) {
        let last = self.state.last;
        let open = self.state.cpus.values_mut().filter(|cpu| cpu.is_open);
        let tracks: Vec<u64> = open.map(|cpu| cpu.track).collect();
        for cpu in self.state.cpus.values_mut() {
            cpu.is_open = false;
        }
        for track in tracks {
            self.event(last, SLICE_END, track, |_| {});
        }
    }

    fn event(&mut self, time: Time, kind: u64, track: u64, more: impl FnOnce(&mut Message)) {
        let mut event = Message::default();
        event.varint(TYPE, kind);
        event.varint(TRACK, track);
        more(&mut event);
        let since = time.saturating_since(self.state.first.unwrap_or(time));
        self.packet.varint(packet::TIMESTAMP, since.as_ns());
        self.packet.message(packet::TRACK_EVENT, &event);
        self.end_packet();
    }

    fn cpu(&mut self, cpu: CpuId) -> u64 {
        if let Some(known) = self.state.cpus.get(&cpu) {
            return known.track;
        }
        let uuid = self.track(1 + u64::from(cpu.0));
        let mut track = Message::default();
        track.varint(1, uuid);
        track.blob(2, format!("CPU {cpu}").as_bytes());
        track.varint(5, self.track(0));
        self.describe(&track);
        self.state.cpus.insert(cpu, Cpu { track: uuid, is_open: false });
        uuid
    }

    fn record(&mut self, record: &TraceRecord, comms: &Comms) {
        let TraceRecord { time, cpu, event, .. } = *record;
        self.state.first.get_or_insert(time);
        self.state.last = self.state.last.max(time);
        let track = self.cpu(cpu);
        match event {
            RecordEvent::Switch { next, next_comm, .. } => {
                let is_open = next != Pid(0);
                let was_open = self
                    .state
                    .cpus
                    .get_mut(&cpu)
                    .is_some_and(|cpu| std::mem::replace(&mut cpu.is_open, is_open));
                if was_open {
                    self.event(time, SLICE_END, track, |_| {});
                }
                let flow = self.state.flows.remove(&next);
                let name = comms.name(next_comm);
                self.state.names.insert(next, name.to_string());
                if is_open {
                    self.event(time, SLICE_BEGIN, track, |event| {
                        event.blob(NAME, format!("{name} {}", next.0).as_bytes());
                        if let Some(flow) = flow {
                            event.fixed64(FLOW_END, flow);
                        }
                    });
                }
            }
            RecordEvent::Waking { pid, comm, .. } | RecordEvent::WakeupNew { pid, comm, .. } => {
                self.n_flows += 1;
                let flow = self.n_flows;
                self.state.flows.insert(pid, flow);
                let name = comms.name(comm);
                self.state.names.insert(pid, name.to_string());
                self.event(time, INSTANT, track, |event| {
                    event.blob(NAME, format!("wakes {name} {}", pid.0).as_bytes());
                    event.fixed64(FLOW, flow);
                });
            }
            _ => {}
        }
        for cpu in self.state.runqueues.take(record).into_iter().flatten() {
            let n = i64::from(self.state.runqueues.nr_running(cpu));
            self.counter(time, ValueOf::Cpu(cpu), &format!("CPU {cpu} nr_running"), n);
        }
    }

    fn counter(&mut self, time: Time, of: ValueOf, name: &str, value: i64) {
        let key = (of, name.to_string());
        let n = self.state.counters.len() as u64;
        let uuid = match self.state.counters.get(&key) {
            Some((_, last)) if *last == value => return,
            Some((uuid, _)) => *uuid,
            None => {
                // Above the tracks of CPUs.
                let uuid = self.track((1 << 16) + n);
                let mut track = Message::default();
                track.varint(1, uuid);
                track.blob(2, name.as_bytes());
                track.varint(5, self.track(0));
                track.message(8, &Message::default());
                self.describe(&track);
                uuid
            }
        };
        self.state.counters.insert(key, (uuid, value));
        self.event(time, COUNTER, uuid, |event| event.signed(COUNTER_VALUE, value));
    }
}
