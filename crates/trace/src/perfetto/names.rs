// SPDX-License-Identifier: GPL-2.0-only
//! Names of threads as the records of a trace tell them, followed alike by writer and reader.

use std::collections::BTreeMap;

use schedlab_policy_api::{CommId, Pid, RecordEvent, TraceRecord};

/// The last name seen of each thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Names(BTreeMap<Pid, CommId>);

impl Names {
    pub(super) fn get(&self, pid: Pid) -> Option<CommId> {
        self.0.get(&pid).copied()
    }
    /// Remembers the names that `record` tells.
    pub(super) fn learn(&mut self, record: &TraceRecord) {
        let mut learn = |pid: Pid, name: CommId| {
            self.0.insert(pid, name);
        };
        match record.event {
            RecordEvent::Switch { prev, prev_comm, next, next_comm, .. } => {
                learn(prev, prev_comm);
                learn(next, next_comm);
            }
            RecordEvent::Waking { pid, comm, .. }
            | RecordEvent::Wakeup { pid, comm, .. }
            | RecordEvent::WakeupNew { pid, comm, .. }
            | RecordEvent::Migrate { pid, comm, .. }
            | RecordEvent::Exit { pid, comm, .. } => learn(pid, comm),
            RecordEvent::Fork { parent, parent_comm, child, child_comm } => {
                learn(parent, parent_comm);
                learn(child, child_comm);
            }
            RecordEvent::Exec { pid } => learn(pid, record.comm),
            RecordEvent::StatRuntime { .. } | RecordEvent::Lost { .. } => {}
        }
    }
}
