// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler once more, word by word after spec linux-2.4-goodness §4, without a cache, an
//! index or a shortcut. `need_resched` belongs to the task here, as in the kernel.

use alloc::vec::Vec;

use schedlab_policy_api::{SchedClass, TaskState};

use crate::goodness::GoodnessTunables;

/// Stands for an address space of no task.
const FOREIGN: Option<u32> = Some(u32::MAX);

#[derive(Clone, Debug)]
pub(crate) struct Task {
    pub(crate) state: TaskState,
    pub(crate) counter: i32,
    pub(crate) nice: i32,
    pub(crate) class: SchedClass,
    pub(crate) yielded: bool,
    pub(crate) rt_priority: i32,
    pub(crate) mm: Option<u32>,
    pub(crate) processor: usize,
    pub(crate) has_cpu: bool,
    pub(crate) cpus_allowed: u64,
    pub(crate) need_resched: bool,
    pub(crate) parent: Option<usize>,
}

#[derive(Clone, Debug)]
pub(crate) struct Cpu {
    pub(crate) curr: Option<usize>,
    pub(crate) idle_need_resched: bool,
    pub(crate) active_mm: Option<u32>,
    pub(crate) last_schedule: u64,
    /// The task whose `__schedule_tail` is still to come.
    pub(crate) tail: Option<Option<usize>>,
}

/// State of the reference; CPUs and tasks are plain indices.
#[derive(Clone, Debug)]
pub(crate) struct Reference {
    pub(crate) tasks: Vec<Task>,
    pub(crate) cpus: Vec<Cpu>,
    /// Head first.
    pub(crate) list: Vec<usize>,
    pub(crate) epochs: i64,
    pub(crate) knobs: GoodnessTunables,
    hz: i32,
}

impl Reference {
    pub(crate) fn new(n_cpus: usize, hz: i32, knobs: GoodnessTunables) -> Self {
        let cpu = Cpu {
            curr: None,
            idle_need_resched: false,
            active_mm: FOREIGN,
            last_schedule: 0,
            tail: None,
        };
        let cpus = alloc::vec![cpu; n_cpus];
        Self { tasks: Vec::new(), cpus, list: Vec::new(), epochs: 0, knobs, hz }
    }

    pub(crate) fn smp(&self) -> bool {
        self.cpus.len() > 1
    }
    pub(crate) fn quantum(&self, nice: i32) -> i32 {
        let x = 20 - nice;
        let scaled = match self.hz {
            ..=199 => x / 4,
            200..=399 => x / 2,
            400..=799 => x,
            800..=1599 => 2 * x,
            _ => 4 * x,
        };
        scaled + 1
    }

    // §4.1
    pub(crate) fn goodness(&self, p: usize, c: usize, m: Option<u32>) -> i64 {
        let p = &self.tasks[p];
        if p.yielded {
            return -1;
        }
        if p.class.is_rt() {
            return 1000 + self.knobs.rt_scale * i64::from(p.rt_priority);
        }
        let mut w = i64::from(p.counter);
        if w == 0 {
            return 0;
        }
        if self.smp() && p.processor == c {
            w += self.knobs.pcp;
        }
        if p.mm == m || p.mm.is_none() {
            w += 1;
        }
        w + 20 - i64::from(p.nice)
    }
    pub(crate) fn curr_goodness(&self, c: usize) -> i64 {
        match self.cpus[c].curr {
            Some(curr) => self.goodness(curr, c, self.cpus[c].active_mm),
            None => -100 + if self.smp() { self.knobs.pcp } else { 0 } + 1,
        }
    }
    // §4.2
    pub(crate) fn delta(&self, p: usize, c: usize) -> i64 {
        let margin = if self.tasks[p].class.is_rt() { 0 } else { self.knobs.other_margin };
        self.goodness(p, c, self.cpus[c].active_mm) - self.curr_goodness(c) - margin
    }
    // §4.3
    pub(crate) fn can(&self, p: usize, c: usize) -> bool {
        let task = &self.tasks[p];
        !self.smp() || (!task.has_cpu && task.cpus_allowed >> c & 1 == 1)
    }
    fn add(&mut self, p: usize) {
        match self.knobs.add_at {
            1 => self.list.push(p),
            2 if self.tasks[p].class.is_rt() => self.list.push(p),
            _ => self.list.insert(0, p),
        }
    }
    fn del(&mut self, p: usize) {
        self.list.retain(|t| *t != p);
    }
    fn move_last(&mut self, p: usize) {
        self.del(p);
        self.list.push(p);
    }

