// SPDX-License-Identifier: GPL-2.0-only
//! What the relay keeps and sends, after `bpf/relay.bpf.c`.

use schedlab_live::message::{Decision, Detail, Kind, Message, Msg, flag, words_of};
use schedlab_units::{CpuId, CpuSet};

use super::machine::{FakeKernel, FakeTask, SLICE_INF};
use super::relay::why;

impl FakeKernel {
    pub(super) fn is_policy_cpu(&self, cpu: usize) -> bool {
        cpu < self.scenario.n_cpus - self.scenario.spared_cpus
    }

    pub(super) fn policy_cpus(&self) -> CpuSet {
        CpuSet::first_n(self.scenario.n_cpus - self.scenario.spared_cpus)
    }

    pub(super) fn may_use_policy_cpus(&self, mask: &CpuSet) -> bool {
        mask.intersects(&self.policy_cpus())
    }

    pub(super) fn is_ours(task: &FakeTask) -> bool {
        task.ctx.joined && !task.kernel_thread
    }

    pub(super) fn set_queued(&mut self, pid: u32, value: bool) {
        let ctx = &mut self.task(pid).ctx;
        let was = std::mem::replace(&mut ctx.queued, value);
        match (was, value) {
            (false, true) => self.queued += 1,
            (true, false) => self.queued -= 1,
            _ => {}
        }
    }

    pub(super) fn waiting(&self) -> usize {
        self.cpus.iter().filter(|cpu| cpu.asked).count()
    }

    /// A record, or none when the ring is full.
    pub(super) fn open(&mut self, kind: Kind, pid: u32, cpu: usize, flags: u32) -> Option<Msg> {
        if self.ring.len() >= self.scenario.ring {
            self.counters.ring_full += 1;
            return None;
        }
        let lease = self.tasks.get(&pid).map_or(0, |task| task.ctx.lease);
        let (kind, cpu) = (kind as u16, cpu as u16);
        Some(Msg { t_ns: self.now, pid, lease, kind, cpu, flags, ..Msg::default() })
    }

    pub(super) fn send(&mut self, msg: Msg, detail: Option<Box<Detail>>, silent: bool) {
        let kind = Kind::from_number(msg.kind).expect("our own record");
        self.ring.push_back(Message { kind, msg, detail });
        if !silent {
            self.wake_host();
        }
    }

    pub(super) fn wake_host(&mut self) {
        if !self.host_awake && self.wake_at.is_none() {
            self.wake_at = Some(self.now + self.rng.below(self.scenario.latency_ns + 1));
        }
    }

    pub(super) fn take_run(&mut self, pid: u32) -> u64 {
        let task = self.task(pid);
        let span = task.sum_exec - task.ctx.reported;
        task.ctx.reported = task.sum_exec;
        span
    }

    pub(super) fn send_long(&mut self, kind: Kind, pid: u32, flags: u32, b: u64, on: usize) {
        let Some(mut msg) = self.open(kind, pid, on, flags) else { return };
        let task = self.task(pid);
        let mut comm = [0; 16];
        comm[..4].copy_from_slice(b"task");
        let allowed = words_of(&task.mask());
        (msg.a, msg.b, msg.c) = (task.policy, b, task.nice);
        self.send(msg, Some(Box::new(Detail { comm, allowed })), true);
    }

    pub(super) fn join(&mut self, pid: u32, forked_on: Option<usize>) {
        let task = self.task(pid);
        task.ctx.joined = true;
        task.ctx.reported = task.sum_exec;
        let (b, on) = (u64::from(task.tgid) << 32 | u64::from(task.parent), task.cpu);
        let flags = if forked_on.is_some() { flag::FORKED } else { 0 };
        self.send_long(Kind::Join, pid, flags, b, forked_on.unwrap_or(on));
    }

    pub(super) fn leave(&mut self, pid: u32) {
        self.task(pid).ctx.joined = false;
        self.set_queued(pid, false);
        let task = self.task(pid);
        let (cpu, flags) = (task.cpu, if task.exiting { flag::EXITING } else { 0 });
        if let Some(mut msg) = self.open(Kind::Leave, pid, cpu, flags) {
            msg.run_ns = self.take_run(pid);
            self.send(msg, None, false);
        }
        self.task(pid).ctx.lease += 1;
    }

