// SPDX-License-Identifier: GPL-2.0-only
//! Entities and their queue: the fluid clock, lag, placement, run time.
//!
//! Source: v6.12 `fair.c`; spec cfs-eevdf §4D.

use schedlab_policy_api::{Ctx, SchedClass};
use schedlab_units::{CpuId, TaskId, VTime};

use super::Eevdf;
use super::arith::{entity_lag, placed_lag};
use crate::fair::{Departure, Membership, Order, calc_delta_fair};

/// The virtual side of a task (kernel `struct sched_entity`).
#[derive(Clone, Debug)]
pub struct Entity {
    /// Service received, divided by weight.
    pub(super) vruntime: VTime,
    /// When the slice should have been served; relative to `vruntime` while `rel_deadline`.
    pub(super) deadline: VTime,
    /// Off the queue: lag when it left. Current: its deadline when it was picked, as long as it is
    /// protected.
    pub(super) vlag: i64,
    /// Wall time per deadline, ns.
    pub(super) slice: u64,
    /// The slice is the task's own wish.
    pub(super) custom_slice: bool,
    /// `deadline` is relative.
    pub(super) rel_deadline: bool,
    /// Run time so far, ns.
    pub(super) sum_exec: u64,
    /// Run time when it was picked, ns.
    pub(super) prev_sum_exec: u64,
}

impl Entity {
    /// An entity that has never run.
    pub(super) const fn new(slice: u64, custom_slice: bool) -> Self {
        Self {
            vruntime: VTime(0),
            deadline: VTime(0),
            vlag: 0,
            slice,
            custom_slice,
            rel_deadline: false,
            sum_exec: 0,
            prev_sum_exec: 0,
        }
    }
    /// Protects it from preemption until its deadline moves.
    ///
    /// Source: v6.12 `fair.c` `set_protect_slice`.
    pub(super) fn protect(&mut self) {
        self.vlag = self.deadline.0 as i64;
    }
    /// Whether it is protected; only of meaning while it is current.
    pub(super) fn is_protected(&self) -> bool {
        self.vlag as u64 == self.deadline.0
    }
    /// Ends the protection.
    pub(super) fn unprotect(&mut self) {
        if self.is_protected() {
            self.vlag = self.vlag.wrapping_add(1);
        }
    }
}

impl Eevdf {
    /// V, the weighted mean of the virtual times on `cpu`.
    ///
    /// 6.12.117 moves the base of the keys there; the number is the same either way.
    ///
    /// Source: v6.12 `fair.c` `avg_vruntime`.
    pub(super) fn avg_vruntime(&mut self, cpu: CpuId) -> VTime {
        let mean = self.fluid(cpu).mean();
        let fluid = &mut self.rqs[cpu.index()].fluid;
        if self.own.moves_base {
            fluid.rebase(mean);
            fluid.base
        } else {
            fluid.base.offset(mean)
        }
    }

    /// Lets the base follow the smallest virtual time, never backwards (6.12.0).
    ///
    /// Source: v6.12.0 `fair.c` `update_min_vruntime`.
    fn update_min_vruntime(&mut self, cpu: CpuId) {
        if !self.own.moves_base {
            self.advance_base(cpu);
        }
    }

    /// Virtual length of the lag that `task` may carry: two slices, at least a tick.
    pub(super) fn lag_limit(&self, task: TaskId) -> u64 {
        let wall = (2 * self.entity(task).slice).max(self.tick_ns);
        calc_delta_fair(wall, &self.fair.task(task).load)
    }

    /// Notes the lag of a task that still counts.
    ///
    /// Source: v6.12 `fair.c` `update_entity_lag`.
    pub(super) fn update_entity_lag(&mut self, cpu: CpuId, task: TaskId) {
        let avg_vruntime = self.avg_vruntime(cpu);
        let limit = self.lag_limit(task);
        let entity = self.entity_mut(task);
        entity.vlag = entity_lag(avg_vruntime, entity.vruntime, limit);
    }

    /// Renews the slice unless the task asked for one.
    fn renew_slice(&mut self, task: TaskId) {
        let base_slice = self.own.base_slice;
        let entity = self.entity_mut(task);
        if !entity.custom_slice {
            entity.slice = base_slice;
        }
    }

    /// Gives `task` a place among the `others` that count on `cpu`: at V less its lag, with a new
    /// deadline.
    ///
    /// Source: v6.12 `fair.c` `place_entity`.
    pub(super) fn place(&mut self, cpu: CpuId, task: TaskId, others: u32, initial: bool) {
        let avg_vruntime = self.avg_vruntime(cpu);
        self.renew_slice(task);
        let lag = if self.own.knobs.place_lag && others > 0 {
            let load = self.fluid(cpu).weight;
            placed_lag(self.entity(task).vlag, load, self.weight(task))
        } else {
            0
        };
        let mut vslice = calc_delta_fair(self.entity(task).slice, &self.fair.task(task).load);
        if self.own.knobs.place_deadline_initial && initial {
            vslice /= 2;
        }
        let keep_distance = self.own.knobs.place_rel_deadline;
        let entity = self.entity_mut(task);
        entity.vruntime = avg_vruntime.offset(lag.wrapping_neg());
        if keep_distance && entity.rel_deadline {
            entity.deadline = VTime(entity.deadline.0.wrapping_add(entity.vruntime.0));
            entity.rel_deadline = false;
        } else {
            entity.deadline = entity.vruntime.advance(vslice);
        }
    }

