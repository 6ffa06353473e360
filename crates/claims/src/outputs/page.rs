// SPDX-License-Identifier: GPL-2.0-only
//! The page of a thread in `docs/claims/`.

use std::fmt::Write as _;

use super::explain::describe;
use super::{Judged, number, summary};
use crate::library::THREADS;

/// Markdown about all claims of the thread with this number, and the pictures it shows as file
/// names and texts.
pub fn page(thread: &str, judged: &[Judged<'_>]) -> (String, Vec<(String, String)>) {
    let of_thread: Vec<Judged<'_>> = judged
        .iter()
        .filter(|judged| judged.entry.experiment.claim.thread == thread)
        .copied()
        .collect();
    let title = THREADS.iter().find(|(number, _)| *number == thread).map_or("", |t| t.1);
    let mut out = format!("# Thread {thread}: {title}\n\n");
    let [reproduced, not_reproduced, report_only, unexpected] = summary(&of_thread);
    let _ = writeln!(
        out,
        "Made by `schedlab claims --pages`; do not edit. {reproduced} reproduced, \
         {not_reproduced} not reproduced, {report_only} reported only, {unexpected} other than \
         expected.\n"
    );
    let _ = writeln!(out, "| claim | says | theirs | verdict |\n|---|---|---|---|");
    for judged in &of_thread {
        let claim = &judged.entry.experiment.claim;
        let _ = writeln!(
            out,
            "| [{id}](#{anchor}) | {} | {} | {} |",
            cell(&claim.says),
            cell(&claim.numbers),
            judged.outcome.verdict.name(),
            id = claim.id,
            anchor = claim.id.to_ascii_lowercase().replace('/', ""),
        );
    }
    let mut pictures = Vec::new();
    for judged in &of_thread {
        claim(&mut out, judged, &mut pictures);
    }
    (out, pictures)
}

fn claim(out: &mut String, judged: &Judged<'_>, pictures: &mut Vec<(String, String)>) {
    let (experiment, outcome) = (&judged.entry.experiment, judged.outcome);
    let claim = &experiment.claim;
    let _ = writeln!(out, "\n## {}\n\n**{}** {}\n", claim.id, claim.says, claim.who);
    let _ = writeln!(out, "{}\n", claim.argument.trim());
    let _ = writeln!(out, "- Numbers given: {}", claim.numbers);
    let _ = writeln!(out, "- Condition: {}", claim.bound);
    let expected = if judged.is_unexpected() {
        format!(" (expected: {})", claim.expected.name())
    } else {
        String::new()
    };
    let _ = writeln!(out, "- Verdict: **{}**{expected}", outcome.verdict.name());
    let _ = writeln!(out, "\n| observed | ours | theirs |\n|---|---|---|");
    for (name, value) in &outcome.observed {
        let theirs = experiment.theirs(name);
        let theirs = theirs.map(|value| number::observed(name, &value)).unwrap_or_default();
        let _ = writeln!(out, "| {name} | {} | {theirs} |", number::observed(name, value));
    }
    if !outcome.conditions.is_empty() {
        out.push('\n');
    }
    for (condition, holds) in &outcome.conditions {
        let _ = writeln!(out, "- `{condition}`: {}", if *holds { "holds" } else { "fails" });
    }
    for (index, plot) in experiment.plots.iter().enumerate() {
        let file = format!("{}-{}.svg", claim.id.to_ascii_lowercase().replace('/', "-"), index + 1);
        let _ = writeln!(out, "\n![{}]({file})", plot.title);
        pictures.push((file, super::svg(plot, &outcome.observed)));
    }
    for text in [&claim.why, &claim.note] {
        if !text.is_empty() {
            let _ = writeln!(out, "\n{}", text.trim());
        }
    }
    if !experiment.runs.is_empty() {
        let _ = writeln!(out, "\n```text");
        for run in &experiment.runs {
            let _ = writeln!(out, "{}", describe(run));
        }
        let _ = writeln!(out, "```");
    }
}

/// The first page: all threads with their verdicts counted.
pub fn index(judged: &[Judged<'_>]) -> String {
    let mut out = String::from(
        "# Claims\n\nWhat people said about schedulers in five threads, run and judged. Made by \
         `schedlab claims --pages`; do not edit.\n\n\
         | thread | reproduced | not reproduced | reported only |\n|---|---|---|---|\n",
    );
    for (thread, title) in THREADS {
        let of_thread: Vec<Judged<'_>> = judged
            .iter()
            .filter(|judged| judged.entry.experiment.claim.thread == thread)
            .copied()
            .collect();
        if of_thread.is_empty() {
            continue;
        }
        let [reproduced, not_reproduced, report_only, _] = summary(&of_thread);
        let _ = writeln!(
            out,
            "| [{thread}: {title}]({thread}.md) | {reproduced} | {not_reproduced} | {report_only} |"
        );
    }
    out
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}
