// SPDX-License-Identifier: GPL-2.0-only
//! From the results of a claim's runs to its verdict.

use schedlab_lab::run::RunOutput;
use schedlab_lab::samples::Series;
use schedlab_report::model::Run;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};

use crate::experiment::{Experiment, Verdict};
use crate::expr::{Env, Value};

/// The results of a run as expressions see them: schema `schedlab.run/1` and `samples`.
///
/// # Panics
/// Never: the schema always serializes.
pub fn as_json(output: &RunOutput) -> Json {
    let mut json = serde_json::to_value(Run::from(&output.result)).expect("plain data");
    let series = |series: &Series| (series.name.clone(), of_series(series));
    json["samples"] = Json::Object(output.series.iter().map(series).collect());
    json
}

fn of_series(series: &Series) -> Json {
    let mean = (series.count > 0).then(|| series.sum as f64 / series.count as f64);
    let counted = series.histogram.iter().map(|(value, n)| (value.to_string(), json!(n)));
    json!({
        "count": series.count,
        "min": series.min,
        "max": series.max,
        "mean": mean,
        "last": series.last,
        "falls": series.falls,
        "reached_ns": series.reached.map(|at| at.as_ns()),
        "n": Json::Object(counted.collect()),
        "mode": series.histogram.iter().max_by_key(|(value, n)| (*n, -*value)).map(|(value, _)| *value),
    })
}

/// What came out of a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// `FAMILY/ID`.
    pub id: String,
    /// What the model shows.
    pub verdict: Verdict,
    /// Observed values in order: a number, or one for every seed.
    pub observed: Map<String, Json>,
    /// The conditions with whether they hold.
    pub conditions: Vec<(String, bool)>,
    /// Largest number of seeds of a run.
    pub seeds: u64,
    /// Simulated time of all runs.
    pub simulated_ns: u64,
    /// Things a reader must know before trusting the verdict.
    pub warnings: Vec<String>,
}

/// The results of one run of a claim, by seed.
pub struct RunResults<'a> {
    /// Name in expressions.
    pub name: &'a str,
    /// One per seed.
    pub results: Vec<&'a Json>,
}

/// Judges a claim.
///
/// # Errors
/// An expression that cannot be evaluated, with the text it stands in.
///
/// # Panics
/// When `text` is not the text of `experiment`.
pub fn judge(
    experiment: &Experiment,
    text: &str,
    quick: bool,
    runs: &[RunResults<'_>],
) -> Result<Outcome, String> {
    let mut env = Env::default();
    for run in runs {
        env.runs.insert(run.name, run.results.clone());
    }
    let observations = experiment.observations(text, quick).expect("it was read once");
    let mut observed = Map::new();
    for observation in &observations {
        let value = env.eval(&observation.expr);
        let value = value.map_err(|error| format!("observing `{}`: {error}", observation.name))?;
        observed.insert(observation.name.clone(), to_json(&value));
        env.observed.insert(&observation.name, value);
    }
    let mut conditions = Vec::new();
    for condition in experiment.conditions(text, quick).expect("it was read once") {
        let value = env.eval(&condition.expr);
        let value = value.map_err(|error| format!("testing `{}`: {error}", condition.text))?;
        if matches!(value, Value::Numbers(_)) {
            return Err(format!("`{}` is no condition", condition.text));
        }
        conditions.push((condition.text, value.holds()));
    }
    let verdict = match experiment.claim.expected {
        Verdict::ReportOnly => Verdict::ReportOnly,
        _ if conditions.iter().all(|(_, holds)| *holds) => Verdict::Reproduced,
        _ => Verdict::NotReproduced,
    };
    let all = || runs.iter().flat_map(|run| &run.results);
    let span = |json: &&Json| {
        json["elapsed_ns"].as_u64().unwrap_or(0) + json["warmup_ns"].as_u64().unwrap_or(0)
    };
    Ok(Outcome {
        id: experiment.claim.id.clone(),
        verdict,
        observed,
        conditions,
        seeds: runs.iter().map(|run| run.results.len() as u64).max().unwrap_or(0),
        simulated_ns: all().map(span).sum(),
        warnings: Vec::new(),
    })
}

fn to_json(value: &Value) -> Json {
    match value {
        Value::Numbers(numbers) => one_or_all(numbers.iter().map(|x| number(*x)).collect()),
        Value::Flags(flags) => one_or_all(flags.iter().map(|flag| json!(flag)).collect()),
    }
}

/// Whole numbers are written as such; a missing one becomes null.
fn number(x: f64) -> Json {
    /// Up to here every whole number is exact in 64-bit floating point.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if x == x.trunc() && x.abs() <= EXACT { json!(x as i64) } else { json!(x) }
}

fn one_or_all(mut values: Vec<Json>) -> Json {
    if values.len() == 1 { values.remove(0) } else { Json::Array(values) }
}
