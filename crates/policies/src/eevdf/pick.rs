// SPDX-License-Identifier: GPL-2.0-only
//! Which waiting task is next, and whether a woken one preempts.
//!
//! Source: v6.12 `fair.c`; spec cfs-eevdf §4D.

use schedlab_policy_api::{Ctx, SchedClass, Wake};
use schedlab_units::{CpuId, TaskId};

use super::Eevdf;
use super::entity::Entity;
use crate::fair::{Keys, Order, scale_load_down};

impl Order for Eevdf {
    /// In table units.
    fn weight(&self, task: TaskId) -> u64 {
        scale_load_down(self.fair.task(task).load.weight)
    }
    fn keys(&self, task: TaskId) -> Keys {
        let Entity { deadline, vruntime, slice, .. } = *self.entity(task);
        Keys { deadline, vruntime, slice }
    }

    /// The next fair task of `cpu`; delayed ones that are chosen leave the queue for good.
    ///
    /// Source: v6.12 `fair.c` `pick_task_fair`, `pick_next_entity`.
    fn pick_fair(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) -> Option<TaskId> {
        loop {
            if self.queued_curr(cpu).is_some() {
                self.update_curr_quietly(cx, cpu);
            }
            let next = self.fair.cpu(cpu).next.filter(|_| self.own.knobs.pick_buddy);
            if let Some(next) = next.filter(|next| self.entity_eligible(cpu, *next)) {
                return Some(next);
            }
            let task = self.pick_eevdf(cpu)?;
            if !self.fair.task(task).delayed {
                return Some(task);
            }
            self.finish_delayed(cx, task);
        }
    }

    /// [`Eevdf::pick_fair`] while `leaving` is about to be pushed to another CPU.
    fn pick_fair_without(
        &mut self,
        cx: &mut Ctx<'_>,
        cpu: CpuId,
        leaving: TaskId,
    ) -> Option<TaskId> {
        let curr = self.fair.cpu(cpu).curr;
        if curr != Some(leaving) {
            self.fair.clear_buddies(cpu, leaving);
            self.tree_remove(cpu, leaving);
            let task = if self.fair.cpu(cpu).nr == 1 { None } else { self.pick_fair(cx, cpu) };
            self.tree_insert(cpu, leaving);
            return task;
        }
        self.update_curr_quietly(cx, cpu);
        loop {
            let rq = &self.rqs[cpu.index()];
            let fluid = rq.fluid;
            let task = self.nodes.first_eligible(&rq.tree, |v| fluid.eligible(v))?;
            if !self.fair.task(task).delayed {
                return Some(task);
            }
            self.finish_delayed(cx, task);
        }
    }

    /// Whether `woken`, queued on `cpu`, preempts the fair task that runs there.
    ///
    /// Source: v6.12 `fair.c` `check_preempt_wakeup_fair`.
    fn check_preempt(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, woken: TaskId, wake: Wake) {
        let Some(curr) = cx.curr(cpu).filter(|curr| *curr != woken) else { return };
        let woken_class = cx.tasks.get(woken).class;
        let woken_is_idle = woken_class == SchedClass::Idle;
        if self.own.knobs.next_buddy
            && wake != Wake::Fork
            && !self.fair.task(woken).delayed
            && !woken_is_idle
        {
            self.fair.cpu_mut(cpu).next = Some(woken);
        }
        if cx.need_resched(cpu) || !self.own.knobs.wakeup_preemption {
            return;
        }
        let curr_is_idle = cx.tasks.get(curr).class == SchedClass::Idle;
        if curr_is_idle && !woken_is_idle {
            if self.own.knobs.unprotect_idle {
                self.entity_mut(curr).unprotect();
            }
            cx.resched(cpu);
            return;
        }
        if curr_is_idle != woken_is_idle
            || matches!(woken_class, SchedClass::Batch | SchedClass::Idle)
        {
            return;
        }
        self.update_curr(cx, cpu);
        if self.preempts_by_short_slice(cpu, woken, curr) {
            // Lost even if `woken` turns out not to be the choice.
            self.entity_mut(curr).unprotect();
        }
        if self.pick_eevdf(cpu) == Some(woken) {
            cx.resched(cpu);
        }
    }
}

impl Eevdf {
    /// Whether `task`, which counts on `cpu`, has received no more than its share.
    pub(super) fn entity_eligible(&self, cpu: CpuId, task: TaskId) -> bool {
        self.fluid(cpu).eligible(self.entity(task).vruntime)
    }

    /// The eligible entity of `cpu` with the earliest virtual deadline; the current one while it is
    /// protected. A delayed entity may be the answer. None when nothing counts.
    ///
    /// Source: v6.12 `fair.c` `pick_eevdf`.
    pub(super) fn pick_eevdf(&self, cpu: CpuId) -> Option<TaskId> {
        let tree = &self.rqs[cpu.index()].tree;
        let curr = self.queued_curr(cpu);
        if self.fair.cpu(cpu).nr == 1 {
            return curr.or(tree.first());
        }
        let fluid = self.fluid(cpu);
        let curr = curr.filter(|curr| fluid.eligible(self.entity(*curr).vruntime));
        if let Some(curr) = curr
            && self.own.knobs.run_to_parity
            && self.entity(curr).is_protected()
        {
            return Some(curr);
        }
        let best = self.nodes.first_eligible(tree, |vruntime| fluid.eligible(vruntime));
        match (curr, best) {
            (Some(curr), Some(best))
                if !self.entity(curr).deadline.before(self.entity(best).deadline) =>
            {
                Some(best)
            }
            (curr, best) => curr.or(best),
        }
    }

    /// Whether the shorter slice of `woken` ends the protection of `curr`.
    ///
    /// Source: v6.12 `fair.c` `do_preempt_short`.
    fn preempts_by_short_slice(&self, cpu: CpuId, woken: TaskId, curr: TaskId) -> bool {
        let (theirs, ours) = (self.entity(woken), self.entity(curr));
        self.own.knobs.preempt_short
            && theirs.slice < ours.slice
            && self.entity_eligible(cpu, woken)
            && (theirs.deadline.before(ours.deadline) || !self.entity_eligible(cpu, curr))
    }
}
