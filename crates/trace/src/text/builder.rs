// SPDX-License-Identifier: GPL-2.0-only
//! Collects parsed lines into a recording and its summary.

use std::collections::BTreeMap;

use schedlab_policy_api::{Pid, RecordContext, RecordEvent, Recording, TraceRecord};
use schedlab_units::{CpuId, Time};

use super::body::Parsed;
use super::prefix::Prefix;
use super::scan::Fault;
use crate::comms::Comms;
use crate::format::Format;
use crate::summary::{Read, ReadSummary};

/// The thread of a context that the trace could not name.
///
/// `perf script` prints −1 for a thread that had already given up its id.
pub const UNKNOWN_PID: Pid = Pid(u32::MAX);

/// A step back of more than this on one CPU is no reordering but another clock.
const MAX_STEP_BACK_NS: u64 = 1_000_000_000;

#[derive(Clone, Debug, Default)]
struct Cpu {
    seen: bool,
    last: Time,
    /// Current thread after the last switch seen.
    current: Option<Pid>,
    /// Events lost before the next record, where such a notice was seen.
    lost: Option<u64>,
}

/// A recording in the making.
pub(crate) struct Builder {
    pub(crate) comms: Comms,
    records: Vec<TraceRecord>,
    cpus: Vec<Cpu>,
    tgids: BTreeMap<Pid, Pid>,
    last_tgid: Option<(Pid, Pid)>,
    pub(crate) summary: ReadSummary,
}

impl Builder {
    pub(crate) fn new(format: Format) -> Self {
        Self {
            comms: Comms::default(),
            records: Vec::new(),
            cpus: Vec::new(),
            tgids: BTreeMap::new(),
            last_tgid: None,
            summary: ReadSummary::new(format),
        }
    }

    /// Takes the record of one line.
    ///
    /// # Errors
    /// A clock that jumps back; the offset is not set.
    pub(crate) fn push(
        &mut self,
        prefix: &Prefix<'_>,
        parsed: Option<Parsed>,
    ) -> Result<(), Fault> {
        if parsed.is_none() && prefix.event.starts_with(b"PERF_RECORD_") {
            // Side records may come from before the recording, at time zero.
            self.summary.count_other(prefix.event);
            return Ok(());
        }
        self.check_clock(prefix)?;
        let comm = self.comms.intern(known_name(prefix));
        let pid = self.context_pid(prefix, parsed.as_ref());
        self.learn_process(prefix);
        let mut record = TraceRecord {
            time: prefix.time,
            cpu: prefix.cpu,
            pid,
            comm,
            context: prefix.context,
            event: RecordEvent::Lost { count: 0 },
        };
        if let Some(count) = self.cpu(prefix.cpu).lost.take() {
            record.event = RecordEvent::Lost { count };
            self.keep(record);
        }
        match parsed {
            Some(Parsed { event, extra }) => {
                self.summary.extra_fields += u64::from(extra);
                record.event = event;
                if let RecordEvent::Switch { next, .. } = event {
                    self.cpu(prefix.cpu).current = Some(next);
                }
                self.cover_cpus(&event);
                self.keep(record);
            }
            None => self.summary.count_other(prefix.event),
        }
        Ok(())
    }

    /// Takes a notice that `cpu` lost events; it holds before the CPU's next record.
    pub(crate) fn lost(&mut self, cpu: CpuId, count: Option<u64>) {
        match count {
            Some(count) => {
                self.summary.lost_events = self.summary.lost_events.saturating_add(count)
            }
            None => self.summary.lost_unknown += 1,
        }
        let pending = &mut self.cpu(cpu).lost;
        // Zero stands for "unknown", and unknown and any number is unknown.
        *pending = match (*pending, count) {
            (None, Some(n)) => Some(n),
            (Some(before), Some(n)) if before > 0 => Some(before.saturating_add(n)),
            _ => Some(0),
        };
    }

