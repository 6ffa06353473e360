// SPDX-License-Identifier: GPL-2.0-only
//! Playing the operations of a task's program in its thread.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::io::Errno;
use schedlab_units::{CpuSet, Nanos, Rng, Time};
use schedlab_workload::ir::{Dist, MarkId, ObjectId, Op, PeriodStep, SchedSpec, SignalTarget};
use schedlab_workload::{Step, Verdict, Vm};

use crate::burn::{burn, spin_until};
use crate::calls;
use crate::objects::{Queue, Timer, sleep_in, wake_some};
use crate::play::Shared;
use crate::played::{Note, Noted};
use crate::task::{Task, lock};

/// Why a program goes no further.
#[derive(Debug)]
pub(crate) enum Cut {
    /// It exits.
    Exit,
    /// It was told to end: the play is over, or a fatal signal came.
    Ended,
    /// It does what makes no sense.
    Fault(String),
}

type Flow = Result<(), Cut>;

/// A thread that plays a task.
pub(crate) struct Player {
    pub(crate) shared: Arc<Shared>,
    pub(crate) me: Arc<Task>,
    pub(crate) vm: Vm,
    pub(crate) rng: Rng,
    /// What the streams of its family follow from, and how many of it have been given out.
    pub(crate) lineage: (u64, u64),
    pub(crate) drawn: u64,
    pub(crate) sched: SchedSpec,
    /// First reference of its timers.
    pub(crate) reference: Time,
    /// The timer expiry that deadlines count from; none = the last wake-up.
    pub(crate) release: Option<Time>,
    pub(crate) interrupts_seen: Time,
    pub(crate) timers: Vec<(ObjectId, Timer)>,
    pub(crate) watches: Vec<(MarkId, Time)>,
    pub(crate) notes: Vec<Note>,
    pub(crate) ops: u64,
}

impl Player {
    fn ended(&self) -> bool {
        self.shared.stop.load(Ordering::Relaxed) || self.me.killed.load(Ordering::Relaxed)
    }

    fn note(&mut self, time: Time, what: Noted) {
        self.notes.push(Note { time, thread: self.me.index, what });
    }

    fn draw(&mut self, amount: Dist) -> u64 {
        amount.draw(&mut self.rng)
    }

    /// Plays the program to its end.
    pub(crate) fn run(&mut self) -> Cut {
        let shared = Arc::clone(&self.shared);
        let program = shared.program(self.me.template);
        loop {
            if self.ended() {
                return Cut::Ended;
            }
            let op = match self.vm.next(program, &mut self.rng) {
                Step::Do(op) => op,
                Step::End => &Op::Exit,
            };
            self.ops += 1;
            if let Err(cut) = self.play(op) {
                return cut;
            }
        }
    }

