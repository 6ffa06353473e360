// SPDX-License-Identifier: GPL-2.0-only
//! Random sequences of inputs that last many slices, under every variant, with all invariants on.

use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;
use schedlab_kcore::{Core, CoreConfig, NewTask};
use schedlab_policy_api::{
    Build, NoObserver, PolicyDef, SchedClass, TaskState, TickPhase, Topology,
};
use schedlab_units::{CpuId, CpuSet, Hz, TaskId, Time};

use super::rig::{nice, tunables};
use crate::o1::policy::O1;
use crate::o1::tunables::VARIANTS;

#[derive(Clone, Debug)]
enum Op {
    Ticks(u64),
    Advance(u64),
    Start,
    Fork(u32),
    Block(u32, bool),
    Wake { task: usize, by: u32, by_task: bool, sync: bool },
    Exit(u32),
    Yield(u32),
    Nice(usize, i32),
    Class(usize, u8),
    Affinity(usize, u32),
}

fn op() -> impl Strategy<Value = Op> {
    let (cpu, task) = (0u32..4, 0usize..16);
    prop_oneof![
        4 => (1u64..130).prop_map(Op::Ticks),
        3 => (1u64..900_000).prop_map(Op::Advance),
        1 => Just(Op::Start),
        2 => cpu.clone().prop_map(Op::Fork),
        4 => (cpu.clone(), any::<bool>()).prop_map(|(c, u)| Op::Block(c, u)),
        6 => (task.clone(), cpu.clone(), any::<bool>(), any::<bool>())
            .prop_map(|(task, by, by_task, sync)| Op::Wake { task, by, by_task, sync }),
        1 => cpu.clone().prop_map(Op::Exit),
        1 => cpu.prop_map(Op::Yield),
        1 => (task.clone(), -20i32..20).prop_map(|(t, n)| Op::Nice(t, n)),
        1 => (task.clone(), 0u8..4).prop_map(|(t, c)| Op::Class(t, c)),
        1 => (task, 1u32..16).prop_map(|(t, m)| Op::Affinity(t, m)),
    ]
}

struct Machine {
    core: Core<O1, NoObserver>,
    now: Time,
    tick_ns: u64,
}

impl Machine {
    fn new(variant: &str, set: &str, topo: Topology, hz: Hz) -> Self {
        assert_eq!(O1::INFO.time.phase, TickPhase::Aligned);
        let policy = O1::build(&tunables(variant, set), Build { topo: &topo, hz, n_tasks: 2 });
        let config = CoreConfig { topo, hz, seed: 1, n_tasks: 2, check: true };
        let core = Core::new(policy, NoObserver, config);
        Self { core, now: Time::ZERO, tick_ns: hz.tick().as_ns() }
    }

    fn settle(&mut self) {
        for _ in 0..1000 {
            let mut asked = self.core.topo().cpus().filter(|cpu| self.core.need_resched(*cpu));
            let Some(cpu) = asked.next() else { return };
            drop(asked);
            if self.core.schedule(self.now, cpu).is_real() {
                self.core.finish_switch(self.now, cpu);
            }
        }
        panic!("the machine does not come to rest");
    }

    fn tick(&mut self) {
        self.now = Time::from_ns((self.now.as_ns() / self.tick_ns + 1) * self.tick_ns);
        for cpu in self.core.topo().cpus() {
            self.core.tick(self.now, cpu);
            self.settle();
        }
    }

    fn create(&mut self, cpu: CpuId, parent: Option<TaskId>) {
        if self.core.tasks().n_live() >= 12 {
            return;
        }
        let mut new = NewTask::normal(self.core.topo().all(), 1);
        new.cpu = cpu;
        if let Some(parent) = parent {
            let facts = self.core.tasks().get(parent);
            (new.class, new.nice) = (facts.class, facts.nice);
            (new.rt_priority, new.affinity) = (facts.rt_priority, facts.affinity);
        }
        let task = self.core.fork(self.now, cpu, parent, &new);
        self.core.wake_up_new(self.now, cpu, task, None);
    }

