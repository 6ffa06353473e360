// SPDX-License-Identifier: GPL-2.0-only
//! The log of a core's inputs and what came of them, and its replay (I10).
//!
//! A live run cannot be repeated, but its transcript can: the same inputs at the same times give
//! the same decisions.

use alloc::boxed::Box;
use alloc::vec::Vec;

use schedlab_policy_api::{Mm, Observer, Policy, SchedClass, TaskState, TunableValue};
use schedlab_units::{CpuId, CpuSet, Nice, TaskId, Time};

use crate::{Core, NewTask, Switch, Wakeup};

/// One input of a [`Core`]; each variant is the method of the same name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "fields are the parameters of the methods they record")]
pub enum Input {
    /// [`Core::fork`].
    Fork { this_cpu: CpuId, parent: Option<TaskId>, new: Box<NewTask> },
    /// [`Core::wake_up_new`].
    WakeUpNew { this_cpu: CpuId, task: TaskId, on: Option<CpuId> },
    /// [`Core::wake`].
    Wake { this_cpu: CpuId, task: TaskId, waker: Option<TaskId>, sync: bool },
    /// [`Core::wake_arrive`].
    WakeArrive { cpu: CpuId, task: TaskId },
    /// [`Core::schedule`].
    Schedule { cpu: CpuId },
    /// [`Core::block`].
    Block { cpu: CpuId, state: TaskState },
    /// [`Core::exit`].
    Exit { cpu: CpuId },
    /// [`Core::finish_switch`].
    FinishSwitch { cpu: CpuId },
    /// [`Core::tick`].
    Tick { cpu: CpuId },
    /// [`Core::yield_task`].
    Yield { cpu: CpuId },
    /// [`Core::timer`].
    Timer { cpu: CpuId, timer: u32 },
    /// [`Core::orphan`].
    Orphan { task: TaskId },
    /// [`Core::reap`].
    Reap { this_cpu: CpuId, task: TaskId },
    /// [`Core::exec`].
    Exec { cpu: CpuId, mm: Mm },
    /// [`Core::set_nice`].
    SetNice { this_cpu: CpuId, task: TaskId, nice: Nice },
    /// [`Core::set_class`].
    SetClass { this_cpu: CpuId, task: TaskId, class: SchedClass, rt_priority: u8 },
    /// [`Core::set_slice`].
    SetSlice { this_cpu: CpuId, task: TaskId, slice_ns: u64 },
    /// [`Core::set_affinity`].
    SetAffinity { this_cpu: CpuId, task: TaskId, affinity: CpuSet },
    /// [`Core::take_cpu`].
    TakeCpu { cpu: CpuId },
    /// [`Core::return_cpu`].
    ReturnCpu { cpu: CpuId },
    /// [`Core::deactivate`].
    Deactivate { this_cpu: CpuId, task: TaskId, state: TaskState },
    /// [`Core::place`].
    Place { task: TaskId, cpu: CpuId },
    /// [`Core::set_tunable`].
    SetTunable { name: &'static str, value: TunableValue },
}

/// What came of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing to report.
    None,
    /// The new task.
    Task(TaskId),
    /// The chosen CPU.
    Cpu(CpuId),
    /// What became of the wake-up.
    Wakeup(Wakeup),
    /// What `schedule` decided.
    Switch(Switch),
    /// Whether the change was taken.
    Taken(bool),
}

/// An input with its time and outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When.
    pub now: Time,
    /// What.
    pub input: Input,
    /// What came of it.
    pub outcome: Outcome,
}

/// Where a replay went another way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Index of the entry.
    pub index: usize,
    /// The entry as recorded.
    pub recorded: Entry,
    /// What came of it this time.
    pub replayed: Outcome,
}

/// The log; off until asked for.
#[derive(Debug, Default)]
pub(crate) struct Log {
    entries: Option<Vec<Entry>>,
}

