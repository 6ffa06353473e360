// SPDX-License-Identifier: GPL-2.0-only
//! Operations on the objects that tasks share, and whom they wake.

use schedlab_policy_api::{Policy, SyncWakes, TaskState};
use schedlab_units::{CpuId, TaskId};
use schedlab_workload::ir::{ObjectId, Op};

use crate::objects::{Objects, Pipe};
use crate::ops::Flow;
use crate::proc::Todo;
use crate::wait_queue::WaitQueue;
use crate::{HostObserver, Sim, SimError};

/// The task sleeps and is done when it is woken.
fn asleep(op: &Op) -> Flow<'_> {
    Flow::Block(TaskState::Sleeping, Todo::Complete(op))
}

/// Whether a wake-up by an operation on `pipe`, which goes on to block or not, carries the SYNC hint.
fn carries_hint(habit: SyncWakes, pipe: &Pipe, blocks: bool) -> bool {
    match habit {
        SyncWakes::MidOperation => blocks && !pipe.is_socket(),
        SyncWakes::Usual => pipe.is_sync(),
    }
}

impl<'w, P: Policy, O: HostObserver> Sim<'w, P, O> {
    pub(crate) fn read(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        op: &'w Op,
        id: ObjectId,
        bytes: u64,
    ) -> Flow<'w> {
        let pipe = &mut self.objects.pipes[id.0 as usize];
        let moved = pipe.read(bytes);
        let sync = carries_hint(self.config.time.sync, pipe, moved.left > 0);
        if moved.wake_peer {
            // A socket wakes all its writers, which wait without claim, a pipe the longest waiting.
            let n = if pipe.is_socket() { u32::MAX } else { 1 };
            self.wake_some(cpu, task, n, sync, |o| &mut o.pipes[id.0 as usize].writers);
        }
        let Objects { pipes, links, .. } = &mut self.objects;
        let pipe = &mut pipes[id.0 as usize];
        if moved.left > 0 {
            links.push_back(&mut pipe.readers, task);
            return Flow::Block(TaskState::Sleeping, Todo::Do(op, moved.left));
        }
        if pipe.is_readable() {
            self.wake_some(cpu, task, 1, sync, |o| &mut o.pipes[id.0 as usize].readers);
        }
        Flow::Done
    }

    pub(crate) fn write(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        op: &'w Op,
        id: ObjectId,
        bytes: u64,
    ) -> Flow<'w> {
        let pipe = &mut self.objects.pipes[id.0 as usize];
        let moved = pipe.write(bytes);
        let sync = carries_hint(self.config.time.sync, pipe, moved.left > 0);
        if moved.wake_peer {
            self.wake_some(cpu, task, 1, sync, |o| &mut o.pipes[id.0 as usize].readers);
        }
        let Objects { pipes, links, .. } = &mut self.objects;
        let pipe = &mut pipes[id.0 as usize];
        if moved.left > 0 {
            links.push_back(&mut pipe.writers, task);
            return Flow::Block(TaskState::Sleeping, Todo::Do(op, moved.left));
        }
        if pipe.has_room() {
            self.wake_some(cpu, task, 1, sync, |o| &mut o.pipes[id.0 as usize].writers);
        }
        Flow::Done
    }

    pub(crate) fn sem_wait(&mut self, task: TaskId, op: &'w Op, id: ObjectId) -> Flow<'w> {
        let Objects { semaphores, links, .. } = &mut self.objects;
        let semaphore = &mut semaphores[id.0 as usize];
        if semaphore.count > 0 {
            semaphore.count -= 1;
            return Flow::Done;
        }
        links.push_back(&mut semaphore.waiters, task);
        asleep(op)
    }

    /// Takes one from a semaphore in user mode, or jumps.
    pub(crate) fn sem_try(&mut self, task: TaskId, id: ObjectId, on_zero: u32) {
        let count = &mut self.objects.semaphores[id.0 as usize].count;
        match count.checked_sub(1) {
            Some(left) => *count = left,
            None => self.procs[task.index()].vm.jump(on_zero),
        }
    }

    pub(crate) fn sem_post(&mut self, cpu: CpuId, task: TaskId, id: ObjectId) -> Flow<'w> {
        let Objects { semaphores, links, .. } = &mut self.objects;
        let semaphore = &mut semaphores[id.0 as usize];
        match links.pop_front(&mut semaphore.waiters) {
            Some(waiter) => self.wake(cpu, waiter, Some(task), false),
            None => semaphore.count += 1,
        }
        Flow::Done
    }

    pub(crate) fn lock_mutex(&mut self, task: TaskId, op: &'w Op, id: ObjectId) -> Flow<'w> {
        let serial = self.procs[task.index()].serial;
        let Objects { mutexes, links, .. } = &mut self.objects;
        let mutex = &mut mutexes[id.0 as usize];
        match mutex.owner {
            None => {
                mutex.owner = Some(serial);
                Flow::Done
            }
            Some(owner) if owner == serial => {
                self.fault = Some(SimError::SelfDeadlock {
                    at: self.now,
                    task: self.name_of(task),
                    mutex: self.workload.objects.mutexes[id.0 as usize].name.clone(),
                });
                Flow::Done
            }
            Some(_) => {
                links.push_back(&mut mutex.waiters, task);
                Flow::Block(TaskState::Sleeping, Todo::Complete(op))
            }
        }
    }

    /// Hands the mutex to the longest waiter.
    pub(crate) fn unlock_mutex(&mut self, cpu: CpuId, task: TaskId, id: ObjectId) -> Flow<'w> {
        let serial = self.procs[task.index()].serial;
        let Objects { mutexes, links, .. } = &mut self.objects;
        let mutex = &mut mutexes[id.0 as usize];
        if mutex.owner != Some(serial) {
            self.fault = Some(SimError::NotOwner {
                at: self.now,
                task: self.name_of(task),
                mutex: self.workload.objects.mutexes[id.0 as usize].name.clone(),
            });
            return Flow::Done;
        }
        let heir = links.pop_front(&mut mutex.waiters);
        mutex.owner = heir.map(|heir| self.procs[heir.index()].serial);
        if let Some(heir) = heir {
            self.wake(cpu, heir, Some(task), false);
        }
        Flow::Done
    }

    /// Gives the mutex up, if the task holds it, and waits.
    pub(crate) fn cond_wait(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        op: &'w Op,
        condition: ObjectId,
        mutex: ObjectId,
    ) -> Flow<'w> {
        let serial = self.procs[task.index()].serial;
        let held = self.objects.mutexes[mutex.0 as usize].owner == Some(serial);
        self.procs[task.index()].relock = held;
        if held {
            self.unlock_mutex(cpu, task, mutex);
        }
        let Objects { conditions, links, .. } = &mut self.objects;
        links.push_back(&mut conditions[condition.0 as usize], task);
        asleep(op)
    }

    /// The second half of a condition wait.
    pub(crate) fn relock(&mut self, task: TaskId, op: &'w Op, id: ObjectId) -> Flow<'w> {
        if !std::mem::replace(&mut self.procs[task.index()].relock, false) {
            return Flow::Done;
        }
        self.lock_mutex(task, op, id)
    }

    pub(crate) fn cond_wake(&mut self, cpu: CpuId, task: TaskId, id: ObjectId, n: u32) -> Flow<'w> {
        self.wake_some(cpu, task, n, false, |o| &mut o.conditions[id.0 as usize]);
        Flow::Done
    }

    pub(crate) fn barrier(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        op: &'w Op,
        id: ObjectId,
    ) -> Flow<'w> {
        let Objects { barriers, links, .. } = &mut self.objects;
        let barrier = &mut barriers[id.0 as usize];
        if barrier.arrived.len() + 1 < barrier.parties {
            links.push_back(&mut barrier.arrived, task);
            return asleep(op);
        }
        self.wake_some(cpu, task, u32::MAX, false, |o| &mut o.barriers[id.0 as usize].arrived);
        Flow::Done
    }

    pub(crate) fn futex_arm(&mut self, id: ObjectId) -> Flow<'w> {
        self.objects.futexes[id.0 as usize].blocked = true;
        Flow::Done
    }

    pub(crate) fn futex_wait(&mut self, task: TaskId, op: &'w Op, id: ObjectId) -> Flow<'w> {
        let Objects { futexes, links, .. } = &mut self.objects;
        let futex = &mut futexes[id.0 as usize];
        if !futex.blocked {
            return Flow::Done;
        }
        links.push_back(&mut futex.waiters, task);
        asleep(op)
    }

    /// Clears the blocked mark and wakes up to `n` waiters.
    pub(crate) fn futex_wake(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        id: ObjectId,
        n: u32,
    ) -> Flow<'w> {
        self.objects.futexes[id.0 as usize].blocked = false;
        self.wake_some(cpu, task, n, false, |o| &mut o.futexes[id.0 as usize].waiters);
        Flow::Done
    }

    /// Wakes up to `n` tasks of a queue; `sync` hints that the waker is about to sleep.
    fn wake_some(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        n: u32,
        sync: bool,
        queue: impl Fn(&mut Objects) -> &mut WaitQueue,
    ) {
        for _ in 0..n {
            // The queue is looked up again each time: a wake-up may touch any of them.
            let mut taken = *queue(&mut self.objects);
            let Some(waiter) = self.objects.links.pop_front(&mut taken) else { return };
            *queue(&mut self.objects) = taken;
            self.wake(cpu, waiter, Some(task), sync);
        }
    }
}
