// SPDX-License-Identifier: GPL-2.0-only
//! Load balancing between run queues: at ticks, and before a CPU goes idle.

use schedlab_policy_api::Ctx;
use schedlab_units::{CpuId, CpuSet, TaskId};

use super::linux_2_6_6;
use super::policy::O1;
use super::task::TaskData;
use super::tunables::{Clock, Knobs};
use crate::linux_2_6::busiest;

/// Load of a remote node that draws tasks away, in percent of the own (NODE_THRESHOLD).
const NODE_THRESHOLD: u64 = 125;

/// Number of tasks that a busy CPU with `nr` pulls from one with `max`; none = too few to bother.
/// 0 means, by the kernel's loop, all there are.
///
/// Source: 2.6.0-test1 and 2.6.0 `sched.c` `find_busiest_queue`; spec §4.10 step 3, §5.7.
pub(super) fn busy_imbalance(max: u32, nr: u32, knobs: &Knobs) -> Option<u32> {
    let imbalance = if knobs.clock == Clock::NsCredit {
        busiest::busy_imbalance(max, nr)?
    } else {
        let (max, nr) = (i64::from(max), i64::from(nr));
        let imbalance = (max - nr) / 2;
        (imbalance >= (max + 3) / 4).then_some(imbalance)?
    };
    u32::try_from(imbalance).ok()
}

/// Whether a queue with `busiest` tasks now still has enough for one with `nr`.
///
/// Source: 2.6.0-test1 and 2.6.0 `sched.c` `find_busiest_queue`; spec §4.10 step 4, §5.7.
pub(super) fn still_busier(busiest: u32, nr: u32, knobs: &Knobs) -> bool {
    busiest > if knobs.clock == Clock::NsCredit { nr } else { nr + 1 }
}

impl O1 {
    /// Balancing at a tick of `cpu`: within its node, and on NUMA machines from the busiest node.
    ///
    /// Source: 2.6.0-test1 `sched.c` `rebalance_tick`; spec §2, §4.10.
    pub(super) fn rebalance_tick(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, idle: bool) {
        if self.knobs.n_cpus == 1 {
            return;
        }
        let mut pulled = 0;
        let rate = u64::from(self.knobs.hz.get());
        // IDLE_ and BUSY_REBALANCE_TICK, and those of nodes.
        let (period, times) = if idle { (rate / 1000, 5) } else { (rate / 5, 2) };
        let period = period.max(1);
        if cx.topo.nodes() > 1 && cx.jiffies.0.is_multiple_of(period * times) {
            pulled = self.balance_node(cx, cpu, idle);
        }
        if cx.jiffies.0.is_multiple_of(period) {
            let node = *cx.topo.node_cpus(cpu);
            self.load_balance(cx, cpu, idle, &node, pulled);
        }
    }

    /// Balancing before `cpu` goes idle; if nothing comes, what `schedule` then does.
    ///
    /// Source: 2.6.0-test1 `sched.c` `schedule`; spec §4.6 step 3.
    pub(super) fn idle_balance(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) {
        let node = *cx.topo.node_cpus(cpu);
        if self.knobs.n_cpus == 1 || self.load_balance(cx, cpu, true, &node, 0) == 0 {
            self.rqs[cpu.index()].expired_timestamp = 0;
            let prev = cx.curr(cpu);
            self.leave(cx, prev);
        }
    }

    /// Pulls from the busiest other node if that is busy enough; the number of tasks asked for.
    ///
    /// Source: 2.6.0-test1 `sched.c` `balance_node`, `find_busiest_node`; spec §4.10.
    fn balance_node(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, idle: bool) -> u32 {
        let own = cx.topo.node(cpu);
        let own_load = self.node_load(cx, cpu, own);
        let (mut best, mut busiest) = (own_load, None);
        for node in (0..cx.topo.nodes() as usize).filter(|node| *node != own) {
            let load = self.node_load(cx, cpu, node);
            if load > best && 100 * u64::from(load) > NODE_THRESHOLD * u64::from(own_load) {
                (best, busiest) = (load, Some(node));
            }
        }
        let Some(node) = busiest else { return 0 };
        let mut mask: CpuSet = cx.topo.cpus().filter(|c| cx.topo.node(*c) == node).collect();
        mask.insert(cpu);
        self.load_balance(cx, cpu, idle, &mask, 0)
    }

