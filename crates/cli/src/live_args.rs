// SPDX-License-Identifier: GPL-2.0-only
//! Arguments of `live`, `probe` and `top`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use schedlab_lab::spec::PolicySpec;
use schedlab_report::OUTPUTS;
use schedlab_units::{CpuSet, Nanos};

use crate::args::{duration, formats, interval, key_value};

#[derive(Args, Debug)]
#[command(after_help = "\
Ends with the exit code of COMMAND.
Example: schedlab live -p bfs@0.357-depth -- make -j4")]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct LiveArgs {
    #[command(subcommand)]
    pub(crate) control: Option<LiveControl>,
    /// Policy, as `NAME[@VARIANT][:KEY=VALUE,…]`
    #[arg(long, short, value_name = "SPEC", required = true, value_parser = PolicySpec::parse)]
    pub(crate) policy: Option<PolicySpec>,
    /// Which tasks the policy gets: those of COMMAND, or every normal task of the system
    #[arg(long, value_name = "SCOPE", default_value = "workload", value_enum)]
    pub(crate) scope: ScopeArg,
    /// Uses these CPUs only, such as 0-3,8
    #[arg(long, value_name = "LIST", value_parser = CpuSet::parse)]
    pub(crate) cpus: Option<CpuSet>,
    /// The host polls on the first CPU, which the policy then does not use
    #[arg(long)]
    pub(crate) poll: bool,
    /// Idle CPUs take woken tasks without asking, under policies that agree (fifo, rr); faster, but
    /// about one busy run in five still stalls until the kernel ends it
    #[arg(long)]
    pub(crate) direct: bool,
    /// How long the host looks for more to do before it sleeps
    #[arg(long, value_name = "TIME", default_value = "0ns", value_parser = duration)]
    pub(crate) linger: Nanos,
    /// The kernel's own scheduler takes over when the host is silent for this long
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    pub(crate) silence: Nanos,
    /// Tells on standard error what host and relay believe when nothing happens for 100 ms
    #[arg(long)]
    pub(crate) explain: bool,
    /// Makes a fault on purpose, to try the safety nets: hang=TIME or panic=TIME
    #[arg(long, value_name = "FAULT", hide = true)]
    pub(crate) fault: Option<String>,
    /// Keeps what the kernel reported and what was decided, for `diff`, `import`, `view` and `export`
    #[arg(long, value_name = "FILE")]
    pub(crate) transcript: Option<PathBuf>,
    /// Where `live status`, `live set` and `top` find this run
    #[arg(long, value_name = "PATH", default_value = schedlab_live::control::SOCKET)]
    pub(crate) socket: PathBuf,
    /// Form of the results
    #[arg(long, value_name = "FORM", default_value = OUTPUTS[0].name(), value_parser = formats())]
    pub(crate) format: String,
    /// Where the results go instead of standard error
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<String>,
    /// Command to run under the policy, with all it starts
    #[arg(last = true, value_name = "COMMAND", required = true)]
    pub(crate) command: Vec<OsString>,
}

/// What one can do with a live run from outside.
#[derive(Debug, Subcommand)]
pub(crate) enum LiveControl {
    /// Shows what runs live on this host: policy, scope, counters, tunables
    Status {
        /// Form of the answer
        #[arg(long, value_name = "FORM", default_value = "text", value_parser = ["text", "json"])]
        format: String,
        /// Control socket of the live run
        #[arg(long, value_name = "PATH", default_value = schedlab_live::control::SOCKET)]
        socket: PathBuf,
    },
    /// Changes tunables of the policy that runs live, as a sysctl does
    Set {
        /// What to change
        #[arg(value_name = "KEY=VALUE", required = true, value_parser = key_value)]
        pairs: Vec<(String, String)>,
        /// Control socket of the live run
        #[arg(long, value_name = "PATH", default_value = schedlab_live::control::SOCKET)]
        socket: PathBuf,
    },
}

/// Value of `--scope`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ScopeArg {
    Workload,
    System,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Exit code 4 when policies cannot be run live here; the reason stands on standard error.")]
pub(crate) struct ProbeArgs {
    /// Form of the answer
    #[arg(long, value_name = "FORM", default_value = "text", value_parser = ["text", "json"])]
    pub(crate) format: String,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Ends at ^C, or with the live run. %RUN and %WAIT are shares of the time since the table before; of \
the first table of the time since the policy took over.")]
pub(crate) struct TopArgs {
    /// Prints one table and ends
    #[arg(long)]
    pub(crate) once: bool,
    /// Time between two tables, such as 500ms or 2s
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval, allow_hyphen_values = true)]
    pub(crate) interval: Nanos,
    /// Which tasks come first: those that run most, those of the best priority, or those that wait
    /// most
    #[arg(long, value_name = "BY", default_value = "cpu")]
    pub(crate) sort: SortArg,
    /// Control socket of the live run
    #[arg(long, value_name = "PATH", default_value = schedlab_live::control::SOCKET)]
    pub(crate) socket: PathBuf,
}

/// Value of `--sort`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SortArg {
    Cpu,
    Prio,
    Wait,
}
