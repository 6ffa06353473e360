// SPDX-License-Identifier: GPL-2.0-only
//! The interactivity code of 2.6.6: `sleep_avg`, the bonus read from it, and interactive credit.
//!
//! All quantities are `unsigned long` in the kernel: on i386 products and sums wrap at 2^32 ns
//! (spec linux-2.6-spa §6 Q5).

use schedlab_units::Hz;

/// Largest bonus in priority points, `MAX_BONUS`.
pub(super) const MAX_BONUS: u64 = 10;
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
pub(super) enum Word {
    /// i386.
    Bits32,
    /// 64-bit machines.
    Bits64,
}

impl Word {
    /// What an `unsigned long` keeps of `value`.
    #[inline]
    pub(super) const fn wrap(self, value: u64) -> u64 {
        match self {
            Self::Bits32 => value & 0xffff_ffff,
            Self::Bits64 => value,
        }
    }
}

/// The macros of `sched.c` at one HZ and word size.
///
/// Source: 2.6.6 `kernel/sched.c`; spec §2.1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    pub(super) word: Word,
    /// Nanoseconds per jiffy, `JIFFIES_TO_NS(1)`.
    jiffy_ns: u64,
    /// `MIN_TIMESLICE` in jiffies.
    min_timeslice: u64,
    /// `MAX_TIMESLICE` in jiffies.
    max_timeslice: u64,
    /// `AVG_TIMESLICE` in jiffies: `task_timeslice` of nice 0.
    avg_timeslice: u64,
    /// `MAX_SLEEP_AVG` in jiffies.
    max_sleep_avg: u64,
}

impl Scale {
    /// The macros at `hz`.
    ///
    /// Below HZ 100 the kernel's slices would be 0 jiffies and divide by zero; they are 1 here.
    pub(super) fn new(hz: Hz, word: Word) -> Self {
        let hz = u64::from(hz.get());
        let min_timeslice = (10 * hz / 1000).max(1);
        let max_timeslice = (200 * hz / 1000).max(1);
        let avg_timeslice = min_timeslice + (max_timeslice - min_timeslice) * 19 / 39;
        Self {
            word,
            jiffy_ns: 1_000_000_000 / hz,
            min_timeslice,
            max_timeslice,
            avg_timeslice,
            max_sleep_avg: avg_timeslice * MAX_BONUS,
        }
    }
    /// `task_timeslice(p)` of 2.6.6 at `nice` in jiffies; here it only bounds what a task of low
    /// credit earns.
    pub(super) const fn task_timeslice(&self, nice: i32) -> u64 {
        // 139 − static_prio levels above the lowest of 40.
        let levels = (19 - nice) as u64;
        self.min_timeslice + (self.max_timeslice - self.min_timeslice) * levels / 39
    }
    /// Nanoseconds per jiffy.
    pub(super) const fn jiffy_ns(&self) -> u64 {
        self.jiffy_ns
    }
    /// `NS_MAX_SLEEP_AVG`.
    pub(super) const fn ns_max_sleep_avg(&self) -> u64 {
        self.max_sleep_avg * self.jiffy_ns
    }
    /// `DELTA(p)` at `nice`, truncating towards zero.
    pub(super) const fn delta(nice: i32) -> i64 {
        nice as i64 * MAX_BONUS as i64 / 40 + INTERACTIVE_DELTA
    }
    /// `INTERACTIVE_SLEEP(p)` at `nice` in ns.
    pub(super) const fn interactive_sleep(&self, nice: i32) -> u64 {
        // DELTA is at least −3, so the sum is positive.
        let points = (MAX_BONUS as i64 / 2 + Self::delta(nice) + 1) as u64;
        (self.max_sleep_avg * points / MAX_BONUS).saturating_sub(1) * self.jiffy_ns
    }
    /// `TIMESLICE_GRANULARITY(p)` at `bonus` in jiffies; `n_cpus` is 1 in a kernel for one CPU.
    pub(super) const fn granularity(&self, bonus: u64, n_cpus: u64) -> u64 {
        let steps = if bonus < MAX_BONUS { MAX_BONUS - bonus } else { 1 };
        self.min_timeslice * (1 << (steps - 1)) * n_cpus
    }
    /// `JIFFIES_TO_NS(bonus · MAX_SLEEP_AVG / MAX_BONUS)`: the smallest average with that bonus.
    const fn of_bonus(&self, bonus: u64) -> u64 {
        bonus * self.max_sleep_avg / MAX_BONUS * self.jiffy_ns
    }
}

