// SPDX-License-Identifier: GPL-2.0-only
//! Whom a task that became runnable disturbs.

use schedlab_policy_api::{Ctx, SchedClass};
use schedlab_units::{CpuId, TaskId};

use super::idle_cpu::{best_idle, locality};
use super::policy::Bfs;

impl Bfs {
    /// Whether an idle CPU may run `task`.
    ///
    /// Source: 0.357 `sched_bfs.c` `suitable_idle_cpus`; spec §4.4.
    pub(super) fn has_suitable_idle(&self, cx: &Ctx<'_>, task: TaskId) -> bool {
        cx.tasks.get(task).affinity.intersects(&self.idle)
    }

    /// Kicks the best idle CPU for `task` if there is one.
    ///
    /// One that is asked to schedule already is kicked in vain (quirk Q5).
    ///
    /// Source: 0.357 `sched_bfs.c` `resched_suitable_idle`, `resched_best_idle`; spec §4.5.
    pub(super) fn resched_suitable_idle(&mut self, cx: &mut Ctx<'_>, task: TaskId) {
        let candidates = cx.tasks.get(task).affinity.intersection(&self.idle);
        let (origin, life) = (self.tasks[task.index()].cpu, self.life(task));
        let last = self.cpus[origin.index()].last_task;
        let foreign = last.is_some_and(|last| last != life);
        if let Some(cpu) = best_idle(cx.topo, &candidates, &self.idle, origin, foreign) {
            self.stats.idle_kicks += 1;
            cx.resched(cpu);
        }
    }

    /// Looks for a CPU that `task`, queued and last on `this`, is to have at once.
    ///
    /// Source: 0.357 `sched_bfs.c` `try_preempt`; spec §4.6.
    pub(super) fn try_preempt(&mut self, cx: &mut Ctx<'_>, task: TaskId, this: CpuId) {
        if self.tasks[task.index()].class == SchedClass::Idle {
            return;
        }
        if self.has_suitable_idle(cx, task) {
            self.resched_suitable_idle(cx, task);
            return;
        }
        let Some(cpu) = self.worst_running(cx, task, this) else { return };
        let (p, rq) = (&self.tasks[task.index()], &self.cpus[cpu.index()]);
        let wins = p.prio < rq.rq_prio || (p.prio == rq.rq_prio && p.deadline < rq.rq_deadline);
        if wins {
            self.stats.preempt_decisions += 1;
            cx.resched(cpu);
        }
    }

    /// The allowed CPU that runs the least urgent task, nearness included.
    ///
    /// Source: 0.357 `sched_bfs.c` `try_preempt`; spec §4.6 step 3, quirk Q4.
    fn worst_running(&self, cx: &Ctx<'_>, task: TaskId, this: CpuId) -> Option<CpuId> {
        let (p, life) = (&self.tasks[task.index()], self.life(task));
        let weight = self.knobs.locality_weight[p.user()];
        let mut worst: Option<CpuId> = None;
        let (mut worst_prio, mut latest) = (0, 0);
        for cpu in cx.tasks.get(task).affinity.iter() {
            let rq = &self.cpus[cpu.index()];
            let is_first = worst.is_none();
            if !is_first && rq.rq_prio < worst_prio {
                continue;
            }
            let distance =
                if rq.last_task == Some(life) { 0 } else { locality(cx.topo, cpu, this) * weight };
            // The kernel wraps: an idle CPU whose bit is clear has the deadline 0.
            let deadline = rq.rq_deadline.wrapping_sub(distance);
            if is_first || rq.rq_prio > worst_prio || deadline > latest {
                worst = Some(cpu);
                (worst_prio, latest) = (rq.rq_prio, deadline);
            }
        }
        worst
    }
}
