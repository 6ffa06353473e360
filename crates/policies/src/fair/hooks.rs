// SPDX-License-Identifier: GPL-2.0-only
//! The hooks: which part of the machinery each sets in motion.

use alloc::string::String;

use schedlab_policy_api::{
    Change, Company, Ctx, Dequeue, Enqueue, Idle, Inspect, Policy, PutPrev, TaskState,
    TunableValue, View, Wake,
};
use schedlab_units::{CpuId, Nanos, TaskId};

use super::dialect::{Dialect, Order, Report};
use super::policy::{Before, FairPolicy};
use super::{Load, Plan};

impl<D, E> FairPolicy<D, E>
where
    Self: Dialect,
{
    /// Asks the core for the planned moves; delayed tasks, which sleep as far as the core knows,
    /// are moved here.
    fn carry_out(&mut self, cx: &mut Ctx<'_>, mut plan: Plan) {
        for (task, to) in plan.drain(..) {
            if self.fair.task(task).delayed {
                self.move_delayed(cx, task, to);
            } else {
                cx.migrate(task, to);
            }
        }
        self.plan = plan;
    }

    /// The task that another CPU asked `cpu` for and that must not be picked now.
    fn leaving(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) -> Option<TaskId> {
        if let Some((task, _)) = self.pushing[cpu.index()] {
            return Some(task);
        }
        let (task, to) = self.fair.take_active_balance(cx, cpu)?;
        if self.fair.task(task).delayed {
            self.move_delayed(cx, task, to);
            return None;
        }
        if cx.curr(cpu) == Some(task) {
            self.pushing[cpu.index()] = Some((task, to));
        } else {
            cx.migrate(task, to);
        }
        Some(task)
    }

    /// The weight of `task` after a change of its nice value or class; one that comes from a
    /// real-time class just gets its weight.
    ///
    /// Source: v6.12 `core.c` `set_load_weight`, `fair.c` `reweight_task_fair`.
    fn reweight(&mut self, cx: &Ctx<'_>, task: TaskId) {
        let facts = cx.tasks.get(task);
        let load = Load::of_task(facts.class, facts.nice);
        let old = self.fair.task(task).load;
        if self.before.is_rt {
            self.fair.task_mut(task).load = load;
        } else if load != old {
            self.rescale(task, &old, &load);
            self.fair.set_load(task, load);
        }
    }

    /// `task` has changed its class: it leaves or joins the fair one, or neither.
    fn class_crossed(&mut self, cx: &Ctx<'_>, task: TaskId) {
        let (facts, now) = (cx.tasks.get(task), cx.now.as_ns());
        match (self.before.is_rt, facts.class.is_rt()) {
            (false, true) => {
                self.leave_fair(now, task);
                self.fair.leave_class(now, task);
            }
            (true, false) => {
                self.fair.join_class(now, task);
                self.join_fair(task, facts.state.is_asleep());
            }
            _ => {}
        }
    }
}

