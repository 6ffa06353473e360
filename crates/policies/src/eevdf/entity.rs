// SPDX-License-Identifier: GPL-2.0-only
//! Entities and their queue: the fluid clock, lag, placement, run time.
//!
//! Source: v6.12 `fair.c`; spec cfs-eevdf §4D.

use schedlab_policy_api::{Ctx, SchedClass};
use schedlab_units::{CpuId, TaskId, VTime};

use super::Eevdf;
use super::arith::{Fluid, entity_lag, placed_lag};
use super::tree::{Keys, Tree};
use crate::fair::{Membership, calc_delta_fair, scale_load_down};

/// The virtual side of a task (kernel `struct sched_entity`).
#[derive(Clone, Debug)]
pub(super) struct Entity {
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

/// The waiting entities of a CPU (kernel `struct cfs_rq`); the current one is not among them.
#[derive(Clone, Debug)]
pub(super) struct CfsRq {
    /// In order of deadlines.
    pub(super) tree: Tree,
    /// Sums over the tree.
    pub(super) fluid: Fluid,
}

impl CfsRq {
    /// An empty queue; its clock starts 2^20 before the wrap, as the kernel's.
    pub(super) const fn new(tree: Tree) -> Self {
        let base = VTime(0u64.wrapping_sub(1 << 20));
        Self { tree, fluid: Fluid { base, sum: 0, weight: 0 } }
    }
}

/// Why an entity leaves its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Departure {
    /// Its task sleeps or exits, or slept long ago and its delay is over.
    Sleep,
    /// It goes to another queue.
    Migrate,
    /// Its task changes and comes back.
    Save,
}

impl Eevdf {
    pub(super) fn entity(&self, task: TaskId) -> &Entity {
        &self.entities[task.index()]
    }
    pub(super) fn entity_mut(&mut self, task: TaskId) -> &mut Entity {
        &mut self.entities[task.index()]
    }
    /// Weight of `task` in table units.
    pub(super) fn weight(&self, task: TaskId) -> u64 {
        scale_load_down(self.fair.task(task).load.weight)
    }
    /// The current fair task of `cpu` if it still counts.
    #[inline]
    pub(super) fn queued_curr(&self, cpu: CpuId) -> Option<TaskId> {
        self.fair.cpu(cpu).curr.filter(|curr| self.fair.task(*curr).on_rq)
    }

    /// Sums over all entities that count on `cpu`, the current one included.
    #[inline]
    pub(super) fn fluid(&self, cpu: CpuId) -> Fluid {
        let mut fluid = self.rqs[cpu.index()].fluid;
        if let Some(curr) = self.queued_curr(cpu) {
            fluid.add(self.entity(curr).vruntime, self.weight(curr));
        }
        fluid
    }

