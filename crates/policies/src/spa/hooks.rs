// SPDX-License-Identifier: GPL-2.0-only
//! The hooks.

use alloc::format;
use alloc::string::String;

use schedlab_policy_api::{
    Change, Company, Ctx, Dequeue, Enqueue, Idle, Inspect, Policy, PutPrev, TaskState, View, Wake,
};
use schedlab_units::{CpuId, Nanos, Nice, TaskId};

use super::array::{CEILING, IDLE_SLOT};
use super::policy::{Spa, Task};
use crate::linux_2_6::sleep_avg::{Activated, SleepAvg};

impl Policy for Spa {
    fn enqueue(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId, why: Enqueue) {
        self.rqs[cpu.index()].nr_running += 1;
        self.set_promotion_due(cx, cpu);
        if why == Enqueue::New {
            self.enqueue_forked(cx, cpu, task);
            return;
        }
        let slot = self.slot(cx, task);
        self.arrays.push_tail(cpu, slot, task);
        if why == Enqueue::Wakeup {
            self.tasks[task.index()].time_slice = self.knobs.time_slice;
        } else if !self.tasks[task.index()].pulled {
            // The migration thread, a task, activates it here.
            self.activate(cx, cpu, task, Activated::ByTask);
        }
    }

    fn dequeue(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId, _: Dequeue) {
        self.rqs[cpu.index()].nr_running -= 1;
        self.arrays.remove(task);
        let state = cx.tasks.get(task).state;
        self.tasks[task.index()].uninterruptible = state == TaskState::Uninterruptible;
    }

    /// The queue's current slot, which a pick would set, is that of nobody.
    fn push_aside(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId) {
        self.put_prev(cx, cpu, task, PutPrev::Preempted);
        self.rqs[cpu.index()].curr_slot = IDLE_SLOT;
    }

    /// Source: 2.6.6 `sched.c` `schedule`; spec §4.1 schedule steps 5 and 6, §4.2.
    fn pick_next(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) -> Option<TaskId> {
        let Some((slot, next)) = self.arrays.first(cpu) else {
            self.rqs[cpu.index()].curr_slot = IDLE_SLOT;
            return None;
        };
        self.rqs[cpu.index()].curr_slot = slot;
        let now = cx.now.as_ns();
        let facts = Self::facts(cx, next);
        let avg = &mut self.tasks[next.index()].avg;
        if self.knobs.onrq_credit
            && !cx.tasks.get(next).class.is_rt()
            && avg.credit_wait(&self.knobs.scale, facts, now)
        {
            self.stats.wait_credits += 1;
            let slot = self.slot(cx, next);
            self.refile_in(cx, cpu, next, slot);
            self.rqs[cpu.index()].curr_slot = slot;
        }
        let avg = &mut self.tasks[next.index()].avg;
        avg.activated = Activated::No;
        if cx.curr(cpu) == Some(next) {
            avg.charge(&self.knobs.scale, now);
        }
        Some(next)
    }

    fn set_next(&mut self, cx: &mut Ctx<'_>, _: CpuId, task: TaskId) {
        self.tasks[task.index()].avg.timestamp = cx.now.as_ns();
    }

    /// Source: 2.6.6 `sched.c` `schedule`; spec §4.1 schedule steps 1 and 6.
    fn put_prev(&mut self, cx: &mut Ctx<'_>, _: CpuId, task: TaskId, why: PutPrev) {
        let own = &mut self.tasks[task.index()];
        own.avg.charge(&self.knobs.scale, cx.now.as_ns());
        if self.knobs.renew_on_preempt && matches!(why, PutPrev::Preempted | PutPrev::Yielded) {
            own.time_slice = self.knobs.time_slice;
        }
    }

    /// A task stays where it last ran, but follows a waker that is about to sleep; a new one
    /// starts where it was forked.
    ///
    /// Source: 2.6.6 `sched.c` `try_to_wake_up`, `wake_up_forked_process`; spec §4.1 wake-up, fork.
    fn select_cpu(&mut self, cx: &mut Ctx<'_>, task: TaskId, wake: Wake) -> CpuId {
        let facts = cx.tasks.get(task);
        let follows = match wake {
            Wake::Wakeup { waker, sync } => sync && waker.is_some(),
            Wake::Fork => facts.parent.is_some(),
            Wake::Exec | Wake::Migrate => false,
        };
        if follows && facts.affinity.contains(cx.this_cpu) { cx.this_cpu } else { facts.cpu }
    }

