// SPDX-License-Identifier: GPL-2.0-only
//! Carrying out the operations of task programs.

use schedlab_policy_api::{Mm, Policy, SchedEvent, TaskState};
use schedlab_units::{CpuId, Nanos, TaskId};
use schedlab_workload::Step;
use schedlab_workload::ir::{MarkId, ObjectId, Op, SchedSpec, SignalTarget};

use crate::cpu::{Phase, Why};
use crate::objects::Objects;
use crate::proc::{Then, Todo};
use crate::queue::{Event, Rank};
use crate::wait_queue::WaitQueue;
use crate::{HostObserver, Sim, SimError};
use schedlab_kcore::Wakeup;

/// How an operation went.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Flow<'w> {
    /// It is done; back to user mode.
    Done,
    /// There is more to do, in another system call.
    Again(Todo<'w>),
    /// The task sleeps; this comes when it is woken and has a CPU.
    Block(TaskState, Todo<'w>),
    /// The task exits.
    Exit,
}

impl<'w, P: Policy, O: HostObserver> Sim<'w, P, O> {
    /// Takes the next operation of `task`'s program.
    pub(crate) fn next_op(&mut self, cpu: CpuId, task: TaskId) -> Option<Phase> {
        let proc = &mut self.procs[task.index()];
        if !proc.in_kernel && self.core.need_resched(cpu) {
            return self.schedule(cpu, Why::Resched);
        }
        let program = &self.workload.programs[proc.program.0 as usize];
        let op = match proc.vm.next(program, &mut proc.rng) {
            Step::Do(op) => op,
            Step::End => &Op::Exit,
        };
        let todo = match op {
            Op::Run(time) => Todo::User { left: Nanos::from_ns(time.draw(&mut proc.rng)) },
            Op::RunForever => Todo::User { left: Nanos::MAX },
            Op::Spin(time) => {
                let span = Nanos::from_ns(time.draw(&mut proc.rng));
                Todo::Spin { until: self.now.saturating_add(span) }
            }
            Op::Kernel(time) => {
                let left = Nanos::from_ns(time.draw(&mut proc.rng));
                proc.todo = Todo::Kernel { left, then: Then::NextInKernel };
                return Some(Phase::Continue);
            }
            Op::Mark { .. } | Op::MarkStart(_) | Op::MarkStop(_) | Op::Deadline { .. } => {
                self.note(task, op);
                return Some(Phase::Continue);
            }
            _ => {
                let amount = Self::amount(op, &mut proc.rng);
                let in_kernel = proc.in_kernel;
                let syscall = self.config.cost.syscall.get();
                proc.todo = if syscall.is_zero() || in_kernel {
                    Todo::Do(op, amount)
                } else {
                    Todo::Kernel { left: syscall, then: Then::Do(op, amount) }
                };
                return Some(Phase::Continue);
            }
        };
        proc.todo = todo;
        proc.in_kernel = false;
        Some(Phase::Check)
    }

    /// The drawn duration or amount of an operation.
    fn amount(op: &Op, rng: &mut schedlab_units::Rng) -> u64 {
        match op {
            Op::Sleep(time) | Op::Disk(time) | Op::Timer { period: time, .. } => time.draw(rng),
            Op::SigWait { timeout: Some(time), .. } => time.draw(rng),
            Op::Read { bytes, .. } | Op::Write { bytes, .. } => *bytes,
            _ => 0,
        }
    }

    /// Marks and deadlines: they take no time and are no system calls.
    fn note(&mut self, task: TaskId, op: &Op) {
        let now = self.now;
        let proc = &mut self.procs[task.index()];
        let event = match *op {
            Op::Mark { mark, n } => SchedEvent::MarkCount { task, mark: mark.0, n },
            Op::MarkStart(mark) => {
                proc.watches.retain(|(id, _)| *id != mark);
                proc.watches.push((mark, now));
                return;
            }
            Op::MarkStop(mark) => {
                let Some(at) = proc.watches.iter().position(|(id, _)| *id == mark) else { return };
                let (_, since) = proc.watches.swap_remove(at);
                SchedEvent::MarkLatency { task, mark: mark.0, ns: (now - since).as_ns() }
            }
            Op::Deadline { within } => {
                SchedEvent::Deadline { task, due: proc.release.saturating_add(within) }
            }
            _ => unreachable!("only notes come here"),
        };
        self.core.emit(now, &event);
    }

    /// Carries out an operation for the first time, or again after a fruitless sleep.
    pub(crate) fn execute(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        op: &'w Op,
        amount: u64,
    ) -> Flow<'w> {
        let complete = Flow::Block(TaskState::Sleeping, Todo::Complete(op));
        match op {
            Op::Sleep(_) => self.sleep_for(cpu, task, op, Nanos::from_ns(amount)),
            Op::Timer { timer, absolute, .. } => {
                self.periodic(cpu, task, op, *timer, Nanos::from_ns(amount), *absolute)
            }
            Op::Disk(_) => {
                let wait = self.procs[task.index()].wait;
                let at = self.now.saturating_add(Nanos::from_ns(amount));
                self.push_pending(at, Rank::Interrupt, 0, Event::Device { task, wait });
                Flow::Block(TaskState::Uninterruptible, Todo::Complete(op))
            }
            Op::Read { pipe, .. } => self.read(cpu, task, op, *pipe, amount),
            Op::Write { pipe, .. } => self.write(cpu, task, op, *pipe, amount),
            Op::SemWait(id) => {
                let Objects { semaphores, links, .. } = &mut self.objects;
                let semaphore = &mut semaphores[id.0 as usize];
                if semaphore.count > 0 {
                    semaphore.count -= 1;
                    return Flow::Done;
                }
                links.push_back(&mut semaphore.waiters, task);
                complete
            }
            Op::SemPost(id) => {
                let Objects { semaphores, links, .. } = &mut self.objects;
                let semaphore = &mut semaphores[id.0 as usize];
                match links.pop_front(&mut semaphore.waiters) {
                    Some(waiter) => self.wake(cpu, waiter, Some(task), false),
                    None => semaphore.count += 1,
                }
                Flow::Done
            }
            Op::Lock(mutex) => self.lock_mutex(task, op, *mutex),
            Op::Unlock(mutex) => {
                self.unlock_mutex(cpu, task, *mutex);
                Flow::Done
            }
            Op::CondWait { condition, mutex } => {
                let serial = self.procs[task.index()].serial;
                let held = self.objects.mutexes[mutex.0 as usize].owner == Some(serial);
                self.procs[task.index()].relock = held;
                if held {
                    self.unlock_mutex(cpu, task, *mutex);
                }
                let Objects { conditions, links, .. } = &mut self.objects;
                links.push_back(&mut conditions[condition.0 as usize], task);
                complete
            }
            Op::CondSignal(condition) => {
                self.wake_some(cpu, task, 1, false, |o| &mut o.conditions[condition.0 as usize]);
                Flow::Done
            }
            Op::CondBroadcast(condition) => {
                self.wake_some(cpu, task, u32::MAX, false, |o| {
                    &mut o.conditions[condition.0 as usize]
                });
                Flow::Done
            }
            Op::Barrier(id) => {
                let Objects { barriers, links, .. } = &mut self.objects;
                let barrier = &mut barriers[id.0 as usize];
                if barrier.arrived.len() + 1 < barrier.parties {
                    links.push_back(&mut barrier.arrived, task);
                    return complete;
                }
                self.wake_some(cpu, task, u32::MAX, false, |o| {
                    &mut o.barriers[id.0 as usize].arrived
                });
                Flow::Done
            }
            Op::FutexArm(id) => {
                self.objects.futexes[id.0 as usize].blocked = true;
                Flow::Done
            }
            Op::FutexWait(id) => {
                let Objects { futexes, links, .. } = &mut self.objects;
                let futex = &mut futexes[id.0 as usize];
                if !futex.blocked {
                    return Flow::Done;
                }
                links.push_back(&mut futex.waiters, task);
                complete
            }
            Op::FutexWake { futex, n } => {
                self.futex_wake(cpu, task, *futex, *n);
                Flow::Done
            }
            Op::ListJoin { list, wake, .. } => {
                let Objects { lists, links, .. } = &mut self.objects;
                links.push_front(&mut lists[list.0 as usize], task);
                self.futex_wake(cpu, task, *wake, 1);
                complete
            }
            Op::ListServe(list) => self.take_list(task, op, *list),
            Op::Signal(target) => {
                self.signal(cpu, task, *target);
                Flow::Done
            }
            Op::Kill(template) => {
                self.kill(cpu, task, *template);
                Flow::Done
            }
            Op::SigWait { timeout, .. } => {
                let limit = timeout.map(|_| Nanos::from_ns(amount));
                self.wait_for_signal(task, op, limit)
            }
            Op::Fork { template, thread } => {
                self.fork(cpu, task, *template, *thread);
                Flow::Done
            }
            Op::WaitChildren | Op::WaitChild => self.wait_for_children(cpu, task, op),
            Op::Exec => {
                self.n_processes += 1;
                self.core.exec(self.now, cpu, Mm(self.n_processes));
                self.flush(cpu);
                Flow::Done
            }
            Op::Exit => {
                self.exit(cpu, task);
                Flow::Exit
            }
            Op::Yield => {
                self.core.yield_task(self.now, cpu);
                self.flush(cpu);
                Flow::Done
            }
            Op::SetSched(sched) => {
                self.set_sched(cpu, task, sched);
                Flow::Done
            }
            Op::SetNice(nice) => {
                self.core.set_nice(self.now, cpu, task, *nice);
                self.flush(cpu);
                Flow::Done
            }
            Op::SetAffinity(cpus) => {
                self.core.set_affinity(self.now, cpu, task, cpus);
                self.flush(cpu);
                Flow::Done
            }
            Op::Run(_)
            | Op::RunForever
            | Op::Kernel(_)
            | Op::Spin(_)
            | Op::Mark { .. }
            | Op::MarkStart(_)
            | Op::MarkStop(_)
            | Op::Deadline { .. }
            | Op::SetCounter { .. }
            | Op::DecJump { .. }
            | Op::Jump { .. }
            | Op::JumpRandom { .. } => unreachable!("{op:?} is no system call"),
        }
    }

    /// Completes an operation in which `task` slept, now that it has a CPU again.
    pub(crate) fn complete(&mut self, cpu: CpuId, task: TaskId, op: &'w Op) -> Flow<'w> {
        match op {
            Op::CondWait { mutex, .. } => self.relock(task, op, *mutex),
            Op::ListJoin { mark: Some(MarkId(mark)), .. } => {
                let span = self.now - self.procs[task.index()].served_at;
                let event = SchedEvent::MarkLatency { task, mark: *mark, ns: span.as_ns() };
                self.core.emit(self.now, &event);
                Flow::Done
            }
            Op::ListServe(_) => self.serve_one(cpu, task, op),
            Op::SigWait { on_timeout, .. } => {
                self.take_signal(task, *on_timeout);
                Flow::Done
            }
            _ => Flow::Done,
        }
    }

    fn read(&mut self, cpu: CpuId, task: TaskId, op: &'w Op, id: ObjectId, bytes: u64) -> Flow<'w> {
        let pipe = &mut self.objects.pipes[id.0 as usize];
        let sync = pipe.is_sync();
        let moved = pipe.read(bytes);
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

    fn write(
        &mut self,
        cpu: CpuId,
        task: TaskId,
        op: &'w Op,
        id: ObjectId,
        bytes: u64,
    ) -> Flow<'w> {
        let pipe = &mut self.objects.pipes[id.0 as usize];
        let sync = pipe.is_sync();
        let moved = pipe.write(bytes);
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

    fn lock_mutex(&mut self, task: TaskId, op: &'w Op, id: ObjectId) -> Flow<'w> {
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
    fn unlock_mutex(&mut self, cpu: CpuId, task: TaskId, id: ObjectId) {
        let serial = self.procs[task.index()].serial;
        let Objects { mutexes, links, .. } = &mut self.objects;
        let mutex = &mut mutexes[id.0 as usize];
        if mutex.owner != Some(serial) {
            self.fault = Some(SimError::NotOwner {
                at: self.now,
                task: self.name_of(task),
                mutex: self.workload.objects.mutexes[id.0 as usize].name.clone(),
            });
            return;
        }
        let heir = links.pop_front(&mut mutex.waiters);
        mutex.owner = heir.map(|heir| self.procs[heir.index()].serial);
        if let Some(heir) = heir {
            self.wake(cpu, heir, Some(task), false);
        }
    }

    /// The second half of a condition wait.
    fn relock(&mut self, task: TaskId, op: &'w Op, id: ObjectId) -> Flow<'w> {
        if !std::mem::replace(&mut self.procs[task.index()].relock, false) {
            return Flow::Done;
        }
        self.lock_mutex(task, op, id)
    }

    fn futex_wake(&mut self, cpu: CpuId, task: TaskId, id: ObjectId, n: u32) {
        self.objects.futexes[id.0 as usize].blocked = false;
        self.wake_some(cpu, task, n, false, |o| &mut o.futexes[id.0 as usize].waiters);
    }

    fn signal(&mut self, cpu: CpuId, task: TaskId, target: SignalTarget) {
        match target {
            SignalTarget::Parent => {
                if let Some(parent) = self.procs[task.index()].family.parent {
                    self.post_signal(cpu, task, parent);
                }
            }
            SignalTarget::Template(template) => {
                let n = self.signal_targets[template.0 as usize].as_ref().map_or(0, Vec::len);
                for index in 0..n {
                    let target = self.signal_targets[template.0 as usize]
                        .as_ref()
                        .and_then(|targets| targets.get(index).copied());
                    if let Some(target) = target {
                        self.post_signal(cpu, task, target);
                    }
                }
            }
        }
    }

    /// Signals coalesce: one that is pending already is dropped, and a task that is awake is not
    /// woken (spec cfs-eevdf §6 Q14).
    fn post_signal(&mut self, cpu: CpuId, sender: TaskId, target: TaskId) {
        let proc = &mut self.procs[target.index()];
        if std::mem::replace(&mut proc.signal_pending, true) {
            return;
        }
        if std::mem::replace(&mut proc.in_sigwait, false) {
            self.wake(cpu, target, Some(sender), false);
        }
    }

    fn set_sched(&mut self, cpu: CpuId, task: TaskId, sched: &SchedSpec) {
        let facts = self.core.tasks().get(task);
        if facts.class != sched.class || facts.rt_priority != sched.rt_priority {
            self.core.set_class(self.now, cpu, task, sched.class, sched.rt_priority);
        }
        self.core.set_nice(self.now, cpu, task, sched.nice);
        self.core.set_slice(self.now, cpu, task, sched.slice.as_ns());
        self.flush(cpu);
    }

    /// Wakes `task` on `cpu`, charges the wake-up, and sends on what it caused.
    pub(crate) fn wake(&mut self, cpu: CpuId, task: TaskId, waker: Option<TaskId>, sync: bool) {
        let proc = &mut self.procs[task.index()];
        proc.wait = proc.wait.wrapping_add(1);
        proc.release = self.now;
        if std::mem::replace(&mut proc.is_armed, false) {
            self.count_stale();
        }
        match self.core.wake(self.now, cpu, task, waker, sync) {
            Wakeup::Queued(_) => {}
            Wakeup::Sent(to) => {
                let at = self.now + self.config.cost.kick_latency.get();
                self.push_pending(at, Rank::Interrupt, 0, Event::WakeArrive { cpu: to, task });
            }
            Wakeup::NotAsleep => unreachable!("only sleepers are on wait queues"),
        }
        self.charge_wakeup(cpu, self.core.tasks().cpu(task));
        self.flush(cpu);
    }
}
