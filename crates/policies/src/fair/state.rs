// SPDX-License-Identifier: GPL-2.0-only
//! Facts about CPUs and tasks that the choice of CPUs and balancing need.

use alloc::vec::Vec;

use schedlab_policy_api::{Build, Ctx, SchedClass};
use schedlab_units::{CpuId, CpuSet, Jiffies, Nice, TaskId};

use super::domains::{CAPACITY_SCALE, Domains};
use super::pelt::{Removed, SchedAvg};
use super::weight::Load;

/// End of a list.
pub(super) const NONE: u32 = u32::MAX;

/// Features and tunables of CPU choice and balancing, with the kernel's names.
#[derive(Clone, Debug)]
pub(crate) struct FairKnobs {
    pub(crate) ttwu_queue: bool,
    pub(crate) sis_util: bool,
    pub(crate) wa_idle: bool,
    pub(crate) wa_weight: bool,
    pub(crate) wa_bias: bool,
    pub(crate) util_est: bool,
    pub(crate) attach_age_load: bool,
    pub(crate) cache_hot_buddy: bool,
    pub(crate) lb_min: bool,
    pub(crate) ni_random: bool,
    pub(crate) migration_cost: u64,
    pub(crate) nr_migrate: u32,
    pub(crate) newidle_cost_per_cpu: u64,
}

/// Whom a task wakes, and how often that changes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wakee {
    /// The last woken task.
    pub(crate) last: Option<TaskId>,
    /// Number of changes, halved once a second at most.
    pub(crate) flips: u32,
    /// When it was last halved.
    pub(crate) decay_ts: Jiffies,
}

/// A task of the fair class.
#[derive(Clone, Debug)]
pub(crate) struct FairTask {
    /// The CPU whose queue it is on or left last; a delayed task may have been moved since it went
    /// to sleep.
    pub(crate) cpu: CpuId,
    /// It counts on that queue, be it waiting, running or delayed.
    pub(crate) on_rq: bool,
    /// It sleeps but still counts (6.12 `sched_delayed`).
    pub(crate) delayed: bool,
    /// Its tracked load is part of its queue's.
    pub(crate) attached: bool,
    /// Its weight.
    pub(crate) load: Load,
    /// Its tracked load.
    pub(crate) avg: SchedAvg,
    /// Up to when its run time is accounted, ns; none = it has not run here, so it is cache-cold.
    pub(crate) exec_start: Option<u64>,
    /// Whom it wakes.
    pub(crate) wakee: Wakee,
    /// The CPU before the last.
    pub(crate) recent_used_cpu: CpuId,
    pub(super) before: u32,
    pub(super) after: u32,
}

impl FairTask {
    fn new(cpu: CpuId) -> Self {
        Self {
            cpu,
            on_rq: false,
            delayed: false,
            attached: false,
            load: Load::of_task(SchedClass::Normal, Nice::ZERO),
            avg: SchedAvg::default(),
            exec_start: None,
            wakee: Wakee::default(),
            recent_used_cpu: cpu,
            before: NONE,
            after: NONE,
        }
    }
}

