// SPDX-License-Identifier: GPL-2.0-only
//! Tasks of the fair class coming to a queue, leaving it, and taking turns.
//!
//! A task that sleeps while it is overserved stays on its queue, delayed, until it is picked or
//! woken (DELAY_DEQUEUE); the core knows nothing of that.
//! Source: v6.12 `fair.c`; spec cfs-eevdf §4D.

use schedlab_policy_api::{Ctx, Dequeue, Enqueue, Wake};
use schedlab_units::{CpuId, Nanos, TaskId};

use super::Eevdf;
use super::entity::Departure;
use crate::fair::{Membership, calc_delta_fair};

/// Shortest time a slice timer is armed for, ns (kernel `hrtick_start`).
const HRTICK_MIN: u64 = 10_000;

impl Eevdf {
    /// A fair task joins the queue of `cpu`.
    ///
    /// Source: v6.12 `fair.c` `enqueue_task_fair`, `migrate_task_rq_fair`, `core.c`
    /// `ttwu_runnable`.
    pub(super) fn enqueue_fair(
        &mut self,
        cx: &mut Ctx<'_>,
        cpu: CpuId,
        task: TaskId,
        why: Enqueue,
    ) {
        let now = cx.now.as_ns();
        if self.fair.task(task).delayed && why == Enqueue::Wakeup {
            self.util_est_enqueue(cpu, task);
            self.requeue_delayed(cx, task);
            self.woken_in_switch = cx.tasks.get(task).on_cpu.then_some(task);
            return;
        }
        let from = self.fair.task(task).cpu;
        let mut migrated = why == Enqueue::Migrate;
        if from != cpu {
            if why == Enqueue::Wakeup {
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
        let starts_server = self.fair.cpu(cpu).nr == 0;
        self.enqueue_entity(cx, cpu, task, why == Enqueue::New, migrated);
        if starts_server {
            self.server_start(cx, cpu);
        }
        self.fair.add_nr_running(cpu);
        self.hrtick_update(cx, cpu);
        if why == Enqueue::Wakeup {
            self.fair.end_idle(cpu, now);
        }
    }

    /// A fair task leaves the queue of `cpu`, or stays there as a delayed one.
    ///
    /// Source: v6.12 `fair.c` `dequeue_task_fair`, `dequeue_entity`.
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
        if !self.fair.task(task).delayed {
            self.util_est_dequeue(cpu, task, departure);
        }
        self.update_curr(cx, cpu);
        self.clear_buddy(cpu, Some(task));
        if why == Dequeue::Sleep && self.knobs.delay_dequeue && !self.entity_eligible(cpu, task) {
            self.fair.update_load_avg(cx.now.as_ns(), cpu, task, Membership::Keep);
            self.fair.set_delayed(task);
            self.n_delayed += 1;
            return;
        }
        self.dequeue_task(cx, cpu, task, departure);
        if why == Dequeue::Exit {
            self.fair.remove_load(task);
        }
    }

    /// The part of a departure that takes the task off the queue.
    fn dequeue_task(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId, departure: Departure) {
        let was_sched_idle = self.fair.only_idle.contains(cpu);
        self.dequeue_entity(cx, cpu, task, departure);
        self.fair.sub_nr_running(cpu);
        if !was_sched_idle && self.fair.only_idle.contains(cpu) {
            // Balance early to pull tasks that matter more.
            self.fair.cpu_mut(cpu).next_balance = cx.jiffies;
        }
        self.hrtick_update(cx, cpu);
    }

    /// A delayed task that was picked leaves its queue for good.
    ///
    /// Source: v6.12 `fair.c` `dequeue_entities`, `finish_delayed_dequeue_entity`.
    pub(super) fn finish_delayed(&mut self, cx: &mut Ctx<'_>, task: TaskId) {
        let cpu = self.fair.task(task).cpu;
        self.update_curr_quietly(cx, cpu);
        self.clear_buddy(cpu, Some(task));
        self.dequeue_task(cx, cpu, task, Departure::Sleep);
        self.fair.task_mut(task).delayed = false;
        self.drop_positive_lag(task);
    }

    /// [`Eevdf::update_curr`] inside a pick.
    fn update_curr_quietly(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) {
        if self.account_curr(cx, cpu) {
            let curr = self.fair.cpu(cpu).curr;
            self.clear_buddy(cpu, curr);
        }
    }

    /// A task whose dequeue was delayed gains nothing from the wait (DELAY_ZERO).
    fn drop_positive_lag(&mut self, task: TaskId) {
        if self.knobs.delay_zero {
            let entity = self.entity_mut(task);
            entity.vlag = entity.vlag.min(0);
        }
    }

    /// A delayed task wakes up where it is.
    ///
    /// Source: v6.12 `fair.c` `requeue_delayed_entity`.
    fn requeue_delayed(&mut self, cx: &mut Ctx<'_>, task: TaskId) {
        let cpu = self.fair.task(task).cpu;
        if self.knobs.delay_zero {
            self.update_entity_lag(cpu, task);
            if self.entity(task).vlag > 0 {
                let waits = self.fair.cpu(cpu).curr != Some(task);
                let others = self.fair.cpu(cpu).nr - 1;
                if waits {
                    self.tree_remove(cpu, task);
                }
                self.entity_mut(task).vlag = 0;
                self.place(cpu, task, others, false);
                if waits {
                    self.tree_insert(cpu, task);
                }
            }
        }
        self.fair.update_load_avg(cx.now.as_ns(), cpu, task, Membership::Keep);
        self.fair.clear_delayed(task);
        self.n_requeued += 1;
    }

    /// Moves a delayed task to another queue. The core, for which it sleeps, learns of it when the
    /// task wakes up there.
    pub(super) fn move_delayed(&mut self, cx: &mut Ctx<'_>, task: TaskId, to: CpuId) {
        let from = self.fair.task(task).cpu;
        self.take_delayed_off(cx, task, Departure::Migrate);
        self.fair.task_mut(task).cpu = to;
        self.put_delayed_back(cx, task, true);
        self.fair.stats.delayed_moved += 1;
        debug_assert_ne!(from, to, "task {task} moves nowhere");
        self.disturb(cx, to, task, Wake::Migrate);
    }

    /// First half of a change of a delayed task.
    pub(super) fn take_delayed_off(&mut self, cx: &mut Ctx<'_>, task: TaskId, why: Departure) {
        let cpu = self.fair.task(task).cpu;
        self.update_curr(cx, cpu);
        self.clear_buddy(cpu, Some(task));
        self.dequeue_task(cx, cpu, task, why);
    }
    /// Second half of a change of a delayed task, which stays delayed.
    pub(super) fn put_delayed_back(&mut self, cx: &mut Ctx<'_>, task: TaskId, migrated: bool) {
        let cpu = self.fair.task(task).cpu;
        self.enqueue_entity(cx, cpu, task, false, migrated);
        self.fair.add_nr_running(cpu);
        self.hrtick_update(cx, cpu);
    }
    /// A delayed task that was taken off does not come back: it has left the class.
    pub(super) fn forget_delayed(&mut self, task: TaskId) {
        self.fair.task_mut(task).delayed = false;
        self.drop_positive_lag(task);
        self.entity_mut(task).rel_deadline = false;
    }

    /// A fair task becomes current on `cpu`.
    ///
    /// Source: v6.12 `fair.c` `set_next_entity`, `__set_next_task_fair`.
    pub(super) fn set_next_fair(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId) {
        let now = cx.now.as_ns();
        self.clear_buddy(cpu, Some(task));
        self.tree_remove(cpu, task);
        self.fair.update_load_avg(now, cpu, task, Membership::Keep);
        self.fair.task_mut(task).exec_start = Some(now);
        self.fair.cpu_mut(cpu).curr = Some(task);
        self.fair.list_touch(cpu, task);
        let entity = self.entity_mut(task);
        entity.protect();
        entity.prev_sum_exec = entity.sum_exec;
        if self.knobs.hrtick {
            self.hrtick_start(cx, cpu, task);
        }
    }

    /// A fair task stops being current on `cpu`; if it still counts it waits from now on.
    ///
    /// Source: v6.12 `fair.c` `put_prev_entity`.
    pub(super) fn put_prev_fair(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId) {
        if self.fair.task(task).on_rq {
            self.update_curr(cx, cpu);
            self.tree_insert(cpu, task);
            self.fair.update_load_avg(cx.now.as_ns(), cpu, task, Membership::Keep);
        }
        self.fair.cpu_mut(cpu).curr = None;
    }

    /// The tick of `cpu` while fair task `task` runs.
    ///
    /// Source: v6.12 `fair.c` `entity_tick`.
    pub(super) fn tick_fair(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId) {
        self.update_curr(cx, cpu);
        self.fair.update_load_avg(cx.now.as_ns(), cpu, task, Membership::Keep);
    }

    /// Fair task `task`, current on `cpu`, calls `sched_yield`.
    ///
    /// Source: v6.12.117 and v6.12.0 `fair.c` `yield_task_fair`.
    pub(super) fn yield_fair(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId) {
        if self.fair.cpu(cpu).nr_running == 1 {
            return;
        }
        self.clear_buddy(cpu, Some(task));
        self.update_curr(cx, cpu);
        if !self.yield_forfeits {
            let load = self.fair.task(task).load;
            let vslice = calc_delta_fair(self.entity(task).slice, &load);
            let entity = self.entity_mut(task);
            entity.deadline = entity.deadline.advance(vslice);
        } else if self.entity_eligible(cpu, task) {
            let entity = self.entity_mut(task);
            entity.vruntime = entity.deadline;
            self.update_deadline(cpu, task);
        }
    }

    /// Arms the slice timer of the fair task that runs on `cpu`, if others wait.
    ///
    /// Source: v6.12 `fair.c` `hrtick_start_fair`.
    fn hrtick_start(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId) {
        if self.fair.cpu(cpu).nr <= 1 {
            return;
        }
        let entity = self.entity(task);
        let ran = entity.sum_exec - entity.prev_sum_exec;
        match entity.slice.checked_sub(ran) {
            Some(left) => cx.arm(cpu.0, cx.now + Nanos::from_ns(left.max(HRTICK_MIN))),
            None => cx.resched(cpu),
        }
    }

    /// [`Eevdf::hrtick_start`] after a task came or went.
    ///
    /// Source: v6.12 `fair.c` `hrtick_update`.
    fn hrtick_update(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) {
        if self.knobs.hrtick
            && let Some(curr) = self.queued_curr(cpu)
        {
            self.hrtick_start(cx, cpu, curr);
        }
    }

    /// The slice timer of `cpu` expired.
    pub(super) fn hrtick(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) {
        if let Some(curr) = self.queued_curr(cpu) {
            self.tick_fair(cx, cpu, curr);
            cx.resched(cpu);
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