    /// The finished recording.
    pub(crate) fn finish(mut self, lines: usize) -> Read {
        if !self.records.is_sorted_by_key(|r| r.time) {
            self.records.sort_by_key(|r| r.time);
        }
        self.append_pending_losses();
        self.summary.lines = lines as u64;
        self.summary.records = self.records.len() as u64;
        let recording = Recording {
            comms: self.comms.into_names(),
            records: self.records,
            n_cpus: self.cpus.len() as u32,
            tgids: self.tgids.into_iter().collect(),
        };
        Read { recording, summary: self.summary }
    }

    /// A loss that no record followed is placed at the end of the recording.
    fn append_pending_losses(&mut self) {
        let Some(end) = self.records.last().map(|r| r.time) else { return };
        for index in 0..self.cpus.len() {
            if let Some(count) = self.cpus[index].lost {
                self.records.push(TraceRecord {
                    time: end,
                    cpu: CpuId::from_index(index),
                    pid: self.cpus[index].current.unwrap_or(UNKNOWN_PID),
                    comm: self.comms.intern(b"<...>"),
                    context: RecordContext::Unknown,
                    event: RecordEvent::Lost { count },
                });
            }
        }
    }

    fn keep(&mut self, record: TraceRecord) {
        self.summary.count(&record);
        self.records.push(record);
    }

    fn cpu(&mut self, cpu: CpuId) -> &mut Cpu {
        if self.cpus.len() <= cpu.index() {
            self.cpus.resize(cpu.index() + 1, Cpu::default());
        }
        &mut self.cpus[cpu.index()]
    }

    /// Makes the number of CPUs cover those an event only mentions.
    fn cover_cpus(&mut self, event: &RecordEvent) {
        match event {
            RecordEvent::Waking { target_cpu, .. }
            | RecordEvent::Wakeup { target_cpu, .. }
            | RecordEvent::WakeupNew { target_cpu, .. } => {
                self.cpu(*target_cpu);
            }
            RecordEvent::Migrate { orig_cpu, dest_cpu, .. } => {
                self.cpu(*orig_cpu.max(dest_cpu));
            }
            _ => {}
        }
    }

    fn check_clock(&mut self, prefix: &Prefix<'_>) -> Result<(), Fault> {
        let now = prefix.time;
        let cpu = self.cpu(prefix.cpu);
        if cpu.seen && now < cpu.last {
            let back = cpu.last - now;
            if back.as_ns() > MAX_STEP_BACK_NS {
                let message = format!("time on CPU {} goes back by {back}", prefix.cpu);
                return Err(Fault::new(0, message).hint(
                    "the clock wrapped, or two recordings were joined: cut the file before this \
                     line",
                ));
            }
            self.summary.out_of_order += 1;
        } else {
            *cpu = Cpu { seen: true, last: now, current: cpu.current, lost: cpu.lost };
        }
        self.summary.span(now);
        Ok(())
    }

    /// The thread of the context; a nameless one is looked up.
    fn context_pid(&mut self, prefix: &Prefix<'_>, parsed: Option<&Parsed>) -> Pid {
        if let Some(pid) = prefix.pid {
            return Pid(pid);
        }
        if let Some(Parsed { event: RecordEvent::Switch { prev, .. }, .. }) = parsed {
            return *prev;
        }
        self.summary.unknown_contexts += 1;
        self.cpu(prefix.cpu).current.unwrap_or(UNKNOWN_PID)
    }

    fn learn_process(&mut self, prefix: &Prefix<'_>) {
        let (Some(pid), Some(tgid)) = (prefix.pid, prefix.tgid) else { return };
        let pair = (Pid(pid), Pid(tgid));
        if pid != 0 && self.last_tgid != Some(pair) {
            self.tgids.insert(pair.0, pair.1);
            self.last_tgid = Some(pair);
        }
    }
}

/// Name of the context; perf's stand-in for a name it does not know (`:78`) becomes the kernel's.
fn known_name<'a>(prefix: &Prefix<'a>) -> &'a [u8] {
    match prefix.comm.strip_prefix(b":") {
        Some(digits) if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) => b"<...>",
        _ => prefix.comm,
    }
}
