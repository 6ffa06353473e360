// SPDX-License-Identifier: GPL-2.0-only
//! From experiments to jobs; runs that several claims need are made once.

use std::collections::HashMap;
use std::sync::Arc;

use schedlab_lab::machine::parse_machine;
use schedlab_lab::run::Job;
use schedlab_lab::samples::{Reach, Sample, When};
use schedlab_lab::spec::PolicySpec;
use schedlab_sim::CostModel;
use schedlab_units::{Hz, Nanos};
use schedlab_workload::{LoadOptions, resolve};

use crate::experiment::{Cost, Experiment, QuickRun, RunSpec, SampleSpec};

/// The runs of one claim: their names, and their jobs by seed.
pub type ClaimRuns = Vec<(String, Vec<usize>)>;

/// All jobs of some claims.
#[derive(Debug, Default)]
pub struct Plan {
    /// The jobs, each once.
    pub jobs: Vec<Job>,
    /// For every claim its runs, as indices into `jobs`.
    pub claims: Vec<ClaimRuns>,
    keys: HashMap<String, usize>,
}

impl Plan {
    /// Adds the runs of a claim.
    ///
    /// # Errors
    /// What is wrong with a run.
    pub fn add(&mut self, experiment: &Experiment, quick: bool) -> Result<(), String> {
        let mut runs: ClaimRuns = Vec::new();
        for spec in &experiment.runs {
            let own = experiment.quick.run.get(&spec.name).filter(|_| quick);
            let default = QuickRun::default();
            let run_quick = own.unwrap_or(&default);
            let mut each = spec.each.clone();
            each.extend(run_quick.each.clone());
            for names in combinations(&each)? {
                let name = fill(&spec.name, &names);
                if runs.iter().any(|(other, _)| *other == name) {
                    return Err(format!("there are two runs called `{name}`"));
                }
                let jobs = self.jobs_of(experiment, spec, quick.then_some(run_quick), &names);
                runs.push((name.clone(), jobs.map_err(|why| format!("run `{name}`: {why}"))?));
            }
        }
        self.claims.push(runs);
        Ok(())
    }

    fn jobs_of(
        &mut self,
        experiment: &Experiment,
        spec: &RunSpec,
        quick: Option<&QuickRun>,
        names: &[(String, String)],
    ) -> Result<Vec<usize>, String> {
        let all = &experiment.quick;
        let text = |text: &str| fill(text, names);
        let pick = |own: Option<&String>, of_run: Option<&String>, of_all: Option<&String>| {
            let chosen = quick.and(of_run.or(of_all)).or(own);
            chosen.map(|chosen| fill(chosen, names))
        };
        let span = |chosen: Option<String>| {
            let parsed = chosen.map(|text| Nanos::parse(&text).map_err(|e| format!("{text}: {e}")));
            parsed.transpose()
        };
        let of_run = quick;
        let duration = pick(
            spec.duration.as_ref(),
            of_run.and_then(|q| q.duration.as_ref()),
            all.duration.as_ref(),
        );
        let warmup =
            pick(spec.warmup.as_ref(), of_run.and_then(|q| q.warmup.as_ref()), all.warmup.as_ref());
        let seeds =
            pick(Some(&spec.seeds), of_run.and_then(|q| q.seeds.as_ref()), all.seeds.as_ref());
        let mut set = spec.set.clone();
        if let Some(quick) = quick {
            set.extend(all.set.clone());
            set.extend(quick.set.clone());
        }
        let set: Vec<(String, String)> =
            set.iter().map(|(key, value)| (key.clone(), text(&plain(value)))).collect();
        let loaded = resolve(&text(&spec.workload), &set, &LoadOptions::default())
            .map_err(|error| error.to_string())?;
        let topo = parse_machine(&text(&spec.machine)).map_err(|error| error.to_string())?;
        loaded.check_machine(topo.n_cpus()).map_err(|error| error.to_string())?;
        let policy = PolicySpec::parse(&text(&spec.policy)).map_err(|error| error.to_string())?;
        let hz = spec.hz.as_ref().map(|hz| rate(&text(&plain(hz)))).transpose()?;
        let samples: Result<Vec<Sample>, String> =
            spec.samples.iter().map(|sample| self::sample(sample, names)).collect();
        let job = Job {
            workload: Arc::new(loaded.workload),
            policy,
            column: 0,
            topo,
            cost: cost(&spec.cost)?,
            hz,
            seed: 0,
            duration: span(duration)?,
            warmup: span(warmup)?.unwrap_or(Nanos::ZERO),
            check: false,
            transcript: false,
            order: spec.order,
            samples: samples?,
        };
        let digest = loaded.digest.to_string();
        let (first, last) = seed_range(&seeds.unwrap_or_default())?;
        Ok((first..=last).map(|seed| self.intern(Job { seed, ..job.clone() }, &digest)).collect())
    }