/// How a task was woken, the kernel's `activated`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Activated {
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
    pub(super) const fn number(self) -> i64 {
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
pub(super) struct Facts {
    /// Nice value.
    pub(super) nice: i32,
    /// Whether it has an address space.
    pub(super) has_mm: bool,
}

/// A task's share of the interactivity code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SleepAvg {
    /// `sleep_avg` in ns.
    pub(super) sleep_avg: u64,
    /// `interactive_credit`.
    pub(super) interactive_credit: i64,
    /// When it was last switched in or out or woken, in ns.
    pub(super) timestamp: u64,
    /// `activated`.
    pub(super) activated: Activated,
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
    pub(super) const fn bonus(&self, scale: &Scale) -> u64 {
        self.sleep_avg / scale.jiffy_ns * MAX_BONUS / scale.max_sleep_avg
    }
    fn earn_credit(&mut self) {
        if !self.high_credit() {
            self.interactive_credit += 1;
        }
    }

    /// `recalc_task_prio` up to the priority: counts the time from `timestamp` to `until` as sleep.
    ///
    /// Source: 2.6.6 `sched.c` `recalc_task_prio`; spec §4.1 recalc.
    pub(super) fn recalc(&mut self, scale: &Scale, facts: Facts, until: u64) {
        let max = scale.ns_max_sleep_avg();
        // Differences of clocks wrap in u64: a timestamp may lie ahead (spec §6 Q6).
        let sleep_time = until.wrapping_sub(self.timestamp).min(max);
        if sleep_time == 0 {
            return;
        }
        let interactive_sleep = scale.interactive_sleep(facts.nice);
        let uninterruptible = self.activated == Activated::Uninterruptible;
        if facts.has_mm && !uninterruptible && sleep_time > interactive_sleep {
            self.sleep_avg = (scale.max_sleep_avg - scale.avg_timeslice) * scale.jiffy_ns;
            self.earn_credit();
            return;
        }
        let factor = (MAX_BONUS - self.bonus(scale)).max(1);
        // unsigned long: wraps on 32 bits (spec §6 Q5).
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

    /// The credit for waiting on the run queue since the wake-up, due when the task is picked;
    /// whether there was any to compute.
    ///
    /// Source: 2.6.6 `sched.c` `schedule`; spec §4.1 schedule step 5.
    pub(super) fn credit_wait(&mut self, scale: &Scale, facts: Facts, now: u64) -> bool {
        let mut wait = now.wrapping_sub(self.timestamp);
        match self.activated {
            Activated::ByInterrupt => {}
            Activated::ByTask => {
                let (part, whole) = ON_RUNQUEUE_WEIGHT;
                wait = wait.wrapping_mul(part) / whole;
            }
            Activated::No | Activated::Uninterruptible => return false,
        }
        self.recalc(scale, facts, self.timestamp.wrapping_add(wait));
        true
    }

    /// Charges the time since `timestamp` to a task that passes through `schedule`.
    ///
    /// Source: 2.6.6 `sched.c` `schedule`; spec §4.1 schedule steps 1 and 6.
    pub(super) fn charge(&mut self, scale: &Scale, now: u64) {
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
    /// Source: 2.6.6 `sched.c` `wake_up_forked_process`; spec §4.1 fork step 3.
    pub(super) fn fork(parent: &mut Self, child: &mut Self, scale: &Scale) {
        // PARENT_PENALTY is 100 %.
        parent.sleep_avg = scale.of_bonus(parent.bonus(scale));
        child.sleep_avg = scale.of_bonus(child.bonus(scale) * CHILD_PENALTY / 100);
        child.interactive_credit = 0;
    }
}
