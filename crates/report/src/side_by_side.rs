// SPDX-License-Identifier: GPL-2.0-only
//! Figures of threads of two runs or recordings, one below the other.

use schedlab_lab::diff::Row;
use schedlab_trace::ThreadFigures;
use serde_json::{Value, json};

/// The most threads in text; JSON has all.
const ROWS_MAX: usize = 30;

/// A table with two lines for each thread, called by `sides`.
pub fn table(sides: [&str; 2], rows: &[Row]) -> String {
    let heading = ["thread", "", "run ms", "wait ms", "switches", "forced", "wake-ups"];
    let latencies = ["p50 us", "p90 us", "p99 us", "max us"];
    let mut table: Vec<Vec<String>> =
        vec![heading.iter().chain(&latencies).map(|s| s.to_string()).collect()];
    for row in rows.iter().take(ROWS_MAX) {
        for (index, (side, (n, figures))) in sides.iter().zip(&row.sides).enumerate() {
            let name = match (index, n) {
                (0, 0 | 1) => row.name.clone(),
                (0, n) => format!("{} ({n} threads)", row.name),
                _ => String::new(),
            };
            if *n == 0 {
                table.push(vec![name, (*side).to_string(), "absent".to_string()]);
                continue;
            }
            let latency =
                |per_mille| figures.latency(per_mille).map_or_else(|| "-".to_string(), thousandths);
            table.push(vec![
                name,
                (*side).to_string(),
                thousandths(figures.cpu_time() / 1000),
                thousandths(figures.wait / 1000),
                (figures.voluntary + figures.involuntary).to_string(),
                figures.involuntary.to_string(),
                figures.wakeups.to_string(),
                latency(500),
                latency(900),
                latency(990),
                latency(1000),
            ]);
        }
    }
    let mut text = columns(&table, 2);
    if rows.len() > ROWS_MAX {
        text.push_str(&format!("  and {} more\n", rows.len() - ROWS_MAX));
    }
    text
}

/// The same for programs, the sides under these keys; times are integer ns.
pub fn rows_json(sides: [&str; 2], rows: &[Row]) -> Vec<Value> {
    let side = |(n, figures): &(usize, ThreadFigures)| {
        json!({
            "threads": n,
            "run_ns": figures.cpu_time(),
            "wait_ns": figures.wait,
            "voluntary": figures.voluntary,
            "involuntary": figures.involuntary,
            "wakeups": figures.wakeups,
            "wakeup_latency_ns": {
                "count": figures.latencies.len(),
                "p50": figures.latency(500),
                "p90": figures.latency(900),
                "p99": figures.latency(990),
                "max": figures.latency(1000),
            },
        })
    };
    rows.iter()
        .map(|row| {
            let mut object = serde_json::Map::new();
            object.insert("name".to_string(), json!(row.name));
            for (key, figures) in sides.iter().zip(&row.sides) {
                object.insert((*key).to_string(), side(figures));
            }
            Value::Object(object)
        })
        .collect()
}

/// `n` thousandths with three decimals.
fn thousandths(n: u64) -> String {
    format!("{}.{:03}", n / 1000, n % 1000)
}

/// Rows in columns: the first two to the left, numbers to the right.
pub(crate) fn columns(rows: &[Vec<String>], left: usize) -> String {
    let n = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..n).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let mut text = String::new();
        for (column, cell) in row.iter().enumerate() {
            let pad = " ".repeat(widths[column] - cell.chars().count());
            text.push_str("  ");
            if column < left {
                text.push_str(cell);
                text.push_str(&pad);
            } else {
                text.push_str(&pad);
                text.push_str(cell);
            }
        }
        out.push_str(text.trim_end());
        out.push('\n');
    }
    out
}
