// SPDX-License-Identifier: GPL-2.0-only
//! Random inputs: the structures stay in order, and a choice is the best of all that wait.

use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;
use schedlab_policy_api::{SchedClass, TaskState, Topology};
use schedlab_units::{CpuId, CpuSet, Nice, TaskId, Time};

use super::rig::Rig;
use crate::bfs::idle_cpu::locality;

/// An input; numbers are reduced to what exists when it is applied.
#[derive(Clone, Copy, Debug)]
enum Op {
    Start { nice: i32, class: u8, mask: u8 },
    Fork { cpu: u8, thread: bool },
    Wake { here: u8, task: u8, sync: bool },
    Schedule { cpu: u8 },
    Finish { cpu: u8 },
    Block { cpu: u8, deep: bool },
    Exit { cpu: u8 },
    Reap { here: u8 },
    Ticks { n: u8 },
    Yield { cpu: u8 },
    SetNice { task: u8, nice: i32 },
    SetClass { task: u8, class: u8 },
    SetAffinity { task: u8, mask: u8 },
}

fn op() -> impl Strategy<Value = Op> {
    let b = any::<u8>;
    prop_oneof![
        3 => (-20..=19, b(), b()).prop_map(|(nice, class, mask)| Op::Start { nice, class, mask }),
        3 => (b(), any::<bool>()).prop_map(|(cpu, thread)| Op::Fork { cpu, thread }),
        6 => (b(), b(), any::<bool>()).prop_map(|(here, task, sync)| Op::Wake { here, task, sync }),
        9 => b().prop_map(|cpu| Op::Schedule { cpu }),
        8 => b().prop_map(|cpu| Op::Finish { cpu }),
        5 => (b(), any::<bool>()).prop_map(|(cpu, deep)| Op::Block { cpu, deep }),
        1 => b().prop_map(|cpu| Op::Exit { cpu }),
        1 => b().prop_map(|here| Op::Reap { here }),
        4 => (1..9u8).prop_map(|n| Op::Ticks { n }),
        2 => b().prop_map(|cpu| Op::Yield { cpu }),
        1 => (b(), -20..=19).prop_map(|(task, nice)| Op::SetNice { task, nice }),
        1 => (b(), b()).prop_map(|(task, class)| Op::SetClass { task, class }),
        1 => (b(), b()).prop_map(|(task, mask)| Op::SetAffinity { task, mask }),
    ]
}

fn class_of(n: u8) -> (SchedClass, u8) {
    match n % 8 {
        0..4 => (SchedClass::Normal, 0),
        4 => (SchedClass::Batch, 0),
        5 => (SchedClass::Idle, 0),
        6 => (SchedClass::Iso, 0),
        _ if n & 8 == 0 => (SchedClass::Rr, 1 + n / 16 % 3),
        _ => (SchedClass::Fifo, 1 + n / 16 % 3),
    }
}

struct Machine(Rig);

impl Machine {
    fn cpu(&self, n: u8) -> CpuId {
        CpuId(u32::from(n) % self.0.core.topo().n_cpus() as u32)
    }
    fn mask(&self, n: u8) -> CpuSet {
        let mask: CpuSet = self.0.core.topo().cpus().filter(|c| n >> (c.0 % 8) & 1 == 1).collect();
        if mask.is_empty() { *self.0.core.topo().all() } else { mask }
    }
    fn task(&self, n: u8, wanted: impl Fn(TaskState) -> bool) -> Option<TaskId> {
        let tasks = self.0.core.tasks().iter();
        let fit: Vec<TaskId> = tasks.filter(|(_, t)| wanted(t.state)).map(|(id, _)| id).collect();
        (!fit.is_empty()).then(|| fit[usize::from(n) % fit.len()])
    }
    /// The task that runs on `cpu` and is not in the middle of being switched to.
    fn settled(&self, cpu: CpuId) -> Option<TaskId> {
        self.0.core.curr(cpu).filter(|_| !self.0.core.is_switching(cpu))
    }

    /// Nothing that waits and may run on `cpu` is more urgent than what it chose.
    fn check_choice(&mut self, cpu: CpuId, last: Option<(TaskId, u32)>) {
        let topo = self.0.core.topo().clone();
        let tasks = self.0.core.tasks().clone();
        let next = self.0.core.curr(cpu);
        let policy = self.0.policy();
        let key = |task: TaskId, from: CpuId| {
            let p = &policy.tasks[task.index()];
            let far = if last == Some(policy.life(task)) { 0 } else { locality(&topo, cpu, from) };
            let at = p.deadline + far * policy.knobs.locality_weight[p.user()];
            (p.prio, if p.prio < 100 { 0 } else { at })
        };
        for (task, facts) in tasks.iter() {
            let rival = policy.queue.contains(task)
                && facts.affinity.contains(cpu)
                && !facts.on_cpu
                && Some(task) != next;
            if !rival {
                continue;
            }
            let next = next.expect("a CPU idles beside a task that it may run");
            // The choice was the nearest it can have been: its own offset only grows.
            assert!(key(next, cpu) <= key(task, policy.tasks[task.index()].cpu));
        }
    }

    fn schedule(&mut self, cpu: CpuId, how: impl FnOnce(&mut Rig)) {
        let last = self.0.policy().cpus[cpu.index()].last_task;
        how(&mut self.0);
        self.check_choice(cpu, last);
    }

