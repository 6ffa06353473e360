// SPDX-License-Identifier: GPL-2.0-only
//! The kernel's own part: `schedule`, wake-ups, kicks, ticks, and the brackets around changes.
//!
//! Source: v6.12 `kernel/sched/ext.c`, as told in the specification of live scheduling.

use schedlab_units::{CpuId, CpuSet};

use super::machine::{Event, FakeKernel, FakeTask, Kick, Place, SLICE_DFL, SLICE_INF, TICK_NS};
use super::relay::EnqFlags;

/// Longest time in ns for which a task stays on the stack of the CPU that it left.
const SWITCH_NS: u64 = 1_500;

/// How the current task leaves its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaves {
    /// It is willing to go on.
    Willing,
    /// It goes to sleep, uninterruptibly if so.
    Sleeps(bool),
    /// It exits.
    Dies,
}

impl FakeTask {
    /// CPUs that the kernel lets it use now.
    pub(super) fn mask(&self) -> CpuSet {
        if self.mask_pinned { CpuSet::single(CpuId::from_index(self.cpu)) } else { self.allowed }
    }
}

impl FakeKernel {
    /// Charges the current task of `cpu` until now.
    pub(super) fn charge(&mut self, cpu: usize) {
        let (now, since) = (self.now, self.cpus[cpu].since);
        self.cpus[cpu].since = now;
        let Some(pid) = self.cpus[cpu].curr else { return };
        let span = now - since;
        let task = self.task(pid);
        task.sum_exec += span;
        task.work = task.work.saturating_sub(span);
        if task.slice != SLICE_INF {
            task.slice = task.slice.saturating_sub(span);
        }
    }

    /// The task goes to the local queue of `cpu`, at its head if it is to preempt.
    pub(super) fn insert_local(&mut self, pid: u32, cpu: usize, slice: u64, preempt: bool) {
        let task = self.task(pid);
        task.slice = slice;
        task.place = Place::Local(cpu);
        task.cpu = cpu;
        if preempt {
            self.cpus[cpu].local.push_front(pid);
        } else {
            self.cpus[cpu].local.push_back(pid);
        }
        match self.cpus[cpu].curr {
            Some(curr) if preempt => {
                self.charge(cpu);
                self.task(curr).slice = 0;
                self.after(0, Event::Kick { cpu, kick: Kick::Resched });
            }
            None => self.after(0, Event::Kick { cpu, kick: Kick::Resched }),
            Some(_) => {}
        }
    }

    /// A runnable task is queued: the kernel's own choices first, then the relay.
    pub(super) fn enqueue(&mut self, pid: u32, flags: EnqFlags, waker: (u32, usize)) {
        self.find_online_cpu(pid);
        let task = &self.tasks[&pid];
        let cpu = task.cpu;
        if task.exiting {
            self.insert_local(pid, cpu, SLICE_DFL, false);
        } else {
            self.relay_enqueue(pid, flags, waker);
        }
    }

    /// A task whose CPU went goes where it may, and anywhere if that is nowhere
    /// (`select_fallback_rq`).
    fn find_online_cpu(&mut self, pid: u32) {
        let cpu = self.tasks[&pid].cpu;
        if self.cpus[cpu].online {
            return;
        }
        let online = |cpu: &CpuId| self.cpus[cpu.index()].online;
        let mask = self.tasks[&pid].mask();
        if let Some(other) = mask.iter().find(online) {
            self.task(pid).cpu = other.index();
            return;
        }
        let other = (0..self.cpus.len()).find(|cpu| self.cpus[*cpu].online);
        let n_cpus = self.cpus.len();
        let task = self.task(pid);
        (task.pinned, task.mask_pinned) = (false, false);
        task.allowed = CpuSet::first_n(n_cpus);
        task.cpu = other.expect("one CPU stays online");
        self.relay_set_cpumask(pid);
    }

    /// Takes a runnable task off wherever it waits; true = the relay had it in custody.
    pub(super) fn unqueue(&mut self, pid: u32) {
        match self.tasks[&pid].place {
            Place::Custody => self.relay_dequeue(pid),
            Place::Spare => self.spare.retain(|other| *other != pid),
            Place::Local(cpu) => self.cpus[cpu].local.retain(|other| *other != pid),
            _ => {}
        }
    }

