// SPDX-License-Identifier: GPL-2.0-only
//! `schedule` and the tick: who runs next, and what running costs.

use schedlab_policy_api::{Ctx, TaskState};
use schedlab_units::{CpuId, TaskId};

use super::credit::Sleeper;
use super::policy::O1;
use super::prio::{effective_prio, is_interactive, timeslice};
use super::prio_array::MAX_PRIO;
use super::task::Kind;
use super::tunables::{Clock, RqWait};
use super::{credit, g3, linux_2_6_17, test1};
use crate::linux_2_6::sleep_avg::Activated;

impl O1 {
    /// The next task of `cpu`: the head of the best list of the active array.
    ///
    /// Source: 2.6.0-test1 and G3 `sched.c` `schedule`; spec §4.6, §5.2.
    pub(super) fn schedule(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) -> Option<TaskId> {
        let prev = cx.curr(cpu);
        if let Some(prev) = prev {
            self.tasks[prev.index()].last_run = cx.jiffies.0;
        }
        if self.rqs[cpu.index()].nr_running == 0 {
            // Balancing comes first; `idle_balance` goes on from here if it finds nothing.
            return None;
        }
        if self.arrays.nr_active(self.active(cpu)) == 0 {
            let rq = &mut self.rqs[cpu.index()];
            rq.active = 1 - rq.active;
            rq.expired_timestamp = 0;
            rq.best_expired_prio = MAX_PRIO as u8;
            self.stats.array_switches += 1;
        }
        let next = self.arrays.first(self.active(cpu))?;
        if self.knobs.clock != Clock::Tick {
            self.credit_rq_wait(cx, next);
        }
        self.leave(cx, prev);
        if Some(next) != prev {
            self.tasks[next.index()].avg.timestamp = cx.now.as_ns();
            if let Some(prev) = prev
                && cx.tasks.get(prev).state == TaskState::Running
            {
                self.track_waiting(cpu, prev, cx.jiffies.0);
            }
            if !self.tasks[next.index()].is_rt() {
                self.untrack(next);
            }
        }
        Some(next)
    }

    /// The part of `schedule` that concerns `prev`; the idle task pays nothing.
    pub(super) fn leave(&mut self, cx: &Ctx<'_>, prev: Option<TaskId>) {
        if let Some(prev) = prev {
            self.charge(prev, cx.now.as_ns());
        }
    }

    /// Credits the wait of `next`, which was chosen for the first time since it woke.
    fn credit_rq_wait(&mut self, cx: &Ctx<'_>, next: TaskId) {
        let (knobs, now) = (&self.knobs, cx.now.as_ns());
        let data = &mut self.tasks[next.index()];
        let counts =
            knobs.rq_wait_credit != RqWait::None && (knobs.rt_wait_credit || !data.is_rt());
        if data.avg.has_waited() && counts {
            if knobs.clock == Clock::NsCredit {
                credit::credit_rq_wait(data, now, Sleeper::of(cx.tasks.get(next)), knobs);
            } else {
                g3::credit_rq_wait(data, now, knobs);
            }
            self.requeue(next);
        }
        self.tasks[next.index()].avg.activated = Activated::No;
    }

    /// Charges `prev` for the stint that ends now.
    fn charge(&mut self, prev: TaskId, now: u64) {
        let data = &mut self.tasks[prev.index()];
        match self.knobs.clock {
            Clock::Tick => {}
            Clock::Ns => g3::charge(data, now, &self.knobs),
            Clock::NsCredit if self.knobs.linux_2_6_17 => {
                linux_2_6_17::charge(data, now, &self.knobs);
            }
            Clock::NsCredit => data.avg.charge(&self.knobs.scale, now),
        }
    }

    /// Source: 2.6.0-test1 `sched.c` `scheduler_tick`; spec §4.5.
    pub(super) fn scheduler_tick(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) {
        let now = self.knobs.scale.word.wrap(cx.now.as_ns());
        self.rqs[cpu.index()].timestamp_last_tick = now;
        if let Some(curr) = cx.curr(cpu) {
            self.tick_current(cx, cpu, curr);
            self.rebalance_tick(cx, cpu, false);
        } else {
            self.rebalance_tick(cx, cpu, true);
        }
    }

