// SPDX-License-Identifier: GPL-2.0-only
//! A periodic duty as interbench keeps it: do some work in every period, measure how late it is,
//! and leave out periods that are over before they began.
//!
//! It owns the arithmetic, in whole microseconds as the program's clock has them; who computes,
//! sleeps and records is the affair of the host. Source: spec bfs §7.5, `periodic`.

use schedlab_units::{Nanos, Time};

/// What is to be done after a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Go on: work after the beginning, sleep after the end.
    GoOn,
    /// Jump: leave the work out, or go on without sleep.
    Jump,
}

/// What a step adds to the record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Bursts of work done.
    pub achieved: u64,
    /// Bursts of work left out.
    pub missed_burns: u64,
    /// Deadlines met.
    pub met: u64,
    /// Deadlines missed.
    pub missed: u64,
}

/// State of a periodic duty. All values are µs; the deadline counts from the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Period {
    deadline: u64,
    /// How much longer than asked for the last sleep took.
    overshoot: u64,
    /// How late the period began.
    latency: u64,
    /// Length of the periods that were missed.
    extra: u64,
    /// What was left of the period when its work ended.
    left: u64,
    /// When the sleep began.
    asleep_since: u64,
}

/// The program's clock.
const fn us(now: Time) -> u64 {
    now.as_ns() / 1000
}

const fn span_us(span: Nanos) -> u64 {
    span.as_ns() / 1000
}

impl Period {
    /// The deadline in µs.
    pub const fn deadline_us(&self) -> u64 {
        self.deadline
    }

    /// The deadline is now.
    pub const fn reset(&mut self, now: Time) {
        self.deadline = us(now);
        self.overshoot = 0;
    }

    /// Moves the deadline on.
    pub const fn shift(&mut self, by: Nanos) {
        self.deadline = self.deadline.saturating_add(span_us(by));
    }

    /// Before the work: how late is it, and has the whole period passed already? Then
    /// k = ⌊(now − D′) / interval⌋ + 1 periods after D′ = D + interval are missed with their work.
    pub fn begin(&mut self, now: Time, interval: Nanos) -> (Verdict, Counts) {
        let (now, interval) = (us(now), span_us(interval));
        self.latency = now.saturating_sub(self.deadline).saturating_sub(self.overshoot);
        self.extra = 0;
        let next = self.deadline.saturating_add(interval);
        if interval == 0 || now <= next {
            return (Verdict::GoOn, Counts::default());
        }
        self.deadline = next;
        let missed = self.miss(now, interval);
        self.left = self.deadline.saturating_sub(now);
        (Verdict::Jump, Counts { missed, missed_burns: missed, ..Counts::default() })
    }

    /// After the work: was it done within its period? A single missed period costs no work, more
    /// than one count with all of theirs.
    pub fn end(&mut self, now: Time, interval: Nanos) -> (Verdict, Counts) {
        let (now, interval) = (us(now), span_us(interval));
        let mut counts = Counts { achieved: 1, ..Counts::default() };
        self.deadline = self.deadline.saturating_add(interval);
        if self.deadline >= now {
            counts.met = 1;
        } else if interval > 0 {
            counts.missed = self.miss(now, interval);
            if counts.missed > 1 {
                counts.missed_burns = counts.missed;
            }
        } else {
            self.deadline = now;
            return (Verdict::Jump, counts);
        }
        self.left = self.deadline.saturating_sub(now);
        (Verdict::GoOn, counts)
    }

    /// Moves a deadline before `now` to the first one after it; the number of periods skipped.
    const fn miss(&mut self, now: u64, interval: u64) -> u64 {
        let missed = (now - self.deadline) / interval + 1;
        self.extra = missed.saturating_mul(interval);
        self.deadline = self.deadline.saturating_add(self.extra);
        missed
    }

