// SPDX-License-Identifier: GPL-2.0-only
//! What is compared: figures sorted into sections of one unit each.
//!
//! A section lists subjects (groups, tasks, marks, kinds of switches) with one or more figures
//! each. How it is laid out is the affair of `table`.

use std::collections::BTreeMap;

use schedlab_lab::result::RunResult;
use schedlab_metrics::{CpuFigures, DeadlineFigures, Figures, Summary, TaskFigures, Totals};
use schedlab_units::Nanos;

use crate::columns::{Columns, Values};
use crate::format::{Unit, elide};
use crate::model::share;

/// At most this many groups or tasks are shown.
const SUBJECTS_MAX: usize = 8;
/// Names are cut to this length.
const SUBJECT_WIDTH: usize = 28;
/// Below this count the 99.9th percentile is nearly the maximum.
const FEW: u64 = 1000;

/// Percentiles of fewer samples are shown, but not judged.
const JUDGED: u64 = 100;

/// Which direction of a figure is an advantage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    /// Less is better.
    Lower,
    /// Neither is.
    Neither,
}

/// One figure of one subject in all columns.
pub(crate) struct Row {
    pub(crate) subject: String,
    pub(crate) figure: &'static str,
    pub(crate) values: Values,
    pub(crate) better: Better,
    /// What to call the row at the top of the report, if it may stand there for its subject.
    pub(crate) headline: Option<String>,
    /// Columns in which it rests on fewer than [`FEW`] samples, if that matters.
    pub(crate) few: Vec<bool>,
}

impl Row {
    /// Whether any value is other than zero.
    fn is_used(&self) -> bool {
        self.values.iter().flatten().flatten().any(|value| *value != 0.0)
    }
}

/// Rows of one unit.
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) unit: Unit,
    pub(crate) rows: Vec<Row>,
}

impl Section {
    /// A section, unless no row has any value.
    fn new(title: impl Into<String>, unit: Option<Unit>, mut rows: Vec<Row>) -> Option<Self> {
        rows.retain(|row| row.values.iter().flatten().any(Option::is_some));
        let values = rows.iter().flat_map(|row| row.values.iter().flatten().flatten().copied());
        let unit = unit.unwrap_or_else(|| Unit::of_times(values));
        if rows.is_empty() { None } else { Some(Self { title: title.into(), unit, rows }) }
    }
}

/// All sections in the order of the report.
pub(crate) fn sections(columns: &Columns<'_>) -> Vec<Section> {
    let Some(first) = columns.first_run() else { return Vec::new() };
    let groups = Subjects::groups(columns, first);
    let tasks = Subjects::tasks(columns, first);
    let mut all = vec![
        run_time(columns),
        groups.shares(columns),
        groups.wakeup_latencies(columns),
        groups.run_delays(columns),
    ];
    if let Some(tasks) = tasks {
        all.push(tasks.shares(columns));
        all.push(tasks.wakeup_latencies(columns));
        all.push(tasks.longest_waits(columns));
    }
    all.extend([
        deadline_counts(columns),
        lateness(columns),
        mark_counts(columns, first),
        mark_latencies(columns, first),
        switches(columns),
        cpu_time(columns),
    ]);
    all.into_iter().flatten().collect()
}

fn row(subject: &str, figure: &'static str, better: Better, values: Values) -> Row {
    let subject = elide(subject, SUBJECT_WIDTH);
    Row { subject, figure, values, better, headline: None, few: Vec::new() }
}

/// How long the runs took, where that depends on the policy.
fn run_time(columns: &Columns<'_>) -> Option<Section> {
    let elapsed = |run: &RunResult| Some(run.figures.elapsed.as_ns() as f64);
    let mut times = columns.runs().map(|run| run.figures.elapsed);
    let first = times.next()?;
    if times.all(|time| time == first) || columns.runs().any(|run| !run.complete) {
        return None;
    }
    let mut row = row("the run ended after", "", Better::Lower, columns.values(elapsed));
    row.headline = Some("end of the run".to_string());
    Section::new("Run time", None, vec![row])
}

/// Groups or tasks to show.
struct Subjects {
    /// Label and the place to find it in a run's figures.
    subjects: Vec<(String, Place)>,
    /// What they are, for titles.
    kind: String,
}

/// Where a subject's figures are.
enum Place {
    Group(String),
    Task(u32),
}

impl Place {
    fn find<'a>(&self, run: &'a RunResult) -> Option<&'a Figures> {
        match self {
            Self::Group(name) => {
                run.figures.groups.iter().find(|g| g.name == *name).map(|g| &g.figures)
            }
            Self::Task(id) => task(run, *id).map(|t| &t.figures),
        }
    }
}

