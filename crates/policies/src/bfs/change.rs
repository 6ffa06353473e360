// SPDX-License-Identifier: GPL-2.0-only
//! Changes of nice, class and affinity.

use schedlab_policy_api::Ctx;
use schedlab_units::{CpuId, TaskId};

use super::policy::Bfs;
use super::task::{BfsTask, user_prio};

impl Bfs {
    /// The CPU that runs `task`.
    fn running_on(&self, task: TaskId) -> Option<CpuId> {
        let cpu = self.tasks[task.index()].cpu;
        (self.cpus[cpu.index()].running == Some(task)).then_some(cpu)
    }

    /// The nice value of `task` changed.
    ///
    /// A queued task's deadline moves by the new plain offset less the old one with depth (quirk
    /// Q8); a running one's is overwritten at the next `schedule`.
    ///
    /// Source: 0.357 `sched_bfs.c` `set_user_nice`, `adjust_deadline`; spec §4.13.
    pub(super) fn nice_changed(&mut self, cx: &mut Ctx<'_>, task: TaskId) {
        self.niffies = cx.now.as_ns();
        let user = user_prio(cx.tasks.get(task));
        if self.tasks[task.index()].class.is_rt() {
            self.tasks[task.index()].user_prio = user;
            return;
        }
        let queued = self.queue.contains(task);
        if queued {
            self.queue.remove(task);
        }
        let old_offset = self.own_offset(task);
        let p = &mut self.tasks[task.index()];
        let new_offset = self.knobs.offset[usize::from(user)];
        p.deadline = p.deadline.wrapping_add(new_offset).wrapping_sub(old_offset);
        let (rises, falls) = (user < p.user_prio, user > p.user_prio);
        p.user_prio = user;
        p.prio = p.normal_prio();
        if queued {
            self.enqueue_task(task, true);
            if rises {
                self.try_preempt(cx, task, self.tasks[task.index()].cpu);
            }
        } else if let Some(cpu) = self.running_on(task) {
            self.cpus[cpu.index()].load_class(&self.tasks[task.index()]);
            if falls {
                cx.resched(cpu);
            }
        }
    }

    /// Class or real-time priority of `task` changed; slice and deadline stay.
    ///
    /// Source: 0.357 `sched_bfs.c` `__sched_setscheduler`; spec §4.14.
    pub(super) fn class_changed(&mut self, cx: &mut Ctx<'_>, task: TaskId) {
        let queued = self.queue.contains(task);
        if queued {
            self.queue.remove(task);
        }
        let before: BfsTask = self.tasks[task.index()];
        let p = &mut self.tasks[task.index()];
        p.copy_class(cx.tasks.get(task));
        let grew = p.prio > before.prio || p.rt_priority > before.rt_priority;
        if let Some(cpu) = self.running_on(task) {
            self.cpus[cpu.index()].load_class(&self.tasks[task.index()]);
            if grew {
                cx.resched(cpu);
            }
        }
        if queued {
            self.enqueue_task(task, true);
            self.try_preempt(cx, task, self.tasks[task.index()].cpu);
        }
    }

    /// The CPUs that `task` may use changed.
    ///
    /// Source: 0.357 `sched_bfs.c` `set_cpus_allowed_ptr`; spec §4.14.
    pub(super) fn affinity_changed(&mut self, cx: &mut Ctx<'_>, task: TaskId) {
        let (allowed, cpu) = (&cx.tasks.get(task).affinity, self.tasks[task.index()].cpu);
        if !allowed.contains(cpu) {
            if self.running_on(task).is_some() {
                cx.resched(cpu);
                return;
            }
            let to = allowed.first().expect("the core keeps affinity masks from being empty");
            self.tasks[task.index()].cpu = to;
            cx.migrate(task, to);
        }
        if self.queue.contains(task) {
            self.try_preempt(cx, task, self.tasks[task.index()].cpu);
        }
    }
}
