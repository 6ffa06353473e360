// SPDX-License-Identifier: GPL-2.0-only
//! The multi-queue scheduler once more, word by word after spec linux-2.4-goodness §5.3, on top of
//! the literal reading of 2.4; with the core's rule for tasks that may not stay on their queue.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};

use schedlab_policy_api::{SchedClass, TaskState};

use crate::goodness::tests::reference::Reference;
use crate::goodness::tests::rig::tunables;
use crate::goodness::tests::twin::Literal;
use crate::mq::MqTunables;

const EMPTY: i64 = -10_000;

pub(super) struct MultiQueue {
    base: Reference,
    /// Head first; the last is the real-time queue.
    queues: Vec<Vec<usize>>,
    max_na: Vec<i64>,
    max: Vec<Option<usize>>,
    curr_na: Vec<i64>,
    prev_bias: bool,
    t: i64,
    /// The core: the current task may not stay; the task of the unfinished switch could not.
    must_leave: Vec<bool>,
    expelled: Vec<bool>,
}

impl Deref for MultiQueue {
    type Target = Reference;
    fn deref(&self) -> &Reference {
        &self.base
    }
}
impl DerefMut for MultiQueue {
    fn deref_mut(&mut self) -> &mut Reference {
        &mut self.base
    }
}

impl MultiQueue {
    fn n(&self) -> usize {
        self.cpus.len()
    }
    fn na(&self, p: usize) -> i64 {
        let task = &self.tasks[p];
        if task.yielded {
            -1
        } else if task.class.is_rt() {
            1000 + self.knobs.rt_scale * i64::from(task.rt_priority)
        } else if task.counter == 0 {
            0
        } else {
            i64::from(task.counter + 20 - task.nice)
        }
    }
    fn local(&self, p: usize, m: Option<u32>) -> i64 {
        let task = &self.tasks[p];
        let plain = !task.class.is_rt() && !task.yielded && task.counter > 0;
        self.na(p) + i64::from(plain && (task.mm == m || task.mm.is_none()))
    }
    fn running(&self, p: usize) -> bool {
        self.cpus.iter().any(|cpu| cpu.curr == Some(p))
    }
    fn allowed(&self, p: usize, c: usize) -> bool {
        self.tasks[p].cpus_allowed >> c & 1 == 1
    }
    fn queue_for(&self, p: usize) -> usize {
        if self.tasks[p].class.is_rt() { self.n() } else { self.tasks[p].processor }
    }
    fn queue_with(&self, p: usize) -> Option<usize> {
        self.queues.iter().position(|queue| queue.contains(&p))
    }

    fn add(&mut self, p: usize) {
        let q = self.queue_for(p);
        self.queues[q].insert(0, p);
        if q < self.n() && !self.running(p) && self.na(p) > self.max_na[q] {
            self.max_na[q] = self.na(p);
            self.max[q] = Some(p);
        }
    }
    /// The update form.
    fn del(&mut self, p: usize) {
        let q = self.queue_with(p).expect("it is queued");
        self.queues[q].retain(|t| *t != p);
        if q < self.n() && self.max[q] == Some(p) {
            self.max_na[q] = EMPTY;
            self.max[q] = None;
            for t in self.queues[q].clone() {
                if !self.running(t) && self.na(t) > 0 {
                    self.max_na[q] = self.na(t);
                    self.max[q] = Some(t);
                    break;
                }
            }
        }
    }

    /// The CPU, and whether it is told.
    fn reschedule_idle(&self, p: usize, now: u64) -> (usize, bool) {
        let home = self.tasks[p].processor;
        if self.can(p, home) && self.cpus[home].curr.is_none() {
            return (home, true);
        }
        let lim = self.na(p) - self.t;
        let mut v = Vec::new();
        for c in 0..self.n() {
            v.push(if !self.can(p, c) {
                lim
            } else if self.cpus[c].curr.is_none() {
                (-((now - self.cpus[c].last_schedule) as i64)).max(i64::from(i32::MIN))
            } else {
                self.curr_na[c] + if self.smp() && c != home { self.knobs.pcp } else { 0 }
            });
        }
        loop {
            let mut smallest = None;
            for c in 0..self.n() {
                if v[c] < lim && smallest.is_none_or(|s: usize| v[c] < v[s]) {
                    smallest = Some(c);
                }
            }
            match smallest {
                None => return (home, false),
                Some(c) if self.cpus[c].curr.is_none() => return (c, true),
                Some(c) if self.delta(p, c) > self.t => return (c, true),
                Some(c) => v[c] = lim,
            }
        }
    }

