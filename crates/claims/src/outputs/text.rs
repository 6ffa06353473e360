// SPDX-License-Identifier: GPL-2.0-only
//! Claims as tables on a terminal.

use std::fmt::Write as _;

use comfy_table::{ContentArrangement, Table, presets};

use super::{Judged, number, summary};
use crate::experiment::Verdict;
use crate::library::{Entry, THREADS};

fn new_table(width: usize, header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::UTF8_HORIZONTAL_ONLY)
        .set_content_arrangement(ContentArrangement::Dynamic)
        .set_width(u16::try_from(width).unwrap_or(u16::MAX))
        .set_header(header);
    table
}

/// What is claimed, without running anything.
pub fn list(entries: &[Entry], width: usize) -> String {
    let mut out = String::new();
    for (number, title) in THREADS {
        let of_thread = entries.iter().filter(|entry| entry.experiment.claim.thread == number);
        let mut table = new_table(width, &["claim", "says", "who", "numbers", "expected"]);
        for entry in of_thread {
            let claim = &entry.experiment.claim;
            table.add_row([
                claim.id.as_str(),
                &claim.says,
                &claim.who,
                &claim.numbers,
                claim.expected.name(),
            ]);
        }
        if table.row_count() > 0 {
            let _ = writeln!(out, "Thread {number}: {title}\n{}\n", trimmed(&table));
        }
    }
    out
}

/// What came out: numbers of the thread beside ours, and the verdict.
pub fn table(judged: &[Judged<'_>], width: usize) -> String {
    let mut out = String::new();
    for (number, title) in THREADS {
        let of_thread = judged.iter().filter(|j| j.entry.experiment.claim.thread == number);
        let mut table = new_table(width, &["claim", "says", "theirs", "ours", "verdict"]);
        for judged in of_thread {
            let claim = &judged.entry.experiment.claim;
            table.add_row([
                claim.id.clone(),
                claim.says.clone(),
                claim.numbers.clone(),
                ours(judged),
                verdict(judged),
            ]);
        }
        if table.row_count() > 0 {
            let _ = writeln!(out, "Thread {number}: {title}\n{}\n", trimmed(&table));
        }
    }
    let [reproduced, not_reproduced, report_only, unexpected] = summary(judged);
    let _ = writeln!(
        out,
        "{reproduced} reproduced, {not_reproduced} not reproduced, {report_only} reported only; \
         {unexpected} other than expected"
    );
    for judged in judged {
        for warning in &judged.outcome.warnings {
            let _ = writeln!(out, "{}: {warning}", judged.entry.id());
        }
    }
    out
}

/// Lines end with text, not with blanks.
fn trimmed(table: &Table) -> String {
    let text = table.to_string();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n")
}

/// `name value` for everything observed.
fn ours(judged: &Judged<'_>) -> String {
    let lines = judged.outcome.observed.iter();
    let lines: Vec<String> =
        lines.map(|(name, value)| format!("{name} {}", number::observed(name, value))).collect();
    lines.join("\n")
}

fn verdict(judged: &Judged<'_>) -> String {
    let mut text = judged.outcome.verdict.name().to_string();
    if judged.is_unexpected() {
        let _ = write!(text, "\nexpected: {}", judged.entry.experiment.claim.expected.name());
        if judged.outcome.verdict == Verdict::NotReproduced {
            let failed = judged.outcome.conditions.iter().filter(|(_, holds)| !holds);
            failed.for_each(|(condition, _)| {
                let _ = write!(text, "\nfails: {condition}");
            });
        }
    }
    text
}
