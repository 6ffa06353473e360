// SPDX-License-Identifier: GPL-2.0-only
//! What a simulation is built from, and what it tells its observer beyond events.

use schedlab_kcore::NewTask;
use schedlab_policy_api::{NoObserver, Observer, Timekeeping, Topology};
use schedlab_units::{Hz, TaskId};
use schedlab_workload::ir::TemplateId;

use crate::CostModel;

/// The machine and the conditions of one simulation.
#[derive(Clone, Debug)]
pub struct SimConfig {
    /// CPUs.
    pub topo: Topology,
    /// Tick rate.
    pub hz: Hz,
    /// Tick phase and timers of the policy's kernel.
    pub time: Timekeeping,
    /// What the scheduler's actions cost.
    pub cost: CostModel,
    /// Seed of every random stream.
    pub seed: u64,
    /// Whether invariants are checked after every input of the core.
    pub check: bool,
    /// Whether the core keeps a transcript.
    pub transcript: bool,
}

impl SimConfig {
    /// A machine without costs, with the tick rate of `time`, seed 1, and no checks.
    pub fn new(topo: Topology, time: Timekeeping) -> Self {
        let cost = CostModel::zero();
        Self { topo, hz: time.hz, time, cost, seed: 1, check: false, transcript: false }
    }
}

/// An observer that is also told who a task is.
pub trait HostObserver: Observer {
    /// `task`, whose `ProcessFork` was just seen, was forked with `facts`; it is instance `instance`
    /// of `template`. Instances that exist at the start come first, forked ones go on counting.
    fn task_created(
        &mut self,
        _task: TaskId,
        _template: TemplateId,
        _instance: u32,
        _facts: &NewTask,
    ) {
    }
}

impl HostObserver for NoObserver {}

impl<A: HostObserver, B: HostObserver> HostObserver for (A, B) {
    fn task_created(&mut self, task: TaskId, template: TemplateId, instance: u32, facts: &NewTask) {
        self.0.task_created(task, template, instance, facts);
        self.1.task_created(task, template, instance, facts);
    }
}

impl<O: HostObserver> HostObserver for Option<O> {
    fn task_created(&mut self, task: TaskId, template: TemplateId, instance: u32, facts: &NewTask) {
        if let Some(observer) = self {
            observer.task_created(task, template, instance, facts);
        }
    }
}

impl<O: HostObserver + ?Sized> HostObserver for &mut O {
    fn task_created(&mut self, task: TaskId, template: TemplateId, instance: u32, facts: &NewTask) {
        (**self).task_created(task, template, instance, facts);
    }
}

impl HostObserver for schedlab_policy_api::Fingerprint {}