    fn exit(&mut self, cpu: CpuId, task: TaskId) {
        self.core.exit(self.now, cpu);
        self.core.finish_switch(self.now, cpu);
        let children = self.core.tasks().iter().filter(|(_, f)| f.parent == Some(task));
        let children: Vec<TaskId> = children.map(|(child, _)| child).collect();
        for child in children {
            self.core.orphan(child);
        }
        self.core.reap(self.now, cpu, task);
    }

    /// The task with this number among the live ones.
    fn live(&self, n: usize) -> Option<TaskId> {
        self.core.tasks().iter().nth(n).map(|(task, _)| task)
    }

    fn apply(&mut self, op: &Op) {
        let n_cpus = self.core.topo().n_cpus() as u32;
        let cpu_of = |n: u32| CpuId(n % n_cpus);
        let now = self.now;
        match *op {
            Op::Ticks(n) => (0..n).for_each(|_| self.tick()),
            Op::Advance(ns) => {
                let left = self.tick_ns - now.as_ns() % self.tick_ns;
                self.now = Time::from_ns(now.as_ns() + ns.min(left - 1));
            }
            Op::Start => self.create(CpuId(0), None),
            Op::Fork(n) => {
                let cpu = cpu_of(n);
                if let Some(parent) = self.core.curr(cpu) {
                    self.create(cpu, Some(parent));
                }
            }
            Op::Block(n, uninterruptible) if self.core.curr(cpu_of(n)).is_some() => {
                let state =
                    if uninterruptible { TaskState::Uninterruptible } else { TaskState::Sleeping };
                self.core.block(now, cpu_of(n), state);
                self.core.finish_switch(now, cpu_of(n));
            }
            Op::Wake { task, by, by_task, sync } => {
                if let Some(task) = self.live(task) {
                    let waker = self.core.curr(cpu_of(by)).filter(|_| by_task);
                    self.core.wake(now, cpu_of(by), task, waker, sync);
                }
            }
            Op::Exit(n) => {
                if let Some(task) = self.core.curr(cpu_of(n)) {
                    self.exit(cpu_of(n), task);
                }
            }
            Op::Yield(n) if self.core.curr(cpu_of(n)).is_some() => {
                self.core.yield_task(now, cpu_of(n));
            }
            Op::Nice(task, n) => {
                if let Some(task) = self.live(task) {
                    self.core.set_nice(now, CpuId(0), task, nice(n));
                }
            }
            Op::Class(task, n) => {
                if let Some(task) = self.live(task) {
                    use SchedClass::{Batch, Fifo, Normal, Rr};
                    let class = [Normal, Batch, Fifo, Rr][usize::from(n)];
                    let rt_priority = if class.is_rt() { 40 + n } else { 0 };
                    self.core.set_class(now, CpuId(0), task, class, rt_priority);
                }
            }
            Op::Affinity(task, mask) => {
                if let Some(task) = self.live(task) {
                    let bits = (0..4).filter(|bit| mask >> bit & 1 != 0);
                    let set: CpuSet = bits.map(cpu_of).collect();
                    self.core.set_affinity(now, CpuId(0), task, &set);
                }
            }
            Op::Block(..) | Op::Yield(_) => {}
        }
        self.settle();
    }
}

fn machine() -> impl Strategy<Value = Topology> {
    prop_oneof![
        2 => Just(Topology::flat(1).expect("legal")),
        1 => Just(Topology::flat(2).expect("legal")),
        1 => Just(Topology::flat(3).expect("legal")),
        1 => Just(Topology::new(2, 1, 2, 1).expect("two nodes of two CPUs")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(64)
    })]

    #[test]
    fn any_inputs_keep_the_invariants(
        ops in prop::collection::vec(op(), 1..80),
        topo in machine(),
        hz in prop::sample::select(vec![10u32, 100, 1000]),
        set in prop::sample::select(vec![
            "", "start_sleep_avg=100", "prio_bonus_ratio=50;start_sleep_avg=70",
            "prio_bonus_ratio=0;max_sleep_avg=10ms", "starvation_limit=0;wrap_32_bit=on",
            "granularity=1ms;rq_wait_credit=weighted;child_penalty=100",
        ]),
    ) {
        for variant in VARIANTS {
            let mut machine = Machine::new(variant.name, set, topo.clone(), Hz::new(hz));
            for op in &ops {
                machine.apply(op);
            }
        }
    }
}
