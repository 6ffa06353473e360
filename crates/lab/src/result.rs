// SPDX-License-Identifier: GPL-2.0-only
//! What came out of runs, as plain data. Reports read this and nothing else.

use schedlab_metrics::RunFigures;
use schedlab_policy_api::{Tunable, TunableValue};
use schedlab_units::Hz;
pub use schedlab_workload::ir::OwnTable;

/// A tunable and the value it had in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Declaration: name, unit, range.
    pub tunable: &'static Tunable,
    /// The value.
    pub value: TunableValue,
    /// Whether the user asked for it; false = the variant's own value.
    pub chosen: bool,
}

/// One policy on one workload with one seed.
#[derive(Clone, Debug, PartialEq)]
pub struct RunResult {
    /// Which of the compared policies this is, from 0; runs that differ only in the seed share it.
    pub column: usize,
    /// Policy.
    pub policy: String,
    /// Variant; empty for a policy without variants.
    pub variant: String,
    /// All tunables in order of declaration.
    pub settings: Vec<Setting>,
    /// Tick rate.
    pub hz: Hz,
    /// Seed.
    pub seed: u64,
    /// Hash of the event stream.
    pub fingerprint: u64,
    /// Number of events.
    pub events: u64,
    /// Whether the run came to its own end; false = interrupted, the figures reach that far.
    pub complete: bool,
    /// The figures.
    pub figures: RunFigures,
    /// Totals of the policy's own.
    pub policy_stats: Vec<(String, i64)>,
}

impl RunResult {
    /// The policy as a policy spec: name, variant, and the tunables that the user chose.
    pub fn spec(&self) -> String {
        let mut spec = self.policy.clone();
        if !self.variant.is_empty() {
            spec += "@";
            spec += &self.variant;
        }
        let chosen = self.settings.iter().filter(|setting| setting.chosen);
        for (index, setting) in chosen.enumerate() {
            spec.push(if index == 0 { ':' } else { ',' });
            spec += setting.tunable.name;
            spec.push('=');
            spec += &setting.tunable.show(setting.value);
        }
        spec
    }
}

/// Runs of one workload on one machine, side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The workload.
    pub workload: WorkloadInfo,
    /// The machine.
    pub machine: MachineInfo,
    /// All runs, by column and then by seed.
    pub runs: Vec<RunResult>,
    /// What it took; the only figures that differ from one repetition to the next.
    pub host: HostInfo,
}

/// What was run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkloadInfo {
    /// Name.
    pub name: String,
    /// One line: what it models.
    pub about: String,
    /// Hash of the workload as it was run, in hexadecimal.
    pub digest: String,
    /// Parameters with their values, in order of declaration.
    pub parameters: Vec<(String, String)>,
    /// The table that the modelled program prints.
    pub table: Option<OwnTable>,
    /// Facts a reader must know before trusting results.
    pub notes: Vec<String>,
}

/// What it was run on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineInfo {
    /// Number of CPUs.
    pub cpus: u32,
    /// NUMA nodes.
    pub nodes: u32,
    /// Last-level caches per node.
    pub llcs_per_node: u32,
    /// Cores per last-level cache.
    pub cores_per_llc: u32,
    /// Hardware threads per core.
    pub threads_per_core: u32,
    /// Name of the cost model.
    pub cost: String,
}

/// What the host needed for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostInfo {
    /// Wall-clock time of all runs in ns.
    pub wall_ns: u64,
    /// Simulated events per second of wall-clock time.
    pub events_per_s: u64,
}
