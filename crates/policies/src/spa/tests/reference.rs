// SPDX-License-Identifier: GPL-2.0-only
//! A literal machine for the twin: plain queues, whole kernel functions, nothing remembered that can
//! be looked up. Only the formulas of `sleep_avg`, which have vectors of their own, are shared.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use schedlab_policy_api::{SchedClass, TaskState};

use crate::linux_2_6::sleep_avg::{Activated, Facts, SleepAvg};
use crate::spa::tunables::Knobs;

/// A task.
#[derive(Clone, Debug)]
pub(super) struct Task {
    pub(super) state: TaskState,
    pub(super) class: SchedClass,
    pub(super) rt_priority: u8,
    pub(super) nice: i32,
    pub(super) has_mm: bool,
    pub(super) mask: u64,
    pub(super) cpu: usize,
    pub(super) on_cpu: bool,
    pub(super) parent: Option<usize>,
    pub(super) avg: SleepAvg,
    pub(super) time_slice: u32,
}

/// A CPU.
#[derive(Clone, Debug)]
pub(super) struct Cpu {
    pub(super) slots: Vec<VecDeque<usize>>,
    pub(super) curr: Option<usize>,
    pub(super) need_resched: bool,
    /// A switch under way, with the task it leaves.
    pub(super) switching: Option<Option<usize>>,
    next_prom_due: u64,
    last_tick: u64,
    prev_load: Vec<u32>,
}

/// The machine.
pub(super) struct Reference {
    pub(super) knobs: Knobs,
    pub(super) tasks: Vec<Task>,
    pub(super) cpus: Vec<Cpu>,
    pub(super) now: u64,
    start: Option<u64>,
}

impl Reference {
    pub(super) fn new(n_cpus: usize, knobs: Knobs) -> Self {
        let cpu = Cpu {
            slots: vec![VecDeque::new(); 150],
            curr: None,
            need_resched: false,
            switching: None,
            next_prom_due: 0,
            last_tick: 0,
            prev_load: vec![0; n_cpus],
        };
        Self { knobs, tasks: Vec::new(), cpus: vec![cpu; n_cpus], now: 0, start: None }
    }
    fn jiffies(&self) -> u64 {
        self.now / 1_000_000
    }
    fn nr_running(&self, cpu: usize) -> u32 {
        self.cpus[cpu].slots.iter().map(VecDeque::len).sum::<usize>() as u32
    }
    /// Slot and position of a filed task.
    pub(super) fn place(&self, task: usize) -> Option<(usize, usize)> {
        let slots = &self.cpus[self.tasks[task].cpu].slots;
        slots
            .iter()
            .enumerate()
            .find_map(|(slot, queue)| queue.iter().position(|t| *t == task).map(|at| (slot, at)))
    }
    fn curr_slot(&self, cpu: usize) -> usize {
        let place = self.cpus[cpu].curr.and_then(|curr| self.place(curr));
        place.map_or(150, |(slot, _)| slot)
    }
    fn slot(&self, task: usize) -> usize {
        let own = &self.tasks[task];
        if own.class.is_rt() {
            return usize::from(99 - own.rt_priority);
        }
        let bonus = if self.knobs.bonus { own.avg.bonus(&self.knobs.scale) } else { 0 };
        (120 + own.nice + 10 - bonus as i32) as usize
    }
    fn push(&mut self, task: usize) {
        let (cpu, slot) = (self.tasks[task].cpu, self.slot(task));
        self.cpus[cpu].slots[slot].push_back(task);
    }
    fn remove(&mut self, task: usize) {
        let (slot, at) = self.place(task).expect("filed");
        let cpu = self.tasks[task].cpu;
        self.cpus[cpu].slots[slot].remove(at);
    }
    fn facts(&self, task: usize) -> Facts {
        Facts { nice: self.tasks[task].nice, has_mm: self.tasks[task].has_mm }
    }
    fn arrived(&mut self, cpu: usize) {
        let nr = self.nr_running(cpu);
        if self.start == Some(self.now) || (self.knobs.reset_due_when_idle && nr == 2) {
            self.cpus[cpu].next_prom_due = self.jiffies() + self.knobs.promotion_interval(nr);
        }
    }
    fn preempt(&mut self, cpu: usize, slot: usize) {
        if slot < self.curr_slot(cpu) {
            self.cpus[cpu].need_resched = true;
        }
    }

