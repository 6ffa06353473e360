// SPDX-License-Identifier: GPL-2.0-only
//! CSV after RFC 4180: one row per policy, seed and task.

use std::io::{self, Write};

use schedlab_lab::result::{Comparison, RunResult};
use schedlab_metrics::{Summary, TaskFigures};
use schedlab_units::Time;

use super::{Options, Output};
use crate::model::share;

/// Task figures for spreadsheets and data frames.
pub(super) struct Csv;

/// Names of the columns before the distributions.
const COLUMNS: &[&str] = &[
    "spec",
    "policy",
    "variant",
    "hz",
    "seed",
    "fingerprint",
    "complete",
    "elapsed_ns",
    "id",
    "name",
    "group",
    "nice",
    "class",
    "state",
    "lives",
    "life_ns",
    "run_ns",
    "wait_ns",
    "sleep_ns",
    "share",
    "wakeups",
    "voluntary",
    "involuntary",
    "preemptions",
    "migrations",
    "longest_wait_ns",
    "exit_ns",
    "deadlines_met",
    "deadlines_missed",
];

/// Names of a distribution's columns after its own name.
const SUMMARY: &[&str] =
    &["count", "min", "mean", "sd", "p50", "p75", "p90", "p95", "p99", "p99_5", "p99_9", "max"];

impl Output for Csv {
    fn name(&self) -> &'static str {
        "csv"
    }
    fn about(&self) -> &'static str {
        "one row per policy, seed and task"
    }
    fn write(&self, comparison: &Comparison, _: Options, out: &mut dyn Write) -> io::Result<()> {
        line(out, &header())?;
        for run in &comparison.runs {
            for task in &run.figures.tasks {
                line(out, &cells(run, task))?;
            }
        }
        Ok(())
    }
    /// The same with the name of the workload in front.
    fn write_matrix(&self, all: &[Comparison], _: Options, out: &mut dyn Write) -> io::Result<()> {
        line(out, &[vec!["workload".to_string()], header()].concat())?;
        for comparison in all {
            let name = &comparison.workload.name;
            for run in &comparison.runs {
                for task in &run.figures.tasks {
                    line(out, &[vec![name.clone()], cells(run, task)].concat())?;
                }
            }
        }
        Ok(())
    }
}

fn header() -> Vec<String> {
    let mut header: Vec<String> = COLUMNS.iter().map(|name| name.to_string()).collect();
    for distribution in ["wakeup_latency", "run_delay", "late"] {
        header.extend(SUMMARY.iter().map(|name| format!("{distribution}_{name}")));
    }
    header
}

fn cells(run: &RunResult, task: &TaskFigures) -> Vec<String> {
    let figures = &task.figures;
    let deadlines = run.figures.deadlines.iter().find(|d| d.id == task.id);
    let mut cells = vec![
        run.spec(),
        run.policy.clone(),
        run.variant.clone(),
        run.hz.get().to_string(),
        run.seed.to_string(),
        format!("{:016x}", run.fingerprint),
        run.complete.to_string(),
        run.figures.elapsed.as_ns().to_string(),
        task.id.to_string(),
        task.name.clone(),
        task.group.clone(),
        task.nice.to_string(),
        task.class.name().to_string(),
        task.state.name().to_string(),
        figures.lives.to_string(),
        figures.life.as_ns().to_string(),
        figures.run.as_ns().to_string(),
        figures.wait.as_ns().to_string(),
        figures.sleep.as_ns().to_string(),
        share(&run.figures, figures).to_string(),
        figures.wakeups.to_string(),
        figures.voluntary.to_string(),
        figures.involuntary.to_string(),
        figures.preemptions.to_string(),
        figures.migrations.to_string(),
        figures.longest_wait.as_ns().to_string(),
        task.exit.map(Time::as_ns).map_or_else(String::new, |ns| ns.to_string()),
        deadlines.map_or_else(String::new, |d| d.met.to_string()),
        deadlines.map_or_else(String::new, |d| d.missed.to_string()),
    ];
    for summary in [figures.wakeup_latency, figures.run_delay, deadlines.and_then(|d| d.late)] {
        cells.extend(summary_cells(summary));
    }
    cells
}

/// In the order of [`SUMMARY`]; a distribution of nothing has count 0 and no other figure.
fn summary_cells(summary: Option<Summary>) -> Vec<String> {
    let Some(s) = summary else {
        let mut cells = vec![String::new(); SUMMARY.len()];
        cells[0].push('0');
        return cells;
    };
    [s.count, s.min, s.mean, s.sd, s.p50, s.p75, s.p90, s.p95, s.p99, s.p99_5, s.p99_9, s.max]
        .iter()
        .map(u64::to_string)
        .collect()
}

fn line(out: &mut dyn Write, cells: &[String]) -> io::Result<()> {
    let quoted: Vec<String> = cells.iter().map(|cell| quote(cell)).collect();
    write!(out, "{}\r\n", quoted.join(","))
}

fn quote(cell: &str) -> String {
    if cell.contains([',', '"', '\r', '\n']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cell_with_separators_is_quoted() {
        assert_eq!(quote("eevdf:a=1"), "eevdf:a=1");
        assert_eq!(quote("eevdf:a=1,b=2"), "\"eevdf:a=1,b=2\"");
        assert_eq!(quote("a \"b\""), "\"a \"\"b\"\"\"");
    }
}
