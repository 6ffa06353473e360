// SPDX-License-Identifier: GPL-2.0-only
//! Values of a policy watched during a run: what `inspect` says of one task, at regular instants or
//! at its dispatches.

use schedlab_policy_api::{Observer, Policy, PrevState, SchedEvent};
use schedlab_sim::{HostObserver, Sim};
use schedlab_units::{Nanos, TaskId, Time};

/// When a value is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At whole multiples of this span.
    Every(Nanos),
    /// Whenever the task becomes current for the first time after a wake-up.
    Dispatch,
    /// As with `Dispatch`, and whenever the task has gone to sleep.
    Turns,
}

/// How a value is compared with a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// It is this much or more.
    AtLeast(i64),
    /// It is this much or less.
    AtMost(i64),
}

impl Reach {
    fn holds(self, value: i64) -> bool {
        match self {
            Self::AtLeast(mark) => value >= mark,
            Self::AtMost(mark) => value <= mark,
        }
    }
}

/// A value to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Name of the series.
    pub name: String,
    /// Name of the task as results show it.
    pub task: String,
    /// Name of the value among those that the policy's `inspect` shows.
    pub value: String,
    /// When it is looked at.
    pub when: When,
    /// A mark whose first crossing is noted.
    pub reach: Option<Reach>,
}

/// What was seen of a value after the warm-up; everything is null if it was never seen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Name of the series.
    pub name: String,
    /// Number of looks at which the task was there and had the value.
    pub count: u64,
    /// Smallest.
    pub min: Option<i64>,
    /// Largest.
    pub max: Option<i64>,
    /// Sum of all.
    pub sum: i128,
    /// The last.
    pub last: Option<i64>,
    /// Number of looks that found less than the look before.
    pub falls: u64,
    /// Instant of the first look, since the start of the run, at which the mark was reached.
    pub reached: Option<Time>,
    /// How often the commonest values were seen, by value.
    pub histogram: Vec<(i64, u64)>,
}

/// Distinct values counted; a series with more keeps no histogram of the others.
const HISTOGRAM_MAX: usize = 256;

impl Series {
    fn look(&mut self, now: Time, value: i64, reach: Option<Reach>) {
        self.count += 1;
        self.min = Some(self.min.map_or(value, |min| min.min(value)));
        self.max = Some(self.max.map_or(value, |max| max.max(value)));
        self.sum += i128::from(value);
        self.falls += u64::from(self.last.is_some_and(|last| value < last));
        self.last = Some(value);
        if self.reached.is_none() && reach.is_some_and(|reach| reach.holds(value)) {
            self.reached = Some(now);
        }
        match self.histogram.binary_search_by_key(&value, |(value, _)| *value) {
            Ok(at) => self.histogram[at].1 += 1,
            Err(at) if self.histogram.len() < HISTOGRAM_MAX => {
                self.histogram.insert(at, (value, 1))
            }
            Err(_) => {}
        }
    }
}

/// The samples of a run with what they have seen.
pub(crate) struct Sampler<'a> {
    samples: &'a [Sample],
    series: Vec<Series>,
    warmup: Time,
}

impl<'a> Sampler<'a> {
    pub(crate) fn new(samples: &'a [Sample], warmup: Nanos) -> Self {
        let empty = |sample: &Sample| Series { name: sample.name.clone(), ..Series::default() };
        Self { samples, series: samples.iter().map(empty).collect(), warmup: Time::ZERO + warmup }
    }

    /// Whether some value is looked at when tasks are dispatched or, second, go to sleep.
    pub(crate) fn watches_turns(&self) -> (bool, bool) {
        let any = |when| self.samples.iter().any(|sample| sample.when == when);
        (any(When::Dispatch) || any(When::Turns), any(When::Turns))
    }

    /// The next instant after `now` at which some value is looked at.
    pub(crate) fn next_after(&self, now: Time) -> Time {
        let next = |sample: &Sample| match sample.when {
            When::Every(span) => {
                let n = (now - Time::ZERO).as_ns() / span.as_ns().max(1) + 1;
                Time::ZERO.saturating_add(Nanos::from_ns(span.as_ns().max(1).saturating_mul(n)))
            }
            When::Dispatch | When::Turns => Time::MAX,
        };
        self.samples.iter().map(next).min().unwrap_or(Time::MAX)
    }

    /// Looks at the values that are due at `now`.
    pub(crate) fn look<P: Policy, O: HostObserver>(&mut self, sim: &Sim<'_, P, O>, now: Time) {
        for index in 0..self.samples.len() {
            if let When::Every(span) = self.samples[index].when
                && (now - Time::ZERO).as_ns().is_multiple_of(span.as_ns().max(1))
            {
                self.look_at(index, sim, now);
            }
        }
    }

    /// Looks at the values of the tasks of `turn`.
    pub(crate) fn turn<P: Policy, O: HostObserver>(
        &mut self,
        sim: &Sim<'_, P, O>,
        now: Time,
        turn: Turn,
    ) {
        for index in 0..self.samples.len() {
            let sample = &self.samples[index];
            let task = sim.find_task(&sample.task);
            let due = match sample.when {
                When::Every(_) => false,
                When::Dispatch => task == turn.dispatched,
                When::Turns => task == turn.dispatched || task == turn.asleep,
            };
            if due && task.is_some() {
                self.look_at(index, sim, now);
            }
        }
    }

    fn look_at<P: Policy, O: HostObserver>(
        &mut self,
        index: usize,
        sim: &Sim<'_, P, O>,
        now: Time,
    ) {
        if now < self.warmup {
            return;
        }
        let sample = &self.samples[index];
        let Some(task) = sim.find_task(&sample.task) else { return };
        let values = sim.core().inspect(now, task);
        if let Some((_, value)) = values.iter().find(|(name, _)| *name == sample.value) {
            self.series[index].look(now, *value, sample.reach);
        }
    }

    pub(crate) fn finish(self) -> Vec<Series> {
        self.series
    }
}

/// The tasks of a switch that are worth a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// Who became current for the first time after a wake-up.
    dispatched: Option<TaskId>,
    /// Who went to sleep.
    asleep: Option<TaskId>,
}

/// Notes the last switch worth a look.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    woken: Vec<bool>,
    sleeps: bool,
    /// The tasks, to be taken by the host.
    pub(crate) last: Option<Turn>,
}

impl Turns {
    /// `sleeps`: whether tasks that go to sleep are noted too.
    pub(crate) fn new(sleeps: bool) -> Self {
        Self { sleeps, ..Self::default() }
    }
}

impl Observer for Turns {
    fn event(&mut self, _now: Time, event: &SchedEvent) {
        match *event {
            SchedEvent::Wakeup { task, .. } => {
                let index = task.index();
                if index >= self.woken.len() {
                    self.woken.resize(index + 1, false);
                }
                self.woken[index] = true;
            }
            SchedEvent::Switch { prev, prev_state, next, .. } => {
                let mut take =
                    |task: &TaskId| self.woken.get_mut(task.index()).is_some_and(std::mem::take);
                let dispatched = next.filter(&mut take);
                let slept = matches!(prev_state, PrevState::Sleeping | PrevState::Uninterruptible);
                let asleep = prev.filter(|_| self.sleeps && slept);
                if dispatched.is_some() || asleep.is_some() {
                    self.last = Some(Turn { dispatched, asleep });
                }
            }
            _ => {}
        }
    }
}
