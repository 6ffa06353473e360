// SPDX-License-Identifier: GPL-2.0-only
//! What moves tasks between slots: wake-up, fork, tick, promotion, yield, changes.

use schedlab_policy_api::{Ctx, SchedClass};
use schedlab_units::{CpuId, TaskId};

use super::array::{CEILING, IDLE_SLOT};
use super::policy::Spa;
use crate::linux_2_6::sleep_avg::{Activated, SleepAvg};

impl Spa {
    /// `activate_task` after filing: counts the sleep, notes the wake-up, files `task` anew.
    ///
    /// Source: 2.6.6 `sched.c` `activate_task`; spec §4.1 wake-up step 5.
    pub(super) fn activate(&mut self, cx: &Ctx<'_>, cpu: CpuId, task: TaskId, how: Activated) {
        let facts = Self::facts(cx, task);
        let now = cx.now.as_ns();
        let avg = &mut self.tasks[task.index()].avg;
        avg.recalc(&self.knobs.scale, facts, now);
        if avg.activated == Activated::No {
            avg.activated = how;
        }
        avg.timestamp = now;
        self.refile(cx, cpu, task);
    }

    /// Asks `cpu` to call `schedule` if `task`, filed there, is better than its current task.
    ///
    /// Source: 2.6.6 `sched.c` `TASK_PREEMPTS_CURR`; the comparison of slots: spec §4.2.
    pub(super) fn preempt(&self, cx: &mut Ctx<'_>, cpu: CpuId, slot: u8) {
        if slot < self.rqs[cpu.index()].curr_slot {
            cx.resched(cpu);
        }
    }

    /// Files a forked task: before its parent if that is queued here and of its kind.
    ///
    /// Source: 2.6.6 `sched.c` `wake_up_forked_process`; spec §4.1 fork steps 3 and 4, §4.2.
    pub(super) fn enqueue_forked(&mut self, cx: &Ctx<'_>, cpu: CpuId, child: TaskId) {
        let slot = match cx.tasks.get(child).parent {
            Some(parent) => {
                let scale = self.knobs.scale;
                let mut own = self.tasks[child.index()].avg;
                SleepAvg::fork(&mut self.tasks[parent.index()].avg, &mut own, &scale);
                self.tasks[child.index()].avg = own;
                let (facts, from) = (cx.tasks.get(child), cx.tasks.get(parent));
                let alike = facts.static_prio() == from.static_prio()
                    && facts.class.is_rt() == from.class.is_rt();
                if alike && from.cpu == cpu && self.arrays.contains(parent) {
                    self.arrays.insert_before(child, parent);
                    return;
                }
                self.slot(cx, child)
            }
            None => self.slot(cx, child),
        };
        self.arrays.push_tail(cpu, slot, child);
    }

    /// Promotes the array of `cpu` if that is due, at the start of its tick.
    ///
    /// Source: P. Williams, 28 May 2004; spec §4.2 promotion.
    pub(super) fn promote_if_due(&mut self, cx: &Ctx<'_>, cpu: CpuId) {
        let rq = &mut self.rqs[cpu.index()];
        if rq.nr_running < 2 || cx.jiffies.0 < rq.next_prom_due {
            return;
        }
        self.arrays.promote(cpu);
        if (CEILING + 1..IDLE_SLOT).contains(&rq.curr_slot) {
            rq.curr_slot -= 1;
        }
        rq.next_prom_due = cx.jiffies.0 + self.knobs.promotion_interval(rq.nr_running);
        self.stats.promotions += 1;
    }

    /// Sets the due time of promotions while the run starts, and, under `reset_due_when_idle`, when
    /// a second task arrives.
    ///
    /// Source: spec §3, initial value of next_prom_due; §4.2 promotion with < 2 runnable.
    pub(super) fn set_promotion_due(&mut self, cx: &Ctx<'_>, cpu: CpuId) {
        let rq = &mut self.rqs[cpu.index()];
        let second = self.knobs.reset_due_when_idle && rq.nr_running == 2;
        if self.start == Some(cx.now) || second {
            rq.next_prom_due = cx.jiffies.0 + self.knobs.promotion_interval(rq.nr_running);
        }
    }

