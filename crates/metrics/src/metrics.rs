// SPDX-License-Identifier: GPL-2.0-only
//! The observer: what each event means for the figures.

use schedlab_policy_api::{Observer, PrevState, SchedClass, SchedEvent};
use schedlab_units::{Nice, TaskId, Time};

use crate::cpu::Cpu;
use crate::distribution::{Distribution, Summary};
use crate::figures::{
    DeadlineFigures, Figures, GroupFigures, MarkFigures, RunFigures, TaskFigures, Totals,
};
use crate::histogram::{Arena, Histogram, OCTAVES};
use crate::schbench::SchbenchHistogram;
use crate::tasks::{Delays, State, Tasks};

/// Index into [`Config::rows`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowId(pub u32);

impl RowId {
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
    pub(crate) fn from_index(index: usize) -> Self {
        Self(u32::try_from(index).expect("fewer than 2^32 rows"))
    }
}

/// What a row of task figures is called and where it belongs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowLabel {
    /// Name of the task, or of the forked template.
    pub name: String,
    /// Name of its group.
    pub group: String,
    /// Nice value at the start.
    pub nice: Nice,
    /// Class at the start.
    pub class: SchedClass,
}

/// What a mark is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkLabel {
    /// Name in results.
    pub name: String,
    /// Unit of what it counts.
    pub unit: String,
}

/// What [`Metrics`] must know before a run.
#[derive(Clone, Debug)]
pub struct Config {
    /// Number of CPUs.
    pub n_cpus: usize,
    /// Number of tasks to make room for; more may come.
    pub n_tasks: usize,
    /// One row for each task of the start and one for each template that is forked later, so that
    /// memory does not grow with the number of forks.
    pub rows: Vec<RowLabel>,
    /// Marks, in the order of the workload.
    pub marks: Vec<MarkLabel>,
    /// Figures count from this instant on.
    pub warmup: Time,
}

#[derive(Clone, Debug)]
struct Mark {
    count: u64,
    sum: u64,
    latency: Histogram,
    schbench: Option<SchbenchHistogram>,
}

impl Mark {
    const EMPTY: Self = Self { count: 0, sum: 0, latency: Histogram::EMPTY, schbench: None };

    fn restart(&mut self) {
        let schbench = self.schbench.take();
        *self = Self { schbench, ..Self::EMPTY };
        if let Some(histogram) = &mut self.schbench {
            histogram.clear();
        }
    }
}

/// Computes the figures of a run while it goes on.
///
/// Rules that an interface alone does not show:
/// - A life begins with `ProcessFork` and ends with `ProcessExit`; the time before the first wake-up
///   is sleep. Afterwards [`Metrics::bind`] says in which row it counts.
/// - A wait begins with `Waking`, `WakeupNew`, or a `Switch` away from a willing task, and ends with
///   the `Switch` to the task. Wake-up latency is the part that `Waking` began.
/// - At the end of the warm-up everything starts anew: intervals and stays that are open then count
///   from then on, and such a stay is no wake-up latency.
/// - After start-up nothing is allocated, except when more tasks live than [`Config::n_tasks`] or a
///   row's delays spread over more octaves than were set aside.
#[derive(Debug)]
pub struct Metrics {
    cpus: Vec<Cpu>,
    tasks: Tasks,
    marks: Vec<Mark>,
    totals: Totals,
    arena: Arena,
    labels: Vec<RowLabel>,
    mark_labels: Vec<MarkLabel>,
    /// Start of the measured time.
    start: Time,
    measuring: bool,
}

impl Metrics {
    /// Figures of a run that begins at [`Time::ZERO`] with all CPUs idle.
    pub fn new(config: Config) -> Self {
        let mut labels = config.rows;
        labels.push(RowLabel {
            name: "(other)".to_string(),
            group: "(other)".to_string(),
            nice: Nice::ZERO,
            class: SchedClass::Normal,
        });
        // Few rows may fill every octave of two histograms; for many, twelve octaves each are set
        // aside, a factor of 4000 between the shortest and the longest delay.
        let pages_per_row = if labels.len() <= 256 { 2 * OCTAVES } else { 24 };
        let n_pages = labels.len() * pages_per_row + config.marks.len() * OCTAVES;
        Self {
            cpus: vec![Cpu::new(); config.n_cpus],
            tasks: Tasks::new(config.n_tasks, labels.len()),
            marks: vec![Mark::EMPTY; config.marks.len()],
            totals: Totals::default(),
            arena: Arena::with_capacity(n_pages),
            labels,
            mark_labels: config.marks,
            start: config.warmup,
            measuring: config.warmup == Time::ZERO,
        }
    }

    /// Counts the life of `task` in `row`; to be called after its `ProcessFork` and before its next
    /// event. Tasks that are never bound share a row called `(other)`.
    ///
    /// # Panics
    /// When `task` was not just forked or there is no such row.
    pub fn bind(&mut self, task: TaskId, row: RowId) {
        assert!(self.is_row(row), "there is no row {}", row.0);
        self.tasks.bind(task, row);
    }

