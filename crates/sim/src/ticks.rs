// SPDX-License-Identifier: GPL-2.0-only
//! When the CPUs of a machine tick.

use schedlab_policy_api::TickPhase;
use schedlab_units::{CpuId, Nanos, Time};

use crate::SimConfig;
use crate::queue::EventQueue;

/// The ticks of all CPUs in order, computed instead of queued.
pub(crate) struct Ticks {
    /// CPUs with the offset of their ticks, in order of time.
    order: Vec<(Nanos, CpuId)>,
    /// Place of each of them among the events of its instant, as `order`.
    places: Vec<u64>,
    at: usize,
    base: Time,
    period: Nanos,
}

impl Ticks {
    /// Ticks from time 0 on.
    pub(crate) fn new(config: &SimConfig, queue: &mut EventQueue) -> Self {
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
        let places = order.iter().map(|_| queue.next_place()).collect();
        Self { order, places, at: 0, base: Time::ZERO, period }
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
    /// Time of the next tick and its place among the events of that time.
    #[inline]
    pub(crate) fn next_key(&self) -> (Time, u64) {
        (self.next_time(), self.places[self.at])
    }
    /// Takes the next tick: whose it is. The one that follows it on that CPU gets `place`.
    #[inline]
    pub(crate) fn pop(&mut self, place: u64) -> CpuId {
        let cpu = self.order[self.at].1;
        self.places[self.at] = place;
        self.at += 1;
        if self.at == self.order.len() {
            self.at = 0;
            self.base = self.base + self.period;
        }
        cpu
    }
}
