// SPDX-License-Identifier: GPL-2.0-only
//! The command lines of `schedlab view`, one for each view.
//!
//! perf gives one letter different meanings in different views (`-s`, `-p`), so each view has a
//! command line of its own, chosen by `--as`.

use clap::error::ErrorKind;
use clap::{Args, CommandFactory, FromArgMatches, Parser, ValueEnum};
use schedlab_units::{CpuListError, CpuSet, Time};
use thiserror::Error;

use crate::args::Common;

/// Value of `--as`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ViewKind {
    /// CPU time and delays of every thread
    Latency,
    /// One row a switch, and sums by thread
    Timehist,
    /// One column a CPU, one code a thread
    Map,
    /// What the file holds, figures of every thread and CPU; also as JSON
    Summary,
}

/// What all views take.
#[derive(Args, Clone, Debug)]
pub(crate) struct ViewInput {
    /// Recording in any form that is read, or an .slt file of a run; `-` reads standard input
    #[arg(value_name = "TRACE")]
    pub(crate) file: String,
    /// Which view; each has options of its own, shown by `schedlab view --as VIEW --help`
    #[arg(long = "as", value_name = "VIEW")]
    pub(crate) kind: ViewKind,
    /// Where the view goes; `-` is standard output
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<String>,
    #[command(flatten)]
    pub(crate) common: Common,
}

/// Value of `--perf`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PerfArg {
    #[value(name = "6.1")]
    V6_1,
    #[value(name = "6.12")]
    V6_12,
}

/// Shows a trace as perf sched does
#[derive(Debug, Parser)]
#[command(name = "schedlab view", max_term_width = 100)]
#[command(override_usage = "schedlab view TRACE --as VIEW [OPTIONS]")]
struct AnyArgs {
    #[command(flatten)]
    input: ViewInput,
}

/// CPU time and delays of every thread, as `perf sched latency`
#[derive(Debug, Parser)]
#[command(name = "schedlab view --as latency", max_term_width = 100)]
#[command(override_usage = "schedlab view TRACE --as latency [OPTIONS]")]
pub(crate) struct LatencyArgs {
    #[command(flatten)]
    pub(crate) input: ViewInput,
    /// Columns to sort by, the first one first
    #[arg(long, short, value_name = "KEYS", value_delimiter = ',')]
    #[arg(default_value = "avg,max,switch,runtime")]
    pub(crate) sort: Vec<SortArg>,
    /// One row a thread instead of one a name
    #[arg(long, short)]
    pub(crate) pids: bool,
    /// The trace holds this CPU only: counts wake-ups of threads whose sleep was not seen
    #[arg(long = "CPU", short = 'C', value_name = "N")]
    pub(crate) cpu: Option<u32>,
    /// Whose way of counting: 6.1 knows no sched_waking and takes R+ for asleep
    #[arg(long, value_name = "VERSION", default_value = "6.12")]
    pub(crate) perf: PerfArg,
}

/// Value of `--sort`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SortArg {
    Runtime,
    Switch,
    Avg,
    Max,
}

