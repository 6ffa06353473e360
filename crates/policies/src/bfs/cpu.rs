// SPDX-License-Identifier: GPL-2.0-only
//! What the policy keeps of a CPU, above all the copy of its running task.

use schedlab_policy_api::SchedClass;
use schedlab_units::TaskId;

use super::arith;
use super::groups::Life;
use super::task::{BfsTask, PRIO_LIMIT};

/// One CPU; `rq_…` are the copy of the running task, which is written back at `schedule`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cpu {
    /// None = the idle task.
    pub(super) running: Option<TaskId>,
    pub(super) rq_deadline: u64,
    pub(super) rq_time_slice: i32,
    /// Up to when the running task has been charged; right after a dispatch, when it last left a
    /// CPU (quirk Q1).
    pub(super) rq_last_ran: u64,
    pub(super) rq_class: SchedClass,
    pub(super) rq_prio: u8,
    /// The last task that was switched away from here.
    pub(super) last_task: Option<Life>,
    pub(super) last_tick: u64,
    /// Whether the last `schedule` came in the first half of a tick's time.
    pub(super) dither: bool,
}

impl Cpu {
    /// A CPU that runs its idle task since the start.
    pub(super) const START: Self = Self {
        running: None,
        rq_deadline: 0,
        rq_time_slice: 0,
        rq_last_ran: 0,
        rq_class: SchedClass::Normal,
        rq_prio: PRIO_LIMIT,
        last_task: None,
        last_tick: 0,
        dither: false,
    };

    /// Charges the running task up to `clock`.
    ///
    /// Source: 0.357 `sched_bfs.c` `update_cpu_clock`; spec §4.0.
    pub(super) fn account(&mut self, clock: u64, tick_ns: u64) {
        if self.running.is_some() && self.rq_class != SchedClass::Fifo {
            let charge = arith::charge(clock, self.rq_last_ran, tick_ns);
            // A lone task's copy is never refilled (quirk Q2) and wraps after 36 minutes.
            self.rq_time_slice = self.rq_time_slice.wrapping_sub(charge);
        }
        self.rq_last_ran = clock;
    }

    /// Makes `task`, whose record is `from`, the running one.
    ///
    /// Source: 0.357 `sched_bfs.c` `set_rq_task`; spec §4.10 step 5.
    pub(super) fn load(&mut self, task: TaskId, from: &BfsTask) {
        self.running = Some(task);
        self.rq_time_slice = from.time_slice;
        self.rq_deadline = from.deadline;
        self.rq_last_ran = from.last_ran;
        self.load_class(from);
    }

    /// Takes over what a change of class or nice copies to the CPU.
    ///
    /// Source: 0.357 `sched_bfs.c` `reset_rq_task`; spec §4.13.
    pub(super) fn load_class(&mut self, from: &BfsTask) {
        self.rq_class = from.class;
        self.rq_prio = from.prio;
    }

    /// The idle task takes over; `prev` leaves.
    pub(super) fn load_idle(&mut self, prev: Life) {
        self.running = None;
        self.rq_deadline = 0;
        self.rq_prio = PRIO_LIMIT;
        self.last_task = Some(prev);
    }
}
