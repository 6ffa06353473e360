// SPDX-License-Identifier: GPL-2.0-only
//! The command line: commands, flags, and what their values may look like.

use clap::builder::PossibleValuesParser;
use clap::{Args, Parser, Subcommand, ValueEnum};
use schedlab_lab::machine::{MachineError, parse_machine};
use schedlab_lab::spec::PolicySpec;
use schedlab_policy_api::Topology;
use schedlab_report::OUTPUTS;
use schedlab_units::{DurationError, Hz, Nanos};
use thiserror::Error;

use crate::host_args::{PlayArgs, RecordArgs};
use crate::live_args::{LiveArgs, ProbeArgs, TopArgs};

/// A workbench for CPU schedulers: historic and present Linux schedulers in one simulator.
#[derive(Debug, Parser)]
#[command(version, propagate_version = false, max_term_width = 100)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) common: Common,
}

const EXIT_CODES: &str = "\
Exit codes: 0 done; 1 a check failed; 2 wrong command line; 3 wrong input; 4 this host lacks \
something; 70 bug in schedlab; 130 interrupted, results so far are kept.";

/// Flags of every command.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Common {
    /// When to use colours; NO_COLOR is honoured
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    #[arg(help_heading = "Options of every command")]
    pub(crate) color: ColorArg,
    /// No progress bar and no warnings
    #[arg(long, short, global = true, help_heading = "Options of every command")]
    pub(crate) quiet: bool,
}

/// Value of `--color`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorArg {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Simulate a workload; two or more policies are compared side by side
    Run(Box<RunArgs>),
    /// Run the claims of five threads as checked experiments and judge them
    Claims(ClaimsArgs),
    /// List the policies, or show the variants and tunables of one
    Policies(NameArgs),
    /// List the built-in workloads, or show origin and parameters of one
    Workloads(NameArgs),
    /// Turn a recorded trace into a workload
    Import(ImportArgs),
    /// Play a workload as real processes and threads on this host, under the scheduler of its kernel
    Play(Box<PlayArgs>),
    /// Run a command under a policy on this kernel, through sched_ext
    Live(Box<LiveArgs>),
    /// Record what this host's scheduler does, through tracefs
    Record(RecordArgs),
    /// Tell what this host can do, and what is missing: live, record, play
    Probe(ProbeArgs),
    /// Show the tasks of a live run, again and again
    Top(TopArgs),
    /// Write a trace in another form
    Export(ExportArgs),
    /// Show where two recorded runs part, and their figures side by side
    Diff(DiffArgs),
    /// Show a trace as perf sched does: latency, timehist, map, or a summary
    #[command(disable_help_flag = true, override_usage = "schedlab view TRACE --as VIEW [OPTIONS]")]
    #[command(after_help = "`schedlab view --help` says more.")]
    View(ViewArgs),
}

/// Arguments of `view`, which [`crate::view_args`] reads.
#[derive(Args, Debug)]
pub(crate) struct ViewArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    pub(crate) words: Vec<String>,
}

