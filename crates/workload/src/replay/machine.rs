// SPDX-License-Identifier: GPL-2.0-only
//! What the CPUs of a recording were known to do, and for how long that is not known.

use schedlab_policy_api::{RecordEvent, Recording};
use schedlab_units::{CpuId, Time};

use super::model::ThreadId;

/// Who is current on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Occupant {
    /// Not known.
    Unknown,
    /// The idle task.
    Idle,
    /// A thread.
    Thread(ThreadId),
}

/// One CPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cpu {
    pub(super) current: Occupant,
    /// When the occupant was last certain.
    pub(super) seen: Option<Time>,
    /// Stretches in which the occupant changed without a record.
    pub(super) n_unknown: u64,
    /// Their length, ns.
    pub(super) unknown_ns: u64,
}

impl Cpu {
    pub(super) const NEW: Self =
        Self { current: Occupant::Unknown, seen: None, n_unknown: 0, unknown_ns: 0 };

    /// The occupant turned out to have changed unseen since it was last certain.
    pub(super) fn changed_unseen(&mut self, now: Time) {
        if let Some(seen) = self.seen {
            self.n_unknown += 1;
            self.unknown_ns += now.saturating_since(seen).as_ns();
        }
    }
}

/// Whether switches are missing although nothing was lost, so that a filter must have been at work:
/// on some CPU a thread leaves that had not come.
pub(super) fn is_filtered(recording: &Recording) -> bool {
    let mut next_of = vec![None; recording.n_cpus as usize];
    for record in &recording.records {
        let Some(last) = next_of.get_mut(record.cpu.index()) else { continue };
        match record.event {
            RecordEvent::Switch { prev, next, .. } => {
                if last.is_some_and(|last| last != prev) {
                    return true;
                }
                *last = Some(next);
            }
            RecordEvent::Lost { .. } => *last = None,
            _ => {}
        }
    }
    false
}

/// Number of CPUs a recording needs, whatever it claims.
pub(super) fn n_cpus(recording: &Recording) -> usize {
    let highest = recording.records.iter().map(|r| r.cpu).max().unwrap_or(CpuId(0));
    (recording.n_cpus as usize).max(highest.index() + 1)
}
