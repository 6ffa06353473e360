// SPDX-License-Identifier: GPL-2.0-only
//! `schedlab import`: a recorded trace becomes a workload.

use std::path::Path;
use std::sync::Arc;

use schedlab_lab::replayed::{compare, policy_of};
use schedlab_lab::run::Job;
use schedlab_lab::spec::PolicySpec;
use schedlab_policy_api::Topology;
use schedlab_report::fidelity::{self, Fidelity};
use schedlab_sim::{CostModel, EventOrder};
use schedlab_units::Nanos;
use schedlab_workload::replay::{self, ImportOptions, Imported};
use schedlab_workload::to_toml;

use crate::args::{Common, ImportArgs};
use crate::commands::run::machine;
use crate::commands::trace_input;
use crate::excerpt::Source;
use crate::exit::{Exit, Failure};
use crate::output::Destination;
use crate::{interrupt, terminal};

/// Reads the trace, turns it into a workload, and says what was found.
///
/// # Errors
/// A file that is no trace or cannot be read, with the place; a recording with nothing to import.
pub(crate) fn import(args: &ImportArgs, common: Common) -> Result<Exit, Failure> {
    if args.replay && args.output == "-" {
        let message = "--replay reports on standard output: write the workload to a file";
        return Err(Failure::new(Exit::Usage, message));
    }
    let stop = interrupt::flag()?;
    let name = trace_input::shown_name(&args.file);
    let (found, recording) = trace_input::collect(&args.file)?;
    let options = ImportOptions {
        name: workload_name(&args.file),
        origin: format!("imported from {name}"),
        only: args.only.clone(),
        kernel_threads: !args.no_kernel_threads,
        recorder: !args.no_recorder,
        detect_timers: !args.no_detect_timers,
        affinity: !args.no_affinity,
    };
    let imported = replay::import(&recording, &options)
        .map_err(|fault| Failure::located(Exit::Input, name, &fault, &Source::Text(&[])))?;
    if !common.quiet {
        found.to_string().lines().for_each(terminal::message);
        imported.summary.to_string().lines().for_each(terminal::message);
    }
    Destination::of(Some(&args.output))?.write(to_toml(&imported.workload).as_bytes())?;
    if args.replay {
        let (conditions, job) = job(args, &imported, &found.origin, recording.n_cpus)?;
        let rows = compare(&recording, &imported.summary, &job, &stop)
            .map_err(|error| Failure::new(Exit::Input, error))?;
        let notes = imported.summary.notes.clone();
        let fidelity = Fidelity { conditions, notes, rows };
        let report = match args.format.as_str() {
            "json" => format!("{:#}\n", fidelity::json(&fidelity)),
            _ => fidelity::text(&fidelity),
        };
        Destination::Stdout.write(report.as_bytes())?;
    }
    Ok(Exit::Done)
}

/// The replay: its conditions in words, and the job.
fn job(
    args: &ImportArgs,
    imported: &Imported,
    origin: &str,
    n_cpus: u32,
) -> Result<(String, Job), Failure> {
    let (policy, why) = match &args.policy {
        Some(policy) => (policy.clone(), "as asked for".to_string()),
        None => {
            let (spec, why) = policy_of(origin);
            (PolicySpec::parse(spec).expect("a policy of the table"), why)
        }
    };
    let topo = match &args.machine {
        Some(spec) => machine(spec)?,
        None => Topology::flat(n_cpus).map_err(|error| Failure::new(Exit::Input, error))?,
    };
    let job = Job {
        workload: Arc::new(imported.workload.clone()),
        policy,
        column: 0,
        topo,
        cost: CostModel::built_in("default").expect("it comes with the program"),
        hz: args.hz,
        seed: 1,
        duration: None,
        warmup: Nanos::ZERO,
        check: false,
        transcript: false,
        order: EventOrder::Kind,
        samples: Vec::new(),
    };
    let (n_cpus, hz) = (job.topo.n_cpus(), job.hz().get());
    let conditions = format!("{} ({why}) on {n_cpus} CPUs at HZ {hz}", job.policy);
    Ok((conditions, job))
}

/// The file's name without folder and extension.
fn workload_name(file: &str) -> String {
    match Path::new(file).file_stem().and_then(|stem| stem.to_str()) {
        Some(stem) if file != "-" => stem.to_string(),
        _ => ImportOptions::default().name,
    }
}
