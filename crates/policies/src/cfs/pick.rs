// SPDX-License-Identifier: GPL-2.0-only
//! Which waiting task is next, whether a woken one preempts, and when a turn is over.
//!
//! Source: v6.1.170 and v6.3 `fair.c`; spec cfs-eevdf §4A.

use schedlab_policy_api::{Ctx, SchedClass, Wake};
use schedlab_units::{CpuId, TaskId};

use super::Cfs;
use super::arith::{Lead, wakeup_lead};
use super::entity::Entity;
use crate::fair::{Keys, Order};

impl Order for Cfs {
    fn weight(&self, task: TaskId) -> u64 {
        self.fair.task(task).load.weight
    }
    /// Its virtual time alone, or its deadline and then that.
    fn keys(&self, task: TaskId) -> Keys {
        let Entity { vruntime, deadline, .. } = *self.entity(task);
        let deadline = if self.own.knobs.eevdf { deadline } else { vruntime };
        Keys { deadline, vruntime, slice: 0 }
    }

    /// The next fair task of `cpu`.
    ///
    /// Source: v6.1 `fair.c` `pick_next_task_fair`.
    fn pick_fair(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) -> Option<TaskId> {
        let curr = self.queued_curr(cpu);
        if curr.is_some() {
            self.update_curr(cx.now.as_ns(), cpu);
        }
        self.pick_entity(cpu, curr)
    }

    /// [`Cfs::pick_fair`] while `leaving` is about to be pushed to another CPU.
    fn pick_fair_without(
        &mut self,
        cx: &mut Ctx<'_>,
        cpu: CpuId,
        leaving: TaskId,
    ) -> Option<TaskId> {
        self.update_curr(cx.now.as_ns(), cpu);
        self.fair.clear_buddies(cpu, leaving);
        let curr = self.queued_curr(cpu);
        if curr == Some(leaving) {
            return self.pick_entity(cpu, None);
        }
        self.tree_remove(cpu, leaving);
        let task = self.pick_entity(cpu, curr);
        self.tree_insert(cpu, leaving);
        task
    }

    /// Whether `woken`, queued on `cpu`, preempts the fair task that runs there.
    ///
    /// Source: v6.1 `fair.c` `check_preempt_wakeup`; 6 March 2023, 10/10.
    fn check_preempt(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, woken: TaskId, wake: Wake) {
        let Some(curr) = cx.curr(cpu).filter(|curr| *curr != woken) else { return };
        let woken_class = cx.tasks.get(woken).class;
        let woken_is_idle = woken_class == SchedClass::Idle;
        let crowded = u64::from(self.fair.cpu(cpu).nr) >= self.own.spans.nr_latency();
        let marks = self.own.knobs.next_buddy && crowded && wake != Wake::Fork;
        if marks && !woken_is_idle {
            self.fair.cpu_mut(cpu).next = Some(woken);
        }
        if cx.need_resched(cpu) {
            return;
        }
        let curr_is_idle = cx.tasks.get(curr).class == SchedClass::Idle;
        if !curr_is_idle || woken_is_idle {
            if matches!(woken_class, SchedClass::Batch | SchedClass::Idle)
                || !self.own.knobs.wakeup_preemption
            {
                return;
            }
            self.update_curr(cx.now.as_ns(), cpu);
            if self.own.knobs.eevdf {
                if self.pick_deadline(cpu, self.queued_curr(cpu)) == Some(woken) {
                    cx.resched(cpu);
                }
                return;
            }
            if self.lead(curr, woken) < Lead::Large {
                return;
            }
            self.fair.cpu_mut(cpu).next = Some(woken);
        }
        cx.resched(cpu);
        if self.own.knobs.last_buddy && crowded && !curr_is_idle && self.fair.task(curr).on_rq {
            self.fair.cpu_mut(cpu).last = Some(curr);
        }
    }
}

impl Cfs {
    /// Whether `curr` should make way for `other`.
    fn lead(&self, curr: TaskId, other: TaskId) -> Lead {
        let (curr, load) = (self.entity(curr).vruntime, &self.fair.task(other).load);
        wakeup_lead(curr, self.entity(other).vruntime, self.own.spans.wakeup_granularity, load)
    }

    /// The next entity of `cpu`, `curr` being the running one if it still counts: the one with the
    /// smallest virtual time, unless another is preferred and not too far ahead of that.
    ///
    /// Source: v6.1 `fair.c` `pick_next_entity`.
    pub(super) fn pick_entity(&self, cpu: CpuId, curr: Option<TaskId>) -> Option<TaskId> {
        if self.own.knobs.eevdf {
            return self.pick_deadline(cpu, curr);
        }
        let (this, rq) = (self.fair.cpu(cpu), self.rq(cpu));
        let before = |a: TaskId, b: TaskId| self.entity(a).vruntime.before(self.entity(b).vruntime);
        let first = rq.tree.first();
        let left = match (curr, first) {
            (Some(curr), Some(first)) if !before(curr, first) => first,
            (curr, first) => curr.or(first)?,
        };
        let mut choice = left;
        if this.skip == Some(left) {
            let second = if curr == Some(left) {
                first
            } else {
                let next = self.nodes.iter(&rq.tree).nth(1);
                match (curr, next) {
                    (Some(curr), Some(next)) if !before(curr, next) => Some(next),
                    (curr, next) => curr.or(next),
                }
            };
            choice = second.filter(|second| self.lead(*second, left) < Lead::Large).unwrap_or(left);
        }
        let near = |buddy: &TaskId| self.lead(*buddy, left) < Lead::Large;
        Some(this.next.filter(near).or(this.last.filter(near)).unwrap_or(choice))
    }

    /// Whether the turn of `curr` on `cpu` is over, for somebody else waits.
    ///
    /// Source: v6.3 and v6.1.170 `fair.c` `check_preempt_tick`.
    pub(super) fn check_preempt_tick(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, curr: TaskId) {
        let is_idle = cx.tasks.get(curr).class == SchedClass::Idle;
        let mut ideal = self.sched_slice(cpu, curr, is_idle);
        if self.own.knobs.slice_cap {
            ideal = ideal.min(self.own.spans.latency);
        }
        let entity = self.entity(curr);
        let ran = entity.sum_exec - entity.prev_sum_exec;
        if ran > ideal {
            cx.resched(cpu);
            self.fair.clear_buddies(cpu, curr);
            return;
        }
        if ran < self.own.spans.min_granularity {
            return;
        }
        let Some(first) = self.rq(cpu).tree.first() else { return };
        let ahead = entity.vruntime.delta(self.entity(first).vruntime);
        if ahead >= 0 && ahead as u64 > ideal {
            cx.resched(cpu);
        }
    }
}
