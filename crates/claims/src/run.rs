// SPDX-License-Identifier: GPL-2.0-only
//! Many claims at once: every run once, each claim judged as soon as its runs are done.

use std::num::NonZero;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use schedlab_lab::run::{Progress, run};
use serde_json::Value as Json;
use thiserror::Error;

use crate::judge::{Outcome, RunResults, as_json, judge};
use crate::library::Entry;
use crate::plan::{ClaimRuns, Plan};

/// How to run.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// With reduced lengths and their own conditions.
    pub quick: bool,
    /// Runs at the same time; 0 = one for each CPU of the host.
    pub threads: usize,
}

/// Why a claim could not be run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}: {why}")]
pub struct ClaimError {
    /// File of the claim.
    pub file: String,
    /// What is wrong.
    pub why: String,
}

/// Hears what happens.
pub trait Watch: Sync {
    /// So many runs will be made.
    fn planned(&self, n_jobs: usize);
    /// A run begins; its progress goes to what is returned.
    fn job(&self, index: usize) -> Box<dyn Progress>;
    /// A claim is judged. Called in order of completion.
    fn judged(&self, entry: &Entry, outcome: &Outcome);
}

/// What is known of the runs so far.
struct Progressed {
    results: Vec<Option<Json>>,
    warnings: Vec<Vec<String>>,
    outcomes: Vec<Option<Result<Outcome, ClaimError>>>,
}

/// Runs and judges `entries`; those for which `known` has an outcome are not run again.
///
/// The outcomes come in the order of `entries`; once `stop` is set, claims whose runs are not all
/// done have none.
///
/// # Errors
/// The first claim whose file asks for something impossible.
///
/// # Panics
/// When the host cannot start threads.
pub fn run_claims(
    entries: &[Entry],
    known: &dyn Fn(&Entry) -> Option<Outcome>,
    config: Config,
    stop: &AtomicBool,
    watch: &dyn Watch,
) -> Result<Vec<Option<Outcome>>, ClaimError> {
    let mut plan = Plan::default();
    let mut outcomes = Vec::new();
    for entry in entries {
        let outcome = known(entry);
        if outcome.is_some() {
            plan.claims.push(ClaimRuns::new());
        } else {
            let fail = |why| ClaimError { file: entry.file.clone(), why };
            plan.add(&entry.experiment, config.quick).map_err(fail)?;
        }
        outcomes.push(outcome.map(Ok));
    }
    watch.planned(plan.jobs.len());
    let state = Mutex::new(Progressed {
        results: vec![None; plan.jobs.len()],
        warnings: vec![Vec::new(); plan.jobs.len()],
        outcomes,
    });
    // Claims without runs are judged at once.
    judge_ready(entries, &plan, config, &state, watch);
    let order = longest_first(&plan);
    let next = AtomicUsize::new(0);
    let n_threads = match config.threads {
        0 => std::thread::available_parallelism().map_or(1, NonZero::get),
        n => n,
    };
    std::thread::scope(|scope| {
        for _ in 0..n_threads.min(order.len()) {
            scope.spawn(|| {
                while let Some(job) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    run_job(*job, &plan, &state, stop, watch);
                    judge_ready(entries, &plan, config, &state, watch);
                }
            });
        }
    });
    let outcomes = state.into_inner().expect("no thread panicked").outcomes;
    outcomes.into_iter().map(Option::transpose).collect()
}

fn run_job(
    index: usize,
    plan: &Plan,
    state: &Mutex<Progressed>,
    stop: &AtomicBool,
    watch: &dyn Watch,
) {
    let outcome = run(&plan.jobs[index], stop, watch.job(index).as_ref(), None);
    let mut progressed = state.lock().expect("no thread panics here");
    match outcome {
        // An interrupted run has no say.
        Ok(output) if !output.result.complete => {}
        Ok(output) => {
            progressed.results[index] = Some(as_json(&output));
            progressed.warnings[index] = output.warnings;
        }
        Err(error) => progressed.warnings[index] = vec![error.to_string()],
    }
}

/// Indices of the jobs, those that simulate the longest time on the most CPUs first.
fn longest_first(plan: &Plan) -> Vec<usize> {
    let mut order: Vec<usize> = (0..plan.jobs.len()).collect();
    let size = |index: &usize| {
        let job = &plan.jobs[*index];
        let length = job.duration.or(job.workload.duration).map_or(u64::MAX / 512, |d| d.as_ns());
        length.saturating_mul(job.topo.n_cpus() as u64)
    };
    order.sort_by_key(|index| (std::cmp::Reverse(size(index)), *index));
    order
}

/// Judges every claim whose runs are all done and that has no outcome yet.
fn judge_ready(
    entries: &[Entry],
    plan: &Plan,
    config: Config,
    state: &Mutex<Progressed>,
    watch: &dyn Watch,
) {
    let mut progressed = state.lock().expect("no thread panics here");
    for (index, entry) in entries.iter().enumerate() {
        if progressed.outcomes[index].is_some() {
            continue;
        }
        let Some(outcome) = judge_one(entry, &plan.claims[index], config, &progressed) else {
            continue;
        };
        if let Ok(outcome) = &outcome {
            watch.judged(entry, outcome);
        }
        progressed.outcomes[index] = Some(outcome);
    }
    // A result that no claim waits for any more is dropped.
    for job in 0..plan.jobs.len() {
        let needed = |claim: usize| {
            progressed.outcomes[claim].is_none()
                && plan.claims[claim].iter().any(|(_, jobs)| jobs.contains(&job))
        };
        if progressed.results[job].is_some() && !(0..entries.len()).any(needed) {
            progressed.results[job] = None;
        }
    }
}

/// The outcome of a claim, if its runs are done or one has failed.
fn judge_one(
    entry: &Entry,
    runs: &ClaimRuns,
    config: Config,
    progressed: &Progressed,
) -> Option<Result<Outcome, ClaimError>> {
    let mut results = Vec::new();
    let mut warnings: Vec<String> = Vec::new();
    for (name, jobs) in runs {
        let mut of_run = Vec::new();
        for job in jobs {
            let warned = progressed.warnings[*job].iter().map(|why| format!("run {name}: {why}"));
            warnings.extend(warned);
            match &progressed.results[*job] {
                Some(json) => of_run.push(json),
                None if progressed.warnings[*job].is_empty() => return None,
                None => {
                    let why = warnings.pop().unwrap_or_default();
                    return Some(Err(ClaimError { file: entry.file.clone(), why }));
                }
            }
        }
        results.push(RunResults { name, results: of_run });
    }
    let outcome = judge(&entry.experiment, &entry.text, config.quick, &results);
    warnings.dedup();
    Some(match outcome {
        Ok(outcome) => Ok(Outcome { warnings, ..outcome }),
        Err(why) => Err(ClaimError { file: entry.file.clone(), why }),
    })
}
