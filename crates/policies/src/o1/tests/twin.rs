// SPDX-License-Identifier: GPL-2.0-only
//! The policy against 2.6.0-test1 on one CPU, written down step by step from spec §4 with two
//! sorted vectors for the arrays and none of the policy's code. The inputs are too short for the
//! starvation limit to matter; rows 20 to 23 test that.

use alloc::vec::Vec;

use proptest::prelude::*;
use schedlab_units::{TaskId, Time};

use super::rig::{CPU0, MS, Rig, nice};

/// A task as the spec's §3 names its fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Task {
    q: i64,
    p: i64,
    s: i64,
    t: i64,
    l: i64,
    first: bool,
    parent: Option<usize>,
    gone: bool,
}

/// Priority and task in the order of choice.
type Array = Vec<(i64, usize)>;

#[derive(Default)]
struct Twin {
    tasks: Vec<Task>,
    active: Array,
    expired: Array,
    expired_ts: i64,
    curr: Option<usize>,
    need_resched: bool,
}

fn slice(q: i64) -> i64 {
    10 + 190 * (139 - q) / 39
}

impl Twin {
    fn effective(&self, i: usize) -> i64 {
        let task = &self.tasks[i];
        (task.q - (task.s / 1000 - 5)).clamp(100, 139)
    }
    fn append(&mut self, i: usize, expired: bool) {
        let p = self.tasks[i].p;
        let array = if expired { &mut self.expired } else { &mut self.active };
        let at = array.iter().take_while(|(prio, _)| *prio <= p).count();
        array.insert(at, (p, i));
    }
    /// Takes `i` off; whether it was on expired.
    fn remove(&mut self, i: usize) -> Option<bool> {
        let place = |array: &Array| array.iter().position(|(_, t)| *t == i);
        if let Some(at) = place(&self.active) {
            self.active.remove(at);
            return Some(false);
        }
        let at = place(&self.expired)?;
        self.expired.remove(at);
        Some(true)
    }
    fn start(&mut self) -> usize {
        let i = self.tasks.len();
        self.tasks.push(Task { q: 120, p: 125, t: slice(120), ..Task::default() });
        self.append(i, false);
        self.need_resched |= self.curr.is_none_or(|c| 125 < self.tasks[c].p);
        i
    }
    fn fork(&mut self, j: i64) {
        let (parent, i) = (self.curr.expect("asked"), self.tasks.len());
        let mut child = self.tasks[parent].clone();
        (child.t, child.first, child.l) = ((child.t + 1) / 2, true, j);
        child.parent = Some(parent);
        child.s = child.s * 50 / 100;
        self.tasks[parent].t /= 2;
        if self.tasks[parent].t == 0 {
            self.tasks[parent].t = 1;
            self.tick(j);
        }
        child.p = self.tasks[parent].p;
        let p = child.p;
        self.tasks.push(child);
        let in_active = self.active.iter().any(|(_, t)| *t == parent);
        let array = if in_active { &mut self.active } else { &mut self.expired };
        let at = array.iter().position(|(_, t)| *t == parent).expect("queued");
        array.insert(at, (p, i));
        self.need_resched = true;
    }
    fn wake(&mut self, i: usize, sync: bool, j: i64) {
        let d = j - self.tasks[i].l - 1;
        if !sync && d > 0 {
            let s = (self.tasks[i].s + d).min(10_000);
            if s != self.tasks[i].s {
                self.tasks[i].s = s;
                self.tasks[i].p = self.effective(i);
            }
        }
        self.append(i, false);
        if !sync {
            self.need_resched |= self.curr.is_none_or(|c| self.tasks[i].p < self.tasks[c].p);
        }
    }
    fn tick(&mut self, j: i64) {
        let Some(c) = self.curr else { return };
        if !self.active.iter().any(|(_, t)| *t == c) {
            self.need_resched = true;
            return;
        }
        self.tasks[c].s = (self.tasks[c].s - 1).max(0);
        self.tasks[c].t -= 1;
        if self.tasks[c].t != 0 {
            return;
        }
        let nr_running = (self.active.len() + self.expired.len()) as i64;
        self.remove(c);
        self.need_resched = true;
        let p = self.effective(c);
        let task = &mut self.tasks[c];
        (task.p, task.t, task.first) = (p, slice(task.q), false);
        let interactive = p <= task.q - ((task.q - 120) * 10 / 40 + 2);
        let starving = self.expired_ts != 0 && j - self.expired_ts > 10_000 * nr_running;
        if interactive && !starving {
            self.append(c, false);
        } else {
            if self.expired_ts == 0 {
                self.expired_ts = j;
            }
            self.append(c, true);
        }
    }
    fn schedule(&mut self, j: i64) {
        if let Some(prev) = self.curr {
            self.tasks[prev].l = j;
        }
        self.need_resched = false;
        if self.active.is_empty() {
            core::mem::swap(&mut self.active, &mut self.expired);
            self.expired_ts = 0;
        }
        self.curr = self.active.first().map(|(_, t)| *t);
    }
    fn leave(&mut self, j: i64) -> usize {
        let c = self.curr.expect("asked");
        self.remove(c);
        self.schedule(j);
        c
    }
    fn exit(&mut self, j: i64) -> usize {
        let c = self.leave(j);
        let child = self.tasks[c].clone();
        self.tasks[c].gone = true;
        if let Some(parent) = child.parent {
            let parent = &mut self.tasks[parent];
            parent.t = if child.first { (parent.t + child.t).min(200) } else { parent.t };
            parent.s = if child.s < parent.s { (parent.s * 3 + child.s) / 4 } else { parent.s };
        }
        self.tasks.iter_mut().filter(|t| t.parent == Some(c)).for_each(|t| t.parent = None);
        c
    }
    fn renice(&mut self, i: usize, n: i64) {
        if self.tasks[i].q == 120 + n {
            return;
        }
        let place = self.remove(i);
        (self.tasks[i].q, self.tasks[i].p) = (120 + n, 120 + n);
        if let Some(expired) = place {
            self.append(i, expired);
            self.need_resched |= self.curr == Some(i);
        }
    }
}

