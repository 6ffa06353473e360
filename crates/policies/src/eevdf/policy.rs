// SPDX-License-Identifier: GPL-2.0-only
//! EEVDF as a policy: which part of the machinery each hook sets in motion.

use alloc::string::String;
use alloc::vec::Vec;

use schedlab_policy_api::{
    Build, Change, Company, Ctx, Dequeue, Enqueue, Idle, Inspect, Policy, PolicyDef, PolicyInfo,
    PutPrev, Starvation, TaskState, Timekeeping, Tunables, View, Wake, WorkConservation,
};
use schedlab_units::{CpuId, Nanos, Prio, TaskId};

use super::arith::{custom_slice, lag_bound, reweight_lag};
use super::entity::{CfsRq, Departure, Entity};
use super::server::Server;
use super::tree::{Nodes, Tree};
use super::tunables::{EevdfTunables, VARIANTS};
use crate::fair::{Fair, Load, Plan};
use crate::rt::Rt;
use crate::throttle::Throttle;

/// Facts of a task before a change that is under way.
#[derive(Clone, Copy, Debug)]
struct Before {
    is_rt: bool,
    prio: Prio,
    /// It was delayed and has been taken off its queue.
    delayed: bool,
}

/// Earliest eligible virtual deadline first, with real-time classes above.
pub struct Eevdf {
    pub(super) knobs: EevdfTunables,
    pub(super) base_slice: u64,
    pub(super) tick_ns: u64,
    /// The base of a queue's keys moves to V.
    pub(super) moves_base: bool,
    /// `sched_yield` gives up the rest of the slice.
    pub(super) yield_forfeits: bool,
    pub(super) fair: Fair,
    pub(super) rt: Rt,
    pub(super) throttle: Throttle,
    pub(super) nodes: Nodes,
    pub(super) entities: Vec<Entity>,
    pub(super) rqs: Vec<CfsRq>,
    pub(super) servers: Vec<Server>,
    /// Per CPU: its current task, which is to be moved once it has been switched from.
    pushing: Vec<Option<(TaskId, CpuId)>>,
    before: Before,
    plan: Plan,
    /// A delayed task that was woken before it had been switched from, so that no preemption test
    /// follows.
    pub(super) woken_in_switch: Option<TaskId>,
    /// Number of dequeues that were delayed.
    pub(super) n_delayed: u64,
    /// How many of them ended by a wake-up.
    pub(super) n_requeued: u64,
}

impl PolicyDef for Eevdf {
    type Tunables = EevdfTunables;
    const INFO: PolicyInfo = PolicyInfo {
        name: "eevdf",
        about: "earliest eligible virtual deadline first, the fair class of Linux 6.12",
        variants: VARIANTS,
        tunables: EevdfTunables::SPECS,
        time: Timekeeping::MODERN,
        work_conserving: WorkConservation::Unbounded(
            "an idle CPU pulls waiting tasks only when it balances: newly idle, if it idles for \
             longer on average than the search takes, else at intervals of some ticks; tasks that \
             ran a moment ago stay where they are, and so does one that wakes up delayed; two \
             nodes bear a small imbalance (spec cfs-eevdf §4D, §4E)",
        ),
        starvation: Starvation {
            bound: Some(
                "the lag of a hog stays within its longest turn (Stoica and Abdel-Wahab 1995, \
                 theorem 1)",
            ),
            except: Some(
                "beside tasks that sleep, since placing them moves the mean by a lag that is \
                 clamped (spec cfs-eevdf §4D)",
            ),
        },
    };

