// SPDX-License-Identifier: GPL-2.0-only
//! The replay of a transcript through the policy that its header names.

use std::io::Read;

use schedlab_kcore::{Core, CoreConfig};
use schedlab_lab::diff::{Decision as Shown, Divergence, Side};
use schedlab_lab::moment::{Candidate, Moment};
use schedlab_lab::spec::PolicySpec;
use schedlab_live::host::{Habits, Host, LiveObserver, Thread};
use schedlab_live::transcript::{Difference, replay as replay_host};
use schedlab_policy_api::{Observer, Policy, SchedEvent, TaskState, Topology, TunableValue};
use schedlab_trace::transcript::{End, Header, Output, SCHEMA, open};
use schedlab_units::{CpuSet, Hz, Located, Nanos, TaskId};

use crate::policy::build;

/// Most tasks for which a header may ask room.
const MAX_TASKS: usize = 1 << 20;

/// What a replay found.
#[derive(Clone, Debug)]
pub struct Replay {
    /// What the file says of its run.
    pub header: Header,
    /// How the run ended; none = it was killed, and the file ends with what had been written.
    pub end: Option<End>,
    /// Inputs of the host.
    pub inputs: u64,
    /// Decisions what a CPU runs next that were alike.
    pub picks: u64,
    /// The first difference, with what was alike before it; A is the record, B the replay.
    pub divergence: Option<Divergence>,
    /// The policy panicked in the end, as it had then.
    pub panics_again: bool,
}

/// Fills in the part of a header that decides how the host goes; `epoch` is CLOCK_MONOTONIC in ns at
/// the policy's time 0.
pub fn conditions(
    rest: Header,
    policy: &PolicySpec,
    (topo, cpus): (&Topology, &CpuSet),
    rates: Habits,
    seed: u64,
    n_tasks: usize,
    epoch: u64,
) -> Header {
    let shown = |set: &schedlab_lab::result::Setting| {
        (set.tunable.name.to_string(), set.tunable.show(set.value))
    };
    Header {
        schema: SCHEMA.to_string(),
        version: env!("CARGO_PKG_VERSION").to_string(),
        policy: policy.to_string(),
        tunables: policy.settings().iter().map(shown).collect(),
        kernel_hz: rates.kernel_hz.get(),
        hz: rates.hz.get(),
        ticks: rates.ticks,
        cpus: cpus.to_string(),
        topology: [
            topo.nodes(),
            topo.llcs_per_node(),
            topo.cores_per_llc(),
            topo.threads_per_core(),
        ],
        seed,
        n_tasks,
        epoch_ns: epoch,
        ..rest
    }
}

/// Replays a transcript, packed with gzip or zstd or not at all, up to the first difference.
///
/// # Errors
/// A file that is no transcript, was cut in the middle of a block, or is damaged, with the byte
/// offset; a header that this version of the program cannot follow.
pub fn replay(input: impl Read) -> Result<Replay, Located> {
    let mut transcript = open(input)?;
    let policy = spec_of(transcript.header())?;
    let mut host = host_of(transcript.header(), &policy)?;
    let tunable = |name: &str, value: TunableValue| {
        let all = policy.info().tunables.iter();
        let mut legal = all.filter(|tunable| (tunable.min..=tunable.max).contains(&value));
        legal.find(|tunable| tunable.name == name).map(|tunable| tunable.name)
    };
    let found = replay_host(&mut host, &mut transcript, tunable)?;
    let divergence = found.difference.as_ref().map(|difference| Divergence {
        common: found.alike,
        sides: sides(&host, difference, &transcript.header().version),
    });
    Ok(Replay {
        header: transcript.header().clone(),
        end: transcript.end().cloned(),
        inputs: found.inputs,
        picks: found.picks,
        divergence,
        panics_again: found.panics_again,
    })
}

/// The policy with the tunables it had, whatever their defaults are by now.
fn spec_of(header: &Header) -> Result<PolicySpec, Located> {
    let name = header.policy.split(':').next().unwrap_or_default();
    let tunables: Vec<_> = header.tunables.iter().map(|(k, v)| format!("{k}={v}")).collect();
    let text = match tunables.is_empty() {
        true => name.to_string(),
        false => format!("{name}:{}", tunables.join(",")),
    };
    PolicySpec::parse(&text).map_err(|error| {
        Located::whole(format!("the policy of the transcript: {error}"))
            .hint("replay it with the version of schedlab that wrote it")
    })
}

