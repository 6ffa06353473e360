// SPDX-License-Identifier: GPL-2.0-only
//! Arguments of `play` and `record`, the commands about this host.

use clap::Args;
use schedlab_lab::spec::PolicySpec;
use schedlab_report::OUTPUTS;
use schedlab_units::{CpuSet, Nanos};

use crate::args::{formats, key_value, length};

#[derive(Args, Debug)]
#[command(after_help = "\
Example: schedlab play hogs --duration 5s --beside eevdf@6.12 --repeat 10")]
pub(crate) struct PlayArgs {
    /// Built-in workload, .toml file, or .json file in rt-app's grammar; `-` reads standard input
    pub(crate) workload: String,
    /// Also simulates the workload under this policy, on as many CPUs and with the tick rate of
    /// this host
    #[arg(long, value_name = "SPEC", value_parser = PolicySpec::parse)]
    pub(crate) beside: Vec<PolicySpec>,
    /// Also plays the workload under this policy, which runs live for that long
    #[arg(long, value_name = "SPEC", value_parser = PolicySpec::parse)]
    pub(crate) live: Vec<PolicySpec>,
    /// Plays on these CPUs only, such as 0-3,8
    #[arg(long, value_name = "LIST", value_parser = CpuSet::parse)]
    pub(crate) cpus: Option<CpuSet>,
    /// Time to play for, such as 500ms or 10s
    #[arg(long, short, value_name = "TIME", value_parser = length, allow_hyphen_values = true)]
    pub(crate) duration: Option<Nanos>,
    /// Plays this often, each time with the next seed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) repeat: u32,
    /// Seed of all random streams
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Sets a parameter of the workload
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) set: Vec<(String, String)>,
    /// Reads .json files exactly as rt-app itself does, without its helper workgen
    #[arg(long)]
    pub(crate) rtapp_strict: bool,
    /// Leaves out changes of class and nice value for which the rights are missing
    #[arg(long)]
    pub(crate) ignore_rights: bool,
    /// Uses the counts of /proc instead of tracepoints, as happens without rights to trace
    #[arg(long)]
    pub(crate) no_trace: bool,
    /// Size of the trace buffer of each CPU in KiB
    #[arg(long, value_name = "KIB", default_value_t = 16384)]
    pub(crate) buffer: u32,
    /// Form of the results
    #[arg(long, value_name = "FORM", default_value = OUTPUTS[0].name(), value_parser = formats())]
    pub(crate) format: String,
    /// Where the results go; `-` is standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<String>,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Ends with the exit code of COMMAND; without one at ^C or after the duration.
Example: schedlab record -o make.txt -- make -j4")]
pub(crate) struct RecordArgs {
    /// Where the recording goes; the extension says in which form
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: String,
    /// Ends after this time, such as 500ms or 10s
    #[arg(long, short, value_name = "TIME", value_parser = length, allow_hyphen_values = true)]
    pub(crate) duration: Option<Nanos>,
    /// Size of the trace buffer of each CPU in KiB
    #[arg(long, value_name = "KIB", default_value_t = 8192)]
    pub(crate) buffer: u32,
    /// Records the whole machine while COMMAND runs, not only its tree
    #[arg(long, requires = "command")]
    pub(crate) system: bool,
    /// Command to run and record with all it starts; without one the whole machine is recorded
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}
