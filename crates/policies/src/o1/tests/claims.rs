// SPDX-License-Identifier: GPL-2.0-only
//! Claims of spec linux-2.6-o1 §8 that need one or two tasks and no costs.

use alloc::vec::Vec;

use schedlab_units::{Nice, Rng, TaskId, Time};

use super::rig::{CPU0, MS, Rig, knobs};
use super::values::data;
use crate::o1::test1;

/// Period of the real-time clock's interrupt at 1024 Hz, as §7.4 has it.
const RTC: u64 = 976_563;

/// The player of §7.4 in mode *rtc*, alone on its CPU: 25 frames a second of 4 ms, between frames
/// 5 µs of work at each interrupt of the real-time clock.
struct Player {
    rig: Rig,
    task: TaskId,
    /// ns of work left; none = asleep.
    work: Option<u64>,
    next_frame: u64,
}

impl Player {
    fn new(variant: &str, start_percent: u64) -> Self {
        let mut rig = Rig::up(variant);
        let max = rig.core.policy().knobs.max_sleep_avg;
        let task = rig.task(max * start_percent / 100);
        rig.schedule(CPU0);
        Self { rig, task, work: Some(4 * MS), next_frame: 40 * MS }
    }

    /// The next tick, interrupt of the clock and end of the work, in this order at one instant.
    fn step(&mut self) {
        let now = self.rig.now.as_ns();
        let tick = (now / MS + 1) * MS;
        let rtc = (now / RTC + 1) * RTC;
        let end = self.work.map_or(u64::MAX, |work| now + work);
        let at = tick.min(rtc).min(end);
        self.work = self.work.map(|work| work - (at - now));
        if at == tick {
            self.rig.tick();
        }
        self.rig.now = Time::from_ns(at);
        if at == rtc && self.work.is_none() {
            self.rig.wake(self.task);
            self.work = Some(5_000);
        }
        if at == end {
            if at >= self.next_frame {
                self.next_frame += 40 * MS;
                self.work = Some(4 * MS);
            } else {
                self.rig.block(CPU0);
                self.work = None;
            }
        }
    }

    /// Milliseconds until `reached` holds for sleep average and priority, at most 120 s.
    fn ms_until(&mut self, reached: impl Fn(u64, i64) -> bool) -> u64 {
        loop {
            let sleep_avg = self.rig.figure(self.task, "sleep_avg") as u64;
            let now = self.rig.jiffies();
            if now >= 120_000 || reached(sleep_avg, self.rig.figure(self.task, "prio")) {
                return now;
            }
            self.step();
        }
    }
}

#[track_caller]
fn assert_near(found: u64, expected: u64, tolerance: u64) {
    assert!(found.abs_diff(expected) <= tolerance, "{found}, not {expected} ± {tolerance}");
}

/// The tick taken off each sleep makes a player that uses 10 % of the CPU look like a hog.
#[test]
fn claim_o1_01_minus_one_decides_what_a_player_is() {
    for (start, falls, rises) in [(50, 47_000, 6_400), (100, 94_000, 0), (0, 0, 12_800)] {
        let fallen = |sleep_avg, prio| sleep_avg == 0 && prio == 125;
        assert_near(Player::new("2.6.0-test1", start).ms_until(fallen), falls, 3_000);
        let risen = |sleep_avg, prio| sleep_avg == 10_000 && prio == 115;
        assert_near(Player::new("test1n", start).ms_until(risen), rises, 1_000);
    }
}

/// With the ns clock the player is interactive within three seconds from any start.
#[test]
fn claim_o1_02_ns_clock_knows_a_player() {
    for variant in ["g3", "g7"] {
        for start in [0, 50, 100] {
            let mut player = Player::new(variant, start);
            let max = player.rig.core.policy().knobs.max_sleep_avg;
            let ms = player.ms_until(|sleep_avg, prio| sleep_avg >= max / 10 * 9 && prio == 115);
            assert!(ms <= 3_000, "{variant} from {start} %: {ms} ms");
        }
    }
    let full =
        Player::new("g3", 0).ms_until(|sleep_avg, prio| sleep_avg > 1_990 * MS && prio == 115);
    assert_near(full, 2_600, 300);
}

/// Sleeps of random phase: the difference in jiffies is right on average, one less is not.
#[test]
fn claim_o1_03_difference_of_jiffies_is_the_better_estimate() {
    const N: u64 = 100_000;
    for length in [300_000, MS, 1_700_000, 5_000_000] {
        for (variant, mean) in [("test1n", length), ("2.6.0-test1", length.saturating_sub(MS))] {
            let (mut rng, knobs, mut total) = (Rng::stream(1, "phase", 0), knobs(variant), 0);
            for _ in 0..N {
                let start = 1_000 * MS + rng.below(MS);
                let mut task = data(Nice::ZERO);
                task.last_run = start / MS;
                test1::activate(&mut task, (start + length) / MS, &knobs);
                total += task.avg.sleep_avg;
            }
            assert_near(total * MS / N, mean, length / 100);
        }
    }
}

/// Any number of hogs switches as often; how long one waits is the sub-unit.
#[test]
fn claim_o1_06_o1_07_switches_and_waits_of_hogs() {
    for (variant, switches, longest) in
        [("2.6.0-test1", 98, 102), ("g3", 294, 52), ("g7", 490, 27), ("2.6.0", 98, 102)]
    {
        for n_hogs in [2, 4, 8] {
            let mut rig = Rig::up(variant);
            let tasks: Vec<TaskId> = (0..n_hogs).map(|_| rig.task(0)).collect();
            rig.schedule(CPU0);
            let stints = rig.stints(10_000, &tasks);
            assert_near(stints.len() as u64, switches, switches / 20 + 1);
            if n_hogs == 2 {
                assert!(stints.iter().all(|(_, ticks)| *ticks <= longest), "{variant}");
            }
        }
    }
}

/// A task that wakes at each tick and runs for 0.9 ms escapes the tick but not the ns clock.
#[test]
fn claim_o1_04_ticks_can_be_dodged() {
    const WORK: u64 = 900_000;
    for (variant, share, bonus) in
        [("2.6.0-test1", 900, 0), ("test1n", 900, 5), ("g3", 500, -5), ("g7", 500, -5)]
    {
        let mut rig = Rig::up(variant);
        let max = rig.core.policy().knobs.max_sleep_avg;
        let dodger = rig.task(max / 2);
        rig.schedule(CPU0);
        rig.task(0);
        let (mut asleep, mut left, mut ran, mut ran_early) = (false, WORK, 0, 0);
        for ms in 0..60_000 {
            if rig.core.curr(CPU0) == Some(dodger) {
                let span = left.min(MS);
                ran += span;
                left -= span;
                rig.now = Time::from_ns(rig.now.as_ns() + span);
                if left == 0 {
                    rig.block(CPU0);
                    (asleep, left) = (true, WORK);
                }
            }
            if ms == 10_000 {
                ran_early = ran;
            }
            rig.tick();
            if asleep {
                rig.wake(dodger);
                asleep = false;
            }
        }
        assert_near((ran - ran_early) / (50 * MS), share, 30);
        assert_eq!(rig.figure(dodger, "bonus"), bonus, "{variant}");
    }
}
