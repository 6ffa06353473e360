// SPDX-License-Identifier: GPL-2.0-only
//! What an import found, in numbers and sentences.

use std::fmt;

use schedlab_units::Nanos;

/// Numbers about an import; [`fmt::Display`] prints them all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImportSummary {
    /// Length of the recording.
    pub span: Nanos,
    /// CPUs of the recorded system that were seen.
    pub n_cpus: usize,
    /// Threads that became tasks, in order of appearance.
    pub threads: Vec<ThreadSummary>,
    /// Threads that did not.
    pub dropped: Dropped,
    /// Wake-ups of the tasks, by cause.
    pub wakes: WakeCounts,
    /// Pairs of waker and woken task.
    pub n_pairs: usize,
    /// Forks, execs and exits replayed.
    pub n_forks: u64,
    /// See `n_forks`.
    pub n_execs: u64,
    /// See `n_forks`.
    pub n_exits: u64,
    /// Whether switches are missing although nothing was lost: the recording was filtered.
    pub filtered: bool,
    /// Notices of lost events.
    pub losses: u64,
    /// By CPU: in how many stretches, and for how long, it is not known what ran there.
    pub unknown_cpu: Vec<(u64, Nanos)>,
    /// Sentences about what was approximated; the workload's notes hold them too.
    pub notes: Vec<String>,
}

/// One imported thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ThreadSummary {
    /// Name of the task.
    pub name: String,
    /// Its pid.
    pub pid: u32,
    /// All its CPU time.
    pub cpu_time: Nanos,
    /// Of that, told by `sched_stat_runtime`.
    pub by_stat: Nanos,
    /// Of that, taken from switches.
    pub by_span: Nanos,
    /// Part of `by_span` in which, by the filter, others may have run too.
    pub assumed: Nanos,
    /// Part of `by_span` whose beginning or end is missing, so that it is a lower bound.
    pub at_least: Nanos,
    /// Its wake-ups by cause.
    pub wakes: WakeCounts,
    /// Unknown periods: the thread ran, slept or waited, nobody knows. Replayed as sleeps.
    pub n_gaps: u64,
    /// Their length.
    pub gaps: Nanos,
}

/// Wake-ups by cause; every one ended a sleep, but for the early ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WakeCounts {
    /// By another task: replayed as a wait for its post.
    pub by_task: u64,
    /// By another task before the sleep had begun: replayed like `by_task`.
    pub early: u64,
    /// By an interrupt: replayed as a sleep of the recorded length.
    pub by_interrupt: u64,
    /// By a timer, judged by regularity: replayed like `by_interrupt`.
    pub by_timer: u64,
    /// By an interrupt, judged by the name of the woken kernel thread: likewise.
    pub housekeeping: u64,
    /// Uninterruptible sleeps ended by a device: replayed as a wait for a disk.
    pub by_device: u64,
    /// By a thread that is not imported: replayed as a sleep of the recorded length.
    pub by_dropped: u64,
    /// Not recorded: replayed as a sleep until the thread was seen again.
    pub unseen: u64,
    /// Uninterruptible sleeps among `by_task`, replayed as interruptible ones.
    pub uninterruptible_by_task: u64,
}

impl WakeCounts {
    pub(super) fn add(&mut self, other: &Self) {
        let Self {
            by_task,
            early,
            by_interrupt,
            by_timer,
            housekeeping,
            by_device,
            by_dropped,
            unseen,
            uninterruptible_by_task,
        } = other;
        self.by_task += by_task;
        self.early += early;
        self.by_interrupt += by_interrupt;
        self.by_timer += by_timer;
        self.housekeeping += housekeeping;
        self.by_device += by_device;
        self.by_dropped += by_dropped;
        self.unseen += unseen;
        self.uninterruptible_by_task += uninterruptible_by_task;
    }
}

impl fmt::Display for WakeCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        for (n, what) in [
            (self.by_task, "by a task"),
            (self.early, "early by a task"),
            (self.by_interrupt, "by an interrupt"),
            (self.by_timer, "by a timer"),
            (self.housekeeping, "housekeeping"),
            (self.by_device, "by a device"),
            (self.by_dropped, "by a dropped thread"),
            (self.unseen, "unseen"),
        ] {
            if n > 0 {
                parts.push(format!("{n} {what}"));
            }
        }
        f.write_str(if parts.is_empty() { "none" } else { "" })?;
        f.write_str(&parts.join(", "))
    }
}

/// Threads that did not become tasks, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Not asked for by [`super::ImportOptions::only`].
    pub not_asked: usize,
    /// Kernel threads, if they were unwanted.
    pub kernel: usize,
    /// The recording program, if it was unwanted.
    pub recorder: usize,
    /// Never seen to come to a CPU, or nothing of what they did there is known.
    pub nothing_known: usize,
}

impl fmt::Display for ImportSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total: Nanos = self.threads.iter().map(|t| t.cpu_time).sum();
        writeln!(
            f,
            "{} tasks with {total} of CPU time in {} on {} CPUs",
            self.threads.len(),
            self.span,
            self.n_cpus
        )?;
        writeln!(f, "wake-ups: {}; {} pairs of waker and woken", self.wakes, self.n_pairs)?;
        writeln!(f, "forks {}, execs {}, exits {}", self.n_forks, self.n_execs, self.n_exits)?;
        let Dropped { not_asked, kernel, recorder, nothing_known } = self.dropped;
        for (n, why) in [
            (not_asked, "not asked for"),
            (kernel, "kernel threads"),
            (recorder, "the recording program"),
            (nothing_known, "nothing known of what they did"),
        ] {
            if n > 0 {
                writeln!(f, "threads left out: {n} ({why})")?;
            }
        }
        for (cpu, (n, time)) in self.unknown_cpu.iter().enumerate().filter(|(_, (n, _))| *n > 0) {
            writeln!(f, "CPU {cpu}: not known what ran in {n} stretches, {time} in all")?;
        }
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        for thread in &self.threads {
            writeln!(f, "{thread}")?;
        }
        Ok(())
    }
}

impl fmt::Display for ThreadSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} of CPU time", self.name, self.cpu_time)?;
        for (time, what) in [
            (self.by_span, "from switches"),
            (self.assumed, "perhaps shared with others"),
            (self.at_least, "a lower bound"),
        ] {
            if !time.is_zero() {
                write!(f, " ({time} {what})")?;
            }
        }
        write!(f, "; wake-ups: {}", self.wakes)?;
        if self.n_gaps > 0 {
            write!(f, "; unknown {} times, {} in all", self.n_gaps, self.gaps)?;
        }
        Ok(())
    }
}
