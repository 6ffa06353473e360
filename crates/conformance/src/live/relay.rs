// SPDX-License-Identifier: GPL-2.0-only
//! The relay's callbacks about tasks that wait and CPUs that look for work, after
//! `bpf/relay.bpf.c`.

use schedlab_live::message::{Decision, Kind, Run, flag};
use schedlab_units::{CpuId, CpuSet};

use super::machine::{Event, FakeKernel, Kick, Place, SLICE_DFL, SLICE_INF};

/// Less than this of a slice is not worth a switch, in ns.
const CRUMB_NS: u64 = 100_000;

/// Reasons of an ENQ.
pub(super) mod why {
    pub(crate) const FORK: u32 = 1;
    pub(crate) const WAKE: u32 = 2;
    pub(crate) const SLICE: u32 = 3;
    pub(crate) const PREEMPT: u32 = 4;
    pub(crate) const YIELD: u32 = 5;
    pub(crate) const RESTORE: u32 = 6;
    pub(crate) const CLASS: u32 = 7;
}

/// Why a decision was rejected.
mod reject {
    pub(crate) const GONE: u64 = 1;
    pub(crate) const STALE: u64 = 2;
    pub(crate) const CPU: u64 = 3;
    pub(crate) const PINNED: u64 = 4;
}

/// What came of a decision.
enum Taken {
    Runs,
    /// The task is not free yet: the slot stays full.
    Later,
    Rejected(u64, usize),
}

/// How `enqueue` came to be called.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct EnqFlags {
    /// After a wake-up (`SCX_ENQ_WAKEUP`).
    pub(super) wakeup: bool,
    /// From a local queue (`SCX_ENQ_REENQ`).
    pub(super) reenq: bool,
}

impl FakeKernel {
    /// The CPU on whose queue a woken task goes; whether it went to its local queue already.
    pub(super) fn relay_select_cpu(
        &mut self,
        pid: u32,
        waker: (u32, usize),
        flags: u32,
        fork: bool,
    ) -> (usize, bool) {
        let task = &self.tasks[&pid];
        let (prev, mask) = (task.cpu, task.mask());
        if !Self::is_ours(task) {
            let (cpu, idle) = self.select_cpu_dfl(prev, &mask);
            return (cpu, idle);
        }
        let exiting = task.exiting;
        let ctx = &mut self.task(pid).ctx;
        ctx.wake_flags = flags;
        ctx.is_new |= fork;
        if self.relaying.idle_dispatch && self.queued == 0 && !exiting {
            let (cpu, idle) = self.select_cpu_dfl(prev, &mask);
            if idle && self.wake_directly(pid, cpu, waker) {
                self.task(pid).slice = SLICE_INF;
                return (cpu, true);
            }
        }
        if mask.contains(CpuId::from_index(prev)) {
            return (prev, false);
        }
        (mask.first().expect("no mask is empty").index(), false)
    }

    /// The kernel's choice of an idle CPU.
    fn select_cpu_dfl(&self, prev: usize, mask: &CpuSet) -> (usize, bool) {
        let fits = |cpu: usize| {
            let model = &self.cpus[cpu];
            mask.contains(CpuId::from_index(cpu)) && model.online && model.idle && !model.above()
        };
        if fits(prev) {
            return (prev, true);
        }
        (0..self.cpus.len()).find(|cpu| fits(*cpu)).map_or((prev, false), |cpu| (cpu, true))
    }

    fn needs_decision(&mut self, pid: u32) -> bool {
        let mut others = self.waiting();
        let host_cpu = self.cpus.iter().position(|cpu| cpu.host);
        if host_cpu.is_some_and(|cpu| self.cpus[cpu].asked) {
            others -= 1;
        }
        if others == 0 {
            return false;
        }
        if !self.relaying.idle_dispatch {
            return true;
        }
        let mask = self.tasks[&pid].mask();
        let prev = self.tasks[&pid].cpu;
        let (cpu, idle) = self.select_cpu_dfl(prev, &mask);
        if !idle {
            return true;
        }
        let delay = self.rng.below(3_000);
        self.after(delay, Event::Kick { cpu, kick: Kick::Idle });
        false
    }

