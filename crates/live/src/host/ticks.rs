// SPDX-License-Identifier: GPL-2.0-only
//! Ticks and timers of the policy.
//!
//! The kernel ticks at its own rate, and reports ticks of running tasks only. A policy that counts
//! at another rate gets a tick when one of its own has passed: every tenth of the kernel's, or
//! several at once. Idle CPUs tick with the first record of each tick.

use schedlab_policy_api::{Policy, TaskState};
use schedlab_units::{CpuId, Nanos, TaskId, Time};

use super::{Host, LiveObserver};
use crate::kernel::Kernel;

/// After so long a time with an idle CPU beside a waiting task, idle CPUs look for work again.
const NUDGE: Nanos = Nanos::from_ms(100);

impl<P: Policy, O: LiveObserver> Host<P, O> {
    fn jiffy(&self) -> u64 {
        self.now.as_ns() / self.habits.hz.tick().as_ns()
    }

    /// How many policy ticks one kernel tick may bring.
    fn ticks_at_once(&self) -> u64 {
        u64::from(self.habits.hz.get().div_ceil(self.habits.kernel_hz.get())).max(1)
    }

    /// Policy ticks that `cpu` has to see now.
    fn due(&mut self, cpu: CpuId) -> u64 {
        let (jiffy, most) = (self.jiffy(), self.ticks_at_once());
        let model = &mut self.cpus[cpu.index()];
        let due = jiffy.saturating_sub(model.jiffy).min(most);
        model.jiffy = jiffy;
        due
    }

    fn tick_cpu(&mut self, kernel: &mut impl Kernel, cpu: CpuId) {
        for _ in 0..self.due(cpu) {
            self.totals.ticks += 1;
            self.core.tick(self.now, cpu);
            self.react(kernel);
        }
    }

    /// The kernel's tick of a running task.
    pub(super) fn tick(&mut self, kernel: &mut impl Kernel, task: TaskId) {
        if let Some(cpu) = self.current_on(task)
            && !self.cpus[cpu.index()].fresh
        {
            self.tick_cpu(kernel, cpu);
        }
        self.tick_idle(kernel);
    }

    /// Ticks of all idle CPUs.
    pub(super) fn tick_idle(&mut self, kernel: &mut impl Kernel) {
        let jiffy = self.jiffy();
        if std::mem::replace(&mut self.idle_jiffy, jiffy) == jiffy {
            return;
        }
        let cpus = self.policy_cpus;
        for cpu in cpus.iter() {
            if self.is_idle(cpu) {
                self.tick_cpu(kernel, cpu);
            }
        }
        self.nudge();
        self.react(kernel);
    }

    /// Some policies tell no CPU of certain tasks that wait, and count on its looking for work soon,
    /// as every CPU of a running kernel does for its kernel threads. None do so here.
    fn nudge(&mut self) {
        if !self.idle_cpu_beside_waiting_task() {
            self.idle_beside_waiting_since = None;
            return;
        }
        let since = *self.idle_beside_waiting_since.get_or_insert(self.now);
        if self.now - since >= NUDGE {
            self.idle_beside_waiting_since = Some(self.now);
            self.totals.nudges += 1;
            self.offer_to_idle_cpus();
        }
    }

    /// Whether [`Host::pass_time`] up to `clock` does more than move the clock on.
    pub fn acts_at(&self, clock: u64) -> bool {
        let now = self.now.max(Time::from_ns(clock.saturating_sub(self.epoch)));
        let jiffy = now.as_ns() / self.habits.hz.tick().as_ns();
        jiffy != self.idle_jiffy || self.timers.values().any(|(at, _)| *at <= now)
    }

    /// Whether some CPU is idle while some task waits, so that a tick may bring them together.
    pub(super) fn idle_cpu_beside_waiting_task(&self) -> bool {
        self.policy_cpus.iter().any(|cpu| self.is_idle(cpu))
            && self.core.tasks().iter().any(|(_, facts)| facts.state == TaskState::Runnable)
    }

    pub(super) fn take_timer_requests(&mut self) {
        let mut index = 0;
        while let Some(request) = self.core.timer_at(index) {
            index += 1;
            if request.at == Time::MAX {
                self.timers.remove(&request.timer);
            } else {
                self.timers.insert(request.timer, (request.at, request.cpu));
            }
        }
        self.core.clear_timers();
    }

    pub(super) fn run_timers(&mut self, kernel: &mut impl Kernel) {
        while let Some((timer, cpu)) = self.due_timer() {
            self.timers.remove(&timer);
            self.core.timer(self.now, cpu, timer);
            self.react(kernel);
        }
    }

    fn due_timer(&self) -> Option<(u32, CpuId)> {
        if self.timers.is_empty() {
            return None;
        }
        let due = self.timers.iter().filter(|(_, (at, _))| *at <= self.now);
        due.min_by_key(|(timer, (at, _))| (*at, **timer)).map(|(timer, (_, cpu))| (*timer, *cpu))
    }
}
