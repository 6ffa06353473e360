// SPDX-License-Identifier: GPL-2.0-only
//! Waking tasks: `try_to_wake_up` and `wake_up_new_task`.

use schedlab_policy_api::{Enqueue, Locking, Observer, Policy, SchedEvent, TaskState, Wake};
use schedlab_units::{CpuId, TaskId, Time};

use crate::Core;
use crate::transcript::{Input, Outcome};

/// What became of a wake-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wakeup {
    /// The task was not asleep; nothing happened.
    NotAsleep,
    /// It joined the queue of this CPU.
    Queued(CpuId),
    /// It is on its way: the host is to interrupt this CPU and call [`Core::wake_arrive`] there.
    Sent(CpuId),
}

impl<P: Policy, O: Observer> Core<P, O> {
    /// Wakes `task` on `this_cpu`; `waker` is none when an interrupt does it.
    ///
    /// Source: v6.12 and 2.4.5 `try_to_wake_up`.
    pub fn wake(
        &mut self,
        now: Time,
        this_cpu: CpuId,
        task: TaskId,
        waker: Option<TaskId>,
        sync: bool,
    ) -> Wakeup {
        self.log.input(now, Input::Wake { this_cpu, task, waker, sync });
        let outcome = self.try_to_wake_up(now, this_cpu, task, Wake::Wakeup { waker, sync });
        self.settle(now, this_cpu);
        self.log.outcome(Outcome::Wakeup(outcome));
        outcome
    }

    fn try_to_wake_up(&mut self, now: Time, this_cpu: CpuId, task: TaskId, wake: Wake) -> Wakeup {
        if !self.tasks.get(task).state.is_asleep() {
            return Wakeup::NotAsleep;
        }
        let Wake::Wakeup { waker, .. } = wake else { unreachable!("only wake-ups come here") };
        // A task still being switched away from is queued where it is, without a choice of CPU
        // (kernel WF_ON_CPU); with one queue for the machine there is nothing to choose anyway.
        let on_cpu = self.tasks.get(task).on_cpu;
        let target =
            if on_cpu { self.tasks.cpu(task) } else { self.select(now, this_cpu, task, wake) };
        self.observer.event(now, &SchedEvent::Waking { task, waker, this_cpu, target });
        self.set_cpu(now, task, target);
        let remote = !on_cpu
            && target != this_cpu
            && self.hook(now, this_cpu, |p, cx| p.ttwu_queue(cx, task, target));
        if remote {
            self.set_state(now, task, TaskState::Waking);
            self.wake_pending[target.index()] += 1;
            return Wakeup::Sent(target);
        }
        self.activate(now, this_cpu, task, Enqueue::Wakeup, wake);
        Wakeup::Queued(target)
    }

    /// The interrupt of a wake-up that was [`Wakeup::Sent`] arrives on `cpu`.
    ///
    /// The SYNC hint is lost on the way, as in the kernel.
    ///
    /// # Panics
    /// When `task` is not on its way to `cpu`.
    pub fn wake_arrive(&mut self, now: Time, cpu: CpuId, task: TaskId) {
        self.log.input(now, Input::WakeArrive { cpu, task });
        let facts = self.tasks.get(task);
        assert!(
            facts.state == TaskState::Waking && facts.cpu == cpu,
            "task {task} is not on its way to CPU {cpu}: {facts:?}"
        );
        self.wake_pending[cpu.index()] -= 1;
        let wake = Wake::Wakeup { waker: None, sync: false };
        self.activate(now, cpu, task, Enqueue::Wakeup, wake);
        self.settle(now, cpu);
        self.log.outcome(Outcome::None);
    }

    /// First wake-up of a forked task; `on` overrides the policy's choice of a CPU.
    ///
    /// # Panics
    /// When `task` was woken before.
    ///
    /// Source: v6.12 `wake_up_new_task`.
    pub fn wake_up_new(
        &mut self,
        now: Time,
        this_cpu: CpuId,
        task: TaskId,
        on: Option<CpuId>,
    ) -> CpuId {
        self.log.input(now, Input::WakeUpNew { this_cpu, task, on });
        assert!(self.tasks.get(task).state == TaskState::New, "task {task} is not new");
        let target = on.unwrap_or_else(|| self.select(now, this_cpu, task, Wake::Fork));
        self.set_cpu(now, task, target);
        self.activate(now, this_cpu, task, Enqueue::New, Wake::Fork);
        self.settle(now, this_cpu);
        self.log.outcome(Outcome::Cpu(target));
        target
    }

    /// Enqueues a task on its CPU and asks whom to disturb.
    fn activate(&mut self, now: Time, this_cpu: CpuId, task: TaskId, why: Enqueue, wake: Wake) {
        let cpu = self.tasks.cpu(task);
        self.set_state(now, task, TaskState::Runnable);
        self.hook(now, this_cpu, |p, cx| p.enqueue(cx, cpu, task, why));
        let event = match why {
            Enqueue::New => SchedEvent::WakeupNew { task, cpu },
            _ => SchedEvent::Wakeup { task, cpu },
        };
        self.observer.event(now, &event);
        self.hook(now, this_cpu, |p, cx| p.wakeup_preempt(cx, cpu, task, wake));
    }

    /// The policy's choice of a CPU, or the lowest allowed one if that may not be used.
    ///
    /// With one queue for the machine the CPU is only the place where the task last ran, so there
    /// the choice stands.
    ///
    /// Source: v6.12 `select_task_rq`, `select_fallback_rq`.
    pub(crate) fn select(&mut self, now: Time, this_cpu: CpuId, task: TaskId, wake: Wake) -> CpuId {
        let cpu = self.hook(now, this_cpu, |p, cx| p.select_cpu(cx, task, wake));
        let affinity = &self.tasks.get(task).affinity;
        if self.locking == Locking::Global || affinity.contains(cpu) {
            return cpu;
        }
        affinity.first().expect("the core keeps affinity masks from being empty")
    }
}