    /// `enqueue`: a task waits on its CPU.
    pub(super) fn relay_enqueue(&mut self, pid: u32, enq: EnqFlags, waker: (u32, usize)) {
        let task = &self.tasks[&pid];
        let cpu = task.cpu;
        if !Self::is_ours(task) {
            let kernel_thread = task.kernel_thread;
            let preempt = kernel_thread && enq.wakeup;
            if kernel_thread {
                self.counters.kernel_threads += 1;
                if preempt {
                    self.cpus[cpu].pushed_aside = self.cpus[cpu].current_run;
                }
            }
            self.insert_local(pid, cpu, SLICE_DFL, preempt);
            return;
        }
        if self.cpus[cpu].pushed_aside == Some(Run { pid, lease: task.ctx.lease })
            && task.ctx.why == why::SLICE
            && task.ctx.stop_lease != task.ctx.lease
        {
            let (used, granted) = (task.sum_exec - task.ctx.granted_at, task.ctx.granted);
            self.cpus[cpu].pushed_aside = None;
            if granted == SLICE_INF || used + CRUMB_NS < granted {
                self.task(pid).ctx.why = 0;
                let left = if granted == SLICE_INF { SLICE_INF } else { granted - used };
                self.insert_local(pid, cpu, left, false);
                return;
            }
        }
        let fresh = enq.wakeup || self.tasks[&pid].ctx.is_new;
        if self.relaying.idle_dispatch
            && fresh
            && self.cpus[cpu].asked
            && self.queued == 0
            && self.cpus[cpu].slot.is_none()
            && self.wake_directly(pid, cpu, waker)
        {
            self.insert_local(pid, cpu, SLICE_INF, false);
            return;
        }
        let ctx = &mut self.task(pid).ctx;
        let reason = if ctx.is_new {
            why::FORK
        } else if enq.wakeup {
            why::WAKE
        } else if enq.reenq {
            why::CLASS
        } else if ctx.why != 0 {
            ctx.why
        } else {
            why::RESTORE
        };
        (ctx.is_new, ctx.why) = (false, 0);
        ctx.lease += 1;
        let unint = if ctx.unint { flag::UNINT } else { 0 };
        let flags = reason | ctx.wake_flags | unint;
        let Some(mut msg) = self.open(Kind::Enq, pid, cpu, flags) else {
            self.counters.fallback += 1;
            self.task(pid).place = Place::Spare;
            self.task(pid).slice = SLICE_DFL;
            self.spare.push_back(pid);
            return;
        };
        self.task(pid).place = Place::Custody;
        msg.run_ns = self.take_run(pid);
        if reason == why::WAKE || reason == why::FORK {
            self.note_wakeup(&mut msg, pid, waker);
        }
        let ctx = &mut self.task(pid).ctx;
        (ctx.direct, ctx.wake_flags, ctx.unint) = (0, 0, false);
        self.last_queued = pid;
        self.set_queued(pid, true);
        let silent = self.relaying.quiet_enqueue && !self.needs_decision(pid);
        self.send(msg, None, silent);
    }

    /// `dequeue`: it waits no longer.
    pub(super) fn relay_dequeue(&mut self, pid: u32) {
        if !Self::is_ours(&self.tasks[&pid]) {
            return;
        }
        self.set_queued(pid, false);
        let cpu = self.tasks[&pid].cpu;
        if let Some(msg) = self.open(Kind::Deq, pid, cpu, 0) {
            self.send(msg, None, true);
        }
    }

    fn run_slot(&mut self, decision: Decision, cpu: usize) -> Taken {
        let Run { pid, lease } = decision.run;
        let now = self.now;
        let Some(task) = self.tasks.get(&pid).filter(|task| task.place != Place::Dead) else {
            return Taken::Rejected(reject::GONE, 0);
        };
        if !Self::is_ours(task) || task.ctx.lease != lease {
            return Taken::Rejected(reject::STALE, 0);
        }
        if task.on_cpu_until > now && task.cpu != cpu {
            return Taken::Later;
        }
        if !task.mask().contains(CpuId::from_index(cpu)) {
            return Taken::Rejected(reject::CPU, 0);
        }
        if task.pinned && task.cpu != cpu {
            return Taken::Rejected(reject::PINNED, task.cpu);
        }
        assert_eq!(task.place, Place::Custody, "pid {pid}, lease {lease} is given twice");
        let task = self.task(pid);
        task.ctx.run_ticks = decision.ticks;
        task.ctx.granted = if decision.slice_ns == 0 { SLICE_DFL } else { decision.slice_ns };
        task.ctx.granted_at = task.sum_exec;
        let slice = task.ctx.granted;
        self.set_queued(pid, false);
        self.insert_local(pid, cpu, slice, false);
        Taken::Runs
    }

    /// `dispatch`: the CPU looks for work; `willing` = its current task wants to go on.
    pub(super) fn relay_dispatch(&mut self, cpu: usize, willing: bool) {
        let spare = self
            .spare
            .iter()
            .position(|pid| self.tasks[pid].mask().contains(CpuId::from_index(cpu)));
        if let Some(pid) = spare.and_then(|at| self.spare.remove(at)) {
            self.insert_local(pid, cpu, SLICE_DFL, false);
            return;
        }
        let Some(decision) = self.cpus[cpu].slot else {
            if !willing && !self.pick_directly(cpu) {
                self.ask(cpu);
            }
            return;
        };
        match self.run_slot(decision, cpu) {
            Taken::Later => {
                self.counters.retries += 1;
                let delay = self.rng.below(2_000);
                self.after(delay, Event::Kick { cpu, kick: Kick::Resched });
            }
            Taken::Runs => {
                (self.cpus[cpu].asked, self.cpus[cpu].slot) = (false, None);
                self.counters.dispatched += 1;
            }
            Taken::Rejected(why, pinned_to) => {
                (self.cpus[cpu].asked, self.cpus[cpu].slot) = (false, None);
                self.counters.rejected += 1;
                let Run { pid, lease } = decision.run;
                if let Some(mut msg) = self.open(Kind::Pick, pid, cpu, flag::REJECTED) {
                    self.cpus[cpu].asked = true;
                    (msg.lease, msg.a, msg.b) = (lease, why, pinned_to as u64);
                    self.send(msg, None, false);
                }
            }
        }
    }

    /// `update_idle`: the CPU has become idle.
    pub(super) fn relay_idle(&mut self, cpu: usize) {
        self.ask(cpu);
    }

    /// `sched_switch`: whether a class that matters has the CPU now.
    pub(super) fn relay_switch(&mut self, cpu: usize) {
        let other = self.cpus[cpu].other && !self.cpus[cpu].host;
        if self.cpus[cpu].foreign == other {
            return;
        }
        self.cpus[cpu].foreign = other;
        if other {
            self.take_back(cpu);
        }
    }
}