    fn play(&mut self, op: &Op) -> Flow {
        match *op {
            Op::Run(time) | Op::Kernel(time) => {
                let length = self.draw(time);
                self.compute(Nanos::from_ns(length))
            }
            Op::Draw(time) => {
                self.drawn = self.draw(time);
                Ok(())
            }
            Op::RunPart(parts) => self.compute(Nanos::from_ns((self.drawn / parts).max(1))),
            Op::RunForever => self.compute(Nanos::MAX),
            Op::Spin(time) => {
                let span = Nanos::from_ns(self.draw(time));
                let until = calls::now().saturating_add(span);
                if spin_until(until, || self.ended()) { Err(Cut::Ended) } else { Ok(()) }
            }
            Op::SpinLooking { length, every } => {
                let span = Nanos::from_ns(self.draw(length));
                let until = calls::now().saturating_add(span);
                while calls::now() < until {
                    self.compute(every)?;
                }
                Ok(())
            }
            Op::Sleep(time) | Op::Disk(time) => {
                let span = Nanos::from_ns(self.draw(time));
                self.sleep_until(calls::now().saturating_add(span))
            }
            Op::Timer { timer, period, absolute } => {
                let period = Nanos::from_ns(self.draw(period));
                self.periodic(timer, period, absolute)
            }
            Op::Advance { timer, period } => {
                let span = Nanos::from_ns(self.draw(period));
                self.with_timer(timer, |timer, next| {
                    timer.next = Some(next.saturating_add(span));
                });
                Ok(())
            }
            Op::Before { timer, target } => {
                if calls::now() < self.with_timer(timer, |_, next| next) {
                    self.vm.jump(target);
                }
                Ok(())
            }
            Op::Interrupt { period, kept } => self.interrupt(period, kept),
            Op::Read { pipe, bytes } => self.read(pipe, bytes),
            Op::Write { pipe, bytes } => self.write(pipe, bytes),
            Op::SemWait(_)
            | Op::SemPost(_)
            | Op::SemTry { .. }
            | Op::Lock(_)
            | Op::Unlock(_)
            | Op::CondWait { .. }
            | Op::CondSignal(_)
            | Op::CondBroadcast(_)
            | Op::Barrier(_)
            | Op::FutexArm(_)
            | Op::FutexWait(_)
            | Op::FutexWake { .. }
            | Op::ListJoin { .. }
            | Op::ListServe(_) => self.synchronise(op),
            Op::Signal(_) | Op::SignalTaking { .. } | Op::Kill(_) | Op::SigWait { .. } => {
                self.signals(op)
            }
            Op::Fork { template, .. } => {
                Shared::fork(&self.shared.clone(), self, template).map_err(Cut::Fault)
            }
            Op::WaitChildren | Op::WaitChild => {
                while !self.me.collect(matches!(op, Op::WaitChildren)) {
                    self.park()?;
                }
                Ok(())
            }
            Op::Exec => {
                self.note(calls::now(), Noted::Exec);
                Ok(())
            }
            Op::Exit => Err(Cut::Exit),
            Op::Yield => {
                let since = calls::now();
                rustix::thread::sched_yield();
                self.note(since, Noted::Yield { until: calls::now() });
                Ok(())
            }
            Op::SetSched(sched) => self.set_sched(sched),
            Op::SetNice(nice) => self.set_sched(SchedSpec { nice, ..self.sched }),
            Op::SetAffinity(ref cpus) => self.set_affinity(cpus),
            Op::Mark { .. } | Op::MarkStart(_) | Op::MarkStop(_) | Op::Deadline { .. } => {
                self.mark(op);
                Ok(())
            }
            Op::Period { period, step } => self.period(period, step),
            Op::SetCounter { .. }
            | Op::DecJump { .. }
            | Op::Jump { .. }
            | Op::JumpRandom { .. } => {
                unreachable!("the machine of programs deals with {op:?}")
            }
        }
    }

    fn compute(&self, length: Nanos) -> Flow {
        if burn(length, || self.ended()) { Err(Cut::Ended) } else { Ok(()) }
    }