    /// `task`, a copy of its parent or a fresh one, is forked on CPU `cpu`.
    pub(super) fn fork(&mut self, mut task: Task, cpu: usize) {
        self.start.get_or_insert(self.now);
        task.time_slice = self.knobs.time_slice;
        task.avg = SleepAvg { sleep_avg: self.knobs.initial_sleep_avg, ..SleepAvg::default() };
        if let Some(parent) = task.parent {
            task.avg = self.tasks[parent].avg;
            if self.knobs.fork_shares {
                let left = self.tasks[parent].time_slice;
                task.time_slice = left.div_ceil(2);
                self.tasks[parent].time_slice = left / 2;
                if left == 1 {
                    self.tasks[parent].time_slice = 1;
                    self.scheduler_tick(cpu);
                }
            }
        }
        task.avg.timestamp = self.now;
        self.tasks.push(task);
    }
    /// First wake-up, by the CPU `here`.
    pub(super) fn wake_new(&mut self, here: usize, task: usize) {
        let scale = self.knobs.scale;
        self.tasks[task].state = TaskState::Runnable;
        let Some(parent) = self.tasks[task].parent else {
            self.push(task);
            let cpu = self.tasks[task].cpu;
            self.arrived(cpu);
            return self.preempt(cpu, self.slot(task));
        };
        self.tasks[task].cpu =
            if self.tasks[task].mask >> here & 1 == 1 { here } else { self.tasks[task].cpu };
        let cpu = self.tasks[task].cpu;
        let (mut from, mut to) = (self.tasks[parent].avg, self.tasks[task].avg);
        SleepAvg::fork(&mut from, &mut to, &scale);
        (self.tasks[parent].avg, self.tasks[task].avg) = (from, to);
        let kind =
            |t: &Task| (t.class.is_rt(), if t.class.is_rt() { 0 } else { t.nice }, t.rt_priority);
        let alike = kind(&self.tasks[parent]) == kind(&self.tasks[task]);
        match self.place(parent) {
            Some((slot, at)) if alike && self.tasks[parent].cpu == cpu => {
                self.cpus[cpu].slots[slot].insert(at, task);
            }
            _ => self.push(task),
        }
        self.arrived(cpu);
        if self.cpus[here].curr.is_some() {
            self.cpus[here].need_resched = true;
        }
        self.preempt(cpu, self.slot(task));
    }
    /// `try_to_wake_up` on CPU `here`, by its current task or else by an interrupt.
    pub(super) fn wake(&mut self, here: usize, task: usize, sync: bool) {
        let by_task = self.cpus[here].curr.is_some();
        let sync = sync && by_task;
        let deep = self.tasks[task].state == TaskState::Uninterruptible;
        let own = &mut self.tasks[task];
        own.state = TaskState::Runnable;
        if sync && !own.on_cpu && own.mask >> here & 1 == 1 {
            own.cpu = here;
        }
        if deep {
            own.avg.activated = Activated::Uninterruptible;
        }
        own.time_slice = self.knobs.time_slice;
        let cpu = own.cpu;
        let quiet = sync && cpu == here;
        if !quiet {
            let facts = self.facts(task);
            let own = &mut self.tasks[task];
            own.avg.recalc(&self.knobs.scale, facts, self.now);
            if own.avg.activated == Activated::No {
                own.avg.activated =
                    if by_task { Activated::ByTask } else { Activated::ByInterrupt };
            }
            own.avg.timestamp = self.now;
        }
        self.push(task);
        self.arrived(cpu);
        if !quiet {
            self.preempt(cpu, self.slot(task));
        }
    }
    /// `schedule`, the current task leaving in a state or staying.
    pub(super) fn schedule(&mut self, cpu: usize, leaves: Option<TaskState>) {
        let prev = self.cpus[cpu].curr;
        if let Some(state) = leaves {
            self.remove(prev.expect("somebody leaves"));
            self.tasks[prev.expect("somebody leaves")].state = state;
        }
        if self.nr_running(cpu) == 0 && self.knobs.smp {
            self.load_balance(cpu, true);
        }
        self.cpus[cpu].need_resched = false;
        let next = self.cpus[cpu].slots.iter().find_map(|queue| queue.front().copied());
        if let Some(next) = next {
            let (facts, now) = (self.facts(next), self.now);
            let own = &mut self.tasks[next];
            if self.knobs.onrq_credit
                && !own.class.is_rt()
                && own.avg.credit_wait(&self.knobs.scale, facts, now)
            {
                self.remove(next);
                self.push(next);
            }
            self.tasks[next].avg.activated = Activated::No;
        }
        if let Some(prev) = prev {
            self.tasks[prev].avg.charge(&self.knobs.scale, self.now);
        }
        if prev == next {
            return;
        }
        if let Some(prev) = prev {
            let own = &mut self.tasks[prev];
            if leaves.is_none() {
                own.state = TaskState::Runnable;
                if self.knobs.renew_on_preempt {
                    own.time_slice = self.knobs.time_slice;
                }
            }
        }
        if let Some(next) = next {
            let own = &mut self.tasks[next];
            own.state = TaskState::Running;
            own.avg.timestamp = self.now;
            own.on_cpu = true;
        }
        self.cpus[cpu].curr = next;
        self.cpus[cpu].switching = Some(prev);
    }
    pub(super) fn finish(&mut self, cpu: usize) {
        if let Some(prev) = self.cpus[cpu].switching.take().expect("a switch is under way") {
            self.tasks[prev].on_cpu = false;
        }
    }

