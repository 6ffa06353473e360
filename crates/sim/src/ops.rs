// SPDX-License-Identifier: GPL-2.0-only
//! Carrying out the operations of task programs.

use schedlab_policy_api::{Mm, Policy, SchedEvent, TaskState};
use schedlab_units::{CpuId, CpuSet, Nanos, Nice, TaskId};
use schedlab_workload::Step;
use schedlab_workload::ir::{MarkId, Op, PeriodStep, SchedSpec};

use crate::cpu::{Phase, Why};
use crate::proc::{Then, Todo};
use crate::queue::{Event, Rank};
use crate::{EventOrder, HostObserver, Sim};
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
            Op::RunPart(parts) => Todo::User { left: Nanos::from_ns((proc.drawn / parts).max(1)) },
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
            Op::Draw(time) => {
                proc.drawn = time.draw(&mut proc.rng);
                return Some(Phase::Continue);
            }
            Op::SpinLooking { length, every } => {
                let span = Nanos::from_ns(length.draw(&mut proc.rng));
                let until = self.now.saturating_add(span);
                Todo::Look { until, left: *every, every: *every }
            }
            Op::Mark { .. } | Op::MarkStart(_) | Op::MarkStop(_) | Op::Deadline { .. } => {
                self.note(task, op);
                return Some(Phase::Continue);
            }
            Op::SemTry { semaphore, on_zero } => {
                self.sem_try(task, *semaphore, *on_zero);
                return Some(Phase::Continue);
            }
            Op::Period { period, step } if *step != PeriodStep::Sleep => {
                self.period_step(task, *period, *step);
                return Some(Phase::Continue);
            }
            Op::Advance { timer, period } => {
                let span = Nanos::from_ns(period.draw(&mut proc.rng));
                let next = self.timer_next(task, *timer);
                *next = next.saturating_add(span);
                return Some(Phase::Continue);
            }
            Op::Before { timer, target } => {
                let next = *self.timer_next(task, *timer);
                if self.now < next {
                    self.procs[task.index()].vm.jump(*target);
                }
                return Some(Phase::Continue);
            }
            Op::SignalTaking { target, awake, asleep } => {
                let left = if self.waits_for_signal(task, *target) { *asleep } else { *awake };
                let proc = &mut self.procs[task.index()];
                proc.todo = Todo::Kernel { left, then: Then::Do(op, 0) };
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
        let span = Nanos::from_ns(amount);
        match *op {
            Op::Sleep(_) => self.sleep_for(task, op, span),
            Op::Timer { timer, absolute, .. } => self.periodic(task, op, timer, span, absolute),
            Op::Disk(_) => self.wait_for_device(task, op, span),
            Op::Interrupt { period, kept } => self.wait_for_interrupt(task, op, period, kept),
            Op::Read { pipe, .. } => self.read(cpu, task, op, pipe, amount),
            Op::Write { pipe, .. } => self.write(cpu, task, op, pipe, amount),
            Op::SemWait(id) => self.sem_wait(task, op, id),
            Op::SemPost(id) => self.sem_post(cpu, task, id),
            Op::Period { period, .. } => self.period_sleep(task, op, period),
            Op::Lock(mutex) => self.lock_mutex(task, op, mutex),
            Op::Unlock(mutex) => self.unlock_mutex(cpu, task, mutex),
            Op::CondWait { condition, mutex } => self.cond_wait(cpu, task, op, condition, mutex),
            Op::CondSignal(id) => self.cond_wake(cpu, task, id, 1),
            Op::CondBroadcast(id) => self.cond_wake(cpu, task, id, u32::MAX),
            Op::Barrier(id) => self.barrier(cpu, task, op, id),
            Op::FutexArm(id) => self.futex_arm(id),
            Op::FutexWait(id) => self.futex_wait(task, op, id),
            Op::FutexWake { futex, n } => self.futex_wake(cpu, task, futex, n),
            Op::ListJoin { list, wake, .. } => self.join_list(cpu, task, op, list, wake),
            Op::ListServe(list) => self.take_list(task, op, list),
            Op::Signal(target) | Op::SignalTaking { target, .. } => self.signal(cpu, task, target),
            Op::Kill(template) => self.kill(cpu, task, template),
            Op::SigWait { timeout, .. } => self.wait_for_signal(task, op, timeout.map(|_| span)),
            Op::Fork { template, thread } => self.fork(cpu, task, template, thread),
            Op::WaitChildren | Op::WaitChild => self.wait_for_children(cpu, task, op),
            Op::Exec => self.exec(cpu),
            Op::Exit => self.exit(cpu, task),
            Op::Yield => self.sched_yield(cpu),
            Op::SetSched(sched) => self.set_sched(cpu, task, sched),
            Op::SetNice(nice) => self.set_nice(cpu, task, nice),
            Op::SetAffinity(ref cpus) => self.set_affinity(cpu, task, cpus),
            Op::Run(_)
            | Op::RunForever
            | Op::Draw(_)
            | Op::RunPart(_)
            | Op::Kernel(_)
            | Op::Spin(_)
            | Op::SpinLooking { .. }
            | Op::Advance { .. }
            | Op::Before { .. }
            | Op::Mark { .. }
            | Op::MarkStart(_)
            | Op::MarkStop(_)
            | Op::Deadline { .. }
            | Op::SemTry { .. }
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
            Op::Period { period, .. } => {
                self.objects.periods[period.0 as usize].slept(self.now);
                Flow::Done
            }
            Op::Interrupt { .. } => {
                self.procs[task.index()].interrupts_seen = self.now;
                Flow::Done
            }
            Op::SigWait { on_timeout, .. } => {
                self.take_signal(task, *on_timeout);
                Flow::Done
            }
            _ => Flow::Done,
        }
    }

    fn exec(&mut self, cpu: CpuId) -> Flow<'w> {
        self.n_processes += 1;
        self.core.exec(self.now, cpu, Mm(self.n_processes));
        self.flush(cpu);
        Flow::Done
    }

    fn sched_yield(&mut self, cpu: CpuId) -> Flow<'w> {
        self.core.yield_task(self.now, cpu);
        self.cpus[cpu.index()].debt += self.config.cost.sched_yield.get();
        self.flush(cpu);
        Flow::Done
    }

    fn set_nice(&mut self, cpu: CpuId, task: TaskId, nice: Nice) -> Flow<'w> {
        self.core.set_nice(self.now, cpu, task, nice);
        self.flush(cpu);
        Flow::Done
    }

    fn set_affinity(&mut self, cpu: CpuId, task: TaskId, cpus: &CpuSet) -> Flow<'w> {
        self.core.set_affinity(self.now, cpu, task, cpus);
        self.flush(cpu);
        Flow::Done
    }

    fn set_sched(&mut self, cpu: CpuId, task: TaskId, sched: SchedSpec) -> Flow<'w> {
        let facts = self.core.tasks().get(task);
        if facts.class != sched.class || facts.rt_priority != sched.rt_priority {
            self.core.set_class(self.now, cpu, task, sched.class, sched.rt_priority);
        }
        self.core.set_nice(self.now, cpu, task, sched.nice);
        self.core.set_slice(self.now, cpu, task, sched.slice.as_ns());
        self.flush(cpu);
        Flow::Done
    }

    /// Wakes `task` on `cpu`, charges the wake-up, and sends on what it caused.
    pub(crate) fn wake(&mut self, cpu: CpuId, task: TaskId, waker: Option<TaskId>, sync: bool) {
        let proc = &mut self.procs[task.index()];
        proc.wait = proc.wait.wrapping_add(1);
        proc.release = self.now;
        if std::mem::replace(&mut proc.is_armed, false) {
            self.count_stale();
        }
        match waker {
            Some(waker) if self.config.order == EventOrder::Creation => {
                let proc = &mut self.procs[task.index()];
                proc.woken_by = Some((cpu, waker, sync));
                let event = Event::Wakeup { task, wait: proc.wait };
                self.push_pending(self.now, Rank::Interrupt, 0, event);
            }
            _ => self.wake_now(cpu, task, waker, sync),
        }
    }

    /// The wake-up itself.
    pub(crate) fn wake_now(&mut self, cpu: CpuId, task: TaskId, waker: Option<TaskId>, sync: bool) {
        match self.core.wake(self.now, cpu, task, waker, sync) {
            Wakeup::Queued(_) => {}
            Wakeup::Sent(to) => {
                let at = self.now + self.config.cost.kick_latency.get();
                self.push_pending(at, Rank::Interrupt, 0, Event::WakeArrive { cpu: to, task });
            }
            Wakeup::NotAsleep => unreachable!("only sleepers are on wait queues"),
        }
        if waker.is_some() || !self.config.cost.free_interrupt_wakeups {
            self.charge_wakeup(cpu, self.core.tasks().cpu(task));
        } else {
            self.core.take_work();
        }
        self.flush(cpu);
    }
}
