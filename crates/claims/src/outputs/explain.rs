// SPDX-License-Identifier: GPL-2.0-only
//! One claim in full.

use std::fmt::Write as _;

use schedlab_report::wrap;
use schedlab_sim::EventOrder;

use super::{Judged, number};
use crate::experiment::{Cost, RunSpec};
use crate::library::THREADS;

/// The argument, who said what and when, the experiment, the observed values, the verdict and why.
pub fn explain(judged: &Judged<'_>, quick: bool, width: usize) -> String {
    let (experiment, outcome) = (&judged.entry.experiment, judged.outcome);
    let claim = &experiment.claim;
    let mut out = String::new();
    let title = THREADS.iter().find(|(number, _)| *number == claim.thread).map_or("", |t| t.1);
    let _ = writeln!(out, "{}  {}", claim.id, outcome.verdict.name());
    paragraph(&mut out, "thread", &format!("{}: {title}", claim.thread), width);
    paragraph(&mut out, "says", &claim.says, width);
    paragraph(&mut out, "who", &claim.who, width);
    paragraph(&mut out, "numbers", &claim.numbers, width);
    paragraph(&mut out, "argument", &claim.argument, width);
    for run in &experiment.runs {
        paragraph(&mut out, "run", &describe(run), width);
    }
    for (name, value) in &outcome.observed {
        let theirs = experiment.theirs(name);
        let theirs = theirs.map(|value| format!("   (theirs {})", number::observed(name, &value)));
        let text = number::observed(name, value) + &theirs.unwrap_or_default();
        paragraph(&mut out, "observed", &format!("{name} = {text}"), width);
    }
    paragraph(&mut out, "bound", experiment.bound(quick), width);
    for (condition, holds) in &outcome.conditions {
        let text = format!("{condition}: {}", if *holds { "holds" } else { "fails" });
        paragraph(&mut out, "tested", &text, width);
    }
    if judged.is_unexpected() {
        paragraph(&mut out, "expected", claim.expected.name(), width);
    }
    paragraph(&mut out, "why", &claim.why, width);
    paragraph(&mut out, "note", &claim.note, width);
    for warning in &outcome.warnings {
        paragraph(&mut out, "warning", warning, width);
    }
    out
}

const LABEL: usize = 10;

fn paragraph(out: &mut String, label: &str, text: &str, width: usize) {
    if text.is_empty() {
        return;
    }
    let text = text.trim().replace('\n', " ");
    let lines = wrap(&text, width.saturating_sub(LABEL).max(20));
    for (index, line) in lines.iter().enumerate() {
        let label = if index == 0 { label } else { "" };
        let _ = writeln!(out, "{label:LABEL$}{line}");
    }
}

/// A run as the command that makes it.
pub(super) fn describe(run: &RunSpec) -> String {
    let mut text = format!("{}: schedlab run {} -p {}", run.name, run.workload, run.policy);
    if run.machine != "up" {
        let _ = write!(text, " --machine {}", run.machine);
    }
    let plain =
        |value: &toml::Value| value.as_str().map_or_else(|| value.to_string(), ToString::to_string);
    if let Some(hz) = &run.hz {
        let _ = write!(text, " --hz {}", plain(hz));
    }
    for (key, value) in &run.set {
        let _ = write!(text, " --set {key}={}", plain(value));
    }
    if let Some(duration) = &run.duration {
        let _ = write!(text, " --duration {duration}");
    }
    if let Some(warmup) = &run.warmup {
        let _ = write!(text, " --warmup {warmup}");
    }
    let _ = write!(text, " --seed {}", run.seeds);
    match &run.cost {
        Cost::Name(name) if name == "default" => {}
        Cost::Name(name) => {
            let _ = write!(text, " --cost {name}");
        }
        Cost::Model(_) => text.push_str(" (costs of its own, see the file)"),
    }
    if run.order == EventOrder::Creation {
        text.push_str(" (events of one instant in the order of creation)");
    }
    for (name, values) in &run.each {
        let _ = write!(text, "; {name} = {values}");
    }
    text
}
