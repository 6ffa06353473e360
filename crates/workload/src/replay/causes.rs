// SPDX-License-Identifier: GPL-2.0-only
//! Which wake-ups are a thread's doing, and which only happened while it ran.
//!
//! A wake-up record names the thread that was running. That thread wrote to a pipe or released a
//! lock, or it was interrupted by a timer or a device that has nothing to do with it. Where the
//! trace does not tell the two apart, the rules here decide; `docs/import.md` states them.

use super::ImportOptions;
use std::collections::BTreeMap;

use super::kernel_threads::is_interrupt_driven;
use super::model::{Source, ThreadId, Timeline, Wake};

/// Why a sleep ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    /// It did not end within the recording.
    Open,
    /// It was not recorded.
    Unseen,
    /// A wake-up that came before the thread had left its CPU.
    Before,
    /// An interrupt: on an idle CPU, or where the trace says so.
    Interrupt,
    /// Another thread.
    Thread(ThreadId),
    /// A timer, by the regularity of the thread's sleeps.
    Timer,
    /// A device, because the sleep was uninterruptible and the running thread no child.
    Device,
    /// The kernel's housekeeping, by the name of the woken thread.
    Housekeeping,
}

/// Sleeps shorter than this are not tested for regularity: two threads that hand each other a byte
/// are regular too.
const MIN_TIMER_NS: u64 = 100_000;
/// So many sleeps must be comparable.
const MIN_TIMERS: usize = 8;
/// Lengths within 1/16 of the median count as equal: timers of 2 ms beside three busy loops on two
/// virtual CPUs, the recording host-timer, stay within 1/26.
const TOLERANCE: u64 = 16;

/// Names of threads, as far as causes depend on them.
pub(super) struct Names<'a> {
    /// Latest name by thread.
    pub(super) latest: Vec<&'a str>,
}

/// The cause of every wake-up, by [`super::model::WakeId`].
pub(super) fn judge(line: &Timeline, names: &Names<'_>, options: &ImportOptions) -> Vec<Cause> {
    let mut causes: Vec<Cause> =
        line.wakes.iter().map(|wake| first_judgement(line, names, wake)).collect();
    if options.detect_timers {
        detect_timers(line, &mut causes);
    }
    causes
}

fn first_judgement(line: &Timeline, names: &Names<'_>, wake: &Wake) -> Cause {
    match wake.source {
        Source::None => Cause::Open,
        Source::Unseen => Cause::Unseen,
        Source::Before => Cause::Before,
        Source::Interrupt => Cause::Interrupt,
        Source::Thread { waker, certain: true, .. } => Cause::Thread(waker),
        Source::Thread { .. } if is_interrupt_driven(names.latest[wake.wakee.index()]) => {
            Cause::Housekeeping
        }
        // A parent waits uninterruptibly for the child that borrowed its memory (vfork).
        Source::Thread { waker, .. }
            if wake.uninterruptible && line.threads[waker.index()].parent != Some(wake.wakee) =>
        {
            Cause::Device
        }
        Source::Thread { waker, .. } => Cause::Thread(waker),
    }
}

/// Finds threads that sleep by a timer although busy CPUs make other threads seem to wake them.
///
/// A timer expires on the CPU where its sleep began, since that CPU was not idle then; so a sleep
/// that ended anywhere else is no candidate. A thread whose candidates are mostly of one length, or
/// end at one distance from each other, sleeps by a timer. A thread that it wakes at least half as
/// often as that one wakes it is a partner, and believed to answer.
fn detect_timers(line: &Timeline, causes: &mut [Cause]) {
    let mut by_thread: Vec<Vec<usize>> = vec![Vec::new(); line.threads.len()];
    let mut n_wakes: BTreeMap<(ThreadId, ThreadId), u64> = BTreeMap::new();
    for (index, wake) in line.wakes.iter().enumerate() {
        if is_candidate(wake, causes[index]) {
            by_thread[wake.wakee.index()].push(index);
        }
        if let Cause::Thread(waker) = causes[index] {
            *n_wakes.entry((waker, wake.wakee)).or_default() += 1;
        }
    }
    let n = |waker, wakee| n_wakes.get(&(waker, wakee)).copied().unwrap_or(0);
    for candidates in by_thread.iter().filter(|c| c.len() >= MIN_TIMERS) {
        for index in regular_ones(line, candidates) {
            let Cause::Thread(waker) = causes[index] else { continue };
            let thread = line.wakes[index].wakee;
            if 2 * n(thread, waker) < n(waker, thread) {
                causes[index] = Cause::Timer;
            }
        }
    }
}

fn is_candidate(wake: &Wake, cause: Cause) -> bool {
    let local = match wake.source {
        Source::Thread { cpu, certain, .. } => cpu == wake.cpu && !certain,
        Source::Interrupt => true,
        Source::None | Source::Unseen | Source::Before => false,
    };
    let plain = matches!(cause, Cause::Thread(_) | Cause::Interrupt);
    local && plain && !wake.initial && !wake.uninterruptible && length(wake) >= MIN_TIMER_NS
}

fn length(wake: &Wake) -> u64 {
    wake.until.map_or(0, |until| until.saturating_since(wake.since).as_ns())
}

/// Those of `candidates` that are regular by the better of two measures; none when both fail for
/// more than a quarter.
fn regular_ones(line: &Timeline, candidates: &[usize]) -> Vec<usize> {
    let lengths: Vec<u64> = candidates.iter().map(|i| length(&line.wakes[*i])).collect();
    let end = |i: usize| line.wakes[i].until.map_or(0, |t| t.as_ns());
    // Between the ends of a sleep and of the one before; the first has none, and counts by length.
    let mut distances: Vec<u64> =
        candidates.windows(2).map(|w| end(w[1]).saturating_sub(end(w[0]))).collect();
    distances.insert(0, lengths[0]);
    let by_length = near_median(&lengths);
    let by_distance = near_median(&distances);
    let n = |near: &[bool]| near.iter().filter(|n| **n).count();
    let best = if n(&by_distance) > n(&by_length) { by_distance } else { by_length };
    if n(&best) * 4 < candidates.len() * 3 {
        return Vec::new();
    }
    candidates.iter().zip(&best).filter(|(_, near)| **near).map(|(i, _)| *i).collect()
}

fn near_median(values: &[u64]) -> Vec<bool> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let median = sorted[sorted.len() / 2];
    values.iter().map(|v| v.abs_diff(median) <= median / TOLERANCE).collect()
}
