// SPDX-License-Identifier: GPL-2.0-only
//! Figures for people, and the checks of the structures.

use alloc::format;
use alloc::string::String;

use schedlab_policy_api::{Inspect, SchedClass, TaskState, View};
use schedlab_units::{CpuId, TaskId};

use super::Cfs;
use crate::eevdf::arith::Fluid;
use crate::fair::scale_load_down;

impl Cfs {
    /// Why `task` stands where it does.
    pub(super) fn explain(&self, view: &View<'_>, task: TaskId, out: &mut Inspect) {
        let task_facts = view.tasks.get(task);
        if task_facts.class.is_rt() {
            out.push(("prio", i64::from(task_facts.static_prio().0)));
            out.push(("time_slice_ticks", i64::from(self.rt.time_slice(task))));
            return;
        }
        let (facts, entity) = (self.fair.task(task), self.entity(task));
        out.push(("weight", scale_load_down(facts.load.weight) as i64));
        out.push(("load_avg", facts.avg.load_avg as i64));
        out.push(("util_avg", facts.avg.util_avg as i64));
        out.push(("on_rq", i64::from(facts.on_rq)));
        out.push(("vruntime", entity.vruntime.0 as i64));
        out.push(("relative", i64::from(entity.relative)));
        if self.knobs.eevdf {
            out.push(("deadline", entity.deadline.0 as i64));
            let lag = self.avg_vruntime(facts.cpu).delta(entity.vruntime);
            out.push(("lag", if facts.on_rq { lag } else { entity.lag }));
            let eligible = facts.on_rq && self.fluid(facts.cpu).eligible(entity.vruntime);
            out.push(("eligible", i64::from(eligible)));
        }
        if !facts.on_rq {
            return;
        }
        let (cpu, this) = (facts.cpu, self.fair.cpu(facts.cpu));
        let min_vruntime = self.rq(cpu).min_vruntime();
        let is_idle = task_facts.class == SchedClass::Idle;
        out.push(("min_vruntime", min_vruntime.0 as i64));
        out.push(("ahead", entity.vruntime.delta(min_vruntime)));
        out.push(("slice", self.sched_slice(cpu, task, is_idle) as i64));
        if this.curr == Some(task) {
            out.push(("ran_since_pick", (entity.sum_exec - entity.prev_sum_exec) as i64));
        }
        out.push(("is_next", i64::from(this.next == Some(task))));
        out.push(("is_last", i64::from(this.last == Some(task))));
        out.push(("is_skip", i64::from(self.rq(cpu).skip == Some(task))));
    }

    /// Totals of a run.
    pub(super) fn totals(&self, out: &mut Inspect) {
        let (stats, spans) = (&self.fair.stats, &self.spans);
        out.push(("latency_ns", spans.latency as i64));
        out.push(("min_granularity_ns", spans.min_granularity as i64));
        out.push(("wakeup_granularity_ns", spans.wakeup_granularity as i64));
        out.push(("wake_affine", stats.wake_affine as i64));
        out.push(("newidle_attempts", stats.newidle_attempts as i64));
        out.push(("newidle_pulled", stats.newidle_pulled as i64));
        out.push(("periodic_pulled", stats.periodic_pulled as i64));
        out.push(("active_balanced", stats.active_balanced as i64));
    }

