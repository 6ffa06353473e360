// SPDX-License-Identifier: GPL-2.0-only
//! The sentences an import leaves with a workload.

use schedlab_units::Nanos;

use super::model::Timeline;
use super::summary::{ImportSummary, ThreadSummary};

/// Odd priorities met.
#[derive(Debug, Default)]
pub(super) struct Prios {
    /// Below 0.
    pub(super) deadline: bool,
    /// 0 … 98.
    pub(super) real_time: bool,
    /// 99, or above 139.
    pub(super) out_of_range: bool,
}

/// What must be known before trusting results of the replay.
pub(super) fn notes(summary: &ImportSummary, line: &Timeline, prios: &Prios) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |n: u64, text: String| {
        if n > 0 {
            notes.push(text);
        }
    };
    note(
        u64::from(summary.filtered),
        "the recording was filtered: threads it does not show took CPU time that the replay does \
         not contain"
            .to_string(),
    );
    note(summary.losses, format!("events were lost {} times", summary.losses));
    let (n, time) = summary
        .unknown_cpu
        .iter()
        .fold((0, Nanos::ZERO), |(n, t), (m, u)| (n + m, t.saturating_add(*u)));
    note(n, format!("in {n} stretches, {time} in all, it is not known what ran on a CPU"));
    for thread in summary.threads.iter().filter(|t| t.n_gaps > 0) {
        let ThreadSummary { name, n_gaps, gaps, .. } = thread;
        note(1, format!("{name}: {n_gaps} unknown periods, {gaps} in all, are replayed as sleeps"));
    }
    let sum = |of: fn(&ThreadSummary) -> Nanos| -> Nanos { summary.threads.iter().map(of).sum() };
    for (time, what) in [
        (sum(|t| t.assumed), "may belong in part to threads the filter hides"),
        (sum(|t| t.at_least), "is a lower bound, because a switch is missing"),
    ] {
        note(time.as_ns(), format!("{time} of CPU time {what}"));
    }
    let wakes = &summary.wakes;
    for (n, what) in [
        (wakes.unseen, "wake-ups were not recorded: the sleep lasts until the thread ran again"),
        (wakes.by_timer, "sleeps are taken for timers because of their regularity"),
        (wakes.by_device, "uninterruptible sleeps are replayed as waits for a disk"),
        (
            wakes.uninterruptible_by_task,
            "uninterruptible sleeps are replayed as interruptible ones",
        ),
        (wakes.by_dropped, "wake-ups came from threads that are left out"),
        (
            line.oddities.early_interrupts,
            "wake-ups by interrupts came before their sleep, which is not replayed",
        ),
        (line.oddities.own_context, "wake-ups hit a thread about to sleep, which is not replayed"),
        (line.oddities.woken_twice, "wake-ups of threads already awake: ignored"),
    ] {
        note(n, format!("{n} {what}"));
    }
    for (met, text) in [
        (prios.real_time, "real-time threads are FIFO: recordings do not tell FIFO from RR"),
        (prios.deadline, "deadline threads are replayed as FIFO with priority 99"),
        (prios.out_of_range, "priorities outside the kernel's scale are replayed as nice 0"),
    ] {
        note(u64::from(met), text.to_string());
    }
    notes
}
