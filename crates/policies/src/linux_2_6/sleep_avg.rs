// SPDX-License-Identifier: GPL-2.0-only
//! Con Kolivas' interactivity code as 2.6.0 and 2.6.6 have it: `sleep_avg`, the bonus read from it,
//! and interactive credit.
//!
//! All quantities are `unsigned long` in the kernel: on i386 products and sums wrap at 2^32 ns
//! (spec linux-2.6-spa §6 Q5).

use schedlab_units::{Hz, Nice};

/// Largest bonus in priority points, `MAX_BONUS`.
pub(crate) const MAX_BONUS: u64 = 10;
/// Nice value times `MAX_BONUS` over the 40 of them, plus `INTERACTIVE_DELTA`; truncates towards
/// zero.
///
/// Source: 2.6.0 and 2.6.6 `sched.c` `DELTA`, `SCALE`.
pub(crate) const fn delta(nice: i32, max_bonus: u64) -> i64 {
    nice as i64 * max_bonus as i64 / 40 + INTERACTIVE_DELTA
}
/// Shortest slice in ticks, 10 ms (`MIN_TIMESLICE`); at least one tick.
const fn min_timeslice(hz: Hz) -> u32 {
    let ticks = 10 * hz.get() / 1000;
    if ticks > 1 { ticks } else { 1 }
}
/// Longest slice in ticks, 200 ms (`MAX_TIMESLICE`); at least one tick.
///
/// Source: 2.6.0-test1 `sched.c`; spec linux-2.6-o1 §2.
pub(crate) const fn max_timeslice(hz: Hz) -> u32 {
    let ticks = 200 * hz.get() / 1000;
    if ticks > 1 { ticks } else { 1 }
}
/// Slice in ticks of a task with static priority 100 … 139 (`task_timeslice`).
///
/// Source: 2.6.0-test1 and 2.6.6 `sched.c` `BASE_TIMESLICE`; spec linux-2.6-o1 §2.
pub(crate) const fn timeslice(static_prio: u8, hz: Hz) -> u32 {
    let (min, max) = (min_timeslice(hz), max_timeslice(hz));
    min + (max - min) * (139 - static_prio as u32) / 39
}

/// `INTERACTIVE_DELTA`.
const INTERACTIVE_DELTA: i64 = 2;
/// `CREDIT_LIMIT`.
const CREDIT_LIMIT: i64 = 100;
/// `ON_RUNQUEUE_WEIGHT` as the kernel applies it: ⌊30 · 128 / 100⌋ of 128.
const ON_RUNQUEUE_WEIGHT: (u64, u64) = (38, 128);
/// `CHILD_PENALTY` in per cent.
const CHILD_PENALTY: u64 = 95;

/// Width of the kernel's `unsigned long`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// i386.
    Bits32,
    /// 64-bit machines.
    Bits64,
}

impl Word {
    /// What an `unsigned long` keeps of `value`.
    #[inline]
    pub(crate) const fn wrap(self, value: u64) -> u64 {
        match self {
            Self::Bits32 => value & 0xffff_ffff,
            Self::Bits64 => value,
        }
    }
}

/// The macros of `sched.c` at one HZ and word size.
///
/// Source: 2.6.6 `kernel/sched.c`; spec linux-2.6-spa §2.1.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scale {
    pub(crate) hz: Hz,
    pub(crate) word: Word,
    /// Nanoseconds per jiffy, `JIFFIES_TO_NS(1)`.
    pub(crate) jiffy_ns: u64,
    /// `MAX_SLEEP_AVG` in jiffies.
    pub(crate) max_sleep_avg: u64,
    /// Largest bonus in priority points, `MAX_BONUS`.
    pub(crate) max_bonus: u64,
    /// `CHILD_PENALTY` in per cent.
    pub(crate) child_penalty: u64,
}

