// SPDX-License-Identifier: GPL-2.0-only
//! Interrupts: how they break into what a CPU is doing, and how it goes on.

use schedlab_policy_api::{Overhead, Policy};
use schedlab_units::{CpuId, Nanos, Time};

use crate::cpu::{Phase, Stage};
use crate::proc::Todo;
use crate::{HostObserver, Sim};

impl<P: Policy, O: HostObserver> Sim<'_, P, O> {
    /// The interrupt ends: its cost is spent, then what it broke into goes on, or, if that was user
    /// mode or idling and the CPU needs it, `schedule` is called.
    pub(crate) fn irq_exit(&mut self, cpu: CpuId, kind: Overhead) {
        let state = self.cpus[cpu.index()];
        let needs_resched = self.core.need_resched(cpu);
        match state.stage {
            Stage::Overhead => {
                if !state.debt.is_zero() {
                    self.cpus[cpu.index()].debt = Nanos::ZERO;
                    self.enter(cpu, Stage::Overhead, state.end + state.debt);
                }
            }
            Stage::Kernel => {
                if !state.debt.is_zero() {
                    self.pause(cpu, state.end);
                    self.resume_after(cpu, kind, Phase::Continue);
                }
            }
            Stage::User => {
                let curr = self.core.curr(cpu);
                let killed = curr.is_some_and(|task| self.procs[task.index()].killed);
                if needs_resched || killed || !state.debt.is_zero() {
                    self.pause(cpu, state.end);
                    self.resume_after(cpu, kind, Phase::Check);
                }
            }
            Stage::Idle => {
                if needs_resched || !state.debt.is_zero() {
                    let idle = self.now - state.idle_since;
                    let exit = self.config.cost.idle_exit(idle);
                    self.cpus[cpu.index()].debt += exit;
                    self.resume_after(cpu, kind, Phase::Check);
                }
            }
        }
    }

    fn resume_after(&mut self, cpu: CpuId, kind: Overhead, then: Phase) {
        if let Some(phase) = self.pay_debt(cpu, kind, then) {
            self.drive(cpu, phase);
        }
    }

    /// Keeps what the current task still has to do.
    fn pause(&mut self, cpu: CpuId, end: Time) {
        let Some(task) = self.core.curr(cpu) else { return };
        let rest = if end == Time::MAX { Nanos::MAX } else { end - self.now };
        match &mut self.procs[task.index()].todo {
            Todo::User { left } | Todo::Kernel { left, .. } => *left = rest,
            // The stage ends with a look, and looks lie `every` apart.
            Todo::Look { left, every, .. } => *left = Nanos::from_ns(rest.as_ns() % every.as_ns()),
            _ => {}
        }
    }
}
