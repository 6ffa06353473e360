// SPDX-License-Identifier: GPL-2.0-only
//! A stable hash of what a workload does.

use std::fmt;
use std::hash::Hasher as _;

use schedlab_policy_api::Fingerprint;

use crate::ir::Workload;
use crate::toml::to_toml;

/// Hash of what a workload does: tasks, programs, objects and duration.
///
/// Names of the workload and of its parameters, descriptions and notes do not count, so the digest
/// survives a renamed file and a round trip through [`to_toml`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub u64);

impl fmt::Display for Digest {
    /// Sixteen hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The digest of a workload that [`crate::validate()`] accepts.
pub fn digest(workload: &Workload) -> Digest {
    let mut hash = Fingerprint::default();
    let acts = Workload {
        tasks: workload.tasks.clone(),
        programs: workload.programs.clone(),
        objects: workload.objects.clone(),
        marks: workload.marks.clone(),
        family_streams: workload.family_streams,
        duration: workload.duration,
        ..Workload::default()
    };
    hash.write(to_toml(&acts).as_bytes());
    Digest(hash.finish())
}
