// SPDX-License-Identifier: GPL-2.0-only
//! Requests of a hook, drained by the core when the hook returns.

use alloc::vec::Vec;

use schedlab_units::{CpuId, CpuSet, TaskId, Time};

/// A CPU whose `need_resched` was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resched {
    /// The CPU that is to call `schedule` soon.
    pub cpu: CpuId,
    /// The CPU whose hook asked for it.
    pub from: CpuId,
    /// Whether an inter-processor interrupt must tell it; a polling idle CPU notices by itself.
    pub ipi: bool,
}

/// A request to move a waiting task to another CPU's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The task; it must be runnable and not current when the move is carried out.
    pub task: TaskId,
    /// Its new CPU.
    pub to: CpuId,
}

/// A request to call [`crate::Policy::timer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerRequest {
    /// The policy's own name for the timer; arming it again replaces the earlier request.
    pub timer: u32,
    /// When; [`Time::MAX`] disarms.
    pub at: Time,
    /// The CPU whose clock interrupt delivers it.
    pub cpu: CpuId,
}

/// What hooks have asked for and the host has not yet carried out.
///
/// The flags can be read back in the middle of a hook, as kernel code does with `need_resched`.
#[derive(Clone, Debug)]
pub struct Effects {
    need_resched: CpuSet,
    /// Newly set flags in the order of setting.
    pub resched: Vec<Resched>,
    /// Moves in request order.
    pub moves: Vec<Move>,
    /// Timer requests in request order.
    pub timers: Vec<TimerRequest>,
    /// Candidates looked at since the core last asked, for the per-candidate scan cost.
    pub scanned: u64,
    /// Sections under the run-queue lock beyond the one the core knows of (2.4's offer of a
    /// displaced task).
    pub extra_lock_sections: u32,
}

impl Effects {
    /// No requests, with buffers that need not grow on a machine of `n_cpus`.
    pub fn new(n_cpus: usize) -> Self {
        Self {
            need_resched: CpuSet::EMPTY,
            resched: Vec::with_capacity(n_cpus * 2),
            moves: Vec::with_capacity(256),
            timers: Vec::with_capacity(64),
            scanned: 0,
            extra_lock_sections: 0,
        }
    }
    /// Whether `cpu` is to call `schedule`.
    #[inline]
    pub fn need_resched(&self, cpu: CpuId) -> bool {
        self.need_resched.contains(cpu)
    }
    /// Sets the flag of `cpu` and notes it once for the host.
    #[inline]
    pub fn set_need_resched(&mut self, cpu: CpuId, from: CpuId, ipi: bool) {
        if self.need_resched.insert(cpu) {
            self.resched.push(Resched { cpu, from, ipi });
        }
    }
    /// Clears the flag of `cpu`; `schedule` does so.
    #[inline]
    pub fn clear_need_resched(&mut self, cpu: CpuId) {
        self.need_resched.remove(cpu);
    }
}