/// A CPU: its queue of fair tasks, and what balancing knows about it.
#[derive(Clone, Debug)]
pub(crate) struct FairCpu {
    /// The fair task that is current.
    pub(crate) curr: Option<TaskId>,
    /// The task to be preferred at the next pick.
    pub(crate) next: Option<TaskId>,
    /// The task that a wake-up preempted, to be preferred as well (up to 6.5).
    pub(crate) last: Option<TaskId>,
    /// The task that gave way by `sched_yield` (up to 6.5).
    pub(crate) skip: Option<TaskId>,
    /// Queued tasks of all classes, the current one included.
    pub(crate) nr_running: u32,
    /// Queued fair tasks, the current one included.
    pub(crate) nr: u32,
    /// How many of those are delayed.
    pub(crate) nr_delayed: u32,
    /// How many of those are SCHED_IDLE.
    pub(crate) nr_idle: u32,
    /// Sum of the weights of the queued fair tasks.
    pub(crate) load: u64,
    /// Tracked load of the queue.
    pub(crate) avg: SchedAvg,
    /// Tracked load that left since its last update.
    pub(crate) removed: Removed,
    /// Tracked time of real-time tasks.
    pub(crate) avg_rt: SchedAvg,
    /// A real-time task is current.
    pub(crate) runs_rt: bool,
    /// Capacity left to fair tasks, as last computed.
    pub(crate) capacity: u64,
    /// Average length of idle periods, ns.
    pub(crate) avg_idle: u64,
    /// When it went idle.
    pub(crate) idle_stamp: Option<u64>,
    /// Largest cost of newly idle balancing over all levels, ns.
    pub(crate) max_idle_balance_cost: u64,
    /// When balancing is due.
    pub(crate) next_balance: Jiffies,
    /// The CPU that wants its current task (active balance).
    pub(crate) push_cpu: Option<CpuId>,
    /// Whom interrupts that find it idle wake.
    pub(crate) idle_wakee: Wakee,
    pub(super) head: u32,
    pub(super) tail: u32,
}

/// How often balancing did what, for the result.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FairStats {
    pub(crate) newidle_attempts: u64,
    pub(crate) newidle_pulled: u64,
    pub(crate) periodic_pulled: u64,
    pub(crate) active_balanced: u64,
    pub(crate) delayed_moved: u64,
    pub(crate) wake_affine: u64,
}

/// All CPUs and tasks, seen by CPU choice and balancing.
#[derive(Clone, Debug)]
pub(crate) struct Fair {
    pub(crate) knobs: FairKnobs,
    pub(crate) hz: u64,
    pub(crate) domains: Domains,
    pub(crate) cpus: Vec<FairCpu>,
    pub(crate) tasks: Vec<FairTask>,
    /// CPUs with nothing queued.
    pub(crate) empty: CpuSet,
    /// CPUs with nothing but SCHED_IDLE tasks queued.
    pub(crate) only_idle: CpuSet,
    /// Some CPU had two or more queued tasks when last looked at.
    pub(crate) overloaded: bool,
    /// The last CPU that was taken for want of a better reason (`cpumask_any_and_distribute`).
    pub(crate) distributed: CpuId,
    pub(crate) stats: FairStats,
}

impl Fair {
    /// An idle machine.
    pub(crate) fn new(knobs: FairKnobs, build: Build<'_>) -> Self {
        let cpu = FairCpu {
            curr: None,
            next: None,
            last: None,
            skip: None,
            nr_running: 0,
            nr: 0,
            nr_delayed: 0,
            nr_idle: 0,
            load: 0,
            avg: SchedAvg::default(),
            removed: Removed::default(),
            avg_rt: SchedAvg::default(),
            runs_rt: false,
            capacity: CAPACITY_SCALE,
            avg_idle: 2 * knobs.migration_cost,
            idle_stamp: None,
            max_idle_balance_cost: knobs.migration_cost,
            next_balance: Jiffies(0),
            push_cpu: None,
            idle_wakee: Wakee::default(),
            head: NONE,
            tail: NONE,
        };
        Self {
            hz: u64::from(build.hz.get()),
            domains: Domains::new(build.topo),
            cpus: alloc::vec![cpu; build.topo.n_cpus()],
            tasks: Vec::with_capacity(build.n_tasks),
            empty: *build.topo.all(),
            only_idle: CpuSet::EMPTY,
            overloaded: false,
            distributed: CpuId(0),
            stats: FairStats::default(),
            knobs,
        }
    }

