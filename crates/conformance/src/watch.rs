// SPDX-License-Identifier: GPL-2.0-only
//! Observers that check or measure what the invariants are about, from the event stream alone.

use std::collections::{BTreeMap, BTreeSet};

use schedlab_kcore::NewTask;
use schedlab_policy_api::PrevState::{Preempted, Yielded};
use schedlab_policy_api::{Observer, SchedEvent, Topology};
use schedlab_sim::HostObserver;
use schedlab_units::{CpuId, Nanos, TaskId, Time};
use schedlab_workload::ir::TemplateId;

/// I2 and I4 seen from outside: a task is current on one CPU, and time does not run backwards.
#[derive(Clone, Debug, Default)]
pub struct CurrentOnce {
    current: BTreeMap<TaskId, CpuId>,
    last: Option<Time>,
}

impl Observer for CurrentOnce {
    fn event(&mut self, now: Time, event: &SchedEvent) {
        assert!(self.last.is_none_or(|last| last <= now), "I4: time runs backwards at {now}");
        self.last = Some(now);
        if let SchedEvent::Switch { cpu, prev, next, .. } = *event {
            if let Some(task) = prev {
                assert_eq!(self.current.remove(&task), Some(cpu), "I2: {task} leaves {cpu}");
            }
            if let Some(task) = next {
                let before = self.current.insert(task, cpu);
                assert_eq!(before, None, "I2: {task} becomes current on {cpu}");
            }
        }
    }
}
impl HostObserver for CurrentOnce {}

/// Since when a task waits; none = it does not.
fn waits_from(event: &SchedEvent) -> Option<TaskId> {
    match *event {
        SchedEvent::WakeupNew { task, .. } | SchedEvent::Wakeup { task, .. } => Some(task),
        SchedEvent::Switch { prev, prev_state: Preempted | Yielded, .. } => prev,
        _ => None,
    }
}

/// I6: how long a CPU idles while one and the same task waits. Tasks without affinity masks only.
#[derive(Clone, Debug)]
pub struct IdleBesideWaiting {
    waiting: BTreeMap<TaskId, Time>,
    idle: BTreeMap<CpuId, Time>,
    /// The longest such time.
    pub longest: Nanos,
    /// When that ended, for which task.
    pub worst: Option<(Time, TaskId, CpuId)>,
}

impl IdleBesideWaiting {
    /// For a machine whose CPUs all idle.
    pub fn new(topo: &Topology) -> Self {
        Self {
            waiting: BTreeMap::new(),
            idle: topo.cpus().map(|cpu| (cpu, Time::ZERO)).collect(),
            longest: Nanos::ZERO,
            worst: None,
        }
    }
}

impl Observer for IdleBesideWaiting {
    fn event(&mut self, now: Time, event: &SchedEvent) {
        let task = self.waiting.iter().min_by_key(|(_, since)| **since);
        let cpu = self.idle.iter().min_by_key(|(_, since)| **since);
        if let (Some((task, waits)), Some((cpu, idles))) = (task, cpu) {
            let overlap = now - *waits.max(idles);
            if overlap > self.longest {
                (self.longest, self.worst) = (overlap, Some((now, *task, *cpu)));
            }
        }
        if let Some(task) = waits_from(event) {
            self.waiting.insert(task, now);
        }
        if let SchedEvent::Switch { cpu, next, .. } = *event {
            match next {
                Some(task) => {
                    self.waiting.remove(&task);
                    self.idle.remove(&cpu);
                }
                None => {
                    self.idle.insert(cpu, now);
                }
            }
        }
    }
}
impl HostObserver for IdleBesideWaiting {}

/// I7: the longest wait of each task of some templates, a wait still open included.
#[derive(Clone, Debug)]
pub struct LongestWait {
    /// Templates with an index below this are watched.
    n_templates: usize,
    watched: BTreeSet<TaskId>,
    waiting: BTreeMap<TaskId, Time>,
    longest: BTreeMap<TaskId, Nanos>,
    template: BTreeMap<TaskId, usize>,
}

impl LongestWait {
    /// Watches the tasks of the first `n_templates` templates.
    pub fn new(n_templates: usize) -> Self {
        Self {
            n_templates,
            watched: BTreeSet::new(),
            waiting: BTreeMap::new(),
            longest: BTreeMap::new(),
            template: BTreeMap::new(),
        }
    }

    fn end(&mut self, task: TaskId, now: Time) {
        if let Some(since) = self.waiting.remove(&task) {
            let longest = self.longest.entry(task).or_insert(Nanos::ZERO);
            *longest = (*longest).max(now - since);
        }
    }

    /// Template and longest wait of each watched task when the run ends at `end`.
    pub fn finish(mut self, end: Time) -> Vec<(usize, Nanos)> {
        for task in self.watched.clone() {
            self.end(task, end);
        }
        self.longest.iter().map(|(task, wait)| (self.template[task], *wait)).collect()
    }
}

impl Observer for LongestWait {
    fn event(&mut self, now: Time, event: &SchedEvent) {
        if let Some(task) = waits_from(event).filter(|task| self.watched.contains(task)) {
            self.waiting.insert(task, now);
        }
        if let SchedEvent::Switch { next: Some(task), .. } = *event {
            self.end(task, now);
        }
    }
}

impl HostObserver for LongestWait {
    fn task_created(&mut self, task: TaskId, template: TemplateId, _: u32, _: &NewTask) {
        if (template.0 as usize) < self.n_templates {
            self.watched.insert(task);
            self.template.insert(task, template.0 as usize);
        }
    }
}
