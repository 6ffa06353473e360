// SPDX-License-Identifier: GPL-2.0-only
//! The report for people: what was run, who is ahead in what, and all figures side by side.

use std::io::{self, Write};

use schedlab_lab::result::{Comparison, RunResult};
use schedlab_units::Nanos;

use super::{Options, Output};
use crate::columns::{Column, Columns};
use crate::format;
use crate::headline::{Headline, headlines};
use crate::model::VERSION;
use crate::own_table;
use crate::sections::{Section, sections};
use crate::table::{BETTER, FEW, Grid, UNCLEAR, WORSE, tables};

/// Tables of a terminal's width.
pub(super) struct Text;

impl Output for Text {
    fn name(&self) -> &'static str {
        "text"
    }
    fn about(&self) -> &'static str {
        "tables, policies side by side"
    }
    fn write(
        &self,
        comparison: &Comparison,
        options: Options,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let columns = Columns::of(comparison);
        let sections = sections(&columns);
        let mut blocks = vec![title(comparison), conditions(comparison, &columns, options.width)];
        let ahead = headlines(&columns, &sections);
        if !ahead.is_empty() {
            blocks.extend(in_short(&ahead, columns.seeds.len(), options.width));
        }
        blocks.extend(own_table::tables(comparison));
        blocks.extend(tables(&columns, &sections, options.width));
        blocks.extend(policy_stats(&columns, options.width));
        blocks.extend(legend(&columns, &sections));
        print(&blocks, options, out)
    }
    /// The tables of the modelled program, if it has some for a matrix, else all reports in turn.
    fn write_matrix(
        &self,
        cells: &[Comparison],
        options: Options,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let Some(tables) = own_table::matrix_tables(cells) else {
            return cells.iter().try_for_each(|cell| {
                self.write(cell, options, out)?;
                out.write_all(b"\n")
            });
        };
        let mut blocks = vec![matrix_title(cells), matrix_conditions(cells, options.width)];
        blocks.extend(tables);
        print(&blocks, options, out)
    }
}

fn print(blocks: &[String], options: Options, out: &mut dyn Write) -> io::Result<()> {
    let text = blocks.join("\n\n");
    let text = if options.color { colored(&text) } else { text };
    out.write_all(text.as_bytes())?;
    out.write_all(b"\n")
}

/// The name that all combinations begin with, and what the workload models.
fn matrix_title(cells: &[Comparison]) -> String {
    let Some(first) = cells.first() else { return String::new() };
    let mut first = first.clone();
    let stem = |name: &str| {
        let all = cells.iter().all(|cell| cell.workload.name.starts_with(name));
        all.then(|| name.to_string())
    };
    let name = std::mem::take(&mut first.workload.name);
    let cuts = name.match_indices('-').map(|(at, _)| at).rev();
    let stem = cuts.filter_map(|at| stem(&name[..at])).next();
    first.workload.name = stem.unwrap_or(name);
    title(&first)
}