    /// Sleeps until `due`; deadlines count from it.
    pub(crate) fn sleep_until(&mut self, due: Time) -> Flow {
        loop {
            match calls::sleep_until(due) {
                Ok(()) => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                    if self.ended() {
                        return Err(Cut::Ended);
                    }
                }
                Err(error) => return Err(Cut::Fault(format!("a timer sleep failed: {error}"))),
            }
        }
        self.release = Some(due);
        Ok(())
    }

    /// Timer `id` as this task sees it, and its next expiry.
    fn with_timer<T>(&mut self, id: ObjectId, act: impl FnOnce(&mut Timer, Time) -> T) -> T {
        let reference = self.reference;
        if !self.shared.workload.objects.timers[id.0 as usize].per_task {
            let mut timer = lock(&self.shared.objects.timers[id.0 as usize]);
            let next = *timer.next.get_or_insert(reference);
            return act(&mut timer, next);
        }
        let at = match self.timers.iter().position(|(other, _)| *other == id) {
            Some(at) => at,
            None => {
                self.timers.push((id, Timer::default()));
                self.timers.len() - 1
            }
        };
        let timer = &mut self.timers[at].1;
        let next = *timer.next.get_or_insert(reference);
        act(timer, next)
    }

    fn periodic(&mut self, id: ObjectId, period: Nanos, absolute: bool) -> Flow {
        let now = calls::now();
        let due = self.with_timer(id, |timer, next| {
            timer.absolute |= absolute;
            let due = next.saturating_add(period);
            timer.next = Some(if due > now || timer.absolute { due } else { now });
            due
        });
        if due > now {
            return self.sleep_until(due);
        }
        self.release = Some(due);
        Ok(())
    }

    /// The next multiple of the period since the start, or at once if the device keeps interrupts
    /// and some came since the task last waited.
    fn interrupt(&mut self, period: Nanos, kept: bool) -> Flow {
        let start = self.shared.start();
        let next_after = |at: Time| {
            let n = at.saturating_since(start).as_ns() / period.as_ns() + 1;
            start.saturating_add(period.saturating_mul(n))
        };
        let now = calls::now();
        let first = next_after(self.interrupts_seen);
        if kept && first <= now {
            self.release = Some(first);
        } else {
            self.sleep_until(next_after(now))?;
        }
        self.interrupts_seen = calls::now();
        Ok(())
    }

    fn read(&mut self, pipe: ObjectId, bytes: u64) -> Flow {
        let mut buffer = [0; 4096];
        let mut left = bytes;
        while left > 0 {
            let part = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
            let end = self.shared.objects.pipes[pipe.0 as usize].read.as_fd();
            match rustix::io::read(end, &mut buffer[..part]) {
                Ok(n) => left -= n as u64,
                Err(error) => self.interrupted(error, "a read")?,
            }
        }
        self.release = None;
        Ok(())
    }

    fn write(&mut self, pipe: ObjectId, bytes: u64) -> Flow {
        static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
        let mut left = bytes;
        while left > 0 {
            let part = usize::try_from(left).unwrap_or(usize::MAX).min(ZEROS.len());
            let end = self.shared.objects.pipes[pipe.0 as usize].write.as_fd();
            match rustix::io::write(end, &ZEROS[..part]) {
                Ok(n) => left -= n as u64,
                Err(error) => self.interrupted(error, "a write")?,
            }
        }
        self.release = None;
        Ok(())
    }

    /// A call that was interrupted is made again, unless the task is to end.
    fn interrupted(&self, error: Errno, what: &str) -> Flow {
        match error {
            Errno::INTR if self.ended() => Err(Cut::Ended),
            Errno::INTR => Ok(()),
            error => Err(Cut::Fault(format!("{what} failed: {error}"))),
        }
    }

    fn park(&mut self) -> Flow {
        if !self.me.park(|| self.ended()) {
            return Err(Cut::Ended);
        }
        self.release = None;
        Ok(())
    }

    /// Sleeps in a queue that it has entered.
    fn sleep_in<T>(
        &mut self,
        object: impl Fn(&Shared) -> &std::sync::Mutex<T>,
        queue: impl Fn(&mut T) -> &mut Queue,
    ) -> Flow {
        if !sleep_in(object(&self.shared), queue, &self.me, || self.ended()) {
            return Err(Cut::Ended);
        }
        self.release = None;
        Ok(())
    }

    fn synchronise(&mut self, op: &Op) -> Flow {
        let shared = Arc::clone(&self.shared);
        let objects = &shared.objects;
        match *op {
            Op::SemWait(id) => {
                let mut semaphore = lock(&objects.semaphores[id.0 as usize]);
                if semaphore.count > 0 {
                    semaphore.count -= 1;
                    return Ok(());
                }
                semaphore.waiters.push_back(Arc::clone(&self.me));
                drop(semaphore);
                self.sleep_in(|s| &s.objects.semaphores[id.0 as usize], |s| &mut s.waiters)
            }
            Op::SemPost(id) => {
                let mut semaphore = lock(&objects.semaphores[id.0 as usize]);
                match semaphore.waiters.pop_front() {
                    Some(waiter) => {
                        drop(semaphore);
                        waiter.unpark();
                    }
                    None => semaphore.count += 1,
                }
                Ok(())
            }
            Op::SemTry { semaphore, on_zero } => {
                let mut semaphore = lock(&objects.semaphores[semaphore.0 as usize]);
                match semaphore.count.checked_sub(1) {
                    Some(left) => semaphore.count = left,
                    None => self.vm.jump(on_zero),
                }
                Ok(())
            }
            Op::Lock(id) => self.lock_mutex(id),
            Op::Unlock(id) => self.unlock_mutex(id),
            Op::CondWait { condition, mutex } => {
                let held = lock(&objects.mutexes[mutex.0 as usize]).owner == Some(self.me.index);
                lock(&objects.conditions[condition.0 as usize]).push_back(Arc::clone(&self.me));
                if held {
                    self.unlock_mutex(mutex)?;
                }
                self.sleep_in(|s| &s.objects.conditions[condition.0 as usize], |q| q)?;
                if held { self.lock_mutex(mutex) } else { Ok(()) }
            }
            Op::CondSignal(id) => {
                wake_some(&mut lock(&objects.conditions[id.0 as usize]), 1);
                Ok(())
            }
            Op::CondBroadcast(id) => {
                wake_some(&mut lock(&objects.conditions[id.0 as usize]), u32::MAX);
                Ok(())
            }
            Op::Barrier(id) => {
                let parties = shared.workload.objects.barriers[id.0 as usize].parties as usize;
                let mut arrived = lock(&objects.barriers[id.0 as usize]);
                if arrived.len() + 1 >= parties {
                    wake_some(&mut arrived, u32::MAX);
                    return Ok(());
                }
                arrived.push_back(Arc::clone(&self.me));
                drop(arrived);
                self.sleep_in(|s| &s.objects.barriers[id.0 as usize], |q| q)
            }
            Op::FutexArm(id) => {
                lock(&objects.futexes[id.0 as usize]).blocked = true;
                Ok(())
            }
            Op::FutexWait(id) => {
                let mut futex = lock(&objects.futexes[id.0 as usize]);
                if !futex.blocked {
                    return Ok(());
                }
                futex.waiters.push_back(Arc::clone(&self.me));
                drop(futex);
                self.sleep_in(|s| &s.objects.futexes[id.0 as usize], |f| &mut f.waiters)
            }
            Op::FutexWake { futex, n } => {
                wake_futex(&shared, futex, n);
                Ok(())
            }
            Op::ListJoin { list, wake, mark } => {
                lock(&objects.lists[list.0 as usize]).push_back(Arc::clone(&self.me));
                wake_futex(&shared, wake, 1);
                self.sleep_in(|s| &s.objects.lists[list.0 as usize], |q| q)?;
                if let Some(MarkId(mark)) = mark {
                    let now = calls::now();
                    let served = Time::from_ns(self.me.served_at.load(Ordering::Acquire));
                    let ns = now.saturating_since(served).as_ns();
                    self.note(now, Noted::Latency { mark, ns });
                }
                Ok(())
            }
            Op::ListServe(list) => {
                let mut taken = std::mem::take(&mut *lock(&objects.lists[list.0 as usize]));
                let now = calls::now().as_ns();
                while let Some(member) = taken.pop_back() {
                    member.served_at.store(now, Ordering::Release);
                    member.unpark();
                }
                Ok(())
            }
            _ => unreachable!("{op:?} does not synchronise"),
        }
    }

    fn lock_mutex(&mut self, id: ObjectId) -> Flow {
        let mut mutex = lock(&self.shared.objects.mutexes[id.0 as usize]);
        match mutex.owner {
            None => mutex.owner = Some(self.me.index),
            Some(owner) if owner == self.me.index => {
                drop(mutex);
                return Err(self.mutex_fault("locks", id, "which it holds already"));
            }
            Some(_) => {
                mutex.waiters.push_back(Arc::clone(&self.me));
                drop(mutex);
                return self.sleep_in(|s| &s.objects.mutexes[id.0 as usize], |m| &mut m.waiters);
            }
        }
        Ok(())
    }

    /// Hands the mutex to the longest waiter.
    fn unlock_mutex(&self, id: ObjectId) -> Flow {
        let mut mutex = lock(&self.shared.objects.mutexes[id.0 as usize]);
        if mutex.owner != Some(self.me.index) {
            drop(mutex);
            return Err(self.mutex_fault("unlocks", id, "which it does not hold"));
        }
        let heir = mutex.waiters.pop_front();
        mutex.owner = heir.as_ref().map(|heir| heir.index);
        drop(mutex);
        if let Some(heir) = heir {
            heir.unpark();
        }
        Ok(())
    }

    fn mutex_fault(&self, does: &str, id: ObjectId, why: &str) -> Cut {
        let task = self.shared.name(self.me.template, self.me.instance);
        let mutex = &self.shared.workload.objects.mutexes[id.0 as usize].name;
        Cut::Fault(format!("task `{task}` {does} mutex `{mutex}`, {why}"))
    }

    fn signals(&mut self, op: &Op) -> Flow {
        match *op {
            Op::Signal(target) => {
                self.shared.targets(target, &self.me).iter().for_each(post);
                Ok(())
            }
            Op::SignalTaking { target, awake, asleep } => {
                let targets = self.shared.targets(target, &self.me);
                let waits = targets.iter().any(|t| t.in_sigwait.load(Ordering::Acquire));
                self.compute(if waits { asleep } else { awake })?;
                targets.iter().for_each(post);
                Ok(())
            }
            Op::Kill(template) => {
                let targets = self.shared.targets(SignalTarget::Template(template), &self.me);
                for target in targets {
                    target.killed.store(true, Ordering::Release);
                    if let Some(tid) = target.tid() {
                        calls::nudge(tid);
                    }
                }
                Ok(())
            }
            Op::SigWait { timeout, on_timeout } => {
                let limit = timeout.map(|timeout| Nanos::from_ns(self.draw(timeout)));
                self.wait_for_signal(limit, on_timeout)
            }
            _ => unreachable!("{op:?} has nothing to do with signals"),
        }
    }

    fn wait_for_signal(&mut self, limit: Option<Nanos>, on_timeout: Option<u32>) -> Flow {
        let due = limit.map(|limit| calls::now().saturating_add(limit));
        self.me.in_sigwait.store(true, Ordering::Release);
        let outcome = loop {
            let left = due.map(|due| due.saturating_since(calls::now()));
            match calls::wait_for_signal(left) {
                Ok(()) => break Ok(None),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break Ok(due),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                    if self.ended() {
                        break Err(Cut::Ended);
                    }
                }
                Err(error) => {
                    break Err(Cut::Fault(format!("a wait for a signal failed: {error}")));
                }
            }
        };
        self.me.in_sigwait.store(false, Ordering::Release);
        let timed_out = outcome?;
        self.release = timed_out;
        if let (Some(_), Some(target)) = (timed_out, on_timeout) {
            self.vm.jump(target);
        }
        Ok(())
    }

    /// Sets its parameters; what the kernel refuses for want of rights is counted.
    pub(crate) fn set_sched(&mut self, sched: SchedSpec) -> Flow {
        let set = calls::set_sched(sched.class, sched.nice.get(), sched.rt_priority, sched.slice);
        match set {
            Ok(()) => {
                self.sched = sched;
                let SchedSpec { class, nice, rt_priority, .. } = sched;
                self.note(calls::now(), Noted::Sched { nice, class, rt_priority });
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.shared.refused.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            Err(error) => {
                let class = sched.class.name();
                Err(Cut::Fault(format!("the kernel does not set class {class}: {error}")))
            }
        }
    }

    /// Sets its CPUs, given as the workload counts them.
    pub(crate) fn set_affinity(&mut self, cpus: &CpuSet) -> Flow {
        self.shared.pin(cpus).map_err(|error| {
            Cut::Fault(format!("the kernel does not set the affinity {cpus}: {error}"))
        })
    }

    fn mark(&mut self, op: &Op) {
        let now = calls::now();
        match *op {
            Op::Mark { mark, n } => self.note(now, Noted::Count { mark: mark.0, n }),
            Op::MarkStart(mark) => {
                self.watches.retain(|(id, _)| *id != mark);
                self.watches.push((mark, now));
            }
            Op::MarkStop(mark) => {
                let Some(at) = self.watches.iter().position(|(id, _)| *id == mark) else { return };
                let (_, since) = self.watches.swap_remove(at);
                let ns = now.saturating_since(since).as_ns();
                self.note(now, Noted::Latency { mark: mark.0, ns });
            }
            Op::Deadline { within } => {
                let release = self.release;
                self.note(now, Noted::Deadline { release, within });
            }
            _ => unreachable!("{op:?} notes nothing"),
        }
    }

    fn period(&mut self, id: ObjectId, step: PeriodStep) -> Flow {
        let shared = Arc::clone(&self.shared);
        let spec = &shared.workload.objects.periods[id.0 as usize];
        let period = || lock(&shared.objects.periods[id.0 as usize]);
        let now = calls::now();
        // The program's clock counts from the start.
        let clock = |at: Time| Time::ZERO + at.saturating_since(shared.start());
        let ((verdict, counts), target) = match step {
            PeriodStep::Begin { interval, on_missed } => {
                (period().begin(clock(now), interval), on_missed)
            }
            PeriodStep::End { interval, on_late } => (period().end(clock(now), interval), on_late),
            PeriodStep::Reset => {
                period().reset(clock(now));
                return Ok(());
            }
            PeriodStep::Shift(by) => {
                period().shift(by);
                return Ok(());
            }
            PeriodStep::Sample => {
                let ns = period().sample_us().saturating_mul(1000);
                if let Some(MarkId(mark)) = spec.sample {
                    self.note(now, Noted::Latency { mark, ns });
                }
                return Ok(());
            }
            PeriodStep::Sleep => {
                let span = period().sleep(clock(now));
                self.sleep_until(now.saturating_add(span))?;
                period().slept(clock(calls::now()));
                return Ok(());
            }
        };
        for (mark, n) in [
            (spec.achieved, counts.achieved),
            (spec.missed_burns, counts.missed_burns),
            (spec.met, counts.met),
            (spec.missed, counts.missed),
        ] {
            if let Some(MarkId(mark)) = mark
                && n > 0
            {
                self.note(now, Noted::Count { mark, n });
            }
        }
        if let (Verdict::Jump, Some(target)) = (verdict, target) {
            self.vm.jump(target);
        }
        Ok(())
    }
}

fn wake_futex(shared: &Shared, futex: ObjectId, n: u32) {
    let mut futex = lock(&shared.objects.futexes[futex.0 as usize]);
    futex.blocked = false;
    wake_some(&mut futex.waiters, n);
}

fn post(target: &Arc<Task>) {
    if let Some(tid) = target.tid()
        && !target.gone.load(Ordering::Acquire)
    {
        calls::signal(tid);
    }
}
