// SPDX-License-Identifier: GPL-2.0-only
//! The deferred deadline server: some time for fair tasks beside real-time hogs.
//!
//! While fair tasks get their `runtime` in each period by themselves nothing happens. If they do
//! not, the server runs them ahead of real-time tasks from the last moment at which the runtime
//! still fits into the period. Its timer is armed only while real-time tasks are queued on the CPU,
//! for without them it has no effect.
//! Source: v6.12 `deadline.c` `dl_server_start`, `update_curr_dl_se`, `dl_server_timer`; spec
//! cfs-eevdf §4G.

use schedlab_policy_api::Ctx;
use schedlab_units::{CpuId, Time};

use super::Eevdf;

/// What a CPU's server does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No fair task has come since it stopped.
    Stopped,
    /// It waits for the zero-laxity point; fair tasks use up its runtime by themselves.
    Deferred,
    /// It runs fair tasks ahead of real-time ones.
    Running,
    /// Its runtime is used up until the period ends.
    Throttled,
}

/// The server of one CPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Server {
    phase: Phase,
    /// End of the period, ns.
    deadline: u64,
    /// Time that fair tasks are still to get in it, ns.
    runtime: u64,
}

impl Server {
    pub(super) const STOPPED: Self = Self { phase: Phase::Stopped, deadline: 0, runtime: 0 };

    /// The last moment at which the runtime fits before the deadline, ns.
    fn zero_laxity(&self) -> u64 {
        self.deadline.saturating_sub(self.runtime)
    }
}

impl Eevdf {
    fn new_period(&self, now: u64) -> Server {
        let period = self.own.knobs.fair_server_period.as_ns();
        Server {
            phase: Phase::Deferred,
            deadline: now + period,
            runtime: self.own.knobs.fair_server_runtime.as_ns().min(period),
        }
    }

    /// The first fair task came to `cpu`.
    pub(super) fn server_start(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) {
        if self.own.knobs.fair_server_runtime.is_zero() {
            return;
        }
        let now = cx.now.as_ns();
        let server = self.own.servers[cpu.index()];
        let stale = server.phase == Phase::Deferred && server.zero_laxity() <= now;
        if server.phase == Phase::Stopped || stale {
            self.own.servers[cpu.index()] = self.new_period(now);
            self.server_arm(cx, cpu);
        }
    }

    /// A fair task of `cpu` ran for `delta` ns.
    pub(super) fn server_account(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, delta: u64) {
        let server = &mut self.own.servers[cpu.index()];
        server.runtime = server.runtime.saturating_sub(delta);
        if server.runtime > 0 {
            return;
        }
        match server.phase {
            Phase::Stopped => {}
            Phase::Deferred | Phase::Throttled => {
                // They got their time without help: no help is needed in this period.
                self.own.servers[cpu.index()] = self.new_period(cx.now.as_ns());
                self.server_arm(cx, cpu);
            }
            Phase::Running => {
                server.phase = Phase::Throttled;
                self.server_arm(cx, cpu);
                cx.resched(cpu);
            }
        }
    }

    /// Whether fair tasks go ahead of real-time tasks on `cpu`.
    pub(super) fn server_runs(&self, cpu: CpuId) -> bool {
        self.own.servers[cpu.index()].phase == Phase::Running
    }

    /// The server found no fair task to run.
    pub(super) fn server_stop(&mut self, cpu: CpuId) {
        self.own.servers[cpu.index()].phase = Phase::Stopped;
    }

    /// There are to be no servers any more. One that is wanted again starts with the first fair task
    /// that comes to its CPU.
    pub(super) fn servers_stop(&mut self) {
        self.own.servers.fill(Server::STOPPED);
    }

    /// A real-time task came to `cpu`, or the server's plan changed: arms its timer.
    pub(super) fn server_arm(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) {
        if self.rt.nr(cpu) == 0 {
            return;
        }
        let now = cx.now.as_ns();
        let server = self.own.servers[cpu.index()];
        let at = match server.phase {
            Phase::Deferred if server.zero_laxity() < now => {
                let fresh = self.new_period(now);
                self.own.servers[cpu.index()] = fresh;
                fresh.zero_laxity()
            }
            Phase::Deferred => server.zero_laxity(),
            Phase::Throttled => server.deadline.max(now),
            Phase::Stopped | Phase::Running => return,
        };
        let timer = self.fair.cpus.len() as u32 + cpu.0;
        cx.arm(timer, Time::from_ns(at));
    }

    /// The server's timer of `cpu` expired.
    ///
    /// A throttled server goes on at once in its next period, as it is needed; a deferred one
    /// begins if fair tasks have still not got their time.
    pub(super) fn server_timer(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) {
        let (now, period) = (cx.now.as_ns(), self.own.knobs.fair_server_period.as_ns());
        let runtime = self.own.knobs.fair_server_runtime.as_ns().min(period);
        let waiting = self.fair.cpu(cpu).nr > 0;
        let server = &mut self.own.servers[cpu.index()];
        match server.phase {
            Phase::Stopped | Phase::Running => return,
            Phase::Deferred if now < server.zero_laxity() => {
                self.server_arm(cx, cpu);
                return;
            }
            Phase::Deferred => {}
            Phase::Throttled => {
                while server.deadline <= now {
                    server.deadline += period;
                }
                server.runtime = runtime;
            }
        }
        if waiting {
            self.own.servers[cpu.index()].phase = Phase::Running;
            cx.resched(cpu);
        } else {
            self.server_stop(cpu);
        }
    }
}
