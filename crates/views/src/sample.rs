// SPDX-License-Identifier: GPL-2.0-only
//! Which records a view shows.

use std::collections::BTreeSet;

use schedlab_policy_api::Pid;
use schedlab_units::{CpuId, Time};

use crate::names::Names;

/// A choice of threads, CPUs and times; empty sets choose all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Choice {
    pub(crate) processes: BTreeSet<u32>,
    pub(crate) threads: BTreeSet<u32>,
    pub(crate) cpus: BTreeSet<u32>,
    pub(crate) start: Option<Time>,
    pub(crate) stop: Option<Time>,
}

impl Choice {
    /// Whether a thread is shown. One whose process the trace does not tell is its own.
    pub(crate) fn thread(&self, pid: Pid, names: &Names) -> bool {
        let process = || names.process_of(pid).unwrap_or(pid).0;
        (self.threads.is_empty() || self.threads.contains(&pid.0))
            && (self.processes.is_empty() || self.processes.contains(&process()))
    }
    pub(crate) fn cpu(&self, cpu: CpuId) -> bool {
        self.cpus.is_empty() || self.cpus.contains(&cpu.0)
    }
    pub(crate) fn time(&self, time: Time) -> bool {
        self.start.is_none_or(|start| time >= start) && self.stop.is_none_or(|stop| time <= stop)
    }
}
