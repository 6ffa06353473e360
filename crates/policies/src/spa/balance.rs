// SPDX-License-Identifier: GPL-2.0-only
//! Balancing between CPUs: `rebalance_tick` and `load_balance` of 2.6.6 without NUMA.

use schedlab_policy_api::{Ctx, TaskState};
use schedlab_units::CpuId;

use super::policy::Spa;
use crate::linux_2_6::busiest::find_busiest;

impl Spa {
    /// An idle CPU looks around every millisecond, a busy one five times a second.
    ///
    /// Source: 2.6.6 `sched.c` `rebalance_tick`; spec §4.1 load_balance, callers.
    pub(super) fn rebalance_tick(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, idle: bool) {
        let period = if idle { self.knobs.idle_rebalance } else { self.knobs.busy_rebalance };
        if self.knobs.smp && cx.jiffies.0.is_multiple_of(period) {
            self.load_balance(cx, cpu, idle);
        }
    }

    /// Pulls tasks of the busiest CPU to `cpu`.
    ///
    /// An idle CPU takes one. A busy one stops when its budget is exactly 0 after a pull, so that a
    /// budget of 0 takes everything movable (spec §6 Q7).
    ///
    /// Source: 2.6.6 `sched.c` `load_balance`, `pull_task`; spec §4.1 steps 4 and 5, §4.2.
    pub(super) fn load_balance(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, idle: bool) {
        let Self { arrays, tasks, rqs, prev_cpu_load, knobs, stats, .. } = self;
        let n_cpus = rqs.len();
        let memory = &mut prev_cpu_load[cpu.index() * n_cpus..][..n_cpus];
        let length = |cpu: usize| rqs[cpu].nr_running;
        let found = find_busiest(cpu.index(), idle, 0..n_cpus, length, memory);
        cx.scanned(n_cpus);
        let Some((busiest, mut budget)) = found else { return };
        let last_tick = rqs[busiest].timestamp_last_tick;
        for task in arrays.scan(CpuId::from_index(busiest)) {
            cx.scanned(1);
            let facts = cx.tasks.get(task);
            let avg = &mut tasks[task.index()];
            // The last tick is an unsigned long, the timestamp a u64: on 32 bits the difference
            // wraps to a huge value after 4.29 s (spec §6 Q6).
            let age = last_tick.wrapping_sub(avg.avg.timestamp);
            let movable = facts.state == TaskState::Runnable
                && !facts.on_cpu
                && facts.affinity.contains(cpu)
                && (idle || age > knobs.cache_decay_ns);
            if !movable {
                continue;
            }
            avg.avg.timestamp = cx.now.as_ns().wrapping_sub(age);
            avg.pulled = true;
            stats.pulls += 1;
            cx.migrate(task, cpu);
            budget -= 1;
            if idle || budget == 0 {
                break;
            }
        }
    }
}
