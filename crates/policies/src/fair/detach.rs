// SPDX-License-Identifier: GPL-2.0-only
//! Which tasks leave a CPU in one balancing attempt.
//!
//! Source: v6.12 `fair.c` `detach_tasks`, `can_migrate_task`; spec cfs-eevdf §4E.

use schedlab_policy_api::{Ctx, SchedClass};
use schedlab_units::{CpuId, CpuSet, TaskId};

use super::Fair;
use super::balance::{IdleType, Plan};

/// What an imbalance is measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Migration {
    /// Tracked load.
    Load,
    /// Utilization.
    Util,
    /// Number of tasks.
    Task,
}

/// One balancing attempt (kernel `struct lb_env`).
#[derive(Clone, Debug)]
pub(crate) struct Env {
    /// Level of the domain.
    pub(crate) level: usize,
    /// The CPU that balances.
    pub(crate) cpu: CpuId,
    /// The CPU that is pulled to: the balancing one, or another of its group.
    pub(crate) dst_cpu: CpuId,
    /// The CPU that is pulled from.
    pub(crate) src_cpu: CpuId,
    /// State of the CPU that pulls.
    pub(crate) idle: IdleType,
    /// CPUs that still take part.
    pub(crate) cpus: CpuSet,
    /// What is left to be moved, in the unit of `migration`.
    pub(crate) imbalance: i64,
    /// What the imbalance is measured in.
    pub(crate) migration: Migration,
    /// A task may not use `dst_cpu`.
    pub(crate) some_pinned: bool,
    /// No task was found that may use `dst_cpu`.
    pub(crate) all_pinned: bool,
    /// Another CPU of the group that a task may use.
    pub(crate) new_dst_cpu: Option<CpuId>,
    /// Tasks looked at so far.
    pub(crate) loops: u32,
    /// Tasks to look at.
    pub(crate) loops_max: u32,
    /// Tasks left on `src_cpu` when those chosen are gone.
    pub(crate) src_nr_running: u32,
}

impl Fair {
    /// Plans moves of tasks of `env.src_cpu`, the least recently run first, until the imbalance is
    /// gone; returns how many.
    ///
    /// Source: v6.12 `fair.c` `detach_tasks`, `attach_tasks`.
    pub(crate) fn detach_tasks(
        &mut self,
        cx: &mut Ctx<'_>,
        env: &mut Env,
        plan: &mut Plan,
    ) -> usize {
        let planned = plan.len();
        if env.src_nr_running <= 1 {
            env.all_pinned = false;
            return 0;
        }
        if env.imbalance <= 0 {
            return 0;
        }
        let failed = self.domains.domain(env.cpu, env.level).nr_balance_failed;
        let mut at = self.list_last(env.src_cpu);
        let mut left = self.cpu(env.src_cpu).nr;
        while let Some(task) = at {
            if left == 0 || (env.idle.is_idle() && env.src_nr_running <= 1) {
                break;
            }
            left -= 1;
            at = self.list_before(task);
            if plan[..planned].iter().any(|(chosen, _)| *chosen == task) {
                continue;
            }
            env.loops += 1;
            if env.loops > env.loops_max {
                break;
            }
            cx.scanned(1);
            if !self.can_migrate(cx, env, task) || !self.fits_imbalance(env, task, failed) {
                self.list_touch(env.src_cpu, task);
                continue;
            }
            plan.push((task, env.dst_cpu));
            env.src_nr_running -= 1;
            // A preemptible kernel takes one task only where somebody waits for the answer.
            if env.idle == IdleType::NewlyIdle || env.imbalance <= 0 {
                break;
            }
        }
        // The last detached is attached first.
        plan[planned..].reverse();
        plan.len() - planned
    }

    /// Whether moving `task` would not overshoot; if so the imbalance shrinks.
    fn fits_imbalance(&self, env: &mut Env, task: TaskId, failed: u32) -> bool {
        let amount = match env.migration {
            Migration::Task => 1,
            Migration::Load => {
                let load = self.task_load(task).max(1);
                if self.knobs.lb_min && load < 16 && failed == 0 {
                    return false;
                }
                load
            }
            Migration::Util => self.task(task).avg.util_est_or_avg(),
        };
        let relaxed = if failed < 64 { amount >> failed } else { 0 };
        if env.migration != Migration::Task && relaxed as i64 > env.imbalance {
            return false;
        }
        env.imbalance -= amount as i64;
        true
    }

    /// Whether `task` may and should move to `env.dst_cpu`.
    ///
    /// Source: v6.12 `fair.c` `can_migrate_task`.
    fn can_migrate(&self, cx: &Ctx<'_>, env: &mut Env, task: TaskId) -> bool {
        let facts = cx.tasks.get(task);
        let level = &self.domains.levels[env.level];
        if !facts.affinity.contains(env.dst_cpu) {
            env.some_pinned = true;
            if env.idle != IdleType::NewlyIdle && env.new_dst_cpu.is_none() {
                let group = &level.groups[level.local(env.dst_cpu)].span;
                let others = group.intersection(&env.cpus).intersection(&facts.affinity);
                env.new_dst_cpu = others.first();
            }
            return false;
        }
        env.all_pinned = false;
        if facts.on_cpu {
            return false;
        }
        let failed = self.domains.domain(env.cpu, env.level).nr_balance_failed;
        failed > level.cache_nice_tries || !self.task_hot(cx, env, task)
    }

    /// Whether the cache of `env.src_cpu` is likely to still hold data of `task`.
    ///
    /// Source: v6.12 `fair.c` `task_hot`.
    fn task_hot(&self, cx: &Ctx<'_>, env: &Env, task: TaskId) -> bool {
        if cx.tasks.get(task).class == SchedClass::Idle
            || self.domains.levels[env.level].shares_capacity()
        {
            return false;
        }
        if self.knobs.cache_hot_buddy
            && self.cpu(env.dst_cpu).nr_running != 0
            && [self.cpu(env.src_cpu).next, self.cpu(env.src_cpu).last].contains(&Some(task))
        {
            return true;
        }
        let since = self.task(task).exec_start;
        since.is_some_and(|since| cx.now.as_ns() - since < self.knobs.migration_cost)
    }

    /// A CPU that was asked to give up its current task: which task goes, and whither.
    ///
    /// Source: v6.12 `fair.c` `active_load_balance_cpu_stop`.
    pub(crate) fn take_active_balance(
        &mut self,
        cx: &mut Ctx<'_>,
        cpu: CpuId,
    ) -> Option<(TaskId, CpuId)> {
        let to = self.cpu_mut(cpu).push_cpu.take()?;
        if self.cpu(cpu).nr_running == 0 {
            return None;
        }
        let level = self.domains.levels.iter().position(|level| level.span(to).contains(cpu))?;
        // The kernel's stopper thread runs meanwhile, so that no fair task is on the CPU.
        let movable = |task: &TaskId| {
            let facts = cx.tasks.get(*task);
            let is_curr = cx.curr(cpu) == Some(*task);
            let free = if is_curr { !self.task(*task).delayed } else { !facts.on_cpu };
            free && facts.affinity.contains(to)
        };
        let mut at = self.list_last(cpu);
        while let Some(task) = at.filter(|task| !movable(task)) {
            at = self.list_before(task);
        }
        let task = at?;
        self.domains.domain_mut(to, level).nr_balance_failed = 0;
        self.stats.active_balanced += 1;
        Some((task, to))
    }
}
