// SPDX-License-Identifier: GPL-2.0-only
//! A look into a run right after one of its events: who runs, who waits, and what the policy shows
//! of each.

use schedlab_kcore::NewTask;
use schedlab_policies::with_policy;
use schedlab_policy_api::{Fingerprint, Observer, PolicyDef, PolicyVisitor, SchedEvent, TaskState};
use schedlab_sim::{HostObserver, Sim, Status};
use schedlab_units::{CpuId, TaskId, Time};
use schedlab_workload::ir::TemplateId;

use crate::metered::Metered;
use crate::run::Job;

/// A task that wanted a CPU at the moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The task.
    pub task: TaskId,
    /// Its name.
    pub name: String,
    /// The CPU it runs on or waits for.
    pub cpu: CpuId,
    /// Whether it runs.
    pub runs: bool,
    /// What the policy's `inspect` shows of it.
    pub values: Vec<(&'static str, i64)>,
}

/// The tasks that wanted a CPU, by CPU; the one that runs first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// When.
    pub time: Time,
    /// The tasks.
    pub candidates: Vec<Candidate>,
}

/// Runs `job` until its `n`-th event, which `fingerprint` covers, and looks.
///
/// # Errors
/// Why the run cannot be made again, or is another one than that of the fingerprint.
pub fn look(job: &Job, n: u64, fingerprint: u64) -> Result<Moment, String> {
    let visitor = Look { job, n, fingerprint };
    with_policy(job.policy.info().name, visitor).expect("a parsed spec names a policy")
}

struct Look<'a> {
    job: &'a Job,
    n: u64,
    fingerprint: u64,
}

impl PolicyVisitor for Look<'_> {
    type Out = Result<Moment, String>;

    fn visit<P: PolicyDef>(self) -> Self::Out {
        let job = self.job;
        let observer = Watch {
            n: self.n,
            seen: 0,
            fingerprint: Fingerprint::default(),
            at_n: None,
            names: Metered::new(&job.workload, job.topo.n_cpus(), job.warmup),
            by_task: Vec::new(),
        };
        let mut sim = job.simulation::<P, _>(observer);
        let status = sim.run_until_or(job.end(), |watch| watch.at_n.is_some());
        status.map_err(|error| error.to_string()).map(|_: Status| ())?;
        match sim.core().observer().at_n {
            Some((time, fingerprint)) if fingerprint == self.fingerprint => Ok(moment(&sim, time)),
            _ => {
                Err("this version of the program does not make the recorded run again".to_string())
            }
        }
    }
}

fn moment<P: PolicyDef>(sim: &Sim<'_, P, Watch>, time: Time) -> Moment {
    let core = sim.core();
    let wanting = core.tasks().iter().filter(|(_, task)| task.state.wants_cpu());
    let mut candidates: Vec<Candidate> = wanting
        .map(|(id, task)| Candidate {
            task: id,
            name: core.observer().by_task.get(id.index()).cloned().unwrap_or_default(),
            cpu: task.cpu,
            runs: task.state == TaskState::Running,
            values: core.inspect(sim.now(), id).into_iter().collect(),
        })
        .collect();
    candidates.sort_by_key(|candidate| (candidate.cpu, !candidate.runs, candidate.task));
    Moment { time, candidates }
}

/// Counts events until the one that is looked for.
struct Watch {
    n: u64,
    seen: u64,
    fingerprint: Fingerprint,
    at_n: Option<(Time, u64)>,
    names: Metered,
    by_task: Vec<String>,
}

impl Observer for Watch {
    fn event(&mut self, now: Time, event: &SchedEvent) {
        self.seen += 1;
        if self.at_n.is_none() {
            self.fingerprint.event(now, event);
            if self.seen == self.n {
                self.at_n = Some((now, self.fingerprint.value()));
            }
        }
    }
}

impl HostObserver for Watch {
    fn task_created(&mut self, task: TaskId, template: TemplateId, instance: u32, _: &NewTask) {
        if self.by_task.len() <= task.index() {
            self.by_task.resize(task.index() + 1, String::new());
        }
        self.by_task[task.index()] = self.names.name(template, instance).to_string();
    }
}
