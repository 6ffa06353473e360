// SPDX-License-Identifier: GPL-2.0-only
//! `schedlab live`: a command under a policy on this kernel.

use schedlab_live::probe::{Findings, judge, require};

use crate::args::Common;
use crate::commands::live_control;
use crate::exit::{Exit, Failure};
use crate::live_args::{LiveArgs, LiveControl};
use crate::terminal;

/// Runs the command and reports.
///
/// # Errors
/// Whatever keeps it from running under the policy, and a policy that was not in charge to the end.
pub(crate) fn live(args: &LiveArgs, common: Common) -> Result<Exit, Failure> {
    match &args.control {
        Some(LiveControl::Status { format, socket }) => {
            return live_control::status(format, socket);
        }
        Some(LiveControl::Set { pairs, socket }) => return live_control::set(pairs, socket),
        None => {}
    }
    let checks = judge(&Findings::here());
    let warnings = require(&checks)
        .map_err(|lack| Failure::new(Exit::Host, &lack.message).with_hint(&lack.remedy))?;
    if !common.quiet {
        warnings.iter().for_each(|check| terminal::warning(&check.found));
    }
    #[cfg(all(feature = "live", target_os = "linux"))]
    return built_in::live(args, common);
    #[cfg(not(all(feature = "live", target_os = "linux")))]
    {
        unreachable!("a build without live scheduling fails a check")
    }
}

#[cfg(all(feature = "live", target_os = "linux"))]
mod built_in {
    use std::fs::File;
    use std::time::{Duration, Instant};

    use schedlab_host::system;
    use schedlab_lab::result::{Comparison, HostInfo, MachineInfo, WorkloadInfo};
    use schedlab_live::command::Start;
    use schedlab_live::control::{Control, StatusReply};
    use schedlab_live::ending::LoadError;
    use schedlab_live::session::{Fault, HostMode, Outcome, SessionOptions};
    use schedlab_live::transcript::{Keeper, Kept};
    use schedlab_liverun::{LiveJob, LiveOutput, live as live_run};
    use schedlab_policy_api::Topology;
    use schedlab_report::output_by_name;
    use schedlab_trace::transcript::Header;
    use schedlab_units::{CpuId, CpuSet, Nanos};

    use crate::args::Common;
    use crate::commands::run::write;
    use crate::exit::{Exit, Failure};
    use crate::live_args::{LiveArgs, ScopeArg};
    use crate::output::Destination;
    use crate::{interrupt, terminal};

    pub(super) fn live(args: &LiveArgs, common: Common) -> Result<Exit, Failure> {
        let output = output_by_name(&args.format)
            .ok_or_else(|| Failure::new(Exit::Usage, format!("no form `{}`", args.format)))?;
        let destination = args.output.as_deref().map(|path| Destination::of(Some(path)));
        let destination = destination.transpose()?;
        let job = job(args)?;
        if args.scope == ScopeArg::System && !common.quiet {
            terminal::warning(
                "scope system: every normal task of this machine is scheduled by the policy; ^C, \
                 SysRq-S or the end of this process give them back to the kernel's scheduler",
            );
        }
        let stop = interrupt::flag()?;
        let begin = Instant::now();
        // Before the calling thread becomes real-time: the socket's threads must not.
        let control =
            Control::open(&args.socket).map_err(|error| Failure::new(Exit::Host, error))?;
        let transcript = transcript(args, &job)?;
        let status = status(args, &job);
        let outcome = live_run(&job, Some(&control), status, transcript, &stop)
            .map_err(|error| not_loaded(&error))?;
        drop(control);
        if let Some(transcript) = outcome.transcript.as_ref().filter(|kept| !kept.is_complete) {
            terminal::warning(&format!("transcript: {}", kept(transcript)));
        }
        let code = exit_code(&outcome)?;
        let remarks = remarks(&job, args, &outcome);
        let comparison = comparison(&job, args, &outcome, remarks, begin.elapsed());
        match &destination {
            Some(destination) => write(output, &[comparison], false, destination)?,
            None if common.quiet => {}
            None => write(output, &[comparison], false, &Destination::Stderr)?,
        }
        match &outcome.session.outcome {
            Outcome::Command => Ok(Exit::Command(code)),
            Outcome::Stopped => Err(Failure::new(Exit::Interrupted, "interrupted")),
            ended => Err(Failure::new(Exit::CheckFailed, why(ended))),
        }
    }

