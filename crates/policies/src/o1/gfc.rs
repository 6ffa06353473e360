// SPDX-License-Identifier: GPL-2.0-only
//! Guillaume Chazarain's patch of 26 July 2003: a list of all tasks by how long they wait.
//!
//! It replaces the rule that looks at the expired array only. When an interactive task ends its
//! slice while the first of the list has waited too long, that task expires, and the one that waits
//! comes to the head of its list. It is not made to run: if it has expired it waits for the swap.
//!
//! Source: his patch against 2.6.0-test1; spec §5.6.

use schedlab_units::{CpuId, TaskId};

use super::policy::O1;

impl O1 {
    /// `task` waits on `cpu` from jiffy `jiffies` on, unless it is listed already or of a real-time
    /// class.
    pub(super) fn track_waiting(&mut self, cpu: CpuId, task: TaskId, jiffies: u64) {
        let data = &mut self.tasks[task.index()];
        if !self.knobs.starvation_list || data.is_rt() || data.node_is_set {
            return;
        }
        data.node_is_set = true;
        data.activated_timestamp = jiffies;
        self.waiting.enqueue(task, cpu.index(), 0);
    }

    /// `task` runs or is gone. A forked child's first wait is on no list, only its node says so.
    pub(super) fn untrack(&mut self, task: TaskId) {
        self.tasks[task.index()].node_is_set = false;
        if self.waiting.array_of(task).is_some() {
            self.waiting.dequeue(task);
        }
    }

    /// Whether the first of the waiting tasks of `cpu` has waited too long; that one is then put to
    /// the head of its list of the array it is on. It keeps its place among the waiting.
    ///
    /// One that is on no array cannot be moved: it became a real-time task and sleeps.
    pub(super) fn punish(&mut self, cpu: CpuId, jiffies: u64) -> bool {
        let limit = self.knobs.starvation_limit;
        let Some(first) = self.waiting.first(cpu.index()) else { return false };
        let waited = jiffies - self.tasks[first.index()].activated_timestamp;
        if limit == 0 || waited <= limit * u64::from(self.rqs[cpu.index()].nr_running) {
            return false;
        }
        if let Some(array) = self.arrays.array_of(first) {
            self.arrays.dequeue(first);
            self.arrays.enqueue_head(first, array, self.tasks[first.index()].prio);
        }
        true
    }
}