/// Arguments of commands that list or show.
#[derive(Args, Debug)]
pub(crate) struct NameArgs {
    /// Which one to show
    pub(crate) name: Option<String>,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Example: schedlab run audio-vs-compile -p goodness -p eevdf@6.12:base_slice=1ms --seed 1..8")]
pub(crate) struct RunArgs {
    /// Built-in workload, .toml file, or .json file in rt-app's grammar; `-` reads standard input
    pub(crate) workload: String,
    /// Policy, as `NAME[@VARIANT][:KEY=VALUE,…]`; the first one is the base of the comparison
    #[arg(long = "policy", short, required = true, value_name = "SPEC")]
    #[arg(value_parser = PolicySpec::parse)]
    pub(crate) policies: Vec<PolicySpec>,
    /// CPU count, `nodes=2,llcs=1,cores=10,threads=2`, up, dual-core, smp4, smp8, ivb-ep, or a
    /// .toml file
    #[arg(long, short, value_name = "SPEC", default_value = "up", value_parser = machine)]
    pub(crate) machine: MachineArg,
    /// Tick rate instead of the policy's own
    #[arg(long, value_name = "N", value_parser = hz, allow_hyphen_values = true)]
    pub(crate) hz: Option<Hz>,
    /// Simulated time to run for, such as 500ms or 10s
    #[arg(long, short, value_name = "TIME", value_parser = length, allow_hyphen_values = true)]
    pub(crate) duration: Option<Nanos>,
    /// Simulated time at the beginning that is not measured
    #[arg(long, value_name = "TIME", default_value = "0ns", value_parser = duration, allow_hyphen_values = true)]
    pub(crate) warmup: Nanos,
    /// Seed of all random streams; `1..8` runs every seed from 1 to 8
    #[arg(long, value_name = "N", default_value = "1", value_parser = seeds, allow_hyphen_values = true)]
    pub(crate) seed: Seeds,
    /// Sets a parameter of the workload
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) set: Vec<(String, String)>,
    /// Reads .json files exactly as rt-app itself does, without its helper workgen
    #[arg(long)]
    pub(crate) rtapp_strict: bool,
    /// What the scheduler's actions cost: default, zero, or a .toml file
    #[arg(long, value_name = "NAME", default_value = "default")]
    pub(crate) cost: String,
    /// Form of the results
    #[arg(long, value_name = "FORM", default_value = OUTPUTS[0].name(), value_parser = formats())]
    pub(crate) format: String,
    /// Where the results go; `-` is standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<String>,
    /// Writes the events of the run: .pftrace (Perfetto) and .json (Chrome JSON) with values of
    /// the policy, .txt (ftrace text), .csv, .slt (native); several runs go into one .pftrace, each
    /// as a process with its CPUs
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<String>,
    /// Checks the invariants of core and policy at every step
    #[arg(long)]
    pub(crate) check: bool,
    /// Runs everything twice and compares
    #[arg(long)]
    pub(crate) twice: bool,
    /// Runs at the same time; 0 = one for each CPU of this host
    #[arg(long, short, value_name = "N", default_value_t = 0)]
    pub(crate) jobs: usize,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Example: schedlab claims bfs --quick; schedlab claims --explain o1/O1-08")]
pub(crate) struct ClaimsArgs {
    /// Which claims: ids such as bfs/C07, families such as bfs, threads such as 002; all without
    pub(crate) which: Vec<String>,
    /// Lists the claims without running anything
    #[arg(long, conflicts_with_all = ["explain", "pages"])]
    pub(crate) list: bool,
    /// Runs one claim and tells all about it
    #[arg(long, value_name = "ID", conflicts_with = "which")]
    pub(crate) explain: Option<String>,
    /// Reduced lengths with their own conditions
    #[arg(long)]
    pub(crate) quick: bool,
    /// Form of the results
    #[arg(long, value_name = "FORM", default_value = "text", value_parser = ["text", "json"])]
    pub(crate) format: String,
    /// Where the results go; `-` is standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<String>,
    /// Also writes a page for each thread, with pictures, into this folder
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["quick", "which", "explain"])]
    pub(crate) pages: Option<String>,
    /// Does not go on from an earlier call that was interrupted
    #[arg(long)]
    pub(crate) fresh: bool,
    /// Runs at the same time; 0 = one for each CPU of this host
    #[arg(long, short, value_name = "N", default_value_t = 0)]
    pub(crate) jobs: usize,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Example: schedlab export perf.data -o trace.pftrace; open it with ui.perfetto.dev")]
