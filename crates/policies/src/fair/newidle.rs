// SPDX-License-Identifier: GPL-2.0-only
//! Balancing of a CPU that is about to go idle.
//!
//! Source: v6.12 `fair.c` `sched_balance_newidle`; spec cfs-eevdf §4E.

use schedlab_policy_api::Ctx;
use schedlab_units::{CpuId, Jiffies};

use super::Fair;
use super::balance::{IdleType, Plan};

impl Fair {
    /// `cpu` found nothing to run: plans moves towards it, unless the search would take longer than
    /// it idles on average.
    ///
    /// The kernel measures how long a search takes; here it is a number of ns for each CPU of the
    /// domain that is searched.
    pub(crate) fn balance_newidle(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, plan: &mut Plan) {
        if cx.wake_pending[cpu.index()] != 0 {
            return;
        }
        let now = cx.now.as_ns();
        self.cpu_mut(cpu).idle_stamp = Some(now);
        let mut next_balance = cx.jiffies.wrapping_add(self.hz);
        let mut pulled = false;
        if !self.domains.levels.is_empty() {
            let first_cost = self.domains.domain(cpu, 0).max_newidle_lb_cost;
            if self.overloaded && self.cpu(cpu).avg_idle >= first_cost {
                self.update_blocked_averages(now, cpu);
                self.stats.newidle_attempts += 1;
                pulled = self.newidle_walk(cx, cpu, &mut next_balance, plan);
            } else {
                self.pull_forward(cpu, 0, &mut next_balance);
            }
        }
        let this = self.cpu_mut(cpu);
        if this.next_balance.after(next_balance) {
            this.next_balance = next_balance;
        }
        if pulled {
            this.idle_stamp = None;
            self.stats.newidle_pulled += 1;
        } else {
            self.update_idle_core(cx, cpu);
        }
    }

    /// Tries the levels bottom-up until one yields a task or the time is used up.
    fn newidle_walk(
        &mut self,
        cx: &mut Ctx<'_>,
        cpu: CpuId,
        next_balance: &mut Jiffies,
        plan: &mut Plan,
    ) -> bool {
        let mut spent = 0;
        for level in 0..self.domains.levels.len() {
            self.pull_forward(cpu, level, next_balance);
            let domain = self.domains.domain_mut(cpu, level);
            if self.cpus[cpu.index()].avg_idle < spent + domain.max_newidle_lb_cost {
                break;
            }
            let mut weight = 1;
            if self.knobs.ni_random {
                weight = 1 + domain.newidle_ratio;
                if cx.rng.below(1024) > u64::from(weight) {
                    domain.count_newidle(0);
                    continue;
                }
                weight = (1024 + weight / 2) / weight;
            }
            let (moved, go_on) = self.balance_rq(cx, cpu, level, IdleType::NewlyIdle, plan);
            let span_weight = self.domains.levels[level].span_weight;
            let cost = span_weight * self.knobs.newidle_cost_per_cpu;
            spent += cost;
            let hz = self.hz;
            let domain = self.domains.domain_mut(cpu, level);
            if cost > 0 {
                domain.count_newidle(if moved > 0 { weight } else { 0 });
            }
            domain.note_cost(cx.jiffies, hz, cost);
            if moved > 0 || !go_on {
                self.note_total_cost(cpu, spent);
                return moved > 0;
            }
        }
        self.note_total_cost(cpu, spent);
        false
    }

    fn note_total_cost(&mut self, cpu: CpuId, spent: u64) {
        let this = self.cpu_mut(cpu);
        this.max_idle_balance_cost = this.max_idle_balance_cost.max(spent);
    }

    /// An idle CPU balances sooner than a busy one.
    ///
    /// Source: v6.12 `fair.c` `update_next_balance`.
    fn pull_forward(&self, cpu: CpuId, level: usize, next_balance: &mut Jiffies) {
        let interval = self.domains.interval(cpu, level, false, self.hz);
        let due = self.domains.domain(cpu, level).last_balance.wrapping_add(interval);
        if next_balance.after(due) {
            *next_balance = due;
        }
    }
}
