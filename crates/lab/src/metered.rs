// SPDX-License-Identifier: GPL-2.0-only
//! Metrics of a simulated workload: which task counts in which row.

use schedlab_kcore::NewTask;
use schedlab_metrics::{Config, MarkLabel, Metrics, RowId, RowLabel, RunFigures};
use schedlab_policy_api::{Observer, SchedEvent};
use schedlab_sim::HostObserver;
use schedlab_units::{Nanos, TaskId, Time};
use schedlab_workload::Workload;
use schedlab_workload::ir::{Op, OwnTable, SchedSpec, TemplateId};

/// Which templates some program forks.
fn forked_templates(workload: &Workload) -> Vec<bool> {
    let mut forked = vec![false; workload.tasks.len()];
    for op in workload.programs.iter().flat_map(|program| &program.ops) {
        if let Op::Fork { template, .. } = op {
            forked[template.0 as usize] = true;
        }
    }
    forked
}

/// An observer that computes the figures of a workload: one row for each task of the start, and one
/// for all tasks that are forked from a template later.
pub struct Metered {
    metrics: Metrics,
    /// First row and number of rows of each template.
    rows: Vec<(u32, u32)>,
    names: Vec<String>,
}

impl Metered {
    /// Figures of `workload` on `n_cpus` CPUs from `warmup` on.
    pub fn new(workload: &Workload, n_cpus: usize, warmup: Nanos) -> Self {
        let mut rows = Vec::new();
        let mut labels: Vec<RowLabel> = Vec::new();
        let forked = forked_templates(workload);
        for (spec, is_forked) in workload.tasks.iter().zip(forked) {
            let first = labels.len() as u32;
            let SchedSpec { class, nice, .. } = spec.sched.unwrap_or_default();
            let mut label = |name| {
                labels.push(RowLabel { name, group: spec.group.clone(), nice, class });
            };
            match (spec.at_start, spec.count) {
                (false, _) | (true, 1) => label(spec.name.clone()),
                (true, n) => (0..n).for_each(|i| label(format!("{}-{i}", spec.name))),
            }
            if spec.at_start && is_forked {
                label(format!("{}-forked", spec.name));
            }
            rows.push((first, labels.len() as u32 - first));
        }
        let names = labels.iter().map(|label| label.name.clone()).collect();
        let marks = workload.marks.iter();
        let config = Config {
            n_cpus,
            n_tasks: labels.len(),
            rows: labels,
            marks: marks
                .map(|m| MarkLabel { name: m.name.clone(), unit: m.unit.clone() })
                .collect(),
            warmup: Time::ZERO + warmup,
        };
        let mut metrics = Metrics::new(config);
        if workload.table == Some(OwnTable::Schbench) {
            let marks = workload.marks.iter().zip(0..);
            let own = |name: &str| OwnTable::Schbench.marks().contains(&name);
            marks.filter(|(m, _)| own(&m.name)).for_each(|(_, id)| metrics.keep_schbench(id));
        }
        Self { metrics, rows, names }
    }

    /// Row of a task.
    fn row(&self, template: TemplateId, instance: u32) -> u32 {
        let (first, n) = self.rows[template.0 as usize];
        first + instance.min(n.saturating_sub(1))
    }

    /// Index of the row of a task.
    pub(crate) fn row_index(&self, template: TemplateId, instance: u32) -> usize {
        self.row(template, instance) as usize
    }

    /// Counts `task`, just forked, in the row of this instance of `template`.
    pub(crate) fn bind(&mut self, task: TaskId, template: TemplateId, instance: u32) {
        self.metrics.bind(task, RowId(self.row(template, instance)));
    }

    /// Name of the row in which a task counts.
    pub fn name(&self, template: TemplateId, instance: u32) -> &str {
        &self.names[self.row(template, instance) as usize]
    }

    /// The figures at the end of the run.
    pub fn finish(self, end: Time) -> RunFigures {
        self.metrics.finish(end)
    }
}

impl Observer for Metered {
    #[inline]
    fn event(&mut self, now: Time, event: &SchedEvent) {
        self.metrics.event(now, event);
    }
}

impl HostObserver for Metered {
    fn task_created(
        &mut self,
        task: TaskId,
        template: TemplateId,
        instance: u32,
        _facts: &NewTask,
    ) {
        self.bind(task, template, instance);
    }
}
