// SPDX-License-Identifier: GPL-2.0-only
//! What the CPUs spend their time on.

use schedlab_policy_api::{CpuMode, Overhead};
use schedlab_units::{Nanos, Time};

/// Time of one CPU by use; the sum is exactly the measured time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuFigures {
    /// Work of tasks, without the scheduler's own.
    pub busy: Nanos,
    /// Nothing to do.
    pub idle: Nanos,
    /// `schedule` and context switches.
    pub switch: Nanos,
    /// Tick interrupts.
    pub tick: Nanos,
    /// Reschedule, device and timer interrupts.
    pub interrupt: Nanos,
    /// Waking tasks.
    pub wakeup: Nanos,
    /// Leaving idle states.
    pub idle_exit: Nanos,
}

impl CpuFigures {
    /// All work of the scheduler itself.
    pub fn overhead(&self) -> Nanos {
        self.switch + self.tick + self.interrupt + self.wakeup + self.idle_exit
    }

    fn share(&mut self, mode: CpuMode) -> &mut Nanos {
        match mode {
            CpuMode::Idle => &mut self.idle,
            CpuMode::Busy => &mut self.busy,
            CpuMode::Overhead(Overhead::Switch) => &mut self.switch,
            CpuMode::Overhead(Overhead::Tick) => &mut self.tick,
            CpuMode::Overhead(Overhead::Interrupt) => &mut self.interrupt,
            CpuMode::Overhead(Overhead::Wakeup) => &mut self.wakeup,
            CpuMode::Overhead(Overhead::IdleExit) => &mut self.idle_exit,
        }
    }
}

/// A CPU while the run goes on; idle until it says otherwise.
#[derive(Clone, Debug)]
pub(crate) struct Cpu {
    mode: CpuMode,
    since: Time,
    figures: CpuFigures,
}

impl Cpu {
    pub(crate) fn new() -> Self {
        Self { mode: CpuMode::Idle, since: Time::ZERO, figures: CpuFigures::default() }
    }
    /// Turns to `mode` at `now`.
    #[inline]
    pub(crate) fn enter(&mut self, now: Time, mode: CpuMode) {
        *self.figures.share(self.mode) += now - self.since;
        (self.mode, self.since) = (mode, now);
    }
    /// Forgets what was before `now`.
    pub(crate) fn restart(&mut self, now: Time) {
        self.since = now;
        self.figures = CpuFigures::default();
    }
    /// The figures up to `end`.
    pub(crate) fn finish(mut self, end: Time) -> CpuFigures {
        self.enter(end, CpuMode::Idle);
        self.figures
    }
}