    /// Opens the transcript; what the job does not say of the run goes into its header.
    fn transcript(args: &LiveArgs, job: &LiveJob) -> Result<Option<(Keeper, Header)>, Failure> {
        let Some(path) = &args.transcript else { return Ok(None) };
        let keeper = File::create(path).and_then(Keeper::new).map_err(|error| {
            let message = format!("{}: the transcript cannot be written: {error}", path.display());
            Failure::new(Exit::Usage, message)
        })?;
        let rest = Header {
            kernel: system::kernel_version(),
            scope: scope_name(args.scope).to_string(),
            host: mode_name(job.session.mode),
            command: args.command.iter().map(|word| word.to_string_lossy().into()).collect(),
            ..Header::default()
        };
        Ok(Some((keeper, rest)))
    }

    /// What became of the transcript.
    fn kept(kept: &Kept) -> String {
        match &kept.error {
            Some(error) => format!("writing failed after {} bytes: {error}", kept.bytes),
            None if kept.is_complete => format!("{} bytes", kept.bytes),
            None => format!(
                "incomplete: the disk was slower than the run; the first {} bytes are good",
                kept.bytes
            ),
        }
    }

    fn job(args: &LiveArgs) -> Result<LiveJob, Failure> {
        let allowed = system::allowed_cpus();
        let whole_system = args.scope == ScopeArg::System;
        if whole_system && (args.poll || args.cpus.is_some()) {
            let message = "--poll and --cpus need --scope workload: in scope system a task that is \
                           bound to a CPU without the policy would never run";
            return Err(Failure::new(Exit::Usage, message));
        }
        let mut cpus = args.cpus.unwrap_or(allowed);
        if cpus.is_empty() || !cpus.is_subset(&allowed) {
            let message = format!("CPUs {cpus}: this process may use {allowed}");
            return Err(Failure::new(Exit::Host, message));
        }
        let mode = if args.poll { polling(&allowed, &mut cpus)? } else { HostMode::Sleeping };
        let n_cpus = allowed.iter().last().map_or(1, |cpu| cpu.0 + 1);
        let topo = Topology::flat(n_cpus)
            .map_err(|error| Failure::new(Exit::Host, format!("this host's CPUs: {error}")))?;
        Ok(LiveJob {
            policy: args.policy.clone().expect("clap asks for it"),
            topo,
            cpus,
            kernel_hz: system::tick_rate(),
            seed: 1,
            whole_system,
            direct: args.direct,
            silence: duration(args.silence),
            log: args.socket.with_file_name("verifier.log"),
            session: SessionOptions {
                mode,
                // A host that polls needs none, and on a single CPU it would only be in the way.
                linger: if args.poll || allowed.len() == 1 {
                    Duration::ZERO
                } else {
                    duration(args.linger)
                },
                start: Some(Start { words: args.command.clone(), cpus, as_ext: !whole_system }),
                explain: args.explain,
                fault: args.fault.as_deref().map(fault).transpose()?,
            },
            check: false,
        })
    }

    /// The host polls on a CPU of its own: one outside the list, or else the list's first.
    fn polling(allowed: &CpuSet, cpus: &mut CpuSet) -> Result<HostMode, Failure> {
        let outside = allowed.difference(cpus).first();
        let own = outside.or(cpus.first()).unwrap_or(CpuId(0));
        cpus.remove(own);
        if cpus.is_empty() {
            let message = "--poll needs a CPU beside those of the policy";
            return Err(Failure::new(Exit::Host, message));
        }
        Ok(HostMode::Polling(own))
    }

    fn duration(span: Nanos) -> Duration {
        Duration::from_nanos(span.as_ns())
    }