/// What one must know to repeat the runs of a matrix; parameters that differ are in the tables.
fn matrix_conditions(cells: &[Comparison], page: usize) -> String {
    let Some(first) = cells.first() else { return String::new() };
    let mut common = first.clone();
    let same = |pair: &(String, String)| cells.iter().all(|c| c.workload.parameters.contains(pair));
    common.workload.parameters.retain(same);
    common.runs = cells.iter().flat_map(|cell| cell.runs.clone()).collect();
    let columns = Columns::of(first);
    let mut lines = vec![
        ("combinations".to_string(), cells.len().to_string()),
        ("parameters".to_string(), parameters(&common)),
        ("machine".to_string(), machine(&common)),
        ("measured".to_string(), measured(&common.runs, &columns.seeds)),
    ];
    for column in &columns.columns {
        let hz = column.first_run().map_or(0, |run| run.hz.get());
        lines.push((column.heading.clone(), format!("{}, HZ {hz}", column.spec)));
    }
    lines.extend(cut(&common.runs));
    let mut notes: Vec<&String> = Vec::new();
    for note in cells.iter().flat_map(|cell| &cell.workload.notes) {
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    lines.extend(notes.into_iter().map(|note| ("note".to_string(), note.clone())));
    key_values(&lines, page)
}

/// A warning when some run was interrupted.
fn cut(runs: &[RunResult]) -> Option<(String, String)> {
    let text = "interrupted: the figures reach only as far as the runs did";
    let is_cut = runs.iter().any(|run| !run.complete);
    is_cut.then(|| ("warning".to_string(), text.to_string()))
}

fn title(comparison: &Comparison) -> String {
    let workload = &comparison.workload;
    match workload.about.as_str() {
        "" => format!("schedlab {VERSION}: {}", workload.name),
        about => format!("schedlab {VERSION}: {} - {about}", workload.name),
    }
}

/// Everything one must know to repeat the runs.
fn conditions(comparison: &Comparison, columns: &Columns<'_>, page: usize) -> String {
    let mut lines: Vec<(String, String)> = Vec::new();
    if !comparison.workload.parameters.is_empty() {
        lines.push(("parameters".to_string(), parameters(comparison)));
    }
    lines.push(("machine".to_string(), machine(comparison)));
    lines.push(("measured".to_string(), measured(&comparison.runs, &columns.seeds)));
    for column in &columns.columns {
        lines.push((column.heading.clone(), policy(column)));
    }
    lines.extend(cut(&comparison.runs));
    lines.extend(comparison.workload.notes.iter().map(|n| ("note".to_string(), n.clone())));
    key_values(&lines, page)
}

fn parameters(comparison: &Comparison) -> String {
    let parameters = comparison.workload.parameters.iter();
    parameters.map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(" ")
}

fn machine(comparison: &Comparison) -> String {
    let machine = &comparison.machine;
    let counted = |n: u32, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    format!(
        "{} = {} × {} × {} × {}, costs: {}",
        counted(machine.cpus, "CPU"),
        counted(machine.nodes, "node"),
        counted(machine.llcs_per_node, "LLC"),
        counted(machine.cores_per_llc, "core"),
        counted(machine.threads_per_core, "thread"),
        machine.cost,
    )
}

/// Lines of a key and its value, which is wrapped.
fn key_values(lines: &[(String, String)], page: usize) -> String {
    let width = lines.iter().map(|(key, _)| key.chars().count()).max().unwrap_or(0);
    let mut text = Vec::new();
    for (key, value) in lines {
        let mut key = key.as_str();
        for line in format::wrap(value, page.saturating_sub(width + 4)) {
            text.push(format!("  {key:width$}  {line}"));
            key = "";
        }
    }
    text.join("\n")
}

fn measured(runs: &[RunResult], seeds: &[u64]) -> String {
    let spans = |get: &dyn Fn(&schedlab_metrics::RunFigures) -> Nanos| {
        let (mut least, mut most) = (Nanos::MAX, Nanos::ZERO);
        for run in runs {
            (least, most) = (least.min(get(&run.figures)), most.max(get(&run.figures)));
        }
        if least >= most { most.to_string() } else { format!("{least} to {most}") }
    };
    let mut text = spans(&|figures| figures.elapsed);
    if runs.iter().any(|run| !run.figures.warmup.is_zero()) {
        text += &format!(" after {} of warm-up", spans(&|figures| figures.warmup));
    }
    match seeds {
        [seed] => text + &format!(", seed {seed}"),
        [first, .., last] => text + &format!(", {} seeds {first}..{last}", seeds.len()),
        [] => text,
    }
}

fn policy(column: &Column<'_>) -> String {
    let mut text = column.spec.clone();
    let Some(run) = column.first_run() else { return text };
    text += &format!(", HZ {}", run.hz.get());
    if column.runs.len() == 1 {
        let events = format::count(run.events);
        text += &format!(", {events} events, fingerprint {:016x}", run.fingerprint);
    }
    text
}

fn in_short(headlines: &[Headline], n_seeds: usize, width: usize) -> Option<String> {
    let cells = |h: &Headline| {
        let what = h.what.clone();
        vec![format!("  {}", h.ahead), what, h.figure.clone(), format!("against {}", h.against)]
    };
    let without = || Grid::plain(headlines.iter().map(cells).collect(), 2);
    let with_factor = |h: &Headline| [cells(h), vec![h.factor()]].concat();
    let with = Grid::plain(headlines.iter().map(with_factor).collect(), 2);
    let text = with.render_within(width, 1).or_else(|| without().render_within(width, 1))?;
    let title = match n_seeds {
        0 | 1 => "Who is ahead, largest differences first",
        _ => "Who is ahead, largest differences first (means over all seeds)",
    };
    Some(format!("{title}\n{text}"))
}

/// Totals of the policies' own; those of different policies are not comparable.
fn policy_stats(columns: &Columns<'_>, width: usize) -> Option<String> {
    if columns.seeds.len() != 1 {
        return None;
    }
    let of_column = |column: &Column<'_>| {
        let run = column.first_run()?;
        let stats = run.policy_stats.iter().map(|(name, value)| format!("{name} {value}"));
        let stats: Vec<String> = stats.collect();
        if stats.is_empty() {
            return None;
        }
        let text = format!("{}: {}", column.heading, stats.join(", "));
        Some(format!("  {}", format::wrap(&text, width.saturating_sub(4)).join("\n    ")))
    };
    let lines: Vec<String> = columns.columns.iter().filter_map(of_column).collect();
    if lines.is_empty() {
        return None;
    }
    Some(format!("Counters of the policies\n{}", lines.join("\n")))
}

