// SPDX-License-Identifier: GPL-2.0-only
//! The report of `schedlab diff`: where two recorded runs part, then their figures side by side.

use std::fmt::Write as _;

use schedlab_lab::diff::{Divergence, Row, Side};
use schedlab_units::Time;
use serde_json::{Value, json};

use crate::side_by_side::{columns, rows_json, table};

/// Schema of the JSON form.
pub const DIFF_SCHEMA: &str = "schedlab.diff/1";

/// The most tasks shown of one side at the moment of the difference.
const CANDIDATES_MAX: usize = 20;

/// What there is to tell.
#[derive(Clone, Debug)]
pub struct Diff {
    /// What each file holds, one line.
    pub origins: [String; 2],
    /// The first difference; none when the runs are alike.
    pub divergence: Option<Divergence>,
    /// How decisions were compared, in words.
    pub method: String,
    /// Figures by name of thread.
    pub rows: Vec<Row>,
}

/// Letters of the sides.
const SIDES: [&str; 2] = ["A", "B"];

/// The report for people.
pub fn text(diff: &Diff) -> String {
    let mut out = String::new();
    for (letter, origin) in SIDES.iter().zip(&diff.origins) {
        line(&mut out, format_args!("{letter}: {origin}"));
    }
    line(&mut out, format_args!("decisions are compared {}", diff.method));
    match &diff.divergence {
        None => line(&mut out, format_args!("\nno difference")),
        Some(Divergence { common, sides }) => {
            line(&mut out, format_args!("\nfirst difference after {common} decisions alike"));
            for (letter, side) in SIDES.iter().zip(sides) {
                side_text(&mut out, letter, side);
            }
        }
    }
    if !diff.rows.is_empty() {
        line(
            &mut out,
            format_args!("\nfigures, threads of one name together, largest difference first"),
        );
        out.push_str(&table(SIDES, &diff.rows));
    }
    out
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a String takes any write");
    out.push('\n');
}

fn side_text(out: &mut String, letter: &str, side: &Side) {
    match &side.decision {
        Some(decision) => {
            let at = seconds(decision.time);
            line(out, format_args!("\n{letter} at {at}: {}", decision.what));
        }
        None => line(out, format_args!("\n{letter} had ended")),
    }
    let moment = match &side.moment {
        Ok(moment) => moment,
        Err(why) => return line(out, format_args!("  {why}")),
    };
    // Tasks of different classes may show different values.
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in moment.candidates.iter().flat_map(|candidate| &candidate.values) {
        if !names.contains(name) {
            names.push(name);
        }
    }
    let mut rows = vec![["", "task", "CPU"].iter().chain(&names).map(|s| s.to_string()).collect()];
    for candidate in moment.candidates.iter().take(CANDIDATES_MAX) {
        let mut row: Vec<String> = vec![
            if candidate.runs { "runs" } else { "waits" }.to_string(),
            format!("{} ({})", candidate.name, candidate.task),
            candidate.cpu.to_string(),
        ];
        row.extend(names.iter().map(|name| {
            let value = candidate.values.iter().find(|(n, _)| n == name);
            value.map_or_else(String::new, |(_, value)| value.to_string())
        }));
        rows.push(row);
    }
    out.push_str(&columns(&rows, 2));
    if moment.candidates.len() > CANDIDATES_MAX {
        let more = moment.candidates.len() - CANDIDATES_MAX;
        line(out, format_args!("  and {more} more"));
    }
}

fn seconds(time: Time) -> String {
    let ns = time.as_ns();
    format!("{}.{:09} s", ns / 1_000_000_000, ns % 1_000_000_000)
}

/// The report for programs; times are integer ns.
pub fn json(diff: &Diff) -> Value {
    let divergence = diff.divergence.as_ref().map(|divergence| {
        json!({
            "common": divergence.common,
            "a": side_json(&divergence.sides[0]),
            "b": side_json(&divergence.sides[1]),
        })
    });
    let threads = rows_json(["a", "b"], &diff.rows);
    json!({
        "schema": DIFF_SCHEMA,
        "a": diff.origins[0],
        "b": diff.origins[1],
        "method": diff.method,
        "divergence": divergence,
        "threads": threads,
    })
}

fn side_json(side: &Side) -> Value {
    let candidates = side.moment.as_ref().ok().map(|moment| {
        let candidate = |c: &schedlab_lab::moment::Candidate| {
            let values: serde_json::Map<String, Value> =
                c.values.iter().map(|(name, value)| ((*name).to_string(), json!(value))).collect();
            json!({
                "task": c.task.0,
                "name": c.name,
                "cpu": c.cpu.0,
                "runs": c.runs,
                "values": values,
            })
        };
        moment.candidates.iter().map(candidate).collect::<Vec<Value>>()
    });
    json!({
        "time_ns": side.decision.as_ref().map(|d| d.time.as_ns()),
        "decision": side.decision.as_ref().map(|d| d.what.as_str()),
        "candidates": candidates,
        "why_no_candidates": side.moment.as_ref().err(),
    })
}