    /// `schedule` on `cpu`.
    pub(super) fn schedule(&mut self, cpu: usize, how: Leaves) {
        self.charge(cpu);
        let prev = self.cpus[cpu].curr;
        if let Some(pid) = prev {
            self.task(pid).token += 1;
        }
        if let (Some(pid), true) = (prev, how != Leaves::Willing) {
            self.relay_stopping(pid, cpu, false);
            let dies = how == Leaves::Dies;
            self.task(pid).place = if dies { Place::Dead } else { Place::Asleep };
            self.relay_sleeps(pid, how == Leaves::Sleeps(true));
            self.off_cpu(pid);
        }
        let willing = prev.filter(|_| how == Leaves::Willing);
        if self.cpus[cpu].above() {
            self.give_to_higher_class(cpu, prev, willing);
            return;
        }
        if let Some(pid) = willing
            && self.tasks[&pid].slice > 0
        {
            self.resume(pid, cpu);
            return;
        }
        if self.cpus[cpu].local.is_empty() && self.cpus[cpu].online {
            self.relay_dispatch(cpu, willing.is_some());
        }
        let next = self.cpus[cpu].local.pop_front();
        if let Some(pid) = willing {
            self.put(pid, cpu);
        }
        self.cpus[cpu].curr = next;
        let was_idle = std::mem::replace(&mut self.cpus[cpu].idle, next.is_none());
        match next {
            Some(pid) => self.start(pid, cpu),
            None if !was_idle => {
                if self.cpus[cpu].online {
                    self.relay_idle(cpu);
                }
                // An exiting task that the kernel kept for this CPU.
                if !self.cpus[cpu].local.is_empty() {
                    self.after(1_000, Event::Kick { cpu, kick: Kick::Resched });
                }
            }
            None => {}
        }
        self.relay_switch(cpu);
    }

    /// The task that had the CPU is for a while still on its stack.
    fn off_cpu(&mut self, pid: u32) {
        let until = self.now + self.rng.below(SWITCH_NS);
        self.task(pid).on_cpu_until = until;
    }

    /// A willing task gives up `cpu` to another of the class, or to nobody.
    fn put(&mut self, pid: u32, cpu: usize) {
        self.relay_stopping(pid, cpu, true);
        self.off_cpu(pid);
        if self.tasks[&pid].slice > 0 {
            self.task(pid).place = Place::Local(cpu);
            self.cpus[cpu].local.push_front(pid);
        } else {
            self.enqueue(pid, EnqFlags::default(), (0, cpu));
        }
    }

    fn give_to_higher_class(&mut self, cpu: usize, prev: Option<u32>, willing: Option<u32>) {
        // The class looks for work before a higher one is chosen, unless that had the CPU already.
        let looks = self.cpus[cpu].online
            && (prev.is_some() || self.cpus[cpu].idle)
            && willing.is_none_or(|pid| self.tasks[&pid].slice == 0)
            && self.cpus[cpu].local.is_empty();
        if looks {
            self.relay_dispatch(cpu, willing.is_some());
        }
        if let Some(pid) = willing {
            self.put(pid, cpu);
        }
        self.cpus[cpu].curr = None;
        self.cpus[cpu].idle = false;
        if prev.is_some() && !self.cpus[cpu].host {
            self.reenqueue_local(cpu);
        }
        self.relay_switch(cpu);
    }

    /// `scx_bpf_reenqueue_local`.
    fn reenqueue_local(&mut self, cpu: usize) {
        for pid in std::mem::take(&mut self.cpus[cpu].local) {
            self.enqueue(pid, EnqFlags { reenq: true, ..EnqFlags::default() }, (0, cpu));
        }
    }

    /// `pid` becomes current.
    fn start(&mut self, pid: u32, cpu: usize) {
        let task = self.task(pid);
        task.place = Place::Running(cpu);
        task.cpu = cpu;
        self.resume(pid, cpu);
        self.relay_running(pid, cpu);
    }

    /// `pid`, current, goes on with its work.
    pub(super) fn resume(&mut self, pid: u32, cpu: usize) {
        self.cpus[cpu].since = self.now;
        let task = self.task(pid);
        task.token += 1;
        let (work, token) = (task.work.max(1), task.token);
        self.after(work, Event::WorkDone { pid, token });
    }

    /// `try_to_wake_up`: `waker` is a task on a CPU, none for an interrupt.
    pub(super) fn wake(&mut self, pid: u32, waker: Option<(u32, usize)>, sync: bool) {
        if self.tasks[&pid].place != Place::Asleep {
            return;
        }
        let until = self.tasks[&pid].on_cpu_until;
        if until > self.now {
            let token = self.tasks[&pid].token;
            self.after(until - self.now, Event::Timer { pid, token });
            return;
        }
        self.task(pid).token += 1;
        let irq_on = self.rng.below(self.cpus.len() as u64) as usize;
        let irq = if waker.is_none() { schedlab_live::message::flag::IRQ } else { 0 };
        let sync = if sync { schedlab_live::message::flag::SYNC } else { 0 };
        let waker = waker.unwrap_or((self.cpus[irq_on].curr.unwrap_or(0), irq_on));
        self.place(pid, waker, irq | sync, false);
    }

