// SPDX-License-Identifier: GPL-2.0-only
//! Where the time of tasks and CPUs goes. Only this file adds it up.

use schedlab_policy_api::{CpuMode, Observer, Policy, SchedEvent, TaskState};
use schedlab_units::{CpuId, Nanos, TaskId, Time};

use crate::Core;

/// How a task spent its life so far; the three sums and the open interval make up its age exactly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskAccount {
    /// When it was forked.
    pub born: Time,
    /// Since when it is in its present state.
    pub since: Time,
    /// Time as current task of a CPU.
    pub run: Nanos,
    /// Time wanting a CPU without having one.
    pub wait: Nanos,
    /// Time asleep, or new, or a zombie.
    pub sleep: Nanos,
}

/// How a CPU spent its time so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuAccount {
    /// What it does now.
    pub mode: CpuMode,
    /// Since when.
    pub since: Time,
    /// Time on the work of tasks.
    pub busy: Nanos,
    /// Time in the idle task.
    pub idle: Nanos,
    /// Time on work of the scheduler.
    pub overhead: Nanos,
}

impl CpuAccount {
    pub(crate) const START: Self = Self {
        mode: CpuMode::Idle,
        since: Time::ZERO,
        busy: Nanos::ZERO,
        idle: Nanos::ZERO,
        overhead: Nanos::ZERO,
    };
}

impl<P: Policy, O: Observer> Core<P, O> {
    /// The only place where a task changes its state and where its time is booked.
    ///
    /// # Panics
    /// When time runs backwards (I4).
    pub(crate) fn set_state(&mut self, now: Time, task: TaskId, state: TaskState) {
        let account = &mut self.accounts[task.index()];
        assert!(now >= account.since, "time runs backwards for task {task}");
        let span = now - account.since;
        account.since = now;
        let facts = self.tasks.get_mut(task);
        match facts.state {
            TaskState::Running => account.run += span,
            TaskState::Runnable | TaskState::Waking => account.wait += span,
            _ => account.sleep += span,
        }
        facts.state = state;
    }

    /// `cpu` turns to other work; the only place where CPU time is booked.
    pub fn set_cpu_mode(&mut self, now: Time, cpu: CpuId, mode: CpuMode) {
        let account = &mut self.cpu_accounts[cpu.index()];
        if account.mode == mode {
            return;
        }
        let span = now - account.since;
        account.since = now;
        match account.mode {
            CpuMode::Idle => account.idle += span,
            CpuMode::Busy => account.busy += span,
            CpuMode::Overhead(_) => account.overhead += span,
        }
        account.mode = mode;
        self.observer.event(now, &SchedEvent::CpuMode { cpu, mode });
    }

    /// The account of `task`, complete up to `now`.
    pub fn task_account(&self, now: Time, task: TaskId) -> TaskAccount {
        let mut account = self.accounts[task.index()];
        let open = now - account.since;
        match self.tasks.get(task).state {
            TaskState::Running => account.run += open,
            TaskState::Runnable | TaskState::Waking => account.wait += open,
            _ => account.sleep += open,
        }
        account.since = now;
        account
    }

    /// The account of `cpu`, complete up to `now`.
    pub fn cpu_account(&self, now: Time, cpu: CpuId) -> CpuAccount {
        let mut account = self.cpu_accounts[cpu.index()];
        let open = now - account.since;
        match account.mode {
            CpuMode::Idle => account.idle += open,
            CpuMode::Busy => account.busy += open,
            CpuMode::Overhead(_) => account.overhead += open,
        }
        account.since = now;
        account
    }
}