/// Rows of tasks stand at their id; only the row of unbound tasks may be missing.
fn task(run: &RunResult, id: u32) -> Option<&TaskFigures> {
    run.figures.tasks.get(id as usize).filter(|task| task.id == id)
}

impl Subjects {
    fn groups(columns: &Columns<'_>, first: &RunResult) -> Self {
        let label = |name: &str, lives: u64| {
            let same = columns.runs().all(|run| {
                let mut groups = run.figures.groups.iter();
                groups.any(|g| g.name == name && g.figures.lives == lives)
            });
            if same && lives > 1 { format!("{name} ×{lives}") } else { name.to_string() }
        };
        let all: Vec<_> = first
            .figures
            .groups
            .iter()
            .map(|g| (label(&g.name, g.figures.lives), Place::Group(g.name.clone())))
            .collect();
        Self::most_interesting(columns, "group", all)
    }

    /// Tasks that share their group with others; the figures of the rest are those of the group.
    fn tasks(columns: &Columns<'_>, first: &RunResult) -> Option<Self> {
        let mut in_group = BTreeMap::new();
        for task in &first.figures.tasks {
            *in_group.entry(task.group.as_str()).or_insert(0) += 1;
        }
        let several = first.figures.tasks.iter().filter(|t| in_group[t.group.as_str()] > 1);
        let all: Vec<_> = several.map(|t| (t.name.clone(), Place::Task(t.id))).collect();
        if all.is_empty() { None } else { Some(Self::most_interesting(columns, "task", all)) }
    }

    /// Those that waited longest and those whose share differs most between the columns.
    fn most_interesting(columns: &Columns<'_>, kind: &str, mut all: Vec<(String, Place)>) -> Self {
        if all.len() <= SUBJECTS_MAX {
            return Self { subjects: all, kind: kind.to_string() };
        }
        let n_all = all.len();
        let figures = |place: &Place| -> Vec<Figures> {
            columns.runs().filter_map(|run| place.find(run).copied()).collect()
        };
        let longest_wait = |figures: &[Figures]| {
            figures.iter().map(|f| f.longest_wait).max().unwrap_or(Nanos::ZERO)
        };
        let spread = |figures: &[Figures]| {
            let runs = || figures.iter().map(|f| f.run);
            let (low, high) = (runs().min(), runs().max());
            high.unwrap_or(Nanos::ZERO).saturating_sub(low.unwrap_or(Nanos::ZERO))
        };
        let scores: Vec<(Nanos, Nanos)> = all
            .iter()
            .map(|(_, place)| figures(place))
            .map(|figures| (longest_wait(&figures), spread(&figures)))
            .collect();
        let mut by_wait: Vec<usize> = (0..n_all).collect();
        by_wait.sort_by_key(|index| std::cmp::Reverse(scores[*index].0));
        let mut by_spread: Vec<usize> = (0..n_all).collect();
        by_spread.sort_by_key(|index| std::cmp::Reverse(scores[*index].1));
        let mut chosen = Vec::new();
        for index in by_wait.into_iter().zip(by_spread).flat_map(|(a, b)| [a, b]) {
            if chosen.len() < SUBJECTS_MAX && !chosen.contains(&index) {
                chosen.push(index);
            }
        }
        let mut index = 0;
        all.retain(|_| {
            index += 1;
            chosen.contains(&(index - 1))
        });
        let kind = format!("{kind}, {SUBJECTS_MAX} of {n_all}");
        Self { subjects: all, kind }
    }

    fn title(&self, what: &str) -> String {
        format!("{what} by {}", self.kind)
    }

    fn rows(
        &self,
        columns: &Columns<'_>,
        figure: &'static str,
        better: Better,
        f: impl Fn(&RunResult, &Figures) -> Option<f64>,
    ) -> Vec<Row> {
        let values = |place: &Place| columns.values(|run| f(run, place.find(run)?));
        self.subjects.iter().map(|(name, place)| row(name, figure, better, values(place))).collect()
    }

    fn shares(&self, columns: &Columns<'_>) -> Option<Section> {
        let f = |run: &RunResult, figures: &Figures| Some(share(&run.figures, figures));
        let rows = self.rows(columns, "", Better::Neither, f);
        Section::new(self.title("Share of a CPU"), Some(Unit::Percent), rows)
    }

