// SPDX-License-Identifier: GPL-2.0-only
//! What a simulation is built from, and what it tells its observer beyond events.

use schedlab_kcore::NewTask;
use schedlab_policy_api::{NoObserver, Observer, Timekeeping, Topology};
use schedlab_units::{Hz, TaskId};
use schedlab_workload::ir::TemplateId;
use serde::Deserialize;

use crate::CostModel;

/// The order of events of one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EventOrder {
    /// By kind: ticks, timers, interrupts, ends of work; a wake-up belongs to the operation that
    /// causes it.
    #[default]
    Kind,
    /// In the order in which they were created, after each of which all CPUs that were asked to
    /// call `schedule`; a wake-up by a task is an event of its own, so that a task that wakes
    /// another and blocks has left its CPU before. For zero costs (spec bfs, appendix B).
    Creation,
}

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
    /// Order of events of one instant.
    pub order: EventOrder,
}

impl SimConfig {
    /// A machine without costs, with the tick rate of `time`, seed 1, and no checks.
    pub fn new(topo: Topology, time: Timekeeping) -> Self {
        let cost = CostModel::zero();
        let (hz, order) = (time.hz, EventOrder::Kind);
        Self { topo, hz, time, cost, seed: 1, check: false, transcript: false, order }
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