/// One row a switch and sums by thread, as `perf sched timehist`
#[derive(Debug, Parser)]
#[command(name = "schedlab view --as timehist", max_term_width = 100)]
#[command(override_usage = "schedlab view TRACE --as timehist [OPTIONS]")]
pub(crate) struct TimehistArgs {
    #[command(flatten)]
    pub(crate) input: ViewInput,
    /// Rows for wake-ups
    #[arg(long, short)]
    pub(crate) wakeups: bool,
    /// Rows for migrations
    #[arg(long, short = 'M')]
    pub(crate) migrations: bool,
    /// The thread switched to
    #[arg(long, short)]
    pub(crate) next: bool,
    /// A column for each CPU: `s` a switch, `i` the end of idle time, `m` a migration
    #[arg(long, short = 'V')]
    pub(crate) cpu_visual: bool,
    /// Idle time only: who left the CPU idle, and for how long
    #[arg(long, short = 'I')]
    pub(crate) idle_hist: bool,
    /// The state in which a thread left its CPU; sums of waiting by cause
    #[arg(long)]
    pub(crate) state: bool,
    /// The priority, OLD->NEW if it changed on the CPU
    #[arg(long)]
    pub(crate) show_prio: bool,
    /// Only this span of time in seconds; either end may be left out
    #[arg(long, value_name = "START,STOP", value_parser = span, allow_hyphen_values = true)]
    pub(crate) time: Option<Span>,
    /// Only these processes
    #[arg(long = "pid", short, value_name = "PID,…", value_delimiter = ',')]
    pub(crate) processes: Vec<u32>,
    /// Only these threads
    #[arg(long = "tid", short, value_name = "TID,…", value_delimiter = ',')]
    pub(crate) threads: Vec<u32>,
    /// Only these CPUs
    #[arg(long = "cpu", short = 'C', value_name = "LIST", value_parser = cpus)]
    pub(crate) cpus: Option<CpuSet>,
    /// Sums by thread only
    #[arg(long, short, conflicts_with = "with_summary")]
    pub(crate) summary: bool,
    /// Rows, then sums by thread
    #[arg(long, short = 'S')]
    pub(crate) with_summary: bool,
    /// Whose letters and states: 6.1 takes R+ for asleep and shows it as W
    #[arg(long, value_name = "VERSION", default_value = "6.12")]
    pub(crate) perf: PerfArg,
}

/// One column a CPU and one code a thread, as `perf sched map`
#[derive(Debug, Parser)]
#[command(name = "schedlab view --as map", max_term_width = 100)]
#[command(override_usage = "schedlab view TRACE --as map [OPTIONS]")]
pub(crate) struct MapArgs {
    #[command(flatten)]
    pub(crate) input: ViewInput,
    /// Only CPUs that had a switch, in the order of their first one
    #[arg(long)]
    pub(crate) compact: bool,
    /// Only these CPUs
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    pub(crate) cpus: Option<CpuSet>,
    /// Colours the columns of these CPUs
    #[arg(long, value_name = "LIST", value_parser = cpus)]
    pub(crate) color_cpus: Option<CpuSet>,
    /// Colours the codes of these threads
    #[arg(long, value_name = "TID,…", value_delimiter = ',')]
    pub(crate) color_pids: Vec<u32>,
    /// Only threads of these names; others are shown as `-`
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) task_name: Vec<String>,
    /// Takes --task-name for a part of the name
    #[arg(long, requires = "task_name")]
    pub(crate) fuzzy_name: bool,
}

/// What a trace holds: events, threads, CPUs
#[derive(Debug, Parser)]
#[command(name = "schedlab view --as summary", max_term_width = 100)]
#[command(override_usage = "schedlab view TRACE --as summary [OPTIONS]")]
pub(crate) struct SummaryArgs {
    #[command(flatten)]
    pub(crate) input: ViewInput,
    /// Form of the summary
    #[arg(long, value_name = "FORM", default_value = "text", value_parser = ["text", "json"])]
    pub(crate) format: String,
}

/// A view with its options.
#[derive(Debug)]
pub(crate) enum View {
    Latency(LatencyArgs),
    Timehist(TimehistArgs),
    Map(MapArgs),
    Summary(SummaryArgs),
}

impl View {
    /// Reads the words after `schedlab view`.
    ///
    /// # Errors
    /// As clap; also for help.
    pub(crate) fn parse(words: &[String]) -> Result<Self, clap::Error> {
        match kind(words) {
            Some(ViewKind::Latency) => parse(words).map(Self::Latency),
            Some(ViewKind::Timehist) => parse(words).map(Self::Timehist),
            Some(ViewKind::Map) => parse(words).map(Self::Map),
            Some(ViewKind::Summary) => parse(words).map(Self::Summary),
            None => {
                // `--as` is missing or wrong, or help is asked for: this one says so.
                let args: AnyArgs = parse(words)?;
                let view = args.input.kind;
                let message = format!("write --as {view:?} only once");
                Err(AnyArgs::command().error(ErrorKind::ArgumentConflict, message))
            }
        }
    }

