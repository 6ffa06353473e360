// SPDX-License-Identifier: GPL-2.0-only
//! Sleeping for a time: one-shot and periodic timers, devices.

use schedlab_policy_api::{Policy, TaskState, TimerBase};
use schedlab_units::{CpuId, Nanos, TaskId, Time};
use schedlab_workload::ir::{ObjectId, Op};

use crate::ops::Flow;
use crate::proc::{Then, Todo};
use crate::queue::{Event, Rank};
use crate::{HostObserver, Sim};

impl<'w, P: Policy, O: HostObserver> Sim<'w, P, O> {
    /// `nanosleep`.
    ///
    /// In 2.4 a real-time task that asks for at most 2 ms busy-waits in the kernel instead (spec
    /// linux-2.4-goodness §4.14).
    pub(crate) fn sleep_for(&mut self, task: TaskId, op: &'w Op, span: Nanos) -> Flow<'w> {
        let class = self.core.tasks().get(task).class;
        if let Some(left) = self.config.time.timers.busy_wait(class, span) {
            return Flow::Again(Todo::Kernel { left, then: Then::Complete(op) });
        }
        self.arm_sleep(task, self.now.saturating_add(span));
        Flow::Block(TaskState::Sleeping, Todo::Complete(op))
    }

    /// rt-app's timer rule (spec formats-and-ecosystem §1.6): T := T + P; sleep until T, or, if T
    /// has passed, go on at once, a relative timer starting anew from now.
    pub(crate) fn periodic(
        &mut self,
        task: TaskId,
        op: &'w Op,
        timer: ObjectId,
        period: Nanos,
        absolute: bool,
    ) -> Flow<'w> {
        let now = self.now;
        let shared = &mut self.objects.timers[timer.0 as usize];
        let proc = &mut self.procs[task.index()];
        let (next, stays_absolute) = if shared.per_task {
            let own = proc.timer_mut(timer);
            own.absolute |= absolute;
            (&mut own.next, own.absolute)
        } else {
            shared.absolute |= absolute;
            (shared.next.get_or_insert(proc.reference), shared.absolute)
        };
        *next = next.saturating_add(period);
        let due = *next;
        if due > now {
            self.arm_sleep(task, due);
            return Flow::Block(TaskState::Sleeping, Todo::Complete(op));
        }
        if !stays_absolute {
            *next = now;
        }
        proc.release = due;
        Flow::Done
    }

    /// Timer `timer` as `task` sees it: its next expiry.
    pub(crate) fn timer_next(&mut self, task: TaskId, timer: ObjectId) -> &mut Time {
        let shared = &mut self.objects.timers[timer.0 as usize];
        let proc = &mut self.procs[task.index()];
        if shared.per_task {
            &mut proc.timer_mut(timer).next
        } else {
            shared.next.get_or_insert(proc.reference)
        }
    }

    /// Waits for the next interrupt of a device that interrupts at all multiples of `period`. If
    /// the device keeps interrupts and some came since the task's last such wait, the task goes on
    /// at once, and its deadlines count from the first of them.
    pub(crate) fn wait_for_interrupt(
        &mut self,
        task: TaskId,
        op: &'w Op,
        period: Nanos,
        kept: bool,
    ) -> Flow<'w> {
        let now = self.now;
        let next_after = |at: Time| {
            let n = at.as_ns() / period.as_ns() + 1;
            Time::from_ns(n.saturating_mul(period.as_ns()))
        };
        let proc = &mut self.procs[task.index()];
        let first = next_after(proc.interrupts_seen);
        if kept && first <= now {
            proc.release = first;
            proc.interrupts_seen = now;
            return Flow::Done;
        }
        let wait = proc.wait;
        self.push_pending(next_after(now), Rank::Interrupt, 0, Event::Device { task, wait });
        Flow::Block(TaskState::Sleeping, Todo::Complete(op))
    }

    /// Waits for a device, whose completion arrives as an interrupt.
    pub(crate) fn wait_for_device(&mut self, task: TaskId, op: &'w Op, span: Nanos) -> Flow<'w> {
        let wait = self.procs[task.index()].wait;
        let at = self.now.saturating_add(span);
        self.push_pending(at, Rank::Interrupt, 0, Event::Device { task, wait });
        Flow::Block(TaskState::Uninterruptible, Todo::Complete(op))
    }

    /// Queues the end of a sleep that is asked to end at `until`.
    pub(crate) fn arm_sleep(&mut self, task: TaskId, until: Time) {
        let span = until.saturating_since(self.now);
        let timers = self.config.time.timers;
        let at = match timers.sleep_jiffies(span, self.config.hz) {
            Some(jiffies) => {
                let tick = self.config.hz.tick();
                let reached = self.now.as_ns() / tick.as_ns();
                // Even a sleep of 0 jiffies ends in an interrupt that is still to come.
                let target = reached.saturating_add(jiffies.max(1));
                Time::from_ns(tick.as_ns().saturating_mul(target))
            }
            None if self.core.tasks().get(task).class.is_rt() => until,
            None => until.saturating_add(self.config.cost.timer_slack.get()),
        };
        // Among timers of one instant: by CPU and in the order of arming, or by task.
        let subject = match timers {
            TimerBase::Local(_) => self.timer_cpu(task).0,
            TimerBase::Jiffies | TimerBase::HighRes => task.0,
        };
        let proc = &mut self.procs[task.index()];
        proc.due = until;
        proc.is_armed = true;
        let event = Event::Timer { task, wait: proc.wait };
        self.push_pending(at, Rank::Timer, subject, event);
    }

    /// The CPU that handles the timer interrupt of a sleeping task.
    pub(crate) fn timer_cpu(&self, task: TaskId) -> CpuId {
        match self.config.time.timers {
            TimerBase::Jiffies => CpuId(0),
            TimerBase::Local(_) | TimerBase::HighRes => self.core.tasks().cpu(task),
        }
    }

    /// The sleep of `task` is over.
    pub(crate) fn timer_expired(&mut self, cpu: CpuId, task: TaskId) {
        self.procs[task.index()].in_sigwait = false;
        self.charge_interrupt(cpu);
        self.wake(cpu, task, None, false);
        let proc = &mut self.procs[task.index()];
        proc.release = proc.due;
    }
}
