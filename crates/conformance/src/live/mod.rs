// SPDX-License-Identifier: GPL-2.0-only
//! A kernel for the host of live runs: a small simulated one with a relay of its own.
//!
//! The relay here is written a second time after the rules of `bpf/relay.bpf.c`, callback by
//! callback. Around it are tasks with random programs, CPUs that other classes take, kicks that
//! come late, ticks, changes of tasks and CPUs; and time passes while the host decides. What the
//! host does is checked against what it has been told so far.

mod callbacks;
mod changes;
mod drive;
mod kept;
mod ledger;
mod machine;
mod programs;
mod records;
mod relay;
mod sched;
mod side;

use schedlab_units::Nanos;

pub use drive::{LiveRun, run_live};
pub use machine::FakeKernel;

/// What happens in the simulated kernel.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Of everything random.
    pub seed: u64,
    /// CPUs of the machine.
    pub n_cpus: usize,
    /// How many of them, the last ones, are not the policy's.
    pub spared_cpus: usize,
    /// Tasks at the start.
    pub n_tasks: usize,
    /// How long tasks work; then they go to sleep one after the other.
    pub length: Nanos,
    /// Records that the ring holds.
    pub ring: usize,
    /// Whether every normal task is the policy's, kernel threads among them.
    pub whole_system: bool,
    /// Whether tasks of other classes take CPUs.
    pub others: bool,
    /// Whether nice values and classes change.
    pub changes: bool,
    /// Whether affinities change and migration is disabled.
    pub affinity: bool,
    /// Whether tunables of the policy change.
    pub retunes: bool,
    /// Whether CPUs go and come back.
    pub hotplug: bool,
    /// Longest time in ns until the host looks after it was woken.
    pub latency_ns: u64,
    /// Percent of the times in which the host runs on a CPU of the machine.
    pub host_on_cpu: u64,
}

impl Scenario {
    /// Whether the ring may overflow: it holds fewer records than tasks can have pending.
    pub fn is_lossy(&self) -> bool {
        self.ring < 4096
    }
}

/// How the relay works, as far as the policy decides it.
#[derive(Clone, Copy, Debug)]
pub struct Relaying {
    /// A waiting task is of interest only to a waiting CPU.
    pub quiet_enqueue: bool,
    /// An idle CPU takes a woken task without asking.
    pub idle_dispatch: bool,
    /// Such a run sends ticks.
    pub direct_ticks: bool,
}