    /// Books the run time of `cpu`'s current task up to now; asks for a reschedule when its slice
    /// is over, or its lag is used up and it is not protected.
    ///
    /// Source: v6.12 `fair.c` `update_curr`, `did_preempt_short`.
    pub(super) fn update_curr(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) {
        if let Some(curr) = self.account_curr(cx, cpu) {
            cx.resched(cpu);
            self.fair.clear_buddies(cpu, curr);
        }
    }

    /// [`Eevdf::update_curr`] inside a `schedule` under way, which would clear the flag.
    pub(super) fn update_curr_quietly(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) {
        if let Some(curr) = self.account_curr(cx, cpu) {
            self.fair.clear_buddies(cpu, curr);
        }
    }

    /// Books the run time of `cpu`'s current task up to now; the task if its turn is over.
    fn account_curr(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) -> Option<TaskId> {
        let curr = self.fair.cpu(cpu).curr?;
        let delta = self.fair.book_run(cx.now.as_ns(), curr);
        if delta == 0 {
            return None;
        }
        let load = self.fair.task(curr).load;
        let entity = self.entity_mut(curr);
        entity.sum_exec += delta;
        entity.vruntime = entity.vruntime.advance(calc_delta_fair(delta, &load));
        let slice_over = self.update_deadline(cpu, curr);
        self.update_min_vruntime(cpu);
        self.server_account(cx, cpu, delta);
        if self.fair.cpu(cpu).nr == 1 {
            return None;
        }
        let over = slice_over
            || (self.own.knobs.preempt_short
                && !self.entity(curr).is_protected()
                && !self.fluid(cpu).eligible(self.entity(curr).vruntime));
        over.then_some(curr)
    }

    /// Hands out a new slice and deadline if the old one is reached.
    ///
    /// Source: v6.12 `fair.c` `update_deadline`.
    pub(super) fn update_deadline(&mut self, cpu: CpuId, task: TaskId) -> bool {
        let entity = self.entity(task);
        if entity.vruntime.before(entity.deadline) {
            return false;
        }
        self.renew_slice(task);
        let vslice = calc_delta_fair(self.entity(task).slice, &self.fair.task(task).load);
        let entity = self.entity_mut(task);
        entity.deadline = entity.vruntime.advance(vslice);
        self.avg_vruntime(cpu);
        true
    }

    /// Source: v6.12 `fair.c` `enqueue_entity`.
    pub(super) fn enqueue_entity(
        &mut self,
        cx: &mut Ctx<'_>,
        cpu: CpuId,
        task: TaskId,
        initial: bool,
        migrated: bool,
    ) {
        self.update_curr(cx, cpu);
        self.fair.update_load_avg(cx.now.as_ns(), cpu, task, Membership::Join);
        self.place(cpu, task, self.fair.cpu(cpu).nr, initial);
        let is_idle = cx.tasks.get(task).class == SchedClass::Idle;
        self.fair.account_enqueue(cpu, task, is_idle);
        if migrated {
            self.fair.task_mut(task).exec_start = None;
        }
        self.tree_insert(cpu, task);
        self.fair.task_mut(task).on_rq = true;
    }

    /// Takes `task` off the queue, after [`Eevdf::update_curr`].
    ///
    /// Source: v6.12 `fair.c` `dequeue_entity`.
    pub(super) fn dequeue_entity(
        &mut self,
        cx: &mut Ctx<'_>,
        cpu: CpuId,
        task: TaskId,
        why: Departure,
    ) {
        let attach = if why == Departure::Migrate { Membership::Leave } else { Membership::Keep };
        self.fair.update_load_avg(cx.now.as_ns(), cpu, task, attach);
        self.update_entity_lag(cpu, task);
        if self.own.knobs.place_rel_deadline && why != Departure::Sleep {
            let entity = self.entity_mut(task);
            entity.deadline = VTime(entity.deadline.0.wrapping_sub(entity.vruntime.0));
            entity.rel_deadline = true;
        }
        if self.fair.cpu(cpu).curr != Some(task) {
            self.tree_remove(cpu, task);
        }
        self.fair.task_mut(task).on_rq = false;
        let is_idle = cx.tasks.get(task).class == SchedClass::Idle;
        self.fair.account_dequeue(cpu, task, is_idle);
        if why != Departure::Save {
            self.update_min_vruntime(cpu);
        }
    }
}
