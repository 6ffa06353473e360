// SPDX-License-Identifier: GPL-2.0-only
//! Where the fair class and the real-time class meet.

use schedlab_policy_api::{Ctx, Dequeue, Enqueue, Wake};
use schedlab_units::{CpuId, TaskId};

use super::dialect::{Dialect, Order};
use super::policy::FairPolicy;

impl<D, E> FairPolicy<D, E>
where
    Self: Dialect,
{
    /// `woken` has joined the queue of `cpu`: whom to disturb.
    ///
    /// Source: v6.122 `core.c` `wakeup_preempt`, called `check_preempt_curr` before.
    pub(crate) fn disturb(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, woken: TaskId, wake: Wake) {
        let Some(curr) = cx.curr(cpu) else {
            cx.resched(cpu);
            return;
        };
        match (cx.tasks.get(woken).class.is_rt(), cx.tasks.get(curr).class.is_rt()) {
            (true, true) => self.rt.wakeup_preempt(cx, cpu, woken),
            (true, false) => cx.resched(cpu),
            (false, true) => {}
            (false, false) => self.check_preempt(cx, cpu, woken, wake),
        }
    }

    /// Pulls the most urgent real-time task that could run on `cpu` better than where it is.
    ///
    /// The kernel may pull several on its way to the most urgent one; here only that one moves.
    pub(super) fn pull_rt(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) {
        if self.rt.needs_pull(cx, cpu)
            && let Some((task, from)) = self.rt.find_pull(cx, cpu)
        {
            self.rt.transfer(cx, task, from, cpu);
            self.throttle.dec(&mut self.fair, from);
            self.throttle.inc(cx, &mut self.fair, cpu);
            self.fair.task_mut(task).cpu = cpu;
        }
    }

    /// Books the run time of real-time task `task`, current on `cpu`; true when the CPU's are
    /// throttled.
    pub(super) fn account_rt(&mut self, now: u64, cpu: CpuId, task: TaskId) -> bool {
        self.throttle.account(&mut self.fair, &self.rt, now, cpu, task)
    }

    /// A real-time task joins the queue of `cpu`.
    pub(super) fn enqueue_rt(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId, why: Enqueue) {
        self.rt.enqueue(cx, cpu, task);
        self.throttle.inc(cx, &mut self.fair, cpu);
        let now = cx.now.as_ns();
        let this = self.fair.task_mut(task);
        this.cpu = cpu;
        match why {
            Enqueue::New => this.avg.last_update_time = now,
            Enqueue::Wakeup => self.fair.end_idle(cpu, now),
            Enqueue::Migrate | Enqueue::Restore => {}
        }
        self.rt_came(cx, cpu);
    }

    /// A real-time task leaves the queue of `cpu`.
    pub(super) fn dequeue_rt(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId, why: Dequeue) {
        if cx.curr(cpu) == Some(task) && self.account_rt(cx.now.as_ns(), cpu, task) {
            cx.resched(cpu);
        }
        self.rt.dequeue(cpu, task, why == Dequeue::Save);
        self.throttle.dec(&mut self.fair, cpu);
    }

    /// The tick of `cpu` while real-time task `task` runs.
    ///
    /// Source: v6.12 `rt.c` `task_tick_rt`.
    pub(super) fn tick_rt(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId) {
        let now = cx.now.as_ns();
        if self.account_rt(now, cpu, task) {
            cx.resched(cpu);
        }
        self.fair.update_rt_avg(now, cpu, true);
        self.rt.tick(cx, cpu, task);
    }

    /// A real-time task starts (`starts`) or stops being current on `cpu`.
    pub(super) fn switch_rt(&mut self, now: u64, cpu: CpuId, task: TaskId, starts: bool) {
        self.fair.update_rt_avg(now, cpu, !starts);
        self.fair.cpu_mut(cpu).runs_rt = starts;
        if starts {
            self.fair.task_mut(task).exec_start = Some(now);
        } else {
            self.account_rt(now, cpu, task);
        }
    }

    /// The nice value of a fair task has changed.
    ///
    /// Source: v6.12 `fair.c` `prio_changed_fair`.
    pub(super) fn prio_changed_fair(&mut self, cx: &mut Ctx<'_>, task: TaskId) {
        let cpu = self.fair.task(task).cpu;
        if self.fair.cpu(cpu).nr == 1 {
            return;
        }
        if cx.curr(cpu) == Some(task) {
            if cx.tasks.get(task).static_prio().0 > self.before.prio.0 {
                cx.resched(cpu);
            }
        } else {
            self.disturb(cx, cpu, task, Wake::Migrate);
        }
    }

    /// The class or real-time priority of a task has changed.
    ///
    /// Source: v6.12 `rt.c` `prio_changed_rt`, `switched_to_rt`, `fair.c` `switched_to_fair`.
    pub(super) fn class_changed(&mut self, cx: &mut Ctx<'_>, task: TaskId) {
        let facts = cx.tasks.get(task);
        let (cpu, is_rt) = (facts.cpu, facts.class.is_rt());
        let (prio, was_rt) = (facts.static_prio(), self.before.is_rt);
        let running = cx.curr(cpu) == Some(task);
        if was_rt
            && (!is_rt || (running && prio.0 > self.before.prio.0))
            && let Some((pulled, _)) = self.rt.find_pull(cx, cpu)
        {
            cx.migrate(pulled, cpu);
        }
        match (is_rt, running) {
            (true, true) => {
                let first = self.rt.pick(cpu);
                if first.is_some_and(|first| cx.tasks.get(first).static_prio().0 < prio.0) {
                    cx.resched(cpu);
                }
            }
            (true, false) => {
                let curr = cx.curr(cpu);
                if curr.is_none_or(|curr| prio.0 < cx.tasks.get(curr).static_prio().0) {
                    cx.resched(cpu);
                } else if !was_rt {
                    self.rt.push(cx, cpu);
                }
            }
            (false, true) if was_rt => cx.resched(cpu),
            (false, false) if was_rt => self.disturb(cx, cpu, task, Wake::Migrate),
            (false, _) => {}
        }
    }
}
