// SPDX-License-Identifier: GPL-2.0-only
//! Playing the operations of a task's program.

mod marks;
mod signals;
mod synchronise;

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::io::Errno;
use schedlab_units::{Nanos, Rng, Time};
use schedlab_workload::ir::{Dist, MarkId, ObjectId, Op, SchedSpec};
use schedlab_workload::{Step, Vm};

use crate::burn::{burn, spin_until};
use crate::calls;
use crate::objects::Timer;
use crate::played::{Note, Noted};
use crate::shared::Shared;
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
    /// It needs what this host does not provide.
    Lack(String),
}

type Flow = Result<(), Cut>;

/// A task at play.
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
        self.notes.push(Note { time, task: self.me.index, what });
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
            Op::Fork { template, thread } => Arc::clone(&self.shared).fork(self, template, thread),
            Op::WaitChildren | Op::WaitChild => {
                while !self.me.collect(matches!(op, Op::WaitChildren)) {
                    self.park()?;
                }
                Ok(())
            }
            Op::Exec => {
                self.exec();
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

    /// Executes what is no program: the kernel balances, and refuses only then.
    fn exec(&mut self) {
        let Some(image) = &self.shared.image else { return };
        match Errno::from_io_error(&calls::exec(image)) {
            Some(Errno::NOEXEC) => self.note(calls::now(), Noted::Exec),
            other => {
                let error = other.map_or(-1, Errno::raw_os_error);
                self.shared.exec_error.store(error, Ordering::Relaxed);
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
}
