// SPDX-License-Identifier: GPL-2.0-only
//! Keeping the tracked loads of tasks and queues up to date, and tasks attached to queues.

use schedlab_policy_api::{Ctx, Enqueue};
use schedlab_units::{CpuId, TaskId};

use super::domains::CAPACITY_SCALE;
use super::{Fair, Load, scale_load_down};

/// What an update does besides updating.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Membership {
    /// Nothing.
    Keep,
    /// Attaches the task to the queue if it is attached to none.
    Join,
    /// Detaches the task, which is leaving for another queue.
    Leave,
}

impl Fair {
    /// Brings the tracked loads of `task` and of its queue up to `now`.
    ///
    /// Source: v6.12 `fair.c` `update_load_avg`.
    pub(crate) fn update_load_avg(&mut self, now: u64, cpu: CpuId, task: TaskId, what: Membership) {
        let running = self.cpu(cpu).curr == Some(task);
        let this = &mut self.tasks[task.index()];
        if this.attached {
            let runnable = this.on_rq && !this.delayed;
            let (load, runnable) = (u64::from(this.on_rq), u64::from(runnable));
            if this.avg.update_sum(now, load, runnable, running) {
                this.avg.update_avg(scale_load_down(this.load.weight));
                if self.knobs.util_est {
                    this.avg.util_est_changed();
                }
            }
        }
        self.update_queue_avg(now, cpu);
        match what {
            Membership::Join if !self.task(task).attached => self.attach(cpu, task),
            Membership::Leave if self.task(task).attached => self.detach(cpu, task),
            _ => {}
        }
    }

    /// Brings the tracked load of `cpu`'s queue up to `now`.
    ///
    /// Source: v6.12 `fair.c` `update_cfs_rq_load_avg`.
    fn update_queue_avg(&mut self, now: u64, cpu: CpuId) {
        let this = &mut self.cpus[cpu.index()];
        if this.removed.n > 0 {
            let removed = core::mem::take(&mut this.removed);
            this.avg.remove(&removed);
        }
        let runnable = u64::from(this.nr - this.nr_delayed);
        let load = scale_load_down(this.load);
        if this.avg.update_sum(now, load, runnable, this.curr.is_some()) {
            this.avg.update_avg(1);
        }
    }

    /// Lets the tracked loads of a CPU decay that may not have been looked at for a while.
    ///
    /// Source: v6.12 `fair.c` `sched_balance_update_blocked_averages`.
    pub(crate) fn update_blocked_averages(&mut self, now: u64, cpu: CpuId) {
        let runs_rt = self.cpu(cpu).runs_rt;
        self.update_rt_avg(now, cpu, runs_rt);
        self.update_queue_avg(now, cpu);
    }

    /// Brings the tracked time of real-time tasks up to `now`.
    ///
    /// Source: v6.12 `pelt.c` `update_rt_rq_load_avg`.
    pub(crate) fn update_rt_avg(&mut self, now: u64, cpu: CpuId, running: bool) {
        let avg = &mut self.cpu_mut(cpu).avg_rt;
        if avg.update_sum(now, u64::from(running), u64::from(running), running) {
            avg.update_avg(1);
        }
    }

    fn attach(&mut self, cpu: CpuId, task: TaskId) {
        let this = &mut self.tasks[task.index()];
        let weight = scale_load_down(this.load.weight);
        self.cpus[cpu.index()].avg.attach(&mut this.avg, weight);
        this.attached = true;
    }

    fn detach(&mut self, cpu: CpuId, task: TaskId) {
        let this = &mut self.tasks[task.index()];
        let weight = scale_load_down(this.load.weight);
        self.cpus[cpu.index()].avg.detach(&this.avg, weight);
        this.attached = false;
    }

    /// The first guess at the utilization of a new task: half of what its CPU has left, or less if
    /// the CPU's tasks use less for their weight.
    ///
    /// Source: v6.12 `fair.c` `post_init_entity_util_avg`.
    pub(crate) fn init_util_avg(&mut self, cpu: CpuId, task: TaskId) {
        let queue = &self.cpus[cpu.index()].avg;
        let cap = CAPACITY_SCALE.saturating_sub(queue.util_avg) / 2;
        let this = &mut self.tasks[task.index()];
        if cap > 0 {
            this.avg.util_avg = if queue.util_avg == 0 {
                cap
            } else {
                let share = queue.util_avg * scale_load_down(this.load.weight);
                (share / (queue.load_avg + 1)).min(cap)
            };
        }
        this.avg.runnable_avg = this.avg.util_avg;
    }

    /// `task` is about to be queued on `cpu`; true if its run time on another CPU means nothing.
    ///
    /// Source: v6.12 `fair.c` `enqueue_task_fair`, `migrate_task_rq_fair`.
    pub(crate) fn arrive(&mut self, cx: &Ctx<'_>, cpu: CpuId, task: TaskId, why: Enqueue) -> bool {
        let from = self.task(task).cpu;
        let mut migrated = why == Enqueue::Migrate;
        if from != cpu {
            if why == Enqueue::Wakeup {
                let idle = cx.curr(from).is_none();
                self.migrate_sleeping(cx.now.as_ns(), task, idle);
                migrated = true;
            }
            self.task_mut(task).cpu = cpu;
        }
        if why == Enqueue::New {
            self.init_util_avg(cpu, task);
            self.task_mut(task).recent_used_cpu = from;
        }
        self.util_est_enqueue(cpu, task);
        migrated
    }

