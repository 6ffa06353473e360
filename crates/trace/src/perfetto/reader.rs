// SPDX-License-Identifier: GPL-2.0-only
//! Reads the ftrace packets of a Perfetto trace, plain and compact.
//!
//! Bundles come CPU by CPU, so that events are out of order by as much as a bundle spans: they are
//! collected and sorted, and memory grows with the trace.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read as _};

use schedlab_policy_api::{CommId, Pid, RecordContext, RecordEvent, TraceRecord};
use schedlab_units::{CpuId, Located, Time};

use super::fields::{bundle, compact, packet};
use super::message::{context, parse_event, prev_state};
use super::names::Names;
use super::wire::{Fields, Value, varint};
use crate::comms::Comms;
use crate::format::Format;
use crate::intake::{Intake, Stamp, StepBack};
use crate::sink::RecordSink;
use crate::summary::ReadSummary;
use crate::text::{cpu_id, no_events};

/// The longest packet that makes sense. Bundles of traced have some 100 KiB.
const PACKET_MAX: u64 = 64 << 20;

/// Whether a file may begin like this: a whole packet, or the beginning of a long one, whose fields
/// are those of a packet.
pub(crate) fn looks_like(start: &[u8]) -> bool {
    let Some(rest) = start.strip_prefix(&[0x0a]) else { return false };
    let Some((length, used)) = varint(rest) else { return false };
    let body = &rest[used..];
    let is_whole = body.len() as u64 >= length;
    let body = if is_whole { &body[..length as usize] } else { body };
    let mut fields = Fields::new(body);
    let mut n_known = 0;
    loop {
        match fields.next() {
            // All packets have numbers below 1000; ours above are written after others.
            Ok(Some((
                1..=1000 | packet::SCHEDLAB | packet::SCHEDLAB_END | packet::SCHEDLAB_RUNS,
                _,
            ))) => n_known += 1,
            Ok(None) => return n_known > 0,
            Ok(Some(_)) => return false,
            Err(_) => return n_known > 0 && !is_whole,
        }
    }
}

/// Reads a trace into `sink`.
///
/// # Errors
/// A file that was cut or is damaged, with the offset of the packet; no scheduling events.
pub(crate) fn read_perfetto<R: BufRead>(
    input: R,
    sink: &mut dyn RecordSink,
) -> Result<(ReadSummary, Comms), Located> {
    let mut packets = Packets { input, offset: 0 };
    let mut reader = Reader {
        comms: Comms::default(),
        names: Names::default(),
        cpus: BTreeMap::new(),
        events: Vec::new(),
        tgids: BTreeMap::new(),
        others: BTreeMap::new(),
        origin: String::new(),
        is_ours: false,
        has_runs: false,
        n_records: 0,
        n_promised: None,
    };
    while let Some((offset, bytes)) = packets.next()? {
        reader.packet(&bytes).map_err(|message| fault(offset, message))?;
    }
    if reader.has_runs {
        return Err(Located::whole("the file shows several runs and holds no records")
            .hint("read the traces it was made of"));
    }
    if reader.is_ours && reader.n_promised != Some(reader.n_records) {
        return Err(fault(packets.offset, "the file ends before its last packet"));
    }
    reader.hand_out(sink)
}

fn fault(offset: u64, message: impl std::fmt::Display) -> Located {
    Located::whole(format!("byte {offset}: {message}")).hint("the file is damaged or was cut")
}

struct Packets<R> {
    input: R,
    offset: u64,
}

