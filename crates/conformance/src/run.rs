// SPDX-License-Identifier: GPL-2.0-only
//! Running a case under a policy found by name.

use schedlab_kcore::{Core, CoreConfig, Entry, replay};
use schedlab_lab::spec::PolicySpec;
use schedlab_policies::with_policy;
use schedlab_policy_api::{
    Build, Fingerprint, NoObserver, Observer, PolicyDef, PolicyVisitor, SchedEvent, Topology,
};
use schedlab_sim::{CostModel, EventOrder, HostObserver, Sim, SimConfig, Status};
use schedlab_units::{Nanos, Time};
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

/// An observer made anew for every run.
pub trait Watch: HostObserver + Default {}
impl<W: HostObserver + Default> Watch for W {}

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

struct Fingerprinted<W>(Fingerprint, W);

impl<W: Watch> Observer for Fingerprinted<W> {
    fn event(&mut self, now: Time, event: &SchedEvent) {
        self.0.event(now, event);
        self.1.event(now, event);
    }
}
impl<W: Watch> HostObserver for Fingerprinted<W> {}

/// Runs `case` with all invariants on; yields the fingerprint and the observer.
///
/// The transcript of the run is replayed through a fresh core, which must decide the same (I10),
/// and the accounts of all tasks and CPUs must add up (I5).
///
/// # Panics
/// When an invariant is broken.
pub fn run_case<W: Watch>(policy: &PolicySpec, case: Case<'_>) -> (Fingerprint, W) {
    let visitor = Visitor::<W> { policy, case, watch: std::marker::PhantomData };
    with_policy(policy.info().name, visitor).expect("a parsed spec names a policy")
}

struct Visitor<'a, W> {
    policy: &'a PolicySpec,
    case: Case<'a>,
    watch: std::marker::PhantomData<W>,
}

impl<W: Watch> PolicyVisitor for Visitor<'_, W> {
    type Out = (Fingerprint, W);

    fn visit<P: PolicyDef>(self) -> Self::Out {
        let Case { workload, topo, cost, seed, length } = self.case;
        let time = P::INFO.time;
        let tunables = self.policy.tunables::<P::Tunables>();
        let n_tasks = workload.tasks.iter().map(|t| t.count as usize).sum();
        let build = Build { topo, hz: time.hz, n_tasks };
        let config = SimConfig {
            topo: topo.clone(),
            hz: time.hz,
            time,
            cost: cost.clone(),
            seed,
            check: true,
            transcript: true,
            order: EventOrder::Kind,
        };
        let observer = Fingerprinted(Fingerprint::default(), W::default());
        let mut sim = Sim::new(workload, P::build(&tunables, build), observer, config);
        let end = Time::ZERO + length;
        let status = sim.run_until(end).expect("generated workloads are legal");
        let end = if status == Status::Running { end } else { sim.now() };
        sim.core().check_conservation(end).unwrap_or_else(|why| panic!("{why}"));
        let transcript: Vec<Entry> = sim.take_transcript();
        let mut twin = Core::new(
            P::build(&tunables, build),
            NoObserver,
            CoreConfig { topo: topo.clone(), hz: time.hz, seed, n_tasks, check: false },
        );
        if let Err(mismatch) = replay(&mut twin, &transcript) {
            panic!("the replay of {} went another way: {mismatch:?}", self.policy);
        }
        let (_, Fingerprinted(fingerprint, watch)) = sim.into_parts();
        (fingerprint, watch)
    }
}
