// SPDX-License-Identifier: GPL-2.0-only
//! Writes records as ftrace packets, lengths of run queues and values of policies as counters.

use std::collections::BTreeMap;
use std::io::{self, Write};

use schedlab_policy_api::{CommId, Pid, RecordEvent, TraceRecord};
use schedlab_units::{CpuId, Time};

use super::fields::{bundle, packet};
use super::message::write_event;
use super::names::Names;
use super::wire::Message;
use crate::comms::Comms;
use crate::out::Out;
use crate::runqueue::Runqueues;
use crate::sink::{PolicyValue, RecordSink, RecordWriter, ValueOf};

/// Clocks of Perfetto.
const CLOCK_MONOTONIC: u64 = 3;
const CLOCK_BOOTTIME: u64 = 6;
/// The sequence of all packets, and the flag of its first one.
const SEQUENCE: u64 = 1;
const SEQUENCE_STATE_CLEARED: u64 = 1;
/// Events of one CPU in a row that share a bundle.
const BUNDLE_EVENTS: usize = 256;

/// A sink that writes a Perfetto trace.
///
/// CPU rows, thread states and wake-ups come from ftrace packets, which every version of the trace
/// processor reads; each CPU has a counter of the threads that want it, and each value of a policy
/// is a counter of its thread. Memory grows with the number of threads only. An output that fails
/// is not written to again; closing reports it.
#[derive(Debug)]
pub struct PerfettoWriter<W: Write> {
    out: Out<W>,
    /// The bundle under way: its CPU and its events.
    cpu: Option<CpuId>,
    events: Message,
    n_events: usize,
    n_records: u64,
    names: Names,
    /// Texts of the names, by id, as far as they were used.
    texts: Vec<String>,
    processes: BTreeMap<Pid, Pid>,
    runqueues: Runqueues,
    /// Counters that have been described, by owner and name, with the last value.
    counters: BTreeMap<(ValueOf, String), Counter>,
    packet: Message,
}

#[derive(Clone, Copy, Debug)]
struct Counter {
    uuid: u64,
    last: Option<i64>,
}

impl<W: Write> PerfettoWriter<W> {
    /// A writer to `out`; `origin` says in a few words what is written.
    pub fn new(out: W, origin: &str) -> Self {
        let mut writer = Self {
            out: Out::new(out),
            cpu: None,
            events: Message::default(),
            n_events: 0,
            n_records: 0,
            names: Names::default(),
            texts: Vec::new(),
            processes: BTreeMap::new(),
            runqueues: Runqueues::default(),
            counters: BTreeMap::new(),
            packet: Message::default(),
        };
        // Both clocks start with the recording.
        let mut snapshot = Message::default();
        for clock in [CLOCK_MONOTONIC, CLOCK_BOOTTIME] {
            let mut message = Message::default();
            message.varint(1, clock);
            message.varint(2, 0);
            snapshot.message(1, &message);
        }
        snapshot.varint(2, CLOCK_BOOTTIME);
        writer.packet.varint(packet::SEQUENCE_ID, SEQUENCE);
        writer.packet.varint(packet::SEQUENCE_FLAGS, SEQUENCE_STATE_CLEARED);
        writer.packet.message(packet::CLOCK_SNAPSHOT, &snapshot);
        writer.packet.blob(packet::SCHEDLAB, origin.as_bytes());
        writer.end_packet();
        writer
    }

    /// Writes what is left and returns the output.
    ///
    /// # Errors
    /// The first failure of the output, now or earlier.
    pub fn finish(mut self) -> io::Result<W> {
        self.end_bundle();
        self.write_process_tree();
        self.packet.varint(packet::SEQUENCE_ID, SEQUENCE);
        self.packet.varint(packet::SCHEDLAB_END, self.n_records);
        self.end_packet();
        self.out.finish()
    }

    fn end_packet(&mut self) {
        let mut framed = Message::default();
        framed.message(1, &self.packet);
        self.out.bytes(&framed.bytes);
        self.packet.clear();
    }

    fn end_bundle(&mut self) {
        let Some(cpu) = self.cpu.take() else { return };
        let mut message = Message::default();
        message.varint(bundle::CPU, u64::from(cpu.0));
        message.bytes.append(&mut self.events.bytes);
        self.n_events = 0;
        self.packet.message(packet::FTRACE_EVENTS, &message);
        self.end_packet();
    }

