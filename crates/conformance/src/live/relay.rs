// SPDX-License-Identifier: GPL-2.0-only
//! The relay's callbacks, after `bpf/relay.bpf.c`.

use schedlab_live::message::{Decision, Detail, Kind, Message, Msg, Run, flag, words_of};
use schedlab_units::{CpuId, CpuSet};

use super::machine::{Event, FakeKernel, FakeTask, Kick, Place, SLICE_DFL, SLICE_INF, WATCH_NS};

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
    pub(super) fn is_policy_cpu(&self, cpu: usize) -> bool {
        cpu < self.scenario.n_cpus - self.scenario.spared_cpus
    }

    pub(super) fn policy_cpus(&self) -> CpuSet {
        CpuSet::first_n(self.scenario.n_cpus - self.scenario.spared_cpus)
    }

    fn may_use_policy_cpus(&self, mask: &CpuSet) -> bool {
        mask.intersects(&self.policy_cpus())
    }

    fn is_ours(task: &FakeTask) -> bool {
        task.ctx.joined && !task.kernel_thread
    }

    fn set_queued(&mut self, pid: u32, value: bool) {
        let ctx = &mut self.task(pid).ctx;
        let was = std::mem::replace(&mut ctx.queued, value);
        match (was, value) {
            (false, true) => self.queued += 1,
            (true, false) => self.queued -= 1,
            _ => {}
        }
    }

    fn waiting(&self) -> usize {
        self.cpus.iter().filter(|cpu| cpu.asked).count()
    }

    /// A record, or none when the ring is full.
    fn open(&mut self, kind: Kind, pid: u32, cpu: usize, flags: u32) -> Option<Msg> {
        if self.ring.len() >= self.scenario.ring {
            self.counters.ring_full += 1;
            return None;
        }
        let lease = self.tasks.get(&pid).map_or(0, |task| task.ctx.lease);
        let (kind, cpu) = (kind as u16, cpu as u16);
        Some(Msg { t_ns: self.now, pid, lease, kind, cpu, flags, ..Msg::default() })
    }

    fn send(&mut self, msg: Msg, detail: Option<Box<Detail>>, silent: bool) {
        let kind = Kind::from_number(msg.kind).expect("our own record");
        self.ring.push_back(Message { kind, msg, detail });
        if !silent {
            self.wake_host();
        }
    }

    fn wake_host(&mut self) {
        if !self.host_awake && self.wake_at.is_none() {
            self.wake_at = Some(self.now + self.rng.below(self.scenario.latency_ns + 1));
        }
    }

    fn take_run(&mut self, pid: u32) -> u64 {
        let task = self.task(pid);
        let span = task.sum_exec - task.ctx.reported;
        task.ctx.reported = task.sum_exec;
        span
    }

    fn send_long(&mut self, kind: Kind, pid: u32, flags: u32, b: u64, on: usize) {
        let Some(mut msg) = self.open(kind, pid, on, flags) else { return };
        let task = self.task(pid);
        let mut comm = [0; 16];
        comm[..4].copy_from_slice(b"task");
        let allowed = words_of(&task.mask());
        (msg.a, msg.b, msg.c) = (task.policy, b, task.nice);
        self.send(msg, Some(Box::new(Detail { comm, allowed })), true);
    }

    fn join(&mut self, pid: u32, forked_on: Option<usize>) {
        let task = self.task(pid);
        task.ctx.joined = true;
        task.ctx.reported = task.sum_exec;
        let (b, on) = (u64::from(task.tgid) << 32 | u64::from(task.parent), task.cpu);
        let flags = if forked_on.is_some() { flag::FORKED } else { 0 };
        self.send_long(Kind::Join, pid, flags, b, forked_on.unwrap_or(on));
    }

    fn leave(&mut self, pid: u32) {
        self.task(pid).ctx.joined = false;
        self.set_queued(pid, false);
        let task = self.task(pid);
        let (cpu, flags) = (task.cpu, if task.exiting { flag::EXITING } else { 0 });
        if let Some(mut msg) = self.open(Kind::Leave, pid, cpu, flags) {
            msg.run_ns = self.take_run(pid);
            self.send(msg, None, false);
        }
    }

    fn ask(&mut self, cpu: usize) {
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

    fn revoke(&mut self, cpu: usize) -> Option<Decision> {
        let decision = self.cpus[cpu].slot.take()?;
        self.cpus[cpu].asked = false;
        self.counters.revoked += 1;
        Some(decision)
    }

    fn take_back(&mut self, cpu: usize) {
        if let Some(Decision { run, .. }) = self.revoke(cpu)
            && let Some(mut msg) = self.open(Kind::Busy, run.pid, cpu, 0)
        {
            msg.lease = run.lease;
            self.send(msg, None, false);
        }
    }

    fn begin_directly(&mut self, pid: u32, cpu: usize) {
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

    fn wake_directly(&mut self, pid: u32, cpu: usize, waker: (u32, usize)) -> bool {
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

    fn report_direct(&mut self, pid: u32, cpu: usize) {
        let flags = std::mem::take(&mut self.task(pid).ctx.direct);
        if let Some(mut msg) = self.open(Kind::Enq, pid, cpu, flags) {
            msg.run_ns = self.take_run(pid);
            self.note_wakeup(&mut msg, pid, self.tasks[&pid].ctx.waker);
            self.send(msg, None, true);
        }
    }

    fn note_wakeup(&self, msg: &mut Msg, pid: u32, waker: (u32, usize)) {
        let blocked_at = self.tasks[&pid].ctx.blocked_at;
        msg.a = if blocked_at == 0 { 0 } else { msg.t_ns - blocked_at };
        (msg.b, msg.c) = (u64::from(waker.0), waker.1 as i64);
    }

    fn pick_directly(&mut self, cpu: usize) -> bool {
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
                    self.cpus[cpu].pushed_aside = self.cpus[cpu].current_run.map(|run| run.pid);
                }
            }
            self.insert_local(pid, cpu, SLICE_DFL, preempt);
            return;
        }
        if self.cpus[cpu].pushed_aside == Some(pid)
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

    /// `running`: the task is current.
    pub(super) fn relay_running(&mut self, pid: u32, cpu: usize) {
        let task = &self.tasks[&pid];
        let lease = task.ctx.lease;
        self.cpus[cpu].current_run = Some(Run { pid, lease });
        if !Self::is_ours(task) {
            return;
        }
        self.cpus[cpu].pushed_aside = None;
        if self.tasks[&pid].ctx.direct != 0 {
            self.report_direct(pid, cpu);
        }
        let task = self.task(pid);
        if task.ctx.stop_lease != 0 && task.ctx.stop_lease == lease && !task.exiting {
            task.ctx.why = why::PREEMPT;
            self.after(0, Event::Kick { cpu, kick: Kick::Preempt });
        }
        if self.task(pid).ctx.run_lease != lease {
            self.task(pid).ctx.run_lease = lease;
            if let Some(msg) = self.open(Kind::Run, pid, cpu, 0) {
                self.send(msg, None, true);
            }
        }
    }

    fn report_block(&mut self, pid: u32, unint: bool) {
        let task = self.task(pid);
        if task.ctx.exit_reported {
            return;
        }
        let mut flags = if unint { flag::UNINT } else { 0 };
        if task.exiting {
            task.ctx.exit_reported = true;
            flags |= flag::EXITING;
        }
        let cpu = task.cpu;
        if let Some(mut msg) = self.open(Kind::Block, pid, cpu, flags) {
            msg.run_ns = self.take_run(pid);
            self.send(msg, None, true);
        }
    }

    /// `stopping`: the task stops being current.
    pub(super) fn relay_stopping(&mut self, pid: u32, cpu: usize, runnable: bool) {
        self.cpus[cpu].current_run = None;
        if !runnable {
            return;
        }
        let task = self.task(pid);
        if task.ctx.why == 0 {
            task.ctx.why = why::SLICE;
        }
        if Self::is_ours(task) && task.exiting {
            self.report_block(pid, false);
        }
    }

    /// `quiescent` because of a sleep.
    pub(super) fn relay_sleeps(&mut self, pid: u32, unint: bool) {
        let now = self.now;
        let task = self.task(pid);
        if !Self::is_ours(task) {
            return;
        }
        (task.ctx.why, task.ctx.unint, task.ctx.blocked_at) = (0, unint, now);
        self.report_block(pid, unint);
    }

    /// `yield`.
    pub(super) fn relay_yield(&mut self, pid: u32) {
        let task = self.task(pid);
        task.ctx.why = why::YIELD;
        task.slice = 0;
    }

    /// `tick`.
    pub(super) fn relay_tick(&mut self, pid: u32, cpu: usize) {
        let task = &self.tasks[&pid];
        if !Self::is_ours(task) || !task.ctx.run_ticks {
            return;
        }
        if let Some(mut msg) = self.open(Kind::Tick, pid, cpu, 0) {
            msg.run_ns = self.take_run(pid);
            self.send(msg, None, false);
        }
    }

    /// `set_weight`.
    pub(super) fn relay_set_weight(&mut self, pid: u32) {
        let task = &self.tasks[&pid];
        let (nice, cpu) = (task.nice, task.cpu);
        if !Self::is_ours(task) {
            return;
        }
        if let Some(mut msg) = self.open(Kind::Nice, pid, cpu, 0) {
            msg.c = nice;
            self.send(msg, None, false);
        }
    }

    /// `set_cpumask`.
    pub(super) fn relay_set_cpumask(&mut self, pid: u32) {
        let task = &self.tasks[&pid];
        if task.kernel_thread {
            return;
        }
        let inside = self.may_use_policy_cpus(&task.mask());
        let (joined, cpu) = (task.ctx.joined, task.cpu);
        match (joined, inside) {
            (true, false) => self.leave(pid),
            (true, true) => self.send_long(Kind::Affine, pid, 0, 0, cpu),
            (false, true) => self.join(pid, None),
            (false, false) => {}
        }
    }

    /// `enable`: the task comes into the class; by a fork on that CPU.
    pub(super) fn relay_enable(&mut self, pid: u32, forked_on: Option<usize>) {
        let task = &self.tasks[&pid];
        if !task.kernel_thread && self.may_use_policy_cpus(&task.mask()) {
            self.task(pid).ctx.is_new = forked_on.is_some();
            self.join(pid, forked_on);
        }
    }

    /// `disable`: it leaves the class.
    pub(super) fn relay_disable(&mut self, pid: u32) {
        if Self::is_ours(&self.tasks[&pid]) {
            self.leave(pid);
        }
    }

    /// `cpu_online` and `cpu_offline`.
    pub(super) fn relay_cpu(&mut self, cpu: usize, online: bool) {
        if !online {
            self.take_back(cpu);
            self.cpus[cpu].asked = false;
        }
        if let Some(mut msg) = self.open(Kind::Cpu, 0, cpu, 0) {
            msg.a = u64::from(online);
            self.send(msg, None, false);
        }
    }

    /// The tracepoints of exec and of new names.
    pub(super) fn relay_renames(&mut self, pid: u32, kind: Kind) {
        let task = &self.tasks[&pid];
        let (b, cpu) = (u64::from(task.tgid) << 32 | u64::from(task.parent), task.cpu);
        if Self::is_ours(task) {
            self.send_long(kind, pid, 0, b, cpu);
        }
    }

    /// One request of a batch to end a run.
    pub(super) fn relay_stop(&mut self, cpu: usize, run: Run) {
        let Some(task) = self.tasks.get_mut(&run.pid) else { return };
        if task.ctx.lease != run.lease || task.exiting || task.place == Place::Dead {
            return;
        }
        task.ctx.stop_lease = run.lease;
        if self.cpus[cpu].current_run.is_some_and(|current| current.pid == run.pid) {
            self.task(run.pid).ctx.why = why::PREEMPT;
            self.counters.kicks += 1;
            let delay = self.rng.below(5_000);
            self.after(delay, Event::Kick { cpu, kick: Kick::Preempt });
        }
    }

    /// One CPU of a batch; whether another class has it.
    pub(super) fn relay_kick(&mut self, cpu: usize) -> bool {
        self.counters.kicks += 1;
        let busy = self.cpus[cpu].foreign && self.revoke(cpu).is_some();
        let delay = self.rng.below(5_000);
        self.after(delay, Event::Kick { cpu, kick: Kick::Idle });
        busy
    }

    /// The relay's timer: decisions that nobody takes up.
    pub(super) fn watch(&mut self) {
        for cpu in 0..self.cpus.len() {
            let what = self.cpus[cpu].slot.map(|decision| decision.run);
            if what.is_some() && what == self.cpus[cpu].seen && !self.cpus[cpu].foreign {
                self.counters.rescued += 1;
                self.after(0, Event::Kick { cpu, kick: Kick::Idle });
            }
            self.cpus[cpu].seen = what;
        }
        self.after(WATCH_NS, Event::Watch);
    }
}