    /// Load of `node` as `cpu` sees it: half of what it was plus what runs now.
    fn node_load(&mut self, cx: &Ctx<'_>, cpu: CpuId, node: usize) -> u32 {
        let running = self.node_running(cx, node);
        let load = &mut self.rqs[cpu.index()].prev_node_load[node];
        *load = *load / 2 + running;
        *load
    }

    /// Asks for tasks of the busiest CPU of `mask`; `pulled` were asked for in the same hook. The
    /// number asked for.
    ///
    /// Source: 2.6.0-test1 `sched.c` `load_balance`; spec §4.10.
    fn load_balance(
        &mut self,
        cx: &mut Ctx<'_>,
        cpu: CpuId,
        idle: bool,
        mask: &CpuSet,
        pulled: u32,
    ) -> u32 {
        let present = self.rqs[cpu.index()].nr_running + pulled;
        let before = self.rqs[cpu.index()].prev_cpu_load[cpu.index()];
        let nr = busiest::own_load(present, before, idle);
        let Some((busiest, max)) = self.find_busiest_queue(cpu, idle, mask) else { return 0 };
        let mut to_pull = match busy_imbalance(max, nr, &self.knobs) {
            Some(imbalance) if !idle => i64::from(imbalance),
            _ if idle => 1,
            _ => return 0,
        };
        if !still_busier(self.rqs[busiest.index()].nr_running, nr, &self.knobs) {
            return 0;
        }
        let (mut n_seen, mut n_asked) = (0, 0);
        let arrays = [self.expired(busiest), self.active(busiest)];
        let last_tick = self.rqs[busiest.index()].timestamp_last_tick;
        let Self { arrays: all, tasks, knobs, .. } = self;
        for task in arrays.into_iter().flat_map(|array| all.iter_from_tails(array)) {
            n_seen += 1;
            let data = &mut tasks[task.index()];
            if !can_migrate(cx, task, cpu, data, idle, last_tick, knobs) {
                continue;
            }
            if knobs.smp_2_6_6 {
                linux_2_6_6::date_pulled(data, last_tick, cx.now.as_ns());
            }
            cx.migrate(task, cpu);
            n_asked += 1;
            // 2.6.0 can start at 0, passes it, and goes on to the end (spec §6.14).
            to_pull -= 1;
            if to_pull == 0 {
                break;
            }
        }
        cx.scanned(n_seen);
        self.stats.pulls += i64::from(n_asked);
        n_asked
    }

    /// The CPU of `mask` with the most tasks, two at least, and that number.
    fn find_busiest_queue(
        &mut self,
        cpu: CpuId,
        idle: bool,
        mask: &CpuSet,
    ) -> Option<(CpuId, u32)> {
        let mut memory = core::mem::take(&mut self.rqs[cpu.index()].prev_cpu_load);
        let present = |other: usize| self.rqs[other].nr_running;
        let cpus = mask.iter().map(CpuId::index);
        let found = busiest::busiest_queue(cpu.index(), idle, cpus, present, &mut memory);
        self.rqs[cpu.index()].prev_cpu_load = memory;
        found.map(|(busiest, max)| (CpuId::from_index(busiest), max))
    }
}

/// Whether `task` may be pulled to `cpu` from a CPU that last ticked at `last_tick`.
///
/// 2.6.0-test1 and G3 have the rule for hot caches the wrong way round: it binds idle CPUs.
///
/// Source: 2.6.0-test1, G3, 2.6.0 and 2.6.6 `sched.c` `can_migrate_task`; specs linux-2.6-o1 §4.10
/// step 5, §5.2, linux-2.6-spa §4.1 load_balance step 4.
fn can_migrate(
    cx: &Ctx<'_>,
    task: TaskId,
    cpu: CpuId,
    data: &TaskData,
    idle: bool,
    last_tick: u64,
    knobs: &Knobs,
) -> bool {
    let facts = cx.tasks.get(task);
    if facts.on_cpu || !facts.affinity.contains(cpu) {
        return false;
    }
    if knobs.smp_2_6_6 {
        return idle || linux_2_6_6::is_cold(data, last_tick, knobs);
    }
    let since = cx.now.as_ns().saturating_sub(data.avg.timestamp);
    match knobs.clock {
        Clock::Tick => !idle || cx.jiffies.0 - data.last_run > knobs.cache_decay_ticks,
        Clock::Ns => !idle || since >> 10 > knobs.cache_decay_ticks,
        Clock::NsCredit => idle || since / knobs.hz.tick().as_ns() > knobs.cache_decay_ticks,
    }
}