    fn build(tunables: &EevdfTunables, build: Build<'_>) -> Self {
        let n_cpus = build.topo.n_cpus();
        let (rt_runtime, rt_period) = (tunables.rt_runtime, tunables.rt_period);
        let tree = match tunables.equal_deadlines {
            0 => Tree::new(),
            _ => Tree::in_order_of_vruntime(),
        };
        Self {
            base_slice: tunables.effective_base_slice(n_cpus),
            tick_ns: build.hz.tick().as_ns(),
            moves_base: tunables.vruntime_base == 0,
            yield_forfeits: tunables.yield_mode == 0,
            fair: Fair::new(tunables.fair(), build),
            rt: Rt::new(n_cpus, build.n_tasks, tunables.rr_timeslice, build.hz),
            // Timers: slices of CPUs, their servers, this one.
            throttle: Throttle::new(n_cpus, rt_runtime, rt_period, 2 * n_cpus as u32),
            nodes: Nodes::with_capacity(build.n_tasks),
            entities: Vec::with_capacity(build.n_tasks),
            rqs: alloc::vec![CfsRq::new(tree); n_cpus],
            servers: alloc::vec![Server::STOPPED; n_cpus],
            pushing: alloc::vec![None; n_cpus],
            before: Before { is_rt: false, prio: Prio(120), delayed: false },
            plan: Vec::with_capacity(tunables.nr_migrate as usize),
            woken_in_switch: None,
            n_delayed: 0,
            n_requeued: 0,
            knobs: tunables.clone(),
        }
    }
}

impl Eevdf {
    /// `woken` has joined the queue of `cpu`: whom to disturb.
    ///
    /// Source: v6.12 `core.c` `wakeup_preempt`.
    pub(super) fn disturb(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, woken: TaskId, wake: Wake) {
        let Some(curr) = cx.curr(cpu) else {
            cx.resched(cpu);
            return;
        };
        match (cx.tasks.get(woken).class.is_rt(), cx.tasks.get(curr).class.is_rt()) {
            (true, true) => self.rt.wakeup_preempt(cx, cpu, woken),
            (true, false) => cx.resched(cpu),
            (false, true) => {}
            (false, false) => self.check_preempt(cx, cpu, woken, wake),
        }
    }

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

    /// Pulls the most urgent real-time task that could run on `cpu` better than where it is.
    ///
    /// The kernel may pull several on its way to the most urgent one; here only that one moves.
    fn pull_rt(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) {
        if self.rt.needs_pull(cx, cpu)
            && let Some((task, from)) = self.rt.find_pull(cx, cpu)
        {
            self.rt.transfer(cx, task, from, cpu);
            self.throttle.dec(&mut self.fair, from);
            self.throttle.inc(cx, &mut self.fair, cpu);
            self.fair.task_mut(task).cpu = cpu;
        }
    }

    fn enqueue_rt(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId, why: Enqueue) {
        self.rt.enqueue(cx, cpu, task);
        self.throttle.inc(cx, &mut self.fair, cpu);
        let now = cx.now.as_ns();
        let this = self.fair.task_mut(task);
        this.cpu = cpu;
        match why {
            Enqueue::New => this.avg.last_update_time = now,
            Enqueue::Wakeup => self.fair.end_idle(cpu, now),
            Enqueue::Migrate | Enqueue::Restore => {}
        }
        self.server_arm(cx, cpu);
    }

    /// Books the run time of real-time task `task`, current on `cpu`; true when the CPU's are
    /// throttled. Without a limit nothing is booked.
    fn account_rt(&mut self, cx: &Ctx<'_>, cpu: CpuId, task: TaskId) -> bool {
        let now = cx.now.as_ns();
        self.throttle.limits() && self.throttle.account(&mut self.fair, &self.rt, now, cpu, task)
    }

    /// The slice that `task` asks for, if that is granted.
    fn slice_request(&self, cx: &Ctx<'_>, task: TaskId) -> Option<u64> {
        custom_slice(cx.tasks.get(task).slice_request_ns).filter(|_| self.knobs.custom_slice)
    }

    /// The weight of `task` after a change of its nice value or class.
    ///
    /// A task of the fair class keeps w·lag; one that comes from a real-time class just gets its
    /// weight.
    ///
    /// Source: v6.12 `core.c` `set_load_weight`, `fair.c` `reweight_task_fair`.
    fn reweight(&mut self, cx: &Ctx<'_>, task: TaskId) {
        let facts = cx.tasks.get(task);
        let load = Load::of_task(facts.class, facts.nice);
        let old = self.fair.task(task).load;
        if self.before.is_rt {
            self.fair.task_mut(task).load = load;
        } else if load != old {
            let entity = self.entity_mut(task);
            entity.vlag = reweight_lag(entity.vlag, old.weight, load.weight);
            self.fair.set_load(task, load);
        }
    }

