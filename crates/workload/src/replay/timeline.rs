// SPDX-License-Identifier: GPL-2.0-only
//! Goes through the records and writes down what each thread did.

use std::collections::BTreeMap;

use schedlab_policy_api::{CommId, Pid, RecordEvent, Recording, TraceRecord};
use schedlab_units::{Located, Time};

use super::clock::CpuClock;
use super::machine::{Cpu, Occupant, is_filtered, n_cpus};
use super::model::{Oddities, State, Step, Thread, ThreadId, Timeline, What};
use crate::MAX_DURATION_NS;

/// Sorts a recording by threads.
pub(super) fn build(recording: &Recording) -> Result<Timeline, Located> {
    let (Some(first), Some(last)) = (recording.records.first(), recording.records.last()) else {
        return Err(Located::whole("the recording is empty"));
    };
    if last.time.saturating_since(first.time).as_ns() > MAX_DURATION_NS {
        return Err(Located::whole("the recording is longer than 36 years"));
    }
    let has = |test: fn(&RecordEvent) -> bool| recording.records.iter().any(|r| test(&r.event));
    let mut builder = Builder {
        line: Timeline {
            threads: Vec::new(),
            wakes: Vec::new(),
            cpus: vec![Cpu::NEW; n_cpus(recording)],
            start: first.time,
            end: last.time,
            filtered: is_filtered(recording),
            oddities: Oddities::default(),
        },
        by_pid: BTreeMap::new(),
        has_waking: has(|e| matches!(e, RecordEvent::Waking { .. })),
        has_wakeup: has(|e| matches!(e, RecordEvent::Wakeup { .. })),
        unknown_name: recording.comms.iter().map(|c| c == "<...>").collect(),
    };
    for record in &recording.records {
        builder.record(record);
    }
    builder.finish();
    for thread in &builder.line.threads {
        if thread.clock.total() > MAX_DURATION_NS {
            let message = format!("thread {} claims more than 36 years of CPU time", thread.pid.0);
            return Err(Located::whole(message));
        }
    }
    Ok(builder.line)
}

/// A timeline under construction.
pub(super) struct Builder {
    pub(super) line: Timeline,
    by_pid: BTreeMap<Pid, ThreadId>,
    pub(super) has_waking: bool,
    pub(super) has_wakeup: bool,
    /// By [`CommId`]: whether the name says that the name is not known.
    unknown_name: Vec<bool>,
}

impl Builder {
    fn record(&mut self, record: &TraceRecord) {
        let TraceRecord { time: now, cpu, .. } = *record;
        match record.event {
            RecordEvent::Switch {
                prev,
                prev_comm,
                prev_prio,
                prev_state,
                next,
                next_comm,
                next_prio,
            } => {
                self.observe(cpu, prev, now);
                self.learn(prev, prev_comm, prev_prio, now);
                self.switch_out(prev, prev_state, cpu, now);
                self.switch_in(next, cpu, now);
                self.learn(next, next_comm, next_prio, now);
            }
            RecordEvent::Lost { .. } => self.lost(cpu, now),
            event => {
                self.observe(cpu, record.pid, now);
                self.event(record, event);
            }
        }
    }

    fn event(&mut self, record: &TraceRecord, event: RecordEvent) {
        let now = record.time;
        match event {
            RecordEvent::Waking { pid, comm, prio, .. } => {
                self.wake(record, pid);
                self.learn(pid, comm, prio, now);
            }
            RecordEvent::Wakeup { pid, comm, prio, .. } => {
                if self.has_waking {
                    self.wake_unseen(pid, now);
                } else {
                    // Kernels before 4.3 have this record only, written by the waker.
                    self.wake(record, pid);
                }
                self.learn(pid, comm, prio, now);
            }
            RecordEvent::WakeupNew { pid, comm, prio, .. } => {
                let thread = self.thread(pid, now);
                let fresh = |t: &ThreadId| matches!(self.get(*t).state, State::Unseen | State::New);
                if let Some(thread) = thread.filter(fresh) {
                    let thread = self.get_mut(thread);
                    (thread.start, thread.state) = (now, State::Queued { woken: true });
                }
                self.learn(pid, comm, prio, now);
            }
            RecordEvent::Migrate { pid, comm, prio, .. } => {
                if self.by_pid.contains_key(&pid) {
                    self.learn(pid, comm, prio, now);
                }
            }
            RecordEvent::Fork { parent, child, child_comm, .. } => {
                self.fork(parent, child, child_comm, now);
            }
            RecordEvent::Exec { pid } => {
                let thread = self.thread(pid, now);
                if let Some(thread) = thread.filter(|t| self.get(*t).state != State::Gone) {
                    self.step(thread, What::Exec, now);
                    self.name(thread, record.comm);
                }
            }
            RecordEvent::Exit { pid, comm, prio } => {
                if let Some(thread) = self.thread(pid, now) {
                    self.learn(pid, comm, prio, now);
                    self.get_mut(thread).exiting = true;
                }
            }
            RecordEvent::StatRuntime { pid, runtime_ns } => {
                if let Some(thread) = self.thread(pid, now) {
                    let Thread { clock, steps, .. } = self.get_mut(thread);
                    clock.lump(runtime_ns, now, |i, at| steps[i].at_ns = at);
                }
            }
            RecordEvent::Switch { .. } | RecordEvent::Lost { .. } => {}
        }
    }

