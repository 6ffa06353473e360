// SPDX-License-Identifier: GPL-2.0-only
//! `schedlab view`: a trace as `perf sched` shows it.

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};

use schedlab_policy_api::TraceRecord;
use schedlab_trace::{Comms, ReadSummary, RecordSink};
use schedlab_units::CpuSet;
use schedlab_views::{
    Latency, LatencyOptions, Map, MapOptions, Perf, SortKey, Summary, SummaryMode, Timehist,
    TimehistOptions,
};

use crate::args::{Common, ViewArgs};
use crate::commands::trace_input::feed;
use crate::exit::{Exit, Failure};
use crate::output::{Destination, cannot_write};
use crate::terminal;
use crate::view_args::{LatencyArgs, MapArgs, PerfArg, SortArg, TimehistArgs, View, ViewInput};

/// Reads the trace and shows it.
///
/// # Errors
/// A wrong command line; a file that is no trace or cannot be read, with the place; an output that
/// does not take the view.
pub(crate) fn view(args: &ViewArgs, common: Common) -> Result<Exit, Failure> {
    let view = match View::parse(&args.words) {
        Ok(view) => view,
        Err(error) => {
            // As for the whole program: help may find its output closed, and nothing is to tell.
            let _ = error.print();
            return Ok(if error.use_stderr() { Exit::Usage } else { Exit::Done });
        }
    };
    let input = view.input();
    // Flags of every command may stand before or behind the words of the view.
    if input.common.color != common.color && common.color == crate::args::ColorArg::Auto {
        terminal::set_color(input.common.color);
    }
    let found = match &view {
        View::Latency(args) => latency(args, input),
        View::Timehist(args) => timehist(args, input),
        View::Map(args) => map(args, input),
        View::Summary(args) => summary(args.format == "json", input),
    }?;
    if !common.quiet && !input.common.quiet {
        warn(&found);
    }
    Ok(Exit::Done)
}

/// What must be known before trusting a view.
fn warn(found: &ReadSummary) {
    if !found.events.contains_key("sched_switch") {
        terminal::warning("the trace holds no sched_switch, without which there is little to show");
    }
    if found.lost_events > 0 {
        terminal::warning(&format!("{} events were lost while recording", found.lost_events));
    }
    if found.lost_unknown > 0 {
        terminal::warning(&format!(
            "an unknown number of events was lost, {} times",
            found.lost_unknown
        ));
    }
    if found.late > 0 {
        terminal::warning(&format!("{} records came too late to be put in order", found.late));
    }
}

fn latency(args: &LatencyArgs, input: &ViewInput) -> Result<ReadSummary, Failure> {
    let sort = args.sort.iter().map(|key| match key {
        SortArg::Runtime => SortKey::Runtime,
        SortArg::Switch => SortKey::Switch,
        SortArg::Avg => SortKey::Avg,
        SortArg::Max => SortKey::Max,
    });
    let mut view = Latency::new(LatencyOptions {
        sort: sort.collect(),
        pids: args.pids,
        one_cpu: args.cpu.is_some(),
        perf: perf(args.perf),
    });
    let place = Place::of(input)?;
    let out = place.open()?;
    let (found, comms) = feed(&input.file, &mut view)?;
    place.check(view.finish(&comms, out))?;
    Ok(found)
}

fn timehist(args: &TimehistArgs, input: &ViewInput) -> Result<ReadSummary, Failure> {
    let visual_cpus = match args.cpu_visual {
        false => None,
        true => Some(count_cpus(&input.file)?.ok_or_else(|| {
            let message = "--cpu-visual needs the number of CPUs beforehand: name a file, no pipe";
            Failure::new(Exit::Usage, message)
        })?),
    };
    let summary = match (args.summary, args.with_summary) {
        (true, _) => SummaryMode::Only,
        (_, true) => SummaryMode::Both,
        _ => SummaryMode::Rows,
    };
    let options = TimehistOptions {
        wakeups: args.wakeups,
        migrations: args.migrations,
        next: args.next,
        visual_cpus,
        idle: args.idle_hist,
        state: args.state,
        prio: args.show_prio,
        summary,
        processes: args.processes.clone(),
        threads: args.threads.clone(),
        cpus: numbers(args.cpus.as_ref()),
        start: args.time.and_then(|time| time.start),
        stop: args.time.and_then(|time| time.stop),
        perf: perf(args.perf),
    };
    let place = Place::of(input)?;
    let mut view = Timehist::new(options, place.open()?);
    let (found, comms) = feed(&input.file, &mut view)?;
    place.check(view.finish(&comms, found.n_cpus))?;
    Ok(found)
}

