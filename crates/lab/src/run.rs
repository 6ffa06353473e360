// SPDX-License-Identifier: GPL-2.0-only
//! One run: a policy, a workload, a machine, a seed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use schedlab_kcore::{Entry, NewTask};
use schedlab_policies::with_policy;
use schedlab_policy_api::{
    Build, Fingerprint, Inspect, Observer, PolicyDef, PolicyVisitor, SchedEvent, Topology,
};
use schedlab_sim::{CostModel, EventOrder, HostObserver, Sim, SimConfig, SimError, Status};
use schedlab_trace::TaskLabel;
use schedlab_units::{Hz, Nanos, TaskId, Time};
use schedlab_workload::Workload;
use schedlab_workload::ir::{Op, TemplateId};
use thiserror::Error;

use crate::metered::Metered;
use crate::result::RunResult;
use crate::samples::{Sample, Sampler, Series, Turns};
use crate::sink::Sink;
use crate::spec::PolicySpec;

/// How far a run goes when neither the user nor the workload says so and its tasks never end.
pub const DEFAULT_DURATION: Nanos = Nanos::from_s(10);

/// Everything that decides the outcome of a run.
#[derive(Clone, Debug)]
pub struct Job {
    /// What is run.
    pub workload: Arc<Workload>,
    /// Under which policy.
    pub policy: PolicySpec,
    /// Which of the compared policies this is, from 0.
    pub column: usize,
    /// On which machine.
    pub topo: Topology,
    /// At which costs.
    pub cost: CostModel,
    /// Tick rate; none = the policy's.
    pub hz: Option<Hz>,
    /// Seed of all random streams.
    pub seed: u64,
    /// How far; none = the workload's own length, or until it ends, or [`DEFAULT_DURATION`] for one
    /// that has a task without end.
    pub duration: Option<Nanos>,
    /// How much of it is not measured.
    pub warmup: Nanos,
    /// Whether invariants are checked after every input of the core.
    pub check: bool,
    /// Whether the core keeps a transcript.
    pub transcript: bool,
    /// Order of events of one instant.
    pub order: EventOrder,
    /// Values of the policy to watch.
    pub samples: Vec<Sample>,
}

impl Job {
    /// Tick rate of the run.
    pub fn hz(&self) -> Hz {
        self.hz.unwrap_or(self.policy.info().time.hz)
    }
    /// The instant at which the run is cut, if it has not ended before.
    pub fn end(&self) -> Time {
        Time::ZERO.saturating_add(length(&self.workload, self.duration))
    }
}

/// How far a run of `workload` goes if the user asks for `duration`; [`Nanos::MAX`] = to its end.
pub fn length(workload: &Workload, duration: Option<Nanos>) -> Nanos {
    duration
        .or(workload.duration)
        .unwrap_or_else(|| if may_run_for_ever(workload) { DEFAULT_DURATION } else { Nanos::MAX })
}

impl Job {
    /// The simulation of this job under `P`, which its spec names, before its first event.
    pub(crate) fn simulation<P: PolicyDef, O: HostObserver>(&self, observer: O) -> Sim<'_, P, O> {
        let tunables = self.policy.tunables::<P::Tunables>();
        let n_tasks = self.workload.tasks.iter().map(|t| t.count as usize).sum();
        let policy = P::build(&tunables, Build { topo: &self.topo, hz: self.hz(), n_tasks });
        let config = SimConfig {
            topo: self.topo.clone(),
            hz: self.hz(),
            time: P::time(&tunables),
            cost: self.cost.clone(),
            seed: self.seed,
            check: self.check,
            transcript: self.transcript,
            order: self.order,
        };
        Sim::new(&self.workload, policy, observer, config)
    }
}

/// Whether some program has a loop without end.
fn may_run_for_ever(workload: &Workload) -> bool {
    workload.programs.iter().any(|program| {
        program.ops.iter().enumerate().any(|(at, op)| match op {
            Op::RunForever => true,
            Op::Jump { target } => *target as usize <= at,
            _ => false,
        })
    })
}

/// What a run yields beside its figures.
#[derive(Clone, Debug)]
pub struct RunOutput {
    /// The figures.
    pub result: RunResult,
    /// The transcript, if it was asked for.
    pub transcript: Vec<Entry>,
    /// Things the user must know before trusting the result.
    pub warnings: Vec<String>,
    /// What the samples have seen, in their order.
    pub series: Vec<Series>,
}