    pub(super) fn get(&self, thread: ThreadId) -> &Thread {
        &self.line.threads[thread.index()]
    }
    pub(super) fn get_mut(&mut self, thread: ThreadId) -> &mut Thread {
        &mut self.line.threads[thread.index()]
    }

    /// The thread that has `pid` now; none for the idle task and for contexts without a name.
    pub(super) fn thread(&mut self, pid: Pid, now: Time) -> Option<ThreadId> {
        if pid == Pid(0) || pid == Pid(u32::MAX) {
            return None;
        }
        match self.by_pid.get(&pid) {
            Some(thread) => Some(*thread),
            None => Some(self.new_thread(pid, now)),
        }
    }

    /// As [`Builder::thread`]; where that one has ended, another that got its pid.
    pub(super) fn living(&mut self, pid: Pid, now: Time) -> Option<ThreadId> {
        let thread = self.thread(pid, now)?;
        let gone = self.get(thread).state == State::Gone;
        Some(if gone { self.new_thread(pid, now) } else { thread })
    }

    pub(super) fn new_thread(&mut self, pid: Pid, now: Time) -> ThreadId {
        let life = self.by_pid.get(&pid).map_or(0, |before| self.get(*before).life + 1);
        let thread = ThreadId(u32::try_from(self.line.threads.len()).expect("below 2^32 threads"));
        self.line.threads.push(Thread {
            pid,
            life,
            comms: Vec::new(),
            parent: None,
            prio: None,
            last_prio: None,
            start: now,
            steps: Vec::new(),
            clock: CpuClock::default(),
            n_switch_in: 0,
            n_gaps: 0,
            gap_ns: 0,
            assumed_ns: 0,
            state: State::Unseen,
            woken_on_cpu: false,
            early: None,
            exiting: false,
        });
        self.by_pid.insert(pid, thread);
        thread
    }

    /// Takes note of a thread's name and priority.
    fn learn(&mut self, pid: Pid, comm: CommId, prio: i32, now: Time) {
        let Some(thread) = self.thread(pid, now) else { return };
        if self.get(thread).state == State::Gone {
            return;
        }
        self.name(thread, comm);
        let known = self.get_mut(thread);
        known.prio.get_or_insert(prio);
        if known.last_prio.replace(prio).is_some_and(|before| before != prio) {
            self.step(thread, What::Prio(prio), now);
        }
    }

    fn name(&mut self, thread: ThreadId, comm: CommId) {
        if self.unknown_name.get(comm.0 as usize).copied().unwrap_or(true) {
            return;
        }
        let comms = &mut self.get_mut(thread).comms;
        if comms.last() != Some(&comm) {
            comms.push(comm);
        }
    }

    pub(super) fn step(&mut self, thread: ThreadId, what: What, now: Time) {
        let Thread { clock, steps, .. } = self.get_mut(thread);
        let at_ns = clock.place(steps.len(), now);
        steps.push(Step { at_ns: at_ns.unwrap_or(0), what });
    }

    fn fork(&mut self, parent: Pid, child: Pid, comm: CommId, now: Time) {
        if child == Pid(0) || child == Pid(u32::MAX) {
            return;
        }
        // Only a running thread forks; a record that says otherwise does not fit.
        let parent =
            self.thread(parent, now).filter(|p| matches!(self.get(*p).state, State::On(_)));
        let id = self.new_thread(child, now);
        let born = self.get_mut(id);
        born.state = State::New;
        born.parent = parent;
        self.name(id, comm);
        if let Some(parent) = parent {
            self.step(parent, What::Fork(id), now);
        }
    }

    /// Ends what is open when the recording ends.
    fn finish(&mut self) {
        let end = self.line.end;
        for index in 0..self.line.cpus.len() {
            let Occupant::Thread(thread) = self.line.cpus[index].current else { continue };
            // Without a filter the thread would have been seen leaving.
            let until = (!self.line.filtered).then_some(end);
            let Thread { clock, steps, .. } = self.get_mut(thread);
            clock.switch_out(until, |i, at| steps[i].at_ns = at);
        }
        for index in 0..self.line.threads.len() {
            let thread = &self.line.threads[index];
            if thread.exiting && thread.state != State::Gone {
                self.step(ThreadId(index as u32), What::Exit, end);
            }
        }
    }
}
