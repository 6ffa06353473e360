// SPDX-License-Identifier: GPL-2.0-only
//! CFS as a policy: which part of the machinery each hook sets in motion.

use alloc::string::String;
use alloc::vec::Vec;

use schedlab_policy_api::{
    Build, Change, Company, Ctx, Dequeue, Enqueue, Idle, Inspect, Policy, PolicyDef, PolicyInfo,
    PutPrev, Starvation, TaskState, Timekeeping, Tunables, View, Wake, WorkConservation,
};
use schedlab_units::{CpuId, Nanos, Prio, TaskId};

use super::arith::{Spans, vruntime_bound};
use super::entity::{CfsRq, Entity};
use super::tunables::{CfsTunables, VARIANTS};
use crate::eevdf::arith::lag_bound;
use crate::eevdf::tree::Nodes;
use crate::fair::{Fair, Load, Plan};
use crate::rt::Rt;
use crate::throttle::Throttle;

/// Facts of a task before a change that is under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    pub(super) is_rt: bool,
    pub(super) prio: Prio,
}

/// The completely fair scheduler, with real-time classes above.
pub struct Cfs {
    pub(super) knobs: CfsTunables,
    pub(super) spans: Spans,
    /// Wall time per virtual deadline with the EEVDF patches, ns.
    pub(super) request: u64,
    pub(super) tick_ns: u64,
    pub(super) fair: Fair,
    pub(super) rt: Rt,
    pub(super) throttle: Throttle,
    pub(super) nodes: Nodes,
    pub(super) entities: Vec<Entity>,
    pub(super) rqs: Vec<CfsRq>,
    /// Per CPU: its current task, which is to be moved once it has been switched from.
    pushing: Vec<Option<(TaskId, CpuId)>>,
    pub(super) before: Before,
    plan: Plan,
}

impl PolicyDef for Cfs {
    type Tunables = CfsTunables;
    const INFO: PolicyInfo = PolicyInfo {
        name: "cfs",
        about: "completely fair scheduler, the fair class of Linux 2.6.23 to 6.5, as of 6.3",
        variants: VARIANTS,
        tunables: CfsTunables::SPECS,
        time: Timekeeping::MODERN,
        work_conserving: WorkConservation::Unbounded(
            "an idle CPU pulls waiting tasks only when it balances: newly idle, if it idles for \
             longer on average than the search takes, else at intervals of some ticks; tasks that \
             ran a moment ago stay where they are, and two nodes bear a small imbalance \
             (spec cfs-eevdf §4E); and a CPU idles rather than let real-time tasks run for more \
             than `rt_runtime` in a period",
        ),
        starvation: Starvation {
            bound: Some(
                "while it waits everybody catches up with its virtual time, sleepers from at most \
                 their credit behind (spec cfs-eevdf §4A)",
            ),
            except: Some(
                "under the EEVDF patches beside tasks that sleep, since placing them moves the \
                 mean away from a lag they keep, or lose (spec cfs-eevdf §4B, Q2, Q7)",
            ),
        },
    };

    fn build(tunables: &CfsTunables, build: Build<'_>) -> Self {
        let n_cpus = build.topo.n_cpus();
        Self {
            spans: tunables.spans(n_cpus),
            request: tunables.request(n_cpus),
            tick_ns: build.hz.tick().as_ns(),
            fair: Fair::new(tunables.fair(), build),
            rt: Rt::new(n_cpus, build.n_tasks, tunables.rr_timeslice, build.hz),
            throttle: Throttle::new(n_cpus, tunables.rt_runtime, tunables.rt_period, 0),
            nodes: Nodes::with_capacity(build.n_tasks),
            entities: Vec::with_capacity(build.n_tasks),
            rqs: alloc::vec![CfsRq::new(); n_cpus],
            pushing: alloc::vec![None; n_cpus],
            before: Before { is_rt: false, prio: Prio(120) },
            plan: Vec::with_capacity(tunables.nr_migrate as usize),
            knobs: tunables.clone(),
        }
    }
}

impl Cfs {
    /// Asks the core for the planned moves.
    fn carry_out(&mut self, cx: &mut Ctx<'_>, mut plan: Plan) {
        for (task, to) in plan.drain(..) {
            cx.migrate(task, to);
        }
        self.plan = plan;
    }

    /// The task that another CPU asked `cpu` for and that must not be picked now.
    fn leaving(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) -> Option<TaskId> {
        if let Some((task, _)) = self.pushing[cpu.index()] {
            return Some(task);
        }
        let (task, to) = self.fair.take_active_balance(cx, cpu)?;
        if cx.curr(cpu) == Some(task) {
            self.pushing[cpu.index()] = Some((task, to));
        } else {
            cx.migrate(task, to);
        }
        Some(task)
    }

