// SPDX-License-Identifier: GPL-2.0-only
//! What the policy keeps of a task.

use schedlab_policy_api::{SchedClass, Task};

use crate::linux_2_6::sleep_avg::SleepAvg;

/// How a task uses its slice. Classes that 2.6.0 did not have count as SCHED_NORMAL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Normal,
    Fifo,
    Rr,
}

impl Kind {
    fn of(class: SchedClass) -> Self {
        match class {
            SchedClass::Fifo => Self::Fifo,
            SchedClass::Rr => Self::Rr,
            _ => Self::Normal,
        }
    }
}

/// Fields of `struct task_struct` that the scheduler owns.
#[derive(Clone, Debug)]
pub(super) struct TaskData {
    /// Dynamic priority, 0 … 139.
    pub(super) prio: u8,
    /// Priority of nice, 100 … 139.
    pub(super) static_prio: u8,
    pub(super) kind: Kind,
    /// Interactivity; `sleep_avg` in ticks or ns as the clock says, `timestamp` of going to sleep,
    /// of waking up, or of the last choice, `interactive_credit` from 2.6.0 on.
    pub(super) avg: SleepAvg,
    /// Ticks left.
    pub(super) time_slice: u32,
    /// The slice is what the fork gave; no slice of its own has begun.
    pub(super) first_time_slice: bool,
    /// Jiffies when it was last the previous task of `schedule`.
    pub(super) last_run: u64,
    /// The present or last sleep is an uninterruptible one.
    pub(super) uninterruptible: bool,
    /// It is on its way to the CPU whose balancer pulled it (2.6.6).
    pub(super) pulled: bool,
    /// Whether its node of the list of waiting tasks (Chazarain's patch) looks linked, which that
    /// of a forked child does without being so.
    pub(super) node_is_set: bool,
    /// Jiffies when it joined the list of waiting tasks.
    pub(super) activated_timestamp: u64,
    /// How often it expired although interactive, since others starved.
    pub(super) starved_expirations: i64,
}

impl TaskData {
    /// A task with these facts at jiffy `jiffies` and `now` ns, without slice or sleep average.
    pub(super) fn new(facts: &Task, jiffies: u64, now: u64) -> Self {
        Self {
            prio: facts.static_prio().0,
            static_prio: facts.nice.prio().0,
            kind: Kind::of(facts.class),
            avg: SleepAvg { timestamp: now, ..SleepAvg::default() },
            time_slice: 0,
            first_time_slice: false,
            last_run: jiffies,
            uninterruptible: false,
            pulled: false,
            node_is_set: false,
            activated_timestamp: 0,
            starved_expirations: 0,
        }
    }

    /// Takes over nice and class; priority becomes what they say, without bonus.
    pub(super) fn copy_facts(&mut self, facts: &Task) {
        self.prio = facts.static_prio().0;
        self.static_prio = facts.nice.prio().0;
        self.kind = Kind::of(facts.class);
    }

    /// Whether it is of a real-time class.
    pub(super) fn is_rt(&self) -> bool {
        self.kind != Kind::Normal
    }
}
