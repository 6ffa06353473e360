// SPDX-License-Identifier: GPL-2.0-only
//! What tasks spend their time on: the state of each live task and the rows of figures.

use schedlab_units::{Nanos, TaskId, Time};

use crate::Distribution;
use crate::figures::{EndState, Figures};
use crate::histogram::{Arena, Histogram};
use crate::metrics::RowId;

/// What a task does, as far as figures go. Every instant of a life belongs to one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum State {
    /// Forked, not yet woken.
    New,
    /// Sleeps interruptibly.
    Sleeping,
    /// Sleeps uninterruptibly.
    Uninterruptible,
    /// Waits for a CPU since a wake-up.
    Woken,
    /// Waits for a CPU for another reason: first wake-up, preemption, yield.
    Queued,
    /// Is current.
    Running,
    /// Has exited, or the slot was never used.
    Gone,
}

impl State {
    const N: usize = 7;

    pub(crate) fn is_waiting(self) -> bool {
        matches!(self, Self::Woken | Self::Queued)
    }
    pub(crate) fn is_asleep(self) -> bool {
        matches!(self, Self::New | Self::Sleeping | Self::Uninterruptible)
    }
    fn at_end(self) -> EndState {
        match self {
            Self::New => EndState::New,
            Self::Sleeping => EndState::Sleeping,
            Self::Uninterruptible => EndState::Uninterruptible,
            Self::Woken | Self::Queued => EndState::Runnable,
            Self::Running => EndState::Running,
            Self::Gone => EndState::Exited,
        }
    }
}

/// A live task. Slots follow the task table: indexed by [`TaskId`], used again after a free.
#[derive(Clone, Debug)]
struct Slot {
    state: State,
    row: RowId,
    since: Time,
    born: Time,
    /// Counts lives over the whole run.
    serial: u64,
}

/// The figures of all lives that belong together.
#[derive(Clone, Debug)]
pub(crate) struct Row {
    spent: [Nanos; State::N],
    life: Nanos,
    pub(crate) lives: u64,
    pub(crate) wakeups: u64,
    pub(crate) voluntary: u64,
    pub(crate) involuntary: u64,
    pub(crate) preemptions: u64,
    pub(crate) migrations: u64,
    pub(crate) exit: Option<Time>,
    pub(crate) deadlines_met: u64,
    pub(crate) deadlines_missed: u64,
    longest_wait: Nanos,
    /// Of all lives that are over the one that began last: its serial and how it ended.
    newest: u64,
    state: EndState,
    /// Stays on a queue that a wake-up began.
    woken: Histogram,
    /// All other stays.
    queued: Histogram,
    /// How late missed deadlines were met.
    pub(crate) late: Histogram,
}

impl Row {
    const EMPTY: Self = Self {
        spent: [Nanos::ZERO; State::N],
        life: Nanos::ZERO,
        lives: 0,
        wakeups: 0,
        voluntary: 0,
        involuntary: 0,
        preemptions: 0,
        migrations: 0,
        exit: None,
        deadlines_met: 0,
        deadlines_missed: 0,
        longest_wait: Nanos::ZERO,
        newest: 0,
        state: EndState::New,
        woken: Histogram::EMPTY,
        queued: Histogram::EMPTY,
        late: Histogram::EMPTY,
    };

    fn note_end(&mut self, serial: u64, state: State) {
        if serial >= self.newest {
            (self.newest, self.state) = (serial, state.at_end());
        }
    }

    pub(crate) fn end_state(&self) -> EndState {
        self.state
    }

    /// Adds the counts and times of this row to `sum`, and its delays to the distributions.
    pub(crate) fn add_to(&self, arena: &Arena, sum: &mut Figures, delays: &mut Delays) {
        let spent = |state: State| self.spent[state as usize];
        sum.lives += self.lives;
        sum.run += spent(State::Running);
        sum.wait += spent(State::Woken) + spent(State::Queued);
        sum.sleep += spent(State::New) + spent(State::Sleeping) + spent(State::Uninterruptible);
        sum.life += self.life;
        sum.wakeups += self.wakeups;
        sum.voluntary += self.voluntary;
        sum.involuntary += self.involuntary;
        sum.preemptions += self.preemptions;
        sum.migrations += self.migrations;
        sum.longest_wait = sum.longest_wait.max(self.longest_wait);
        delays.wakeup_latency.add(&self.woken, arena);
        delays.run_delay.add(&self.woken, arena);
        delays.run_delay.add(&self.queued, arena);
    }
}

/// Distributions to merge rows into.
#[derive(Default)]
pub(crate) struct Delays {
    pub(crate) wakeup_latency: Distribution,
    pub(crate) run_delay: Distribution,
}

impl Delays {
    /// Puts the summaries into `figures` and forgets everything.
    pub(crate) fn take_into(&mut self, figures: &mut Figures) {
        figures.wakeup_latency = self.wakeup_latency.summary();
        figures.run_delay = self.run_delay.summary();
        self.wakeup_latency.clear();
        self.run_delay.clear();
    }
}

/// All tasks, and the rows they are counted in.
#[derive(Clone, Debug)]
pub(crate) struct Tasks {
    slots: Vec<Slot>,
    pub(crate) rows: Vec<Row>,
    /// Row of tasks that nobody bound.
    unbound: RowId,
    serial: u64,
}