    fn wakeup_latencies(&self, columns: &Columns<'_>) -> Option<Section> {
        let rows = self.subjects.iter().flat_map(|(name, place)| {
            let summary = |run: &RunResult| place.find(run)?.wakeup_latency;
            let mut rows = percentile_rows(columns, name, summary);
            match place {
                Place::Group(group) => stand_for(&mut rows, group, "wake-up latency"),
                // Tasks are many; two percentiles fewer keep the report readable.
                Place::Task(_) => rows.retain(|row| !matches!(row.figure, "p95" | "p99.9")),
            }
            rows
        });
        Section::new(self.title("Wake-up latency"), None, rows.collect())
    }

    fn run_delays(&self, columns: &Columns<'_>) -> Option<Section> {
        let rows = self.subjects.iter().flat_map(|(name, place)| {
            let summary = |run: &RunResult| place.find(run)?.run_delay;
            let mut rows = percentile_rows(columns, name, summary);
            // The largest finished stay is replaced by the longest one, open ones included.
            rows.retain(|row| !matches!(row.figure, "max" | "once"));
            let mut longest = longest_wait(columns, name, place);
            if let Place::Group(group) = place {
                longest.headline = Some(format!("{group}: longest wait"));
            }
            rows.push(longest);
            rows
        });
        Section::new(self.title("Run delay"), None, rows.collect())
    }

    fn longest_waits(&self, columns: &Columns<'_>) -> Option<Section> {
        let row = |(name, place): &(String, Place)| {
            let mut row = longest_wait(columns, name, place);
            row.figure = "";
            row
        };
        let rows = self.subjects.iter().map(row).collect();
        Section::new(self.title("Longest wait"), None, rows)
    }
}

fn longest_wait(columns: &Columns<'_>, name: &str, place: &Place) -> Row {
    let longest = |run: &RunResult| Some(place.find(run)?.longest_wait.as_ns() as f64);
    row(name, "longest", Better::Lower, columns.values(longest))
}

/// A figure of a distribution, by its name.
type Percentile = (&'static str, fn(&Summary) -> u64);

/// p50, p95, p99, p99.9 and the maximum of a distribution of delays.
fn percentile_rows(
    columns: &Columns<'_>,
    subject: &str,
    summary: impl Fn(&RunResult) -> Option<Summary>,
) -> Vec<Row> {
    const FIGURES: [Percentile; 5] = [
        ("p50", |h| h.p50),
        ("p95", |h| h.p95),
        ("p99", |h| h.p99),
        ("p99.9", |h| h.p99_9),
        ("max", |h| h.max),
    ];
    let counts = || columns.runs().filter_map(&summary).map(|h| h.count);
    if counts().max() == Some(1) {
        let values = columns.values(|run| summary(run).map(|h| h.max as f64));
        return vec![row(subject, "once", Better::Lower, values)];
    }
    let least = counts().min().unwrap_or(0);
    let figure = |(figure, get): Percentile| {
        let values = columns.values(|run| summary(run).map(|h| get(&h) as f64));
        let judged = figure == "max" || least >= JUDGED;
        let better = if judged { Better::Lower } else { Better::Neither };
        let mut row = row(subject, figure, better, values);
        if figure == "p99.9" {
            let few =
                columns.values(|run| summary(run).map(|h| f64::from(u8::from(h.count < FEW))));
            row.few = few.iter().map(|column| column.contains(&Some(1.0))).collect();
        }
        row
    };
    FIGURES.into_iter().map(figure).collect()
}

/// Lets the 99th percentile, or the only value, stand for `subject` at the top of the report.
fn stand_for(rows: &mut [Row], subject: &str, what: &str) {
    for row in rows.iter_mut().filter(|row| matches!(row.figure, "p99" | "once")) {
        row.headline = Some(match row.figure {
            "once" => format!("{subject}: {what}"),
            figure => format!("{subject}: {what}, {figure}"),
        });
    }
}

fn deadline_counts(columns: &Columns<'_>) -> Option<Section> {
    let rows = deadline_tasks(columns).into_iter().flat_map(|task| {
        let met = columns.values(|run| deadline(run, task.id).map(|d| d.met as f64));
        let missed = columns.values(|run| deadline(run, task.id).map(|d| d.missed as f64));
        let mut missed = row(&task.task, "missed", Better::Lower, missed);
        missed.headline = Some(format!("{}: missed deadlines", missed.subject));
        [row(&task.task, "met", Better::Neither, met), missed]
    });
    Section::new("Deadlines", Some(Unit::Count), rows.collect())
}

fn lateness(columns: &Columns<'_>) -> Option<Section> {
    let rows = deadline_tasks(columns).into_iter().flat_map(|task| {
        percentile_rows(columns, &task.task, |run: &RunResult| deadline(run, task.id)?.late)
    });
    Section::new("Lateness of missed deadlines", None, rows.collect())
}

/// Rows that had deadlines under any policy; under another they may have been starved.
fn deadline_tasks<'a>(columns: &Columns<'a>) -> Vec<&'a DeadlineFigures> {
    let mut all: Vec<&DeadlineFigures> =
        columns.runs().flat_map(|run| &run.figures.deadlines).collect();
    all.sort_by_key(|deadline| deadline.id);
    all.dedup_by_key(|deadline| deadline.id);
    all.truncate(SUBJECTS_MAX);
    all
}