fn host_of(header: &Header, policy: &PolicySpec) -> Result<Host<Box<dyn Policy>, Silent>, Located> {
    let wrong = |what: &str| Located::whole(format!("the header: {what}")).hint("it is damaged");
    let [nodes, llcs, cores, threads] = header.topology;
    let topo = Topology::new(nodes, llcs, cores, threads)
        .map_err(|error| wrong(&format!("the topology: {error}")))?;
    let cpus = CpuSet::parse(&header.cpus).map_err(|error| wrong(&format!("CPUs: {error}")))?;
    if cpus.is_empty() || !cpus.is_subset(topo.all()) {
        return Err(wrong(&format!("CPUs {cpus} on a machine of {}", topo.n_cpus())));
    }
    if header.n_tasks > MAX_TASKS {
        return Err(wrong(&format!("room for {} tasks", header.n_tasks)));
    }
    if !(1..=100_000).contains(&header.kernel_hz) {
        return Err(wrong(&format!("a kernel of {} Hz", header.kernel_hz)));
    }
    let (subject, hz) = build(policy, &topo, header.n_tasks);
    if hz.get() != header.hz {
        let message =
            format!("the policy counted ticks at {} Hz, now it does at {}", header.hz, hz.get());
        return Err(
            Located::whole(message).hint("replay it with the version of schedlab that wrote it")
        );
    }
    let (seed, n_tasks) = (header.seed, header.n_tasks);
    let core = Core::new(subject, Silent, CoreConfig { topo, hz, seed, n_tasks, check: false });
    let rates = Habits { hz, kernel_hz: Hz::new(header.kernel_hz), ticks: header.ticks };
    Ok(Host::new(core, rates, cpus, header.epoch_ns))
}

/// Takes note of nothing.
struct Silent;

impl Observer for Silent {
    fn event(&mut self, _now: schedlab_units::Time, _event: &SchedEvent) {}
}

impl LiveObserver for Silent {
    fn joined(&mut self, _task: TaskId, _thread: &Thread) {}
    fn renamed(&mut self, _task: TaskId, _name: &str) {}
    fn ran(&mut self, _task: TaskId, _span: Nanos) {}
}

/// Both sides at the difference. The values are those of the policy in the replay: up to here they
/// were the same in the run.
fn sides<P: Policy>(host: &Host<P, Silent>, difference: &Difference, version: &str) -> [Side; 2] {
    let decision = |output: Option<&Output>, panic: Option<&String>| Shown {
        time: host.now(),
        what: match (output, panic) {
            (Some(output), _) => words(host, output),
            (None, Some(panic)) => format!("the policy panics: {panic}"),
            (None, None) => "the host tells nothing more".to_string(),
        },
    };
    let Difference { recorded, replayed, panic } = difference;
    let meant = recorded.as_ref().and_then(pid_of);
    let why = format!("schedlab {version} told so; values of the run are not in the file");
    let then = moment(host, |pid| Some(pid) == meant);
    [
        Side {
            decision: Some(decision(recorded.as_ref(), None)),
            moment: if then.candidates.is_empty() { Err(why) } else { Ok(then) },
        },
        Side {
            decision: Some(decision(replayed.as_ref(), panic.as_ref())),
            moment: Ok(moment(host, |_| true)),
        },
    ]
}

fn pid_of(output: &Output) -> Option<u32> {
    match output {
        Output::Give(_, decision) => Some(decision.run.pid),
        Output::Stop(_, run) => Some(run.pid),
        Output::Kick(_) | Output::Commit(_) => None,
    }
}

fn words<P: Policy>(host: &Host<P, Silent>, output: &Output) -> String {
    let name = |pid: u32| {
        let thread = host.threads().find(|(_, thread, _)| thread.pid == pid);
        thread.map_or_else(|| format!("thread {pid}"), |(_, thread, _)| label(thread))
    };
    match output {
        Output::Give(cpu, decision) => {
            format!("CPU {cpu} is to run {}, lease {}", name(decision.run.pid), decision.run.lease)
        }
        Output::Stop(cpu, run) => {
            format!("the run of {} on CPU {cpu} is to end, lease {}", name(run.pid), run.lease)
        }
        Output::Kick(cpu) => format!("CPU {cpu} is to look for work"),
        Output::Commit(_) => "nothing more before all that takes effect".to_string(),
    }
}

fn label(thread: &Thread) -> String {
    format!("{}[{}]", thread.comm, thread.pid)
}

/// The threads that want a CPU, of those that are `meant`; the one that runs first.
fn moment<P: Policy>(host: &Host<P, Silent>, meant: impl Fn(u32) -> bool) -> Moment {
    let core = host.core();
    let mut candidates: Vec<Candidate> = host
        .threads()
        .filter(|(_, thread, _)| meant(thread.pid))
        .map(|(task, thread, _)| (task, thread, core.tasks().get(task)))
        .filter(|(_, _, facts)| matches!(facts.state, TaskState::Running | TaskState::Runnable))
        .map(|(task, thread, facts)| Candidate {
            task,
            name: label(thread),
            cpu: facts.cpu,
            runs: facts.state == TaskState::Running,
            values: core.inspect(host.now(), task),
        })
        .collect();
    candidates.sort_by_key(|candidate| (candidate.cpu, !candidate.runs, candidate.task));
    Moment { time: host.now(), candidates }
}
