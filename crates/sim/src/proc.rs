// SPDX-License-Identifier: GPL-2.0-only
//! The host's side of a task: where its program stands, whom it waits for, its family.

use crate::life::Waiting;
use crate::wait_queue::WaitQueue;
use schedlab_units::{CpuId, Nanos, Rng, TaskId, Time};
use schedlab_workload::Vm;
use schedlab_workload::ir::{MarkId, ObjectId, Op, ProgramId, TemplateId};

/// What a task does next when it has a CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Todo<'w> {
    /// Takes the next operation of its program.
    Next,
    /// Computes in user mode; [`Nanos::MAX`] = for ever.
    User {
        /// CPU time still to come.
        left: Nanos,
    },
    /// Computes in user mode until an instant.
    Spin {
        /// The instant.
        until: Time,
    },
    /// Computes in user mode until a look at the clock finds an instant passed.
    Look {
        /// The instant.
        until: Time,
        /// CPU time to the next look.
        left: Nanos,
        /// CPU time between looks.
        every: Nanos,
    },
    /// Works in the kernel, not preemptible, then goes on with `then`.
    Kernel {
        /// CPU time still to come.
        left: Nanos,
        /// What comes after.
        then: Then<'w>,
    },
    /// Carries out an operation with its drawn amount.
    Do(&'w Op, u64),
    /// Completes an operation in which it slept.
    Complete(&'w Op),
}

/// What follows a piece of kernel work.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Then<'w> {
    /// The next operation, as part of the same system call.
    NextInKernel,
    /// This operation.
    Do(&'w Op, u64),
    /// Completing this operation.
    Complete(&'w Op),
}

/// The host's side of a task.
pub(crate) struct Proc<'w> {
    pub(crate) template: TemplateId,
    pub(crate) instance: u32,
    pub(crate) program: ProgramId,
    pub(crate) vm: Vm,
    pub(crate) rng: Rng,
    /// What the streams of its family follow from, and how many of it have been given out.
    pub(crate) lineage: (u64, u64),
    /// The length drawn last.
    pub(crate) drawn: u64,
    pub(crate) todo: Todo<'w>,
    /// Whether the next operation belongs to the system call that is under way.
    pub(crate) in_kernel: bool,
    /// Number of the present wait; an event that names another one is stale.
    pub(crate) wait: u32,
    /// Identity that is never used again, unlike the task id.
    pub(crate) serial: u64,
    pub(crate) signal_pending: bool,
    pub(crate) in_sigwait: bool,
    /// First reference of its timers: its start.
    pub(crate) reference: Time,
    /// Last timer expiry or wake-up, from which deadlines count.
    pub(crate) release: Time,
    /// Whether an event is queued that ends its present sleep.
    pub(crate) is_armed: bool,
    /// Up to when it has seen the interrupts of periodic devices.
    pub(crate) interrupts_seen: Time,
    /// When its present sleep was asked to end.
    pub(crate) due: Time,
    /// Its own periodic timers.
    pub(crate) timers: Vec<OwnTimer>,
    pub(crate) watches: Vec<(MarkId, Time)>,
    /// Members of a list that it took and has not woken yet, the last to join first.
    pub(crate) taken: WaitQueue,
    pub(crate) taken_at: Time,
    /// When the list it waited on was taken.
    pub(crate) served_at: Time,
    /// Set when a condition wait must lock its mutex again.
    pub(crate) relock: bool,
    /// Set by a fatal signal: it exits as soon as it is not in the kernel.
    pub(crate) killed: bool,
    /// CPU, waker and hint of a wake-up that is still to come as an event of its own.
    pub(crate) woken_by: Option<(CpuId, TaskId, bool)>,
    pub(crate) family: Family,
}

/// A periodic timer that belongs to one task.
pub(crate) struct OwnTimer {
    pub(crate) id: ObjectId,
    pub(crate) next: Time,
    /// Set for good by the first absolute use.
    pub(crate) absolute: bool,
}

/// Parent, children, and zombies to be collected.
#[derive(Default)]
pub(crate) struct Family {
    pub(crate) parent: Option<TaskId>,
    pub(crate) first_child: Option<TaskId>,
    pub(crate) next_sibling: Option<TaskId>,
    pub(crate) prev_sibling: Option<TaskId>,
    pub(crate) zombies: WaitQueue,
    /// Whether its program ever waits for children; if not they are collected at once.
    pub(crate) waits: bool,
    /// Which children it sleeps for.
    pub(crate) waiting: Waiting,
}

impl Family {
    /// A new task's family.
    pub(crate) fn new(parent: Option<TaskId>, waits: bool) -> Self {
        Self { parent, waits, ..Self::default() }
    }
}

impl Proc<'_> {
    /// The task's own timer `id`, standing at its start before the first use.
    pub(crate) fn timer_mut(&mut self, id: ObjectId) -> &mut OwnTimer {
        let at = match self.timers.iter().position(|timer| timer.id == id) {
            Some(at) => at,
            None => {
                self.timers.push(OwnTimer { id, next: self.reference, absolute: false });
                self.timers.len() - 1
            }
        };
        &mut self.timers[at]
    }
}
