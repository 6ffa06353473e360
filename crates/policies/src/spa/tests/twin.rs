// SPDX-License-Identifier: GPL-2.0-only
//! The policy against the literal reference: the same inputs, the same machine after each.

use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;
use schedlab_kcore::{Core, CoreConfig, NewTask};
use schedlab_policy_api::{
    Build, Mm, NoObserver, PolicyDef, SchedClass, TaskState, Tgid, Topology,
};
use schedlab_units::{CpuId, CpuSet, Hz, Nanos, Nice, TaskId, Time};

use super::reference::{Reference, Task};
use super::rig::tunables;
use crate::linux_2_6::sleep_avg::SleepAvg;
use crate::spa::Spa;
use crate::spa::tunables::Knobs;

/// An input; numbers are reduced to what exists when it is applied.
#[derive(Clone, Debug)]
enum Op {
    Start { nice: i32, class: u8, mask: u8, kernel: bool },
    Fork { cpu: u8, nice: Option<i32> },
    WakeNew { here: u8, task: u8 },
    Wake { here: u8, task: u8, sync: bool },
    Schedule { cpu: u8 },
    Finish { cpu: u8 },
    Leave { cpu: u8, how: u8 },
    Tick { cpu: u8, n: u8 },
    Pass { us: u32 },
    Yield { cpu: u8 },
    SetNice { task: u8, nice: i32 },
    SetClass { task: u8, class: u8 },
}

