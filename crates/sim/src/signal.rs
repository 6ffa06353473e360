// SPDX-License-Identifier: GPL-2.0-only
//! Signals: coalescing ones that a task waits for, and fatal ones.

use schedlab_policy_api::{Policy, TaskState};
use schedlab_units::{CpuId, Nanos, TaskId};
use schedlab_workload::ir::{Op, SignalTarget, TemplateId};

use crate::life::Waiting;
use crate::ops::Flow;
use crate::proc::Todo;
use crate::queue::{Event, Rank};
use crate::{HostObserver, Sim};

impl<'w, P: Policy, O: HostObserver> Sim<'w, P, O> {
    /// Sends a signal.
    pub(crate) fn signal(&mut self, cpu: CpuId, task: TaskId, target: SignalTarget) -> Flow<'w> {
        match target {
            SignalTarget::Parent => {
                if let Some(parent) = self.procs[task.index()].family.parent {
                    self.post_signal(cpu, task, parent);
                }
            }
            SignalTarget::Template(template) => {
                let n = self.signal_targets[template.0 as usize].as_ref().map_or(0, Vec::len);
                for index in 0..n {
                    let target = self.signal_targets[template.0 as usize]
                        .as_ref()
                        .and_then(|targets| targets.get(index).copied());
                    if let Some(target) = target {
                        self.post_signal(cpu, task, target);
                    }
                }
            }
        }
        Flow::Done
    }

    /// Whether some target of a signal that `task` sends waits for one.
    pub(crate) fn waits_for_signal(&self, task: TaskId, target: SignalTarget) -> bool {
        let waits = |target: TaskId| self.procs[target.index()].in_sigwait;
        match target {
            SignalTarget::Parent => self.procs[task.index()].family.parent.is_some_and(waits),
            SignalTarget::Template(template) => {
                let targets = self.signal_targets[template.0 as usize].as_ref();
                targets.is_some_and(|targets| targets.iter().copied().any(waits))
            }
        }
    }

    /// Signals coalesce: one that is pending already is dropped, and a task that is awake is not
    /// woken (spec cfs-eevdf §6 Q14).
    fn post_signal(&mut self, cpu: CpuId, sender: TaskId, target: TaskId) {
        let proc = &mut self.procs[target.index()];
        if std::mem::replace(&mut proc.signal_pending, true) {
            return;
        }
        if std::mem::replace(&mut proc.in_sigwait, false) {
            self.wake(cpu, target, Some(sender), false);
        }
    }

    /// Waits for a signal, at most `limit` long.
    pub(crate) fn wait_for_signal(
        &mut self,
        task: TaskId,
        op: &'w Op,
        limit: Option<Nanos>,
    ) -> Flow<'w> {
        let proc = &mut self.procs[task.index()];
        if std::mem::replace(&mut proc.signal_pending, false) {
            return Flow::Done;
        }
        proc.in_sigwait = true;
        if let Some(limit) = limit {
            self.arm_sleep(task, self.now.saturating_add(limit));
        }
        Flow::Block(TaskState::Sleeping, Todo::Complete(op))
    }

    /// After a wait for a signal: takes the signal, or notes that time ran out.
    pub(crate) fn take_signal(&mut self, task: TaskId, on_timeout: Option<u32>) {
        let proc = &mut self.procs[task.index()];
        if std::mem::replace(&mut proc.signal_pending, false) {
            return;
        }
        if let Some(target) = on_timeout {
            proc.vm.jump(target);
        }
    }

    /// Sends every living task of a template a fatal signal.
    pub(crate) fn kill(&mut self, cpu: CpuId, sender: TaskId, template: TemplateId) -> Flow<'w> {
        let n = self.signal_targets[template.0 as usize].as_ref().map_or(0, Vec::len);
        for index in 0..n {
            let target = self.signal_targets[template.0 as usize]
                .as_ref()
                .and_then(|targets| targets.get(index).copied());
            let Some(target) = target else { continue };
            self.procs[target.index()].killed = true;
            let facts = self.core.tasks().get(target);
            match facts.state {
                TaskState::Sleeping => {
                    self.forget(target);
                    self.wake(cpu, target, Some(sender), false);
                }
                TaskState::Running if target != sender => {
                    let kick = Event::Kick { cpu: facts.cpu, interrupt: true };
                    let at = self.now + self.config.cost.kick_latency.get();
                    self.push_pending(at, Rank::Interrupt, 0, kick);
                }
                _ => {}
            }
        }
        Flow::Done
    }

    /// Takes a task off whatever it waits for.
    fn forget(&mut self, task: TaskId) {
        self.objects.forget(task);
        for proc in &mut self.procs {
            self.objects.links.remove(&mut proc.taken, task);
        }
        let proc = &mut self.procs[task.index()];
        proc.in_sigwait = false;
        proc.family.waiting = Waiting::No;
    }
}
