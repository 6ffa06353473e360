// SPDX-License-Identifier: GPL-2.0-only
//! Entities and their queue: virtual time, slices, placement, run time.
//!
//! Source: v6.1.170 `fair.c`; spec cfs-eevdf §4A.

use schedlab_policy_api::{Ctx, SchedClass};
use schedlab_units::{CpuId, TaskId, VTime};

use super::Cfs;
use super::arith::{LONG_SLEEP, place_sleeper, share_of_period};
use super::early_eevdf::MINUTE;
use super::tunables::PLACE_MIN_VRUNTIME;
use crate::fair::{Departure, Membership, calc_delta_fair};

/// The virtual side of a task (kernel `struct sched_entity`).
#[derive(Clone, Copy, Debug)]
pub struct Entity {
    /// Service received, divided by weight.
    pub(super) vruntime: VTime,
    /// `vruntime` counts from the `min_vruntime` of the queue it has left, as that of the next
    /// queue will be another.
    pub(super) relative: bool,
    /// When the task should have been served; only with the EEVDF patches, like `lag`.
    ///
    /// It is not made relative: on another queue it means another time (spec cfs-eevdf Q8).
    pub(super) deadline: VTime,
    /// Wall time per virtual deadline, ns; only with the EEVDF patches (kernel `latency_offset`).
    pub(super) request: u64,
    /// V − v when it went to sleep.
    pub(super) lag: i64,
    /// Run time so far, ns.
    pub(super) sum_exec: u64,
    /// Run time when it was picked, ns.
    pub(super) prev_sum_exec: u64,
}

impl Entity {
    /// An entity that has never run.
    pub(super) const NEW: Self = Self {
        vruntime: VTime(0),
        relative: true,
        deadline: VTime(0),
        request: 0,
        lag: 0,
        sum_exec: 0,
        prev_sum_exec: 0,
    };
}

impl Cfs {
    /// Smallest virtual time on `cpu`, never going backwards.
    pub(super) fn min_vruntime(&self, cpu: CpuId) -> VTime {
        self.rq(cpu).fluid.base
    }

    /// Wall time in ns that `task` may run in one turn, on the queue of `cpu` as it is or, if it is
    /// not there, would be with it.
    ///
    /// Source: v6.1 `fair.c` `sched_slice`.
    pub(super) fn sched_slice(&self, cpu: CpuId, task: TaskId, is_idle: bool) -> u64 {
        let (this, own) = (self.fair.cpu(cpu), self.fair.task(task));
        let (mut nr, mut load) = (u64::from(this.nr), this.load);
        if !own.on_rq {
            nr += 1;
            load += own.load.weight;
        }
        let slice = share_of_period(self.own.spans.period(nr), own.load.weight, load);
        if !self.own.knobs.base_slice {
            return slice;
        }
        // A queue of nothing but SCHED_IDLE tasks serves them like others; an empty one does not
        // count as such.
        let among_idle = this.nr > 0 && this.nr == this.nr_idle;
        let least = if is_idle && !among_idle {
            self.own.spans.idle_min_granularity
        } else {
            self.own.spans.min_granularity
        };
        slice.max(least)
    }

    /// Gives a forked task its place: a slice behind, and never before its parent.
    ///
    /// Source: v6.1 `fair.c` `place_entity`, `sched_vslice`.
    pub(super) fn place_new(&mut self, now: u64, cpu: CpuId, task: TaskId, is_idle: bool) {
        if self.own.knobs.placement != PLACE_MIN_VRUNTIME {
            self.place_around_mean(now, cpu, task, is_idle, true);
            return;
        }
        let mut vruntime = self.min_vruntime(cpu);
        if self.own.knobs.start_debit {
            let slice = self.sched_slice(cpu, task, is_idle);
            vruntime = vruntime.advance(calc_delta_fair(slice, &self.fair.task(task).load));
        }
        let entity = self.entity_mut(task);
        if entity.vruntime.before(vruntime) {
            entity.vruntime = vruntime;
        }
    }

