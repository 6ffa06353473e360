// SPDX-License-Identifier: GPL-2.0-only
//! The table of thread names of a trace.

use std::collections::BTreeMap;

use schedlab_policy_api::{CommId, Pid, RecordEvent};

/// Thread names in order of first sight.
///
/// Names are bytes, because kernels cut them in the middle of characters; the table holds them as
/// text with replacement characters.
#[derive(Clone, Debug, Default)]
pub struct Comms {
    ids: BTreeMap<Vec<u8>, CommId>,
    names: Vec<String>,
}

impl Comms {
    /// A table in which each name has its place as its id.
    pub fn from_names(names: Vec<String>) -> Self {
        let ids = names.iter().zip(0..).map(|(name, id)| (name.clone().into_bytes(), CommId(id)));
        Self { ids: ids.collect(), names }
    }
    /// The id of `name`, a new one at first sight.
    ///
    /// # Panics
    /// Beyond 2^32 names.
    pub fn intern(&mut self, name: &[u8]) -> CommId {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let id = CommId(u32::try_from(self.names.len()).expect("fewer than 2^32 names"));
        self.names.push(String::from_utf8_lossy(name).into_owned());
        self.ids.insert(name.to_vec(), id);
        id
    }
    /// The name with this id.
    ///
    /// # Panics
    /// For an id of another table.
    pub fn name(&self, id: CommId) -> &str {
        &self.names[id.0 as usize]
    }
    /// How many names there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }
    /// The names by id.
    pub fn into_names(self) -> Vec<String> {
        self.names
    }
}

/// Calls `learn` with each thread that `event` names, and its name.
pub(crate) fn each_name(event: &RecordEvent, mut learn: impl FnMut(Pid, CommId)) {
    match *event {
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
        RecordEvent::Exec { .. } | RecordEvent::StatRuntime { .. } | RecordEvent::Lost { .. } => {}
    }
}
