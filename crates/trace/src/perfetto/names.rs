// SPDX-License-Identifier: GPL-2.0-only
//! Names of threads as the records of a trace tell them, followed alike by writer and reader.

use std::collections::BTreeMap;

use schedlab_policy_api::{CommId, Pid, RecordEvent, TraceRecord};

use crate::comms::each_name;

/// The last name seen of each thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Names(BTreeMap<Pid, CommId>);

impl Names {
    pub(super) fn get(&self, pid: Pid) -> Option<CommId> {
        self.0.get(&pid).copied()
    }
    /// Remembers the names that `record` tells.
    pub(super) fn learn(&mut self, record: &TraceRecord) {
        each_name(&record.event, |pid, name| {
            self.0.insert(pid, name);
        });
        // A new program's name is that of the record.
        if let RecordEvent::Exec { pid } = record.event {
            self.0.insert(pid, record.comm);
        }
    }
}
