// SPDX-License-Identifier: GPL-2.0-only
//! The policy against the literal reference: the same inputs, the same machine after each.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::{Deref, DerefMut};

use proptest::prelude::*;
use schedlab_kcore::{Core, CoreConfig, NewTask};
use schedlab_policy_api::{
    Build, Mm, NoObserver, PolicyDef, SchedClass, TaskState, Tgid, Topology,
};
use schedlab_units::{CpuId, CpuSet, Hz, Nice, TaskId, Time};

use super::reference::{Reference, Task};
use super::rig::tunables;
use crate::goodness::Goodness;

/// An input; numbers are reduced to what exists when it is applied.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Start { nice: i32, class: u8, mm: u8, mask: u8, cpu: u8 },
    Fork { cpu: u8, same_mm: bool },
    WakeNew { here: u8, task: u8 },
    Wake { here: u8, task: u8, sync: bool },
    Schedule { cpu: u8 },
    Finish { cpu: u8 },
    Block { cpu: u8, deep: bool },
    Exit { cpu: u8 },
    Reap { here: u8 },
    Tick { cpu: u8, n: u8 },
    Yield { cpu: u8 },
    SetNice { here: u8, task: u8, nice: i32 },
    SetClass { here: u8, task: u8, class: u8 },
    SetAffinity { here: u8, task: u8, mask: u8 },
    Exec { cpu: u8, mm: u8 },
}

pub(crate) fn op() -> impl Strategy<Value = Op> {
    let b = any::<u8>;
    let nice = || prop_oneof![3 => Just(0), 1 => -20..=19];
    let class = || prop_oneof![6 => Just(0u8), 1 => any::<u8>()];
    let mask = || prop_oneof![3 => Just(255u8), 1 => any::<u8>()];
    prop_oneof![
        3 => (nice(), class(), b(), mask(), b())
            .prop_map(|(nice, class, mm, mask, cpu)| Op::Start { nice, class, mm, mask, cpu }),
        2 => (b(), any::<bool>()).prop_map(|(cpu, same_mm)| Op::Fork { cpu, same_mm }),
        4 => (b(), b()).prop_map(|(here, task)| Op::WakeNew { here, task }),
        6 => (b(), b(), any::<bool>()).prop_map(|(here, task, sync)| Op::Wake { here, task, sync }),
        8 => b().prop_map(|cpu| Op::Schedule { cpu }),
        8 => b().prop_map(|cpu| Op::Finish { cpu }),
        5 => (b(), any::<bool>()).prop_map(|(cpu, deep)| Op::Block { cpu, deep }),
        1 => b().prop_map(|cpu| Op::Exit { cpu }),
        1 => b().prop_map(|here| Op::Reap { here }),
        6 => (b(), 1..8u8).prop_map(|(cpu, n)| Op::Tick { cpu, n }),
        3 => b().prop_map(|cpu| Op::Yield { cpu }),
        1 => (b(), b(), nice()).prop_map(|(here, task, nice)| Op::SetNice { here, task, nice }),
        1 => (b(), b(), b()).prop_map(|(here, task, class)| Op::SetClass { here, task, class }),
        1 => (b(), b(), mask()).prop_map(|(here, task, mask)| Op::SetAffinity { here, task, mask }),
        1 => (b(), b()).prop_map(|(cpu, mm)| Op::Exec { cpu, mm }),
    ]
}

/// Class and priority from a random number; half of the real-time tasks are RR.
fn class_of(n: u8) -> (SchedClass, u8) {
    match n % 4 {
        0 | 1 => (SchedClass::Normal, 0),
        2 => (SchedClass::Rr, 1 + n / 4 % 3),
        _ => (SchedClass::Fifo, 1 + n / 4 % 3),
    }
}

