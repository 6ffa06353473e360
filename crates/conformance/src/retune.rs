// SPDX-License-Identifier: GPL-2.0-only
//! Runs in which tunables change, as sysctls and features do.

use schedlab_kcore::{Core, CoreConfig, replay};
use schedlab_lab::spec::PolicySpec;
use schedlab_policies::with_policy;
use schedlab_policy_api::{
    Fingerprint, NoObserver, PolicyDef, PolicyVisitor, Tunable, TunableUnit, TunableValue, Tunables,
};
use schedlab_sim::{Sim, Status};
use schedlab_units::{Nanos, Rng, Time};

use crate::run::{Case, Fingerprinted};

/// Time between two changes.
const BETWEEN: Nanos = Nanos::from_us(700);

/// To what tunables are set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retune {
    /// Any legal value.
    Random,
    /// The value that they have.
    Same,
}

/// A legal value of `tunable`, often one of the ends of its range.
pub fn random_value(rng: &mut Rng, tunable: &Tunable) -> TunableValue {
    let (min, max) = (tunable.min, tunable.max);
    let width = max.abs_diff(min);
    match (tunable.unit, rng.below(6)) {
        (TunableUnit::Flag | TunableUnit::Choice(_), _) | (_, 0) => {
            min + rng.below(width + 1) as i64
        }
        (_, 1) => min,
        (_, 2) => max,
        (_, 3) => tunable.default,
        // Small ones are as likely as large ones.
        _ => min + (rng.below(width + 1) >> rng.below(40)) as i64,
    }
}

/// Runs `case` with all invariants on and sets one live tunable after the other; yields the
/// fingerprint and how many changes there were.
///
/// # Panics
/// When an invariant is broken, a live tunable is not declared or not taken, or the replay differs.
pub fn run_retuned(policy: &PolicySpec, case: Case<'_>, how: Retune) -> (Fingerprint, usize) {
    with_policy(policy.info().name, Retuned { policy, case, how }).expect("a parsed spec's name")
}

struct Retuned<'a> {
    policy: &'a PolicySpec,
    case: Case<'a>,
    how: Retune,
}

impl PolicyVisitor for Retuned<'_> {
    type Out = (Fingerprint, usize);

    fn visit<P: PolicyDef>(self) -> Self::Out {
        let Case { workload, topo, seed, length, .. } = self.case;
        let tunables = self.policy.tunables::<P::Tunables>();
        let config = self.case.config(P::time(&tunables), true);
        let build = self.case.build(config.hz);
        let observer = Fingerprinted(Fingerprint::default(), NoObserver);
        let mut sim = Sim::new(workload, P::build(&tunables, build), observer, config);
        let live = sim.core().policy().live_tunables();
        let mut rng = Rng::stream(seed, "retune", 0);
        let (end, mut at, mut n_changes) = (Time::ZERO + length, Time::ZERO, 0);
        let end = loop {
            at = end.min(at + BETWEEN);
            let status = sim.run_until(at).expect("generated workloads are legal");
            if status != Status::Running {
                break sim.now();
            }
            if at == end {
                break end;
            }
            if live.is_empty() {
                continue;
            }
            let name = live[rng.below(live.len() as u64) as usize];
            let index = P::Tunables::index_of(name).unwrap_or_else(|error| panic!("{error}"));
            let value = match self.how {
                Retune::Random => random_value(&mut rng, &P::Tunables::SPECS[index]),
                Retune::Same => tunables.get_index(index),
            };
            assert!(sim.core_mut().set_tunable(at, name, value), "`{name}` was not taken");
            n_changes += 1;
        };
        sim.core().check_conservation(end).unwrap_or_else(|why| panic!("{why}"));
        let transcript = sim.take_transcript();
        let config = CoreConfig {
            topo: topo.clone(),
            hz: build.hz,
            seed,
            n_tasks: build.n_tasks,
            check: false,
        };
        let mut twin = Core::new(P::build(&tunables, build), NoObserver, config);
        if let Err(mismatch) = replay(&mut twin, &transcript) {
            panic!("the replay of {} went another way: {mismatch:?}", self.policy);
        }
        (sim.into_parts().1.0, n_changes)
    }
}