pub(crate) struct ExportArgs {
    /// perf.data, trace.dat, Perfetto trace, text of `perf script`, of tracefs or of `trace-cmd
    /// report`, .slt, or a transcript of `live`, also packed with gzip or zstd; `-` reads standard
    /// input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<String>,
    /// Where the trace goes: .pftrace (Perfetto), .json (Chrome JSON), .txt (ftrace text) or .csv;
    /// several traces go into one .pftrace, each as a process with its CPUs
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: String,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Example: schedlab run pingpong -p eevdf --trace a.slt; schedlab run pingpong -p cfs --trace b.slt; \
schedlab diff a.slt b.slt
Exit code 1 when the runs differ.")]
pub(crate) struct DiffArgs {
    /// A recorded run: .slt files of one workload are compared to the nanosecond, with the values
    /// of the policies where they part; traces of other forms by the order of names
    pub(crate) a: String,
    /// The other one; without it A is a transcript of `schedlab live`, which is replayed through its
    /// policy and compared with that
    pub(crate) b: Option<String>,
    /// Form of the results
    #[arg(long, value_name = "FORM", default_value = "text", value_parser = ["text", "json"])]
    pub(crate) format: String,
    /// Where the results go; `-` is standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct ImportArgs {
    /// perf.data, trace.dat, Perfetto trace, text of `perf script`, of tracefs or of `trace-cmd
    /// report`, .slt, or a transcript of `live`, also packed with gzip or zstd; `-` reads standard
    /// input
    pub(crate) file: String,
    /// Where the workload goes; `-` is standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: String,
    /// Keeps only threads that had this name at some time, and all they forked
    #[arg(long, value_name = "COMM")]
    pub(crate) only: Option<String>,
    /// Leaves out kernel threads
    #[arg(long)]
    pub(crate) no_kernel_threads: bool,
    /// Leaves out the recording program (perf, trace-cmd)
    #[arg(long)]
    pub(crate) no_recorder: bool,
    /// Takes no regular sleep for a timer while a thread was running where it ended
    #[arg(long)]
    pub(crate) no_detect_timers: bool,
    /// Lets kernel threads that are bound to a CPU run anywhere, so that a replay can have fewer
    #[arg(long)]
    pub(crate) no_affinity: bool,
    /// Replays the workload under the policy and machine of the recording, and shows recorded
    /// beside replayed figures of every thread
    #[arg(long)]
    pub(crate) replay: bool,
    /// Policy of the replay instead of the one that stands for the recorded kernel
    #[arg(long, short, value_name = "SPEC", requires = "replay", value_parser = PolicySpec::parse)]
    pub(crate) policy: Option<PolicySpec>,
    /// Machine of the replay instead of as many CPUs as were seen
    #[arg(long, short, value_name = "SPEC", requires = "replay", value_parser = machine)]
    pub(crate) machine: Option<MachineArg>,
    /// Tick rate of the replay instead of the policy's
    #[arg(long, value_name = "N", requires = "replay", value_parser = hz)]
    pub(crate) hz: Option<Hz>,
    /// Form of the replay's figures
    #[arg(long, value_name = "FORM", default_value = "text", value_parser = ["text", "json"])]
    pub(crate) format: String,
}

/// Value of `--machine`.
#[derive(Clone, Debug)]
pub(crate) enum MachineArg {
    /// Described on the command line.
    Topology(Box<Topology>),
    /// Described in this file.
    File(String),
}

fn machine(text: &str) -> Result<MachineArg, MachineError> {
    if text.ends_with(".toml") {
        return Ok(MachineArg::File(text.to_string()));
    }
    parse_machine(text).map(|topo| MachineArg::Topology(Box::new(topo)))
}

pub(crate) fn duration(text: &str) -> Result<Nanos, DurationError> {
    Nanos::parse(text)
}

/// The shortest time between two tables of `top`: each is work for the host thread.
const INTERVAL_MIN: Nanos = Nanos::from_ms(50);

pub(crate) fn interval(text: &str) -> Result<Nanos, String> {
    let interval = duration(text).map_err(|error| error.to_string())?;
    if interval < INTERVAL_MIN {
        return Err(format!("at least {INTERVAL_MIN}"));
    }
    Ok(interval)
}

pub(crate) fn length(text: &str) -> Result<Nanos, ValueError> {
    match Nanos::parse(text) {
        Ok(length) if length.is_zero() => Err(ValueError::NoLength),
        outcome => outcome.map_err(ValueError::Duration),
    }
}

/// Value of `--seed`: a range, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seeds {
    pub(crate) first: u64,
    pub(crate) last: u64,
}

/// More runs than anybody waits for.
const SEEDS_MAX: u64 = 100_000;

/// Why a value is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum ValueError {
    #[error("a tick rate is a number from 1 to 100000")]
    Hz,
    #[error("write a number, or a range such as `1..8`")]
    Seed,
    #[error("the range runs backwards")]
    Backwards,
    #[error("that is more than {SEEDS_MAX} seeds")]
    TooMany,
    #[error("write KEY=VALUE")]
    KeyValue,
    #[error("nothing happens in no time: give a length above zero, such as 500ms or 10s")]
    NoLength,
    #[error(transparent)]
    Duration(DurationError),
}

fn seeds(text: &str) -> Result<Seeds, ValueError> {
    let number = |text: &str| text.parse::<u64>().map_err(|_| ValueError::Seed);
    let (first, last) = match text.split_once("..") {
        Some((first, last)) => (number(first)?, number(last)?),
        None => (number(text)?, number(text)?),
    };
    match last.checked_sub(first) {
        None => Err(ValueError::Backwards),
        Some(more) if more >= SEEDS_MAX => Err(ValueError::TooMany),
        Some(_) => Ok(Seeds { first, last }),
    }
}

fn hz(text: &str) -> Result<Hz, ValueError> {
    let number = text.parse::<u32>().map_err(|_| ValueError::Hz)?;
    if (1..=100_000).contains(&number) { Ok(Hz::new(number)) } else { Err(ValueError::Hz) }
}

pub(crate) fn key_value(text: &str) -> Result<(String, String), ValueError> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_string(), value.to_string())),
        _ => Err(ValueError::KeyValue),
    }
}

pub(crate) fn formats() -> PossibleValuesParser {
    PossibleValuesParser::new(OUTPUTS.iter().map(|output| output.name()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn seeds_forms() {
        assert_eq!(seeds("7"), Ok(Seeds { first: 7, last: 7 }));
        assert_eq!(seeds("1..8"), Ok(Seeds { first: 1, last: 8 }));
        assert_eq!(seeds("8..1"), Err(ValueError::Backwards));
        assert_eq!(seeds("0..100000"), Err(ValueError::TooMany));
        assert_eq!(seeds("0..18446744073709551615"), Err(ValueError::TooMany));
        for text in ["", "..", "1..", "-1", "1...8", "one"] {
            assert_eq!(seeds(text), Err(ValueError::Seed), "{text}");
        }
    }
}