impl Scale {
    /// The macros at `hz`.
    ///
    /// Below HZ 100 the kernel's slices would be 0 jiffies and divide by zero; they are 1 here.
    pub(crate) fn new(hz: Hz, word: Word) -> Self {
        Self {
            hz,
            word,
            jiffy_ns: 1_000_000_000 / u64::from(hz.get()),
            max_sleep_avg: u64::from(timeslice(Nice::ZERO.prio().0, hz)) * MAX_BONUS,
            max_bonus: MAX_BONUS,
            child_penalty: CHILD_PENALTY,
        }
    }
    /// `task_timeslice(p)` of 2.6.6 at `nice` in jiffies, which bounds what a task of low credit
    /// earns.
    pub(crate) const fn task_timeslice(&self, nice: i32) -> u64 {
        timeslice((120 + nice) as u8, self.hz) as u64
    }
    /// `NS_MAX_SLEEP_AVG`.
    pub(crate) const fn ns_max_sleep_avg(&self) -> u64 {
        self.max_sleep_avg * self.jiffy_ns
    }
    /// `CURRENT_BONUS` of a task with this `sleep_avg` in ns, 0 to `max_bonus`.
    #[inline]
    pub(crate) const fn bonus(&self, sleep_avg: u64) -> u64 {
        sleep_avg / self.jiffy_ns * self.max_bonus / self.max_sleep_avg
    }
    /// `DELTA(p)` at `nice`.
    pub(crate) const fn delta(&self, nice: i32) -> i64 {
        delta(nice, self.max_bonus)
    }
    /// `INTERACTIVE_SLEEP(p)` at `nice` in ns (`JUST_INTERACTIVE_SLEEP` in 2.6.0).
    pub(crate) fn interactive_sleep(&self, nice: i32) -> u64 {
        // DELTA is at least −3 with the kernel's MAX_BONUS, so the sum is positive.
        let points = self.max_bonus as i64 / 2 + self.delta(nice) + 1;
        let jiffies = self.max_sleep_avg as i64 * points / (self.max_bonus as i64).max(1) - 1;
        u64::try_from(jiffies).unwrap_or(0) * self.jiffy_ns
    }
    /// `TIMESLICE_GRANULARITY(p)` at `bonus` in jiffies; `n_cpus` is 1 in a kernel for one CPU.
    pub(crate) const fn granularity(&self, bonus: u64, n_cpus: u64) -> u64 {
        let steps = if bonus < self.max_bonus { self.max_bonus - bonus } else { 1 };
        min_timeslice(self.hz) as u64 * (1 << (steps - 1)) * n_cpus
    }
    /// `JIFFIES_TO_NS(bonus · MAX_SLEEP_AVG / MAX_BONUS)`: the smallest average with that bonus.
    const fn of_bonus(&self, bonus: u64) -> u64 {
        if self.max_bonus == 0 {
            return 0;
        }
        bonus * self.max_sleep_avg / self.max_bonus * self.jiffy_ns
    }
    /// What a fork by a parent that had `sleep_avg` leaves to the parent, and what the child gets.
    ///
    /// Source: 2.6.6 `sched.c` `wake_up_forked_process`; spec linux-2.6-spa §4.1 fork step 3.
    pub(crate) const fn fork(&self, sleep_avg: u64) -> (u64, u64) {
        // PARENT_PENALTY is 100 %.
        let bonus = self.bonus(sleep_avg);
        (self.of_bonus(bonus), self.of_bonus(bonus * self.child_penalty / 100))
    }
}

/// How a task was woken, the kernel's `activated`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Activated {
    /// −1: from uninterruptible sleep.
    Uninterruptible,
    /// 0: nothing pending.
    #[default]
    No,
    /// 1: by a task.
    ByTask,
    /// 2: from an interrupt.
    ByInterrupt,
}

impl Activated {
    /// The kernel's number.
    pub(crate) const fn number(self) -> i64 {
        match self {
            Self::Uninterruptible => -1,
            Self::No => 0,
            Self::ByTask => 1,
            Self::ByInterrupt => 2,
        }
    }
}

/// What the formulas need to know of a task beside its [`SleepAvg`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// Nice value.
    pub(crate) nice: i32,
    /// Whether it has an address space.
    pub(crate) has_mm: bool,
}

/// A task's share of the interactivity code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SleepAvg {
    /// `sleep_avg` in ns.
    pub(crate) sleep_avg: u64,
    /// `interactive_credit`.
    pub(crate) interactive_credit: i64,
    /// When it was last switched in or out or woken, in ns.
    pub(crate) timestamp: u64,
    /// `activated`.
    pub(crate) activated: Activated,
}

impl SleepAvg {
    /// `HIGH_CREDIT(p)`.
    const fn high_credit(&self) -> bool {
        self.interactive_credit > CREDIT_LIMIT
    }
    /// `LOW_CREDIT(p)`.
    const fn low_credit(&self) -> bool {
        self.interactive_credit < -CREDIT_LIMIT
    }
    /// `CURRENT_BONUS(p)`, 0 to 10.
    #[inline]
    pub(crate) const fn bonus(&self, scale: &Scale) -> u64 {
        scale.bonus(self.sleep_avg)
    }
    fn earn_credit(&mut self) {
        if !self.high_credit() {
            self.interactive_credit += 1;
        }
    }