    fn tick_current(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, curr: TaskId) {
        if self.arrays.array_of(curr) != Some(self.active(cpu)) {
            cx.resched(cpu);
            return;
        }
        let data = &mut self.tasks[curr.index()];
        if self.knobs.clock == Clock::Tick {
            test1::tick(data);
        }
        match data.kind {
            Kind::Fifo => {}
            Kind::Rr => {
                data.time_slice -= 1;
                if data.time_slice == 0 {
                    data.time_slice = timeslice(data.static_prio, &self.knobs);
                    data.first_time_slice = false;
                    cx.resched(cpu);
                    self.requeue(curr);
                }
            }
            Kind::Normal => {
                data.time_slice -= 1;
                if data.time_slice == 0 {
                    self.end_slice(cx, cpu, curr);
                } else if self.goes_behind_equals(curr) {
                    self.stats.granularity_requeues += 1;
                    cx.resched(cpu);
                    let data = &mut self.tasks[curr.index()];
                    data.prio = effective_prio(data, &self.knobs);
                    self.requeue(curr);
                }
            }
        }
    }

    /// Whether `task`, whose slice is not over, makes room for others of its priority.
    ///
    /// Source: G3 and 2.6.0 `sched.c` `scheduler_tick`; spec §5.2, §5.4, §5.7.
    fn goes_behind_equals(&self, task: TaskId) -> bool {
        let (data, knobs) = (&self.tasks[task.index()], &self.knobs);
        let slice = timeslice(data.static_prio, knobs);
        match knobs.clock {
            // No patch combines ticks with a granularity, but the knob works for both clocks.
            Clock::Tick | Clock::Ns => g3::requeues_now(data.time_slice, slice, knobs),
            Clock::NsCredit => {
                let granularity = credit::granularity(data.avg.sleep_avg, knobs);
                // Unsigned, as in the kernel, where a slice can be longer than that of its nice.
                let elapsed = slice.wrapping_sub(data.time_slice);
                is_interactive(data, knobs)
                    && u64::from(elapsed).is_multiple_of(granularity)
                    && u64::from(data.time_slice) >= granularity
            }
        }
    }

    /// The slice of `curr` is over: a new one, and to the expired array unless it is interactive
    /// and nobody starves.
    ///
    /// Source: 2.6.0-test1 `sched.c` `scheduler_tick`; spec §4.5 step 6.
    fn end_slice(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, curr: TaskId) {
        self.arrays.dequeue(curr);
        cx.resched(cpu);
        let data = &mut self.tasks[curr.index()];
        data.prio = effective_prio(data, &self.knobs);
        data.time_slice = timeslice(data.static_prio, &self.knobs);
        data.first_time_slice = false;
        let interactive = is_interactive(data, &self.knobs);
        let jiffies = cx.jiffies.0;
        if self.knobs.any_end_stamps {
            self.stamp_expired(cpu, jiffies);
        }
        if interactive && !self.is_starving(cpu, jiffies) && !self.is_outranked(cpu, curr) {
            self.stats.reinsertions += 1;
            self.append(curr, self.active(cpu));
            return;
        }
        self.stats.expirations += 1;
        self.stats.starved_expirations += i64::from(interactive);
        self.tasks[curr.index()].starved_expirations += i64::from(interactive);
        self.stamp_expired(cpu, jiffies);
        let rq = &mut self.rqs[cpu.index()];
        rq.best_expired_prio = rq.best_expired_prio.min(self.tasks[curr.index()].static_prio);
        self.append(curr, self.expired(cpu));
    }

    fn stamp_expired(&mut self, cpu: CpuId, jiffies: u64) {
        let rq = &mut self.rqs[cpu.index()];
        if rq.expired_timestamp == 0 {
            rq.expired_timestamp = jiffies;
        }
    }

    /// Whether tasks have waited so long that an interactive one must expire.
    ///
    /// Source: 2.6.0-test1 `sched.c` `EXPIRED_STARVING`; spec §4.5, §5.4, §5.6.
    pub(super) fn is_starving(&mut self, cpu: CpuId, jiffies: u64) -> bool {
        if self.knobs.starvation_list {
            return self.punish(cpu, jiffies);
        }
        let (limit, rq) = (self.knobs.starvation_limit, &self.rqs[cpu.index()]);
        let enough =
            if self.knobs.starvation_scale { limit * u64::from(rq.nr_running) + 1 } else { limit };
        limit != 0 && rq.expired_timestamp != 0 && jiffies - rq.expired_timestamp >= enough
    }
}
