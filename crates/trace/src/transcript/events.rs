// SPDX-License-Identifier: GPL-2.0-only
//! The records of the relay as the tracepoints of a kernel would show the run.
//!
//! Only threads of the policy are in the records. A CPU that runs none of them shows as idle, and
//! who wakes a thread from outside shows as an interrupt.

use std::collections::BTreeMap;
use std::io::Read;

use schedlab_policy_api::{CommId, Pid, RecordContext, RecordEvent, RecordedState};
use schedlab_units::{CpuId, CpuSet, Located, Time};

use super::frame::Frame;
use super::message::{Detail, Kind, MAX_CPUS, Message, Why, flag};
use super::reader::Transcript;
use crate::comms::Comms;
use crate::format::Format;
use crate::intake::{Intake, Stamp};
use crate::sink::RecordSink;
use crate::summary::ReadSummary;

/// `prio` of nice 0, and of the idle task.
const NICE_0_PRIO: i32 = 120;
/// A name that is not known, as perf shows it.
const NO_NAME: &[u8] = b"<...>";

/// Reads a transcript into `sink`. A run that was killed is read as far as it was written.
///
/// # Errors
/// As [`Transcript::new`] and [`Transcript::next_frame`]; a run without any event.
pub(crate) fn read_transcript<R: Read>(
    input: R,
    sink: &mut dyn RecordSink,
) -> Result<(ReadSummary, Comms), Located> {
    let mut transcript = Transcript::new(input)?;
    let mut events = Events {
        intake: Intake::new(Format::LiveTranscript, sink),
        threads: BTreeMap::new(),
        current: Vec::new(),
        now: 0,
    };
    while let Some(frame) = transcript.next_frame()? {
        match frame {
            Frame::Record(message) => events
                .record(&message)
                .map_err(|what| Located::whole(format!("byte {}: {what}", transcript.offset())))?,
            Frame::End(end) if end.ring_full > 0 => {
                events.intake.lost(CpuId(0), Some(end.ring_full));
            }
            _ => {}
        }
    }
    let (mut summary, comms) = events.intake.finish();
    if summary.records == 0 {
        return Err(Located::whole("the transcript holds no scheduling event"));
    }
    let cpus = CpuSet::parse(&transcript.header().cpus).ok();
    let named = cpus.and_then(|cpus| cpus.iter().last()).map_or(0, |last| last.0 + 1);
    summary.n_cpus = summary.n_cpus.max(named);
    let how = match transcript.end() {
        None => "; the run was killed: the transcript has no end",
        Some(end) if !end.is_complete => {
            "; the file could not be written fast enough: it ends before the run did"
        }
        Some(_) => "",
    };
    summary.origin = format!("{}{how}", transcript.header().origin());
    Ok((summary, comms))
}

/// A thread of the policy.
struct Thread {
    comm: Vec<u8>,
    tgid: u32,
    prio: i32,
    /// CPU that it ran on last.
    cpu: Option<CpuId>,
    has_exited: bool,
}

struct Events<'s> {
    intake: Intake<'s>,
    threads: BTreeMap<u32, Thread>,
    /// By CPU; 0 = none of the policy's threads.
    current: Vec<u32>,
    /// Time of the last record in ns. The order of records is that of truth, their times of several
    /// CPUs may lie a little the other way round.
    now: u64,
}

