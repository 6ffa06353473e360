// SPDX-License-Identifier: GPL-2.0-only
//! Computing for a length of CPU time or of wall time.
//!
//! The thread's own CPU clock decides when a length is over, so the host's speed and other threads
//! do not matter. Reading that clock is a system call; in between the loop turns on the spot for
//! half of what it believes is left, so that it never runs far beyond its length.

use std::hint::spin_loop;
use std::sync::OnceLock;

use schedlab_units::{Nanos, Time};

use crate::calls::{cpu_time, now};

/// CPU time between two looks at the clock, at most.
const LOOK: Nanos = Nanos::from_us(200);
/// What is left when turning on the spot is no longer worth it.
const CLOSE: Nanos = Nanos::from_us(1);

/// Turns of the loop in a millisecond of CPU time.
fn turns_per_ms() -> u64 {
    static TURNS: OnceLock<u64> = OnceLock::new();
    *TURNS.get_or_init(|| {
        let mut best = 1;
        for _ in 0..5 {
            let turns = 20_000;
            let since = cpu_time();
            turn(turns);
            let took = cpu_time().saturating_sub(since).as_ns().max(1);
            best = best.max(turns * 1_000_000 / took);
        }
        best
    })
}

fn turn(turns: u64) {
    for _ in 0..turns {
        spin_loop();
    }
}

/// Measures the loop; to be called once before a play.
pub(crate) fn calibrate() {
    turns_per_ms();
}

/// Uses `length` of the calling thread's CPU time; `Nanos::MAX` = for ever. Ends early when `ended`
/// says so, and tells whether it did.
pub(crate) fn burn(length: Nanos, ended: impl Fn() -> bool) -> bool {
    let target = cpu_time().saturating_add(length);
    loop {
        let left = target.saturating_sub(cpu_time());
        if left.is_zero() {
            return false;
        }
        if ended() {
            return true;
        }
        if left > CLOSE {
            let turns = left.min(LOOK).as_ns() / 2;
            turn((turns * turns_per_ms() / 1_000_000).max(1));
        }
    }
}

/// Turns until the wall clock shows `until`; ends early when `ended` says so.
pub(crate) fn spin_until(until: Time, ended: impl Fn() -> bool) -> bool {
    while now() < until {
        if ended() {
            return true;
        }
        spin_loop();
    }
    false
}
