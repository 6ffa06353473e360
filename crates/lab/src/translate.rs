// SPDX-License-Identifier: GPL-2.0-only
//! From the tracepoints of a play to the events of its tasks.
//!
//! Rules (docs/play.md has them in prose):
//! - Tasks are the threads that play one, each process's first among them; all other threads of the
//!   host count as nobody, but the time
//!   they take from our CPUs is summed.
//! - Events before the start only tell what a thread does at the start.
//! - A life begins with the fork, or at the start, and ends with `sched_process_exit`; what the
//!   kernel still does for the thread after that is nobody's.
//! - The first wake-up of a life is its `WakeupNew`.
//! - A kernel may begin to wake a thread before its switch away is written. A thread that comes back
//!   without a wake-up in between was woken at the moment it left.
//! - A runnable thread that leaves within its own `sched_yield` has yielded.

mod switch;

use std::collections::{BTreeMap, BTreeSet};

use schedlab_host::played::{Noted, Played};
use schedlab_policy_api::{
    CpuMode, Pid, PrevState, RecordContext, RecordEvent, RecordedState, Recording, SchedEvent,
    TraceRecord,
};
use schedlab_units::{CpuId, Nanos, TaskId, Time};

use crate::played::noted;
use crate::unseen::{Unseen, with_unseen_switches};

/// What happens to the figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// An event.
    Event(SchedEvent),
    /// The task was just forked: the one with this index in the play.
    Bind(TaskId),
}

/// A play as events.
#[derive(Clone, Debug, Default)]
pub(crate) struct Translation {
    /// In the order of time, which counts from the start.
    pub(crate) steps: Vec<(Time, Step)>,
    /// CPU time of threads that are not ours on the CPUs of the play.
    pub(crate) foreign: Nanos,
    pub(crate) remarks: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not forked yet, or gone.
    Away,
    /// Forked, never woken.
    New,
    Asleep,
    Queued,
    Running,
}

struct Task {
    state: State,
    woken: Time,
    /// Runnable switches up to here are yields.
    yields_until: Time,
    /// Whether its life has begun.
    born: bool,
    /// Whether the switch away from it after its exit is still to come.
    leaves: bool,
    cpu: CpuId,
}

struct Translator<'p> {
    played: &'p Played,
    /// Tasks by the number of their thread in the kernel.
    index: BTreeMap<Pid, usize>,
    tasks: Vec<Task>,
    /// By CPU as the workload counts them: since when somebody else has been running.
    foreign_since: Vec<Option<Time>>,
    out: Translation,
    repaired: u64,
    unseen: Unseen,
    begun: bool,
}

/// Translates `recording`, made while `played` took place.
pub(crate) fn translate(played: &Played, recording: &Recording) -> Translation {
    // A task that never began has no number; 0 is the kernel's idle task.
    let begun = played.tasks.iter().enumerate().filter(|(_, task)| task.pid != Pid(0));
    let tasks = played.tasks.iter().map(|_| Task {
        state: State::Away,
        woken: Time::ZERO,
        yields_until: Time::ZERO,
        born: false,
        leaves: false,
        cpu: CpuId(0),
    });
    let mut translator = Translator {
        played,
        index: begun.map(|(index, played)| (played.pid, index)).collect(),
        tasks: tasks.collect(),
        foreign_since: vec![None; played.n_cpus],
        out: Translation::default(),
        repaired: 0,
        unseen: Unseen::default(),
        begun: false,
    };
    let (records, unseen) = with_unseen_switches(recording);
    translator.unseen = unseen;
    let unwoken = woken_while_leaving(&records, &translator.index);
    let mut notes = played.notes.iter().peekable();
    let until = records.iter().enumerate().take_while(|(_, r)| r.time <= played.end);
    for (at, record) in until {
        if !translator.begun && record.time >= played.start {
            translator.begin();
        }
        while let Some(note) = notes.next_if(|note| note.time <= record.time) {
            translator.note(note.time, note.task, note.what);
        }
        translator.record(record, unwoken.contains(&at));
    }
    if !translator.begun {
        translator.begin();
    }
    for note in notes {
        translator.note(note.time, note.task, note.what);
    }
    translator.finish()
}

