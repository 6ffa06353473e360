// SPDX-License-Identifier: GPL-2.0-only
//! The first EEVDF patches of March 2023, which turn CFS into EEVDF by a feature.
//!
//! They keep CFS's queues, relative virtual times and buddies, and replace the placement, the
//! pick, the test for preemption and the tick. Weights in sums are the internal ones, a thousand
//! times those of 6.6, and V is rounded towards its base.
//! Source: "[PATCH 00/10] sched: EEVDF using latency-nice" of 6 March 2023, its follow-up of
//! 9 March, queue of 11 March; spec cfs-eevdf §4B.

use schedlab_policy_api::{Ctx, Task};
use schedlab_units::{CpuId, TaskId, VTime};

use super::Cfs;
use super::arith::{inflated_lag, place_lag_first, place_lag_last, truncated_mean};
use super::tunables::{DEADLINE_KEEP, PLACE_LAG_LAST};
use crate::fair::calc_delta_fair;

/// From this length on a sleep earns V less the credit, whatever the sleeper's own time, ns.
pub(super) const MINUTE: u64 = 60_000_000_000;

impl Cfs {
    /// V, the weighted mean of the virtual times on `cpu`.
    ///
    /// Source: 6 March 2023, 6/10 `avg_vruntime`.
    pub(super) fn avg_vruntime(&self, cpu: CpuId) -> VTime {
        let fluid = self.fluid(cpu);
        fluid.base.offset(truncated_mean(&fluid))
    }

    /// Notes the lag of a task that is about to sleep and still counts; it is not limited.
    ///
    /// Source: 6 March 2023, 8/10 `dequeue_entity`.
    pub(super) fn note_lag(&mut self, cpu: CpuId, task: TaskId) {
        if self.own.knobs.preserve_lag {
            let avg_vruntime = self.avg_vruntime(cpu);
            let entity = self.entity_mut(task);
            entity.lag = avg_vruntime.delta(entity.vruntime);
        }
    }

    /// Hands out a new virtual deadline.
    ///
    /// Source: 6 March 2023, 10/10 `set_slice`.
    pub(super) fn renew_deadline(&mut self, task: TaskId) {
        let request = self.entity(task).request;
        let vslice = calc_delta_fair(request, &self.fair.task(task).load);
        let entity = self.entity_mut(task);
        entity.deadline = entity.vruntime.advance(vslice);
    }

    /// Wall time per virtual deadline of a task with these facts, ns.
    ///
    /// Source: 6 March 2023, 5/10 `set_latency_offset`.
    pub(super) fn request_of(&self, facts: &Task) -> u64 {
        let own = self.own.knobs.slice_requests.then_some(facts.slice_request_ns);
        own.filter(|request| *request > 0).unwrap_or(self.own.request)
    }

    /// Hands out a new virtual deadline once the old one is passed (6 March) or reached (11 March).
    ///
    /// Source: 6 March 2023, 10/10 `update_curr`; queue of 11 March `update_deadline`.
    pub(super) fn update_deadline(&mut self, task: TaskId) {
        let entity = self.entity(task);
        let late = entity.vruntime.delta(entity.deadline);
        if late > 0 || (late == 0 && self.own.knobs.deadline == DEADLINE_KEEP) {
            self.renew_deadline(task);
        }
    }

    /// Gives a woken or, if `initial`, forked task its place around V.
    ///
    /// Source: 6 March 2023, 8/10 `place_entity`; mail of 9 March 2023 17:42; queue of 11 March.
    pub(super) fn place_around_mean(
        &mut self,
        now: u64,
        cpu: CpuId,
        task: TaskId,
        is_idle: bool,
        initial: bool,
    ) {
        let avg_vruntime = self.avg_vruntime(cpu);
        let credit = self.sleeper_credit(task, is_idle, initial);
        let mut lag = if self.own.knobs.preserve_lag { self.entity(task).lag } else { 0 };
        if self.own.knobs.preserve_lag_scale {
            lag = inflated_lag(lag, self.fluid(cpu).weight, self.fair.task(task).load.weight);
        }
        let own = self.entity(task).vruntime;
        let placed = if self.own.knobs.placement == PLACE_LAG_LAST {
            let start = self.fair.task(task).exec_start;
            let long_sleeper = start.is_some_and(|start| now.saturating_sub(start) >= MINUTE);
            place_lag_last(own, avg_vruntime, lag, credit, long_sleeper)
        } else {
            place_lag_first(own, avg_vruntime, lag, credit)
        };
        self.entity_mut(task).vruntime = placed;
        if initial || self.own.knobs.deadline != DEADLINE_KEEP {
            self.renew_deadline(task);
        } else {
            self.update_deadline(task);
        }
    }

    /// How far before V a sleeper may come by its own time (FAIR_SLEEPERS); none = nothing but its
    /// lag counts.
    pub(super) fn sleeper_credit(&self, task: TaskId, is_idle: bool, initial: bool) -> Option<u64> {
        if !self.own.knobs.fair_sleepers {
            return None;
        }
        if initial {
            return Some(0);
        }
        let lag_last = self.own.knobs.placement == PLACE_LAG_LAST;
        let credit = match u64::try_from(self.own.knobs.sleeper_bonus) {
            Ok(bonus) => bonus,
            Err(_) => {
                let credit = if self.own.knobs.eevdf && !lag_last {
                    self.tick_ns
                } else if is_idle {
                    self.own.spans.min_granularity
                } else {
                    self.own.spans.latency
                };
                credit >> u32::from(self.own.knobs.gentle_fair_sleepers)
            }
        };
        Some(if lag_last { credit } else { calc_delta_fair(credit, &self.fair.task(task).load) })
    }

    /// The eligible entity of `cpu` with the earliest virtual deadline; `curr`, the running one if
    /// it still counts, only if its deadline is earlier than all others.
    ///
    /// Source: 6 March 2023, 10/10 `pick_eevdf`, `pick_next_entity`. Its search may miss the
    /// earliest deadline (spec cfs-eevdf Q9); this one does not.
    pub(super) fn pick_deadline(&self, cpu: CpuId, curr: Option<TaskId>) -> Option<TaskId> {
        let (fluid, tree) = (self.fluid(cpu), &self.rq(cpu).tree);
        let eligible = |task: &TaskId| fluid.eligible(self.entity(*task).vruntime);
        if self.own.knobs.next_buddy
            && let Some(next) = self.fair.cpu(cpu).next.filter(eligible)
        {
            return Some(next);
        }
        let best = self.nodes.first_eligible(tree, |vruntime| fluid.eligible(vruntime));
        match (curr.filter(eligible), best) {
            (Some(curr), Some(best))
                if !self.entity(curr).deadline.before(self.entity(best).deadline) =>
            {
                Some(best)
            }
            (None, None) => {
                // Only where sums overflow, or the running entity may not be chosen.
                let key = |task: &TaskId| self.entity(*task).vruntime.delta(fluid.base);
                self.nodes.iter(tree).min_by_key(key).or(curr)
            }
            (curr, best) => curr.or(best),
        }
    }

    /// The tick of `cpu` while `curr` runs and others wait: it gives way to whoever is next.
    ///
    /// Source: 6 March 2023, 10/10 `check_preempt_tick`.
    pub(super) fn rotate_at_tick(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, curr: TaskId) {
        if self.pick_deadline(cpu, Some(curr)) != Some(curr) {
            cx.resched(cpu);
            self.fair.clear_buddies(cpu, curr);
        }
    }
}
