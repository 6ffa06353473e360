// SPDX-License-Identifier: GPL-2.0-only
//! A policy's host on the simulated kernel.

use std::time::Duration;

use schedlab_kcore::{Core, CoreConfig, replay};
use schedlab_lab::spec::PolicySpec;
use schedlab_live::host::{Habits, Host, LiveObserver, Thread, Totals};
use schedlab_live::kernel::{Counters, Kernel};
use schedlab_live::message::Message;
use schedlab_live::transcript::{Input, Recorded};
use schedlab_liverun::transcript::conditions;
use schedlab_policies::with_policy;
use schedlab_policy_api::{
    Build, NoObserver, Observer, Policy, PolicyDef, PolicyVisitor, SchedEvent, Topology, Tunable,
};
use schedlab_trace::transcript::{End, Header};
use schedlab_units::{CpuSet, Hz, Nanos, Rng, TaskId, Time};

use super::kept::Memory;
use super::machine::EPOCH;
use super::{FakeKernel, Relaying, Scenario};
use crate::{CurrentOnce, random_value};

/// Longest sleep of the host, as in live runs.
const LOOK: Duration = Duration::from_millis(20);
/// How long after the end of their work tasks may wait for a CPU, in ns.
const PATIENCE_NS: u64 = 2_000_000_000;

/// What a run yields.
#[derive(Clone, Debug)]
pub struct LiveRun {
    /// Totals of the relay.
    pub counters: Counters,
    /// Totals of the host.
    pub totals: Totals,
    /// Whether every task came to rest in time.
    pub at_rest: bool,
    /// Both views at the end, when something is wrong.
    pub explanation: String,
    /// CPU time in ns that the records told of.
    pub told_run: u64,
    /// The transcript, as `live --transcript` writes it.
    pub transcript: Vec<u8>,
}

/// Tasks that room is made for.
const N_TASKS: usize = 16;

#[derive(Default)]
struct Watched(CurrentOnce);

impl Observer for Watched {
    fn event(&mut self, now: Time, event: &SchedEvent) {
        self.0.event(now, event);
    }
}

impl LiveObserver for Watched {
    fn joined(&mut self, _task: TaskId, _thread: &Thread) {}
    fn renamed(&mut self, _task: TaskId, _name: &str) {}
    fn ran(&mut self, _task: TaskId, _span: Nanos) {}
}

struct Visitor<'a> {
    policy: &'a PolicySpec,
    topo: &'a Topology,
}

impl PolicyVisitor for Visitor<'_> {
    type Out = (Box<dyn Policy>, Box<dyn Policy>, Hz);

    fn visit<P: PolicyDef>(self) -> Self::Out {
        let tunables = self.policy.tunables::<P::Tunables>();
        let hz = P::time(&tunables).hz;
        let build = Build { topo: self.topo, hz, n_tasks: N_TASKS };
        (Box::new(P::build(&tunables, build)), Box::new(P::build(&tunables, build)), hz)
    }
}

/// Says which run a panic ended.
struct Named<'a>(&'a PolicySpec, &'a Scenario);

impl Drop for Named<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("under {}: {:?}", self.0, self.1);
        }
    }
}

/// Runs `policy` on the simulated kernel with all checks on.
///
/// # Panics
/// When the policy, the core or the host breaks a rule.
pub fn run_live(policy: &PolicySpec, topo: &Topology, scenario: &Scenario) -> LiveRun {
    let _named = Named(policy, scenario);
    let visitor = Visitor { policy, topo };
    let name = policy.info().name;
    let (subject, twin, hz) = with_policy(name, visitor).expect("a parsed spec names a policy");
    let habits = subject.live_habits();
    let relaying = Relaying {
        quiet_enqueue: !habits.wakeups_preempt,
        idle_dispatch: habits.woken_takes_idle_cpu,
        direct_ticks: habits.ticks,
    };
    let config =
        CoreConfig { topo: topo.clone(), hz, seed: scenario.seed, n_tasks: N_TASKS, check: true };
    let mut core = Core::new(subject, Watched::default(), config.clone());
    if !scenario.is_lossy() {
        core.start_transcript();
    }
    let cpus = CpuSet::first_n(scenario.n_cpus - scenario.spared_cpus);
    let rates = Habits { hz, kernel_hz: Hz::new(1000), ticks: habits.ticks };
    let mut kernel = FakeKernel::new(scenario.clone(), relaying);
    let mut host = Host::new(core, rates, cpus, EPOCH);
    let names = host.core().policy().live_tunables();
    let all = policy.info().tunables.iter();
    let live: Vec<&Tunable> = all.filter(|tunable| names.contains(&tunable.name)).collect();
    assert_eq!(live.len(), names.len(), "live tunables that are not declared");
    let mut rng = Rng::stream(scenario.seed, "retune", 0);
    let (seed, file) = (scenario.seed, Memory::default());
    let keeper = file.keeper();
    let machine = (topo, &cpus);
    keeper.head(&conditions(Header::default(), policy, machine, rates, seed, N_TASKS, EPOCH));
    host.start(&mut Recorded::new(&mut kernel, Some(keeper.clone()))).expect("it never fails");
    let mut batch: Vec<Message> = Vec::new();
    let work_ends = EPOCH + scenario.length.as_ns();
    let at_rest = loop {
        if kernel.clock() >= work_ends {
            kernel.wind_down();
            if kernel.is_at_rest() {
                break true;
            }
            if kernel.clock() >= work_ends + PATIENCE_NS {
                break false;
            }
        }
        kernel.drain(Duration::ZERO, &mut batch).expect("it never fails");
        if batch.is_empty() {
            kernel.drain(host.patience(LOOK), &mut batch).expect("it never fails");
        }
        let clock = kernel.clock();
        let mut recorded = Recorded::new(&mut kernel, Some(keeper.clone()));
        let handled = if batch.is_empty() {
            keeper.input(Input::Clock { clock, acts: host.acts_at(clock) });
            host.pass_time(&mut recorded, clock)
        } else {
            keeper.input(Input::Records(&batch));
            host.handle(&mut recorded, &batch)
        };
        handled.expect("it never fails");
        if scenario.retunes && !live.is_empty() && rng.below(20) == 0 {
            let tunable = live[rng.below(live.len() as u64) as usize];
            let value = random_value(&mut rng, tunable);
            assert!(host.set_tunable(tunable.name, value), "`{}` was not taken", tunable.name);
            keeper.tunable(tunable.name, value);
        }
    };
    keeper.finish(End {
        clock: kernel.clock(),
        is_complete: true,
        is_valid: true,
        ring_full: kernel.counters().ring_full,
        why: "the tasks are at rest".to_string(),
    });
    let odd = host.totals().odd;
    let wrong = !at_rest || odd != Default::default() || kernel.counters().rescued != 0;
    let explanation = if wrong { host.explain(&mut kernel) } else { String::new() };
    let transcript = host.take_transcript();
    let (core, end, totals) = host.finish(kernel.clock());
    core.check_conservation(end).unwrap_or_else(|why| panic!("{why}"));
    let mut twin = Core::new(twin, NoObserver, CoreConfig { check: false, ..config });
    if let Err(mismatch) = replay(&mut twin, &transcript) {
        panic!("the replay of {policy} went another way: {mismatch:?}");
    }
    LiveRun {
        counters: kernel.counters(),
        totals,
        at_rest,
        explanation,
        told_run: kernel.told_run(),
        transcript: file.take(),
    }
}