    pub(crate) fn need_resched(&self, c: usize) -> bool {
        match self.cpus[c].curr {
            Some(curr) => self.tasks[curr].need_resched,
            None => self.cpus[c].idle_need_resched,
        }
    }
    pub(crate) fn set_need_resched(&mut self, c: usize) {
        match self.cpus[c].curr {
            Some(curr) => self.tasks[curr].need_resched = true,
            None => self.cpus[c].idle_need_resched = true,
        }
    }

    // §4.4, §4.5
    fn reschedule_idle(&mut self, p: usize) {
        if !self.smp() {
            if self.delta(p, 0) > self.knobs.t_up {
                self.set_need_resched(0);
            }
            return;
        }
        let b = self.tasks[p].processor;
        if self.can(p, b) && self.cpus[b].curr.is_none() {
            self.set_need_resched(b);
            return;
        }
        let mut oldest = u64::MAX;
        let mut target = None;
        let mut best = self.knobs.t_smp;
        for c in 0..self.cpus.len() {
            if !self.can(p, c) {
                continue;
            }
            if self.cpus[c].curr.is_none() {
                if self.cpus[c].last_schedule < oldest {
                    oldest = self.cpus[c].last_schedule;
                    target = Some(c);
                }
            } else if oldest == u64::MAX {
                let d = self.delta(p, c);
                if d > best {
                    best = d;
                    target = Some(c);
                }
            }
        }
        if let Some(c) = target {
            self.set_need_resched(c);
        }
    }

    // §4.6
    pub(crate) fn wake(&mut self, here: usize, p: usize, sync: bool) {
        self.tasks[p].state = TaskState::Runnable;
        self.add(p);
        if !sync || self.tasks[p].cpus_allowed >> here & 1 == 0 {
            self.reschedule_idle(p);
        }
    }

    // §4.7, with prev.state set by the caller; true = a switch whose tail is to come
    pub(crate) fn schedule(&mut self, c: usize, now: u64) -> bool {
        let prev = self.cpus[c].curr;
        if let Some(p) = prev {
            if self.tasks[p].class == SchedClass::Rr && self.tasks[p].counter == 0 {
                self.tasks[p].counter = self.quantum(self.tasks[p].nice);
                self.move_last(p);
            }
            if self.tasks[p].state != TaskState::Running {
                self.del(p);
            }
            self.tasks[p].need_resched = false;
        } else {
            self.cpus[c].idle_need_resched = false;
        }
        let next = loop {
            let (best, next) = self.choose(c, prev);
            if best != 0 {
                break next;
            }
            self.epochs += 1;
            for p in 0..self.tasks.len() {
                let quantum = self.quantum(self.tasks[p].nice);
                self.tasks[p].counter = self.tasks[p].counter / 2 + quantum;
            }
        };
        self.cpus[c].curr = next;
        if next == prev {
            if let Some(p) = prev.filter(|_| self.knobs.clear_yield_same) {
                self.tasks[p].yielded = false;
            }
            return false;
        }
        if let Some(p) = prev.filter(|p| self.tasks[*p].state == TaskState::Running) {
            self.tasks[p].state = TaskState::Runnable;
        }
        if let Some(n) = next {
            let task = &mut self.tasks[n];
            task.has_cpu = true;
            task.processor = c;
            task.state = TaskState::Running;
            if task.mm.is_some() {
                self.cpus[c].active_mm = task.mm;
            }
        }
        self.cpus[c].last_schedule = now;
        self.cpus[c].tail = Some(prev);
        true
    }
    fn choose(&self, c: usize, prev: Option<usize>) -> (i64, Option<usize>) {
        let m = self.cpus[c].active_mm;
        let (mut best, mut next) = (-1000, None);
        let willing = prev.filter(|p| self.tasks[*p].state == TaskState::Running);
        let allowed = |p: usize| !self.smp() || self.tasks[p].cpus_allowed >> c & 1 == 1;
        if prev.is_none() {
            best = self.curr_goodness(c);
        }
        if let Some(p) = willing
            && self.knobs.prev_bias
            && (!self.knobs.still_allowed || allowed(p))
        {
            (best, next) = (self.goodness(p, c, m), willing);
        }
        for p in self.list.iter().copied() {
            let rival = !self.knobs.prev_bias && Some(p) == willing && allowed(p);
            if self.can(p, c) || rival {
                let w = self.goodness(p, c, m);
                if w > best {
                    (best, next) = (w, Some(p));
                }
            }
        }
        (best, next)
    }
    pub(crate) fn is_switching(&self, c: usize) -> bool {
        self.cpus[c].tail.is_some()
    }