    /// The weight of `task` after a change of its nice value or class.
    ///
    /// Source: v6.1 `core.c` `set_load_weight`, `fair.c` `reweight_task`.
    fn reweight(&mut self, cx: &Ctx<'_>, task: TaskId) {
        let facts = cx.tasks.get(task);
        let load = Load::of_task(facts.class, facts.nice);
        if self.before.is_rt {
            self.fair.task_mut(task).load = load;
        } else if load != self.fair.task(task).load {
            self.fair.set_load(task, load);
        }
    }
}

impl Policy for Cfs {
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
        let leaving = self.leaving(cx, cpu);
        if let Some(curr) = cx.curr(cpu).filter(|_| self.fair.cpu(cpu).runs_rt) {
            self.account_rt(cx.now.as_ns(), cpu, curr);
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
        let facts = cx.tasks.get(task);
        let chosen = match (facts.affinity.len(), facts.affinity.first()) {
            (1, Some(only)) => only,
            _ if facts.class.is_rt() && wake != Wake::Migrate => self.rt.select_cpu(cx, task, wake),
            _ => self.fair.select_task_rq(cx, task, wake),
        };
        let allowed = facts.affinity.contains(chosen);
        let cpu = if allowed { chosen } else { self.fair.any_allowed(cx, task) };
        if matches!(wake, Wake::Wakeup { .. }) && cpu != self.fair.task(task).cpu {
            self.leave_by_wakeup(task);
        }
        cpu
    }

    fn ttwu_queue(&self, cx: &Ctx<'_>, task: TaskId, cpu: CpuId) -> bool {
        self.fair.ttwu_queue(cx, task, cpu)
    }

    fn wakeup_preempt(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, woken: TaskId, wake: Wake) {
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
        while self.entities.len() <= child.index() {
            self.entities.push(Entity::NEW);
        }
        self.entities[child.index()] = Entity::NEW;
        if !cx.tasks.get(child).class.is_rt() {
            self.fork_fair(cx, child);
        }
    }

    fn task_changing(&mut self, cx: &mut Ctx<'_>, task: TaskId, what: Change) {
        let facts = cx.tasks.get(task);
        let is_rt = facts.class.is_rt();
        self.before = Before { is_rt, prio: facts.static_prio() };
        if is_rt && what == Change::Class {
            self.rt.give_up_place(facts.cpu, task);
        }
    }

    fn task_changed(&mut self, cx: &mut Ctx<'_>, task: TaskId, what: Change) {
        let (facts, now) = (cx.tasks.get(task), cx.now.as_ns());
        let is_rt = facts.class.is_rt();
        match what {
            Change::Nice if !is_rt => self.reweight(cx, task),
            Change::Class => {
                self.reweight(cx, task);
                match (self.before.is_rt, is_rt) {
                    (false, true) => self.leave_fair(now, task),
                    (true, false) => self.join_fair(now, task, facts.state.is_asleep()),
                    _ => {}
                }
            }
            // A wish for a slice means nothing before EEVDF.
            Change::Nice | Change::Affinity | Change::Slice | Change::Exec => {}
        }
    }

    fn requeues_on_change(&self, what: Change) -> bool {
        what != Change::Slice
    }

    fn prio_changed(&mut self, cx: &mut Ctx<'_>, task: TaskId, what: Change) {
        let facts = cx.tasks.get(task);
        if !matches!(facts.state, TaskState::Runnable | TaskState::Running) {
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
        let mut plan = core::mem::take(&mut self.plan);
        self.fair.balance_newidle(cx, cpu, &mut plan);
        self.carry_out(cx, plan);
    }

    fn timer(&mut self, cx: &mut Ctx<'_>, _: u32) {
        self.throttle.end_period(cx, &mut self.fair, &self.rt);
    }

    fn wait_bound(&self, company: Company<'_>) -> Option<Nanos> {
        let n_tasks = company.others.len() as u64 + 1;
        if self.knobs.eevdf {
            let turn = self.request.next_multiple_of(self.tick_ns) + self.tick_ns;
            return (!company.sleepers).then(|| Nanos::from_ns(lag_bound(turn, company)));
        }
        let turn = self.spans.period(n_tasks) + self.tick_ns;
        // Only wake-ups make buddies, and only who wakes has credit.
        let (granularity, credit) = match company.sleepers {
            true => (self.spans.wakeup_granularity, self.spans.latency),
            false => (0, 0),
        };
        Some(Nanos::from_ns(vruntime_bound(turn, granularity, credit, company)))
    }

    fn inspect(&self, view: &View<'_>, task: TaskId, out: &mut Inspect) {
        self.explain(view, task, out);
    }
    fn stats(&self, out: &mut Inspect) {
        self.totals(out);
    }
    fn invariants(&self, view: &View<'_>) -> Result<(), String> {
        self.check(view)
    }
}
