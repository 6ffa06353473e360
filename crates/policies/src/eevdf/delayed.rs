// SPDX-License-Identifier: GPL-2.0-only
//! Tasks that sleep but stay on their queue (DELAY_DEQUEUE).
//!
//! A task that sleeps while it is overserved stays, delayed, until it is picked or woken; the core
//! knows nothing of that.
//! Source: v6.12 `fair.c`; spec cfs-eevdf §4D.

use schedlab_policy_api::Ctx;
use schedlab_units::TaskId;

use super::Eevdf;
use crate::fair::{Departure, Membership};

impl Eevdf {
    /// A delayed task that was picked leaves its queue for good.
    ///
    /// Source: v6.12 `fair.c` `dequeue_entities`, `finish_delayed_dequeue_entity`.
    pub(super) fn finish_delayed(&mut self, cx: &mut Ctx<'_>, task: TaskId) {
        let cpu = self.fair.task(task).cpu;
        self.update_curr_quietly(cx, cpu);
        self.fair.clear_buddies(cpu, task);
        self.dequeue_task(cx, cpu, task, Departure::Sleep);
        self.fair.task_mut(task).delayed = false;
        self.drop_positive_lag(task);
    }

    /// A task whose dequeue was delayed gains nothing from the wait (DELAY_ZERO).
    fn drop_positive_lag(&mut self, task: TaskId) {
        if self.own.knobs.delay_zero {
            let entity = self.entity_mut(task);
            entity.vlag = entity.vlag.min(0);
        }
    }

    /// A delayed task wakes up where it is.
    ///
    /// Source: v6.12 `fair.c` `requeue_delayed_entity`.
    pub(super) fn requeue_delayed(&mut self, cx: &mut Ctx<'_>, task: TaskId) {
        let cpu = self.fair.task(task).cpu;
        if self.own.knobs.delay_zero {
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
        self.own.n_requeued += 1;
    }

    /// First half of a change of a delayed task.
    pub(super) fn take_delayed_off(&mut self, cx: &mut Ctx<'_>, task: TaskId, why: Departure) {
        let cpu = self.fair.task(task).cpu;
        self.update_curr(cx, cpu);
        self.fair.clear_buddies(cpu, task);
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
}