impl<D, E> Policy for FairPolicy<D, E>
where
    Self: Dialect,
{
    fn enqueue(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId, why: Enqueue) {
        if cx.tasks.get(task).class.is_rt() {
            self.enqueue_rt(cx, cpu, task, why);
        } else {
            self.enqueue_fair(cx, cpu, task, why);
        }
    }

    fn dequeue(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId, why: Dequeue) {
        if cx.tasks.get(task).class.is_rt() {
            self.dequeue_rt(cx, cpu, task, why);
        } else {
            self.dequeue_fair(cx, cpu, task, why);
        }
    }

    fn pick_next(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) -> Option<TaskId> {
        self.pick_begins(cx, cpu);
        let leaving = self.leaving(cx, cpu);
        if let Some(curr) = cx.curr(cpu).filter(|_| self.fair.cpu(cpu).runs_rt) {
            self.account_rt(cx.now.as_ns(), cpu, curr);
        }
        if let Some(task) = self.pick_ahead_of_rt(cx, cpu, leaving) {
            return Some(task);
        }
        // What is pulled here must be picked here, for the core learns of the move by the pick.
        if !self.throttle.holds(cpu) {
            self.pull_rt(cx, cpu);
            if let Some(task) = self.rt.pick(cpu) {
                return Some(task);
            }
        }
        match leaving {
            Some(leaving) => self.pick_fair_without(cx, cpu, leaving),
            None => self.pick_fair(cx, cpu),
        }
    }

    fn set_next(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId) {
        if cx.tasks.get(task).class.is_rt() {
            self.switch_rt(cx.now.as_ns(), cpu, task, true);
        } else {
            self.set_next_fair(cx, cpu, task);
        }
    }

    fn put_prev(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId, _: PutPrev) {
        if cx.tasks.get(task).class.is_rt() {
            self.switch_rt(cx.now.as_ns(), cpu, task, false);
        } else {
            self.put_prev_fair(cx, cpu, task);
        }
    }

    fn finish_task_switch(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, prev: Option<TaskId>) {
        if let Some((task, to)) = self.pushing[cpu.index()].take()
            && prev == Some(task)
        {
            cx.migrate(task, to);
        }
        if self.fair.cpu(cpu).runs_rt {
            self.rt.push(cx, cpu);
        }
    }

    fn select_cpu(&mut self, cx: &mut Ctx<'_>, task: TaskId, wake: Wake) -> CpuId {
        let last = self.fair.task(task).cpu;
        if self.fair.task(task).delayed {
            return last;
        }
        let facts = cx.tasks.get(task);
        let chosen = match (facts.affinity.len(), facts.affinity.first()) {
            (1, Some(only)) => only,
            _ if facts.class.is_rt() && wake != Wake::Migrate => self.rt.select_cpu(cx, task, wake),
            _ => self.fair.select_task_rq(cx, task, wake),
        };
        let allowed = facts.affinity.contains(chosen);
        let cpu = if allowed { chosen } else { self.fair.any_allowed(cx, task) };
        if matches!(wake, Wake::Wakeup { .. }) && cpu != last {
            self.leave_by_wakeup(task);
        }
        cpu
    }

    fn ttwu_queue(&self, cx: &Ctx<'_>, task: TaskId, cpu: CpuId) -> bool {
        !self.fair.task(task).delayed && self.fair.ttwu_queue(cx, task, cpu)
    }

    fn wakeup_preempt(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, woken: TaskId, wake: Wake) {
        if self.wakes_in_silence(woken) {
            return;
        }
        self.disturb(cx, cpu, woken, wake);
        let is_wakeup = matches!(wake, Wake::Wakeup { .. } | Wake::Fork);
        if is_wakeup && cx.tasks.get(woken).class.is_rt() {
            self.rt.push_woken(cx, cpu, woken);
        }
    }

    fn tick(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) {
        if let Some(curr) = cx.curr(cpu) {
            if cx.tasks.get(curr).class.is_rt() {
                self.tick_rt(cx, cpu, curr);
            } else {
                self.tick_fair(cx, cpu, curr);
            }
        }
        let mut plan = core::mem::take(&mut self.plan);
        self.fair.balance_tick(cx, cpu, &mut plan);
        self.carry_out(cx, plan);
    }

    fn yield_task(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, curr: TaskId) {
        if cx.tasks.get(curr).class.is_rt() {
            self.rt.requeue(cpu, curr, false);
        } else {
            self.yield_fair(cx, cpu, curr);
        }
        cx.resched(cpu);
    }

    fn task_fork(&mut self, cx: &mut Ctx<'_>, child: TaskId, parent: Option<TaskId>) {
        self.fair.fork(cx, child, parent);
        self.rt.fork(child);
        self.nodes.provide(child);
        self.fork_entity(cx, child);
    }

    fn task_exit(&mut self, cx: &mut Ctx<'_>, task: TaskId, _: Option<TaskId>) {
        if self.fair.task(task).delayed {
            self.end_delay(cx, task);
        }
    }

    fn task_changing(&mut self, cx: &mut Ctx<'_>, task: TaskId, what: Change) {
        let facts = cx.tasks.get(task);
        let (is_rt, delayed) = (facts.class.is_rt(), self.fair.task(task).delayed);
        self.before = Before { is_rt, prio: facts.static_prio(), delayed };
        if is_rt && what == Change::Class {
            self.rt.give_up_place(facts.cpu, task);
        }
        if delayed {
            self.delayed_changing(cx, task);
        }
    }

    fn task_changed(&mut self, cx: &mut Ctx<'_>, task: TaskId, what: Change) {
        match what {
            Change::Nice if !cx.tasks.get(task).class.is_rt() => self.reweight(cx, task),
            Change::Class => {
                self.reweight(cx, task);
                self.class_crossed(cx, task);
            }
            Change::Slice => self.slice_changed(cx, task),
            Change::Nice | Change::Affinity | Change::Exec => {}
        }
        if self.before.delayed {
            self.delayed_changed(cx, task, what);
        }
    }

    fn requeues_on_change(&self, what: Change) -> bool {
        what != Change::Slice || self.grants_slices()
    }

    fn prio_changed(&mut self, cx: &mut Ctx<'_>, task: TaskId, what: Change) {
        let facts = cx.tasks.get(task);
        let queued = matches!(facts.state, TaskState::Runnable | TaskState::Running)
            || self.fair.task(task).delayed;
        if !queued {
            return;
        }
        match what {
            Change::Nice if !facts.class.is_rt() => self.prio_changed_fair(cx, task),
            Change::Class
                if self.before.is_rt != facts.class.is_rt()
                    || self.before.prio != facts.static_prio() =>
            {
                self.class_changed(cx, task);
            }
            _ => {}
        }
    }

    fn balance(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, _: Idle) {
        if self.pushing[cpu.index()].is_some() {
            return;
        }
        loop {
            let mut plan = core::mem::take(&mut self.plan);
            self.fair.balance_newidle(cx, cpu, &mut plan);
            let only_delayed = plan.iter().all(|(task, _)| self.fair.task(*task).delayed);
            let pulled = !plan.is_empty();
            self.carry_out(cx, plan);
            if !pulled || !only_delayed {
                break;
            }
            // The next pick ends the delay of what came, and the search goes on.
            let none = self.pick_fair(cx, cpu);
            assert_eq!(none, None, "CPU {cpu} was about to idle");
        }
    }

    fn timer(&mut self, cx: &mut Ctx<'_>, timer: u32) {
        if timer == self.throttle.timer() {
            self.throttle.end_period(cx, &mut self.fair, &self.rt);
        } else {
            self.fair_timer(cx, timer);
        }
    }

    fn live_tunables(&self) -> &'static [&'static str] {
        <Self as Dialect>::LIVE
    }
    fn set_tunable(&mut self, name: &str, value: TunableValue) {
        self.retune(name, value);
    }

    fn wait_bound(&self, company: Company<'_>) -> Option<Nanos> {
        self.longest_wait(company)
    }

    /// Last `prio_shown`, the priority of `/proc/PID/stat`: 20 + nice, −1 − rt_priority.
    ///
    /// Source: v6.1 and v6.12 `task_prio`.
    fn inspect(&self, view: &View<'_>, task: TaskId, out: &mut Inspect) {
        let facts = view.tasks.get(task);
        if facts.class.is_rt() {
            out.push(("prio", i64::from(facts.static_prio().0)));
            out.push(("time_slice_ticks", i64::from(self.rt.time_slice(task))));
        } else {
            self.explain(view, task, out);
        }
        out.push(("prio_shown", i64::from(facts.static_prio().0) - 100));
    }
    fn stats(&self, out: &mut Inspect) {
        self.own_totals(out);
        self.fair.totals(out);
    }
    fn invariants(&self, view: &View<'_>) -> Result<(), String> {
        self.check(view)
    }
}