    /// Threads with their names and processes, where they are known.
    fn write_process_tree(&mut self) {
        if self.processes.is_empty() {
            return;
        }
        let mut tree = Message::default();
        let mut leaders: Vec<Pid> = self.processes.values().copied().collect();
        leaders.sort_unstable();
        leaders.dedup();
        for leader in leaders {
            let mut process = Message::default();
            process.varint(1, u64::from(leader.0));
            process.blob(3, self.text(leader).as_bytes());
            tree.message(1, &process);
        }
        for (thread, process) in &self.processes {
            let mut message = Message::default();
            message.varint(1, u64::from(thread.0));
            message.blob(2, self.text(*thread).as_bytes());
            message.varint(3, u64::from(process.0));
            tree.message(2, &message);
        }
        self.packet.message(packet::PROCESS_TREE, &tree);
        self.end_packet();
    }

    /// The last name of a thread; empty when none was told.
    fn text(&self, pid: Pid) -> &str {
        let id = self.names.get(pid);
        id.and_then(|id| self.texts.get(id.0 as usize)).map_or("", String::as_str)
    }

    fn write_counter(&mut self, time: Time, of: ValueOf, name: &str, value: i64) {
        let key = (of, name.to_string());
        let n_counters = self.counters.len() as u64;
        let described = self.counters.contains_key(&key);
        let counter =
            self.counters.entry(key).or_insert(Counter { uuid: n_counters + 1, last: None });
        if counter.last.replace(value) == Some(value) {
            return;
        }
        let uuid = counter.uuid;
        self.end_bundle();
        if !described {
            self.describe(of, name, uuid);
        }
        let mut event = Message::default();
        event.varint(9, 4);
        event.varint(11, uuid);
        event.signed(30, value);
        self.packet.varint(packet::TIMESTAMP, time.as_ns());
        self.packet.varint(packet::SEQUENCE_ID, SEQUENCE);
        self.packet.message(packet::TRACK_EVENT, &event);
        self.end_packet();
    }

    /// The track of a counter: a thread's belongs to the thread, a CPU's says so in its name.
    fn describe(&mut self, of: ValueOf, name: &str, uuid: u64) {
        let mut track = Message::default();
        track.varint(1, uuid);
        match of {
            ValueOf::Cpu(cpu) => track.blob(2, format!("CPU {cpu} {name}").as_bytes()),
            ValueOf::Thread(pid) => {
                let thread_name = self.text(pid);
                track.blob(2, format!("{thread_name} {pid} {name}", pid = pid.0).as_bytes());
            }
        }
        track.message(8, &Message::default());
        self.packet.varint(packet::SEQUENCE_ID, SEQUENCE);
        self.packet.message(packet::TRACK_DESCRIPTOR, &track);
        self.end_packet();
    }
}

impl<W: Write> RecordSink for PerfettoWriter<W> {
    fn record(&mut self, record: &TraceRecord, comms: &Comms) {
        if self.cpu != Some(record.cpu) || self.n_events == BUNDLE_EVENTS {
            self.end_bundle();
            self.cpu = Some(record.cpu);
        }
        let comm = comms.name(record.comm);
        let is_known = self.names.get(record.pid) == Some(record.comm);
        let mut event = Message::default();
        write_event(&mut event, record, comms, (!is_known).then_some(comm));
        if matches!(record.event, RecordEvent::Lost { .. }) {
            self.events.varint(bundle::LOST_EVENTS, 1);
        }
        self.events.message(bundle::EVENT, &event);
        self.n_events += 1;
        self.n_records += 1;
        self.names.learn(record);
        for id in self.texts.len()..comms.len() {
            self.texts.push(comms.name(CommId(id as u32)).to_string());
        }
        for cpu in self.runqueues.take(record).into_iter().flatten() {
            let n = i64::from(self.runqueues.nr_running(cpu));
            self.write_counter(record.time, ValueOf::Cpu(cpu), "nr_running", n);
        }
    }

    fn process(&mut self, thread: Pid, process: Pid) {
        self.processes.insert(thread, process);
    }

    fn value(&mut self, value: &PolicyValue<'_>) {
        self.write_counter(value.time, value.of, value.name, value.value);
    }
}

impl<W: Write + Send> RecordWriter for PerfettoWriter<W> {
    fn close(self: Box<Self>) -> io::Result<()> {
        self.finish().map(drop)
    }
}
