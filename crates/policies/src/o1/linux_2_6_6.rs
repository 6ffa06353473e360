// SPDX-License-Identifier: GPL-2.0-only
//! What 2.6.6 of May 2004 does otherwise than 2.6.0 ([`super::credit`]) and a knob alone cannot say.
//!
//! 1. `best_expired_prio`: an interactive task expires too while a task of better static priority
//!    waits in the expired array.
//! 2. `rt_wait_credit` off: real-time tasks are not credited, nor sent to the tail of their list,
//!    when they are picked.
//! 3. `setscheduler_preempts`: a change of class is followed by a test of preemption.
//! 4. `smp_rules=2.6.6`: cache heat and the dates of pulled tasks are taken from the last tick of
//!    the CPU they leave, which is an `unsigned long` and so wraps on 32 bits (spec §6 Q6); a change
//!    of affinity goes through the migration thread, which activates the task in full; nodes are
//!    compared by tasks in a tenth of a CPU, and an exec may move the task.
//! 5. `wrap_32_bit`, `cache_decay_ticks`, `timekeeping`: i386, and the kernel's timers.
//!
//! The interactivity code is that of 2.6.0; JUST_INTERACTIVE_SLEEP is spelt INTERACTIVE_SLEEP.
//!
//! Source: 2.6.6 `sched.c`; spec linux-2.6-spa §4.1.

use schedlab_policy_api::{Ctx, PolicyDef, SleepUnit, TickOrder, Timekeeping, TimerBase};
use schedlab_units::{CpuId, TaskId};

use super::policy::O1;
use super::task::TaskData;
use super::tunables::Knobs;

/// Time keeping of the kernel.
pub(super) const TIME: Timekeeping = Timekeeping {
    timers: TimerBase::Local(SleepUnit::TickNsec),
    order: TickOrder::Together,
    ..O1::INFO.time
};

/// Runnable tasks of its CPU beyond which an exec looks for another one.
const EXEC_STAYS: u32 = 2;

/// Time from when `task` was last dated to the last tick of its CPU: huge for one dated later, and,
/// on 32 bits, for nearly all (spec linux-2.6-spa §6 Q6).
fn age(task: &TaskData, last_tick: u64) -> u64 {
    last_tick.wrapping_sub(task.avg.timestamp)
}

/// Whether `task`, waiting on a CPU that last ticked at `last_tick`, has left its cache.
///
/// Source: 2.6.6 `sched.c` `can_migrate_task`; spec linux-2.6-spa §4.1 load_balance step 4.
pub(super) fn is_cold(task: &TaskData, last_tick: u64, knobs: &Knobs) -> bool {
    age(task, last_tick) > knobs.cache_decay_ticks * knobs.scale.jiffy_ns
}

/// The balancer pulls `task` from a CPU that last ticked at `last_tick`.
///
/// Source: 2.6.6 `sched.c` `pull_task`; spec linux-2.6-spa §4.1 load_balance step 5.
pub(super) fn date_pulled(task: &mut TaskData, last_tick: u64, now: u64) {
    task.avg.timestamp = now.wrapping_sub(age(task, last_tick));
    task.pulled = true;
}

impl O1 {
    /// Whether the expired array of `cpu` holds a task of better static priority than `curr`.
    ///
    /// Source: 2.6.6 `sched.c` `EXPIRED_STARVING`; spec linux-2.6-spa §4.1 tick step 4.
    pub(super) fn is_outranked(&self, cpu: CpuId, curr: TaskId) -> bool {
        self.knobs.best_expired_prio
            && self.tasks[curr.index()].static_prio > self.rqs[cpu.index()].best_expired_prio
    }

    /// `task` has joined the queue of another CPU: unless it was pulled, the migration thread, a
    /// task, activates it there.
    ///
    /// Source: 2.6.6 `sched.c` `move_task_away`; spec linux-2.6-spa §4.1 load_balance, end.
    pub(super) fn arrive(&mut self, cx: &Ctx<'_>, task: TaskId) {
        if self.knobs.smp_2_6_6 && !self.tasks[task.index()].pulled {
            self.activate(cx, task, false);
        }
    }

    /// Dates `task` once the test for preemption on `cpu` is over.
    ///
    /// Source: 2.6.6 `sched.c` `move_task_away`; spec linux-2.6-spa §4.1 load_balance, end.
    pub(super) fn date_arrival(&mut self, cpu: CpuId, task: TaskId) {
        let last_tick = self.rqs[cpu.index()].timestamp_last_tick;
        let data = &mut self.tasks[task.index()];
        if !core::mem::take(&mut data.pulled) && self.knobs.smp_2_6_6 {
            data.avg.timestamp = last_tick;
        }
    }

    /// Load that runs on `node` now: its tasks, or in 2.6.6 its tasks in a tenth of one of its CPUs.
    ///
    /// Source: 2.6.0-test1 and 2.6.6 `sched.c` `find_busiest_node`; specs linux-2.6-o1 §4.10,
    /// linux-2.6-spa §4.1.
    pub(super) fn node_running(&self, cx: &Ctx<'_>, node: usize) -> u32 {
        let cpus = || cx.topo.cpus().filter(|c| cx.topo.node(*c) == node);
        let running: u32 = cpus().map(|c| self.rqs[c.index()].nr_running).sum();
        if self.knobs.smp_2_6_6 { 10 * running / cpus().count() as u32 } else { running }
    }

    /// Where `task` goes at an exec: of the least loaded node the least loaded CPU, on NUMA machines
    /// and from a CPU with three tasks or more.
    ///
    /// Source: 2.6.6 `sched.c` `sched_balance_exec`, `sched_best_cpu`; spec linux-2.6-spa §4.1.
    pub(super) fn best_cpu_for_exec(&self, cx: &Ctx<'_>, task: TaskId) -> CpuId {
        let facts = cx.tasks.get(task);
        let length = |cpu: &CpuId| self.rqs[cpu.index()].nr_running;
        if !self.knobs.smp_2_6_6 || cx.topo.nodes() == 1 || length(&facts.cpu) <= EXEC_STAYS {
            return facts.cpu;
        }
        let nodes = 0..cx.topo.nodes() as usize;
        let node = nodes.min_by_key(|node| self.node_running(cx, *node)).expect("there is one");
        let cpus = cx.topo.cpus().filter(|cpu| cx.topo.node(*cpu) == node);
        let best = cpus.min_by_key(length).expect("a node has CPUs");
        if facts.affinity.contains(best) { best } else { facts.cpu }
    }
}