/// Indices of switches away from sleepers that come back without a wake-up in between.
fn woken_while_leaving(records: &[TraceRecord], ours: &BTreeMap<Pid, usize>) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    // Whether the next thing that happens to a thread is that it comes to a CPU.
    let mut comes_next: BTreeMap<Pid, bool> = BTreeMap::new();
    for (at, record) in records.iter().enumerate().rev() {
        match record.event {
            RecordEvent::Switch { prev, prev_state, next, .. } => {
                let sleeps =
                    matches!(prev_state, RecordedState::Sleeping | RecordedState::Uninterruptible);
                if ours.contains_key(&next) {
                    comes_next.insert(next, true);
                }
                if ours.contains_key(&prev) {
                    if sleeps && comes_next.get(&prev) == Some(&true) {
                        found.insert(at);
                    }
                    comes_next.insert(prev, false);
                }
            }
            RecordEvent::Waking { pid, .. } | RecordEvent::WakeupNew { pid, .. }
                if ours.contains_key(&pid) =>
            {
                comes_next.insert(pid, false);
            }
            _ => {}
        }
    }
    found
}

impl Translator<'_> {
    fn now(&self, at: Time) -> Time {
        Time::ZERO + at.saturating_since(self.played.start)
    }

    /// The CPU as the workload counts it; none = not one of ours.
    fn cpu(&self, cpu: CpuId) -> Option<CpuId> {
        let at = self.played.cpus.iter().position(|ours| *ours == cpu.0)?;
        Some(CpuId::from_index(at))
    }

    fn emit(&mut self, at: Time, event: SchedEvent) {
        if self.begun {
            let now = self.now(at);
            self.out.steps.push((now, Step::Event(event)));
        }
    }

    /// The start: tasks of the start are born, whatever they do.
    fn begin(&mut self) {
        self.begun = true;
        let start = self.played.start;
        for index in 0..self.tasks.len() {
            if self.played.tasks[index].parent.is_some() {
                self.tasks[index].state = State::Away;
            } else {
                let before = self.tasks[index].state;
                self.born(start, index, None);
                match before {
                    State::Queued | State::Running => self.first_wakeup(start, index),
                    _ => {}
                }
                if before == State::Running {
                    self.comes(start, index);
                }
            }
        }
        for cpu in 0..self.foreign_since.len() {
            if self.foreign_since[cpu].is_some() {
                self.foreign_since[cpu] = Some(start);
                self.emit(
                    start,
                    SchedEvent::CpuMode { cpu: CpuId::from_index(cpu), mode: CpuMode::Busy },
                );
            }
        }
    }

    fn born(&mut self, at: Time, index: usize, parent: Option<usize>) {
        let task = TaskId::from_index(index);
        let parent = parent.map(TaskId::from_index);
        self.emit(at, SchedEvent::ProcessFork { task, parent });
        let now = self.now(at);
        self.out.steps.push((now, Step::Bind(task)));
        (self.tasks[index].state, self.tasks[index].born) = (State::New, true);
    }

    /// A thread shows up whose fork was lost.
    fn bear(&mut self, at: Time, pid: Pid) {
        if let Some(index) = self.index.get(&pid).copied()
            && self.begun
            && !self.tasks[index].born
        {
            self.repaired += 1;
            self.born(at, index, self.played.tasks[index].parent);
        }
    }

    fn first_wakeup(&mut self, at: Time, index: usize) {
        let cpu = self.tasks[index].cpu;
        self.tasks[index].state = State::Queued;
        self.tasks[index].woken = self.now(at);
        self.emit(at, SchedEvent::WakeupNew { task: TaskId::from_index(index), cpu });
    }

    /// A queued task becomes current.
    fn comes(&mut self, at: Time, index: usize) {
        let task = TaskId::from_index(index);
        let cpu = self.tasks[index].cpu;
        self.tasks[index].state = State::Running;
        let switch = SchedEvent::Switch {
            cpu,
            prev: None,
            prev_state: PrevState::Preempted,
            next: Some(task),
        };
        self.emit(at, SchedEvent::CpuMode { cpu, mode: CpuMode::Busy });
        self.emit(at, switch);
    }

    fn note(&mut self, at: Time, index: usize, what: Noted) {
        if let Noted::Yield { until } = what {
            self.tasks[index].yields_until = until;
        }
        let (task, woken) = (TaskId::from_index(index), self.tasks[index].woken);
        // Parameters that are set before the start are those of the start.
        let at = if matches!(what, Noted::Sched { .. }) { at.max(self.played.start) } else { at };
        if self.begun
            && self.tasks[index].state != State::Away
            && let Some(event) = noted(task, what, self.played.start, woken)
        {
            self.emit(at, event);
        }
    }

    fn record(&mut self, record: &TraceRecord, woken_while_leaving: bool) {
        let at = record.time;
        match record.event {
            RecordEvent::Fork { child, .. } => self.fork(at, child),
            RecordEvent::Waking { pid, target_cpu, .. }
            | RecordEvent::WakeupNew { pid, target_cpu, .. } => {
                self.wake(record, pid, target_cpu);
            }
            RecordEvent::Switch { prev, prev_state, next, .. } => {
                let Some(cpu) = self.cpu(record.cpu) else { return };
                self.switch(at, cpu, prev, prev_state, next);
                if let Some(index) = self.index.get(&prev).copied()
                    && woken_while_leaving
                    && self.tasks[index].state == State::Asleep
                {
                    self.woken(at, index, None, cpu, cpu);
                }
            }
            RecordEvent::Migrate { pid, orig_cpu, dest_cpu, .. } => {
                let Some(index) = self.index.get(&pid).copied() else { return };
                let (Some(from), Some(to)) = (self.cpu(orig_cpu), self.cpu(dest_cpu)) else {
                    return;
                };
                self.tasks[index].cpu = to;
                if self.tasks[index].state != State::Away {
                    self.emit(
                        at,
                        SchedEvent::MigrateTask { task: TaskId::from_index(index), from, to },
                    );
                }
            }
            RecordEvent::Exit { pid, .. } => {
                let Some(index) = self.index.get(&pid).copied() else { return };
                let cpu = self.tasks[index].cpu;
                if self.tasks[index].state == State::Running {
                    self.emit(at, SchedEvent::ProcessExit { task: TaskId::from_index(index), cpu });
                    self.tasks[index].state = State::Away;
                    self.tasks[index].leaves = true;
                }
            }
            _ => {}
        }
    }

    fn fork(&mut self, at: Time, child: Pid) {
        let Some(index) = self.index.get(&child).copied() else { return };
        let parent = self.played.tasks[index].parent;
        if parent.is_some() && self.begun && !self.tasks[index].born {
            self.born(at, index, parent);
        }
    }

    fn wake(&mut self, record: &TraceRecord, pid: Pid, target: CpuId) {
        let Some(index) = self.index.get(&pid).copied() else { return };
        let Some(target) = self.cpu(target) else { return };
        let at = record.time;
        self.bear(at, pid);
        match self.tasks[index].state {
            State::New => {
                self.tasks[index].cpu = target;
                self.first_wakeup(at, index);
            }
            State::Asleep => {
                let waker = match record.context {
                    RecordContext::Interrupt => None,
                    _ => self.index.get(&record.pid).map(|waker| TaskId::from_index(*waker)),
                };
                let here = self.cpu(record.cpu).unwrap_or(target);
                self.woken(at, index, waker, here, target);
            }
            State::Away if !self.begun => self.tasks[index].state = State::Queued,
            State::Away | State::Queued | State::Running => {}
        }
    }

    fn woken(&mut self, at: Time, index: usize, waker: Option<TaskId>, here: CpuId, target: CpuId) {
        let task = TaskId::from_index(index);
        self.tasks[index].state = State::Queued;
        self.tasks[index].cpu = target;
        self.tasks[index].woken = self.now(at);
        self.emit(at, SchedEvent::Waking { task, waker, this_cpu: here, target });
        self.emit(at, SchedEvent::Wakeup { task, cpu: target });
    }

    fn finish(mut self) -> Translation {
        let end = self.played.end;
        for cpu in 0..self.foreign_since.len() {
            self.count_foreign(end, CpuId::from_index(cpu), false);
        }
        if self.repaired > 0 || self.played.lost > 0 {
            self.out.remarks.push(format!(
                "{} events were lost by the kernel's buffers; {} switches had to be repaired, and \
                 figures near them are off",
                self.played.lost, self.repaired
            ));
        }
        if self.unseen.n > 0 {
            let how = match self.unseen.lag {
                Some(lag) => format!("{lag} after the pick, the median of those it wrote"),
                None => "at the pick, so that latencies there are lower bounds".to_string(),
            };
            self.out.remarks.push(format!(
                "this kernel did not write {} switches; their times are estimates by \
                 sched_stat_runtime, {how}",
                self.unseen.n
            ));
        }
        let length = end.saturating_since(self.played.start).as_ns();
        let all = length.saturating_mul(self.played.n_cpus as u64).max(1);
        // Whole per mille, without floats.
        let share = self.out.foreign.as_ns().saturating_mul(1000) / all;
        if share >= 5 {
            self.out.remarks.push(format!(
                "other threads of this host took {}.{} % of the CPUs; their time is wait of ours",
                share / 10,
                share % 10
            ));
        }
        self.out
    }
}