    /// How long to sleep from `now` on.
    pub const fn sleep(&mut self, now: Time) -> Nanos {
        self.asleep_since = us(now);
        Nanos::from_us(self.left)
    }

    /// The sleep is over; what it took too long is not held against the next period.
    pub const fn slept(&mut self, now: Time) {
        self.overshoot = us(now).saturating_sub(self.asleep_since).saturating_sub(self.left);
    }

    /// Latency of the period in µs: how late it began, and the length of the periods missed.
    pub const fn sample_us(&self) -> u64 {
        self.latency.saturating_add(self.extra)
    }
}

#[cfg(test)]
mod tests {
    //! Rows of bfs §9: interbench's periods.
    use super::*;

    const AUDIO: Nanos = Nanos::from_us(50_000);

    fn at(us: u64) -> Time {
        Time::from_ns(us * 1000)
    }

    /// A duty whose deadline is at 100 000 µs.
    fn audio() -> Period {
        let mut period = Period::default();
        period.reset(at(100_000));
        period
    }

    #[test]
    fn vectors_47_audio_in_time() {
        let mut period = audio();
        assert_eq!(period.begin(at(100_000), AUDIO), (Verdict::GoOn, Counts::default()));
        let counts = Counts { achieved: 1, met: 1, ..Counts::default() };
        assert_eq!(period.end(at(102_500), AUDIO), (Verdict::GoOn, counts));
        assert_eq!(period.deadline_us(), 150_000);
        assert_eq!(period.sleep(at(102_500)), Nanos::from_us(47_500));
        assert_eq!(period.sample_us(), 0);
    }

    #[test]
    fn vectors_48_audio_missed_before_it_began() {
        let mut period = audio();
        let counts = Counts { missed: 1, missed_burns: 1, ..Counts::default() };
        assert_eq!(period.begin(at(160_000), AUDIO), (Verdict::Jump, counts));
        assert_eq!(period.deadline_us(), 200_000);
        assert_eq!(period.sleep(at(160_000)), Nanos::from_us(40_000));
        assert_eq!(period.sample_us(), 110_000);
    }

    #[test]
    fn vectors_49_audio_late_by_one_period() {
        let mut period = audio();
        assert_eq!(period.begin(at(148_500), AUDIO), (Verdict::GoOn, Counts::default()));
        let counts = Counts { achieved: 1, missed: 1, ..Counts::default() };
        assert_eq!(period.end(at(151_000), AUDIO), (Verdict::GoOn, counts));
        assert_eq!(period.deadline_us(), 200_000);
        assert_eq!(period.sample_us(), 98_500);
    }

    #[test]
    fn period_late_by_several_loses_their_work() {
        let mut period = audio();
        period.begin(at(100_000), AUDIO);
        let counts = Counts { achieved: 1, missed: 3, missed_burns: 3, ..Counts::default() };
        assert_eq!(period.end(at(260_000), AUDIO).1, counts);
        assert_eq!((period.deadline_us(), period.sample_us()), (300_000, 150_000));
    }

    #[test]
    fn period_without_interval_forgets_what_is_late() {
        let mut period = audio();
        assert_eq!(period.begin(at(900_000), Nanos::ZERO), (Verdict::GoOn, Counts::default()));
        let counts = Counts { achieved: 1, ..Counts::default() };
        assert_eq!(period.end(at(900_001), Nanos::ZERO), (Verdict::Jump, counts));
        assert_eq!((period.deadline_us(), period.sample_us()), (900_001, 800_000));
    }

    #[test]
    fn overshoot_of_the_sleep_is_not_latency() {
        let mut period = audio();
        period.begin(at(100_000), AUDIO);
        period.end(at(102_500), AUDIO);
        period.sleep(at(102_510));
        period.slept(at(150_090));
        // 80 µs too long: asked for 47 500, slept 47 580. The rest is latency.
        period.begin(at(150_100), AUDIO);
        assert_eq!(period.sample_us(), 20);
    }
}