    /// Source: 2.6.6 `try_to_wake_up`, `do_fork`, `__migrate_task`, `pull_task`; spec §4.1.
    fn wakeup_preempt(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, woken: TaskId, wake: Wake) {
        match wake {
            Wake::Wakeup { waker, sync } => {
                let own = &mut self.tasks[woken.index()];
                if own.uninterruptible {
                    own.avg.activated = Activated::Uninterruptible;
                }
                if sync && waker.is_some() && cpu == cx.this_cpu {
                    return;
                }
                let by_task = waker.is_some();
                let how = if by_task { Activated::ByTask } else { Activated::ByInterrupt };
                self.activate(cx, cpu, woken, how);
            }
            Wake::Fork => {
                // do_fork makes the caller give way to its child.
                if cx.tasks.get(woken).parent.is_some() && cx.curr(cx.this_cpu).is_some() {
                    cx.resched(cx.this_cpu);
                }
            }
            Wake::Exec | Wake::Migrate => {}
        }
        let slot = self.slot(cx, woken);
        self.preempt(cx, cpu, slot);
        if wake == Wake::Migrate {
            let last_tick = self.rqs[cpu.index()].timestamp_last_tick;
            let own = &mut self.tasks[woken.index()];
            if !core::mem::take(&mut own.pulled) {
                own.avg.timestamp = last_tick;
            }
        }
    }

    /// Source: 2.6.6 `sched.c` `scheduler_tick`; spec §4.1 tick, §4.2.
    fn tick(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) {
        let now = self.knobs.scale.word.wrap(cx.now.as_ns());
        self.rqs[cpu.index()].timestamp_last_tick = now;
        self.promote_if_due(cx, cpu);
        let curr = cx.curr(cpu);
        if let Some(curr) = curr {
            self.tick_slice(cx, cpu, curr);
        }
        self.rebalance_tick(cx, cpu, curr.is_none());
    }

    fn yield_task(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, curr: TaskId) {
        let slot = self.yield_slot(cx, cpu, curr);
        self.refile_in(cx, cpu, curr, slot);
        cx.resched(cpu);
    }

    /// Source: 2.6.6 `sched.c` `sched_fork`; spec §4.1 fork steps 1 and 2, §4.2.
    fn task_fork(&mut self, cx: &mut Ctx<'_>, child: TaskId, parent: Option<TaskId>) {
        self.start.get_or_insert(cx.now);
        let mut own = Task {
            avg: SleepAvg { sleep_avg: self.knobs.initial_sleep_avg, ..SleepAvg::default() },
            time_slice: self.knobs.time_slice,
            static_prio: cx.tasks.get(child).nice.prio().0,
            uninterruptible: false,
            pulled: false,
        };
        if let Some(parent) = parent {
            own.avg = self.tasks[parent.index()].avg;
            if self.knobs.fork_shares {
                own.time_slice = self.share_slice(cx, parent);
            }
        }
        own.avg.timestamp = cx.now.as_ns();
        if child.index() < self.tasks.len() {
            self.tasks[child.index()] = own;
        } else {
            assert!(child.index() == self.tasks.len(), "task ids are dense, {child} is not");
            self.tasks.push(own);
            self.arrays.grow();
        }
    }

    /// Source: 2.6.6 `sched.c` `set_user_nice`, `setscheduler`; spec §4.1.
    fn task_changed(&mut self, cx: &mut Ctx<'_>, task: TaskId, what: Change) {
        match what {
            Change::Nice => self.nice_changed(cx, task),
            Change::Class => self.class_changed(cx, task),
            Change::Affinity | Change::Slice | Change::Exec => {}
        }
    }

    fn requeues_on_change(&self, _: Change) -> bool {
        false
    }

    fn balance(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, _: Idle) {
        if self.knobs.smp {
            self.load_balance(cx, cpu, true);
        }
    }

    /// A task of static priority p is filed in slot p + 10 at worst and in slot p at best, when its
    /// bonus is 0 and 10. Beside others of static priority q and more, p + 10 − q + 1 promotions,
    /// 49 at most, put it before everything that is filed later; one more covers where in an
    /// interval it began. The interval is for as many as are runnable, at most all. Then each that
    /// is still before it runs one slice and is filed anew.
    fn wait_bound(&self, company: Company<'_>) -> Option<Nanos> {
        let nr_running = company.others.len() as u64 + 1;
        let prio = |nice: &Nice| u64::from(nice.prio().0);
        let first = company.others.iter().map(prio).min().unwrap_or(0);
        let rises = (prio(&company.nice) + 11).saturating_sub(first).min(49);
        let interval = self.knobs.base_promotion_interval * nr_running + 1;
        let slices = u64::from(self.knobs.time_slice) * nr_running;
        Some(Nanos::from_ns(((rises + 1) * interval + slices) * self.knobs.scale.jiffy_ns))
    }