    /// Source: v6.12 `fair.c` `prio_changed_fair`.
    fn prio_changed_fair(&mut self, cx: &mut Ctx<'_>, task: TaskId) {
        let cpu = self.fair.task(task).cpu;
        if self.fair.cpu(cpu).nr == 1 {
            return;
        }
        if cx.curr(cpu) == Some(task) {
            if cx.tasks.get(task).static_prio().0 > self.before.prio.0 {
                cx.resched(cpu);
            }
        } else {
            self.disturb(cx, cpu, task, Wake::Migrate);
        }
    }

    /// Source: v6.12 `rt.c` `prio_changed_rt`, `switched_to_rt`, `fair.c` `switched_to_fair`.
    fn class_changed(&mut self, cx: &mut Ctx<'_>, task: TaskId) {
        let facts = cx.tasks.get(task);
        let (cpu, is_rt) = (facts.cpu, facts.class.is_rt());
        let (prio, was_rt) = (facts.static_prio(), self.before.is_rt);
        let running = cx.curr(cpu) == Some(task);
        if was_rt && (!is_rt || (running && prio.0 > self.before.prio.0)) {
            self.request_rt_pull(cx, cpu);
        }
        match (is_rt, running) {
            (true, true) => {
                let first = self.rt.pick(cpu);
                if first.is_some_and(|first| cx.tasks.get(first).static_prio().0 < prio.0) {
                    cx.resched(cpu);
                }
            }
            (true, false) => {
                let curr = cx.curr(cpu);
                if curr.is_none_or(|curr| prio.0 < cx.tasks.get(curr).static_prio().0) {
                    cx.resched(cpu);
                } else if !was_rt {
                    self.rt.push(cx, cpu);
                }
            }
            (false, true) if was_rt => cx.resched(cpu),
            (false, false) if was_rt => self.disturb(cx, cpu, task, Wake::Migrate),
            (false, _) => {}
        }
    }

    /// `cpu` has less urgent work than before: asks for a real-time task that waits elsewhere.
    fn request_rt_pull(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) {
        if let Some((pulled, _)) = self.rt.find_pull(cx, cpu) {
            cx.migrate(pulled, cpu);
        }
    }
}

impl Policy for Eevdf {
    fn enqueue(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId, why: Enqueue) {
        if cx.tasks.get(task).class.is_rt() {
            self.enqueue_rt(cx, cpu, task, why);
        } else {
            self.enqueue_fair(cx, cpu, task, why);
        }
    }

    fn dequeue(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId, why: Dequeue) {
        if cx.tasks.get(task).class.is_rt() {
            if cx.curr(cpu) == Some(task) && self.account_rt(cx, cpu, task) {
                cx.resched(cpu);
            }
            self.rt.dequeue(cpu, task, why == Dequeue::Save);
            self.throttle.dec(&mut self.fair, cpu);
        } else {
            self.dequeue_fair(cx, cpu, task, why);
        }
    }

    fn pick_next(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) -> Option<TaskId> {
        if self.knobs.hrtick {
            cx.disarm(cpu.0);
        }
        let leaving = self.leaving(cx, cpu);
        if let Some(curr) = cx.curr(cpu).filter(|_| self.fair.cpu(cpu).runs_rt) {
            self.account_rt(cx, cpu, curr);
        }
        if self.server_runs(cpu) {
            let task = self.pick_fair(cx, cpu).filter(|task| leaving != Some(*task));
            if task.is_some() {
                return task;
            }
            self.server_stop(cpu);
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
            self.fair.update_rt_avg(cx.now.as_ns(), cpu, false);
            self.fair.cpu_mut(cpu).runs_rt = true;
            if self.throttle.limits() {
                self.fair.task_mut(task).exec_start = Some(cx.now.as_ns());
            }
        } else {
            self.set_next_fair(cx, cpu, task);
        }
    }