/// A scheduler of 2.4 written word by word; what is not asked of it is asked of its [`Reference`].
pub(crate) trait Literal: DerefMut<Target = Reference> {
    fn build(n_cpus: usize, hz: i32, set: &str) -> Self;
    fn wake(&mut self, here: usize, p: usize, sync: bool, now: u64);
    /// The state of the previous task is set; true = a switch whose tail is to come.
    fn schedule(&mut self, c: usize, now: u64) -> bool;
    fn schedule_tail(&mut self, c: usize, now: u64);
    fn tick(&mut self, c: usize);
    fn sched_yield(&mut self, c: usize);
    fn set_class(&mut self, here: usize, p: usize, class: SchedClass, priority: i32);
    fn set_affinity(&mut self, p: usize, mask: u64, now: u64);
    /// What the policy is to say of a task.
    fn figures(&self, p: usize) -> Vec<(&'static str, i64)>;
}

/// [`Reference`] as the twin of goodness.
struct OneList(Reference);

impl Deref for OneList {
    type Target = Reference;
    fn deref(&self) -> &Reference {
        &self.0
    }
}
impl DerefMut for OneList {
    fn deref_mut(&mut self) -> &mut Reference {
        &mut self.0
    }
}

impl Literal for OneList {
    fn build(n_cpus: usize, hz: i32, set: &str) -> Self {
        Self(Reference::new(n_cpus, hz, tunables(set)))
    }
    fn wake(&mut self, here: usize, p: usize, sync: bool, _: u64) {
        self.0.wake(here, p, sync);
    }
    fn schedule(&mut self, c: usize, now: u64) -> bool {
        self.0.schedule(c, now)
    }
    fn schedule_tail(&mut self, c: usize, _: u64) {
        self.0.schedule_tail(c);
    }
    fn tick(&mut self, c: usize) {
        self.0.tick(c);
    }
    fn sched_yield(&mut self, c: usize) {
        self.0.sched_yield(c);
    }
    fn set_class(&mut self, here: usize, p: usize, class: SchedClass, priority: i32) {
        self.0.set_class(here, p, class, priority);
    }
    fn set_affinity(&mut self, p: usize, mask: u64, _: u64) {
        let facts = &mut self.0.tasks[p];
        facts.cpus_allowed = mask;
        // The core's own addition: 2.4.5 has no such call.
        let cpu = facts.processor;
        if facts.state == TaskState::Running && mask >> cpu & 1 == 0 {
            self.0.set_need_resched(cpu);
        }
    }
    fn figures(&self, p: usize) -> Vec<(&'static str, i64)> {
        let task = &self.0.tasks[p];
        let position = self.0.list.iter().position(|t| *t == p);
        vec![
            ("counter", i64::from(task.counter)),
            ("yielded", i64::from(task.yielded)),
            ("position", position.map_or(-1, |at| at as i64)),
        ]
    }
}

/// A policy and its twin.
pub(crate) struct Pair<P, L> {
    core: Core<P, NoObserver>,
    pub(crate) reference: L,
    pub(crate) now: Time,
}

impl<P: PolicyDef, L: Literal> Pair<P, L> {
    pub(crate) fn new(n_cpus: u32, hz: u32, set: &str) -> Self {
        let topo = Topology::flat(n_cpus).expect("a machine");
        let build = Build { topo: &topo, hz: Hz::new(hz), n_tasks: 2 };
        let policy = P::build(&tunables(set), build);
        let config = CoreConfig { topo, hz: Hz::new(hz), seed: 1, n_tasks: 2, check: true };
        Self {
            core: Core::new(policy, NoObserver, config),
            reference: L::build(n_cpus as usize, hz as i32, set),
            now: Time::ZERO,
        }
    }

    fn cpu(&self, n: u8) -> CpuId {
        CpuId(u32::from(n) % self.reference.cpus.len() as u32)
    }
    /// One of the tasks in a state that `wanted` accepts.
    fn task(&self, n: u8, wanted: impl Fn(TaskState) -> bool) -> Option<TaskId> {
        let tasks = &self.reference.tasks;
        let fit: Vec<usize> = (0..tasks.len()).filter(|t| wanted(tasks[*t].state)).collect();
        (!fit.is_empty()).then(|| TaskId::from_index(fit[usize::from(n) % fit.len()]))
    }
    /// The mask cut to the machine; never empty.
    fn mask(&self, n: u8) -> (u64, CpuSet) {
        let all = (1u64 << self.reference.cpus.len()) - 1;
        let bits = if u64::from(n) & all == 0 { all } else { u64::from(n) & all };
        (bits, (0..64).filter(|c| bits >> c & 1 == 1).map(CpuId).collect())
    }
    fn settled_curr(&self, cpu: CpuId) -> Option<TaskId> {
        if self.reference.is_switching(cpu.index()) { None } else { self.core.curr(cpu) }
    }