    /// A further row, for tasks that nobody knew of before the run.
    pub fn add_row(&mut self, label: RowLabel) -> RowId {
        self.labels.push(label);
        self.tasks.add_row()
    }

    /// Counts `task` in `row` from `now` on, its whole life included; what it spent so far stays
    /// where it was counted.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn rebind(&mut self, now: Time, task: TaskId, row: RowId) {
        assert!(self.is_row(row), "there is no row {}", row.0);
        self.tasks.rebind(now, task, row);
    }

    fn is_row(&self, row: RowId) -> bool {
        row != self.tasks.unbound() && row.index() < self.labels.len()
    }

    /// Also keeps the spans of a mark in schbench's histogram; to be called before the run.
    ///
    /// # Panics
    /// When there is no such mark.
    pub fn keep_schbench(&mut self, mark: u32) {
        self.marks[mark as usize].schbench = Some(SchbenchHistogram::default());
    }

    #[cold]
    fn start_measuring(&mut self) {
        self.measuring = true;
        self.totals = Totals::default();
        self.arena.clear();
        self.marks.iter_mut().for_each(Mark::restart);
        for cpu in &mut self.cpus {
            cpu.restart(self.start);
        }
        self.tasks.restart(self.start);
    }

    #[inline]
    fn switch(
        &mut self,
        now: Time,
        prev: Option<TaskId>,
        prev_state: PrevState,
        next: Option<TaskId>,
    ) {
        if prev == next {
            return;
        }
        self.totals.context_switches += 1;
        if let Some(prev) = prev {
            self.switch_out(now, prev, prev_state);
        }
        if let Some(next) = next {
            let state = self.tasks.state(next);
            assert!(state.is_waiting(), "task {next} becomes current at {now} while {state:?}");
            self.tasks.enter(now, next, State::Running, &mut self.arena);
        }
    }

    #[inline]
    fn switch_out(&mut self, now: Time, prev: TaskId, prev_state: PrevState) {
        let state = match prev_state {
            PrevState::Preempted | PrevState::Yielded => State::Queued,
            PrevState::Sleeping => State::Sleeping,
            PrevState::Uninterruptible => State::Uninterruptible,
            PrevState::Zombie => State::Gone,
        };
        let row = if state == State::Gone {
            // Its life ended with `ProcessExit`; only the switch is left to be counted.
            self.tasks.row_mut(prev)
        } else {
            let was = self.tasks.state(prev);
            assert!(was == State::Running, "task {prev} leaves its CPU at {now} while {was:?}");
            self.tasks.enter(now, prev, state, &mut self.arena)
        };
        if state == State::Queued {
            row.involuntary += 1;
            self.totals.involuntary += 1;
            if prev_state == PrevState::Preempted {
                row.preemptions += 1;
                self.totals.preemptions += 1;
            }
        } else {
            row.voluntary += 1;
            self.totals.voluntary += 1;
        }
    }

    /// `Waking`, or a `Wakeup` without one. A task that is awake already stays what it is.
    #[inline]
    fn wake(&mut self, now: Time, task: TaskId) {
        if self.tasks.state(task).is_asleep() {
            self.tasks.enter(now, task, State::Woken, &mut self.arena).wakeups += 1;
            self.totals.wakeups += 1;
        }
    }

    fn mark(&mut self, now: Time, mark: u32, n: u64, latency_ns: Option<u64>) {
        let n_marks = self.marks.len();
        let Some(mark) = self.marks.get_mut(mark as usize) else {
            panic!("mark {mark} of a workload with {n_marks} marks");
        };
        mark.count += 1;
        mark.sum = mark.sum.saturating_add(n);
        if let Some(ns) = latency_ns {
            mark.latency.record(&mut self.arena, ns);
            if let Some(histogram) = &mut mark.schbench {
                // The program reads a clock of whole µs at both ends.
                let since = now.as_ns().saturating_sub(ns);
                histogram.record(now.as_ns() / 1000 - since / 1000);
            }
        }
    }

    fn deadline(&mut self, now: Time, task: TaskId, due: Time) {
        let row = self.tasks.row_mut(task);
        if now <= due {
            row.deadlines_met += 1;
        } else {
            row.deadlines_missed += 1;
            row.late.record(&mut self.arena, (now - due).as_ns());
        }
    }

    /// The figures of the run, which ends at `end`; all intervals still open are cut there.
    ///
    /// # Panics
    /// When `end` lies before the last event.
    pub fn finish(mut self, end: Time) -> RunFigures {
        if !self.measuring {
            self.start = self.start.min(end);
            self.start_measuring();
        }
        self.tasks.finish(end);
        RunFigures {
            elapsed: end - self.start,
            warmup: self.start - Time::ZERO,
            tasks: self.task_figures(),
            groups: self.group_figures(),
            marks: self.mark_figures(),
            deadlines: self.deadline_figures(),
            totals: self.totals,
            cpus: self.cpus.into_iter().map(|cpu| cpu.finish(end)).collect(),
        }
    }

    /// Indices of the rows that are shown: all that were asked for, and `(other)` if it was used.
    fn shown_rows(&self) -> impl Iterator<Item = usize> + '_ {
        let other = self.tasks.unbound().index();
        let used = move |row: &usize| *row != other || self.tasks.rows[other].lives > 0;
        (0..self.labels.len()).filter(used)
    }

    fn task_figures(&self) -> Vec<TaskFigures> {
        let mut delays = Delays::default();
        let row_figures = |index: usize| {
            let (row, label) = (&self.tasks.rows[index], &self.labels[index]);
            let mut figures = Figures::default();
            row.add_to(&self.arena, &mut figures, &mut delays);
            delays.take_into(&mut figures);
            TaskFigures {
                id: RowId::from_index(index).0,
                name: label.name.clone(),
                group: label.group.clone(),
                nice: label.nice,
                class: label.class,
                state: row.end_state(),
                exit: row.exit,
                figures,
            }
        };
        self.shown_rows().map(row_figures).collect()
    }

    fn group_figures(&self) -> Vec<GroupFigures> {
        let mut groups: Vec<(&str, Vec<usize>)> = Vec::new();
        for index in self.shown_rows() {
            let name = self.labels[index].group.as_str();
            match groups.iter_mut().find(|(other, _)| *other == name) {
                Some((_, rows)) => rows.push(index),
                None => groups.push((name, vec![index])),
            }
        }
        let mut delays = Delays::default();
        let merged = |(name, rows): (&str, Vec<usize>)| {
            let mut figures = Figures::default();
            for index in rows {
                self.tasks.rows[index].add_to(&self.arena, &mut figures, &mut delays);
            }
            delays.take_into(&mut figures);
            GroupFigures { name: name.to_string(), figures }
        };
        groups.into_iter().map(merged).collect()
    }

    fn mark_figures(&self) -> Vec<MarkFigures> {
        let marks = self.marks.iter().zip(&self.mark_labels);
        marks
            .map(|(mark, label)| MarkFigures {
                name: label.name.clone(),
                unit: label.unit.clone(),
                count: mark.count,
                sum: mark.sum,
                latency: self.summary(&mark.latency),
                schbench: mark.schbench.clone(),
            })
            .collect()
    }

    fn deadline_figures(&self) -> Vec<DeadlineFigures> {
        let rows = self.tasks.rows.iter().zip(&self.labels).enumerate();
        rows.filter(|(_, (row, _))| row.deadlines_met + row.deadlines_missed > 0)
            .map(|(index, (row, label))| DeadlineFigures {
                id: RowId::from_index(index).0,
                task: label.name.clone(),
                met: row.deadlines_met,
                missed: row.deadlines_missed,
                late: self.summary(&row.late),
            })
            .collect()
    }

    fn summary(&self, histogram: &Histogram) -> Option<Summary> {
        let mut distribution = Distribution::default();
        distribution.add(histogram, &self.arena);
        distribution.summary()
    }
}