fn op() -> impl Strategy<Value = Op> {
    let b = any::<u8>;
    let nice = || prop_oneof![3 => Just(0), 1 => -20..=19];
    let class = || prop_oneof![6 => Just(0u8), 1 => any::<u8>()];
    let mask = prop_oneof![3 => Just(255u8), 1 => any::<u8>()];
    let other = prop_oneof![3 => Just(None), 1 => nice().prop_map(Some)];
    let us = prop_oneof![4 => 1..3_000u32, 1 => 1..1_200_000u32];
    prop_oneof![
        3 => (nice(), class(), mask, any::<bool>())
            .prop_map(|(nice, class, mask, kernel)| Op::Start { nice, class, mask, kernel }),
        2 => (b(), other).prop_map(|(cpu, nice)| Op::Fork { cpu, nice }),
        5 => (b(), b()).prop_map(|(here, task)| Op::WakeNew { here, task }),
        7 => (b(), b(), any::<bool>()).prop_map(|(here, task, sync)| Op::Wake { here, task, sync }),
        8 => b().prop_map(|cpu| Op::Schedule { cpu }),
        8 => b().prop_map(|cpu| Op::Finish { cpu }),
        5 => (b(), b()).prop_map(|(cpu, how)| Op::Leave { cpu, how }),
        6 => (b(), 1..120u8).prop_map(|(cpu, n)| Op::Tick { cpu, n }),
        3 => us.prop_map(|us| Op::Pass { us }),
        2 => b().prop_map(|cpu| Op::Yield { cpu }),
        1 => (b(), nice()).prop_map(|(task, nice)| Op::SetNice { task, nice }),
        1 => (b(), b()).prop_map(|(task, class)| Op::SetClass { task, class }),
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

struct Pair {
    core: Core<Spa, NoObserver>,
    reference: Reference,
    now: Time,
}

impl Pair {
    fn new(n_cpus: u32, set: &str) -> Self {
        let topo = Topology::flat(n_cpus).expect("a machine");
        let (knobs, hz) = (tunables(set), Hz::new(1000));
        let build = Build { topo: &topo, hz, n_tasks: 2 };
        let policy = Spa::build(&knobs, build);
        let config = CoreConfig { topo, hz, seed: 1, n_tasks: 2, check: true };
        let n_cpus = n_cpus as usize;
        Self {
            core: Core::new(policy, NoObserver, config),
            reference: Reference::new(n_cpus, Knobs::new(&knobs, n_cpus, hz)),
            now: Time::ZERO,
        }
    }
    fn pass(&mut self, span: Nanos) {
        self.now = self.now + span;
        self.reference.now = self.now.as_ns();
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

    /// Forks on `here`, in both machines.
    fn fork(&mut self, here: CpuId, parent: Option<TaskId>, new: &NewTask) {
        self.core.fork(self.now, here, parent, new);
        let mask = new.affinity.iter().map(|cpu| 1 << cpu.0).sum();
        let task = Task {
            state: TaskState::New,
            class: new.class,
            rt_priority: new.rt_priority,
            nice: new.nice.get(),
            has_mm: new.mm.is_some(),
            mask,
            cpu: new.cpu.index(),
            on_cpu: false,
            parent: parent.map(TaskId::index),
            avg: SleepAvg::default(),
            time_slice: 0,
        };
        self.reference.fork(task, here.index());
    }

    fn apply(&mut self, op: &Op) {
        let now = self.now;
        match *op {
            Op::Start { .. } | Op::Fork { .. } => self.give_birth(op),
            Op::WakeNew { here, task } => {
                let here = self.cpu(here);
                if let Some(task) = self.task(task, |state| state == TaskState::New) {
                    self.core.wake_up_new(now, here, task, None);
                    self.reference.wake_new(here.index(), task.index());
                }
            }
            Op::Wake { here, task, sync } => {
                let here = self.cpu(here);
                if let Some(task) = self.task(task, TaskState::is_asleep) {
                    self.core.wake(now, here, task, self.core.curr(here), sync);
                    self.reference.wake(here.index(), task.index(), sync);
                }
            }
            Op::Pass { us } => self.pass(Nanos::from_us(u64::from(us))),
            Op::Tick { cpu, n } => {
                let cpu = self.cpu(cpu);
                for _ in 0..n {
                    self.pass(Nanos::from_ms(1));
                    self.core.tick(self.now, cpu);
                    self.reference.scheduler_tick(cpu.index());
                }
            }
            Op::SetNice { task, nice } => {
                if let Some(task) = self.task(task, |state| state != TaskState::Zombie) {
                    self.core.set_nice(now, CpuId(0), task, Nice::clamped(nice));
                    self.reference.set_user_nice(task.index(), nice);
                }
            }
            Op::SetClass { task, class } => {
                let (class, priority) = class_of(class);
                if let Some(task) = self.task(task, |state| state != TaskState::Zombie) {
                    self.core.set_class(now, CpuId(0), task, class, priority);
                    self.reference.setscheduler(task.index(), class, priority);
                }
            }
            Op::Schedule { cpu }
            | Op::Finish { cpu }
            | Op::Leave { cpu, .. }
            | Op::Yield { cpu } => {
                self.run(op, self.cpu(cpu));
            }
        }
    }

    fn give_birth(&mut self, op: &Op) {
        if self.reference.tasks.len() >= 40 {
            return;
        }
        match *op {
            Op::Start { nice, class, mask, kernel } => {
                let (class, rt_priority) = class_of(class);
                let all = *self.core.topo().all();
                let some: CpuSet = (0..8).filter(|c| mask >> c & 1 == 1).map(CpuId).collect();
                let affinity = some.intersection(&all);
                let affinity = if affinity.is_empty() { all } else { affinity };
                let new = NewTask {
                    class,
                    nice: Nice::clamped(nice),
                    rt_priority,
                    affinity,
                    cpu: affinity.first().expect("not empty"),
                    tgid: Tgid(0),
                    mm: (!kernel).then_some(Mm(1)),
                    slice_request_ns: 0,
                };
                self.fork(new.cpu, None, &new);
            }
            Op::Fork { cpu, nice } => {
                let cpu = self.cpu(cpu);
                let Some(parent) = self.core.curr(cpu) else { return };
                let facts = self.core.tasks().get(parent).clone();
                let new = NewTask {
                    class: facts.class,
                    nice: nice.map_or(facts.nice, Nice::clamped),
                    rt_priority: facts.rt_priority,
                    affinity: facts.affinity,
                    cpu,
                    tgid: facts.tgid,
                    mm: facts.mm,
                    slice_request_ns: 0,
                };
                self.fork(cpu, Some(parent), &new);
            }
            _ => unreachable!("no birth: {op:?}"),
        }
    }

    fn run(&mut self, op: &Op, cpu: CpuId) {
        let (now, index) = (self.now, cpu.index());
        let switching = self.reference.cpus[index].switching.is_some();
        match *op {
            Op::Finish { .. } if switching => {
                self.core.finish_switch(now, cpu);
                self.reference.finish(index);
            }
            Op::Schedule { .. } if !switching => {
                self.core.schedule(now, cpu);
                self.reference.schedule(index, None);
            }
            _ if switching || self.core.curr(cpu).is_none() => {}
            Op::Yield { .. } => {
                self.core.yield_task(now, cpu);
                self.reference.sched_yield(index);
            }
            Op::Leave { how, .. } => {
                let state = match how % 8 {
                    0 => TaskState::Zombie,
                    1..3 => TaskState::Uninterruptible,
                    _ => TaskState::Sleeping,
                };
                if state == TaskState::Zombie {
                    self.core.exit(now, cpu);
                } else {
                    self.core.block(now, cpu, state);
                }
                self.reference.schedule(index, Some(state));
            }
            _ => {}
        }
    }

    fn compare(&self, after: &Op) {
        for (c, cpu) in self.reference.cpus.iter().enumerate() {
            let id = CpuId::from_index(c);
            assert_eq!(self.core.curr(id).map(TaskId::index), cpu.curr, "CPU {c} after {after:?}");
            let flag = self.core.need_resched(id);
            assert_eq!(flag, cpu.need_resched, "need_resched of {c} after {after:?}");
        }
        for (t, task) in self.reference.tasks.iter().enumerate() {
            let id = TaskId::from_index(t);
            assert_eq!(self.core.tasks().cpu(id).index(), task.cpu, "{t} after {after:?}");
            let place = self.reference.place(t);
            let (slot, position) = place.map_or((-1, -1), |(s, at)| (s as i64, at as i64));
            let figures = self.core.inspect(self.now, id);
            let expected = [
                ("slot", slot),
                ("position", position),
                ("time_slice", task.time_slice.into()),
                ("sleep_avg", task.avg.sleep_avg as i64),
                ("bonus", task.avg.bonus(&self.reference.knobs.scale) as i64),
                ("interactive_credit", task.avg.interactive_credit),
                ("activated", task.avg.activated.number()),
            ];
            let [own @ .., (name, shown)] = &figures[..] else { panic!("no figures of {t}") };
            assert_eq!(own, expected, "{t} after {after:?}");
            assert!(
                *name == "prio_shown" && (slot < 0 || *shown == slot - 100),
                "{t} in slot {slot} shows {shown} after {after:?}"
            );
        }
    }
}

/// Settings that reach every branch, alone and together.
const SETTINGS: &[&str] = &[
    "",
    "time_slice=100ms",
    "word_bits=64",
    "onrq_credit=off;bonus=off",
    "promotion_multiplier=nr_running_minus_1;reset_due_when_idle=on",
    "fork_slice=share;renew_on_preempt=on",
    "time_slice=5ms;base_promotion_interval=2ms;cache_decay_ticks=0",
    "initial_sleep_avg=0;time_slice=20ms;base_promotion_interval=10ms",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
    #[test]
    fn policy_behaves_like_literal_reference(
        n_cpus in 1u32..=4,
        set in prop::sample::select(SETTINGS),
        ops in prop::collection::vec(op(), 1..300),
    ) {
        let mut pair = Pair::new(n_cpus, set);
        for op in &ops {
            pair.pass(Nanos::from_us(1));
            pair.apply(op);
            pair.core.clear_resched();
            pair.compare(op);
        }
    }
}