    /// I9: sums equal their parts, trees are in order, tasks are where they say they are.
    ///
    /// # Errors
    /// A sentence with the values that disagree.
    pub(super) fn check(&self, view: &View<'_>) -> Result<(), String> {
        self.rt.check(view)?;
        let mut n_queued = 0;
        for cpu in view.topo.cpus() {
            n_queued += self.check_queue(view, cpu)?;
            self.check_cpu(view, cpu)?;
        }
        let mut n_expected = 0;
        for (task, facts) in view.tasks.iter() {
            let (own, entity) = (self.fair.task(task), self.entity(task));
            let runnable = matches!(facts.state, TaskState::Runnable | TaskState::Running);
            let fair = !facts.class.is_rt();
            if own.on_rq != (runnable && fair) {
                return Err(format!("task {task} is {:?} but counts as {own:?}", facts.state));
            }
            if runnable && own.cpu != facts.cpu {
                return Err(format!("task {task} of CPU {} is on CPU {}", facts.cpu, own.cpu));
            }
            // On its way to a queue it may be either.
            let absolute = own.on_rq || (fair && facts.state.is_asleep());
            let on_its_way = fair && matches!(facts.state, TaskState::Waking | TaskState::Zombie);
            if !on_its_way && entity.relative == absolute {
                return Err(format!("task {task}, {:?}, has {entity:?}", facts.state));
            }
            n_expected += usize::from(own.on_rq);
        }
        if n_queued == n_expected {
            Ok(())
        } else {
            Err(format!("{n_queued} tasks are queued, {n_expected} should be"))
        }
    }

    /// The queue of `cpu`: number of its tasks.
    fn check_queue(&self, view: &View<'_>, cpu: CpuId) -> Result<usize, String> {
        let (this, rq) = (self.fair.cpu(cpu), self.rq(cpu));
        let curr = self.queued_curr(cpu);
        let (mut n, mut load, mut n_idle) = (0, 0, 0);
        let mut sums = Fluid { base: rq.min_vruntime(), sum: 0, weight: 0 };
        for task in self.fair.list(cpu) {
            let own = self.fair.task(task);
            if own.cpu != cpu || !own.on_rq {
                return Err(format!("task {task} is listed on CPU {cpu} but {own:?}"));
            }
            n += 1;
            load += own.load.weight;
            n_idle += u32::from(view.tasks.get(task).class == SchedClass::Idle);
            if curr != Some(task) {
                sums.add(self.entity(task).vruntime, own.load.weight);
                if !self.nodes.has_keys(task, self.keys(task)) {
                    return Err(format!("virtual time of task {task} changed in the tree"));
                }
            }
        }
        let (counted, booked) = ((n, load, n_idle), (this.nr, this.load, this.nr_idle));
        if counted != booked {
            return Err(format!("CPU {cpu} counts {booked:?}, its tasks are {counted:?}"));
        }
        if sums != rq.fluid {
            return Err(format!("CPU {cpu} sums {:?}, its tasks are {sums:?}", rq.fluid));
        }
        if rq.tree.len() + u32::from(curr.is_some()) != n || !self.nodes.is_sound(&rq.tree) {
            return Err(format!("the tree of CPU {cpu} with {} nodes is broken", rq.tree.len()));
        }
        for buddy in [this.next, this.last, rq.skip].into_iter().flatten() {
            if self.fair.task(buddy).cpu != cpu || !self.fair.task(buddy).on_rq {
                return Err(format!("buddy {buddy} of CPU {cpu} is not on its queue"));
            }
        }
        Ok(n as usize)
    }

    /// What balancing knows about `cpu`.
    fn check_cpu(&self, view: &View<'_>, cpu: CpuId) -> Result<(), String> {
        let this = self.fair.cpu(cpu);
        let throttled = self.throttle.holds(cpu);
        let nr_rt = if throttled { 0 } else { self.rt.nr(cpu) };
        if this.nr_running != this.nr + nr_rt {
            return Err(format!("CPU {cpu} counts {} running tasks", this.nr_running));
        }
        if self.fair.empty.contains(cpu) != (this.nr_running == 0) {
            return Err(format!("CPU {cpu} with {} tasks is wrongly filed", this.nr_running));
        }
        let curr = view.curr[cpu.index()];
        let fair = curr.filter(|curr| !view.tasks.get(*curr).class.is_rt());
        if this.curr != fair || this.runs_rt != (curr.is_some() && fair.is_none()) {
            return Err(format!("CPU {cpu} runs {curr:?}, not {:?}", this.curr));
        }
        Ok(())
    }
}
