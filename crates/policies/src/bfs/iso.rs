// SPDX-License-Identifier: GPL-2.0-only
//! The limit of ISO tasks: a decaying count of ticks over about five seconds.

use schedlab_units::Hz;

/// How much real-time and ISO tasks ran of late, and whether ISO tasks lost their priority.
#[derive(Clone, Copy, Debug)]
pub(super) struct IsoLimit {
    /// `iso_ticks`; one tick counts 100.
    pub(super) ticks: u64,
    /// Whether ISO tasks queue as NORMAL ones (`iso_refractory`).
    pub(super) refractory: bool,
    /// `ISO_PERIOD` in ticks of all CPUs, plus one.
    period: u64,
    percent: u64,
}

impl IsoLimit {
    /// A limit of `percent` on `n_cpus` ticking at `hz`.
    pub(super) fn new(percent: u64, n_cpus: usize, hz: Hz) -> Self {
        let period = 5 * u64::from(hz.get()) * n_cpus as u64 + 1;
        Self { ticks: 0, refractory: false, period, percent }
    }
    /// Changes the share.
    pub(super) fn set_percent(&mut self, percent: u64) {
        self.percent = percent;
    }
    /// Above this many ticks the priority is lost.
    pub(super) fn set_above(&self) -> u64 {
        self.period * self.percent
    }
    /// Below this many it comes back.
    pub(super) fn clear_below(&self) -> u64 {
        self.period * (self.percent * 115 / 128)
    }
    /// A tick on which a real-time task, or an ISO task with its priority, ran.
    ///
    /// Source: 0.357 `sched_bfs.c` `iso_tick`; spec §4.9 step 1.
    pub(super) fn iso_tick(&mut self) {
        if self.ticks <= 100 * self.period - 100 {
            self.ticks += 100;
        } else {
            self.no_iso_tick();
        }
    }
    /// A tick on which none ran.
    ///
    /// Source: 0.357 `sched_bfs.c` `no_iso_tick`; spec §4.9.
    pub(super) fn no_iso_tick(&mut self) {
        if self.ticks != 0 {
            self.ticks -= self.ticks / self.period + 1;
            if self.refractory && self.ticks < self.clear_below() {
                self.refractory = false;
            }
        }
    }
    /// Decides anew whether ISO tasks have their priority.
    ///
    /// Source: 0.357 `sched_bfs.c` `test_ret_isorefractory`; spec §4.9 step 2.
    pub(super) fn test(&mut self) -> bool {
        if !self.refractory {
            self.refractory = self.ticks > self.set_above();
        } else if self.ticks < self.clear_below() {
            self.refractory = false;
        }
        self.refractory
    }
}