    fn fork(&mut self, parent: Option<TaskId>, here: CpuId, new: &NewTask, mask: u64) {
        let task = self.core.fork(self.now, here, parent, new);
        let child = Task {
            state: TaskState::New,
            counter: 0,
            nice: new.nice.get(),
            class: new.class,
            yielded: false,
            rt_priority: i32::from(new.rt_priority),
            mm: new.mm.map(|mm| mm.0),
            processor: new.cpu.index(),
            has_cpu: false,
            cpus_allowed: mask,
            need_resched: false,
            parent: parent.map(TaskId::index),
        };
        self.reference.fork(parent.map(TaskId::index), child, task.index());
    }

    /// The current task of `cpu` leaves in `state`.
    fn leave(&mut self, cpu: CpuId, state: TaskState) {
        let task = self.core.curr(cpu).expect("it runs").index();
        if state == TaskState::Zombie {
            for child in 0..self.reference.tasks.len() {
                let is_child = self.reference.tasks[child].parent == Some(task);
                if is_child && self.reference.tasks[child].state != TaskState::Dead {
                    self.core.orphan(TaskId::from_index(child));
                    self.reference.tasks[child].parent = None;
                }
            }
            self.core.exit(self.now, cpu);
        } else {
            self.core.block(self.now, cpu, state);
        }
        self.reference.tasks[task].state = state;
        self.reference.schedule(cpu.index(), self.now.as_ns());
    }

    pub(crate) fn apply(&mut self, op: &Op) {
        match *op {
            Op::Start { .. } | Op::Fork { .. } => self.give_birth(op),
            Op::WakeNew { here, task } => {
                let here = self.cpu(here);
                if let Some(task) = self.task(task, |state| state == TaskState::New) {
                    self.core.wake_up_new(self.now, here, task, None);
                    self.reference.wake(here.index(), task.index(), false, self.now.as_ns());
                }
            }
            Op::Wake { here, task, sync } => {
                let here = self.cpu(here);
                if let Some(task) = self.task(task, TaskState::is_asleep) {
                    self.core.wake(self.now, here, task, self.core.curr(here), sync);
                    self.reference.wake(here.index(), task.index(), sync, self.now.as_ns());
                }
            }
            Op::Reap { here } => {
                let here = self.cpu(here);
                if let Some(task) = self.task(0, |state| state == TaskState::Zombie)
                    && !self.reference.tasks[task.index()].has_cpu
                {
                    self.core.reap(self.now, here, task);
                    self.reference.reap(task.index());
                }
            }
            Op::SetNice { .. } | Op::SetClass { .. } | Op::SetAffinity { .. } => self.change(op),
            Op::Schedule { cpu }
            | Op::Finish { cpu }
            | Op::Block { cpu, .. }
            | Op::Exit { cpu }
            | Op::Tick { cpu, .. }
            | Op::Yield { cpu }
            | Op::Exec { cpu, .. } => self.run(op, self.cpu(cpu)),
        }
    }

    fn give_birth(&mut self, op: &Op) {
        if self.reference.tasks.len() >= 40 {
            return;
        }
        match *op {
            Op::Start { nice, class, mm, mask, cpu } => {
                let (class, rt_priority) = class_of(class);
                let (bits, affinity) = self.mask(mask);
                let new = NewTask {
                    class,
                    nice: Nice::clamped(nice),
                    rt_priority,
                    affinity,
                    cpu: self.cpu(cpu),
                    tgid: Tgid(0),
                    mm: (mm % 4 != 3).then_some(Mm(u32::from(mm % 4))),
                    slice_request_ns: 0,
                };
                self.fork(None, new.cpu, &new, bits);
            }
            Op::Fork { cpu, same_mm } => {
                let cpu = self.cpu(cpu);
                let Some(parent) = self.settled_curr(cpu) else { return };
                let facts = self.core.tasks().get(parent).clone();
                let new = NewTask {
                    class: facts.class,
                    nice: facts.nice,
                    rt_priority: facts.rt_priority,
                    affinity: facts.affinity,
                    cpu,
                    tgid: facts.tgid,
                    mm: if same_mm { facts.mm } else { Some(Mm(7)) },
                    slice_request_ns: 0,
                };
                let mask = self.reference.tasks[parent.index()].cpus_allowed;
                self.fork(Some(parent), cpu, &new, mask);
            }
            _ => unreachable!("no birth: {op:?}"),
        }
    }

