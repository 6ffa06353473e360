// SPDX-License-Identifier: GPL-2.0-only
//! Turns a recording of a system into a workload that keeps who woke whom.
//!
//! Every thread becomes a task that computes as long as it was recorded to compute. A sleep that
//! another thread ended becomes a wait for that thread's post, so that causes stay causes when a
//! policy orders things otherwise; a sleep that a timer or a device ended becomes a sleep of the
//! recorded length. Time for which the recording does not say what a thread did is counted and
//! reported, never taken for sleep or idleness without a word.
//! This module owns the rules, which `docs/import.md` lists; reading files is the `trace` crate's
//! job, and what the tasks do to each other in a run is the host's.

mod causes;
mod clock;
mod emit;
mod kernel_threads;
mod machine;
mod model;
mod notes;
mod presence;
mod summary;
mod timeline;
mod wakeups;

use schedlab_policy_api::Recording;
use schedlab_units::Located;

use crate::ir::Workload;
pub use summary::{Dropped, ImportSummary, ThreadSummary, WakeCounts};

/// What to import and how to judge doubtful cases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportOptions {
    /// Name of the workload.
    pub name: String,
    /// Where the recording comes from, for the workload's `origin`.
    pub origin: String,
    /// Only threads that had this name at some time, and all they forked; none = all.
    pub only: Option<String>,
    /// Whether kernel threads are kept.
    pub kernel_threads: bool,
    /// Whether the threads of the recording program are kept: those called `perf`, `perf-exec` or
    /// `trace-cmd` when the recording ends.
    pub recorder: bool,
    /// Whether regular sleeps are taken for timers although a thread was running where they ended.
    pub detect_timers: bool,
    /// Whether kernel threads that are bound to a CPU stay so; the replay then needs as many CPUs.
    pub affinity: bool,
}

impl Default for ImportOptions {
    /// Everything is kept, timers are detected.
    fn default() -> Self {
        Self {
            name: "recording".to_string(),
            origin: "a recording".to_string(),
            only: None,
            kernel_threads: true,
            recorder: true,
            detect_timers: true,
            affinity: true,
        }
    }
}

/// An imported recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Imported {
    /// The workload; its notes say what must be known before trusting results.
    pub workload: Workload,
    /// What was found, in numbers.
    pub summary: ImportSummary,
}

/// Turns `recording` into a workload.
///
/// # Errors
/// A recording that is longer than [`crate::MAX_DURATION_NS`] or claims CPU times that are; one of
/// which nothing is left to import.
///
/// *Complexity*: linear in the number of records, but for lookups among the threads.
pub fn import(recording: &Recording, options: &ImportOptions) -> Result<Imported, Located> {
    let timeline = timeline::build(recording)?;
    emit::emit(&timeline, recording, options)
}