impl Tasks {
    /// Room for `n_tasks` tasks in `n_rows` rows; the last row is that of tasks nobody binds.
    pub(crate) fn new(n_tasks: usize, n_rows: usize) -> Self {
        let unbound = RowId::from_index(n_rows - 1);
        Self {
            slots: Vec::with_capacity(n_tasks),
            rows: vec![Row::EMPTY; n_rows],
            unbound,
            serial: 0,
        }
    }

    /// Row of tasks that nobody bound.
    pub(crate) fn unbound(&self) -> RowId {
        self.unbound
    }

    /// A further row.
    pub(crate) fn add_row(&mut self) -> RowId {
        self.rows.push(Row::EMPTY);
        RowId::from_index(self.rows.len() - 1)
    }

    /// Counts the life of `task` in another row; what it spent until `now` stays where it was
    /// counted.
    pub(crate) fn rebind(&mut self, now: Time, task: TaskId, row: RowId) {
        let slot = &mut self.slots[task.index()];
        let from = &mut self.rows[slot.row.index()];
        from.spent[slot.state as usize] += now - slot.since;
        from.lives -= 1;
        slot.since = now;
        slot.row = row;
        self.rows[row.index()].lives += 1;
    }

    /// A life begins.
    pub(crate) fn fork(&mut self, now: Time, task: TaskId) {
        let gone = Slot { state: State::Gone, row: self.unbound, since: now, born: now, serial: 0 };
        if task.index() >= self.slots.len() {
            self.slots.resize(task.index() + 1, gone.clone());
        }
        let slot = &mut self.slots[task.index()];
        assert!(slot.state == State::Gone, "task {task} is forked while it lives");
        self.serial += 1;
        *slot = Slot { state: State::New, serial: self.serial, ..gone };
        self.rows[self.unbound.index()].lives += 1;
    }

    /// Counts the life of `task`, begun just now, in `row`.
    pub(crate) fn bind(&mut self, task: TaskId, row: RowId) {
        let slot = &mut self.slots[task.index()];
        assert!(
            slot.state == State::New && slot.row == self.unbound,
            "task {task} is bound to a row after its first event"
        );
        self.rows[self.unbound.index()].lives -= 1;
        slot.row = row;
        self.rows[row.index()].lives += 1;
    }

    #[inline]
    pub(crate) fn state(&self, task: TaskId) -> State {
        self.slots[task.index()].state
    }

    /// Row of the life of `task`, also after its end.
    #[inline]
    pub(crate) fn row_id(&self, task: TaskId) -> RowId {
        self.slots[task.index()].row
    }

    #[inline]
    pub(crate) fn row_mut(&mut self, task: TaskId) -> &mut Row {
        &mut self.rows[self.slots[task.index()].row.index()]
    }

    /// `task` does something else from `now` on; the time until then is charged to what it did.
    ///
    /// The only place that charges time to a task.
    #[inline]
    pub(crate) fn enter(
        &mut self,
        now: Time,
        task: TaskId,
        state: State,
        arena: &mut Arena,
    ) -> &mut Row {
        let slot = &mut self.slots[task.index()];
        let row = &mut self.rows[slot.row.index()];
        let span = now - slot.since;
        row.spent[slot.state as usize] += span;
        if slot.state.is_waiting() {
            row.longest_wait = row.longest_wait.max(span);
            let stays = if slot.state == State::Woken { &mut row.woken } else { &mut row.queued };
            stays.record(arena, span.as_ns());
        }
        slot.state = state;
        slot.since = now;
        row
    }

    /// The life of `task` ends.
    pub(crate) fn end_life(&mut self, now: Time, task: TaskId, arena: &mut Arena) {
        let (born, serial) = (self.slots[task.index()].born, self.slots[task.index()].serial);
        let row = self.enter(now, task, State::Gone, arena);
        row.life += now - born;
        row.exit = Some(now);
        row.note_end(serial, State::Gone);
    }

    /// Forgets all figures; lives and states go on, as if they began at `now`.
    pub(crate) fn restart(&mut self, now: Time) {
        for row in &mut self.rows {
            *row = Row { newest: row.newest, state: row.state, exit: row.exit, ..Row::EMPTY };
        }
        for slot in self.slots.iter_mut().filter(|slot| slot.state != State::Gone) {
            (slot.since, slot.born) = (now, now);
            // What is left of this stay is no latency of a wake-up within the measured time.
            if slot.state == State::Woken {
                slot.state = State::Queued;
            }
            self.rows[slot.row.index()].lives += 1;
        }
    }

    /// Charges everything up to `end`. An open wait counts as wait, not as a finished stay.
    pub(crate) fn finish(&mut self, end: Time) {
        for slot in self.slots.iter_mut().filter(|slot| slot.state != State::Gone) {
            let row = &mut self.rows[slot.row.index()];
            let span = end - slot.since;
            row.spent[slot.state as usize] += span;
            row.life += end - slot.born;
            if slot.state.is_waiting() {
                row.longest_wait = row.longest_wait.max(span);
            }
            row.note_end(slot.serial, slot.state);
        }
    }
}
