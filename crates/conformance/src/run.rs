// SPDX-License-Identifier: GPL-2.0-only
//! Running a case under a policy found by name.

use schedlab_kcore::{Core, CoreConfig, Entry, replay};
use schedlab_lab::spec::PolicySpec;
use schedlab_policies::with_policy;
use schedlab_policy_api::{
    Build, Company, Fingerprint, NoObserver, Observer, Policy, PolicyDef, PolicyVisitor,
    SchedEvent, Timekeeping, Topology,
};
use schedlab_sim::{CostModel, EventOrder, HostObserver, Sim, SimConfig, Status};
use schedlab_units::{Hz, Nanos, Time};
use schedlab_workload::Workload;

/// A workload on a machine.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    /// The workload.
    pub workload: &'a Workload,
    /// The machine.
    pub topo: &'a Topology,
    /// The costs.
    pub cost: &'a CostModel,
    /// The seed.
    pub seed: u64,
    /// How long it runs.
    pub length: Nanos,
}

impl<'a> Case<'a> {
    /// The case of random tests: long enough for a few slices.
    pub fn short(
        workload: &'a Workload,
        topo: &'a Topology,
        cost: &'a CostModel,
        seed: u64,
    ) -> Self {
        Self { workload, topo, cost, seed, length: Nanos::from_ms(40) }
    }
}

impl Case<'_> {
    pub(crate) fn build(&self, hz: Hz) -> Build<'_> {
        let n_tasks = self.workload.tasks.iter().map(|t| t.count as usize).sum();
        Build { topo: self.topo, hz, n_tasks }
    }

    pub(crate) fn config(&self, time: Timekeeping, check: bool) -> SimConfig {
        SimConfig {
            topo: self.topo.clone(),
            hz: time.hz,
            time,
            cost: self.cost.clone(),
            seed: self.seed,
            check,
            transcript: check,
            order: EventOrder::Kind,
        }
    }
}

/// Every policy of the registry in every variant.
pub fn all_policies() -> Vec<PolicySpec> {
    let specs = schedlab_policies::infos().flat_map(|info| {
        info.variants.iter().map(move |variant| match variant.name {
            "" => info.name.to_string(),
            variant => format!("{}@{variant}", info.name),
        })
    });
    specs.map(|spec| PolicySpec::parse(&spec).expect("the registry's own names")).collect()
}

pub(crate) struct Fingerprinted<W>(pub(crate) Fingerprint, pub(crate) W);

impl<W: HostObserver> Observer for Fingerprinted<W> {
    fn event(&mut self, now: Time, event: &SchedEvent) {
        self.0.event(now, event);
        self.1.event(now, event);
    }
}
impl<W: HostObserver> HostObserver for Fingerprinted<W> {}

/// Runs `case` with all invariants on, `watch` observing; yields the fingerprint and the observer.
///
/// The transcript of the run is replayed through a fresh core, which must decide the same (I10),
/// and the accounts of all tasks and CPUs must add up (I5).
///
/// # Panics
/// When an invariant is broken.
pub fn run_case<W: HostObserver>(
    policy: &PolicySpec,
    case: Case<'_>,
    watch: W,
) -> (Fingerprint, W) {
    let visitor = Visitor { policy, case, watch, check: true, companies: &[] };
    let outcome = with_policy(policy.info().name, visitor).expect("a parsed spec names a policy");
    (outcome.fingerprint, outcome.watch)
}

/// What a run without checks yields.
#[derive(Clone, Debug)]
pub struct Outcome<W> {
    /// Of all its decisions.
    pub fingerprint: Fingerprint,
    /// The observer.
    pub watch: W,
    /// When it was over: at the end of the case, or when the last task had exited.
    pub end: Time,
    /// What the policy promises in each company asked about.
    pub bounds: Vec<Option<Nanos>>,
}

/// Runs `case` without the checks, which cost far more than the run; only the accounts must add up.
/// For runs that are measured. `companies` are put to the policy.
///
/// # Panics
/// When the accounts do not add up.
pub fn run_unchecked<W: HostObserver>(
    policy: &PolicySpec,
    case: Case<'_>,
    watch: W,
    companies: &[Company<'_>],
) -> Outcome<W> {
    let visitor = Visitor { policy, case, watch, check: false, companies };
    with_policy(policy.info().name, visitor).expect("a parsed spec names a policy")
}

struct Visitor<'a, W> {
    policy: &'a PolicySpec,
    case: Case<'a>,
    watch: W,
    check: bool,
    companies: &'a [Company<'a>],
}

impl<W: HostObserver> PolicyVisitor for Visitor<'_, W> {
    type Out = Outcome<W>;

    fn visit<P: PolicyDef>(self) -> Self::Out {
        let Case { workload, topo, seed, length, .. } = self.case;
        let tunables = self.policy.tunables::<P::Tunables>();
        let config = self.case.config(P::time(&tunables), self.check);
        let build = self.case.build(config.hz);
        let policy = P::build(&tunables, build);
        let bounds = self.companies.iter().map(|company| policy.wait_bound(*company)).collect();
        let observer = Fingerprinted(Fingerprint::default(), self.watch);
        let mut sim = Sim::new(workload, policy, observer, config);
        let end = Time::ZERO + length;
        let status = sim.run_until(end).expect("generated workloads are legal");
        let end = if status == Status::Running { end } else { sim.now() };
        sim.core().check_conservation(end).unwrap_or_else(|why| panic!("{why}"));
        if self.check {
            let transcript: Vec<Entry> = sim.take_transcript();
            let mut twin = Core::new(
                P::build(&tunables, build),
                NoObserver,
                CoreConfig {
                    topo: topo.clone(),
                    hz: build.hz,
                    seed,
                    n_tasks: build.n_tasks,
                    check: false,
                },
            );
            if let Err(mismatch) = replay(&mut twin, &transcript) {
                panic!("the replay of {} went another way: {mismatch:?}", self.policy);
            }
        }
        let (_, Fingerprinted(fingerprint, watch)) = sim.into_parts();
        Outcome { fingerprint, watch, end, bounds }
    }
}

/// Runs `case` without checks under the policy behind a pointer; yields the fingerprint.
///
/// # Panics
/// When the accounts do not add up.
pub fn run_boxed(policy: &PolicySpec, case: Case<'_>) -> Fingerprint {
    with_policy(policy.info().name, Boxed { policy, case }).expect("a parsed spec names a policy")
}

struct Boxed<'a> {
    policy: &'a PolicySpec,
    case: Case<'a>,
}

impl PolicyVisitor for Boxed<'_> {
    type Out = Fingerprint;

    fn visit<P: PolicyDef>(self) -> Self::Out {
        let tunables = self.policy.tunables::<P::Tunables>();
        let config = self.case.config(P::time(&tunables), false);
        let build = self.case.build(config.hz);
        let policy: Box<dyn Policy> = Box::new(P::build(&tunables, build));
        let observer = Fingerprinted(Fingerprint::default(), NoObserver);
        let mut sim = Sim::new(self.case.workload, policy, observer, config);
        let end = Time::ZERO + self.case.length;
        let status = sim.run_until(end).expect("generated workloads are legal");
        let end = if status == Status::Running { end } else { sim.now() };
        sim.core().check_conservation(end).unwrap_or_else(|why| panic!("{why}"));
        sim.into_parts().1.0
    }
}
