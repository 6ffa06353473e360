// SPDX-License-Identifier: GPL-2.0-only
//! `schedlab play`: a workload as real processes and threads, beside simulations of the same.

use schedlab_report::output_by_name;

use crate::args::Common;
use crate::exit::{Exit, Failure};
use crate::host_args::PlayArgs;

/// Plays and reports.
///
/// # Errors
/// Whatever keeps the play from taking place or the report from being written; on a host that is
/// not Linux always.
pub(crate) fn play(args: &PlayArgs, common: Common) -> Result<Exit, Failure> {
    let output = output_by_name(&args.format)
        .ok_or_else(|| Failure::new(Exit::Usage, format!("no form `{}`", args.format)))?;
    #[cfg(target_os = "linux")]
    return linux::play(args, common, output);
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (common, output);
        Err(Failure::new(Exit::Host, "this host lacks Linux: workloads are played on Linux only"))
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::{Duration, Instant};

    use schedlab_host::play::{PlayError, PlayOptions, play as play_on_host};
    use schedlab_host::system;
    use schedlab_lab::batch::run_all;
    use schedlab_lab::played::{HOST, LIVE, PlayedAs, result_of};
    use schedlab_lab::result::{Comparison, HostInfo, MachineInfo, RunResult};
    use schedlab_lab::run::{Job, RunOutput, length};
    use schedlab_lab::spec::PolicySpec;
    use schedlab_policy_api::Topology;
    use schedlab_report::Output;
    use schedlab_sim::{CostModel, EventOrder};
    use schedlab_units::{CpuSet, Hz, Nanos};
    use schedlab_workload::{LoadOptions, Loaded, RtAppOptions};

    use crate::args::Common;
    use crate::commands::reign::Reign;
    use crate::commands::run::{
        exit_of, load, run_failure, run_warnings, source_of, workload_info, write,
    };
    use crate::exit::{Exit, Failure};
    use crate::host_args::PlayArgs;
    use crate::output::Destination;
    use crate::progress::Bar;
    use crate::{interrupt, terminal};

    /// The longest play of a workload that says no length and has no endless loop.
    const LENGTH_MAX: Nanos = Nanos::from_s(60);

    /// What is played on what.
    struct Stage {
        loaded: Loaded,
        cpus: CpuSet,
        topo: Topology,
        hz: Hz,
        length: Nanos,
    }

    pub(super) fn play(
        args: &PlayArgs,
        common: Common,
        output: &dyn Output,
    ) -> Result<Exit, Failure> {
        let stop = interrupt::flag()?;
        let stage = stage(args)?;
        let destination = Destination::of(args.output.as_deref())?;
        let begin = Instant::now();
        let (mut runs, mut remarks) = played(args, &stage, &stop, None)?;
        for (index, spec) in args.live.iter().enumerate() {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let reign = Reign::begin(spec, &stage.cpus)?;
            let (live, more) = played(args, &stage, &stop, Some((index + 1, spec)))?;
            reign.end()?;
            runs.extend(live);
            remarks.extend(more);
        }
        let simulated = simulated(args, &stage, &stop, common)?;
        let interrupted = stop.load(Ordering::Relaxed);
        remarks.extend(run_warnings(&simulated));
        runs.extend(simulated.into_iter().map(|output| output.result));
        if !common.quiet {
            remarks.iter().for_each(|remark| terminal::warning(remark));
        }
        write(output, &[comparison(&stage, runs, remarks, begin.elapsed())], false, &destination)?;
        if interrupted {
            let message = "interrupted; the results are those so far";
            return Err(Failure::new(Exit::Interrupted, message));
        }
        Ok(Exit::Done)
    }

    fn stage(args: &PlayArgs) -> Result<Stage, Failure> {
        let options = LoadOptions { rtapp: RtAppOptions { strict: args.rtapp_strict } };
        let loaded = load(&args.workload, &args.set, &options)?;
        if loaded.cells.len() > 1 {
            let open: Vec<String> =
                loaded.cells[0].iter().map(|(key, value)| format!("--set {key}={value}")).collect();
            let message = format!(
                "a play takes a single combination of the matrix: choose one, such as {}",
                open.join(" ")
            );
            return Err(Failure::new(Exit::Usage, message));
        }
        let allowed = system::allowed_cpus();
        let cpus = args.cpus.unwrap_or(allowed);
        if cpus.is_empty() || !cpus.is_subset(&allowed) {
            let message = format!("CPUs {cpus}: this process may use {allowed}");
            return Err(Failure::new(Exit::Host, message));
        }
        loaded.check_machine(cpus.len()).map_err(|error| {
            Failure::located(exit_of(error.kind), &error.file, &error.fault, &source_of(&loaded))
        })?;
        let topo = Topology::flat(cpus.len() as u32)
            .map_err(|error| Failure::new(Exit::Host, format!("this host's CPUs: {error}")))?;
        let length = length(&loaded.workload, args.duration).min(match args.duration {
            Some(asked) => asked,
            None => Nanos::MAX,
        });
        Ok(Stage { loaded, cpus, topo, hz: system::tick_rate(), length })
    }

    /// The plays, and what a reader must know of them.
    fn played(
        args: &PlayArgs,
        stage: &Stage,
        stop: &AtomicBool,
        live: Option<(usize, &PolicySpec)>,
    ) -> Result<(Vec<RunResult>, Vec<String>), Failure> {
        let workload = Arc::new(stage.loaded.workload.clone());
        let bounded = stage.length == Nanos::MAX;
        let mut runs = Vec::new();
        let mut remarks: Vec<String> = Vec::new();
        for n in 0..u64::from(args.repeat) {
            let seed = args.seed.wrapping_add(n);
            let options = PlayOptions {
                seed,
                length: if bounded { LENGTH_MAX } else { stage.length },
                cpus: stage.cpus,
                ignore_rights: args.ignore_rights,
                ext: live.is_some(),
                trace_kib: (!args.no_trace).then_some(args.buffer),
            };
            let played = play_on_host(&workload, &options, stop)
                .map_err(|error| failure(&stage.loaded, error))?;
            if bounded && played.end.saturating_since(played.start) >= LENGTH_MAX {
                let remark = format!(
                    "cut after {LENGTH_MAX}: the workload says no length and did not end by itself"
                );
                remarks.push(remark);
            }
            let id = PlayedAs {
                column: live.map_or(0, |(column, _)| column),
                live: live.map(|(_, spec)| spec.clone()),
                kernel: system::kernel_version(),
                hz: stage.hz,
                seed,
            };
            let (result, more) = result_of(&stage.loaded.workload, &played, &id);
            runs.push(result);
            remarks.extend(more);
            if stop.load(Ordering::Relaxed) {
                break;
            }
        }
        let mut once: Vec<String> = Vec::new();
        for remark in remarks {
            if !once.contains(&remark) {
                once.push(remark);
            }
        }
        let who = live.map_or(HOST.to_string(), |(_, spec)| format!("{LIVE}{spec}"));
        Ok((runs, once.into_iter().map(|remark| format!("{who}: {remark}")).collect()))
    }

    /// The simulations that go beside, by policy and then by seed.
    fn simulated(
        args: &PlayArgs,
        stage: &Stage,
        stop: &AtomicBool,
        common: Common,
    ) -> Result<Vec<RunOutput>, Failure> {
        let workload = Arc::new(stage.loaded.workload.clone());
        let job = |column: usize, n: u64| Job {
            workload: Arc::clone(&workload),
            policy: args.beside[column].clone(),
            column: column + 1 + args.live.len(),
            topo: stage.topo.clone(),
            cost: CostModel::built_in("default").expect("the default is built in"),
            hz: Some(stage.hz),
            seed: args.seed.wrapping_add(n),
            duration: args.duration,
            warmup: Nanos::ZERO,
            check: false,
            transcript: false,
            order: EventOrder::Kind,
            samples: Vec::new(),
        };
        let jobs: Vec<Job> = (0..args.beside.len())
            .flat_map(|column| (0..u64::from(args.repeat)).map(move |n| (column, n)))
            .map(|(column, n)| job(column, n))
            .collect();
        if jobs.is_empty() {
            return Ok(Vec::new());
        }
        let bar = Bar::new(jobs.len(), common.quiet);
        let outcomes = run_all(&jobs, 0, stop, &|index| bar.job(index));
        bar.clear();
        outcomes.into_iter().flatten().map(|outcome| outcome.map_err(run_failure)).collect()
    }

    fn failure(loaded: &Loaded, error: PlayError) -> Failure {
        match error {
            PlayError::Refused(invalid) => {
                let fault = loaded.locate(&invalid);
                Failure::located(Exit::Input, &loaded.file, &fault, &source_of(loaded))
            }
            PlayError::Fault(fault) => Failure::new(Exit::Input, fault),
            PlayError::Lacks(_) | PlayError::Killed { .. } => Failure::new(Exit::Host, error),
        }
    }

    fn comparison(
        stage: &Stage,
        runs: Vec<RunResult>,
        remarks: Vec<String>,
        wall: Duration,
    ) -> Comparison {
        let events: u64 = runs.iter().map(|run| run.events).sum();
        Comparison {
            workload: workload_info(&stage.loaded, remarks),
            machine: MachineInfo {
                cpus: stage.topo.n_cpus() as u32,
                nodes: stage.topo.nodes(),
                llcs_per_node: stage.topo.llcs_per_node(),
                cores_per_llc: stage.topo.cores_per_llc(),
                threads_per_core: stage.topo.threads_per_core(),
                cost: "default".to_string(),
            },
            runs,
            host: HostInfo {
                wall_ns: u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX),
                events_per_s: (events as f64 / wall.as_secs_f64().max(1e-9)) as u64,
            },
        }
    }
}