    pub(super) fn scheduler_tick(&mut self, cpu: usize) {
        let jiffies = self.jiffies();
        self.cpus[cpu].last_tick = self.knobs.scale.word.wrap(self.now);
        let nr = self.nr_running(cpu);
        if nr >= 2 && jiffies >= self.cpus[cpu].next_prom_due {
            for slot in 101..150 {
                let moved = core::mem::take(&mut self.cpus[cpu].slots[slot]);
                self.cpus[cpu].slots[slot - 1].extend(moved);
            }
            self.cpus[cpu].next_prom_due = jiffies + self.knobs.promotion_interval(nr);
        }
        let Some(curr) = self.cpus[cpu].curr else {
            if self.knobs.smp {
                self.load_balance(cpu, true);
            }
            return;
        };
        if self.tasks[curr].class != SchedClass::Fifo {
            self.tasks[curr].time_slice -= 1;
            if self.tasks[curr].time_slice == 0 {
                self.tasks[curr].time_slice = self.knobs.time_slice;
                self.remove(curr);
                self.push(curr);
                self.cpus[cpu].need_resched = true;
            }
        }
        if self.knobs.smp && jiffies.is_multiple_of(200) {
            self.load_balance(cpu, false);
        }
    }
    fn load_balance(&mut self, this: usize, idle: bool) {
        let nr = |i: usize| self.nr_running(i);
        let lengths: Vec<u32> = (0..self.cpus.len()).map(nr).collect();
        let prev = core::mem::replace(&mut self.cpus[this].prev_load, lengths.clone());
        let mine = if idle { lengths[this] } else { lengths[this].max(prev[this]) };
        let load = |i: usize| if idle { lengths[i] } else { lengths[i].min(prev[i]) };
        let others = (0..lengths.len()).filter(|i| *i != this);
        // The first of the largest.
        let Some(busiest) = others.rev().max_by_key(|i| load(*i)) else { return };
        let (most, mine) = (i64::from(load(busiest)), i64::from(mine));
        let imbalance = most - mine;
        if most <= 1 || (!idle && 4 * imbalance < most) || i64::from(lengths[busiest]) <= mine {
            return;
        }
        let mut budget = imbalance / 2;
        let scan: Vec<usize> =
            self.cpus[busiest].slots.iter().flat_map(|queue| queue.iter().rev().copied()).collect();
        for task in scan {
            let own = &self.tasks[task];
            let age = self.cpus[busiest].last_tick.wrapping_sub(own.avg.timestamp);
            if own.on_cpu || own.mask >> this & 1 == 0 || !(idle || age > self.knobs.cache_decay_ns)
            {
                continue;
            }
            self.remove(task);
            self.tasks[task].avg.timestamp = self.now.wrapping_sub(age);
            self.tasks[task].cpu = this;
            self.push(task);
            self.arrived(this);
            self.preempt(this, self.slot(task));
            budget -= 1;
            if idle || budget == 0 {
                return;
            }
        }
    }

    pub(super) fn sched_yield(&mut self, cpu: usize) {
        let curr = self.cpus[cpu].curr.expect("somebody yields");
        let own = self.curr_slot(cpu);
        let below = (own + 1..150).find(|slot| !self.cpus[cpu].slots[*slot].is_empty());
        let to = if self.tasks[curr].class.is_rt() { own } else { below.unwrap_or(own) };
        self.remove(curr);
        self.cpus[cpu].slots[to].push_back(curr);
        self.cpus[cpu].need_resched = true;
    }
    pub(super) fn set_user_nice(&mut self, task: usize, nice: i32) {
        let old = core::mem::replace(&mut self.tasks[task].nice, nice);
        if nice == old || self.tasks[task].class.is_rt() || self.place(task).is_none() {
            return;
        }
        self.remove(task);
        self.push(task);
        let cpu = self.tasks[task].cpu;
        if nice < old || self.cpus[cpu].curr == Some(task) {
            self.cpus[cpu].need_resched = true;
        }
    }
    pub(super) fn setscheduler(&mut self, task: usize, class: SchedClass, rt_priority: u8) {
        let cpu = self.tasks[task].cpu;
        let before = self.curr_slot(cpu);
        self.tasks[task].class = class;
        self.tasks[task].rt_priority = rt_priority;
        if self.place(task).is_none() {
            return;
        }
        self.remove(task);
        self.push(task);
        let slot = self.slot(task);
        let running = self.cpus[cpu].curr == Some(task);
        if (running && slot > before) || (!running && slot < before) {
            self.cpus[cpu].need_resched = true;
        }
    }
}
