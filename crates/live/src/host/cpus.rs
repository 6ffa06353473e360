// SPDX-License-Identifier: GPL-2.0-only
//! What CPUs do: asking, getting decisions, being lost to another class.

use std::io;

use schedlab_policy_api::{CpuMode, Policy, TaskState};
use schedlab_units::{CpuId, TaskId};

use super::{Host, LiveObserver};
use crate::kernel::Kernel;
use crate::message::{Decision, Message, REJECT_PINNED, REJECT_STILL_WAITS, Run, flag};

/// What the host believes of a CPU, beyond the core's current task.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cpu {
    /// It has asked and was given nothing yet.
    pub(super) asked: bool,
    /// The core chose its current task since the last decision was given.
    pub(super) fresh: bool,
    /// The decision it was given, until its task comes back.
    pub(super) given: Option<Run>,
    /// That run was told to end.
    pub(super) stopping: bool,
    /// Policy ticks that it has seen, counted from time 0.
    pub(super) jiffy: u64,
}

impl<P: Policy, O: LiveObserver> Host<P, O> {
    /// The core schedules on `cpu`.
    pub(super) fn schedule(&mut self, cpu: CpuId) {
        let switch = self.core.schedule(self.now, cpu);
        self.after_switch(cpu, switch.is_real());
    }

    /// A choice of the core is to be given to the CPU when it asks.
    pub(super) fn after_switch(&mut self, cpu: CpuId, is_real: bool) {
        if is_real {
            self.core.finish_switch(self.now, cpu);
        }
        let current = self.core.curr(cpu);
        let running = current.and_then(|task| self.take_unasked(task, cpu));
        let model = &mut self.cpus[cpu.index()];
        model.fresh = current.is_some() && running.is_none();
        (model.given, model.stopping) = (running, false);
        let mode = if current.is_some() { CpuMode::Busy } else { CpuMode::Idle };
        self.core.set_cpu_mode(self.now, cpu, mode);
    }

    /// The run of a task that the relay has put on `cpu` already, where the core wants it now too.
    fn take_unasked(&mut self, task: TaskId, cpu: CpuId) -> Option<Run> {
        let live = self.task(task);
        let pid = live.thread.as_ref()?.pid;
        (live.unasked == Some(cpu)).then(|| {
            live.unasked = None;
            Run { pid, lease: live.lease }
        })
    }

    /// The CPU has nothing to run.
    pub(super) fn asks(&mut self, message: &Message) {
        let cpu = message.cpu();
        if cpu.index() >= self.cpus.len() {
            return;
        }
        if message.has(flag::REJECTED) {
            self.rejected(message);
        }
        let model = &mut self.cpus[cpu.index()];
        model.asked = true;
        // A decision is looked at while a task that nobody was asked about gives up the CPU: the
        // record about that one comes next.
        let void = Run { pid: message.msg.pid, lease: message.msg.lease };
        let still_runs = |run: Run| message.has(flag::REJECTED) && run != void;
        if model.given.is_some_and(still_runs) {
            return;
        }
        (model.given, model.stopping) = (None, false);
        if self.core.is_taken(cpu) {
            self.core.return_cpu(self.now, cpu);
        }
        match self.core.curr(cpu) {
            Some(_) if self.cpus[cpu.index()].fresh => {}
            Some(task) if !self.task(task).waits => {
                // It neither came back nor blocked, and yet it does not run: take it for asleep.
                self.totals.odd.lost_tasks += 1;
                let switch = self.core.block(self.now, cpu, TaskState::Sleeping);
                self.after_switch(cpu, switch.is_real());
            }
            _ => self.schedule(cpu),
        }
    }

    fn rejected(&mut self, message: &Message) {
        let Some(task) = self.ids.get(&message.msg.pid).copied() else { return };
        let lease = self.task(task).lease;
        if lease != message.msg.lease || message.msg.a < REJECT_STILL_WAITS {
            return;
        }
        self.task(task).waits = true;
        if let Some(cpu) = self.current_on(task) {
            self.leave_forbidden_cpu(task, cpu);
        }
        if message.msg.a == REJECT_PINNED {
            // Until it is heard of again it may run there only.
            self.task(task).pinned = Some(CpuId::from_index(message.msg.b as usize));
            self.apply_affinity(task);
        }
    }

    /// The current task of `cpu` goes back to its queue, without a choice of another.
    pub(super) fn put_back(&mut self, cpu: CpuId) {
        self.core.take_cpu(self.now, cpu);
        self.core.return_cpu(self.now, cpu);
        self.after_switch(cpu, false);
    }

    /// Another class has the CPU: its task goes back to its queue, and idle CPUs may want it.
    pub(super) fn lose(&mut self, cpu: CpuId) {
        self.totals.taken += 1;
        self.core.take_cpu(self.now, cpu);
        self.cpus[cpu.index()] = Cpu { jiffy: self.cpus[cpu.index()].jiffy, ..Cpu::default() };
        self.core.set_cpu_mode(self.now, cpu, CpuMode::Idle);
        self.offer_to_idle_cpus();
    }

