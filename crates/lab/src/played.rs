// SPDX-License-Identifier: GPL-2.0-only
//! Plays on this host as results: what tracepoints showed of our tasks becomes the stream of
//! events that figures are computed from.
//!
//! With a recording every figure is exact. Without one the kernel's own counts give times and
//! switches, and what they do not tell is zero or missing, with a remark.

use schedlab_host::played::{Noted, Played};
use schedlab_metrics::{Figures, GroupFigures, RunFigures};
use schedlab_policy_api::{Observer, SchedEvent};
use schedlab_units::{Hz, Nanos, TaskId, Time};
use schedlab_workload::Workload;

use crate::metered::Metered;
use crate::result::RunResult;
use crate::spec::PolicySpec;
use crate::translate::{Step, Translation, translate};

/// What identifies a column of plays.
#[derive(Clone, Debug)]
pub struct PlayedAs {
    /// Which column it is, from 0.
    pub column: usize,
    /// The policy that ran live, by its spec; none = the kernel's own.
    pub live: Option<PolicySpec>,
    /// The kernel's version.
    pub kernel: String,
    /// Its tick rate.
    pub hz: Hz,
    /// The seed.
    pub seed: u64,
}

/// The name of the policy of a play.
pub const HOST: &str = "host";
/// What precedes the name of a policy that ran live.
pub const LIVE: &str = "live-";

/// The result of `played`, and what a reader must know about it.
pub fn result_of(workload: &Workload, played: &Played, id: &PlayedAs) -> (RunResult, Vec<String>) {
    let mut remarks = played.remarks.clone();
    let (figures, events, stats) = match &played.recording {
        Some(recording) => {
            let translation = translate(played, recording);
            remarks.extend(translation.remarks.iter().cloned());
            let stats = vec![
                ("ops".to_string(), i64::try_from(played.ops).unwrap_or(i64::MAX)),
                ("other_ns".to_string(), ns_i64(translation.foreign)),
                ("lost_events".to_string(), i64::try_from(played.lost).unwrap_or(i64::MAX)),
            ];
            let events = translation.steps.len() as u64;
            (from_events(workload, played, &translation), events, stats)
        }
        None => {
            remarks.push(
                "no tracepoints: wake-ups, migrations, forks' first waits, latencies and times of \
                 CPUs are not known (0 or missing); run and wait times are the kernel's own"
                    .to_string(),
            );
            let ops = i64::try_from(played.ops).unwrap_or(i64::MAX);
            (from_counts(workload, played), 0, vec![("ops".to_string(), ops)])
        }
    };
    let result = RunResult {
        column: id.column,
        policy: id
            .live
            .as_ref()
            .map_or(HOST.to_string(), |spec| format!("{LIVE}{}", spec.info().name)),
        variant: id.live.as_ref().map_or(id.kernel.clone(), |spec| spec.variant().name.to_string()),
        settings: id.live.as_ref().map_or_else(Vec::new, PolicySpec::settings),
        hz: id.hz,
        seed: id.seed,
        fingerprint: 0,
        events,
        complete: played.complete,
        figures,
        policy_stats: stats,
    };
    (result, remarks)
}

fn ns_i64(span: Nanos) -> i64 {
    i64::try_from(span.as_ns()).unwrap_or(i64::MAX)
}

fn from_events(workload: &Workload, played: &Played, translation: &Translation) -> RunFigures {
    let mut metered = Metered::new(workload, played.n_cpus, Nanos::ZERO);
    for (now, step) in &translation.steps {
        match *step {
            Step::Event(event) => metered.event(*now, &event),
            Step::Bind(task) => {
                let of = &played.tasks[task.index()];
                metered.bind(task, of.template, of.instance);
            }
        }
    }
    metered.finish(Time::ZERO + played.end.saturating_since(played.start))
}

