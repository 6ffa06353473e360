// SPDX-License-Identifier: GPL-2.0-only
//! What all readers have in common: clocks, losses, contexts without a name, counting, order.

use schedlab_policy_api::{Pid, RecordContext, RecordEvent, TraceRecord};
use schedlab_units::{CpuId, Nanos, Time};

use crate::comms::Comms;
use crate::format::Format;
use crate::reorder::{Out, Reorder};
use crate::sink::RecordSink;
use crate::summary::ReadSummary;

/// The thread of a context that the trace could not name.
///
/// `perf script` prints −1 for a thread that had already given up its id.
pub const UNKNOWN_PID: Pid = Pid(u32::MAX);

/// A step back of more than this on one CPU is no reordering but another clock.
const MAX_STEP_BACK: Nanos = Nanos::from_s(1);

/// Where and when an event was hit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stamp<'a> {
    pub(crate) time: Time,
    pub(crate) cpu: CpuId,
    /// Thread of the context; none where the trace does not know it.
    pub(crate) pid: Option<u32>,
    /// Its process, where the trace says so.
    pub(crate) tgid: Option<u32>,
    /// Its name.
    pub(crate) comm: &'a [u8],
    pub(crate) context: RecordContext,
}

/// The clock of `cpu` jumped back by this much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StepBack {
    pub(crate) cpu: CpuId,
    pub(crate) by: Nanos,
}

impl StepBack {
    /// What to do about it.
    pub(crate) const HINT: &'static str =
        "the clock wrapped, or two recordings were joined: cut the file before this place";

    pub(crate) fn message(self) -> String {
        format!("time on CPU {} goes back by {}", self.cpu, self.by)
    }
}

#[derive(Clone, Debug, Default)]
struct Cpu {
    seen: bool,
    last: Time,
    /// Current thread after the last switch seen.
    current: Option<Pid>,
    /// Events lost before the next record, where such a notice was seen.
    lost: Option<u64>,
}

/// The way of records from a reader to a sink.
pub(crate) struct Intake<'s> {
    pub(crate) comms: Comms,
    pub(crate) summary: ReadSummary,
    sink: &'s mut dyn RecordSink,
    window: Reorder,
    cpus: Vec<Cpu>,
    last_tgid: Option<(u32, u32)>,
    last_time: Time,
}

impl<'s> Intake<'s> {
    pub(crate) fn new(format: Format, sink: &'s mut dyn RecordSink) -> Self {
        Self {
            comms: Comms::default(),
            summary: ReadSummary::new(format),
            sink,
            window: Reorder::default(),
            cpus: Vec::new(),
            last_tgid: None,
            last_time: Time::ZERO,
        }
    }

    /// Takes an event that is kept.
    ///
    /// # Errors
    /// A clock that jumps back.
    pub(crate) fn take(&mut self, stamp: &Stamp<'_>, event: RecordEvent) -> Result<(), StepBack> {
        let record = self.arrive(stamp, event)?;
        if let RecordEvent::Switch { next, .. } = event {
            self.cpu(stamp.cpu).current = Some(next);
        }
        self.cover_cpus(&event);
        self.keep(record);
        Ok(())
    }

    /// Counts an event that is not kept.
    ///
    /// # Errors
    /// A clock that jumps back.
    pub(crate) fn pass(&mut self, stamp: &Stamp<'_>, name: &[u8]) -> Result<(), StepBack> {
        self.arrive(stamp, RecordEvent::Lost { count: 0 })?;
        self.summary.count_other(name);
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

    /// Hands out what was held back; the summary and the names.
    pub(crate) fn finish(mut self) -> (ReadSummary, Comms) {
        while let Some(record) = self.window.pop() {
            self.sink.record(&record, &self.comms);
        }
        self.append_pending_losses();
        self.summary.n_cpus = self.cpus.len() as u32;
        (self.summary, self.comms)
    }

    /// A loss that no record followed is placed at the end of the recording.
    fn append_pending_losses(&mut self) {
        if self.summary.records == 0 {
            return;
        }
        for index in 0..self.cpus.len() {
            if let Some(count) = self.cpus[index].lost {
                let record = TraceRecord {
                    time: self.last_time,
                    cpu: CpuId::from_index(index),
                    pid: self.cpus[index].current.unwrap_or(UNKNOWN_PID),
                    comm: self.comms.intern(b"<...>"),
                    context: RecordContext::Unknown,
                    event: RecordEvent::Lost { count },
                };
                self.summary.records += 1;
                self.sink.record(&record, &self.comms);
            }
        }
    }

    fn keep(&mut self, record: TraceRecord) {
        self.summary.count(&record);
        self.last_time = self.last_time.max(record.time);
        match self.window.push(record) {
            Out::Nothing => {}
            Out::Next(record) => self.sink.record(&record, &self.comms),
            Out::Late(record) => {
                self.summary.late += 1;
                self.sink.record(&record, &self.comms);
            }
        }
    }

    /// Checks the clock, learns the process, and lets a pending loss go first; the record.
    fn arrive(&mut self, stamp: &Stamp<'_>, event: RecordEvent) -> Result<TraceRecord, StepBack> {
        self.check_clock(stamp)?;
        self.learn_process(stamp);
        let Stamp { time, cpu, context, .. } = *stamp;
        let pid = self.context_pid(stamp, &event);
        let comm = self.comms.intern(known_name(stamp.comm));
        let record = TraceRecord { time, cpu, pid, comm, context, event };
        if let Some(count) = self.cpu(cpu).lost.take() {
            self.keep(TraceRecord { event: RecordEvent::Lost { count }, ..record });
        }
        Ok(record)
    }

    /// The thread of the context; a nameless one is looked up.
    fn context_pid(&mut self, stamp: &Stamp<'_>, event: &RecordEvent) -> Pid {
        if let Some(pid) = stamp.pid {
            return Pid(pid);
        }
        if let RecordEvent::Switch { prev, .. } = event {
            return *prev;
        }
        self.summary.unknown_contexts += 1;
        self.cpu(stamp.cpu).current.unwrap_or(UNKNOWN_PID)
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

    fn check_clock(&mut self, stamp: &Stamp<'_>) -> Result<(), StepBack> {
        let now = stamp.time;
        let cpu = self.cpu(stamp.cpu);
        if cpu.seen && now < cpu.last {
            let by = cpu.last - now;
            if by > MAX_STEP_BACK {
                return Err(StepBack { cpu: stamp.cpu, by });
            }
            self.summary.out_of_order += 1;
        } else {
            cpu.seen = true;
            cpu.last = now;
        }
        self.summary.span(now);
        Ok(())
    }

    fn learn_process(&mut self, stamp: &Stamp<'_>) {
        let (Some(pid), Some(tgid)) = (stamp.pid, stamp.tgid) else { return };
        if pid != 0 && self.last_tgid != Some((pid, tgid)) {
            self.sink.process(Pid(pid), Pid(tgid));
            self.last_tgid = Some((pid, tgid));
        }
    }
}

/// Name of the context; perf's stand-ins for a name it does not know (`:78`) and for a thread that
/// has given up its id (`:-1`) become the kernel's.
fn known_name(comm: &[u8]) -> &[u8] {
    match comm.strip_prefix(b":") {
        Some(b"-1") => b"<...>",
        Some(digits) if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) => b"<...>",
        _ => comm,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stand_ins_of_perf_are_no_names() {
        for (comm, name) in
            [(":78", "<...>"), (":-1", "<...>"), (":x", ":x"), (":", ":"), ("a:-1", "a:-1")]
        {
            assert_eq!(known_name(comm.as_bytes()), name.as_bytes());
        }
    }
}