impl Log {
    #[inline]
    pub(crate) fn input(&mut self, now: Time, input: Input) {
        if let Some(entries) = &mut self.entries {
            entries.push(Entry { now, input, outcome: Outcome::None });
        }
    }
    pub(crate) fn fork(
        &mut self,
        now: Time,
        this_cpu: CpuId,
        parent: Option<TaskId>,
        new: &NewTask,
    ) {
        if self.entries.is_some() {
            self.input(now, Input::Fork { this_cpu, parent, new: Box::new(new.clone()) });
        }
    }
    #[inline]
    pub(crate) fn outcome(&mut self, outcome: Outcome) {
        if let Some(entry) = self.entries.as_mut().and_then(|entries| entries.last_mut()) {
            entry.outcome = outcome;
        }
    }
}

impl<P: Policy, O: Observer> Core<P, O> {
    /// Begins to keep a transcript.
    pub fn start_transcript(&mut self) {
        self.log.entries = Some(Vec::new());
    }
    /// The transcript so far; keeping it ends.
    pub fn take_transcript(&mut self) -> Vec<Entry> {
        self.log.entries.take().unwrap_or_default()
    }

    fn apply(&mut self, now: Time, input: &Input) -> Outcome {
        match *input {
            Input::Fork { this_cpu, parent, ref new } => {
                return Outcome::Task(self.fork(now, this_cpu, parent, new));
            }
            Input::WakeUpNew { this_cpu, task, on } => {
                return Outcome::Cpu(self.wake_up_new(now, this_cpu, task, on));
            }
            Input::Wake { this_cpu, task, waker, sync } => {
                return Outcome::Wakeup(self.wake(now, this_cpu, task, waker, sync));
            }
            Input::Schedule { cpu } => return Outcome::Switch(self.schedule(now, cpu)),
            Input::Block { cpu, state } => return Outcome::Switch(self.block(now, cpu, state)),
            Input::Exit { cpu } => return Outcome::Switch(self.exit(now, cpu)),
            Input::WakeArrive { cpu, task } => self.wake_arrive(now, cpu, task),
            Input::FinishSwitch { cpu } => self.finish_switch(now, cpu),
            Input::Tick { cpu } => self.tick(now, cpu),
            Input::Yield { cpu } => self.yield_task(now, cpu),
            Input::Timer { cpu, timer } => self.timer(now, cpu, timer),
            Input::Orphan { task } => self.orphan(task),
            Input::Reap { this_cpu, task } => self.reap(now, this_cpu, task),
            Input::Exec { cpu, mm } => self.exec(now, cpu, mm),
            Input::SetNice { this_cpu, task, nice } => self.set_nice(now, this_cpu, task, nice),
            Input::SetClass { this_cpu, task, class, rt_priority } => {
                self.set_class(now, this_cpu, task, class, rt_priority);
            }
            Input::SetSlice { this_cpu, task, slice_ns } => {
                self.set_slice(now, this_cpu, task, slice_ns);
            }
            Input::SetAffinity { this_cpu, task, ref affinity } => {
                self.set_affinity(now, this_cpu, task, affinity);
            }
            Input::TakeCpu { cpu } => self.take_cpu(now, cpu),
            Input::ReturnCpu { cpu } => self.return_cpu(now, cpu),
            Input::Deactivate { this_cpu, task, state } => {
                self.deactivate(now, this_cpu, task, state);
            }
            Input::Place { task, cpu } => self.place(now, task, cpu),
            Input::SetTunable { name, value } => {
                return Outcome::Taken(self.set_tunable(now, name, value));
            }
        }
        Outcome::None
    }
}

/// Feeds a transcript to a fresh core built like the one that kept it.
///
/// # Errors
/// The first entry that comes out differently.
///
/// # Panics
/// When the inputs are no legal sequence for what this core decided.
pub fn replay<P: Policy, O: Observer>(
    core: &mut Core<P, O>,
    entries: &[Entry],
) -> Result<(), Box<Mismatch>> {
    for (index, entry) in entries.iter().enumerate() {
        let replayed = core.apply(entry.now, &entry.input);
        core.clear_resched();
        core.clear_timers();
        if replayed != entry.outcome {
            return Err(Box::new(Mismatch { index, recorded: entry.clone(), replayed }));
        }
    }
    Ok(())
}