/// Why a run cannot be trusted or did not take place.
#[derive(Debug, Error)]
pub enum RunError {
    /// The workload is faulty in a way that only running shows.
    #[error(transparent)]
    Sim(#[from] SimError),
    /// Writing the trace failed.
    #[error("cannot write the trace: {0}")]
    Trace(#[from] std::io::Error),
    /// The warm-up is as long as the run.
    #[error("the warm-up of {warmup} leaves nothing of a run of {length} to measure")]
    Warmup {
        /// The warm-up.
        warmup: Nanos,
        /// The length of the run.
        length: Nanos,
    },
}

/// Hears how far a run has come.
pub trait Progress {
    /// The run has reached `now` of `end` ([`Time::MAX`] = until it ends by itself).
    fn reached(&self, now: Time, end: Time);
}

/// Hears nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn reached(&self, _now: Time, _end: Time) {}
}

/// Runs `job`; `stop` ends it early with the figures so far.
///
/// # Errors
/// [`RunError`].
pub fn run(
    job: &Job,
    stop: &AtomicBool,
    progress: &dyn Progress,
    sink: Option<Sink>,
) -> Result<RunOutput, RunError> {
    let end = job.end();
    if end != Time::MAX && Time::ZERO + job.warmup >= end {
        let length = end - Time::ZERO;
        return Err(RunError::Warmup { warmup: job.warmup, length });
    }
    let visitor = Runner { job, stop, progress, sink };
    with_policy(job.policy.info().name, visitor).expect("a parsed spec names a policy")
}

struct Runner<'a> {
    job: &'a Job,
    stop: &'a AtomicBool,
    progress: &'a dyn Progress,
    sink: Option<Sink>,
}

/// Simulated time between two looks at `stop`.
const CHUNK: Nanos = Nanos::from_ms(5);

impl PolicyVisitor for Runner<'_> {
    type Out = Result<RunOutput, RunError>;

    fn visit<P: PolicyDef>(self) -> Self::Out {
        let job = self.job;
        let mut sampler = Sampler::new(&job.samples, job.warmup);
        let (watches_turns, watches_sleeps) = sampler.watches_turns();
        let observer = RunObserver {
            fingerprint: Fingerprint::default(),
            metrics: Metered::new(&job.workload, job.topo.n_cpus(), job.warmup),
            sink: self.sink,
            turns: Turns::new(watches_sleeps),
            watches_turns,
            switched: Vec::new(),
        };
        let mut sim = job.simulation::<P, _>(observer);
        let driver = Driver { end: job.end(), stop: self.stop, progress: self.progress };
        let (end, status) = driver.drive(&mut sim, &mut sampler)?;
        conclude(job, sim, end, status, sampler.finish())
    }
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    Complete,
    Stalled,
    Interrupted,
}

struct Driver<'a> {
    end: Time,
    stop: &'a AtomicBool,
    progress: &'a dyn Progress,
}

impl Driver<'_> {
    fn drive<P: PolicyDef>(
        &self,
        sim: &mut Sim<'_, P, RunObserver>,
        sampler: &mut Sampler<'_>,
    ) -> Result<(Time, Ending), SimError> {
        let end = self.end;
        let mut next_chunk = Time::ZERO.saturating_add(CHUNK);
        let mut next_sample = sampler.next_after(Time::ZERO);
        loop {
            let until = next_chunk.min(next_sample).min(end);
            match Self::reach(sim, sampler, until)? {
                Status::Finished => return Ok((sim.now(), Ending::Complete)),
                Status::Stalled if end == Time::MAX => return Ok((sim.now(), Ending::Stalled)),
                Status::Stalled => return Ok((end, Ending::Stalled)),
                Status::Running if until == end => return Ok((end, Ending::Complete)),
                Status::Running => {}
            }
            if until == next_sample {
                sampler.look(sim, until);
                next_sample = sampler.next_after(until);
            }
            if until < next_chunk {
                continue;
            }
            next_chunk = next_chunk.saturating_add(CHUNK);
            self.progress.reached(until, end);
            if self.stop.load(Ordering::Relaxed) {
                return Ok((until, Ending::Interrupted));
            }
        }
    }

    /// Handles all events before `until`; samples that want it see every turn.
    fn reach<P: PolicyDef>(
        sim: &mut Sim<'_, P, RunObserver>,
        sampler: &mut Sampler<'_>,
        until: Time,
    ) -> Result<Status, SimError> {
        loop {
            let status = sim.run_until_or(until, RunObserver::wants_look)?;
            if !sim.core_mut().observer_mut().wants_look() {
                return Ok(status);
            }
            show_values(sim);
            if let Some(turn) = sim.core_mut().observer_mut().turns.last.take() {
                sampler.turn(sim, sim.now(), turn);
            }
            if status != Status::Running {
                return Ok(status);
            }
        }
    }
}

