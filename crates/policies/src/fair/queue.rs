// SPDX-License-Identifier: GPL-2.0-only
//! Who is queued on which CPU: counts, weights, and lists in the order of the last run.
//!
//! Source: v6.12 `sched.h` `add_nr_running`, `fair.c` `account_entity_enqueue`.

use schedlab_units::{CpuId, Jiffies, TaskId};

use super::state::{FairTask, NONE};
use super::{Fair, Load};

impl Fair {
    /// One more task of any class is queued on `cpu`.
    ///
    /// Source: v6.12 `sched.h` `add_nr_running`.
    pub(crate) fn add_nr_running(&mut self, cpu: CpuId) {
        let this = self.cpu_mut(cpu);
        this.nr_running += 1;
        if this.nr_running == 2 {
            self.overloaded = true;
        }
        self.note_emptiness(cpu);
    }
    /// One task less is queued on `cpu`.
    pub(crate) fn sub_nr_running(&mut self, cpu: CpuId) {
        self.cpu_mut(cpu).nr_running -= 1;
        self.note_emptiness(cpu);
    }
    /// One fair task less is queued on `cpu`; if only SCHED_IDLE ones are left, it balances early
    /// to pull tasks that matter more.
    ///
    /// Source: v6.12 `fair.c` `dequeue_task_fair`.
    pub(crate) fn sub_nr_fair(&mut self, cpu: CpuId, now: Jiffies) {
        let was_sched_idle = self.only_idle.contains(cpu);
        self.sub_nr_running(cpu);
        if !was_sched_idle && self.only_idle.contains(cpu) {
            self.cpu_mut(cpu).next_balance = now;
        }
    }
    fn note_emptiness(&mut self, cpu: CpuId) {
        let this = &self.cpus[cpu.index()];
        let (nr, nr_idle) = (this.nr_running, this.nr_idle);
        if nr == 0 {
            self.empty.insert(cpu);
        } else {
            self.empty.remove(cpu);
        }
        if nr != 0 && nr == nr_idle {
            self.only_idle.insert(cpu);
        } else {
            self.only_idle.remove(cpu);
        }
    }

    /// Books `task` on the queue of `cpu`.
    ///
    /// Source: v6.12 `fair.c` `account_entity_enqueue`.
    pub(crate) fn account_enqueue(&mut self, cpu: CpuId, task: TaskId, is_idle: bool) {
        let FairTask { load: Load { weight: load, .. }, delayed, .. } = *self.task(task);
        let this = self.cpu_mut(cpu);
        this.load += load;
        this.nr += 1;
        this.nr_idle += u32::from(is_idle);
        this.nr_delayed += u32::from(delayed);
        self.list_add(cpu, task);
    }
    /// Takes `task` off the books of `cpu`.
    ///
    /// Source: v6.12 `fair.c` `account_entity_dequeue`.
    pub(crate) fn account_dequeue(&mut self, cpu: CpuId, task: TaskId, is_idle: bool) {
        let FairTask { load: Load { weight: load, .. }, delayed, .. } = *self.task(task);
        let this = self.cpu_mut(cpu);
        this.load -= load;
        this.nr -= 1;
        this.nr_idle -= u32::from(is_idle);
        this.nr_delayed -= u32::from(delayed);
        self.list_del(cpu, task);
    }
    /// `task` begins to sleep while it stays on the queue.
    pub(crate) fn set_delayed(&mut self, task: TaskId) {
        let cpu = self.task(task).cpu;
        self.task_mut(task).delayed = true;
        self.cpu_mut(cpu).nr_delayed += 1;
    }
    /// `task` no longer sleeps on the queue.
    pub(crate) fn clear_delayed(&mut self, task: TaskId) {
        let cpu = self.task(task).cpu;
        self.task_mut(task).delayed = false;
        self.cpu_mut(cpu).nr_delayed -= 1;
    }

    /// Puts `task` first in the list of `cpu`'s tasks.
    fn list_add(&mut self, cpu: CpuId, task: TaskId) {
        let this = &mut self.cpus[cpu.index()];
        let old = core::mem::replace(&mut this.head, task.0);
        let links = &mut self.tasks[task.index()];
        links.before = NONE;
        links.after = old;
        match self.tasks.get_mut(old as usize) {
            Some(second) => second.before = task.0,
            None => this.tail = task.0,
        }
    }
    fn list_del(&mut self, cpu: CpuId, task: TaskId) {
        let FairTask { before, after, .. } = self.tasks[task.index()];
        let this = &mut self.cpus[cpu.index()];
        match self.tasks.get_mut(before as usize) {
            Some(task) => task.after = after,
            None => this.head = after,
        }
        match self.tasks.get_mut(after as usize) {
            Some(task) => task.before = before,
            None => this.tail = before,
        }
    }
    /// Moves `task` to the front of its list: it is the most recently run.
    pub(crate) fn list_touch(&mut self, cpu: CpuId, task: TaskId) {
        if self.cpu(cpu).head != task.0 {
            self.list_del(cpu, task);
            self.list_add(cpu, task);
        }
    }
    /// The least recently run task of `cpu`.
    pub(crate) fn list_last(&self, cpu: CpuId) -> Option<TaskId> {
        let tail = self.cpu(cpu).tail;
        (tail != NONE).then_some(TaskId(tail))
    }
    /// The task that ran after `task` did.
    pub(crate) fn list_before(&self, task: TaskId) -> Option<TaskId> {
        let before = self.task(task).before;
        (before != NONE).then_some(TaskId(before))
    }
    /// The tasks of `cpu`, most recently run first.
    pub(crate) fn list(&self, cpu: CpuId) -> impl Iterator<Item = TaskId> + '_ {
        let mut at = self.cpu(cpu).head;
        core::iter::from_fn(move || {
            let task = (at != NONE).then_some(TaskId(at))?;
            at = self.task(task).after;
            Some(task)
        })
    }
}