    /// V, the weighted mean of the virtual times on `cpu`.
    ///
    /// 6.12.117 moves the base of the keys there; the number is the same either way.
    ///
    /// Source: v6.12 `fair.c` `avg_vruntime`.
    pub(super) fn avg_vruntime(&mut self, cpu: CpuId) -> VTime {
        let mean = self.fluid(cpu).mean();
        let fluid = &mut self.rqs[cpu.index()].fluid;
        if self.moves_base {
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
        if self.moves_base {
            return;
        }
        let rq = &self.rqs[cpu.index()];
        let waiting = self.nodes.min_vruntime(&rq.tree);
        let running = self.queued_curr(cpu).map(|curr| self.entity(curr).vruntime);
        let least = match (running, waiting) {
            (Some(a), Some(b)) => Some(if b.before(a) { b } else { a }),
            (a, b) => a.or(b),
        };
        let ahead = least.map_or(0, |least| least.delta(rq.fluid.base));
        if ahead > 0 {
            self.rqs[cpu.index()].fluid.rebase(ahead);
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
        let base_slice = self.base_slice;
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
        let lag = if self.knobs.place_lag && others > 0 {
            let load = self.fluid(cpu).weight;
            placed_lag(self.entity(task).vlag, load, self.weight(task))
        } else {
            0
        };
        let mut vslice = calc_delta_fair(self.entity(task).slice, &self.fair.task(task).load);
        if self.knobs.place_deadline_initial && initial {
            vslice /= 2;
        }
        let keep_distance = self.knobs.place_rel_deadline;
        let entity = self.entity_mut(task);
        entity.vruntime = avg_vruntime.offset(lag.wrapping_neg());
        if keep_distance && entity.rel_deadline {
            entity.deadline = VTime(entity.deadline.0.wrapping_add(entity.vruntime.0));
            entity.rel_deadline = false;
        } else {
            entity.deadline = entity.vruntime.advance(vslice);
        }
    }

    /// Puts a waiting entity into the tree and the sums.
    ///
    /// Source: v6.12 `fair.c` `__enqueue_entity`.
    pub(super) fn tree_insert(&mut self, cpu: CpuId, task: TaskId) {
        let keys = self.keys(task);
        let weight = self.weight(task);
        let rq = &mut self.rqs[cpu.index()];
        rq.fluid.add(keys.vruntime, weight);
        self.nodes.insert(&mut rq.tree, task, keys);
    }
    /// Takes a waiting entity out of the tree and the sums.
    ///
    /// Source: v6.12 `fair.c` `__dequeue_entity`.
    pub(super) fn tree_remove(&mut self, cpu: CpuId, task: TaskId) {
        let vruntime = self.entity(task).vruntime;
        let weight = self.weight(task);
        let rq = &mut self.rqs[cpu.index()];
        self.nodes.remove(&mut rq.tree, task);
        rq.fluid.sub(vruntime, weight);
    }
    /// What orders `task` in a tree.
    pub(super) fn keys(&self, task: TaskId) -> Keys {
        let Entity { deadline, vruntime, slice, .. } = *self.entity(task);
        Keys { deadline, vruntime, slice }
    }

    /// Books the run time of `cpu`'s current task up to now; asks for a reschedule when its slice
    /// is over, or its lag is used up and it is not protected.
    ///
    /// Source: v6.12 `fair.c` `update_curr`, `did_preempt_short`.
    pub(super) fn update_curr(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) {
        if self.account_curr(cx, cpu) {
            cx.resched(cpu);
            let curr = self.fair.cpu(cpu).curr;
            self.clear_buddy(cpu, curr);
        }
    }

    /// [`Eevdf::update_curr`] without the request, whose flag a `schedule` under way would clear;
    /// true if there would be one.
    pub(super) fn account_curr(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) -> bool {
        let Some(curr) = self.fair.cpu(cpu).curr else { return false };
        let now = cx.now.as_ns();
        let start = self.fair.task_mut(curr).exec_start.replace(now);
        let delta = start.map_or(0, |start| now.saturating_sub(start));
        if delta == 0 {
            return false;
        }
        let load = self.fair.task(curr).load;
        let entity = self.entity_mut(curr);
        entity.sum_exec += delta;
        entity.vruntime = entity.vruntime.advance(calc_delta_fair(delta, &load));
        let slice_over = self.update_deadline(cpu, curr);
        self.update_min_vruntime(cpu);
        self.server_account(cx, cpu, delta);
        if self.fair.cpu(cpu).nr == 1 {
            return false;
        }
        slice_over
            || (self.knobs.preempt_short
                && !self.entity(curr).is_protected()
                && !self.fluid(cpu).eligible(self.entity(curr).vruntime))
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

    /// `task`, if it is given, is no longer preferred.
    pub(super) fn clear_buddy(&mut self, cpu: CpuId, task: Option<TaskId>) {
        let this = self.fair.cpu_mut(cpu);
        if this.next == task {
            this.next = None;
        }
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
        if self.knobs.place_rel_deadline && why != Departure::Sleep {
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
