// SPDX-License-Identifier: GPL-2.0-only
//! `schedlab run`: policies on a workload, side by side.

use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use schedlab_lab::batch::run_all;
use schedlab_lab::machine::parse_machine_toml;
use schedlab_lab::result::{Comparison, HostInfo, MachineInfo, RunResult, WorkloadInfo};
use schedlab_lab::run::{Job, RunError, RunOutput, run as run_job};
use schedlab_policy_api::Topology;
use schedlab_report::{Options, Output, output_by_name};
use schedlab_sim::{CostError, CostModel, EventOrder};
use schedlab_workload::{
    LoadError, LoadErrorKind, LoadOptions, Loaded, RtAppOptions, find, load_bytes, load_text,
    resolve,
};

use crate::args::{Common, MachineArg, RunArgs};
use crate::commands::trace_file;
use crate::excerpt::Source;
use crate::exit::{Exit, Failure};
use crate::output::{Destination, cannot_write};
use crate::progress::Bar;
use crate::{interrupt, terminal};

/// Runs all policies with all seeds and reports.
///
/// # Errors
/// Whatever keeps the runs from taking place or the report from being written.
pub(crate) fn run(args: &RunArgs, common: Common) -> Result<Exit, Failure> {
    let stop = interrupt::flag()?;
    let output = output_by_name(&args.format)
        .ok_or_else(|| Failure::new(Exit::Usage, format!("no form `{}`", args.format)))?;
    let options = LoadOptions { rtapp: RtAppOptions { strict: args.rtapp_strict } };
    let loaded = load(&args.workload, &args.set, &options)?;
    let is_matrix = loaded.cells.len() > 1;
    let cells = cells(args, loaded, &options)?;
    let topo = machine(&args.machine)?;
    let cost = cost(&args.cost)?;
    for loaded in &cells {
        loaded.check_machine(topo.n_cpus()).map_err(|error| {
            Failure::located(exit_of(error.kind), &error.file, &error.fault, &source_of(loaded))
        })?;
    }
    let jobs: Vec<Job> = cells.iter().flat_map(|loaded| jobs(args, loaded, &topo, &cost)).collect();
    let destination = Destination::of(args.output.as_deref())?;
    let begin = Instant::now();
    let outputs = simulate(args, &jobs, &stop, common, &cells)?;
    let wall = begin.elapsed();
    let different =
        if args.twice { compare_again(args, &jobs, &stop, common, &outputs)? } else { None };
    let interrupted =
        outputs.iter().any(|output| output.as_ref().is_none_or(|o| !o.result.complete));
    let mut outputs = outputs.into_iter();
    let per_cell = jobs.len() / cells.len().max(1);
    let mut comparisons = Vec::new();
    for loaded in &cells {
        let outputs: Vec<RunOutput> = outputs.by_ref().take(per_cell).flatten().collect();
        comparisons.push(comparison(loaded, outputs, &topo, &cost, wall));
    }
    if !common.quiet {
        let mut seen: Vec<&String> = Vec::new();
        for (loaded, comparison) in cells.iter().zip(&comparisons) {
            let notes = &comparison.workload.notes[loaded.workload.notes.len()..];
            let fresh: Vec<&String> = notes.iter().filter(|note| !seen.contains(note)).collect();
            fresh.iter().for_each(|warning| terminal::warning(warning));
            seen.extend(fresh);
        }
    }
    write(output, &comparisons, is_matrix, &destination)?;
    if interrupted {
        return Err(Failure::new(Exit::Interrupted, "interrupted; the results are those so far"));
    }
    different.map_or(Ok(Exit::Done), Err)
}

/// The workload, or every combination of its matrix that the parameters leave open.
fn cells(args: &RunArgs, loaded: Loaded, options: &LoadOptions) -> Result<Vec<Loaded>, Failure> {
    if loaded.cells.len() <= 1 {
        return Ok(vec![loaded]);
    }
    let load = |cell: &Vec<(String, String)>| {
        let set = [args.set.clone(), cell.clone()].concat();
        load_text(&loaded.file, loaded.source_text.clone(), &set, options).map_err(|error| {
            Failure::located(exit_of(error.kind), &error.file, &error.fault, &source_of(&loaded))
        })
    };
    loaded.cells.iter().map(load).collect()
}

fn comparison(
    loaded: &Loaded,
    outputs: Vec<RunOutput>,
    topo: &Topology,
    cost: &CostModel,
    wall: Duration,
) -> Comparison {
    let mut warnings: Vec<String> =
        loaded.warnings.iter().map(|fault| place(&loaded.file, fault)).collect();
    warnings.extend(run_warnings(&outputs));
    let events: u64 = outputs.iter().map(|output| output.result.events).sum();
    Comparison {
        workload: workload_info(loaded, warnings),
        machine: machine_info(topo, cost),
        runs: outputs.into_iter().map(|output| output.result).collect(),
        host: HostInfo {
            wall_ns: u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX),
            events_per_s: (events as f64 / wall.as_secs_f64().max(1e-9)) as u64,
        },
    }
}