    /// `slot` with promotions so far and `position` in it with the head at 0 (−1 = not queued),
    /// `time_slice` left in jiffies, `sleep_avg` in ns, the `bonus` it gives, `interactive_credit`
    /// and `activated`; `prio_shown` as `/proc/PID/stat` would have it, from the slot, or from the
    /// one it goes to next (inferred: 2.6.6 `task_prio`).
    fn inspect(&self, view: &View<'_>, task: TaskId, out: &mut Inspect) {
        let own = &self.tasks[task.index()];
        let place = self.arrays.contains(task).then(|| self.arrays.place(task));
        out.push(("slot", place.map_or(-1, |(slot, _)| slot.into())));
        out.push(("position", place.map_or(-1, |(_, ahead)| ahead as i64)));
        out.push(("time_slice", own.time_slice.into()));
        out.push(("sleep_avg", own.avg.sleep_avg as i64));
        out.push(("bonus", own.avg.bonus(&self.knobs.scale) as i64));
        out.push(("interactive_credit", own.avg.interactive_credit));
        out.push(("activated", own.avg.activated.number()));
        let slot = place.map_or_else(|| self.slot_by(view.tasks, task), |(slot, _)| slot);
        out.push(("prio_shown", i64::from(slot) - 100));
    }

    fn stats(&self, out: &mut Inspect) {
        out.push(("promotions", self.stats.promotions));
        out.push(("expiries", self.stats.expiries));
        out.push(("wait_credits", self.stats.wait_credits));
        out.push(("pulls", self.stats.pulls));
    }

    fn invariants(&self, view: &View<'_>) -> Result<(), String> {
        for cpu in view.topo.cpus() {
            self.check_cpu(view, cpu)?;
        }
        for (task, facts) in view.tasks.iter() {
            let own = &self.tasks[task.index()];
            let runnable = matches!(facts.state, TaskState::Runnable | TaskState::Running);
            if self.arrays.contains(task) != runnable {
                return Err(format!("task {task} is kept as {own:?} but is {facts:?}"));
            }
            if own.avg.sleep_avg > self.knobs.scale.ns_max_sleep_avg()
                || own.avg.interactive_credit.abs() > 101
                || !(1..=self.knobs.time_slice).contains(&own.time_slice)
                || own.static_prio != facts.nice.prio().0
                || own.pulled
            {
                return Err(format!("task {task} is out of range: {own:?}"));
            }
        }
        Ok(())
    }
}

impl Spa {
    /// Halves the slice of a forking parent; the child's half. A parent left without a slice is
    /// charged a tick at once.
    ///
    /// Source: 2.6.6 `sched.c` `sched_fork`; spec §4.1 fork steps 1 and 2.
    fn share_slice(&mut self, cx: &mut Ctx<'_>, parent: TaskId) -> u32 {
        let from = &mut self.tasks[parent.index()];
        let child = from.time_slice.div_ceil(2);
        from.time_slice /= 2;
        if from.time_slice == 0 {
            from.time_slice = 1;
            if cx.curr(cx.this_cpu) == Some(parent) {
                self.tick(cx, cx.this_cpu);
            }
        }
        child
    }

    /// The lists of `cpu` agree with their bits, its count and its current task.
    fn check_cpu(&self, view: &View<'_>, cpu: CpuId) -> Result<(), String> {
        let rq = &self.rqs[cpu.index()];
        let mut nr_running = 0;
        self.arrays.check(cpu, |slot, task| {
            nr_running += 1;
            let facts = view.tasks.get(task);
            let current = view.curr[cpu.index()] == Some(task);
            if facts.cpu != cpu || facts.class.is_rt() != (slot < CEILING) {
                return Err(format!("task {task} in slot {slot} of CPU {cpu} is {facts:?}"));
            }
            if current && slot != rq.curr_slot {
                return Err(format!("task {task} runs in slot {slot}, not {}", rq.curr_slot));
            }
            Ok(())
        })?;
        if nr_running != rq.nr_running {
            return Err(format!("CPU {cpu} has {nr_running} tasks, not {}", rq.nr_running));
        }
        if view.curr[cpu.index()].is_none() && rq.curr_slot != IDLE_SLOT {
            return Err(format!("CPU {cpu} is idle in slot {}", rq.curr_slot));
        }
        Ok(())
    }
}
