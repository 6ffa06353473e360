// SPDX-License-Identifier: GPL-2.0-only
//! Tunables that change while tasks run, under all invariants.

use proptest::prelude::*;
use schedlab_conformance::{
    Case, Habits, Retune, all_policies, machine, run_retuned, run_unchecked, workload,
};
use schedlab_lab::spec::PolicySpec;
use schedlab_policy_api::{NoObserver, Topology};
use schedlab_sim::CostModel;
use schedlab_units::Nanos;
use schedlab_workload::{LoadOptions, resolve};

/// Number of random cases; `SCHEDLAB_CASES` asks for more. Each runs all policies.
fn n_cases(default: u32) -> u32 {
    std::env::var("SCHEDLAB_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

fn config(default: u32) -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(n_cases(default)) }
}

proptest! {
    #![proptest_config(config(48))]

    #[test]
    fn random_changes_of_tunables_keep_the_invariants(
        workload in workload(Habits::ALL),
        topo in machine(),
        seed in any::<u64>(),
    ) {
        let cost = CostModel::built_in("default").expect("there");
        let case = Case::short(&workload, &topo, &cost, seed);
        for policy in all_policies() {
            run_retuned(&policy, case, Retune::Random);
        }
    }

    #[test]
    fn tunable_set_to_its_own_value_changes_no_decision(
        workload in workload(Habits::ALL),
        topo in machine(),
        seed in any::<u64>(),
    ) {
        let cost = CostModel::built_in("default").expect("there");
        let case = Case::short(&workload, &topo, &cost, seed);
        for policy in all_policies() {
            let plain = run_unchecked(&policy, case, NoObserver, &[]).fingerprint;
            let (fingerprint, _) = run_retuned(&policy, case, Retune::Same);
            prop_assert_eq!(fingerprint, plain, "{}", policy);
        }
    }
}

#[test]
fn tunables_that_change_make_a_difference_where_there_are_any() {
    let loaded = resolve("nice-hogs", &[], &LoadOptions::default()).expect("a built-in");
    let (topo, cost) = (Topology::flat(1).expect("legal"), CostModel::zero());
    let case = Case {
        workload: &loaded.workload,
        topo: &topo,
        cost: &cost,
        seed: 1,
        length: Nanos::from_s(1),
    };
    let differ = |policy: &&PolicySpec| {
        let plain = run_unchecked(policy, case, NoObserver, &[]).fingerprint;
        run_retuned(policy, case, Retune::Random).0 != plain
    };
    let all = all_policies();
    let mut names: Vec<&str> = all.iter().filter(differ).map(|p| p.info().name).collect();
    names.dedup();
    assert_eq!(names, ["bfs", "cfs", "eevdf", "rr"]);
}
