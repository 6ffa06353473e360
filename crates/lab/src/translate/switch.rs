// SPDX-License-Identifier: GPL-2.0-only
//! Switches of a play: who leaves and who comes, and what a lost event leaves to be repaired.

use schedlab_policy_api::{CpuMode, Pid, PrevState, RecordedState, SchedEvent};
use schedlab_units::{CpuId, TaskId, Time};

use super::{State, Translator};

impl Translator<'_> {
    /// `prev` leaves the CPU in `state`, and `next` comes to it.
    pub(super) fn switch(
        &mut self,
        at: Time,
        cpu: CpuId,
        prev: Pid,
        state: RecordedState,
        next: Pid,
    ) {
        self.bear(at, prev);
        self.bear(at, next);
        let ours = |pid: Pid| self.index.get(&pid).copied();
        let (leaving, coming) = (ours(prev), ours(next));
        let mut out = None;
        if let Some(index) = leaving {
            if !self.begun {
                self.tasks[index].state = match state {
                    RecordedState::Runnable | RecordedState::Preempted => State::Queued,
                    _ => State::Asleep,
                };
            }
            let task = &mut self.tasks[index];
            if self.begun && task.state != State::Running && task.state != State::Away {
                // Its coming was lost.
                self.repair(at, index, cpu);
            }
            out = self.leaves(at, index, state);
        }
        let mut next_task = None;
        if let Some(index) = coming {
            self.tasks[index].cpu = cpu;
            if !self.begun {
                self.tasks[index].state = State::Running;
            } else if self.tasks[index].state != State::Away {
                self.provide(at, index, cpu);
                self.tasks[index].state = State::Running;
                next_task = Some(TaskId::from_index(index));
            }
        }
        let is_idle = next == Pid(0);
        let is_foreign = coming.is_none() && !is_idle;
        self.count_foreign(at, cpu, is_foreign);
        let mode = if is_idle { CpuMode::Idle } else { CpuMode::Busy };
        self.emit(at, SchedEvent::CpuMode { cpu, mode });
        let (prev_task, prev_state) = match out {
            Some((task, state)) => (Some(task), state),
            None => (None, PrevState::Preempted),
        };
        if prev_task.is_some() || next_task.is_some() {
            self.emit(at, SchedEvent::Switch { cpu, prev: prev_task, prev_state, next: next_task });
        }
    }

    /// What a task that leaves its CPU does from now on; none = it is no task any more.
    fn leaves(
        &mut self,
        at: Time,
        index: usize,
        state: RecordedState,
    ) -> Option<(TaskId, PrevState)> {
        let task = &mut self.tasks[index];
        let id = TaskId::from_index(index);
        if task.state == State::Away {
            let last = std::mem::replace(&mut task.leaves, false);
            return last.then_some((id, PrevState::Zombie));
        }
        if !self.begun {
            return None;
        }
        let yields = at <= task.yields_until;
        let (next, state) = match state {
            RecordedState::Runnable if yields => (State::Queued, PrevState::Yielded),
            RecordedState::Runnable | RecordedState::Preempted => {
                (State::Queued, PrevState::Preempted)
            }
            RecordedState::Sleeping => (State::Asleep, PrevState::Sleeping),
            RecordedState::Uninterruptible => (State::Asleep, PrevState::Uninterruptible),
            RecordedState::Exited => {
                let cpu = task.cpu;
                task.state = State::Away;
                self.emit(at, SchedEvent::ProcessExit { task: id, cpu });
                return Some((id, PrevState::Zombie));
            }
        };
        task.state = next;
        Some((id, state))
    }

    /// Lets a task wait that comes to a CPU although nothing woke it: an event was lost.
    fn provide(&mut self, at: Time, index: usize, cpu: CpuId) {
        match self.tasks[index].state {
            State::New => self.first_wakeup(at, index),
            State::Asleep => {
                self.repaired += 1;
                self.woken(at, index, None, cpu, cpu);
            }
            State::Running => {
                // Its leaving was lost.
                self.repaired += 1;
                let prev = Some(TaskId::from_index(index));
                let prev_state = PrevState::Preempted;
                self.emit(at, SchedEvent::Switch { cpu, prev, prev_state, next: None });
            }
            State::Queued | State::Away => {}
        }
    }

    /// Makes a task current that leaves a CPU to which it never came.
    fn repair(&mut self, at: Time, index: usize, cpu: CpuId) {
        self.repaired += 1;
        self.tasks[index].cpu = cpu;
        self.provide(at, index, cpu);
        self.comes(at, index);
    }

    /// From now on somebody else runs on the CPU, or no longer.
    pub(super) fn count_foreign(&mut self, at: Time, cpu: CpuId, is_foreign: bool) {
        let since = &mut self.foreign_since[cpu.index()];
        if let Some(since) = since.take()
            && self.begun
        {
            self.out.foreign += at.saturating_since(since.max(self.played.start));
        }
        *since = is_foreign.then_some(at);
    }
}
