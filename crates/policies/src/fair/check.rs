// SPDX-License-Identifier: GPL-2.0-only
//! Totals of a run, and the checks of the structures.

use alloc::format;
use alloc::string::String;

use schedlab_policy_api::{Inspect, SchedClass, TaskState, View};
use schedlab_units::CpuId;

use super::dialect::{Dialect, Order, Report};
use super::policy::FairPolicy;
use super::{Fair, Fluid};

impl Fair {
    /// How often balancing did what.
    pub(super) fn totals(&self, out: &mut Inspect) {
        let stats = &self.stats;
        out.push(("wake_affine", stats.wake_affine as i64));
        out.push(("newidle_attempts", stats.newidle_attempts as i64));
        out.push(("newidle_pulled", stats.newidle_pulled as i64));
        out.push(("periodic_pulled", stats.periodic_pulled as i64));
        out.push(("active_balanced", stats.active_balanced as i64));
    }
}

impl<D, E> FairPolicy<D, E>
where
    Self: Dialect,
{
    /// I9: sums equal their parts, trees are in order, tasks are where they say they are.
    ///
    /// # Errors
    /// A sentence with the values that disagree.
    pub(super) fn check(&self, view: &View<'_>) -> Result<(), String> {
        self.rt.check(view)?;
        let mut n_queued = 0;
        for cpu in view.topo.cpus() {
            n_queued += self.check_queue(view, cpu)?;
            self.check_clock(cpu)?;
            self.check_cpu(view, cpu)?;
        }
        let mut n_expected = 0;
        for (task, facts) in view.tasks.iter() {
            let own = self.fair.task(task);
            let runnable = matches!(facts.state, TaskState::Runnable | TaskState::Running);
            let counts = !facts.class.is_rt() && (runnable || own.delayed);
            if own.on_rq != counts || (runnable && own.delayed) {
                return Err(format!("task {task} is {:?} but counts as {own:?}", facts.state));
            }
            if runnable && own.cpu != facts.cpu {
                return Err(format!("task {task} of CPU {} is on CPU {}", facts.cpu, own.cpu));
            }
            self.check_task(task, facts)?;
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
                let keys = self.keys(task);
                sums.add(keys.vruntime, self.weight(task));
                if !self.nodes.has_keys(task, keys) {
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
        for buddy in [this.next, this.last, this.skip].into_iter().flatten() {
            if self.fair.task(buddy).cpu != cpu || !self.fair.task(buddy).on_rq {
                return Err(format!("buddy {buddy} of CPU {cpu} is not on its queue"));
            }
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