impl Observer for Metrics {
    #[inline]
    fn event(&mut self, now: Time, event: &SchedEvent) {
        if !self.measuring && now >= self.start {
            self.start_measuring();
        }
        match *event {
            SchedEvent::CpuMode { cpu, mode } => self.cpus[cpu.index()].enter(now, mode),
            SchedEvent::Switch { cpu: _, prev, prev_state, next } => {
                self.switch(now, prev, prev_state, next);
            }
            SchedEvent::Waking { task, .. } | SchedEvent::Wakeup { task, .. } => {
                self.wake(now, task);
            }
            SchedEvent::WakeupNew { task, .. } => {
                if self.tasks.state(task).is_asleep() {
                    self.tasks.enter(now, task, State::Queued, &mut self.arena);
                }
            }
            SchedEvent::MigrateTask { task, .. } => {
                self.tasks.row_mut(task).migrations += 1;
                self.totals.migrations += 1;
            }
            SchedEvent::ProcessFork { task, parent } => {
                self.tasks.fork(now, task);
                self.totals.forks += u64::from(parent.is_some());
            }
            SchedEvent::ProcessExit { task, .. } => {
                self.tasks.end_life(now, task, &mut self.arena);
                self.totals.exits += 1;
            }
            SchedEvent::PrioChange { task, nice, class, .. } => {
                let label = &mut self.labels[self.tasks.row_id(task).index()];
                (label.nice, label.class) = (nice, class);
            }
            SchedEvent::MarkCount { mark, n, .. } => self.mark(now, mark, n, None),
            SchedEvent::MarkLatency { mark, ns, .. } => self.mark(now, mark, 1, Some(ns)),
            SchedEvent::Deadline { task, due } => self.deadline(now, task, due),
            SchedEvent::NeedResched { .. }
            | SchedEvent::Yield { .. }
            | SchedEvent::ProcessExec { .. }
            | SchedEvent::ProcessFree { .. } => {}
        }
    }
}