pub(crate) fn write(
    output: &dyn Output,
    comparisons: &[Comparison],
    is_matrix: bool,
    destination: &Destination,
) -> Result<(), Failure> {
    let color = matches!(destination, Destination::Stdout) && terminal::stdout_color();
    let options = Options { width: terminal::width(), color };
    let mut text = Vec::new();
    let written = match comparisons {
        [comparison] if !is_matrix => output.write(comparison, options, &mut text),
        all => output.write_matrix(all, options, &mut text),
    };
    written
        .map_err(|error| Failure::new(Exit::Host, format!("cannot write the report: {error}")))?;
    destination.write(&text)
}

/// Loads the workload of this name or path; `-` is standard input.
///
/// # Errors
/// With the place of the fault in the text.
pub(crate) fn load(
    name: &str,
    set: &[(String, String)],
    options: &LoadOptions,
) -> Result<Loaded, Failure> {
    let failure = |error: &LoadError, source: &Source<'_>| {
        Failure::located(exit_of(error.kind), &error.file, &error.fault, source)
    };
    if name == "-" {
        let bytes = standard_input()?;
        return load_bytes("standard input", bytes.clone(), set, options)
            .map_err(|error| failure(&error, &Source::Text(&bytes)));
    }
    resolve(name, set, options).map_err(|error| {
        let source = match find(&error.file) {
            Some(builtin) => Source::Text(builtin.text.as_bytes()),
            None => Source::File(&error.file),
        };
        failure(&error, &source)
    })
}

/// All of standard input.
///
/// # Errors
/// When it cannot be read.
pub(crate) fn standard_input() -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes).map_err(|error| {
        Failure::new(Exit::Input, format!("cannot read standard input: {error}"))
    })?;
    Ok(bytes)
}

pub(crate) fn exit_of(kind: LoadErrorKind) -> Exit {
    match kind {
        LoadErrorKind::Usage => Exit::Usage,
        LoadErrorKind::Input => Exit::Input,
    }
}

pub(crate) fn source_of(loaded: &Loaded) -> Source<'_> {
    Source::Text(loaded.source_text.as_bytes())
}

pub(crate) fn place(file: &str, fault: &schedlab_units::Located) -> String {
    let blank = if fault.at.is_some() { "" } else { " " };
    format!("{file}:{blank}{fault}")
}

/// The machine that `--machine` names.
///
/// # Errors
/// A file that cannot be read or is malformed.
pub(crate) fn machine(machine: &MachineArg) -> Result<Topology, Failure> {
    let path = match machine {
        MachineArg::Topology(topo) => return Ok((**topo).clone()),
        MachineArg::File(path) => path,
    };
    let text = read_text(path, "the machine")?;
    parse_machine_toml(&text).map_err(|fault| {
        Failure::located(Exit::Input, path, &fault, &Source::Text(text.as_bytes()))
    })
}

fn cost(name: &str) -> Result<CostModel, Failure> {
    if let Some(model) = CostModel::built_in(name) {
        return Ok(model);
    }
    if !name.contains(['/', '.']) {
        let names = CostModel::BUILT_IN.join(", ");
        let message =
            format!("there is no cost model `{name}`; there are: {names}, or a .toml file");
        return Err(Failure::new(Exit::Usage, message));
    }
    let text = read_text(name, "the cost model")?;
    CostModel::parse(name, &text).map_err(|CostError(fault)| {
        Failure::located(Exit::Input, name, &fault, &Source::Text(text.as_bytes()))
    })
}

fn read_text(path: &str, what: &str) -> Result<String, Failure> {
    let bytes = std::fs::read(path).map_err(|error| {
        Failure::new(Exit::Usage, format!("{path}: {what} cannot be read: {error}"))
    })?;
    String::from_utf8(bytes)
        .map_err(|_| Failure::new(Exit::Input, format!("{path}: {what} is not UTF-8 text")))
}

/// One job per policy and seed, by policy and then by seed.
fn jobs(args: &RunArgs, loaded: &Loaded, topo: &Topology, cost: &CostModel) -> Vec<Job> {
    let workload = Arc::new(loaded.workload.clone());
    let job = |column: usize, seed: u64| Job {
        workload: Arc::clone(&workload),
        policy: args.policies[column].clone(),
        column,
        topo: topo.clone(),
        cost: cost.clone(),
        hz: args.hz,
        seed,
        duration: args.duration,
        warmup: args.warmup,
        check: args.check,
        transcript: false,
        order: EventOrder::Kind,
        samples: Vec::new(),
    };
    let seeds = || args.seed.first..=args.seed.last;
    (0..args.policies.len())
        .flat_map(|column| seeds().map(move |seed| (column, seed)))
        .map(|(column, seed)| job(column, seed))
        .collect()
}