    /// The index of a job, which is added unless an equal one is there.
    fn intern(&mut self, job: Job, digest: &str) -> usize {
        let Job { topo, cost, hz, seed, duration, warmup, order, samples, .. } = &job;
        let settings: Vec<_> = job.policy.settings().iter().map(|s| s.value).collect();
        let policy = (job.policy.info().name, settings, *hz);
        let key = format!(
            "{digest} {policy:?} {topo:?} {cost:?} {seed} {duration:?} {warmup:?} {order:?} {samples:?}"
        );
        *self.keys.entry(key).or_insert_with(|| {
            self.jobs.push(job);
            self.jobs.len() - 1
        })
    }
}

/// All combinations of the values of `for`.
fn combinations(each: &toml::Table) -> Result<Vec<Vec<(String, String)>>, String> {
    let mut all = vec![Vec::new()];
    for (name, values) in each {
        let Some(values) = values.as_array() else {
            return Err(format!("`for` needs a list of values for `{name}`"));
        };
        let extend = |names: &Vec<(String, String)>| {
            let with = |value| {
                let mut names = names.clone();
                names.push((name.clone(), plain(value)));
                names
            };
            values.iter().map(with).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(extend).collect();
    }
    Ok(all)
}

/// Replaces `{name}` by its value.
fn fill(text: &str, names: &[(String, String)]) -> String {
    names
        .iter()
        .fold(text.to_string(), |text, (name, value)| text.replace(&format!("{{{name}}}"), value))
}

/// A value as `--set` would write it.
fn plain(value: &toml::Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), ToString::to_string)
}

fn rate(text: &str) -> Result<Hz, String> {
    let n = text.parse().ok().filter(|n| (1..=100_000).contains(n));
    n.map(Hz::new).ok_or_else(|| format!("`{text}` is no tick rate"))
}

fn cost(cost: &Cost) -> Result<CostModel, String> {
    match cost {
        Cost::Name(name) => CostModel::built_in(name).ok_or_else(|| {
            format!("there is no cost model `{name}`; there are {}", CostModel::BUILT_IN.join(", "))
        }),
        Cost::Model(model) => Ok(CostModel { name: "own".to_string(), ..(**model).clone() }),
    }
}

fn seed_range(text: &str) -> Result<(u64, u64), String> {
    let number = |text: &str| text.parse().map_err(|_| format!("`{text}` is no seed"));
    match text.split_once("..") {
        Some((first, last)) => Ok((number(first)?, number(last)?)),
        None => number(text).map(|seed| (seed, seed)),
    }
}

fn sample(spec: &SampleSpec, names: &[(String, String)]) -> Result<Sample, String> {
    let when = match &spec.every {
        None => When::Dispatch,
        Some(every) if every == "turn" => When::Turns,
        Some(every) => match Nanos::parse(&fill(every, names)) {
            Ok(span) if !span.is_zero() => When::Every(span),
            _ => return Err(format!("`every = {every}` is neither a span nor `turn`")),
        },
    };
    let reach = |text: &String| {
        let (sign, number) = text.split_at_checked(2).unwrap_or(("", text));
        match (sign, number.trim().parse()) {
            (">=", Ok(mark)) => Ok(Reach::AtLeast(mark)),
            ("<=", Ok(mark)) => Ok(Reach::AtMost(mark)),
            _ => Err(format!("`reach = {text}` is neither `>= N` nor `<= N`")),
        }
    };
    Ok(Sample {
        name: spec.name.clone(),
        task: fill(&spec.task, names),
        value: spec.value.clone(),
        when,
        reach: spec.reach.as_ref().map(reach).transpose()?,
    })
}