    pub(super) fn ask(&mut self, cpu: usize) {
        if !self.is_policy_cpu(cpu) {
            return;
        }
        if self.cpus[cpu].asked {
            if self.relaying.idle_dispatch && self.queued > 0 {
                self.wake_host();
            }
            return;
        }
        if let Some(msg) = self.open(Kind::Pick, 0, cpu, 0) {
            self.cpus[cpu].asked = true;
            let silent = self.queued == 0;
            self.send(msg, None, silent);
        }
    }

    pub(super) fn revoke(&mut self, cpu: usize) -> Option<Decision> {
        let decision = self.cpus[cpu].slot.take()?;
        self.cpus[cpu].asked = false;
        self.counters.revoked += 1;
        Some(decision)
    }

    pub(super) fn take_back(&mut self, cpu: usize) {
        if let Some(Decision { run, .. }) = self.revoke(cpu)
            && let Some(mut msg) = self.open(Kind::Busy, run.pid, cpu, 0)
        {
            msg.lease = run.lease;
            self.send(msg, None, false);
        }
    }

    pub(super) fn begin_directly(&mut self, pid: u32, cpu: usize) {
        let ticks = self.relaying.direct_ticks;
        let task = self.task(pid);
        let ctx = &mut task.ctx;
        ctx.lease += 1;
        (ctx.is_new, ctx.why, ctx.wake_flags, ctx.unint) = (false, 0, 0, false);
        ctx.run_ticks = ticks;
        (ctx.granted, ctx.granted_at) = (SLICE_INF, task.sum_exec);
        self.cpus[cpu].asked = false;
        self.set_queued(pid, false);
        self.counters.direct += 1;
    }

    pub(super) fn wake_directly(&mut self, pid: u32, cpu: usize, waker: (u32, usize)) -> bool {
        if !self.is_policy_cpu(cpu) || self.task(pid).exiting {
            return false;
        }
        let ctx = &mut self.task(pid).ctx;
        let reason = if ctx.is_new { why::FORK } else { why::WAKE };
        ctx.direct = reason | flag::DIRECT | ctx.wake_flags;
        if ctx.unint {
            ctx.direct |= flag::UNINT;
        }
        ctx.waker = waker;
        self.begin_directly(pid, cpu);
        true
    }

    pub(super) fn report_direct(&mut self, pid: u32, cpu: usize) {
        let flags = std::mem::take(&mut self.task(pid).ctx.direct);
        if let Some(mut msg) = self.open(Kind::Enq, pid, cpu, flags) {
            msg.run_ns = self.take_run(pid);
            self.note_wakeup(&mut msg, pid, self.tasks[&pid].ctx.waker);
            self.send(msg, None, true);
        }
    }

    pub(super) fn note_wakeup(&self, msg: &mut Msg, pid: u32, waker: (u32, usize)) {
        let blocked_at = self.tasks[&pid].ctx.blocked_at;
        msg.a = if blocked_at == 0 { 0 } else { msg.t_ns - blocked_at };
        (msg.b, msg.c) = (u64::from(waker.0), waker.1 as i64);
    }

    pub(super) fn pick_directly(&mut self, cpu: usize) -> bool {
        if !self.relaying.idle_dispatch || self.queued != 1 || !self.is_policy_cpu(cpu) {
            return false;
        }
        let (pid, now) = (self.last_queued, self.now);
        let Some(task) = self.tasks.get(&pid) else { return false };
        let fits = Self::is_ours(task)
            && task.ctx.queued
            && !task.pinned
            && task.mask().contains(CpuId::from_index(cpu))
            && (task.on_cpu_until <= now || task.cpu == cpu);
        if !fits || self.ring.len() >= self.scenario.ring {
            return false;
        }
        let mut msg = self.open(Kind::Run, pid, cpu, flag::DIRECT).expect("there is room");
        msg.lease += 1;
        msg.t_ns = 0;
        self.begin_directly(pid, cpu);
        self.insert_local(pid, cpu, SLICE_INF, false);
        self.send(msg, None, true);
        true
    }
}