    /// Idle CPUs look for work again: what is meant for a CPU that another class has, they may find.
    pub(super) fn offer_to_idle_cpus(&mut self) {
        let cpus = self.policy_cpus;
        for other in cpus.iter() {
            if self.is_idle(other) {
                self.schedule(other);
            }
        }
    }

    /// Whether the CPU has asked and the policy has nothing for it.
    pub(super) fn is_idle(&self, cpu: CpuId) -> bool {
        self.cpus[cpu.index()].asked && self.core.curr(cpu).is_none()
    }

    /// A decision was revoked, since another class had taken the CPU; its task may have been handed
    /// over again, or have left.
    pub(super) fn decision_came_back(&mut self, message: &Message) {
        let cpu = message.cpu();
        if let Some(task) = self.ids.get(&message.msg.pid).copied()
            && self.task(task).lease == message.msg.lease
        {
            self.task(task).waits = true;
        }
        if cpu.index() < self.cpus.len() && !self.core.is_taken(cpu) {
            self.lose(cpu);
        }
    }

    /// A CPU was given a task without our being asked: the core is to come to the same choice. Where
    /// it does not, the task runs without the core's knowledge until it comes back.
    pub(super) fn runs_already(&mut self, task: TaskId, message: &Message) {
        let cpu = message.cpu();
        let live = self.task(task);
        (live.lease, live.waits, live.unasked) = (message.msg.lease, false, Some(cpu));
        if self.core.is_taken(cpu) {
            self.core.return_cpu(self.now, cpu);
        }
        self.cpus[cpu.index()].asked = false;
        if let Some(other) = self.current_on(task).filter(|other| *other != cpu) {
            // That decision is void: its lease is an old one. The CPU will ask anew.
            self.put_back(other);
            self.totals.disagreed += 1;
        }
        if self.core.curr(cpu) != Some(task) {
            self.core.place(self.now, task, cpu);
            if self.core.curr(cpu).is_none() {
                self.schedule(cpu);
            }
        }
        // The switch to it may have been noted just now.
        if self.core.curr(cpu) == Some(task) && self.task(task).unasked.is_some() {
            self.after_switch(cpu, false);
        }
    }

    /// Carries out what hooks asked for: CPUs that should call `schedule`.
    pub(super) fn react(&mut self, kernel: &mut impl Kernel) {
        let mut index = 0;
        while let Some(resched) = self.core.resched_at(index) {
            index += 1;
            let cpu = resched.cpu;
            let model = self.cpus[cpu.index()];
            if self.core.is_taken(cpu) {
                self.offer_to_idle_cpus();
                continue;
            }
            if !self.core.need_resched(cpu) {
                continue;
            }
            if model.asked || model.fresh {
                self.schedule(cpu);
            } else if let Some(run) = model.given.filter(|_| !model.stopping) {
                self.cpus[cpu.index()].stopping = true;
                self.totals.stops += 1;
                kernel.stop(cpu, run);
            }
        }
        self.core.clear_resched();
        self.take_timer_requests();
    }

    /// Gives every CPU that has asked its decision, until all are free to be carried out.
    pub(super) fn commit(&mut self, kernel: &mut impl Kernel) -> io::Result<()> {
        loop {
            self.give_all(kernel);
            let busy = kernel.commit()?;
            if busy.is_empty() {
                break;
            }
            for cpu in busy.iter() {
                if let Some(task) = self.core.curr(cpu).filter(|_| !self.core.is_taken(cpu)) {
                    self.task(task).waits = true;
                }
                self.lose(cpu);
            }
            self.react(kernel);
        }
        Ok(())
    }

    fn give_all(&mut self, kernel: &mut impl Kernel) {
        let cpus = self.policy_cpus;
        for cpu in cpus.iter() {
            let model = self.cpus[cpu.index()];
            if !model.asked || !model.fresh || self.core.is_taken(cpu) {
                continue;
            }
            let Some(task) = self.core.curr(cpu) else { continue };
            let ticks = self.habits.ticks;
            let live = self.task(task);
            // Withdrawn for a moment, for a change of nice or affinity: it will be back.
            if !live.waits {
                continue;
            }
            live.waits = false;
            let Some(pid) = live.thread.as_ref().map(|thread| thread.pid) else { continue };
            let run = Run { pid, lease: live.lease };
            kernel.give(cpu, Decision { run, slice_ns: Decision::UNTIL_TOLD, ticks });
            self.totals.decisions += 1;
            let model = &mut self.cpus[cpu.index()];
            (model.asked, model.fresh) = (false, false);
            (model.given, model.stopping) = (Some(run), false);
        }
    }

    /// A CPU came or went: tasks may use what is left of the CPUs they are allowed.
    pub(super) fn hotplug(&mut self, cpu: CpuId, online: bool) {
        if !self.policy_cpus.contains(cpu) {
            return;
        }
        if online {
            self.online.insert(cpu);
        } else {
            self.online.remove(cpu);
            // What was given to it runs there until the kernel pushes it off.
            let running = self.core.curr(cpu).filter(|_| self.cpus[cpu.index()].given.is_some());
            self.lose(cpu);
            if let Some(task) = running {
                self.task(task).unasked = Some(cpu);
            }
        }
        let tasks: Vec<TaskId> = self.ids.values().copied().collect();
        for task in tasks {
            self.apply_affinity(task);
        }
    }
}