    fn put_prev(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId, _: PutPrev) {
        if cx.tasks.get(task).class.is_rt() {
            self.fair.update_rt_avg(cx.now.as_ns(), cpu, true);
            self.fair.cpu_mut(cpu).runs_rt = false;
            self.account_rt(cx, cpu, task);
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
        if self.fair.task(task).delayed {
            return self.fair.task(task).cpu;
        }
        let facts = cx.tasks.get(task);
        if let (1, Some(only)) = (facts.affinity.len(), facts.affinity.first()) {
            return only;
        }
        let cpu = if facts.class.is_rt() && wake != Wake::Migrate {
            self.rt.select_cpu(cx, task, wake)
        } else {
            self.fair.select_task_rq(cx, task, wake)
        };
        if facts.affinity.contains(cpu) { cpu } else { self.fair.any_allowed(cx, task) }
    }

    fn ttwu_queue(&self, cx: &Ctx<'_>, task: TaskId, cpu: CpuId) -> bool {
        !self.fair.task(task).delayed && self.fair.ttwu_queue(cx, task, cpu)
    }

    fn wakeup_preempt(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, woken: TaskId, wake: Wake) {
        if self.woken_in_switch.take() == Some(woken) {
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
                if self.account_rt(cx, cpu, curr) {
                    cx.resched(cpu);
                }
                self.fair.update_rt_avg(cx.now.as_ns(), cpu, true);
                self.rt.tick(cx, cpu, curr);
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
        if self.knobs.place_at_fork {
            self.update_curr(cx, cx.tasks.cpu(child));
        }
        let custom = self.slice_request(cx, child);
        let entity = Entity::new(custom.unwrap_or(self.base_slice), custom.is_some());
        while self.entities.len() <= child.index() {
            self.entities.push(entity.clone());
        }
        self.entities[child.index()] = entity;
    }

    fn task_changing(&mut self, cx: &mut Ctx<'_>, task: TaskId, what: Change) {
        let facts = cx.tasks.get(task);
        let (is_rt, delayed) = (facts.class.is_rt(), self.fair.task(task).delayed);
        self.before = Before { is_rt, prio: facts.static_prio(), delayed };
        if is_rt && what == Change::Class {
            self.rt.give_up_place(facts.cpu, task);
        }
        if delayed {
            self.take_delayed_off(cx, task, Departure::Save);
        }
    }

    fn task_changed(&mut self, cx: &mut Ctx<'_>, task: TaskId, what: Change) {
        let facts = cx.tasks.get(task);
        let is_rt = facts.class.is_rt();
        match what {
            Change::Nice if !is_rt => self.reweight(cx, task),
            Change::Class => {
                self.reweight(cx, task);
                let now = cx.now.as_ns();
                match (self.before.is_rt, is_rt) {
                    (false, true) => self.fair.leave_class(now, task),
                    (true, false) => self.fair.join_class(now, task),
                    _ => {}
                }
            }
            Change::Slice => {
                let custom = self.slice_request(cx, task);
                let slice = custom.unwrap_or(self.base_slice);
                let entity = self.entity_mut(task);
                (entity.slice, entity.custom_slice) = (slice, custom.is_some());
            }
            Change::Nice | Change::Affinity | Change::Exec => {}
        }
        if self.before.delayed && what != Change::Exec {
            if is_rt {
                self.forget_delayed(task);
                return;
            }
            self.put_delayed_back(cx, task, false);
            if !facts.affinity.contains(self.fair.task(task).cpu) {
                let to = self.fair.any_allowed(cx, task);
                self.move_delayed(cx, task, to);
            }
        }
    }

    fn requeues_on_change(&self, what: Change) -> bool {
        what != Change::Slice || self.knobs.custom_slice
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
        let n_cpus = self.rqs.len() as u32;
        if timer < n_cpus {
            self.hrtick(cx, CpuId(timer));
        } else if timer < 2 * n_cpus {
            self.server_timer(cx, CpuId(timer - n_cpus));
        } else {
            self.throttle.end_period(cx, &mut self.fair, &self.rt);
        }
    }

    fn wait_bound(&self, company: Company<'_>) -> Option<Nanos> {
        let turn = self.base_slice.next_multiple_of(self.tick_ns) + self.tick_ns;
        (!company.sleepers).then(|| Nanos::from_ns(lag_bound(turn, company)))
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
