// SPDX-License-Identifier: GPL-2.0-only
//! `schedule`: the best task of the own queues, then of the others', and the epoch.

use schedlab_policy_api::{Ctx, TaskState};
use schedlab_units::{CpuId, TaskId};

use super::policy::Mq;
use crate::goodness::value::NOTHING;

/// What a scan has found so far.
#[derive(Clone, Copy, Debug)]
struct Found {
    best: i32,
    /// None = the idle task.
    next: Option<TaskId>,
    /// The second best, always a task of the CPU's own queue: its maximum once `next` runs.
    runner_up: Option<(i32, TaskId)>,
}

impl Found {
    /// `task` is worth `value`; whether it is the best so far. The best before it becomes the
    /// runner-up if it is a task of the own queue.
    #[inline]
    fn improve(&mut self, value: i32, task: TaskId, is_own: impl Fn(TaskId) -> bool) -> bool {
        let better = value > self.best;
        if better {
            if let Some(old) = self.next.filter(|old| is_own(*old)) {
                self.runner_up = Some((self.best, old));
            }
            self.best = value;
            self.next = Some(task);
        }
        better
    }
}

impl Mq {
    /// Chooses the next task of `cpu`, whose current task is still the previous one.
    ///
    /// Source: M. Kravetz, patch against 2.4.7, `schedule`; spec §4.7, §5.3.
    pub(super) fn schedule(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) -> Option<TaskId> {
        let prev = cx.curr(cpu);
        let willing = prev.filter(|task| cx.tasks.get(*task).state == TaskState::Running);
        // As for the one list of 2.4: a task that blocks was on it when the lock was asked for, and
        // a second scan after an epoch is not charged.
        let n_blocking = usize::from(prev.is_some() && willing.is_none());
        let n_listed = self.queues.len(self.rt_queue()) + self.queues.len(cpu.index());
        cx.scanned(n_listed + n_blocking);
        if let Some(prev) = willing {
            self.refill_exhausted_rr(prev);
        }
        let mut stolen = None;
        let found = loop {
            let mut found = self.scan(cx, cpu, willing);
            if let Some((na, task)) = self.find_elsewhere(cx, cpu, &found) {
                found.runner_up = found.next.map(|local| (found.best, local));
                (found.best, found.next) = (na, Some(task));
                self.steal(cpu, task);
                self.tell_of_move(cx, cpu, stolen.replace(task), found.next);
            }
            if found.best != 0 {
                break found;
            }
            self.start_epoch();
        };
        self.tell_of_move(cx, cpu, stolen, found.next);
        self.set_maximum(cpu.index(), found.runner_up.map(|(_, task)| task));
        if let Some(prev) = willing
            && found.next == willing
        {
            self.tasks[prev.index()].yielded = false;
            self.refresh(prev);
        }
        found.next
    }

    /// A new slice for an RR task that has used its own up, and to the tail of its queue.
    pub(super) fn refill_exhausted_rr(&mut self, task: TaskId) {
        if self.tasks[task.index()].refill_exhausted_rr() {
            let queue = self.queues.remove(task);
            self.queues.add_last(queue, task);
        }
    }

    /// The best of the previous task `prev`, if it is willing, the real-time queue and the queue of
    /// `cpu`.
    ///
    /// The idle task is worth less than any other, so it needs no value here.
    fn scan(&self, cx: &Ctx<'_>, cpu: CpuId, prev: Option<TaskId>) -> Found {
        let mut found = Found { best: NOTHING, next: None, runner_up: None };
        let mut rival = prev;
        if self.knobs.prev_bias && prev.is_some() {
            found.best = self.cpus.curr_goodness(cpu);
            found.next = rival.take();
        }
        let competes = |task: TaskId| {
            let waits = !self.tasks[task.index()].has_cpu;
            rival == Some(task) || (waits && self.can_use(cx, task, cpu))
        };
        // Without PCP: all tasks of the own queue would have it.
        let asker = self.cpus.asker(cpu, 0);
        let value = |task: TaskId| self.tasks[task.index()].entry().goodness(asker);
        let is_own = |task| self.queues.queue_of(task) == Some(cpu.index());
        for task in self.queues.iter(self.rt_queue()).filter(|task| competes(*task)) {
            found.improve(value(task), task, is_own);
        }
        for task in self.queues.iter(cpu.index()).filter(|task| competes(*task)) {
            let value = value(task);
            let second = |(best, _)| value > best;
            if !found.improve(value, task, is_own) && found.runner_up.is_none_or(second) {
                found.runner_up = Some((value, task));
            }
        }
        found
    }

    /// The task of another queue that beats what `cpu` has found, with what it was noted at; the
    /// lowest queue among equals.
    fn find_elsewhere(&self, cx: &Ctx<'_>, cpu: CpuId, found: &Found) -> Option<(i32, TaskId)> {
        if found.next.is_some_and(|next| self.tasks[next.index()].is_rt()) {
            return None;
        }
        let floor = if found.best > 0 { found.best + self.knobs.pcp } else { found.best };
        let mut best = (floor, None);
        for (queue, maximum) in self.maxima.iter().enumerate() {
            let other = queue != cpu.index() && maximum.na > best.0;
            let usable = |task: &TaskId| self.can_use(cx, *task, cpu);
            if other && let Some(task) = maximum.task.filter(usable) {
                best = (maximum.na, Some(task));
            }
        }
        best.1.map(|task| (best.0, task))
    }

    /// Takes `task` from its queue to the head of that of `cpu`.
    fn steal(&mut self, cpu: CpuId, task: TaskId) {
        self.stats.steals += 1;
        self.del(task);
        self.tasks[task.index()].processor = cpu;
        self.add(task);
    }

    /// Lets the core know that a stolen task, which will not run now (an epoch came between), has
    /// nevertheless moved to `cpu`.
    fn tell_of_move(
        &self,
        cx: &mut Ctx<'_>,
        cpu: CpuId,
        stolen: Option<TaskId>,
        next: Option<TaskId>,
    ) {
        if let Some(task) = stolen.filter(|_| stolen != next) {
            cx.migrate(task, cpu);
        }
    }

    /// Every task, asleep or not, keeps half of its ticks and gets a quantum.
    ///
    /// Slots of tasks that are gone are recharged as well; a fork sets them anew.
    fn start_epoch(&mut self) {
        self.stats.epochs += 1;
        for index in 0..self.tasks.len() {
            let value = &mut self.tasks[index];
            value.recharge();
            if value.current {
                let cpu = value.processor;
                self.cpus.set_curr_entry(cpu, value.entry(), self.knobs.pcp);
                self.renew_curr_na(cpu, TaskId::from_index(index));
            }
        }
        for queue in 0..self.maxima.len() {
            self.renew_maximum(queue);
        }
    }
}
