// SPDX-License-Identifier: GPL-2.0-only
//! What the policy keeps of a task, and the priorities of the queue.

use schedlab_policy_api::{SchedClass, Task};
use schedlab_units::CpuId;

/// Priority of ISO tasks; below it are the real-time ones (`ISO_PRIO`).
pub(super) const ISO_PRIO: u8 = 100;
/// Priority of NORMAL and BATCH tasks (`NORMAL_PRIO`).
pub(super) const NORMAL_PRIO: u8 = 101;
/// Priority of IDLEPRIO tasks (`IDLE_PRIO`).
pub(super) const IDLE_PRIO: u8 = 102;
/// Number of priorities, and the one of the idle task (`PRIO_LIMIT`).
pub(super) const PRIO_LIMIT: u8 = 103;

/// One task; the names are the kernel's.
#[derive(Clone, Copy, Debug)]
pub(super) struct BfsTask {
    /// `policy`.
    pub(super) class: SchedClass,
    pub(super) rt_priority: u8,
    /// nice + 20 (USER_PRIO of `static_prio`).
    pub(super) user_prio: u8,
    pub(super) prio: u8,
    /// Rest of the quota in 1024-ns units; stale while the task runs.
    pub(super) time_slice: i32,
    /// Virtual deadline in ns; stale while the task runs.
    pub(super) deadline: u64,
    /// When the deadline was computed (`deadline_niffy`).
    pub(super) deadline_set: u64,
    /// When the task last left a CPU.
    pub(super) last_ran: u64,
    /// Last CPU.
    pub(super) cpu: CpuId,
    pub(super) fork_depth: i32,
    /// Its process, an index of [`super::groups::Groups`].
    pub(super) group: u32,
    /// Whether the last sleep was uninterruptible.
    pub(super) slept_uninterruptible: bool,
    /// Counts the lives of the slot.
    pub(super) life: u32,
}

impl BfsTask {
    /// A task with the facts `facts` and an empty quota.
    pub(super) fn new(facts: &Task, life: u32) -> Self {
        let mut task = Self {
            class: facts.class,
            rt_priority: 0,
            user_prio: 0,
            prio: 0,
            time_slice: 0,
            deadline: 0,
            deadline_set: 0,
            last_ran: 0,
            cpu: facts.cpu,
            fork_depth: 0,
            group: 0,
            slept_uninterruptible: false,
            life,
        };
        task.copy_class(facts);
        task.user_prio = user_prio(facts);
        task
    }

    /// Takes class and real-time priority over; `prio` follows.
    pub(super) fn copy_class(&mut self, facts: &Task) {
        self.class = facts.class;
        self.rt_priority = facts.rt_priority;
        self.prio = self.normal_prio();
    }

    /// Priority without regard to what the task is doing.
    ///
    /// Source: 0.357 `sched_bfs.c` `normal_prio`; spec §4.3.
    pub(super) fn normal_prio(&self) -> u8 {
        match self.class {
            SchedClass::Fifo | SchedClass::Rr => 99u8.saturating_sub(self.rt_priority),
            SchedClass::Iso => ISO_PRIO,
            SchedClass::Normal | SchedClass::Batch => NORMAL_PRIO,
            SchedClass::Idle => IDLE_PRIO,
        }
    }
    /// Index of the tables of nice values.
    pub(super) fn user(&self) -> usize {
        usize::from(self.user_prio)
    }
}

/// nice + 20 of a task.
pub(super) fn user_prio(facts: &Task) -> u8 {
    (facts.nice.get() + 20) as u8
}