fn map(args: &MapArgs, input: &ViewInput) -> Result<ReadSummary, Failure> {
    let color = input.output.is_none() && terminal::stdout_color();
    let colored = |cpus: Vec<u32>| if color { cpus } else { Vec::new() };
    let options = MapOptions {
        n_cpus: if args.compact { 0 } else { count_cpus(&input.file)?.unwrap_or(0) },
        compact: args.compact,
        cpus: numbers(args.cpus.as_ref()),
        color_cpus: colored(numbers(args.color_cpus.as_ref())),
        color_pids: colored(args.color_pids.clone()),
        task_names: args.task_name.clone(),
        fuzzy: args.fuzzy_name,
    };
    let place = Place::of(input)?;
    let mut view = Map::new(options, place.open()?);
    let (found, _) = feed(&input.file, &mut view)?;
    place.check(view.finish())?;
    Ok(found)
}

fn summary(json: bool, input: &ViewInput) -> Result<ReadSummary, Failure> {
    let place = Place::of(input)?;
    let mut view = Summary::new();
    let (found, comms) = feed(&input.file, &mut view)?;
    let out = place.open()?;
    place.check(if json {
        view.json(&found, &comms, out)
    } else {
        view.text(&found, &comms, out)
    })?;
    Ok(found)
}

fn perf(arg: PerfArg) -> Perf {
    match arg {
        PerfArg::V6_1 => Perf::V6_1,
        PerfArg::V6_12 => Perf::V6_12,
    }
}

fn numbers(cpus: Option<&CpuSet>) -> Vec<u32> {
    cpus.map(|cpus| cpus.iter().map(|cpu| cpu.0).collect()).unwrap_or_default()
}

/// The number of CPUs of the trace, which rows need before the first one: the file is read once
/// more for it. Of a pipe it is not known; columns are added as CPUs are seen.
fn count_cpus(file: &str) -> Result<Option<u32>, Failure> {
    struct Nothing;
    impl RecordSink for Nothing {
        fn record(&mut self, _record: &TraceRecord, _comms: &Comms) {}
    }
    if file == "-" || !fs::metadata(file).is_ok_and(|found| found.is_file()) {
        return Ok(None);
    }
    feed(file, &mut Nothing).map(|(found, _)| Some(found.n_cpus))
}

/// Where a view goes.
struct Place<'a> {
    path: Option<&'a str>,
}

impl<'a> Place<'a> {
    fn of(input: &'a ViewInput) -> Result<Self, Failure> {
        let path = input.output.as_deref().filter(|path| *path != "-");
        // The name is tried before a long trace is read.
        Destination::of(path)?;
        Ok(Self { path })
    }

    fn open(&self) -> Result<Box<dyn Write>, Failure> {
        match self.path {
            Some(path) => {
                let file = File::create(path).map_err(|error| cannot_write(path, &error))?;
                Ok(Box::new(BufWriter::new(file)))
            }
            None => Ok(Box::new(WhileWatched(io::stdout().lock()))),
        }
    }

    fn check<T>(&self, written: io::Result<T>) -> Result<(), Failure> {
        let place = self.path.unwrap_or("standard output");
        written.map(drop).map_err(|error| cannot_write(place, &error))
    }
}

/// Standard output until its reader goes away: then the program ends, because the rest of the
/// trace would be read for nobody.
struct WhileWatched<W>(W);

impl<W: Write> WhileWatched<W> {
    fn watch<T>(result: io::Result<T>) -> io::Result<T> {
        if result.as_ref().is_err_and(|error| error.kind() == ErrorKind::BrokenPipe) {
            std::process::exit(Exit::Done.code().into());
        }
        result
    }
}

impl<W: Write> Write for WhileWatched<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Self::watch(self.0.write(bytes))
    }
    fn flush(&mut self) -> io::Result<()> {
        Self::watch(self.0.flush())
    }
}