    /// Gives a woken task its place: its own, but not too far ahead of the others.
    ///
    /// Source: v6.1.170 `fair.c` `place_entity`, `entity_is_long_sleeper`.
    pub(super) fn place_woken(&mut self, now: u64, cpu: CpuId, task: TaskId, is_idle: bool) {
        if self.own.knobs.placement != PLACE_MIN_VRUNTIME {
            self.place_around_mean(now, cpu, task, is_idle, false);
            return;
        }
        let spans = &self.own.spans;
        let mut credit = if is_idle { spans.min_granularity } else { spans.latency };
        if self.own.knobs.gentle_fair_sleepers {
            credit >>= 1;
        }
        let limit = if self.own.knobs.long_sleep == 0 { LONG_SLEEP } else { MINUTE };
        // None: it comes from another CPU and counts as one that has just run.
        let start = self.fair.task(task).exec_start;
        let long_sleeper = start.is_some_and(|start| now.saturating_sub(start) > limit);
        let min_vruntime = self.min_vruntime(cpu);
        let entity = self.entity_mut(task);
        entity.vruntime = place_sleeper(entity.vruntime, min_vruntime, credit, long_sleeper);
    }

    /// Makes the virtual time of `task`, which leaves the queue of `cpu`, relative.
    pub(super) fn make_relative(&mut self, cpu: CpuId, task: TaskId) {
        let min_vruntime = self.min_vruntime(cpu);
        let entity = self.entity_mut(task);
        debug_assert!(!entity.relative, "virtual time of task {task} is relative already");
        entity.vruntime = VTime(entity.vruntime.0.wrapping_sub(min_vruntime.0));
        entity.relative = true;
    }
    /// Makes the virtual time of `task`, which joins the queue of `cpu`, absolute if it is not.
    pub(super) fn make_absolute(&mut self, cpu: CpuId, task: TaskId) {
        let min_vruntime = self.min_vruntime(cpu);
        let entity = self.entity_mut(task);
        if entity.relative {
            entity.vruntime = VTime(entity.vruntime.0.wrapping_add(min_vruntime.0));
            entity.relative = false;
        }
    }

    /// Books the run time of `cpu`'s current task up to now.
    ///
    /// Source: v6.1 `fair.c` `update_curr`.
    pub(super) fn update_curr(&mut self, now: u64, cpu: CpuId) {
        let Some(curr) = self.fair.cpu(cpu).curr else { return };
        let delta = self.fair.book_run(now, curr);
        if delta == 0 {
            return;
        }
        let load = self.fair.task(curr).load;
        let entity = self.entity_mut(curr);
        entity.sum_exec += delta;
        entity.vruntime = entity.vruntime.advance(calc_delta_fair(delta, &load));
        if self.own.knobs.eevdf {
            self.update_deadline(curr);
        }
        self.advance_base(cpu);
    }

    /// Source: v6.1 `fair.c` `enqueue_entity`.
    pub(super) fn enqueue_entity(
        &mut self,
        cx: &Ctx<'_>,
        cpu: CpuId,
        task: TaskId,
        wakeup: bool,
        migrated: bool,
    ) {
        let now = cx.now.as_ns();
        let is_idle = cx.tasks.get(task).class == SchedClass::Idle;
        self.update_curr(now, cpu);
        self.make_absolute(cpu, task);
        self.fair.update_load_avg(now, cpu, task, Membership::Join);
        self.fair.account_enqueue(cpu, task, is_idle);
        if wakeup {
            self.place_woken(now, cpu, task, is_idle);
        }
        if migrated {
            self.fair.task_mut(task).exec_start = None;
        }
        self.tree_insert(cpu, task);
        self.fair.task_mut(task).on_rq = true;
    }

    /// Source: v6.1 `fair.c` `dequeue_entity`.
    pub(super) fn dequeue_entity(
        &mut self,
        cx: &Ctx<'_>,
        cpu: CpuId,
        task: TaskId,
        why: Departure,
    ) {
        let now = cx.now.as_ns();
        self.update_curr(now, cpu);
        let attach = if why == Departure::Migrate { Membership::Leave } else { Membership::Keep };
        self.fair.update_load_avg(now, cpu, task, attach);
        self.fair.clear_buddies(cpu, task);
        if why == Departure::Sleep {
            self.note_lag(cpu, task);
        }
        if self.fair.cpu(cpu).curr != Some(task) {
            self.tree_remove(cpu, task);
        }
        self.fair.task_mut(task).on_rq = false;
        let is_idle = cx.tasks.get(task).class == SchedClass::Idle;
        self.fair.account_dequeue(cpu, task, is_idle);
        if why != Departure::Sleep {
            self.make_relative(cpu, task);
        }
        if why != Departure::Save {
            self.advance_base(cpu);
        }
    }
}
