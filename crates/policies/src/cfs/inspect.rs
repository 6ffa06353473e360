// SPDX-License-Identifier: GPL-2.0-only
//! Figures for people, and the checks that only CFS has.

use alloc::format;
use alloc::string::String;

use schedlab_policy_api::{Company, Inspect, SchedClass, Task, TaskState, View};
use schedlab_units::{Nanos, TaskId};

use super::Cfs;
use super::arith::vruntime_bound;
use crate::eevdf::arith::lag_bound;
use crate::fair::{Report, scale_load_down};

impl Report for Cfs {
    fn longest_wait(&self, company: Company<'_>) -> Option<Nanos> {
        let n_tasks = company.others.len() as u64 + 1;
        if self.own.knobs.eevdf {
            let turn = self.own.request.next_multiple_of(self.tick_ns) + self.tick_ns;
            return (!company.sleepers).then(|| Nanos::from_ns(lag_bound(turn, company)));
        }
        let turn = self.own.spans.period(n_tasks) + self.tick_ns;
        // Only wake-ups make buddies, and only who wakes has credit.
        let (granularity, credit) = match company.sleepers {
            true => (self.own.spans.wakeup_granularity, self.own.spans.latency),
            false => (0, 0),
        };
        Some(Nanos::from_ns(vruntime_bound(turn, granularity, credit, company)))
    }

    fn explain(&self, view: &View<'_>, task: TaskId, out: &mut Inspect) {
        let (facts, entity) = (self.fair.task(task), self.entity(task));
        out.push(("weight", scale_load_down(facts.load.weight) as i64));
        out.push(("load_avg", facts.avg.load_avg as i64));
        out.push(("util_avg", facts.avg.util_avg as i64));
        out.push(("on_rq", i64::from(facts.on_rq)));
        out.push(("vruntime", entity.vruntime.0 as i64));
        out.push(("relative", i64::from(entity.relative)));
        if self.own.knobs.eevdf {
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
        let min_vruntime = self.min_vruntime(cpu);
        let is_idle = view.tasks.get(task).class == SchedClass::Idle;
        out.push(("min_vruntime", min_vruntime.0 as i64));
        out.push(("ahead", entity.vruntime.delta(min_vruntime)));
        out.push(("slice", self.sched_slice(cpu, task, is_idle) as i64));
        if this.curr == Some(task) {
            out.push(("ran_since_pick", (entity.sum_exec - entity.prev_sum_exec) as i64));
        }
        out.push(("is_next", i64::from(this.next == Some(task))));
        out.push(("is_last", i64::from(this.last == Some(task))));
        out.push(("is_skip", i64::from(this.skip == Some(task))));
    }

    fn own_totals(&self, out: &mut Inspect) {
        let spans = &self.own.spans;
        out.push(("latency_ns", spans.latency as i64));
        out.push(("min_granularity_ns", spans.min_granularity as i64));
        out.push(("wakeup_granularity_ns", spans.wakeup_granularity as i64));
    }

    fn check_task(&self, task: TaskId, facts: &Task) -> Result<(), String> {
        let (own, entity) = (self.fair.task(task), self.entity(task));
        let fair = !facts.class.is_rt();
        // On its way to a queue it may be either.
        let absolute = own.on_rq || (fair && facts.state.is_asleep());
        let on_its_way = fair && matches!(facts.state, TaskState::Waking | TaskState::Zombie);
        if !on_its_way && entity.relative == absolute {
            return Err(format!("task {task}, {:?}, has {entity:?}", facts.state));
        }
        Ok(())
    }
}