    /// A task that is on no queue joins one.
    fn place(&mut self, p: usize, now: u64) {
        let (c, told) = self.reschedule_idle(p, now);
        self.join(p, c, told);
    }
    fn join(&mut self, p: usize, c: usize, told: bool) {
        // The core's own rule: a queue must be allowed.
        let lowest = self.tasks[p].cpus_allowed.trailing_zeros() as usize;
        self.tasks[p].processor = if self.allowed(p, c) { c } else { lowest };
        self.add(p);
        if told {
            self.set_need_resched(c);
        }
    }
    /// A queued task, moved if another CPU wants it.
    fn offer(&mut self, p: usize, now: u64) {
        let (c, told) = self.reschedule_idle(p, now);
        if told && c != self.tasks[p].processor {
            self.del(p);
            self.join(p, c, told);
        } else if told {
            self.set_need_resched(c);
        }
    }

    fn choose(&mut self, c: usize, prev: Option<usize>) -> Option<usize> {
        let n = self.n();
        let willing = prev.filter(|p| self.tasks[*p].state == TaskState::Running);
        loop {
            let m = self.cpus[c].active_mm;
            let (mut best, mut next) = (-1000, None);
            if prev.is_none() {
                best = self.curr_goodness(c);
            }
            if let Some(p) = willing.filter(|_| self.prev_bias) {
                (best, next) = (self.goodness(p, c, m), Some(p));
            }
            let mut second: Option<(i64, usize)> = None;
            for q in [n, c] {
                for p in self.queues[q].clone() {
                    let rival = !self.prev_bias && willing == Some(p);
                    // With one CPU everything may run, but the previous task has had its turn.
                    if !(rival || self.can(p, c) && !self.tasks[p].has_cpu) {
                        continue;
                    }
                    let w = self.local(p, m);
                    if w > best {
                        if let Some(old) = next
                            && self.queues[c].contains(&old)
                        {
                            second = Some((best, old));
                        }
                        (best, next) = (w, Some(p));
                    } else if q == c && second.is_none_or(|(value, _)| w > value) {
                        second = Some((w, p));
                    }
                }
            }
            if !next.is_some_and(|p| self.tasks[p].class.is_rt()) {
                let mut floor = best;
                if best > 0 && self.smp() {
                    floor += self.knobs.pcp;
                }
                let mut from: Option<usize> = None;
                for q in (0..n).filter(|q| *q != c) {
                    let fits = self.max[q].is_some_and(|p| self.can(p, c));
                    let least = from.map_or(floor, |from| self.max_na[from]);
                    if fits && self.max_na[q] > least {
                        from = Some(q);
                    }
                }
                if let Some(q) = from {
                    let p = self.max[q].expect("it is there");
                    second = next.map(|local| (best, local));
                    (best, next) = (self.max_na[q], Some(p));
                    self.del(p);
                    self.tasks[p].processor = c;
                    self.add(p);
                }
            }
            if best != 0 {
                self.max[c] = second.map(|(_, p)| p);
                self.max_na[c] = self.max[c].map_or(EMPTY, |p| self.na(p));
                return next;
            }
            self.epoch();
        }
    }

    fn epoch(&mut self) {
        self.epochs += 1;
        for p in 0..self.tasks.len() {
            let quantum = self.quantum(self.tasks[p].nice);
            self.tasks[p].counter = self.tasks[p].counter / 2 + quantum;
        }
        for c in 0..self.n() {
            self.curr_na[c] = self.cpus[c].curr.map_or(EMPTY, |p| self.na(p));
            (self.max_na[c], self.max[c]) = (EMPTY, None);
            for p in self.queues[c].clone() {
                if !self.running(p) && self.na(p) > self.max_na[c] {
                    (self.max_na[c], self.max[c]) = (self.na(p), Some(p));
                }
            }
        }
    }
}

impl Literal for MultiQueue {
    fn build(n_cpus: usize, hz: i32, set: &str) -> Self {
        let knobs: MqTunables = tunables(set);
        let mut base = Reference::new(n_cpus, hz, tunables(""));
        (base.knobs.rt_scale, base.knobs.pcp) = (knobs.rt_scale, knobs.pcp);
        Self {
            base,
            queues: vec![Vec::new(); n_cpus + 1],
            max_na: vec![EMPTY; n_cpus],
            max: vec![None; n_cpus],
            curr_na: vec![EMPTY; n_cpus],
            prev_bias: knobs.prev_bias,
            t: knobs.t,
            must_leave: vec![false; n_cpus],
            expelled: vec![false; n_cpus],
        }
    }

    fn wake(&mut self, here: usize, p: usize, sync: bool, now: u64) {
        self.tasks[p].state = TaskState::Runnable;
        let tells = !sync || !self.allowed(p, here);
        let home = self.tasks[p].processor;
        if self.tasks[p].has_cpu {
            // Still being switched away from: the core leaves it where it is.
            self.add(p);
            if tells {
                self.offer(p, now);
            }
        } else if tells {
            self.place(p, now);
        } else {
            self.join(p, home, false);
        }
    }

