// SPDX-License-Identifier: GPL-2.0-only
//! Which waiting task is next, whether a woken one preempts, and when a turn is over.
//!
//! Source: v6.1.170 and v6.3 `fair.c`; spec cfs-eevdf §4A.

use schedlab_policy_api::{Ctx, SchedClass, Wake};
use schedlab_units::{CpuId, TaskId};

use super::Cfs;
use super::arith::{Lead, wakeup_lead};

impl Cfs {
    /// Whether `curr` should make way for `other`.
    fn lead(&self, curr: TaskId, other: TaskId) -> Lead {
        let (curr, load) = (self.entity(curr).vruntime, &self.fair.task(other).load);
        wakeup_lead(curr, self.entity(other).vruntime, self.spans.wakeup_granularity, load)
    }

    /// `task` is no longer preferred, nor passed over.
    ///
    /// Source: v6.1 `fair.c` `clear_buddies`.
    pub(super) fn clear_buddies(&mut self, cpu: CpuId, task: TaskId) {
        let this = self.fair.cpu_mut(cpu);
        let skip = &mut self.rqs[cpu.index()].skip;
        for buddy in [&mut this.next, &mut this.last, skip] {
            if *buddy == Some(task) {
                *buddy = None;
            }
        }
    }

    /// The next entity of `cpu`, `curr` being the running one if it still counts: the one with the
    /// smallest virtual time, unless another is preferred and not too far ahead of that.
    ///
    /// Source: v6.1 `fair.c` `pick_next_entity`.
    pub(super) fn pick_entity(&self, cpu: CpuId, curr: Option<TaskId>) -> Option<TaskId> {
        if self.knobs.eevdf {
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
        if rq.skip == Some(left) {
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

    /// The next fair task of `cpu`.
    ///
    /// Source: v6.1 `fair.c` `pick_next_task_fair`.
    pub(super) fn pick_fair(&mut self, cx: &Ctx<'_>, cpu: CpuId) -> Option<TaskId> {
        let curr = self.queued_curr(cpu);
        if curr.is_some() {
            self.update_curr(cx.now.as_ns(), cpu);
        }
        self.pick_entity(cpu, curr)
    }

    /// [`Cfs::pick_fair`] while `leaving` is about to be pushed to another CPU.
    pub(super) fn pick_fair_without(
        &mut self,
        cx: &Ctx<'_>,
        cpu: CpuId,
        leaving: TaskId,
    ) -> Option<TaskId> {
        self.update_curr(cx.now.as_ns(), cpu);
        self.clear_buddies(cpu, leaving);
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
    pub(super) fn check_preempt(
        &mut self,
        cx: &mut Ctx<'_>,
        cpu: CpuId,
        woken: TaskId,
        wake: Wake,
    ) {
        let Some(curr) = cx.curr(cpu).filter(|curr| *curr != woken) else { return };
        let woken_class = cx.tasks.get(woken).class;
        let woken_is_idle = woken_class == SchedClass::Idle;
        let crowded = u64::from(self.fair.cpu(cpu).nr) >= self.spans.nr_latency();
        let marks = self.knobs.next_buddy && crowded && wake != Wake::Fork;
        if marks && !woken_is_idle {
            self.fair.cpu_mut(cpu).next = Some(woken);
        }
        if cx.need_resched(cpu) {
            return;
        }
        let curr_is_idle = cx.tasks.get(curr).class == SchedClass::Idle;
        if !curr_is_idle || woken_is_idle {
            if matches!(woken_class, SchedClass::Batch | SchedClass::Idle)
                || !self.knobs.wakeup_preemption
            {
                return;
            }
            self.update_curr(cx.now.as_ns(), cpu);
            if self.knobs.eevdf {
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
        if self.knobs.last_buddy && crowded && !curr_is_idle && self.fair.task(curr).on_rq {
            self.fair.cpu_mut(cpu).last = Some(curr);
        }
    }

    /// Whether the turn of `curr` on `cpu` is over, for somebody else waits.
    ///
    /// Source: v6.3 and v6.1.170 `fair.c` `check_preempt_tick`.
    pub(super) fn check_preempt_tick(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, curr: TaskId) {
        let is_idle = cx.tasks.get(curr).class == SchedClass::Idle;
        let mut ideal = self.sched_slice(cpu, curr, is_idle);
        if self.knobs.slice_cap {
            ideal = ideal.min(self.spans.latency);
        }
        let entity = self.entity(curr);
        let ran = entity.sum_exec - entity.prev_sum_exec;
        if ran > ideal {
            cx.resched(cpu);
            self.clear_buddies(cpu, curr);
            return;
        }
        if ran < self.spans.min_granularity {
            return;
        }
        let Some(first) = self.rq(cpu).tree.first() else { return };
        let ahead = entity.vruntime.delta(self.entity(first).vruntime);
        if ahead >= 0 && ahead as u64 > ideal {
            cx.resched(cpu);
        }
    }
}
