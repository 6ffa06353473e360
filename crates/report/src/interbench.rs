// SPDX-License-Identifier: GPL-2.0-only
//! interbench's own table: one row a load, one table a benchmark and policy.
//!
//! Source: spec bfs §7.5, report columns.

use schedlab_lab::result::{Comparison, OwnTable, RunResult, WorkloadInfo};
use schedlab_metrics::InterbenchSamples;
use serde::Serialize;

use crate::columns::{Column, Columns};
use crate::table::Grid;

/// A burst of gaming in µs; its benchmark counts time instead of bursts.
const GAMING_BURST_US: u64 = 100_000;

/// What the program prints for a benchmark under a load; times in ns.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct InterbenchFigures {
    /// Number of latency samples.
    pub samples: u64,
    /// Average latency, in whole µs rounded down.
    pub average_ns: u64,
    /// Deviation after the program's formula; none below two samples.
    pub sd_interbench_ns: Option<u64>,
    /// Deviation of the sample; none below two samples.
    pub sd_true_ns: Option<u64>,
    /// Largest latency.
    pub max_ns: u64,
    /// Work done of the work wanted; none when there was neither.
    pub desired_cpu_percent: Option<f64>,
    /// Deadlines met of all; none for gaming, which has none.
    pub deadlines_met_percent: Option<f64>,
}

/// What the runs counted, added up over seeds.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    samples: InterbenchSamples,
    achieved: u64,
    missed_burns: u64,
    met: u64,
    missed: u64,
}

impl Counted {
    fn of(run: &RunResult) -> Self {
        let mark = |name: &str| run.figures.marks.iter().find(|mark| mark.name == name);
        let sum = |name: &str| mark(name).map_or(0, |mark| mark.sum);
        let [latency, bursts, missed_bursts, met, missed] = OwnTable::Interbench.marks() else {
            unreachable!("interbench has five marks")
        };
        let summary = mark(latency).and_then(|mark| mark.latency);
        Self {
            samples: summary.as_ref().map(InterbenchSamples::of).unwrap_or_default(),
            achieved: sum(bursts),
            missed_burns: sum(missed_bursts),
            met: sum(met),
            missed: sum(missed),
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            samples: self.samples.and(other.samples),
            achieved: self.achieved + other.achieved,
            missed_burns: self.missed_burns + other.missed_burns,
            met: self.met + other.met,
            missed: self.missed + other.missed,
        }
    }

    fn figures(&self, is_gaming: bool) -> InterbenchFigures {
        let samples = &self.samples;
        // Gaming adds 100 000 µs for a burst, and its latency in µs to what was missed.
        let (achieved, missed) = if is_gaming {
            let late = u64::try_from(samples.sum / 1000).unwrap_or(u64::MAX);
            (self.achieved.saturating_mul(GAMING_BURST_US), late)
        } else {
            (self.achieved, self.missed_burns)
        };
        InterbenchFigures {
            samples: samples.count,
            average_ns: samples.average(),
            sd_interbench_ns: samples.sd_interbench(),
            sd_true_ns: samples.sd_true(),
            max_ns: samples.max,
            desired_cpu_percent: percent(achieved, missed),
            deadlines_met_percent: if is_gaming { None } else { percent(self.met, self.missed) },
        }
    }
}

/// 100 · part / (part + rest); none when both are zero.
fn percent(part: u64, rest: u64) -> Option<f64> {
    let whole = part as f64 + rest as f64;
    (whole > 0.0).then(|| 100.0 * part as f64 / whole)
}

fn parameter<'a>(workload: &'a WorkloadInfo, name: &str) -> &'a str {
    let found = workload.parameters.iter().find(|(key, _)| key == name);
    found.map_or("", |(_, value)| value)
}

fn is_gaming(workload: &WorkloadInfo) -> bool {
    parameter(workload, "bench") == "gaming"
}

/// The figures of one run.
pub(crate) fn figures(workload: &WorkloadInfo, run: &RunResult) -> InterbenchFigures {
    Counted::of(run).figures(is_gaming(workload))
}

/// The tables of all pairs of benchmark and load, by policy and benchmark; loads in their order.
pub(crate) fn tables(cells: &[&Comparison]) -> Vec<String> {
    let Some(first) = cells.first() else { return Vec::new() };
    let n_columns = Columns::of(first).columns.len();
    let mut benches: Vec<&str> = Vec::new();
    for cell in cells {
        let bench = parameter(&cell.workload, "bench");
        if !benches.contains(&bench) {
            benches.push(bench);
        }
    }
    let pairs = (0..n_columns).flat_map(|column| benches.iter().map(move |bench| (column, *bench)));
    let of_bench = |bench: &str| -> Vec<&Comparison> {
        cells.iter().copied().filter(|cell| parameter(&cell.workload, "bench") == bench).collect()
    };
    pairs.map(|(column, bench)| table(&of_bench(bench), column, bench)).collect()
}