    fn fault(text: &str) -> Result<Fault, Failure> {
        let wrong = || Failure::new(Exit::Usage, "a fault is hang=TIME or panic=TIME");
        let (kind, after) = text.split_once('=').ok_or_else(wrong)?;
        let after = duration(Nanos::parse(after).map_err(|_| wrong())?);
        match kind {
            "hang" => Ok(Fault::Hang(after)),
            "panic" => Ok(Fault::Panic(after)),
            _ => Err(wrong()),
        }
    }

    fn not_loaded(error: &LoadError) -> Failure {
        Failure::new(Exit::Host, error).with_hint(error.remedy())
    }

    fn exit_code(outcome: &LiveOutput) -> Result<u8, Failure> {
        match &outcome.session.command {
            Some(Ok(ended)) => Ok(ended.code as u8),
            Some(Err(error)) => {
                Err(Failure::new(Exit::Host, format!("the command could not be started: {error}")))
            }
            None => Ok(0),
        }
    }

    fn why(outcome: &Outcome) -> String {
        let what = match outcome {
            Outcome::Kernel(ending) => format!("live scheduling ended early: {ending}"),
            Outcome::Panic(text) => format!("the policy panicked: {text}"),
            Outcome::Failed(text) => format!("the relay does not answer: {text}"),
            Outcome::Command | Outcome::Stopped => return String::new(),
        };
        format!("{what}; the kernel's own scheduler has taken over; the results are invalid")
    }

    fn status(args: &LiveArgs, job: &LiveJob) -> StatusReply {
        StatusReply {
            policy: job.policy.to_string(),
            scope: scope_name(args.scope).to_string(),
            host_mode: mode_name(job.session.mode),
            kernel: system::kernel_version(),
            hz: job.kernel_hz.get(),
            cpus: job.cpus.to_string(),
            command: args.command.iter().map(|word| word.to_string_lossy().into()).collect(),
            ..StatusReply::default()
        }
    }

    fn scope_name(scope: ScopeArg) -> &'static str {
        match scope {
            ScopeArg::Workload => "workload",
            ScopeArg::System => "system",
        }
    }

    fn mode_name(mode: HostMode) -> String {
        match mode {
            HostMode::Sleeping => "sleeping, SCHED_FIFO".to_string(),
            HostMode::Polling(cpu) => format!("polling on CPU {cpu}"),
        }
    }

    fn remarks(job: &LiveJob, args: &LiveArgs, outcome: &LiveOutput) -> Vec<String> {
        let scope = match args.scope {
            ScopeArg::Workload => "workload (the command and what it starts)",
            ScopeArg::System => "system (every normal task)",
        };
        let mut remarks = outcome.session.remarks.clone();
        remarks.push(format!(
            "live: scope {scope}; host {}; Linux {} at {} Hz; CPUs {}",
            mode_name(job.session.mode),
            system::kernel_version(),
            job.kernel_hz.get(),
            job.cpus
        ));
        remarks.push(
            "live: times of tasks are the kernel's own; waits and latencies count from the relay's \
             records and include the host's answer; real-time tasks stay with the kernel"
                .to_string(),
        );
        remarks.extend(outcome.transcript.as_ref().map(|t| format!("transcript: {}", kept(t))));
        remarks
    }

    fn comparison(
        job: &LiveJob,
        args: &LiveArgs,
        outcome: &LiveOutput,
        notes: Vec<String>,
        wall: Duration,
    ) -> Comparison {
        let words: Vec<_> = args.command.iter().map(|word| word.to_string_lossy()).collect();
        Comparison {
            workload: WorkloadInfo {
                name: words.join(" "),
                about: "a command on a running kernel".to_string(),
                notes,
                ..WorkloadInfo::default()
            },
            machine: MachineInfo {
                cpus: job.cpus.len() as u32,
                nodes: 1,
                llcs_per_node: 1,
                cores_per_llc: job.cpus.len() as u32,
                threads_per_core: 1,
                cost: "real".to_string(),
            },
            runs: vec![outcome.result.clone()],
            host: HostInfo {
                wall_ns: u64::try_from(wall.as_nanos()).unwrap_or(u64::MAX),
                events_per_s: 0,
            },
        }
    }
}