#[derive(Clone, Debug)]
enum Op {
    Ticks(u64),
    Advance(u64),
    Start,
    Fork,
    Block,
    Wake(usize, bool),
    Exit,
    Yield,
    Nice(usize, i32),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        5 => prop_oneof![1u64..10, 90u64..220, 2_000u64..7_000].prop_map(Op::Ticks),
        2 => (1u64..900_000).prop_map(Op::Advance),
        1 => Just(Op::Start),
        2 => Just(Op::Fork),
        4 => Just(Op::Block),
        5 => (0usize..8, prop::bool::weighted(0.2)).prop_map(|(t, s)| Op::Wake(t, s)),
        1 => Just(Op::Exit),
        1 => Just(Op::Yield),
        1 => (0usize..8, -20i32..20).prop_map(|(t, n)| Op::Nice(t, n)),
    ]
}

/// Policy and twin; `ids[i]` is the policy's name of the twin's task `i`.
struct Pair {
    rig: Rig,
    twin: Twin,
    ids: Vec<TaskId>,
}

impl Pair {
    fn settle(&mut self) {
        self.rig.settle();
        while self.twin.need_resched {
            self.twin.schedule(self.rig.jiffies() as i64);
        }
    }

    fn apply(&mut self, op: &Op) {
        let j = self.rig.jiffies() as i64;
        let busy = self.twin.curr.is_some();
        let n_live = self.twin.tasks.iter().filter(|t| !t.gone).count();
        let live =
            |n: &usize| Some(*n).filter(|n| self.twin.tasks.get(*n).is_some_and(|t| !t.gone));
        match op {
            Op::Ticks(n) => {
                for _ in 0..*n {
                    self.rig.tick();
                    let j = self.rig.jiffies() as i64;
                    self.twin.tick(j);
                    self.settle();
                }
            }
            Op::Advance(ns) => {
                let left = MS - self.rig.now.as_ns() % MS;
                self.rig.now = Time::from_ns(self.rig.now.as_ns() + (*ns).min(left - 1));
            }
            Op::Start if n_live < 8 => {
                self.ids.push(self.rig.task(0));
                let i = self.twin.start();
                self.twin.tasks[i].l = j;
            }
            Op::Fork if busy && n_live < 8 => {
                let parent = self.rig.core.curr(CPU0).expect("busy");
                let mut new = self.rig.process();
                new.nice = self.rig.core.tasks().get(parent).nice;
                let child = self.rig.core.fork(self.rig.now, CPU0, Some(parent), &new);
                self.rig.core.wake_up_new(self.rig.now, CPU0, child, None);
                self.ids.push(child);
                self.twin.fork(j);
            }
            Op::Block if busy => {
                self.rig.block(CPU0);
                self.twin.leave(j);
            }
            Op::Wake(n, sync) => {
                let asleep = live(n).filter(|n| {
                    !self.twin.active.iter().chain(&self.twin.expired).any(|(_, t)| t == n)
                });
                if let Some(i) = asleep {
                    self.rig.core.wake(self.rig.now, CPU0, self.ids[i], None, *sync);
                    self.twin.wake(i, *sync, j);
                }
            }
            Op::Exit if busy => {
                let i = self.twin.exit(j);
                self.rig.core.exit(self.rig.now, CPU0);
                self.rig.core.finish_switch(self.rig.now, CPU0);
                let orphans: Vec<TaskId> = (self.rig.core.tasks().iter())
                    .filter(|(_, facts)| facts.parent == Some(self.ids[i]))
                    .map(|(task, _)| task)
                    .collect();
                orphans.into_iter().for_each(|task| self.rig.core.orphan(task));
                self.rig.core.reap(self.rig.now, CPU0, self.ids[i]);
            }
            Op::Yield if busy => {
                self.rig.core.yield_task(self.rig.now, CPU0);
                let c = self.twin.curr.expect("busy");
                self.twin.remove(c);
                self.twin.append(c, true);
                self.twin.need_resched = true;
            }
            Op::Nice(n, value) => {
                if let Some(i) = live(n) {
                    self.rig.core.set_nice(self.rig.now, CPU0, self.ids[i], nice(*value));
                    self.twin.renice(i, i64::from(*value));
                }
            }
            _ => {}
        }
        self.settle();
    }

    fn compare(&self) -> Result<(), TestCaseError> {
        let curr = self.twin.curr.map(|i| self.ids[i]);
        prop_assert_eq!(self.rig.core.curr(CPU0), curr);
        for (i, task) in self.twin.tasks.iter().enumerate().filter(|(_, t)| !t.gone) {
            let names = ["prio", "sleep_avg", "time_slice", "array", "expired_timestamp"];
            let found = names.map(|name| self.rig.figure(self.ids[i], name));
            let on = |array: &Array| array.iter().any(|(_, t)| *t == i);
            let array =
                if on(&self.twin.active) { 1 } else { i64::from(on(&self.twin.expired)) - 1 };
            let expected = [task.p, task.s, task.t, array, self.twin.expired_ts];
            prop_assert_eq!(found, expected, "task {}: {:?}", i, names);
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(48)
    })]

    #[test]
    fn test1_behaves_like_the_spec_step_by_step(ops in prop::collection::vec(op(), 1..80)) {
        let rig = Rig::up("2.6.0-test1");
        let mut pair = Pair { rig, twin: Twin::default(), ids: Vec::new() };
        for op in &ops {
            pair.apply(op);
            pair.compare()?;
        }
    }
}