impl Events<'_> {
    fn record(&mut self, message: &Message) -> Result<(), String> {
        let msg = &message.msg;
        self.now = self.now.max(msg.t_ns);
        let (pid, cpu) = (msg.pid, message.cpu());
        if message.kind == Kind::Join {
            return self.join(message);
        }
        if !self.threads.contains_key(&pid) {
            return Ok(());
        }
        if msg.run_ns > 0 && self.current_on(cpu) == pid {
            let event = RecordEvent::StatRuntime { pid: Pid(pid), runtime_ns: msg.run_ns };
            self.take(cpu, RecordContext::Task, event)?;
        }
        match message.kind {
            Kind::Enq => self.waits(message)?,
            Kind::Run => self.runs(pid, cpu)?,
            Kind::Block => {
                let state = if message.has(flag::EXITING) {
                    self.exits(pid, cpu)?;
                    RecordedState::Exited
                } else if message.has(flag::UNINT) {
                    RecordedState::Uninterruptible
                } else {
                    RecordedState::Sleeping
                };
                self.stops(pid, state)?;
            }
            Kind::Leave => {
                let exits = message.has(flag::EXITING);
                if exits {
                    self.exits(pid, cpu)?;
                }
                let state = if exits { RecordedState::Exited } else { RecordedState::Runnable };
                self.stops(pid, state)?;
                self.threads.remove(&pid);
            }
            Kind::Nice => {
                if let Some(thread) = self.threads.get_mut(&pid) {
                    thread.prio = prio_of(msg.c);
                }
            }
            Kind::Name => self.rename(pid, message.detail.as_deref()),
            Kind::Exec => {
                self.rename(pid, message.detail.as_deref());
                if self.current_on(cpu) == pid {
                    self.take(cpu, RecordContext::Task, RecordEvent::Exec { pid: Pid(pid) })?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn join(&mut self, message: &Message) -> Result<(), String> {
        let msg = &message.msg;
        self.stops(msg.pid, RecordedState::Exited)?;
        let thread = Thread {
            comm: message.detail.as_deref().map_or(NO_NAME.to_vec(), name_of),
            tgid: message.tgid(),
            prio: prio_of(msg.c),
            cpu: None,
            has_exited: false,
        };
        self.threads.insert(msg.pid, thread);
        let (parent, cpu) = (message.parent(), message.cpu());
        if message.has(flag::FORKED) && self.current_on(cpu) == parent && parent != 0 {
            let (parent, parent_comm, _) = self.who(parent, cpu);
            let (child, child_comm, _) = self.who(msg.pid, cpu);
            let event = RecordEvent::Fork { parent, parent_comm, child, child_comm };
            self.take(cpu, RecordContext::Task, event)?;
        }
        Ok(())
    }

    /// The thread waits for a CPU: after a sleep, or since it lost the one it had.
    fn waits(&mut self, message: &Message) -> Result<(), String> {
        let (pid, cpu, why) = (message.msg.pid, message.cpu(), message.why());
        if !matches!(why, Why::Fork | Why::Wake) {
            return self.stops(pid, RecordedState::Runnable);
        }
        // Whatever was missed: a thread that wakes up did not run before.
        self.stops(pid, RecordedState::Sleeping)?;
        let waker = message.msg.b as u32;
        let waker_cpu = usize::try_from(message.msg.c).ok().filter(|cpu| *cpu < MAX_CPUS);
        let on = waker_cpu.map_or(cpu, CpuId::from_index);
        let by_thread = !message.has(flag::IRQ) && waker != 0 && self.current_on(on) == waker;
        let context = if by_thread { RecordContext::Task } else { RecordContext::Interrupt };
        let last = self.threads.get(&pid).and_then(|thread| thread.cpu);
        let target_cpu = if message.has(flag::DIRECT) { cpu } else { last.unwrap_or(cpu) };
        let (pid, comm, prio) = self.who(pid, cpu);
        let event = if why == Why::Fork {
            RecordEvent::WakeupNew { pid, comm, prio, target_cpu }
        } else {
            RecordEvent::Waking { pid, comm, prio, target_cpu }
        };
        self.take(on, context, event)
    }

    fn runs(&mut self, pid: u32, cpu: CpuId) -> Result<(), String> {
        if self.current_on(cpu) == pid {
            return Ok(());
        }
        self.stops(pid, RecordedState::Runnable)?;
        let last = self.threads.get_mut(&pid).and_then(|thread| thread.cpu.replace(cpu));
        if let Some(orig_cpu) = last.filter(|last| *last != cpu) {
            let (pid, comm, prio) = self.who(pid, cpu);
            let event = RecordEvent::Migrate { pid, comm, prio, orig_cpu, dest_cpu: cpu };
            self.take(cpu, RecordContext::Interrupt, event)?;
        }
        self.switch(cpu, RecordedState::Runnable, pid)
    }

    /// The thread leaves the CPU that it has, if it has one.
    fn stops(&mut self, pid: u32, state: RecordedState) -> Result<(), String> {
        let cpu = self.threads.get(&pid).and_then(|thread| thread.cpu);
        match cpu.filter(|cpu| self.current_on(*cpu) == pid) {
            Some(cpu) => self.switch(cpu, state, 0),
            None => Ok(()),
        }
    }

    fn exits(&mut self, pid: u32, cpu: CpuId) -> Result<(), String> {
        let Some(thread) = self.threads.get_mut(&pid) else { return Ok(()) };
        if std::mem::replace(&mut thread.has_exited, true) || self.current_on(cpu) != pid {
            return Ok(());
        }
        let (pid, comm, prio) = self.who(pid, cpu);
        self.take(cpu, RecordContext::Task, RecordEvent::Exit { pid, comm, prio })
    }

    fn rename(&mut self, pid: u32, detail: Option<&Detail>) {
        if let (Some(thread), Some(detail)) = (self.threads.get_mut(&pid), detail) {
            thread.comm = name_of(detail);
        }
    }

    fn switch(&mut self, cpu: CpuId, prev_state: RecordedState, to: u32) -> Result<(), String> {
        let (prev, prev_comm, prev_prio) = self.who(self.current_on(cpu), cpu);
        let (next, next_comm, next_prio) = self.who(to, cpu);
        let event = RecordEvent::Switch {
            prev,
            prev_comm,
            prev_prio,
            prev_state,
            next,
            next_comm,
            next_prio,
        };
        self.take(cpu, RecordContext::Task, event)?;
        if self.current.len() <= cpu.index() {
            self.current.resize(cpu.index() + 1, 0);
        }
        self.current[cpu.index()] = to;
        Ok(())
    }

    fn current_on(&self, cpu: CpuId) -> u32 {
        self.current.get(cpu.index()).copied().unwrap_or(0)
    }

    /// Id, name and priority of a thread; 0 is the idle task of `cpu`.
    fn who(&mut self, pid: u32, cpu: CpuId) -> (Pid, CommId, i32) {
        let comms = &mut self.intake.comms;
        match self.threads.get(&pid) {
            Some(thread) => (Pid(pid), comms.intern(&thread.comm), thread.prio),
            None if pid == 0 => {
                (Pid(0), comms.intern(format!("swapper/{cpu}").as_bytes()), NICE_0_PRIO)
            }
            None => (Pid(pid), comms.intern(NO_NAME), NICE_0_PRIO),
        }
    }

    /// Passes an event on that was hit on `cpu`, in the context of its current thread.
    fn take(
        &mut self,
        cpu: CpuId,
        context: RecordContext,
        event: RecordEvent,
    ) -> Result<(), String> {
        let pid = self.current_on(cpu);
        let thread = self.threads.get(&pid);
        let stamp = Stamp {
            time: Time::from_ns(self.now),
            cpu,
            pid: Some(pid),
            tgid: thread.map(|thread| thread.tgid),
            comm: thread.map_or(if pid == 0 { b"<idle>" } else { NO_NAME }, |t| &t.comm),
            context,
        };
        self.intake.take(&stamp, event).map_err(|back| back.message())
    }
}

fn name_of(detail: &Detail) -> Vec<u8> {
    crate::bytes::until_nul(&detail.comm).to_vec()
}

fn prio_of(nice: i64) -> i32 {
    NICE_0_PRIO + nice.clamp(-20, 19) as i32
}
