// SPDX-License-Identifier: GPL-2.0-only
//! Joining and leaving queues, and the best waiting task that each queue keeps at hand.

use alloc::format;
use alloc::string::String;

use schedlab_policy_api::View;
use schedlab_units::{CpuId, TaskId};

use super::policy::Mq;
use crate::goodness::value::TaskValue;

/// Non-affinity goodness where there is no task: below any task's.
pub(super) const EMPTY: i32 = -10_000;

/// What a queue remembers of its best task that is not running.
///
/// The figure is of the time when it was noted; what happens to a waiting task afterwards (another
/// nice value, ticks of a child) does not change it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Maximum {
    /// `max_na`; [`EMPTY`] without a task.
    pub(super) na: i32,
    pub(super) task: Option<TaskId>,
}

impl Maximum {
    pub(super) const NONE: Self = Self { na: EMPTY, task: None };
}

/// Non-affinity goodness: what a task is worth without regard to the CPU and the address space.
///
/// Source: M. Kravetz, patch against 2.4.7; spec §5.3.
#[inline]
pub(super) fn na(value: &TaskValue) -> i32 {
    value.entry().weight
}

impl Mq {
    /// Number of the queue of FIFO and RR tasks; it has no maximum, since it is always scanned.
    #[inline]
    pub(super) fn rt_queue(&self) -> usize {
        self.maxima.len()
    }

    /// Puts `task` at the head of its queue; it may become the queue's maximum.
    pub(super) fn add(&mut self, task: TaskId) {
        let value = &self.tasks[task.index()];
        if value.is_rt() {
            let queue = self.rt_queue();
            self.queues.add_first(queue, task);
            return;
        }
        let queue = value.processor.index();
        self.queues.add_first(queue, task);
        if !value.current && na(value) > self.maxima[queue].na {
            self.maxima[queue] = Maximum { na: na(value), task: Some(task) };
        }
    }

    /// Takes `task` off its queue, whose maximum, if that was it, becomes the FIRST waiting task
    /// with ticks, not the best.
    ///
    /// The patch has another form that leaves the queue without a maximum; it is for tasks that
    /// leave while they run, and these are never the maximum.
    pub(super) fn del(&mut self, task: TaskId) {
        let queue = self.queues.remove(task);
        if queue != self.rt_queue() && self.maxima[queue].task == Some(task) {
            let waits = |task: &TaskId| {
                let value = &self.tasks[task.index()];
                !value.current && na(value) > 0
            };
            let first = self.queues.iter(queue).find(waits);
            self.set_maximum(queue, first);
        }
    }

    /// `task`, none = nobody, is the best waiting task of `queue` from now on.
    pub(super) fn set_maximum(&mut self, queue: usize, task: Option<TaskId>) {
        let na = task.map_or(EMPTY, |task| na(&self.tasks[task.index()]));
        self.maxima[queue] = Maximum { na, task };
    }

    /// Finds the true maximum of `queue`, the first of the list among equals.
    pub(super) fn renew_maximum(&mut self, queue: usize) {
        let mut maximum = Maximum::NONE;
        for task in self.queues.iter(queue) {
            let value = &self.tasks[task.index()];
            if !value.current && na(value) > maximum.na {
                maximum = Maximum { na: na(value), task: Some(task) };
            }
        }
        self.maxima[queue] = maximum;
    }

    /// Notes the non-affinity goodness of what runs on `cpu`.
    #[inline]
    pub(super) fn renew_curr_na(&mut self, cpu: CpuId, curr: TaskId) {
        self.curr_na[cpu.index()] = na(&self.tasks[curr.index()]);
    }

    /// I9: a maximum is a task of its queue that does not run; an idle CPU has no `curr_na`.
    pub(super) fn check_maxima(&self, view: &View<'_>) -> Result<(), String> {
        for cpu in view.topo.cpus() {
            let queue = cpu.index();
            let Maximum { na, task } = self.maxima[queue];
            let fits = match task {
                None => na == EMPTY,
                Some(task) => {
                    let listed = self.queues.queue_of(task) == Some(queue);
                    na > EMPTY && listed && !self.tasks[task.index()].current
                }
            };
            if !fits {
                return Err(format!("queue {queue} has task {task:?} with {na} as its maximum"));
            }
            let curr_na = self.curr_na[queue];
            if (curr_na == EMPTY) != view.curr[queue].is_none() {
                return Err(format!("CPU {cpu} runs {:?} at {curr_na}", view.curr[queue]));
            }
        }
        Ok(())
    }
}