    fn schedule(&mut self, c: usize, now: u64) -> bool {
        let prev = self.cpus[c].curr;
        let must_leave = core::mem::take(&mut self.must_leave[c]);
        if let Some(p) = prev {
            if must_leave && self.tasks[p].state == TaskState::Running {
                self.tasks[p].state = TaskState::Waking;
                self.expelled[c] = true;
            }
            if self.tasks[p].class == SchedClass::Rr && self.tasks[p].counter == 0 {
                self.tasks[p].counter = self.quantum(self.tasks[p].nice);
                let n = self.n();
                self.queues[n].retain(|t| *t != p);
                self.queues[n].push(p);
            }
            if self.tasks[p].state != TaskState::Running {
                self.del(p);
            }
            self.tasks[p].need_resched = false;
        } else {
            self.cpus[c].idle_need_resched = false;
        }
        let next = self.choose(c, prev);
        if next == prev {
            if let Some(p) = prev {
                self.tasks[p].yielded = false;
            }
            return false;
        }
        self.cpus[c].curr = next;
        self.curr_na[c] = next.map_or(EMPTY, |p| self.na(p));
        if let Some(p) = prev.filter(|p| self.tasks[*p].state == TaskState::Running) {
            self.tasks[p].state = TaskState::Runnable;
        }
        if let Some(p) = next {
            let task = &mut self.tasks[p];
            (task.has_cpu, task.processor, task.state) = (true, c, TaskState::Running);
            if let Some(mm) = task.mm {
                self.cpus[c].active_mm = Some(mm);
            }
        }
        self.cpus[c].last_schedule = now;
        self.cpus[c].tail = Some(prev);
        true
    }

    fn schedule_tail(&mut self, c: usize, now: u64) {
        let Some(p) = self.cpus[c].tail.take().expect("a switch is under way") else { return };
        let yielded = core::mem::take(&mut self.tasks[p].yielded);
        self.tasks[p].has_cpu = false;
        let runnable = self.tasks[p].state == TaskState::Runnable;
        if core::mem::take(&mut self.expelled[c]) {
            self.tasks[p].state = TaskState::Runnable;
            self.place(p, now);
        } else if runnable && !self.allowed(p, self.tasks[p].processor) {
            self.del(p);
            self.place(p, now);
        } else if runnable && self.smp() && !yielded {
            self.offer(p, now);
        }
    }

    fn tick(&mut self, c: usize) {
        self.base.tick(c);
        if let Some(p) = self.cpus[c].curr {
            self.curr_na[c] = self.na(p);
        }
    }

    fn sched_yield(&mut self, c: usize) {
        let n = self.n();
        let mut pending = self.queues[n].len() as i64;
        for q in 0..n {
            pending += self.queues[q].len() as i64 - i64::from(self.cpus[q].curr.is_some());
        }
        let p = self.cpus[c].curr.expect("it runs");
        if pending != 0 {
            if !self.tasks[p].class.is_rt() {
                self.tasks[p].yielded = true;
            }
            self.tasks[p].need_resched = true;
        }
    }

    fn set_class(&mut self, here: usize, p: usize, class: SchedClass, priority: i32) {
        let task = &mut self.tasks[p];
        (task.class, task.rt_priority, task.yielded) = (class, priority, false);
        if let Some(q) = self.queue_with(p) {
            if q == self.queue_for(p) {
                self.queues[q].retain(|t| *t != p);
                self.queues[q].insert(0, p);
            } else {
                self.del(p);
                self.add(p);
            }
        }
        self.set_need_resched(here);
    }

    fn set_affinity(&mut self, p: usize, mask: u64, now: u64) {
        self.tasks[p].cpus_allowed = mask;
        let c = self.tasks[p].processor;
        match self.tasks[p].state {
            TaskState::Running => {
                self.must_leave[c] = !self.allowed(p, c);
                if self.must_leave[c] {
                    self.set_need_resched(c);
                }
            }
            TaskState::Runnable if !self.allowed(p, c) && !self.tasks[p].has_cpu => {
                self.del(p);
                self.place(p, now);
            }
            _ => {}
        }
    }

    fn figures(&self, p: usize) -> Vec<(&'static str, i64)> {
        let task = &self.tasks[p];
        let c = task.processor;
        let queue = self.queue_with(p);
        let position = queue.and_then(|q| self.queues[q].iter().position(|t| *t == p));
        vec![
            ("counter", i64::from(task.counter)),
            ("yielded", i64::from(task.yielded)),
            ("position", position.map_or(-1, |at| at as i64)),
            ("na", self.na(p)),
            ("is_max", i64::from(self.max[c] == Some(p))),
            ("max_na", self.max_na[c]),
            ("curr_na", self.curr_na[c]),
        ]
    }
}
