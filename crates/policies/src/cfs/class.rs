// SPDX-License-Identifier: GPL-2.0-only
//! Tasks of the fair class coming to a queue, leaving it, and taking turns.
//!
//! Source: v6.1.170 `fair.c`; spec cfs-eevdf §4A.

use schedlab_policy_api::{Ctx, Dequeue, Enqueue, SchedClass};
use schedlab_units::{CpuId, TaskId};

use super::Cfs;
use super::entity::{Departure, Entity};
use crate::fair::{Membership, calc_delta_fair};

impl Cfs {
    /// Gives a forked fair task its place behind its parent, on the parent's CPU.
    ///
    /// Source: v6.1 `fair.c` `task_fork_fair`.
    pub(super) fn fork_fair(&mut self, cx: &mut Ctx<'_>, child: TaskId) {
        let facts = cx.tasks.get(child);
        let (cpu, is_idle) = (facts.cpu, facts.class == SchedClass::Idle);
        self.update_curr(cx.now.as_ns(), cpu);
        let curr = self.fair.cpu(cpu).curr;
        let vruntime = curr.map_or(Entity::NEW.vruntime, |curr| self.entity(curr).vruntime);
        *self.entity_mut(child) = Entity { vruntime, relative: false, ..Entity::NEW };
        self.place_new(cx.now.as_ns(), cpu, child, is_idle);
        if let Some(curr) = curr
            && self.knobs.child_runs_first
            && vruntime.before(self.entity(child).vruntime)
        {
            let late = core::mem::replace(&mut self.entity_mut(child).vruntime, vruntime);
            self.entity_mut(curr).vruntime = late;
            cx.resched(cpu);
        }
        self.make_relative(cpu, child);
    }

    /// A fair task joins the queue of `cpu`.
    ///
    /// Source: v6.1 `fair.c` `enqueue_task_fair`.
    pub(super) fn enqueue_fair(
        &mut self,
        cx: &mut Ctx<'_>,
        cpu: CpuId,
        task: TaskId,
        why: Enqueue,
    ) {
        let now = cx.now.as_ns();
        let from = self.fair.task(task).cpu;
        let wakeup = why == Enqueue::Wakeup;
        let mut migrated = why == Enqueue::Migrate;
        if from != cpu {
            if wakeup {
                let idle = cx.curr(from).is_none();
                self.fair.migrate_sleeping(now, task, idle);
                migrated = true;
            }
            self.fair.task_mut(task).cpu = cpu;
        }
        if why == Enqueue::New {
            self.fair.init_util_avg(cpu, task);
            self.fair.task_mut(task).recent_used_cpu = from;
        }
        self.util_est_enqueue(cpu, task);
        self.enqueue_entity(cx, cpu, task, wakeup, migrated);
        self.fair.add_nr_running(cpu);
        if wakeup {
            self.fair.end_idle(cpu, now);
        }
    }

    /// A fair task leaves the queue of `cpu`.
    ///
    /// Source: v6.1 `fair.c` `dequeue_task_fair`.
    pub(super) fn dequeue_fair(
        &mut self,
        cx: &mut Ctx<'_>,
        cpu: CpuId,
        task: TaskId,
        why: Dequeue,
    ) {
        let departure = match why {
            Dequeue::Sleep | Dequeue::Exit => Departure::Sleep,
            Dequeue::Migrate => Departure::Migrate,
            Dequeue::Save => Departure::Save,
        };
        self.util_est_dequeue(cpu, task, departure);
        let was_sched_idle = self.fair.only_idle.contains(cpu);
        self.dequeue_entity(cx, cpu, task, departure);
        self.fair.sub_nr_running(cpu);
        if !was_sched_idle && self.fair.only_idle.contains(cpu) {
            // Balance early to pull tasks that matter more.
            self.fair.cpu_mut(cpu).next_balance = cx.jiffies;
        }
        if why == Dequeue::Exit {
            self.fair.remove_load(task);
        }
    }

    /// A fair task becomes current on `cpu`.
    ///
    /// Source: v6.1 `fair.c` `set_next_entity`, `set_next_task_fair`.
    pub(super) fn set_next_fair(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId) {
        let now = cx.now.as_ns();
        self.clear_buddies(cpu, task);
        self.tree_remove(cpu, task);
        self.fair.update_load_avg(now, cpu, task, Membership::Keep);
        self.fair.task_mut(task).exec_start = Some(now);
        self.fair.cpu_mut(cpu).curr = Some(task);
        self.fair.list_touch(cpu, task);
        let entity = self.entity_mut(task);
        entity.prev_sum_exec = entity.sum_exec;
    }

