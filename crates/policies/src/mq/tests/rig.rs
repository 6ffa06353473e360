// SPDX-License-Identifier: GPL-2.0-only
//! The machine without costs of goodness' tests, with this policy.

use alloc::vec::Vec;

use schedlab_units::{CpuId, CpuSet, TaskId};

use crate::goodness::tests::rig::{Figures, Machine, Ticks, mm};
use crate::mq::Mq;

pub(super) const CPU0: CpuId = CpuId(0);
pub(super) const CPU1: CpuId = CpuId(1);
pub(super) const CPU2: CpuId = CpuId(2);

impl Ticks for Mq {
    fn give(&mut self, task: TaskId, ticks: u32) {
        self.set_counter(task, ticks);
    }
}

pub(super) type Rig = Machine<Mq>;

/// A new task of address space `space` that last ran on CPU `home`; it sleeps.
pub(super) fn sleeper(rig: &mut Rig, figures: &str, home: u32, space: u32) -> TaskId {
    let figures = Figures::parse(figures);
    let mut new = rig.process(figures);
    new.cpu = CpuId(home);
    new.mm = mm(space);
    rig.create(&new, figures.counter)
}

/// [`sleeper`], woken by CPU 0; nobody reacts yet.
pub(super) fn woken(rig: &mut Rig, figures: &str, home: u32, space: u32) -> TaskId {
    let task = sleeper(rig, figures, home, space);
    rig.wake_new(CPU0, task);
    task
}

/// Lets a task of address space 1 run on every CPU, with these figures; `-` = the CPU stays idle.
pub(super) fn occupy(rig: &mut Rig, figures: &[&str]) -> Vec<Option<TaskId>> {
    let mut running = Vec::new();
    for (cpu, figures) in (0..).zip(figures) {
        running.push((*figures != "-").then(|| {
            // Ticks are set once it runs: a task without any would start an epoch.
            let parsed = Figures::parse(figures);
            let task = woken(rig, "6", cpu, 1);
            rig.settle(CPU0);
            rig.core.set_nice(rig.now, CpuId(cpu), task, parsed.nice);
            if parsed.class.is_rt() {
                let at = CpuId(cpu);
                rig.core.set_class(rig.now, at, task, parsed.class, parsed.rt_priority);
                rig.schedule(at);
            }
            rig.core.policy_mut().set_counter(task, parsed.counter);
            assert_eq!(rig.core.curr(CpuId(cpu)), Some(task));
            task
        }));
    }
    rig.take_resched();
    running
}

/// The CPUs that were asked to call `schedule` since the last look, in order, and whether by
/// interrupt.
pub(super) fn told(rig: &mut Rig) -> Vec<(u32, bool)> {
    rig.take_resched().iter().map(|request| (request.cpu.0, request.ipi)).collect()
}

/// Every CPU but those of `cpus`.
pub(super) fn all_but(rig: &Rig, cpus: &[CpuId]) -> CpuSet {
    rig.core.topo().cpus().filter(|cpu| !cpus.contains(cpu)).collect()
}