/// Explains the signs that were used.
fn legend(columns: &Columns<'_>, sections: &[Section]) -> Option<String> {
    let mut lines = Vec::new();
    if columns.seeds.len() > 1 {
        lines.push(
            "±: half the 95 % confidence interval over the seeds (Student's t); changes are paired \
             by seed"
                .to_string(),
        );
    }
    if let [first, _, ..] = columns.columns.as_slice() {
        let unclear = if columns.seeds.len() > 1 {
            format!(", {UNCLEAR} not told apart by these seeds")
        } else {
            String::new()
        };
        let first = &first.heading;
        lines.push(format!("change: against {first}; {BETTER} better, {WORSE} worse{unclear}"));
    }
    let few = sections.iter().flat_map(|s| &s.rows).any(|row| row.few.contains(&true));
    if few {
        lines.push(format!("{FEW}: fewer than 1000 samples"));
    }
    if lines.is_empty() { None } else { Some(lines.join("\n")) }
}

/// Titles and headers bold, judgements in colour, rules faint.
fn colored(text: &str) -> String {
    const BOLD: &str = "\x1b[1m";
    const FAINT: &str = "\x1b[2m";
    const GREEN: &str = "\x1b[32m";
    const RED: &str = "\x1b[31m";
    const PLAIN: &str = "\x1b[0m";
    let lines: Vec<&str> = text.lines().collect();
    let is_rule = |line: &&str| line.starts_with('─');
    let paint = |(index, line): (usize, &&str)| {
        let starts_block = index == 0 || lines[index - 1].is_empty();
        if is_rule(line) {
            format!("{FAINT}{line}{PLAIN}")
        } else if lines.get(index + 1).is_some_and(is_rule)
            || starts_block
                && !line.starts_with(' ')
                && lines.get(index + 1).is_some_and(|next| next.starts_with("  "))
            || index == 0
        {
            format!("{BOLD}{line}{PLAIN}")
        } else {
            line.replace(BETTER, &format!("{GREEN}{BETTER}{PLAIN}"))
                .replace(WORSE, &format!("{RED}{WORSE}{PLAIN}"))
        }
    };
    lines.iter().enumerate().map(paint).collect::<Vec<_>>().join("\n")
}