impl<R: BufRead> Packets<R> {
    /// The next packet and where it begins.
    fn next(&mut self) -> Result<Option<(u64, Vec<u8>)>, Located> {
        loop {
            let start = self.offset;
            let Some(tag) = self.number(start, true)? else { return Ok(None) };
            if tag & 7 != 2 {
                return Err(fault(start, "no packet begins here"));
            }
            let length = self.number(start, false)?.unwrap_or(0);
            if length > PACKET_MAX {
                return Err(fault(start, format!("a packet of {length} bytes is beyond belief")));
            }
            let mut bytes = Vec::new();
            let read = (&mut self.input).take(length).read_to_end(&mut bytes);
            read.map_err(|error| fault(self.offset, error))?;
            self.offset += bytes.len() as u64;
            if (bytes.len() as u64) < length {
                return Err(fault(self.offset, "the file ends in the middle of a packet"));
            }
            // Anything else at this level is metadata of a newer version.
            if tag >> 3 == 1 {
                return Ok(Some((start, bytes)));
            }
        }
    }

    /// A number in LEB128; none at the end of the file, if it `may_end` here.
    fn number(&mut self, start: u64, may_end: bool) -> Result<Option<u64>, Located> {
        let mut bytes = [0u8; 10];
        for at in 0..bytes.len() {
            let mut byte = [0];
            match self.input.read_exact(&mut byte) {
                Ok(()) => self.offset += 1,
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    if at == 0 && may_end {
                        return Ok(None);
                    }
                    return Err(fault(self.offset, "the file ends in the middle of a packet"));
                }
                Err(error) => return Err(fault(self.offset, error)),
            }
            bytes[at] = byte[0];
            if byte[0] & 0x80 == 0 {
                let value = varint(&bytes[..=at]).map(|(value, _)| value);
                return value
                    .map_or_else(|| Err(fault(start, "a malformed number")), |v| Ok(Some(v)));
            }
        }
        Err(fault(start, "a malformed number"))
    }
}

/// An event that waits to be sorted.
struct Held {
    record: TraceRecord,
    /// Whether the record's name is to be looked up when its turn comes.
    is_nameless: bool,
}

struct Reader {
    comms: Comms,
    names: Names,
    /// Who runs on each CPU, by the compact switches.
    cpus: BTreeMap<CpuId, (Pid, CommId, i32)>,
    events: Vec<Held>,
    tgids: BTreeMap<u32, u32>,
    others: BTreeMap<String, u64>,
    origin: String,
    /// Whether schedlab wrote the trace; how many records there were and should be.
    is_ours: bool,
    has_runs: bool,
    n_records: u64,
    n_promised: Option<u64>,
}