    /// Prepares the slot of a forked task.
    ///
    /// Wake-up habits are the parent's, as the kernel copies the whole task.
    ///
    /// Source: v6.12 `core.c` `dup_task_struct`, `sched_fork`.
    pub(crate) fn fork(&mut self, cx: &Ctx<'_>, child: TaskId, parent: Option<TaskId>) {
        let facts = cx.tasks.get(child);
        while self.tasks.len() <= child.index() {
            self.tasks.push(FairTask::new(facts.cpu));
        }
        let load = Load::of_task(facts.class, facts.nice);
        let avg = SchedAvg::new_task(super::scale_load_down(load.weight));
        let wakee = parent.map_or(Wakee::default(), |parent| self.task(parent).wakee);
        self.tasks[child.index()] = FairTask { load, avg, wakee, ..FairTask::new(facts.cpu) };
    }

    /// The facts of `task`.
    #[inline]
    pub(crate) fn task(&self, task: TaskId) -> &FairTask {
        &self.tasks[task.index()]
    }
    /// The facts of `task`, to be changed.
    #[inline]
    pub(crate) fn task_mut(&mut self, task: TaskId) -> &mut FairTask {
        &mut self.tasks[task.index()]
    }
    /// The facts of `cpu`.
    #[inline]
    pub(crate) fn cpu(&self, cpu: CpuId) -> &FairCpu {
        &self.cpus[cpu.index()]
    }
    /// The facts of `cpu`, to be changed.
    #[inline]
    pub(crate) fn cpu_mut(&mut self, cpu: CpuId) -> &mut FairCpu {
        &mut self.cpus[cpu.index()]
    }

    /// Whether `cpu` idles with nothing queued and nothing on its way.
    ///
    /// Source: v6.12 `syscalls.c` `idle_cpu`.
    #[inline]
    pub(crate) fn idle_cpu(&self, cx: &Ctx<'_>, cpu: CpuId) -> bool {
        self.empty.contains(cpu) && cx.curr(cpu).is_none() && cx.wake_pending[cpu.index()] == 0
    }
    /// Whether `cpu` idles or runs SCHED_IDLE tasks only.
    #[inline]
    pub(crate) fn idle_or_sched_idle(&self, cx: &Ctx<'_>, cpu: CpuId) -> bool {
        self.only_idle.contains(cpu) || self.idle_cpu(cx, cpu)
    }

    /// Run time in ns of `task` since it was last booked, which it is up to `now` then.
    pub(crate) fn book_run(&mut self, now: u64, task: TaskId) -> u64 {
        let start = self.task_mut(task).exec_start.replace(now);
        start.map_or(0, |start| now.saturating_sub(start))
    }

    /// `task` is no longer preferred on `cpu`, nor passed over.
    ///
    /// Source: v6.1 `fair.c` `clear_buddies`.
    pub(crate) fn clear_buddies(&mut self, cpu: CpuId, task: TaskId) {
        let this = self.cpu_mut(cpu);
        for buddy in [&mut this.next, &mut this.last, &mut this.skip] {
            if *buddy == Some(task) {
                *buddy = None;
            }
        }
    }

    /// A wake-up ends an idle period of `cpu`.
    ///
    /// Source: v6.12 `core.c` `ttwu_do_activate`.
    pub(crate) fn end_idle(&mut self, cpu: CpuId, now: u64) {
        let this = self.cpu_mut(cpu);
        if let Some(since) = this.idle_stamp.take() {
            let avg = update_avg(this.avg_idle, now - since);
            this.avg_idle = avg.min(2 * this.max_idle_balance_cost);
        }
    }
}

/// A running mean with weight 1/8 for `sample`.
///
/// Source: v6.12 `sched.h` `update_avg`.
fn update_avg(avg: u64, sample: u64) -> u64 {
    let diff = sample.wrapping_sub(avg) as i64;
    avg.wrapping_add((diff / 8) as u64)
}

#[cfg(test)]
mod tests {
    //! Rows of cfs-eevdf §9, and more.

    use super::*;
    use crate::csv::rows;

    #[test]
    fn vectors_67_avg_idle() {
        for row in rows(include_str!("../eevdf/vectors/t12-avg-idle.csv")) {
            assert_eq!(
                update_avg(row.get("avg"), row.get("sample")),
                row.get("new"),
                "row {}",
                row.text("row")
            );
        }
    }
}