    /// Adds the estimate of `task` to that of its queue.
    ///
    /// Source: v6.12 `fair.c` `util_est_enqueue`.
    pub(crate) fn util_est_enqueue(&mut self, cpu: CpuId, task: TaskId) {
        if self.knobs.util_est {
            let estimate = self.task(task).avg.util_est();
            self.cpu_mut(cpu).avg.util_est_add(estimate);
        }
    }
    /// Takes the estimate of `task` from that of its queue, and renews it if it `sleeps`.
    ///
    /// Source: v6.12 `fair.c` `util_est_dequeue`, `util_est_update`.
    pub(crate) fn util_est_dequeue(&mut self, cpu: CpuId, task: TaskId, sleeps: bool) {
        if self.knobs.util_est {
            let estimate = self.task(task).avg.util_est();
            self.cpu_mut(cpu).avg.util_est_sub(estimate);
            if sleeps {
                self.task_mut(task).avg.util_est_update();
            }
        }
    }

    /// A sleeping or exited task leaves the tracked load of its queue, which may be another CPU's.
    ///
    /// The queue itself notices at its next update.
    ///
    /// Source: v6.12 `fair.c` `remove_entity_load_avg`.
    pub(crate) fn remove_load(&mut self, task: TaskId) {
        let this = &mut self.tasks[task.index()];
        if !this.attached {
            return;
        }
        let queue = &mut self.cpus[this.cpu.index()];
        if this.avg.update_sum(queue.avg.last_update_time, 0, 0, false) {
            this.avg.update_avg(scale_load_down(this.load.weight));
        }
        queue.removed.add(&this.avg);
        this.attached = false;
    }

    /// [`Fair::remove_load`] of a task that is woken onto another CPU; the clock of an idle CPU
    /// stands still, so its time is made up for.
    ///
    /// Source: v6.12 `fair.c` `migrate_task_rq_fair`, `migrate_se_pelt_lag`.
    pub(crate) fn migrate_sleeping(&mut self, now: u64, task: TaskId, old_is_idle: bool) {
        self.remove_load(task);
        let this = &mut self.tasks[task.index()];
        if old_is_idle && this.avg.update_sum(now, 0, 0, false) {
            this.avg.update_avg(scale_load_down(this.load.weight));
        }
    }

    /// `task` leaves the fair class.
    ///
    /// Source: v6.12 `fair.c` `detach_task_cfs_rq`.
    pub(crate) fn leave_class(&mut self, now: u64, task: TaskId) {
        if self.task(task).attached {
            let cpu = self.task(task).cpu;
            self.update_load_avg(now, cpu, task, Membership::Keep);
            self.detach(cpu, task);
        }
    }

    /// `task` joins the fair class again.
    ///
    /// Source: v6.12 `fair.c` `attach_task_cfs_rq`.
    pub(crate) fn join_class(&mut self, now: u64, task: TaskId) {
        let this = &mut self.tasks[task.index()];
        let cpu = this.cpu;
        if self.knobs.attach_age_load && this.avg.update_sum(now, 0, 0, false) {
            this.avg.update_avg(scale_load_down(this.load.weight));
        }
        self.update_queue_avg(now, cpu);
        self.attach(cpu, task);
    }

    /// Gives `task` another weight; it must not count on a queue.
    ///
    /// Source: v6.12 `fair.c` `reweight_entity`.
    pub(crate) fn set_load(&mut self, task: TaskId, load: Load) {
        let this = &mut self.tasks[task.index()];
        debug_assert!(!this.on_rq, "task {task} changes its weight on a queue");
        let queue = &mut self.cpus[this.cpu.index()].avg;
        if this.attached {
            queue.sub_load(&this.avg, scale_load_down(this.load.weight));
        }
        this.load = load;
        let weight = scale_load_down(load.weight);
        this.avg.load_avg = weight.wrapping_mul(this.avg.load_sum) / this.avg.divider();
        if this.attached {
            queue.add_load(&this.avg, weight);
        }
    }

    /// Utilization of `cpu`, `without` a task that is leaving it.
    ///
    /// Source: v6.12 `fair.c` `cpu_util`, `cpu_util_without`.
    pub(crate) fn cpu_util(&self, cpu: CpuId, without: Option<TaskId>) -> u64 {
        let avg = &self.cpu(cpu).avg;
        let mut util = avg.util_avg;
        let mut util_est = avg.util_est();
        if let Some(task) = without
            && self.task(task).cpu == cpu
            && self.task(task).attached
        {
            let this = self.task(task);
            util = util.saturating_sub(this.avg.util_avg);
            if this.on_rq {
                util_est = util_est.saturating_sub(this.avg.util_est());
            }
        }
        if self.knobs.util_est {
            util = util.max(util_est);
        }
        util.min(CAPACITY_SCALE)
    }
    /// Utilization of `cpu`, or its runnable time if that is more.
    ///
    /// Source: v6.12 `fair.c` `cpu_util_cfs_boost`.
    pub(crate) fn cpu_util_boost(&self, cpu: CpuId) -> u64 {
        self.cpu_util(cpu, None).max(self.cpu(cpu).avg.runnable_avg).min(CAPACITY_SCALE)
    }
    /// Tracked load of `task`.
    pub(crate) fn task_load(&self, task: TaskId) -> u64 {
        self.task(task).avg.load_avg
    }
}