    /// `recalc_task_prio` up to the priority: counts the time from `timestamp` to `until` as sleep.
    ///
    /// Source: 2.6.6 `sched.c` `recalc_task_prio`; spec linux-2.6-spa §4.1 recalc.
    pub(crate) fn recalc(&mut self, scale: &Scale, facts: Facts, until: u64) {
        let max = scale.ns_max_sleep_avg();
        // Differences of clocks wrap in u64: a timestamp may lie ahead (spec linux-2.6-spa §6 Q6).
        let sleep_time = until.wrapping_sub(self.timestamp).min(max);
        if sleep_time == 0 {
            return;
        }
        let interactive_sleep = scale.interactive_sleep(facts.nice);
        let uninterruptible = self.activated == Activated::Uninterruptible;
        if facts.has_mm && !uninterruptible && sleep_time > interactive_sleep {
            let below_max = scale.max_sleep_avg.saturating_sub(scale.task_timeslice(0));
            self.sleep_avg = below_max * scale.jiffy_ns;
            self.earn_credit();
            return;
        }
        let factor = scale.max_bonus.saturating_sub(self.bonus(scale)).max(1);
        // unsigned long: wraps on 32 bits (spec linux-2.6-spa §6 Q5).
        let mut sleep_time = scale.word.wrap(sleep_time.wrapping_mul(factor));
        if self.low_credit() {
            let timeslice = scale.task_timeslice(facts.nice) * scale.jiffy_ns;
            sleep_time = sleep_time.min(timeslice);
        }
        if uninterruptible && !self.high_credit() && facts.has_mm {
            if self.sleep_avg >= interactive_sleep {
                sleep_time = 0;
            } else if scale.word.wrap(self.sleep_avg.wrapping_add(sleep_time)) >= interactive_sleep
            {
                self.sleep_avg = interactive_sleep;
                sleep_time = 0;
            }
        }
        self.sleep_avg = scale.word.wrap(self.sleep_avg.wrapping_add(sleep_time));
        if self.sleep_avg > max {
            self.sleep_avg = max;
            self.earn_credit();
        }
    }

    /// The instant up to which a wait that ends `now` counts as sleep: all of it, or, `weighted`,
    /// 30 % unless an interrupt woke the task.
    ///
    /// Source: 2.6.6 `sched.c` `schedule`; spec linux-2.6-spa §4.1 schedule step 5.
    pub(crate) fn end_of_wait(&self, now: u64, weighted: bool) -> u64 {
        if !weighted || self.activated != Activated::ByTask {
            return now;
        }
        let (part, whole) = ON_RUNQUEUE_WEIGHT;
        let wait = now.wrapping_sub(self.timestamp).wrapping_mul(part) / whole;
        self.timestamp.wrapping_add(wait)
    }

    /// Whether the wait since the wake-up is still to be credited, at the first pick.
    pub(crate) fn has_waited(&self) -> bool {
        matches!(self.activated, Activated::ByTask | Activated::ByInterrupt)
    }

    /// Credits the wait on the run queue since the wake-up, due when the task is picked; whether
    /// there was any to credit.
    ///
    /// Source: 2.6.6 `sched.c` `schedule`; spec linux-2.6-spa §4.1 schedule step 5.
    pub(crate) fn credit_wait(&mut self, scale: &Scale, facts: Facts, now: u64) -> bool {
        if self.has_waited() {
            self.recalc(scale, facts, self.end_of_wait(now, true));
        }
        self.has_waited()
    }

    /// Charges the time since `timestamp` to a task that passes through `schedule`.
    ///
    /// Source: 2.6.6 `sched.c` `schedule`; spec linux-2.6-spa §4.1 schedule steps 1 and 6.
    pub(crate) fn charge(&mut self, scale: &Scale, now: u64) {
        let mut run_time = now.wrapping_sub(self.timestamp).min(scale.ns_max_sleep_avg());
        if self.high_credit() {
            run_time /= self.bonus(scale).max(1);
        }
        // The kernel subtracts and looks at the sign; both operands are far below 2^31.
        self.sleep_avg = self.sleep_avg.saturating_sub(run_time);
        if self.sleep_avg == 0 && !self.high_credit() && !self.low_credit() {
            self.interactive_credit -= 1;
        }
        self.timestamp = now;
    }

    /// Quantises the averages of parent and new child at the child's first wake-up.
    ///
    /// Source: 2.6.6 `sched.c` `wake_up_forked_process`; spec linux-2.6-spa §4.1 fork step 3.
    pub(crate) fn fork(parent: &mut Self, child: &mut Self, scale: &Scale) {
        parent.sleep_avg = scale.fork(parent.sleep_avg).0;
        child.sleep_avg = scale.fork(child.sleep_avg).1;
        child.interactive_credit = 0;
    }
}