    /// A tick on the slice of the current task.
    ///
    /// Source: 2.6.6 `sched.c` `scheduler_tick`; spec §4.1 tick steps 3 to 5, §4.2.
    pub(super) fn tick_slice(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, curr: TaskId) {
        let class = cx.tasks.get(curr).class;
        if class == SchedClass::Fifo {
            return;
        }
        let task = &mut self.tasks[curr.index()];
        task.time_slice -= 1;
        if task.time_slice == 0 {
            task.time_slice = self.knobs.time_slice;
            self.stats.expiries += 1;
            self.refile(cx, cpu, curr);
            cx.resched(cpu);
        } else if self.knobs.granularity_rr && class != SchedClass::Rr {
            self.tick_granularity(cx, cpu, curr);
        }
    }

    /// Step 5 of the tick: an interactive task makes room for others of its slot.
    ///
    /// The stored priority of 2.6.6 is the slot less 5, promotions included (spec §2.3).
    fn tick_granularity(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, curr: TaskId) {
        let task = &self.tasks[curr.index()];
        let scale = &self.knobs.scale;
        let n_cpus = if self.knobs.smp { self.knobs.n_cpus } else { 1 };
        let granularity = scale.granularity(task.avg.bonus(scale), n_cpus);
        let prio = i64::from(self.rqs[cpu.index()].curr_slot) - 5;
        let delta = scale.delta(cx.tasks.get(curr).nice.get());
        let interactive = prio <= i64::from(task.static_prio) - delta;
        // Unsigned 32-bit, as in the kernel: a shared slice can exceed the nominal one.
        let used = self.knobs.time_slice.wrapping_sub(task.time_slice);
        if interactive
            && u64::from(used).is_multiple_of(granularity)
            && u64::from(task.time_slice) >= granularity
        {
            self.refile(cx, cpu, curr);
            cx.resched(cpu);
        }
    }

    /// A real-time yielder goes to the tail of its slot, another one to that of the next occupied.
    ///
    /// Source: spec §4.2 yield (inferred).
    pub(super) fn yield_slot(&self, cx: &Ctx<'_>, cpu: CpuId, curr: TaskId) -> u8 {
        let slot = self.rqs[cpu.index()].curr_slot;
        if cx.tasks.get(curr).class.is_rt() {
            return slot;
        }
        self.arrays.next_occupied(cpu, slot).unwrap_or(slot)
    }

    /// Files a runnable task anew after a change of its nice value, and disturbs its CPU.
    ///
    /// A waiting task does not know its slot any more, so whether it improves is read from its nice
    /// value.
    ///
    /// Source: 2.6.6 `sched.c` `set_user_nice`; spec §4.1, §4.2 nice change.
    pub(super) fn nice_changed(&mut self, cx: &mut Ctx<'_>, task: TaskId) {
        let facts = cx.tasks.get(task);
        let own = &mut self.tasks[task.index()];
        let old = core::mem::replace(&mut own.static_prio, facts.nice.prio().0);
        let improved = own.static_prio < old;
        if facts.class.is_rt() || !self.arrays.contains(task) {
            return;
        }
        let cpu = facts.cpu;
        self.refile(cx, cpu, task);
        if improved || cx.curr(cpu) == Some(task) {
            cx.resched(cpu);
        }
    }

    /// Files a runnable task anew after a change of its class or real-time priority.
    ///
    /// Source: 2.6.6 `sched.c` `setscheduler`; spec §4.1, §4.2 nice change.
    pub(super) fn class_changed(&mut self, cx: &mut Ctx<'_>, task: TaskId) {
        if !self.arrays.contains(task) {
            return;
        }
        let cpu = cx.tasks.cpu(task);
        let before = self.rqs[cpu.index()].curr_slot;
        let slot = self.refile(cx, cpu, task);
        let disturbs = if cx.curr(cpu) == Some(task) { slot > before } else { slot < before };
        if disturbs {
            cx.resched(cpu);
        }
    }
}
