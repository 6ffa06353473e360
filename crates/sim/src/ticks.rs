// SPDX-License-Identifier: GPL-2.0-only
//! When the CPUs of a machine tick.

use schedlab_policy_api::TickPhase;
use schedlab_units::{CpuId, Nanos, Time};

use crate::SimConfig;

/// The ticks of all CPUs in order, computed instead of queued.
pub(crate) struct Ticks {
    /// CPUs with the offset of their ticks, in order of time.
    order: Vec<(Nanos, CpuId)>,
    at: usize,
    base: Time,
    period: Nanos,
}

impl Ticks {
    /// Ticks from time 0 on.
    pub(crate) fn new(config: &SimConfig) -> Self {
        let period = config.hz.tick();
        let n = config.topo.n_cpus() as u64;
        let offset = |cpu: CpuId| match config.time.phase {
            TickPhase::Aligned => period,
            TickPhase::Skewed if n == 1 => period,
            // Rounded down to 1 ns (spec linux-2.4-goodness §4.9).
            TickPhase::Skewed => period * (u64::from(cpu.0) + 1) / (n + 1),
        };
        let mut order: Vec<_> = config.topo.cpus().map(|cpu| (offset(cpu), cpu)).collect();
        order.sort_unstable();
        Self { order, at: 0, base: Time::ZERO, period }
    }
    /// When the next tick comes.
    #[inline]
    pub(crate) fn next_time(&self) -> Time {
        self.base + self.order[self.at].0
    }
    /// Whose the next tick is.
    #[inline]
    pub(crate) fn next_cpu(&self) -> CpuId {
        self.order[self.at].1
    }
    /// Takes the next tick: whose it is.
    #[inline]
    pub(crate) fn pop(&mut self) -> CpuId {
        let cpu = self.order[self.at].1;
        self.at += 1;
        if self.at == self.order.len() {
            self.at = 0;
            self.base = self.base + self.period;
        }
        cpu
    }
}
