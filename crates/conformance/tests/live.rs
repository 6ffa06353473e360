// SPDX-License-Identifier: GPL-2.0-only
//! The host of live runs with every policy on a simulated kernel.
//!
//! Checked inside `run_live`: the core's and the policy's invariants after every input, that a CPU is
//! given a task only after it asked, that the task waits there as far as the host was told, and that
//! the transcript replays. Here: that every task gets its CPU, that host and relay agree, and that a
//! policy behind a pointer decides as it does without.

use proptest::prelude::*;
use schedlab_conformance::live::{Scenario, run_live};
use schedlab_conformance::{
    Case, Habits, all_policies, machine, run_boxed, run_unchecked, workload,
};
use schedlab_liverun::transcript::replay;
use schedlab_policy_api::{NoObserver, Topology, WorkConservation};
use schedlab_sim::CostModel;
use schedlab_units::Nanos;

/// Number of random cases; `SCHEDLAB_CASES` asks for more. Each runs all policies.
fn n_cases(default: u32) -> u32 {
    std::env::var("SCHEDLAB_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

fn config(default: u32) -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(n_cases(default)) }
}

/// Machines of 1 to 4 CPUs, in shapes of sockets, cores and threads.
fn topology() -> impl Strategy<Value = Topology> {
    prop_oneof![
        Just((1, 1, 1)),
        Just((1, 2, 1)),
        Just((1, 3, 1)),
        Just((1, 2, 2)),
        Just((2, 2, 1)),
    ]
    .prop_map(|(packages, cores, threads)| {
        Topology::new(packages, cores, threads, 1).expect("legal")
    })
}

prop_compose! {
    fn scenario(ring: usize)(
        topo in topology(),
        seed in any::<u64>(),
        n_tasks in 1_usize..8,
        spare in any::<bool>(),
        whole_system in any::<bool>(),
        [others, changes, affinity, hotplug, retunes] in any::<[bool; 5]>(),
        latency_ns in prop_oneof![Just(0_u64), Just(5_000), Just(200_000)],
        host_on_cpu in prop_oneof![Just(0_u64), Just(50)],
    ) -> (Topology, Scenario) {
        let n_cpus = topo.n_cpus();
        let scenario = Scenario {
            seed,
            n_cpus,
            spared_cpus: usize::from(spare && n_cpus > 1),
            n_tasks,
            length: Nanos::from_ms(30),
            ring,
            whole_system,
            others,
            changes,
            affinity,
            hotplug,
            retunes,
            latency_ns,
            host_on_cpu,
        };
        (topo, scenario)
    }
}

proptest! {
    #![proptest_config(config(24))]

    #[test]
    fn task_of_a_live_run_is_given_a_cpu_in_the_end((topo, scenario) in scenario(1 << 16)) {
        for policy in all_policies() {
            let run = run_live(&policy, &topo, &scenario);
            prop_assert!(run.at_rest, "{}: a task waits for ever\n{}", policy, run.explanation);
            prop_assert_eq!(
                run.totals.odd, Default::default(), "{}: {}", &policy, run.explanation
            );
            prop_assert_eq!(run.counters.rescued, 0, "{}: {}", &policy, run.explanation);
            prop_assert_eq!(run.counters.fallback, 0, "{}", &policy);
            prop_assert_eq!(run.totals.run.as_ns(), run.told_run, "{}", &policy);
            if policy.info().work_conserving == WorkConservation::Always {
                prop_assert_eq!(run.totals.nudges, 0, "{}", &policy);
            }
        }
    }

    /// What is lost the kernel's watchdog must mend; the host only has to stay alive.
    #[test]
    fn host_survives_records_that_a_full_ring_lost((topo, scenario) in scenario(16)) {
        for policy in all_policies() {
            run_live(&policy, &topo, &scenario);
        }
    }

    /// I10, through the bytes of the file; a full ring changes nothing about that.
    #[test]
    fn transcript_of_a_live_run_replays_to_the_same_decisions(
        (topo, scenario) in prop_oneof![scenario(1 << 16), scenario(16)],
    ) {
        for policy in all_policies() {
            let run = run_live(&policy, &topo, &scenario);
            let replayed = replay(&run.transcript[..]).unwrap_or_else(|fault| panic!("{fault}"));
            prop_assert!(replayed.divergence.is_none(), "{}: {:?}", policy, replayed.divergence);
            prop_assert_eq!(replayed.picks, run.totals.decisions, "{}", policy);
            prop_assert!(replayed.end.is_some());
        }
    }

    #[test]
    fn policy_behind_a_pointer_decides_the_same(
        workload in workload(Habits::ALL),
        topo in machine(),
        seed in any::<u64>(),
    ) {
        let cost = CostModel::built_in("default").expect("there");
        let case = Case::short(&workload, &topo, &cost, seed);
        for policy in all_policies() {
            let plain = run_unchecked(&policy, case, NoObserver, &[]).fingerprint;
            prop_assert_eq!(run_boxed(&policy, case), plain, "{}", policy);
        }
    }
}
