// SPDX-License-Identifier: GPL-2.0-only
//! Figures for people, and the checks that only EEVDF has.

use alloc::format;
use alloc::string::String;

use schedlab_policy_api::{Company, Inspect, View};
use schedlab_units::{CpuId, Nanos, TaskId};

use super::Eevdf;
use super::arith::lag_bound;
use crate::fair::{Order, Report};

impl Report for Eevdf {
    fn longest_wait(&self, company: Company<'_>) -> Option<Nanos> {
        let turn = self.own.base_slice.next_multiple_of(self.tick_ns) + self.tick_ns;
        (!company.sleepers).then(|| Nanos::from_ns(lag_bound(turn, company)))
    }

    fn explain(&self, _: &View<'_>, task: TaskId, out: &mut Inspect) {
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

    fn own_totals(&self, out: &mut Inspect) {
        out.push(("base_slice_ns", self.own.base_slice as i64));
        out.push(("delayed_dequeues", self.own.n_delayed as i64));
        out.push(("delayed_requeued", self.own.n_requeued as i64));
        out.push(("delayed_moved", self.fair.stats.delayed_moved as i64));
    }

    fn check_clock(&self, cpu: CpuId) -> Result<(), String> {
        let fluid = self.fluid(cpu);
        let any = self.fair.list(cpu).any(|task| fluid.eligible(self.entity(task).vruntime));
        if self.fair.cpu(cpu).nr > 0 && !any {
            return Err(format!("no entity of CPU {cpu} is eligible: {fluid:?}"));
        }
        Ok(())
    }
}