/// Tells the sink what the policy shows of the tasks that were switched.
fn show_values<P: PolicyDef>(sim: &mut Sim<'_, P, RunObserver>) {
    let now = sim.now();
    for task in std::mem::take(&mut sim.core_mut().observer_mut().switched) {
        let values = sim.core().inspect(now, task);
        if let Some(sink) = &mut sim.core_mut().observer_mut().sink {
            values.iter().for_each(|(name, value)| sink.value(now, task, name, *value));
        }
    }
}

fn conclude<P: PolicyDef>(
    job: &Job,
    mut sim: Sim<'_, P, RunObserver>,
    end: Time,
    ending: Ending,
    series: Vec<Series>,
) -> Result<RunOutput, RunError> {
    let mut warnings = Vec::new();
    if ending == Ending::Stalled {
        warnings.push(stalled(&sim.live_tasks(), sim.now()));
    }
    if let Err(why) = sim.core().check_conservation(end) {
        panic!("conservation of time is broken: {why}");
    }
    let events = sim.events();
    let transcript = sim.take_transcript();
    let (policy, observer) = sim.into_parts();
    let mut stats = Inspect::new();
    policy.stats(&mut stats);
    if let Some(sink) = observer.sink {
        sink.finish()?;
    }
    let result = RunResult {
        column: job.column,
        policy: P::INFO.name.to_string(),
        variant: job.policy.variant().name.to_string(),
        settings: job.policy.settings(),
        hz: job.hz(),
        seed: job.seed,
        fingerprint: observer.fingerprint.value(),
        events,
        complete: ending != Ending::Interrupted,
        figures: observer.metrics.finish(end),
        policy_stats: stats.into_iter().map(|(name, n)| (name.to_string(), n)).collect(),
    };
    Ok(RunOutput { result, transcript, warnings, series })
}

fn stalled(tasks: &[String], at: Time) -> String {
    let mut names: Vec<&str> = tasks.iter().take(5).map(String::as_str).collect();
    if tasks.len() > names.len() {
        names.push("…");
    }
    format!(
        "from {at} s on nothing can happen any more: {} task(s) wait for each other ({})",
        tasks.len(),
        names.join(", ")
    )
}

/// Everything that watches a run. One event stream feeds them all.
struct RunObserver {
    fingerprint: Fingerprint,
    metrics: Metered,
    sink: Option<Sink>,
    turns: Turns,
    watches_turns: bool,
    /// Tasks of the last switches whose values the sink has still to be told.
    switched: Vec<TaskId>,
}

impl RunObserver {
    /// Whether the host has something to look at before the run goes on.
    fn wants_look(&self) -> bool {
        self.turns.last.is_some() || !self.switched.is_empty()
    }
}

impl Observer for RunObserver {
    #[inline]
    fn event(&mut self, now: Time, event: &SchedEvent) {
        self.fingerprint.event(now, event);
        self.metrics.event(now, event);
        if let Some(sink) = &mut self.sink {
            sink.event(now, event);
            if let SchedEvent::Switch { prev, next, .. } = *event
                && sink.wants_values()
            {
                self.switched.extend([prev, next].into_iter().flatten());
            }
        }
        if self.watches_turns {
            self.turns.event(now, event);
        }
    }
}

impl HostObserver for RunObserver {
    fn task_created(&mut self, task: TaskId, template: TemplateId, instance: u32, facts: &NewTask) {
        self.metrics.task_created(task, template, instance, facts);
        if let Some(sink) = &mut self.sink {
            let label = TaskLabel {
                name: self.metrics.name(template, instance),
                nice: facts.nice,
                class: facts.class,
                rt_priority: facts.rt_priority,
            };
            sink.name_task(task, label);
        }
    }
}
