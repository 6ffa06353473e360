// SPDX-License-Identifier: GPL-2.0-only
//! The file of a claim.

use std::collections::BTreeMap;
use std::fmt;

use schedlab_sim::{CostModel, EventOrder};
use schedlab_units::Located;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value as Json;
use toml::Spanned;

use crate::expr::{Expr, SyntaxError, parse};

/// A verdict, expected or found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The condition holds.
    Reproduced,
    /// It does not.
    NotReproduced,
    /// There is no condition; the observed values are what the claim is worth.
    ReportOnly,
}

impl Verdict {
    /// Name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::NotReproduced => "not-reproduced",
            Self::ReportOnly => "report-only",
        }
    }
}

/// A claim with its experiment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Who said what.
    pub claim: Claim,
    /// The runs.
    #[serde(default, rename = "run")]
    pub runs: Vec<RunSpec>,
    /// What is observed, in order; later ones may use earlier ones.
    pub observe: Observe,
    /// When the claim counts as reproduced.
    #[serde(default)]
    pub check: Check,
    /// The figures of the thread by the names of what is observed.
    #[serde(default)]
    pub theirs: toml::Table,
    /// Pictures of observed values.
    #[serde(default, rename = "plot")]
    pub plots: Vec<Plot>,
    /// What differs when it must be quick.
    #[serde(default)]
    pub quick: Quick,
}

/// Names with their expressions, in the order of the file.
#[derive(Clone, Debug, Default)]
pub struct Observe(pub Vec<(String, Spanned<String>)>);

impl<'de> Deserialize<'de> for Observe {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'de> Visitor<'de> for InOrder {
            type Value = Observe;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of names and expressions")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Observe, A::Error> {
                let mut list = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    list.push(entry);
                }
                Ok(Observe(list))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

/// When the claim counts as reproduced.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// All of these expressions must hold.
    pub require: Vec<Spanned<String>>,
}

/// Who said what, and what is tested of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Claim {
    /// `FAMILY/ID`.
    pub id: String,
    /// Number of the thread, 000 to 004.
    pub thread: String,
    /// The statement in one sentence.
    pub says: String,
    /// Author and date.
    pub who: String,
    /// The numbers given, or `none`.
    pub numbers: String,
    /// The argument in about three sentences: the situation, the statement, what is at stake.
    pub argument: String,
    /// What the model is expected to show.
    pub expected: Verdict,
    /// The tested condition in the words of the spec.
    pub bound: String,
    /// The mechanism: why the observed values are as they are.
    #[serde(default)]
    pub why: String,
    /// Doubts, departures, what is not modelled.
    #[serde(default)]
    pub note: String,
}

/// A run, or one for each combination of the values of `for`.
///
/// In all texts of a run, `{x}` stands for the value of the `for` name `x`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// Name in expressions.
    pub name: String,
    /// Names with the values they take in turn, the last name fastest.
    #[serde(default, rename = "for")]
    pub each: toml::Table,
    /// Built-in workload, or several joined by `+`.
    pub workload: String,
    /// Parameters of the workload.
    #[serde(default)]
    pub set: toml::Table,
    /// Policy spec.
    pub policy: String,
    /// Machine spec.
    #[serde(default = "up")]
    pub machine: String,
    /// Tick rate, if not the policy's own.
    #[serde(default)]
    pub hz: Option<toml::Value>,
    /// Simulated time; without it the workload's own.
    #[serde(default)]
    pub duration: Option<String>,
    /// Simulated time at the beginning that is not measured.
    #[serde(default)]
    pub warmup: Option<String>,
    /// `1` or `1..8`.
    #[serde(default = "one")]
    pub seeds: String,
    /// A built-in cost model, or one written out.
    #[serde(default)]
    pub cost: Cost,
    /// Order of events of one instant: `kind`, or `creation` where a spec's figures need it.
    #[serde(default)]
    pub order: EventOrder,
    /// Values of the policy to watch: `NAME.samples.SAMPLE.min` and so on in expressions.
    #[serde(default, rename = "sample")]
    pub samples: Vec<SampleSpec>,
}

fn up() -> String {
    "up".to_string()
}

fn one() -> String {
    "1".to_string()
}

/// What the scheduler's actions cost in a run.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Cost {
    /// A built-in model.
    Name(String),
    /// A model of the experiment's own.
    Model(Box<CostModel>),
}

impl Default for Cost {
    fn default() -> Self {
        Self::Name("default".to_string())
    }
}

/// A value of the policy to watch.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SampleSpec {
    /// Name in expressions.
    pub name: String,
    /// The task, as results name it.
    pub task: String,
    /// The value, as the policy's `inspect` names it.
    pub value: String,
    /// Span between two looks; without it the value is looked at whenever the task is dispatched
    /// for the first time after a wake-up; `turn`: then, and whenever it has gone to sleep.
    #[serde(default)]
    pub every: Option<String>,
    /// A mark such as `>= 10000`; `reached_ns` is the instant of the first look that finds it.
    #[serde(default)]
    pub reach: Option<String>,
}

/// A picture: for every label a bar of ours and, where given, one of theirs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plot {
    /// What it shows.
    pub title: String,
    /// What is under the bars.
    pub labels: Vec<String>,
    /// Series of bars.
    pub series: Vec<PlotSeries>,
    /// Unit of the axis.
    #[serde(default)]
    pub unit: String,
}

