// SPDX-License-Identifier: GPL-2.0-only
//! The relay's callbacks about tasks that run or change, and its batches, after `bpf/relay.bpf.c`.

use schedlab_live::message::{Kind, Run, flag};

use super::machine::{Event, FakeKernel, Kick, Place, WATCH_NS};
use super::relay::why;

impl FakeKernel {
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

    pub(super) fn report_block(&mut self, pid: u32, unint: bool) {
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