    /// First wake-up of a new task, which `waker` forked.
    pub(super) fn wake_new(&mut self, pid: u32, waker: (u32, usize)) {
        self.place(pid, waker, 0, true);
    }

    fn place(&mut self, pid: u32, waker: (u32, usize), flags: u32, fork: bool) {
        let pinned = self.tasks[&pid].pinned;
        let (cpu, direct) = if pinned {
            (self.tasks[&pid].cpu, false)
        } else {
            self.relay_select_cpu(pid, waker, flags, fork)
        };
        self.task(pid).cpu = cpu;
        if direct {
            let slice = if self.tasks[&pid].kernel_thread { SLICE_DFL } else { SLICE_INF };
            self.insert_local(pid, cpu, slice, false);
        } else {
            self.enqueue(pid, EnqFlags { wakeup: !fork, ..EnqFlags::default() }, waker);
        }
        let cpu = self.tasks[&pid].cpu;
        if self.cpus[cpu].curr.is_none() {
            self.after(0, Event::Kick { cpu, kick: Kick::Resched });
        }
    }

    /// A change of `pid` with the bracket of dequeue and enqueue around it.
    pub(super) fn change(&mut self, pid: u32, what: impl FnOnce(&mut Self)) {
        match self.tasks[&pid].place {
            Place::Running(cpu) => {
                self.charge(cpu);
                self.relay_stopping(pid, cpu, false);
                what(self);
                self.relay_running(pid, cpu);
            }
            Place::Custody | Place::Spare | Place::Local(_) => {
                self.unqueue(pid);
                what(self);
                let cpu = self.tasks[&pid].cpu;
                self.enqueue(pid, EnqFlags::default(), (0, cpu));
            }
            Place::Asleep => what(self),
            Place::Elsewhere | Place::Dead => {}
        }
    }

    /// A waiting task leaves its CPU for one that it may use (`move_queued_task`).
    pub(super) fn move_off(&mut self, pid: u32) {
        let mask = self.tasks[&pid].mask();
        let fits = |cpu: &CpuId| self.cpus[cpu.index()].online;
        let Some(to) = mask.iter().find(fits).or(mask.first()) else { return };
        self.unqueue(pid);
        self.task(pid).cpu = to.index();
        self.enqueue(pid, EnqFlags::default(), (0, to.index()));
        let cpu = self.tasks[&pid].cpu;
        if self.cpus[cpu].curr.is_none() {
            self.after(0, Event::Kick { cpu, kick: Kick::Resched });
        }
    }

    /// The stopper thread visits `cpu` for a moment, and its current task goes where it may.
    pub(super) fn stopper(&mut self, cpu: usize) {
        let before = self.cpus[cpu].other;
        let moved = self.cpus[cpu].curr;
        self.cpus[cpu].other = true;
        self.schedule(cpu, Leaves::Willing);
        let all: Vec<u32> = self.cpus[cpu].local.iter().copied().chain(moved).collect();
        for pid in all {
            let task = &self.tasks[&pid];
            let queued = matches!(task.place, Place::Custody | Place::Spare | Place::Local(_));
            let forbidden = !task.mask().contains(CpuId::from_index(cpu)) || !self.cpus[cpu].online;
            if queued && task.cpu == cpu && forbidden {
                self.task(pid).on_cpu_until = self.now;
                self.move_off(pid);
            }
        }
        self.cpus[cpu].other = before;
        self.schedule(cpu, Leaves::Willing);
    }

    pub(super) fn kicked(&mut self, cpu: usize, kick: Kick) {
        let model = &self.cpus[cpu];
        if model.above() || (kick == Kick::Idle && model.curr.is_some()) {
            return;
        }
        if kick == Kick::Preempt
            && let Some(pid) = model.curr
        {
            self.charge(cpu);
            self.task(pid).slice = 0;
        }
        self.schedule(cpu, Leaves::Willing);
    }

    pub(super) fn tick_all(&mut self) {
        for cpu in 0..self.cpus.len() {
            let Some(pid) = self.cpus[cpu].curr else { continue };
            self.charge(cpu);
            self.relay_tick(pid, cpu);
            if self.tasks[&pid].slice == 0 {
                self.after(0, Event::Kick { cpu, kick: Kick::Resched });
            }
        }
        self.after(TICK_NS, Event::Tick);
    }
}