/// Bars of one colour.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlotSeries {
    /// What the colour means.
    pub name: String,
    /// Names of observed values, or numbers.
    pub values: Vec<toml::Value>,
}

/// What differs when it must be quick. Everything is optional.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quick {
    /// For all runs, unless [`Quick::run`] says otherwise.
    #[serde(default)]
    pub duration: Option<String>,
    /// As above.
    #[serde(default)]
    pub warmup: Option<String>,
    /// As above.
    #[serde(default)]
    pub seeds: Option<String>,
    /// Parameters of all workloads, on top of the run's own.
    #[serde(default)]
    pub set: toml::Table,
    /// By the name of a run as the file writes it.
    #[serde(default)]
    pub run: BTreeMap<String, QuickRun>,
    /// Instead of the file's.
    #[serde(default)]
    pub observe: Option<Observe>,
    /// Instead of the file's.
    #[serde(default)]
    pub require: Option<Vec<Spanned<String>>>,
    /// The condition in words, instead of the file's.
    #[serde(default)]
    pub bound: Option<String>,
}

/// What differs in one run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuickRun {
    /// Simulated time.
    #[serde(default)]
    pub duration: Option<String>,
    /// Time not measured.
    #[serde(default)]
    pub warmup: Option<String>,
    /// Seeds.
    #[serde(default)]
    pub seeds: Option<String>,
    /// Parameters of the workload.
    #[serde(default)]
    pub set: toml::Table,
    /// Values that the `for` names take.
    #[serde(default, rename = "for")]
    pub each: toml::Table,
}

/// An observed value: name, text and expression.
#[derive(Clone, Debug)]
pub struct Observation {
    /// Its name.
    pub name: String,
    /// Its expression.
    pub expr: Expr,
    /// Where it stands in the file.
    pub at: usize,
}

/// A condition: text and expression.
#[derive(Clone, Debug)]
pub struct Condition {
    /// As the file writes it.
    pub text: String,
    /// Its expression.
    pub expr: Expr,
    /// Where it stands in the file.
    pub at: usize,
}

impl Experiment {
    /// Reads the file of a claim.
    ///
    /// # Errors
    /// The place of a fault of the TOML or of an expression, or what is inconsistent.
    pub fn parse(text: &str) -> Result<Self, Located> {
        let experiment: Self = toml::from_str(text).map_err(|error| {
            let message = error.message().to_string();
            match error.span() {
                Some(span) => Located::at_offset(text, span.start, message),
                None => Located::whole(message),
            }
        })?;
        for quick in [false, true] {
            experiment.observations(text, quick)?;
            let conditions = experiment.conditions(text, quick)?;
            let judged = experiment.claim.expected != Verdict::ReportOnly;
            if judged == conditions.is_empty() {
                let message = "a claim that is report-only has no `require`, any other has one";
                return Err(Located::whole(message));
            }
        }
        let Claim { id, thread, .. } = &experiment.claim;
        if !id.contains('/') || !matches!(thread.as_str(), "000" | "001" | "002" | "003" | "004") {
            return Err(Located::whole("`id` is FAMILY/ID and `thread` is 000 to 004"));
        }
        Ok(experiment)
    }

    /// What is observed.
    ///
    /// # Errors
    /// A fault of an expression with its place.
    pub fn observations(&self, text: &str, quick: bool) -> Result<Vec<Observation>, Located> {
        let own = &self.observe;
        let list = if quick { self.quick.observe.as_ref().unwrap_or(own) } else { own };
        let one = |(name, item): &(String, Spanned<String>)| {
            let at = item.span().start;
            if !is_name(name) {
                let message = format!("`{name}` cannot be used in expressions: a-z, 0-9 and _ can");
                return Err(Located::at_offset(text, at, message));
            }
            let place = |e: SyntaxError| Located::at_offset(text, at + 1 + e.at, e.message);
            Ok(Observation { name: name.clone(), expr: parse(item.get_ref()).map_err(place)?, at })
        };
        list.0.iter().map(one).collect()
    }

    /// What must hold.
    ///
    /// # Errors
    /// A fault of an expression with its place.
    pub fn conditions(&self, text: &str, quick: bool) -> Result<Vec<Condition>, Located> {
        let own = &self.check.require;
        let list = if quick { self.quick.require.as_ref().unwrap_or(own) } else { own };
        let one = |item: &Spanned<String>| {
            let (at, line) = (item.span().start, item.get_ref());
            let expr =
                parse(line).map_err(|e| Located::at_offset(text, at + 1 + e.at, e.message))?;
            Ok(Condition { text: line.clone(), expr, at })
        };
        list.iter().map(one).collect()
    }

    /// The tested condition in words.
    pub fn bound(&self, quick: bool) -> &str {
        let own = &self.claim.bound;
        if quick { self.quick.bound.as_ref().unwrap_or(own) } else { own }
    }

    /// The figure of the thread for an observed value.
    pub fn theirs(&self, name: &str) -> Option<Json> {
        let value = self.theirs.get(name)?;
        serde_json::to_value(value).ok()
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