    /// An input of one CPU; most need a current task and no switch under way.
    fn run(&mut self, op: &Op, cpu: CpuId) {
        let now = self.now;
        let switching = self.reference.is_switching(cpu.index());
        match *op {
            Op::Schedule { .. } if !switching => {
                let switch = self.core.schedule(now, cpu);
                let real = self.reference.schedule(cpu.index(), now.as_ns());
                assert_eq!(switch.is_real(), real);
            }
            Op::Finish { .. } if switching => {
                self.core.finish_switch(now, cpu);
                self.reference.schedule_tail(cpu.index(), now.as_ns());
            }
            Op::Tick { n, .. } => {
                for _ in 0..n {
                    self.core.tick(now, cpu);
                    self.reference.tick(cpu.index());
                }
            }
            _ if self.settled_curr(cpu).is_none() => {}
            Op::Block { deep: true, .. } => self.leave(cpu, TaskState::Uninterruptible),
            Op::Block { deep: false, .. } => self.leave(cpu, TaskState::Sleeping),
            Op::Exit { .. } => self.leave(cpu, TaskState::Zombie),
            Op::Yield { .. } => {
                self.core.yield_task(now, cpu);
                self.reference.sched_yield(cpu.index());
            }
            Op::Exec { mm, .. } => {
                let mm = u32::from(mm % 8);
                self.core.exec(now, cpu, Mm(mm));
                self.reference.exec(cpu.index(), mm);
            }
            _ => {}
        }
    }

    fn change(&mut self, op: &Op) {
        let (Op::SetNice { here, task, .. }
        | Op::SetClass { here, task, .. }
        | Op::SetAffinity { here, task, .. }) = *op
        else {
            unreachable!("no change: {op:?}")
        };
        let (now, here) = (self.now, self.cpu(here));
        let alive = |state| !matches!(state, TaskState::Zombie | TaskState::Dead);
        let Some(task) = self.task(task, alive) else { return };
        match *op {
            Op::SetNice { nice, .. } => {
                self.core.set_nice(now, here, task, Nice::clamped(nice));
                self.reference.tasks[task.index()].nice = nice;
            }
            Op::SetClass { class, .. } => {
                let (class, priority) = class_of(class);
                self.core.set_class(now, here, task, class, priority);
                let priority = i32::from(priority);
                self.reference.set_class(here.index(), task.index(), class, priority);
            }
            Op::SetAffinity { mask, .. } => {
                let (bits, affinity) = self.mask(mask);
                self.core.set_affinity(now, here, task, &affinity);
                self.reference.set_affinity(task.index(), bits, now.as_ns());
            }
            _ => {}
        }
    }

    pub(crate) fn compare(&self, after: &Op) {
        for (c, cpu) in self.reference.cpus.iter().enumerate() {
            let id = CpuId::from_index(c);
            assert_eq!(self.core.curr(id).map(TaskId::index), cpu.curr, "CPU {c} after {after:?}");
            let flag = self.reference.need_resched(c);
            assert_eq!(self.core.need_resched(id), flag, "need_resched of {c} after {after:?}");
        }
        for (t, task) in self.reference.tasks.iter().enumerate() {
            if task.state == TaskState::Dead {
                continue;
            }
            let id = TaskId::from_index(t);
            assert_eq!(self.core.tasks().cpu(id).index(), task.processor, "{t} after {after:?}");
            let figures = self.core.inspect(self.now, id);
            for (name, expected) in self.reference.figures(t) {
                let found = figures.iter().find(|(n, _)| *n == name).expect("there").1;
                assert_eq!(found, expected, "{name} of {t} after {after:?}");
            }
        }
    }
}

/// Settings that reach every branch, alone and together.
const SETTINGS: &[&str] = &[
    "",
    "t_up=0;t_smp=0",
    "t_up=0;t_smp=0;clear_yield_same=on;still_allowed=on",
    "prev_bias=off",
    "prev_bias=off;yield_tail=on;still_allowed=on;clear_yield_same=on;t_up=0;t_smp=0",
    "rt_scale=2;other_margin=1;pcp=20",
    "fork_split=all_to_child;fifo_tick_resched=off;class_moves_first=off;add_at=tail",
    "add_at=tail_if_rt;pcp=0;idle_poll=on",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn policy_behaves_like_literal_reference(
        n_cpus in 1u32..=5,
        hz in prop_oneof![3 => Just(100u32), 1 => Just(1024)],
        set in prop::sample::select(SETTINGS),
        ops in prop::collection::vec(op(), 1..400),
    ) {
        let mut pair = Pair::<Goodness, OneList>::new(n_cpus, hz, set);
        for op in &ops {
            pair.now = pair.now + schedlab_units::Nanos::from_us(1);
            pair.apply(op);
            pair.compare(op);
        }
    }
}