    fn apply(&mut self, op: Op) {
        let now = self.0.now;
        match op {
            Op::Start { nice, class, mask } if self.0.core.tasks().n_live() < 30 => {
                let mut new = self.0.process();
                new.nice = Nice::clamped(nice);
                (new.class, new.rt_priority) = class_of(class);
                new.affinity = self.mask(mask);
                self.0.create(&new, 1 + i32::from(class % 5));
            }
            Op::Fork { cpu, thread } if self.0.core.tasks().n_live() < 30 => {
                let cpu = self.cpu(cpu);
                let Some(parent) = self.settled(cpu) else { return };
                let mut new = self.0.process();
                let facts = self.0.core.tasks().get(parent);
                (new.class, new.rt_priority) = (facts.class, facts.rt_priority);
                (new.nice, new.affinity, new.cpu) = (facts.nice, facts.affinity, cpu);
                if thread {
                    (new.tgid, new.mm) = (facts.tgid, facts.mm);
                }
                let child = self.0.core.fork(now, cpu, Some(parent), &new);
                self.0.core.wake_up_new(now, cpu, child, None);
            }
            Op::Start { .. } | Op::Fork { .. } => {}
            Op::Wake { here, task, sync } => {
                let here = self.cpu(here);
                let waits = |s: TaskState| s.is_asleep() || s == TaskState::New;
                let Some(task) = self.task(task, waits) else { return };
                if self.0.core.tasks().get(task).state == TaskState::New {
                    self.0.core.wake_up_new(now, here, task, None);
                } else {
                    self.0.core.wake(now, here, task, None, sync);
                }
            }
            Op::Reap { here } => {
                let here = self.cpu(here);
                let Some(task) = self.task(here.0 as u8, |s| s == TaskState::Zombie) else {
                    return;
                };
                if !self.0.core.tasks().get(task).on_cpu {
                    self.orphan_children(task);
                    self.0.core.reap(now, here, task);
                }
            }
            Op::Ticks { n } => {
                for cpu in self.0.core.topo().cpus() {
                    self.0.core.tick(now, cpu);
                }
                self.0.now = Time::from_ns(now.as_ns() + u64::from(n) * 300_000);
            }
            Op::SetNice { task, nice } => {
                let Some(task) = self.task(task, |s| s != TaskState::Zombie) else { return };
                self.0.core.set_nice(now, CpuId(0), task, Nice::clamped(nice));
            }
            Op::SetClass { task, class } => {
                let Some(task) = self.task(task, |s| s != TaskState::Zombie) else { return };
                let (class, rt_priority) = class_of(class);
                self.0.core.set_class(now, CpuId(0), task, class, rt_priority);
            }
            Op::SetAffinity { task, mask } => {
                let Some(task) = self.task(task, |s| s != TaskState::Zombie) else { return };
                let mask = self.mask(mask);
                self.0.core.set_affinity(now, CpuId(0), task, &mask);
            }
            Op::Schedule { cpu }
            | Op::Finish { cpu }
            | Op::Block { cpu, .. }
            | Op::Exit { cpu }
            | Op::Yield { cpu } => self.run(op, self.cpu(cpu)),
        }
    }

    fn orphan_children(&mut self, task: TaskId) {
        let tasks = self.0.core.tasks().iter();
        let children: Vec<TaskId> =
            tasks.filter(|(_, t)| t.parent == Some(task)).map(|(id, _)| id).collect();
        children.into_iter().for_each(|child| self.0.core.orphan(child));
    }

    /// Inputs that only a CPU outside of a switch, or only one inside, may get.
    fn run(&mut self, op: Op, cpu: CpuId) {
        let now = self.0.now;
        let switching = self.0.core.is_switching(cpu);
        match op {
            Op::Finish { .. } if switching => self.0.core.finish_switch(now, cpu),
            Op::Schedule { .. } if !switching => self.schedule(cpu, |rig| {
                rig.core.schedule(now, cpu);
            }),
            Op::Block { deep, .. } if self.settled(cpu).is_some() => {
                let state = if deep { TaskState::Uninterruptible } else { TaskState::Sleeping };
                self.schedule(cpu, |rig| {
                    rig.core.block(now, cpu, state);
                });
            }
            Op::Exit { .. } if self.settled(cpu).is_some() => self.schedule(cpu, |rig| {
                rig.core.exit(now, cpu);
            }),
            Op::Yield { .. } if self.settled(cpu).is_some() => self.0.core.yield_task(now, cpu),
            _ => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_inputs_choose_the_best(
        counts in (1u32..3, 1u32..3, 1u32..3, 1u32..3),
        set in prop::sample::select(vec![
            "",
            "fork_depth_penalty=1;deadline_cap=1",
            "fork_depth_penalty=1;deadline_cap=1;group_thread_accounting=1",
            "branch_penalty=1",
            "reload_on_rerun=1;charge_from_dispatch=1;keep_idle_bit=1;wide_offset=1",
        ]),
        ops in prop::collection::vec(op(), 1..300),
    ) {
        let topo = Topology::new(counts.0, counts.1, counts.2, counts.3).expect("a machine");
        let mut machine = Machine(Rig::on(topo, 1000, set));
        // Deadlines near 0 may wrap below it under group accounting.
        machine.0.now = Time::from_ns(100_000_000_000);
        ops.into_iter().for_each(|op| machine.apply(op));
    }
}