impl Reader {
    fn packet(&mut self, bytes: &[u8]) -> Result<(), String> {
        let mut fields = Fields::new(bytes);
        while let Some((field, value)) = next(&mut fields)? {
            match field {
                packet::FTRACE_EVENTS => self.bundle(value.blob())?,
                packet::PROCESS_TREE => self.process_tree(value.blob())?,
                packet::SCHEDLAB_RUNS => self.has_runs = true,
                packet::SCHEDLAB_END => self.n_promised = Some(value.number()),
                packet::SCHEDLAB => {
                    self.is_ours = true;
                    self.origin = String::from_utf8_lossy(value.blob()).into_owned();
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn bundle(&mut self, bytes: &[u8]) -> Result<(), String> {
        let mut cpu = 0;
        let mut fields = Fields::new(bytes);
        while let Some((field, value)) = next(&mut fields)? {
            if field == bundle::CPU {
                cpu = value.number();
            }
        }
        let cpu = cpu_id(cpu).map_err(|why| why.message)?;
        let mut fields = Fields::new(bytes);
        let mut lost = false;
        while let Some((field, value)) = next(&mut fields)? {
            match field {
                bundle::EVENT => lost = self.event(cpu, value.blob(), lost)?,
                bundle::COMPACT_SCHED => self.compact(cpu, value.blob(), &mut lost)?,
                bundle::LOST_EVENTS => lost = value.number() != 0,
                _ => {}
            }
        }
        Ok(())
    }

    /// Takes an event; whether a loss is still to be told.
    fn event(&mut self, cpu: CpuId, bytes: &[u8], lost: bool) -> Result<bool, String> {
        let parsed = parse_event(bytes, &mut self.comms)
            .map_err(|(at, message)| format!("{message} (at byte {at} of an event)"))?;
        let event = match parsed.event {
            Ok(event) => event,
            Err(field) => {
                *self.others.entry(format!("ftrace event {field}")).or_default() += 1;
                return Ok(lost);
            }
        };
        let comm = parsed.comm.map(|comm| self.comms.intern(comm));
        // We always tell what is no thread; others hardly ever tell anything, but a switch is its
        // thread's own doing.
        let is_thread = self.is_ours || matches!(event, RecordEvent::Switch { .. });
        let untold = if is_thread { RecordContext::Task } else { RecordContext::Unknown };
        let record = TraceRecord {
            time: parsed.time,
            cpu,
            pid: Pid(parsed.pid),
            comm: comm.unwrap_or(CommId(0)),
            context: parsed.context.unwrap_or(untold),
            event,
        };
        let is_exact = matches!(event, RecordEvent::Lost { .. });
        if lost && !is_exact {
            self.lost_before(&record);
        }
        self.events.push(Held { record, is_nameless: comm.is_none() });
        self.n_records += 1;
        Ok(false)
    }

    fn lost_before(&mut self, record: &TraceRecord) {
        let event = RecordEvent::Lost { count: 0 };
        self.events.push(Held { record: TraceRecord { event, ..*record }, is_nameless: true });
    }

    fn process_tree(&mut self, bytes: &[u8]) -> Result<(), String> {
        let mut fields = Fields::new(bytes);
        while let Some((field, value)) = next(&mut fields)? {
            if field != 2 {
                continue;
            }
            let (mut tid, mut tgid) = (0, 0);
            let mut thread = Fields::new(value.blob());
            while let Some((field, value)) = next(&mut thread)? {
                match field {
                    1 => tid = value.number() as u32,
                    3 => tgid = value.number() as u32,
                    _ => {}
                }
            }
            if tid != 0 && tgid != 0 {
                self.tgids.insert(tid, tgid);
            }
        }
        Ok(())
    }

    /// Switches and wakings as columns.
    fn compact(&mut self, cpu: CpuId, bytes: &[u8], lost: &mut bool) -> Result<(), String> {
        let mut columns: [Vec<u64>; 13] = Default::default();
        let mut names = Vec::new();
        let mut fields = Fields::new(bytes);
        while let Some((field, value)) = next(&mut fields)? {
            match (field, value) {
                (compact::INTERN_TABLE, value) => names.push(self.comms.intern(value.blob())),
                (1..=12, Value::Blob(packed)) => unpack(packed, &mut columns[field as usize])?,
                (1..=12, Value::Number(n)) => columns[field as usize].push(n),
                _ => {}
            }
        }
        let column = |field: u32, row: usize| columns[field as usize].get(row).copied();
        let name = |index: u64| names.get(index as usize).copied();
        let mut time = 0u64;
        for row in 0..columns[compact::SWITCH_TIMESTAMP as usize].len() {
            let cells = (|| {
                let since = column(compact::SWITCH_TIMESTAMP, row)?;
                let state = column(compact::SWITCH_PREV_STATE, row)?;
                let next = column(compact::SWITCH_NEXT_PID, row)?;
                let prio = column(compact::SWITCH_NEXT_PRIO, row)?;
                let comm = name(column(compact::SWITCH_NEXT_COMM, row)?)?;
                Some((since, state, Pid(next as u32), prio as i32, comm))
            })();
            let (since, state, next, next_prio, next_comm) =
                cells.ok_or("columns of compact switches differ in length")?;
            time = time.wrapping_add(since);
            let before = self.cpus.insert(cpu, (next, next_comm, next_prio));
            let Some((prev, prev_comm, prev_prio)) = before else {
                let what = "sched_switch whose leaving thread is unknown".to_string();
                *self.others.entry(what).or_default() += 1;
                continue;
            };
            let prev_state = prev_state(state);
            let event = RecordEvent::Switch {
                prev,
                prev_comm,
                prev_prio,
                prev_state,
                next,
                next_comm,
                next_prio,
            };
            self.compact_event(cpu, time, prev, RecordContext::Task, event, lost);
        }
        let mut time = 0u64;
        for row in 0..columns[compact::WAKING_TIMESTAMP as usize].len() {
            let cells = (|| {
                let since = column(compact::WAKING_TIMESTAMP, row)?;
                let pid = column(compact::WAKING_PID, row)?;
                let target = column(compact::WAKING_TARGET_CPU, row)?;
                let prio = column(compact::WAKING_PRIO, row)?;
                let comm = name(column(compact::WAKING_COMM, row)?)?;
                // Traces of older producers have no flags.
                let flags = column(compact::WAKING_FLAGS, row);
                Some((since, Pid(pid as u32), target, prio as i32, comm, flags))
            })();
            let (since, pid, target, prio, comm, flags) =
                cells.ok_or("columns of compact wakings differ in length")?;
            time = time.wrapping_add(since);
            let target_cpu = cpu_id(target).map_err(|why| why.message)?;
            let context = flags.map_or(RecordContext::Unknown, context);
            let event = RecordEvent::Waking { pid, comm, prio, target_cpu };
            // Who runs is known once all switches are sorted in.
            self.compact_event(cpu, time, Pid(u32::MAX), context, event, lost);
        }
        Ok(())
    }

    fn compact_event(
        &mut self,
        cpu: CpuId,
        time: u64,
        pid: Pid,
        context: RecordContext,
        event: RecordEvent,
        lost: &mut bool,
    ) {
        let time = Time::from_ns(time);
        let record = TraceRecord { time, cpu, pid, comm: CommId(0), context, event };
        if std::mem::take(lost) {
            self.lost_before(&record);
        }
        self.events.push(Held { record, is_nameless: true });
    }

    fn hand_out(mut self, sink: &mut dyn RecordSink) -> Result<(ReadSummary, Comms), Located> {
        self.events.sort_by_key(|held| held.record.time);
        for (thread, process) in &self.tgids {
            sink.process(Pid(*thread), Pid(*process));
        }
        let mut intake = Intake::new(Format::Perfetto, sink);
        intake.comms = self.comms;
        intake.summary.origin = self.origin;
        for (name, n) in self.others {
            intake.summary.other_events.insert(name, n);
        }
        for held in self.events {
            let mut record = held.record;
            let pid = (record.pid.0 != u32::MAX).then_some(record.pid.0);
            if held.is_nameless {
                let idle = if record.pid == Pid(0) { &b"<idle>"[..] } else { b"<...>" };
                let known = self.names.get(record.pid);
                record.comm = known.unwrap_or_else(|| intake.comms.intern(idle));
            }
            let comm = intake.comms.name(record.comm).to_string();
            let stamp = Stamp {
                time: record.time,
                cpu: record.cpu,
                pid,
                tgid: None,
                comm: comm.as_bytes(),
                context: record.context,
            };
            self.names.learn(&record);
            let taken = match record.event {
                RecordEvent::Lost { count } => {
                    intake.lost(record.cpu, (count > 0).then_some(count));
                    Ok(())
                }
                event => intake.take(&stamp, event),
            };
            taken.map_err(|back: StepBack| Located::whole(back.message()).hint(StepBack::HINT))?;
        }
        let (summary, comms) = intake.finish();
        if summary.records == 0 {
            return Err(no_events(&summary));
        }
        Ok((summary, comms))
    }
}

fn next<'a>(fields: &mut Fields<'a>) -> Result<Option<(u32, Value<'a>)>, String> {
    fields.next().map_err(|at| format!("a message is malformed at its byte {at}"))
}

/// A packed column of numbers.
fn unpack(mut packed: &[u8], column: &mut Vec<u64>) -> Result<(), String> {
    while !packed.is_empty() {
        let (value, used) = varint(packed).ok_or("a malformed column of numbers")?;
        column.push(value);
        packed = &packed[used..];
    }
    Ok(())
}
