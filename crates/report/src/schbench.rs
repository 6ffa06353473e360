// SPDX-License-Identifier: GPL-2.0-only
//! schbench's own output: percentiles of wake-up latencies from its histogram.
//!
//! Source: spec cfs-eevdf §7.3.

use schedlab_lab::result::{Comparison, OwnTable, RunResult};
use schedlab_metrics::{SCHBENCH_PERCENTILES, SchbenchHistogram};
use serde::Serialize;

use crate::columns::{Column, Columns};
use crate::table::Grid;

/// What the program prints; µs, none without a latency above zero.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SchbenchFigures {
    /// Number of latencies above zero.
    pub count: u64,
    /// Median.
    pub p50_us: Option<u64>,
    /// 75th percentile.
    pub p75_us: Option<u64>,
    /// 90th percentile.
    pub p90_us: Option<u64>,
    /// 95th percentile.
    pub p95_us: Option<u64>,
    /// 99th percentile.
    pub p99_us: Option<u64>,
    /// 99.5th percentile.
    pub p99_5_us: Option<u64>,
    /// 99.9th percentile.
    pub p99_9_us: Option<u64>,
    /// Largest.
    pub max_us: u64,
}

fn histogram(run: &RunResult) -> Option<&SchbenchHistogram> {
    let marks = OwnTable::Schbench.marks();
    let found = run.figures.marks.iter().find(|mark| marks.contains(&mark.name.as_str()));
    found.and_then(|mark| mark.schbench.as_ref())
}

/// The figures of one run; none when they were not kept.
pub(crate) fn figures(run: &RunResult) -> Option<SchbenchFigures> {
    let histogram = histogram(run)?;
    let all = histogram.percentiles();
    let [p50_us, p75_us, p90_us, p95_us, p99_us, p99_5_us, p99_9_us] =
        std::array::from_fn(|index| all.map(|all| all[index]));
    Some(SchbenchFigures {
        count: histogram.count(),
        p50_us,
        p75_us,
        p90_us,
        p95_us,
        p99_us,
        p99_5_us,
        p99_9_us,
        max_us: histogram.max_us(),
    })
}

/// The percentiles of all policies side by side; those of several seeds from one histogram.
pub(crate) fn table(comparison: &Comparison) -> Option<String> {
    let columns = Columns::of(comparison);
    let histograms: Vec<SchbenchHistogram> = columns.columns.iter().map(merged).collect();
    if histograms.iter().all(|histogram| histogram.count() == 0) {
        return None;
    }
    let headings = columns.columns.iter().map(|column| column.heading.clone());
    let header =
        std::iter::once("schbench: latency percentiles (usec)".to_string()).chain(headings);
    let percentile = |(index, per_mille): (usize, u64)| {
        let star = if per_mille == 990 { "*" } else { "" };
        let label = format!("  {star}{}.{}000th", per_mille / 10, per_mille % 10);
        let value = |histogram: &SchbenchHistogram| match histogram.percentiles() {
            Some(all) => all[index].to_string(),
            None => "–".to_string(),
        };
        [vec![label], histograms.iter().map(value).collect()].concat()
    };
    let mut rows: Vec<Vec<String>> =
        SCHBENCH_PERCENTILES.into_iter().enumerate().map(percentile).collect();
    // The program's minimum starts at 0 and so never leaves it.
    let zeros = vec!["0".to_string(); histograms.len()];
    rows.push([vec!["  min".to_string()], zeros].concat());
    let max = histograms.iter().map(|histogram| histogram.max_us().to_string());
    rows.push([vec!["  max".to_string()], max.collect()].concat());
    Some(Grid::titled(header.collect(), rows, 1).render_plain())
}

fn merged(column: &Column<'_>) -> SchbenchHistogram {
    let mut all = SchbenchHistogram::default();
    column.runs.iter().flatten().filter_map(|run| histogram(run)).for_each(|one| all.add(one));
    all
}
