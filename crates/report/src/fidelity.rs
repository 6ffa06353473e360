// SPDX-License-Identifier: GPL-2.0-only
//! The report of `schedlab import --replay`: a recording beside its replay.

use std::fmt::Write as _;

use schedlab_lab::diff::Row;
use serde_json::{Value, json};

use crate::side_by_side::{rows_json, table};

/// Schema of the JSON form.
pub const FIDELITY_SCHEMA: &str = "schedlab.fidelity/1";

/// What there is to tell.
#[derive(Clone, Debug)]
pub struct Fidelity {
    /// Under what it was replayed, and why.
    pub conditions: String,
    /// What the recording does not tell, and what was approximated.
    pub notes: Vec<String>,
    /// Figures by thread.
    pub rows: Vec<Row>,
}

/// Sums over the threads: CPU time and switches, recorded and replayed.
fn totals(rows: &[Row]) -> [(u64, u64); 2] {
    [0, 1].map(|side| {
        rows.iter().fold((0u64, 0), |(time, switches), row| {
            let figures = &row.sides[side].1;
            let switched = figures.voluntary + figures.involuntary;
            (time.saturating_add(figures.cpu_time()), switches + switched)
        })
    })
}

/// The report for people.
pub fn text(fidelity: &Fidelity) -> String {
    let mut out = String::new();
    let [(time, switches), (again, switches_again)] = totals(&fidelity.rows);
    let share = if time == 0 { 0 } else { u128::from(again) * 100_000 / u128::from(time) };
    let written = write!(
        out,
        "replayed under {}\n\
         CPU time: {}.{:03} % of the recorded; switches: {switches_again} for {switches}\n\n",
        fidelity.conditions,
        share / 1000,
        share % 1000,
    );
    written.expect("a String takes any write");
    for note in &fidelity.notes {
        out.push_str(&format!("note: {note}\n"));
    }
    if !fidelity.notes.is_empty() {
        out.push('\n');
    }
    out.push_str(&table(["recorded", "replayed"], &fidelity.rows));
    out
}

/// The report for programs; times are integer ns.
pub fn json(fidelity: &Fidelity) -> Value {
    let [(time, switches), (again, switches_again)] = totals(&fidelity.rows);
    json!({
        "schema": FIDELITY_SCHEMA,
        "conditions": fidelity.conditions,
        "notes": fidelity.notes,
        "totals": {
            "recorded": { "run_ns": time, "switches": switches },
            "replayed": { "run_ns": again, "switches": switches_again },
        },
        "threads": rows_json(["recorded", "replayed"], &fidelity.rows),
    })
}
