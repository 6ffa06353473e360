// SPDX-License-Identifier: GPL-2.0-only
//! Lists of tasks that another task wakes in one go (schbench's message threads).

use schedlab_policy_api::{Policy, TaskState};
use schedlab_units::{CpuId, Nanos, TaskId};
use schedlab_workload::ir::{ObjectId, Op};

use crate::objects::Objects;
use crate::ops::Flow;
use crate::proc::{Then, Todo};
use crate::{HostObserver, Sim};

impl<'w, P: Policy, O: HostObserver> Sim<'w, P, O> {
    /// Joins the list, wakes the task that serves it, and sleeps.
    pub(crate) fn join_list(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        op: &'w Op,
        list: ObjectId,
        wake: ObjectId,
    ) -> Flow<'w> {
        let Objects { lists, links, .. } = &mut self.objects;
        links.push_front(&mut lists[list.0 as usize], task);
        self.futex_wake(cpu, task, wake, 1);
        Flow::Block(TaskState::Sleeping, Todo::Complete(op))
    }

    /// Takes the whole list and reads the clock once for all its members.
    pub(crate) fn take_list(&mut self, task: TaskId, op: &'w Op, list: ObjectId) -> Flow<'w> {
        let members = &mut self.objects.lists[list.0 as usize];
        let proc = &mut self.procs[task.index()];
        debug_assert!(proc.taken.len() == 0, "a list is served to its end");
        proc.taken = std::mem::take(members);
        proc.taken_at = self.now;
        if proc.taken.len() == 0 { Flow::Done } else { Flow::Again(Todo::Complete(op)) }
    }

    /// Wakes the member that joined last; each wake-up is a system call of its own.
    pub(crate) fn serve_one(&mut self, cpu: CpuId, task: TaskId, op: &'w Op) -> Flow<'w> {
        let proc = &mut self.procs[task.index()];
        let taken_at = proc.taken_at;
        let Some(member) = self.objects.links.pop_front(&mut proc.taken) else {
            return Flow::Done;
        };
        let more = proc.taken.len() > 0;
        self.procs[member.index()].served_at = taken_at;
        self.wake(cpu, member, Some(task), false);
        if !more {
            return Flow::Done;
        }
        let syscall = self.config.cost.syscall.get();
        Flow::Again(if syscall == Nanos::ZERO {
            Todo::Complete(op)
        } else {
            Todo::Kernel { left: syscall, then: Then::Complete(op) }
        })
    }
}