    /// A fair task stops being current on `cpu`; if it still counts it waits from now on.
    ///
    /// Source: v6.1 `fair.c` `put_prev_entity`.
    pub(super) fn put_prev_fair(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId) {
        let now = cx.now.as_ns();
        if self.fair.task(task).on_rq {
            self.update_curr(now, cpu);
            self.tree_insert(cpu, task);
            self.fair.update_load_avg(now, cpu, task, Membership::Keep);
        }
        self.fair.cpu_mut(cpu).curr = None;
    }

    /// The tick of `cpu` while fair task `task` runs.
    ///
    /// Source: v6.1 `fair.c` `entity_tick`.
    pub(super) fn tick_fair(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId) {
        let now = cx.now.as_ns();
        self.update_curr(now, cpu);
        self.fair.update_load_avg(now, cpu, task, Membership::Keep);
        if self.fair.cpu(cpu).nr > 1 {
            if self.knobs.eevdf {
                self.rotate_at_tick(cx, cpu, task);
            } else {
                self.check_preempt_tick(cx, cpu, task);
            }
        }
    }

    /// Fair task `task`, current on `cpu`, calls `sched_yield`.
    ///
    /// Source: v6.1 `fair.c` `yield_task_fair`; 6 March 2023, 10/10.
    pub(super) fn yield_fair(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId) {
        if self.fair.cpu(cpu).nr_running == 1 {
            return;
        }
        self.clear_buddies(cpu, task);
        if cx.tasks.get(task).class != SchedClass::Batch || self.knobs.eevdf {
            self.update_curr(cx.now.as_ns(), cpu);
        }
        if self.knobs.eevdf {
            let vslice = calc_delta_fair(self.request, &self.fair.task(task).load);
            let entity = self.entity_mut(task);
            entity.deadline = entity.deadline.advance(vslice);
        }
        // A SCHED_IDLE task is passed over too: only `next` and `last` are denied to it.
        self.rqs[cpu.index()].skip = Some(task);
    }

    /// Sleeping fair task `task` is woken onto another CPU than the one it left.
    ///
    /// Source: v6.1 `fair.c` `migrate_task_rq_fair`.
    pub(super) fn leave_by_wakeup(&mut self, task: TaskId) {
        let from = self.fair.task(task).cpu;
        if !self.entity(task).relative {
            self.make_relative(from, task);
        }
    }

    /// `task` has left the fair class.
    ///
    /// Source: v6.1 `fair.c` `detach_task_cfs_rq`; the first lines `dequeue_entity`, as the class
    /// changes with DEQUEUE_MOVE if the priority does.
    pub(super) fn leave_fair(&mut self, now: u64, task: TaskId) {
        let cpu = self.fair.task(task).cpu;
        if self.entity(task).relative {
            self.update_min_vruntime(cpu);
        } else {
            // So that the sleep does not earn unlimited credit; that of a SCHED_IDLE task is no
            // smaller any more, for its class has changed.
            self.place_woken(now, cpu, task, false);
            self.make_relative(cpu, task);
        }
        self.fair.leave_class(now, task);
    }

    /// `task` has joined the fair class again; `asleep`, so that no `enqueue` follows.
    ///
    /// Source: v6.1 `fair.c` `attach_task_cfs_rq`.
    pub(super) fn join_fair(&mut self, now: u64, task: TaskId, asleep: bool) {
        self.fair.join_class(now, task);
        if asleep {
            let cpu = self.fair.task(task).cpu;
            self.make_absolute(cpu, task);
        }
    }

    fn util_est_enqueue(&mut self, cpu: CpuId, task: TaskId) {
        if self.knobs.util_est {
            let estimate = self.fair.task(task).avg.util_est();
            self.fair.cpu_mut(cpu).avg.util_est_add(estimate);
        }
    }
    fn util_est_dequeue(&mut self, cpu: CpuId, task: TaskId, why: Departure) {
        if self.knobs.util_est {
            let estimate = self.fair.task(task).avg.util_est();
            self.fair.cpu_mut(cpu).avg.util_est_sub(estimate);
            if why == Departure::Sleep {
                self.fair.task_mut(task).avg.util_est_update();
            }
        }
    }
}