/// Figures from the kernel's counts of each task.
fn from_counts(workload: &Workload, played: &Played) -> RunFigures {
    let mut metered = Metered::new(workload, played.n_cpus, Nanos::ZERO);
    let zero = |at: Time| Time::ZERO + at.min(played.end).saturating_since(played.start);
    // Marks, deadlines and lives go the usual way; the times of tasks are filled in afterwards.
    let mut steps: Vec<(Time, usize, u8)> = Vec::new();
    for (index, one) in played.tasks.iter().enumerate() {
        steps.push((zero(one.born), index, 0));
        if let Some(exit) = one.exit.filter(|exit| *exit <= played.end) {
            steps.push((zero(exit), index, 2));
        }
    }
    steps.sort_by_key(|(time, index, kind)| (*time, *kind, *index));
    let mut notes = played.notes.iter().peekable();
    for (now, index, kind) in steps {
        while let Some(note) = notes.next_if(|note| zero(note.time) < now) {
            tell(&mut metered, zero(note.time), note.task, note.what, played.start);
        }
        let task = TaskId::from_index(index);
        let one = &played.tasks[index];
        if kind == 0 {
            let parent = one.parent.map(TaskId::from_index);
            metered.event(now, &SchedEvent::ProcessFork { task, parent });
            metered.bind(task, one.template, one.instance);
        } else {
            let cpu = schedlab_units::CpuId(0);
            metered.event(now, &SchedEvent::ProcessExit { task, cpu });
        }
    }
    for note in notes {
        tell(&mut metered, zero(note.time), note.task, note.what, played.start);
    }
    let rows: Vec<usize> =
        played.tasks.iter().map(|one| metered.row_index(one.template, one.instance)).collect();
    let mut figures = metered.finish(zero(played.end));
    for (one, row) in played.tasks.iter().zip(rows) {
        let Some(task) = figures.tasks.iter_mut().find(|task| task.id as usize == row) else {
            continue;
        };
        add_counts(&mut task.figures, one.counts.run, one.counts.wait.unwrap_or_default());
        task.figures.voluntary += one.counts.voluntary;
        task.figures.involuntary += one.counts.involuntary;
        figures.totals.voluntary += one.counts.voluntary;
        figures.totals.involuntary += one.counts.involuntary;
    }
    for group in &mut figures.groups {
        *group = sum_of(group, &figures.tasks);
    }
    figures
}

/// Takes times out of the sleep that the row consists of so far; a life is never exceeded.
fn add_counts(figures: &mut Figures, run: Nanos, wait: Nanos) {
    let run = run.min(figures.sleep);
    figures.run += run;
    figures.sleep = figures.sleep.saturating_sub(run);
    let wait = wait.min(figures.sleep);
    figures.wait += wait;
    figures.sleep = figures.sleep.saturating_sub(wait);
}

fn sum_of(group: &GroupFigures, tasks: &[schedlab_metrics::TaskFigures]) -> GroupFigures {
    let mut sum = Figures::default();
    for task in tasks.iter().filter(|task| task.group == group.name) {
        let figures = &task.figures;
        sum.lives += figures.lives;
        sum.run += figures.run;
        sum.wait += figures.wait;
        sum.sleep += figures.sleep;
        sum.life += figures.life;
        sum.voluntary += figures.voluntary;
        sum.involuntary += figures.involuntary;
    }
    GroupFigures { name: group.name.clone(), figures: sum }
}

fn tell(metered: &mut Metered, now: Time, index: usize, what: Noted, start: Time) {
    let task = TaskId::from_index(index);
    if let Some(event) = noted(task, what, start, Time::ZERO) {
        metered.event(now, &event);
    }
}

/// The event that a note is; times of notes are the host's, those of events count from `start`.
pub(crate) fn noted(task: TaskId, what: Noted, start: Time, woken: Time) -> Option<SchedEvent> {
    Some(match what {
        Noted::Count { mark, n } => SchedEvent::MarkCount { task, mark, n },
        Noted::Latency { mark, ns } => SchedEvent::MarkLatency { task, mark, ns },
        Noted::Deadline { release, within } => {
            let release = release.map_or(woken, |at| Time::ZERO + at.saturating_since(start));
            SchedEvent::Deadline { task, due: release.saturating_add(within) }
        }
        Noted::Yield { .. } => SchedEvent::Yield { task },
        Noted::Exec => SchedEvent::ProcessExec { task },
        Noted::Sched { nice, class, rt_priority } => {
            SchedEvent::PrioChange { task, nice, class, rt_priority }
        }
    })
}
