// SPDX-License-Identifier: GPL-2.0-only
//! Where versions of perf count differently.

use schedlab_policy_api::{RecordEvent, RecordedState};

/// The version of perf whose way of counting a view follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Perf {
    /// perf 6.1. Its `latency` knows `sched_wakeup` but not `sched_waking`, and it takes a thread
    /// preempted inside the kernel (`R+`) for one that sleeps.
    V6_1,
    /// perf 6.12: a wake-up is `sched_waking`, or `sched_wakeup` where no `sched_waking` was
    /// recorded, and `R+` is runnable.
    #[default]
    V6_12,
}

impl Perf {
    /// The letter that this version shows for a state.
    pub(crate) const fn letter(self, state: RecordedState) -> char {
        match (state, self) {
            (RecordedState::Preempted, Self::V6_1) => 'W',
            (RecordedState::Runnable | RecordedState::Preempted, _) => 'R',
            (RecordedState::Sleeping, _) => 'S',
            (RecordedState::Uninterruptible, _) => 'D',
            (RecordedState::Exited, _) => 'X',
        }
    }
}

/// Decides which of two events is the wake-up.
///
/// A kernel from 4.3 on emits `sched_waking` first, then `sched_wakeup` for the same wake-up. Once
/// the former has been seen, the latter says nothing new.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wakes {
    waking_seen: bool,
}

impl Wakes {
    /// Whether `event` is a wake-up to count, where both kinds of event count.
    pub(crate) fn counts(&mut self, event: &RecordEvent) -> bool {
        match event {
            RecordEvent::Waking { .. } => {
                self.waking_seen = true;
                true
            }
            RecordEvent::Wakeup { .. } => !self.waking_seen,
            RecordEvent::WakeupNew { .. } => true,
            _ => false,
        }
    }
}
