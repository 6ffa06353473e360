// SPDX-License-Identifier: GPL-2.0-only
//! The numbered invariants of ARCHITECTURE.md over all policies in all variants.
//!
//! I1 to I5, I9 and I10 are checked inside `run_case`: the core asserts brackets, picks and the
//! direction of time, the policy checks its structures after every input. I6 and I7 are what each
//! policy declares: `PolicyInfo::work_conserving`, `PolicyInfo::starvation`, `Policy::wait_bound`.

use proptest::prelude::*;
use schedlab_conformance::{
    Case, CurrentOnce, Habits, IdleBesideWaiting, LongestWait, Mixed, all_policies, company,
    machine, run_case, run_unchecked, workload,
};
use schedlab_lab::spec::PolicySpec;
use schedlab_policy_api::{Company, NoObserver, Topology, WorkConservation};
use schedlab_sim::CostModel;
use schedlab_units::{Nanos, Nice};

/// Number of random cases; `SCHEDLAB_CASES` asks for more. Each runs all policies.
fn n_cases(default: u32) -> u32 {
    std::env::var("SCHEDLAB_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

fn config(default: u32) -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(n_cases(default)) }
}

proptest! {
    #![proptest_config(config(96))]

    #[test]
    fn random_workload_keeps_the_invariants(
        workload in workload(Habits::ALL),
        topo in machine(),
        costly in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let cost = CostModel::built_in(if costly { "default" } else { "zero" }).expect("there");
        let case = Case::short(&workload, &topo, &cost, seed);
        for policy in all_policies() {
            let (first, _) = run_case(&policy, case, CurrentOnce::default());
            let second = run_unchecked(&policy, case, NoObserver, &[]).fingerprint;
            prop_assert_eq!(first, second, "I8: {} decides differently the second time", policy);
        }
    }

    #[test]
    fn idle_cpu_finds_waiting_tasks_as_its_policy_promises(
        workload in workload(Habits { affinity: false, ..Habits::ALL }),
        topo in machine(),
        seed in any::<u64>(),
    ) {
        let cost = CostModel::zero();
        let case = Case::short(&workload, &topo, &cost, seed);
        for policy in all_policies() {
            let info = policy.info();
            let promised = match info.work_conserving {
                WorkConservation::Always => Nanos::ZERO,
                WorkConservation::Ticks(n, _) => info.time.hz.tick() * u64::from(n),
                WorkConservation::Unbounded(_) => continue,
            };
            let watch = run_unchecked(&policy, case, IdleBesideWaiting::new(&topo), &[]).watch;
            prop_assert!(
                watch.longest <= promised,
                "I6 under {}: {} > {}, (until, task, CPU) {:?}",
                policy, watch.longest, promised, watch.worst
            );
        }
    }
}

/// Runs `mixed` on one CPU and compares the longest wait of each hog with the promise.
fn check_waits(mixed: &Mixed, seed: u64) -> Result<(), TestCaseError> {
    let (topo, cost) = (Topology::flat(1).expect("legal"), CostModel::zero());
    let others: Vec<Vec<Nice>> = (0..mixed.n_hogs).map(|hog| mixed.others(hog)).collect();
    let companies: Vec<Company<'_>> =
        others.iter().enumerate().map(|(hog, others)| mixed.company(hog, others)).collect();
    let case = Case {
        workload: &mixed.workload,
        topo: &topo,
        cost: &cost,
        seed,
        length: Nanos::from_s(10),
    };
    for policy in all_policies() {
        let run = run_unchecked(&policy, case, LongestWait::new(mixed.n_hogs), &companies);
        for (hog, longest) in run.watch.finish(run.end) {
            if let Some(bound) = run.bounds[hog] {
                prop_assert!(
                    longest <= bound,
                    "I7 under {}: hog {} of {:?} waits {} > {}",
                    policy,
                    hog,
                    mixed.nice,
                    longest,
                    bound
                );
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(config(12))]

    #[test]
    fn hog_beside_hogs_waits_no_longer_than_its_policy_promises(
        mixed in company(false),
        seed in any::<u64>(),
    ) {
        check_waits(&mixed, seed)?;
    }

    #[test]
    fn hog_beside_sleepers_waits_no_longer_than_its_policy_promises(
        mixed in company(true),
        seed in any::<u64>(),
    ) {
        check_waits(&mixed, seed)?;
    }
}

/// What a policy promises to a nice 0 hog beside two other tasks.
fn promised(policy: &PolicySpec, sleepers: bool) -> Option<Nanos> {
    let (topo, cost) = (Topology::flat(1).expect("legal"), CostModel::zero());
    let workload = schedlab_workload::Workload::default();
    let case = Case { workload: &workload, topo: &topo, cost: &cost, seed: 1, length: Nanos::ZERO };
    let others = [Nice::ZERO; 2];
    let company = Company { nice: Nice::ZERO, others: &others, sleepers };
    run_unchecked(policy, case, NoObserver, &[company]).bounds[0]
}

#[test]
fn promises_in_words_agree_with_the_bounds() {
    for info in schedlab_policies::infos() {
        let variants = all_policies().into_iter().filter(|policy| policy.info().name == info.name);
        let bounds: Vec<Option<Nanos>> = variants
            .flat_map(|policy| [false, true].map(|sleepers| promised(&policy, sleepers)))
            .collect();
        let (some, none) = (bounds.iter().any(Option::is_some), bounds.contains(&None));
        assert_eq!(info.starvation.bound.is_some(), some, "{}: is there a bound?", info.name);
        assert_eq!(info.starvation.except.is_some(), none, "{}: is there none?", info.name);
    }
}
