// SPDX-License-Identifier: GPL-2.0-only
//! Figures for people, and the checks of the structures.

use alloc::format;
use alloc::string::String;

use schedlab_policy_api::{Inspect, SchedClass, TaskState, View};
use schedlab_units::{CpuId, TaskId};

use super::Eevdf;
use super::arith::Fluid;

impl Eevdf {
    /// Why `task` stands where it does.
    ///
    /// Virtual times are relative to V of its queue, positive = in the future.
    pub(super) fn explain(&self, view: &View<'_>, task: TaskId, out: &mut Inspect) {
        if view.tasks.get(task).class.is_rt() {
            out.push(("prio", i64::from(view.tasks.get(task).static_prio().0)));
            out.push(("time_slice_ticks", i64::from(self.rt.time_slice(task))));
            return;
        }
        let (facts, entity) = (self.fair.task(task), self.entity(task));
        out.push(("weight", self.weight(task) as i64));
        out.push(("slice", entity.slice as i64));
        out.push(("load_avg", facts.avg.load_avg as i64));
        out.push(("util_avg", facts.avg.util_avg as i64));
        out.push(("on_rq", i64::from(facts.on_rq)));
        out.push(("delayed", i64::from(facts.delayed)));
        if !facts.on_rq {
            out.push(("lag", entity.vlag));
            return;
        }
        let fluid = self.fluid(facts.cpu);
        let avg_vruntime = fluid.base.offset(fluid.mean());
        out.push(("vruntime", entity.vruntime.0 as i64));
        out.push(("deadline", entity.deadline.0 as i64));
        out.push(("avg_vruntime", avg_vruntime.0 as i64));
        out.push(("lag", avg_vruntime.delta(entity.vruntime)));
        out.push(("eligible", i64::from(fluid.eligible(entity.vruntime))));
        let is_curr = self.fair.cpu(facts.cpu).curr == Some(task);
        out.push(("protected", i64::from(is_curr && entity.is_protected())));
        let least = self.nodes.min_slice(&self.rqs[facts.cpu.index()].tree);
        out.push(("least_slice_waiting", least.unwrap_or(0) as i64));
    }

    /// Totals of a run.
    pub(super) fn totals(&self, out: &mut Inspect) {
        let stats = &self.fair.stats;
        out.push(("base_slice_ns", self.base_slice as i64));
        out.push(("delayed_dequeues", self.n_delayed as i64));
        out.push(("delayed_requeued", self.n_requeued as i64));
        out.push(("delayed_moved", stats.delayed_moved as i64));
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
        for (task, facts) in view.tasks.iter().filter(|(_, facts)| !facts.class.is_rt()) {
            let runnable = matches!(facts.state, TaskState::Runnable | TaskState::Running);
            let own = self.fair.task(task);
            if own.on_rq != (runnable || own.delayed) || (runnable && own.delayed) {
                return Err(format!("task {task} is {:?} but counts as {own:?}", facts.state));
            }
            if runnable && own.cpu != facts.cpu {
                return Err(format!("task {task} of CPU {} is on CPU {}", facts.cpu, own.cpu));
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
        let (this, rq) = (self.fair.cpu(cpu), &self.rqs[cpu.index()]);
        let curr = self.queued_curr(cpu);
        let mut sums = Fluid { base: rq.fluid.base, sum: 0, weight: 0 };
        let (mut n, mut load, mut n_delayed, mut n_idle) = (0, 0, 0, 0);
        for task in self.fair.list(cpu) {
            let own = self.fair.task(task);
            if own.cpu != cpu || !own.on_rq {
                return Err(format!("task {task} is listed on CPU {cpu} but {own:?}"));
            }
            n += 1;
            load += own.load.weight;
            n_delayed += u32::from(own.delayed);
            n_idle += u32::from(view.tasks.get(task).class == SchedClass::Idle);
            if curr != Some(task) {
                sums.add(self.entity(task).vruntime, self.weight(task));
                if !self.nodes.has_keys(task, self.keys(task)) {
                    return Err(format!("keys of task {task} changed in the tree"));
                }
            }
        }
        let counted = (n, load, n_delayed, n_idle);
        let booked = (this.nr, this.load, this.nr_delayed, this.nr_idle);
        if counted != booked {
            return Err(format!("CPU {cpu} counts {booked:?}, its tasks are {counted:?}"));
        }
        if sums != rq.fluid {
            return Err(format!("CPU {cpu} sums {:?}, its tasks are {sums:?}", rq.fluid));
        }
        if rq.tree.len() + u32::from(curr.is_some()) != n || !self.nodes.is_sound(&rq.tree) {
            return Err(format!("the tree of CPU {cpu} with {} nodes is broken", rq.tree.len()));
        }
        let fluid = self.fluid(cpu);
        let any = self.fair.list(cpu).any(|task| fluid.eligible(self.entity(task).vruntime));
        if n > 0 && !any {
            return Err(format!("no entity of CPU {cpu} is eligible: {fluid:?}"));
        }
        Ok(n as usize)
    }

    /// What balancing knows about `cpu`.
    fn check_cpu(&self, view: &View<'_>, cpu: CpuId) -> Result<(), String> {
        let this = self.fair.cpu(cpu);
        let nr_rt = if self.throttle.holds(cpu) { 0 } else { self.rt.nr(cpu) };
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
