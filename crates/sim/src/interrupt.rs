// SPDX-License-Identifier: GPL-2.0-only
//! Interrupts: which of one instant are one, how they break into what a CPU is doing, and how it
//! goes on.

use schedlab_policy_api::{Overhead, Policy, TickOrder, TimerBase};
use schedlab_units::{CpuId, Nanos, Time};

use crate::cpu::{Phase, Stage};
use crate::proc::Todo;
use crate::queue::Event;
use crate::{EventOrder, HostObserver, Sim};

/// The interrupt that the loop is in the middle of, for events that share one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Source {
    Tick,
    Timer,
    /// A device, another CPU, or a timer of the policy's own.
    Device,
}

impl<P: Policy, O: HostObserver> Sim<'_, P, O> {
    /// Whether, at the instant of the next tick, an interrupt of a CPU that has ticked already comes
    /// before it ([`TickOrder::CpuByCpu`]).
    pub(crate) fn interrupt_precedes_tick(&self, tick_at: Time) -> bool {
        self.config.time.order == TickOrder::CpuByCpu
            && self.next_interrupt(tick_at).is_some_and(|cpu| cpu < self.ticks.next_cpu())
    }

    /// The CPU of the next event, if that is a timer's or a device's interrupt at `at`.
    fn next_interrupt(&self, at: Time) -> Option<CpuId> {
        match self.queue.peek() {
            Some((time, event)) if time == at => match event {
                Event::Timer { task, .. } => Some(self.timer_cpu(task)),
                Event::Start { .. } => Some(CpuId(0)),
                Event::Device { task, .. } if self.config.time.order != TickOrder::TicksFirst => {
                    Some(self.core.tasks().cpu(task))
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// Ends an interrupt, unless the next event belongs to the same one, as the order that the
    /// policy's kernel keeps has it.
    pub(crate) fn end_interrupt(&mut self, cpu: CpuId, source: Source) {
        let kind = match source {
            Source::Tick => Overhead::Tick,
            Source::Timer | Source::Device => Overhead::Interrupt,
        };
        if self.config.order == EventOrder::Creation {
            return self.irq_exit(cpu, kind);
        }
        let order = self.config.time.order;
        if order == TickOrder::Together {
            self.n_open += usize::from(self.open_interrupts[cpu.index()].is_none());
            self.open_interrupts[cpu.index()].get_or_insert(kind);
            return;
        }
        let jiffies = self.config.time.timers != TimerBase::HighRes;
        let may_join = match source {
            Source::Tick => (self.cpus.len() == 1 && jiffies) || order == TickOrder::CpuByCpu,
            Source::Timer => true,
            Source::Device => order == TickOrder::CpuByCpu,
        };
        if !may_join || self.next_interrupt(self.now) != Some(cpu) {
            self.irq_exit(cpu, kind);
        }
    }

    /// Ends the interrupts of all CPUs in order, once no other event of this instant is one.
    pub(crate) fn end_open_interrupts(&mut self) {
        let queued = self.queue.peek();
        let is_interrupt = |event| !matches!(event, Event::WorkEnd { .. });
        if self.ticks.next_time() == self.now
            || queued.is_some_and(|(at, event)| at == self.now && is_interrupt(event))
        {
            return;
        }
        self.n_open = 0;
        for index in 0..self.open_interrupts.len() {
            if let Some(kind) = self.open_interrupts[index].take() {
                self.irq_exit(CpuId::from_index(index), kind);
            }
        }
    }

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