/// What came out of the jobs in their order; none for one that was interrupted before it began.
fn simulate(
    args: &RunArgs,
    jobs: &[Job],
    stop: &AtomicBool,
    common: Common,
    cells: &[Loaded],
) -> Result<Vec<Option<RunOutput>>, Failure> {
    let bar = Bar::new(jobs.len(), common.quiet);
    let outcomes = match &args.trace {
        None => run_all(jobs, args.jobs, stop, &|index| bar.job(index)),
        Some(path) if jobs.len() > 1 && trace_file::takes_several(path) => {
            let together = trace_file::create_together(path)?;
            let mut outcomes = Vec::new();
            for (index, job) in jobs.iter().enumerate() {
                let sink = trace_file::part(&together, job);
                outcomes.push(Some(run_job(job, stop, bar.job(index).as_ref(), Some(sink))));
            }
            together.finish().map_err(|error| cannot_write(path, &error))?;
            outcomes
        }
        Some(path) => {
            let ([job], [loaded]) = (jobs, cells) else {
                let which = match cells {
                    [_] => "one policy and one seed",
                    _ => "one policy, one seed and a single combination of the matrix",
                };
                let message =
                    format!("--trace records a single run, but for .pftrace: give {which}");
                return Err(Failure::new(Exit::Usage, message));
            };
            let sink = trace_file::create(path, job, &loaded.digest.to_string())?;
            vec![Some(run_job(job, stop, bar.job(0).as_ref(), Some(sink)))]
        }
    };
    bar.clear();
    outcomes.into_iter().map(|outcome| outcome.transpose().map_err(run_failure)).collect()
}

pub(crate) fn run_failure(error: RunError) -> Failure {
    let exit = match error {
        RunError::Sim(_) => Exit::Input,
        RunError::Trace(_) => Exit::Host,
        RunError::Warmup { .. } => Exit::Usage,
    };
    Failure::new(exit, error)
}

/// Runs all jobs again; a failure when anything but the wall clock differs.
fn compare_again(
    args: &RunArgs,
    jobs: &[Job],
    stop: &AtomicBool,
    common: Common,
    first: &[Option<RunOutput>],
) -> Result<Option<Failure>, Failure> {
    let bar = Bar::new(jobs.len(), common.quiet);
    let again = run_all(jobs, args.jobs, stop, &|index| bar.job(index));
    bar.clear();
    let again: Vec<Option<RunOutput>> =
        again.into_iter().map(Option::transpose).collect::<Result<_, _>>().map_err(run_failure)?;
    let pairs = first.iter().zip(&again).filter_map(|(a, b)| Some((a.as_ref()?, b.as_ref()?)));
    // An interrupted run ends at another instant each time.
    let mut pairs = pairs.filter(|(a, b)| a.result.complete && b.result.complete);
    let different = pairs.find(|(a, b)| a.result != b.result);
    let different = different.map(|(a, b)| (&a.result, &b.result));
    Ok(different.map(|(a, b)| {
        let (spec, seed) = (a.spec(), a.seed);
        let (a, b) = (a.fingerprint, b.fingerprint);
        let message = format!(
            "two runs of {spec} with seed {seed} differ: fingerprints {a:016x} and {b:016x}"
        );
        Failure::new(Exit::CheckFailed, message)
    }))
}

/// The warnings of the runs, those of further seeds of a policy only counted.
pub(crate) fn run_warnings(outputs: &[RunOutput]) -> Vec<String> {
    let mut warnings = Vec::new();
    let n_columns = outputs.iter().map(|output| output.result.column + 1).max().unwrap_or(0);
    for column in 0..n_columns {
        let of_column = outputs.iter().filter(|output| output.result.column == column);
        let warned: Vec<&RunOutput> =
            of_column.filter(|output| !output.warnings.is_empty()).collect();
        let Some((first, others)) = warned.split_first() else { continue };
        let RunResult { seed, .. } = first.result;
        let others = match others.len() {
            0 => String::new(),
            n => format!(" (and with {n} other seeds)"),
        };
        let spec = first.result.spec();
        let label = |warning: &String| format!("{spec} with seed {seed}{others}: {warning}");
        warnings.extend(first.warnings.iter().map(label));
    }
    warnings
}

pub(crate) fn workload_info(loaded: &Loaded, warnings: Vec<String>) -> WorkloadInfo {
    let workload = &loaded.workload;
    WorkloadInfo {
        name: workload.name.clone(),
        about: workload.about.clone(),
        digest: loaded.digest.to_string(),
        parameters: workload.params.clone(),
        table: workload.table,
        notes: workload.notes.iter().cloned().chain(warnings).collect(),
    }
}

fn machine_info(topo: &Topology, cost: &CostModel) -> MachineInfo {
    MachineInfo {
        cpus: topo.n_cpus() as u32,
        nodes: topo.nodes(),
        llcs_per_node: topo.llcs_per_node(),
        cores_per_llc: topo.cores_per_llc(),
        threads_per_core: topo.threads_per_core(),
        cost: cost.name.clone(),
    }
}