    // §4.8
    pub(crate) fn schedule_tail(&mut self, c: usize) {
        let Some(p) = self.cpus[c].tail.take().expect("a switch is under way") else { return };
        let yielded = self.tasks[p].yielded;
        self.tasks[p].yielded = false;
        self.tasks[p].has_cpu = false;
        if self.smp() && self.tasks[p].state == TaskState::Runnable && !yielded {
            self.reschedule_idle(p);
        }
    }

    // §4.9
    pub(crate) fn tick(&mut self, c: usize) {
        let Some(p) = self.cpus[c].curr else { return };
        let task = &mut self.tasks[p];
        task.counter -= 1;
        if task.counter <= 0 {
            task.counter = 0;
            if self.knobs.fifo_tick_resched || task.class != SchedClass::Fifo {
                task.need_resched = true;
            }
        }
    }

    // §4.10, with the facts that the host gives the child
    pub(crate) fn fork(&mut self, parent: Option<usize>, mut child: Task, slot: usize) {
        match parent {
            None => child.counter = self.quantum(child.nice),
            Some(p) => {
                let from = &mut self.tasks[p];
                child.need_resched = from.need_resched;
                child.yielded = from.yielded;
                let c = from.counter;
                let all = self.knobs.fork_split == 1;
                child.counter = if all { c } else { (c + 1) / 2 };
                from.counter = if all { 0 } else { c / 2 };
                if from.counter == 0 {
                    from.need_resched = true;
                }
            }
        }
        if slot == self.tasks.len() {
            self.tasks.push(child);
        } else {
            self.tasks[slot] = child;
        }
    }

    // §4.11
    pub(crate) fn reap(&mut self, child: usize) {
        if let Some(p) = self.tasks[child].parent {
            let cap = 20 * self.hz / 100;
            self.tasks[p].counter += self.tasks[child].counter;
            if self.tasks[p].counter >= cap {
                self.tasks[p].counter = cap;
            }
        }
        self.tasks[child].state = TaskState::Dead;
    }

    // §4.12
    pub(crate) fn sched_yield(&mut self, c: usize) {
        let mut pending = self.list.len();
        if self.smp() {
            pending -= self.cpus.iter().filter(|cpu| cpu.curr.is_some()).count();
        } else {
            pending -= 1;
        }
        let p = self.cpus[c].curr.expect("it runs");
        if pending != 0 {
            if !self.tasks[p].class.is_rt() {
                self.tasks[p].yielded = true;
            }
            self.tasks[p].need_resched = true;
            if self.knobs.yield_tail {
                self.move_last(p);
            }
        }
    }

    // §4.13
    pub(crate) fn set_class(&mut self, here: usize, p: usize, class: SchedClass, priority: i32) {
        let task = &mut self.tasks[p];
        task.class = class;
        task.rt_priority = priority;
        task.yielded = false;
        if self.knobs.class_moves_first && self.list.contains(&p) {
            self.del(p);
            self.list.insert(0, p);
        }
        self.set_need_resched(here);
    }

    // §4.7 S8: what is loaded follows the current task
    pub(crate) fn exec(&mut self, c: usize, mm: u32) {
        let p = self.cpus[c].curr.expect("it runs");
        self.tasks[p].mm = Some(mm);
        self.cpus[c].active_mm = Some(mm);
    }
}