    /// What all views take.
    pub(crate) fn input(&self) -> &ViewInput {
        match self {
            Self::Latency(args) => &args.input,
            Self::Timehist(args) => &args.input,
            Self::Map(args) => &args.input,
            Self::Summary(args) => &args.input,
        }
    }
}

fn parse<A: CommandFactory + FromArgMatches>(words: &[String]) -> Result<A, clap::Error> {
    let command = A::command().no_binary_name(true);
    let mut again = command.clone();
    let matches = command.try_get_matches_from(words)?;
    A::from_arg_matches(&matches).map_err(|error| error.format(&mut again))
}

/// The value of `--as`, where it stands and is right.
fn kind(words: &[String]) -> Option<ViewKind> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let value = match word.strip_prefix("--as") {
            Some("") => words.next()?,
            Some(rest) => rest.strip_prefix('=')?,
            None if word == "--" => return None,
            None => continue,
        };
        return ViewKind::from_str(value, false).ok();
    }
    None
}

/// Value of `--time`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: Option<Time>,
    pub(crate) stop: Option<Time>,
}

/// Why a value is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
enum SpanError {
    #[error("write START,STOP in seconds, such as 4538.5,4538.75; either may be left out")]
    Form,
    #[error("the span ends before it begins")]
    Backwards,
}

fn span(text: &str) -> Result<Span, SpanError> {
    let (start, stop) = text.split_once(',').ok_or(SpanError::Form)?;
    let end = |text: &str| if text.is_empty() { Ok(None) } else { seconds(text).map(Some) };
    let span = Span { start: end(start)?, stop: end(stop)? };
    match span {
        Span { start: Some(start), stop: Some(stop) } if stop < start => Err(SpanError::Backwards),
        span => Ok(span),
    }
}

/// Seconds with at most nine decimals.
fn seconds(text: &str) -> Result<Time, SpanError> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > 9 {
        return Err(SpanError::Form);
    }
    let whole: u64 = whole.parse().map_err(|_| SpanError::Form)?;
    let part: u64 = format!("{part:0<9}").parse().map_err(|_| SpanError::Form)?;
    let ns = whole.checked_mul(1_000_000_000).and_then(|ns| ns.checked_add(part));
    ns.map(Time::from_ns).ok_or(SpanError::Form)
}

fn cpus(text: &str) -> Result<CpuSet, CpuListError> {
    CpuSet::parse(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_string).collect()
    }

    #[test]
    fn command_lines_are_consistent() {
        AnyArgs::command().debug_assert();
        LatencyArgs::command().debug_assert();
        TimehistArgs::command().debug_assert();
        MapArgs::command().debug_assert();
        SummaryArgs::command().debug_assert();
    }

    #[test]
    fn letters_mean_what_they_mean_in_the_view() {
        for text in ["x --as latency -p -s max", "-p --as=latency x --sort max"] {
            match View::parse(&words(text)) {
                Ok(View::Latency(args)) => assert!(args.pids && args.sort == [SortArg::Max]),
                other => panic!("{text}: {other:?}"),
            }
        }
        match View::parse(&words("--as timehist -s -p 1,2 x")) {
            Ok(View::Timehist(args)) => assert!(args.summary && args.processes == [1, 2]),
            other => panic!("{other:?}"),
        }
        assert!(View::parse(&words("x --as map -s")).is_err());
        assert!(View::parse(&words("x")).is_err());
    }

    #[test]
    fn spans_of_time_are_read_exactly() {
        let at = |ns| Some(Time::from_ns(ns));
        assert_eq!(span("1.5,2"), Ok(Span { start: at(1_500_000_000), stop: at(2_000_000_000) }));
        assert_eq!(span(",0.000000001"), Ok(Span { start: None, stop: at(1) }));
        assert_eq!(span("2,1"), Err(SpanError::Backwards));
        for text in ["", "1", "1.,2", "-1,2", "1.0000000001,", "99999999999999999999,"] {
            assert_eq!(span(text), Err(SpanError::Form), "{text}");
        }
    }
}