fn deadline(run: &RunResult, id: u32) -> Option<&DeadlineFigures> {
    run.figures.deadlines.iter().find(|d| d.id == id)
}

fn mark_counts(columns: &Columns<'_>, first: &RunResult) -> Option<Section> {
    let rows = first.figures.marks.iter().enumerate().map(|(index, mark)| {
        let sum = columns.values(|run| run.figures.marks.get(index).map(|m| m.sum as f64));
        let subject = match mark.unit.as_str() {
            "" => mark.name.clone(),
            unit if unit == mark.name => mark.name.clone(),
            unit => format!("{} ({unit})", mark.name),
        };
        row(&subject, "", Better::Neither, sum)
    });
    Section::new("Counted by the workload", Some(Unit::Count), rows.collect())
}

fn mark_latencies(columns: &Columns<'_>, first: &RunResult) -> Option<Section> {
    let rows = first.figures.marks.iter().enumerate().flat_map(|(index, mark)| {
        let summary = move |run: &RunResult| run.figures.marks.get(index)?.latency;
        let mut rows = percentile_rows(columns, &mark.name, summary);
        stand_for(&mut rows, &mark.name, "timed");
        rows
    });
    Section::new("Timed by the workload", None, rows.collect())
}

fn switches(columns: &Columns<'_>) -> Option<Section> {
    type Get = fn(&Totals) -> u64;
    const TOTALS: [(&str, Get); 8] = [
        ("context switches", |t| t.context_switches),
        ("voluntary", |t| t.voluntary),
        ("involuntary", |t| t.involuntary),
        ("preemptions", |t| t.preemptions),
        ("migrations", |t| t.migrations),
        ("wake-ups", |t| t.wakeups),
        ("forks", |t| t.forks),
        ("exits", |t| t.exits),
    ];
    let row = |(name, get): &(&'static str, Get)| {
        let values = columns.values(|run| Some(get(&run.figures.totals) as f64));
        row(name, "", Better::Neither, values)
    };
    let mut rows: Vec<Row> = TOTALS.iter().map(row).collect();
    // Workloads that neither fork nor exit need not say so.
    rows.retain(|row| !matches!(row.subject.as_str(), "forks" | "exits") || row.is_used());
    Section::new("Switches and moves", Some(Unit::Count), rows)
}

fn cpu_time(columns: &Columns<'_>) -> Option<Section> {
    type Get = fn(&CpuFigures) -> Nanos;
    const PARTS: [(&str, Get); 8] = [
        ("busy", |c| c.busy),
        ("idle", |c| c.idle),
        ("scheduler overhead", CpuFigures::overhead),
        ("  switches", |c| c.switch),
        ("  ticks", |c| c.tick),
        ("  other interrupts", |c| c.interrupt),
        ("  waking", |c| c.wakeup),
        ("  leaving idle states", |c| c.idle_exit),
    ];
    let part = |(name, get): &(&str, Get)| {
        let values = columns.values(|run| {
            let all = run.figures.elapsed.as_ns() as f64 * run.figures.cpus.len() as f64;
            let part: Nanos = run.figures.cpus.iter().map(get).sum();
            if all == 0.0 { None } else { Some(part.as_ns() as f64 / all) }
        });
        let is_overhead = *name == "scheduler overhead";
        let better = if is_overhead { Better::Lower } else { Better::Neither };
        let mut row = row(name, "", better, values);
        row.headline = is_overhead.then(|| name.to_string());
        row
    };
    let mut rows: Vec<Row> = PARTS.iter().map(part).collect();
    // Parts of the overhead that a cost model does not have are left out.
    rows.retain(|row| !row.subject.starts_with(' ') || row.is_used());
    Section::new("Time of all CPUs", Some(Unit::Percent), rows)
}
