// SPDX-License-Identifier: GPL-2.0-only
//! The table of task names of a recording.

use std::collections::BTreeMap;

use schedlab_policy_api::CommId;

/// Task names in order of first sight.
///
/// Names are bytes, because kernels cut them in the middle of characters; the table of the
/// recording holds them as text with replacement characters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Comms {
    ids: BTreeMap<Vec<u8>, CommId>,
    names: Vec<String>,
}

impl Comms {
    /// The id of `name`.
    pub(crate) fn intern(&mut self, name: &[u8]) -> CommId {
        if let Some(id) = self.ids.get(name) {
            return *id;
        }
        let id = CommId(u32::try_from(self.names.len()).expect("fewer than 2^32 names"));
        self.names.push(String::from_utf8_lossy(name).into_owned());
        self.ids.insert(name.to_vec(), id);
        id
    }
    /// The names by id.
    pub(crate) fn into_names(self) -> Vec<String> {
        self.names
    }
}