fn table(cells: &[&Comparison], index: usize, bench: &str) -> String {
    let in_us = cells.iter().any(|cell| parameter(&cell.workload, "real_time") == "true");
    let (unit, scale) = if in_us { ("us", 1e3) } else { ("ms", 1e6) };
    let has_deadlines = bench != "gaming";
    let mut header = vec![
        "Load".to_string(),
        format!("Latency +/- SD ({unit})"),
        format!("Max Latency ({unit})"),
        "% Desired CPU".to_string(),
    ];
    if has_deadlines {
        header.push("% Deadlines Met".to_string());
    }
    header.push(format!("True SD ({unit})"));
    let mut rows = Vec::new();
    let mut heading = String::new();
    for cell in cells {
        let columns = Columns::of(cell);
        let Some(column) = columns.columns.get(index) else { continue };
        heading = match column.runs.iter().flatten().count() {
            1 => column.spec.clone(),
            n_seeds => format!("{}, samples of {n_seeds} seeds together", column.spec),
        };
        let figures = counted(column).figures(is_gaming(&cell.workload));
        let mut row = cells_of(&figures, scale, has_deadlines);
        row.insert(0, title(parameter(&cell.workload, "load")));
        rows.push(row);
    }
    let title = format!("interbench: {} under {heading}", title(bench));
    format!("{title}\n{}", Grid::titled(header, rows, 1).render_plain())
}

fn counted(column: &Column<'_>) -> Counted {
    column.runs.iter().flatten().map(|run| Counted::of(run)).fold(Counted::default(), Counted::and)
}

fn cells_of(figures: &InterbenchFigures, scale: f64, has_deadlines: bool) -> Vec<String> {
    const NOTHING: &str = "–";
    let time = |ns: u64| format!("{:.1}", ns as f64 / scale);
    let sd = |ns: Option<u64>| ns.map_or_else(|| NOTHING.to_string(), time);
    let share = |value: Option<f64>| value.map_or_else(|| NOTHING.to_string(), three_digits);
    let (average, max) = match figures.samples {
        0 => (NOTHING.to_string(), NOTHING.to_string()),
        _ => (time(figures.average_ns), time(figures.max_ns)),
    };
    let mut row = vec![
        format!("{average} +/- {:>6}", sd(figures.sd_interbench_ns)),
        max,
        share(figures.desired_cpu_percent),
    ];
    if has_deadlines {
        // The program prints 0 when no deadline was met, also when there was none.
        row.push(three_digits(figures.deadlines_met_percent.unwrap_or(0.0)));
    }
    row.push(sd(figures.sd_true_ns));
    row
}

/// Three significant digits without trailing zeros, as `%.3g` prints values from 0 to 100.
fn three_digits(value: f64) -> String {
    let decimals = match value {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.9995 => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    if !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// As the program writes a benchmark or load.
fn title(bench: &str) -> String {
    let mut chars = bench.chars();
    chars.next().map(|c| c.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_have_three_digits() {
        for (value, text) in [
            (100.0, "100"),
            (0.0, "0"),
            (99.96, "100"),
            (99.94, "99.9"),
            (50.0, "50"),
            (9.994, "9.99"),
            (1.25, "1.25"),
            (0.5, "0.5"),
        ] {
            assert_eq!(three_digits(value), text);
        }
    }

    #[test]
    fn gaming_counts_time_instead_of_bursts() {
        let samples = InterbenchSamples { count: 3, sum: 100_000_000, sum_sq: 0, max: 100_000_000 };
        let counted = Counted { samples, achieved: 3, ..Counted::default() };
        let figures = counted.figures(true);
        // 300 ms done, 100 ms late.
        assert_eq!(figures.desired_cpu_percent, Some(75.0));
        assert_eq!(figures.deadlines_met_percent, None);
    }

    #[test]
    fn benchmark_without_a_period_has_no_percentages() {
        let figures = Counted::default().figures(false);
        assert_eq!((figures.desired_cpu_percent, figures.deadlines_met_percent), (None, None));
        let shown = ["– +/-      –", "–", "–", "0", "–"];
        assert_eq!(cells_of(&figures, 1e6, true), shown);
    }
}
