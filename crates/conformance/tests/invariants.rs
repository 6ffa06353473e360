// SPDX-License-Identifier: GPL-2.0-only
//! The numbered invariants of ARCHITECTURE.md over all policies.
//!
//! I1 to I5, I9 and I10 are checked inside `run_case`: the core asserts brackets, picks and the
//! direction of time, the policy checks its structures after every input.

use proptest::prelude::*;
use schedlab_conformance::{
    Case, all_policies, machine, run_case, workload, workload_without_affinity,
};
use schedlab_policy_api::{Observer, SchedEvent};
use schedlab_sim::{CostModel, HostObserver};
use schedlab_units::{CpuId, Nanos, TaskId, Time};

/// Number of random cases; `SCHEDLAB_CASES` asks for more.
fn n_cases(default: u32) -> u32 {
    std::env::var("SCHEDLAB_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

fn config(default: u32) -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(n_cases(default)) }
}

/// I2 seen from outside: who is current where, from the event stream alone.
#[derive(Default)]
struct CurrentOnce {
    current: std::collections::BTreeMap<TaskId, CpuId>,
    last: Option<Time>,
}

impl Observer for CurrentOnce {
    fn event(&mut self, now: Time, event: &SchedEvent) {
        assert!(self.last.is_none_or(|last| last <= now), "I4: time runs backwards at {now}");
        self.last = Some(now);
        if let SchedEvent::Switch { cpu, prev, next, .. } = *event {
            if let Some(task) = prev {
                assert_eq!(self.current.remove(&task), Some(cpu), "I2: {task} leaves {cpu}");
            }
            if let Some(task) = next {
                let before = self.current.insert(task, cpu);
                assert_eq!(before, None, "I2: {task} becomes current on {cpu}");
            }
        }
    }
}
impl HostObserver for CurrentOnce {}

/// I6: no CPU stays idle for an instant while a task waits.
#[derive(Default)]
struct WorkConserving {
    waiting: std::collections::BTreeSet<TaskId>,
    n_busy: usize,
    since: Option<Time>,
    violations: Vec<(Time, usize, usize)>,
}

impl Observer for WorkConserving {
    fn event(&mut self, now: Time, event: &SchedEvent) {
        if self.since.is_some_and(|since| since < now) {
            self.violations.push((now, self.waiting.len(), self.n_busy));
        }
        match *event {
            SchedEvent::WakeupNew { task, .. } | SchedEvent::Wakeup { task, .. } => {
                self.waiting.insert(task);
            }
            SchedEvent::Switch { prev, prev_state, next, .. } => {
                use schedlab_policy_api::PrevState::{Preempted, Yielded};
                if let Some(task) = prev {
                    self.n_busy -= 1;
                    if matches!(prev_state, Preempted | Yielded) {
                        self.waiting.insert(task);
                    }
                }
                if let Some(task) = next {
                    self.n_busy += 1;
                    self.waiting.remove(&task);
                }
            }
            _ => {}
        }
        self.since = None;
        if !self.waiting.is_empty() {
            self.since = Some(now);
        }
    }
}
impl HostObserver for WorkConserving {}

proptest! {
    #![proptest_config(config(256))]

    #[test]
    fn random_workload_keeps_the_invariants(
        workload in workload(),
        topo in machine(),
        costly in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let cost = CostModel::built_in(if costly { "default" } else { "zero" }).expect("there");
        let case = Case {
            workload: &workload, topo: &topo, cost: &cost, seed, length: Nanos::from_ms(40),
        };
        for policy in all_policies() {
            let (first, _) = run_case::<CurrentOnce>(&policy, case);
            let (second, _) = run_case::<CurrentOnce>(&policy, case);
            prop_assert_eq!(first, second, "I8: {} decides differently the second time", policy);
        }
    }

    #[test]
    fn work_conserving_policy_leaves_no_cpu_idle(
        workload in workload_without_affinity(),
        topo in machine(),
        seed in any::<u64>(),
    ) {
        let cost = CostModel::zero();
        let case = Case {
            workload: &workload, topo: &topo, cost: &cost, seed, length: Nanos::from_ms(40),
        };
        let promising = all_policies().into_iter().filter(|p| p.info().work_conserving.is_none());
        for policy in promising {
            let (_, watch) = run_case::<WorkConserving>(&policy, case);
            let n_cpus = topo.n_cpus();
            let broken = watch.violations.iter().find(|(_, _, n_busy)| *n_busy < n_cpus);
            prop_assert_eq!(broken, None, "I6 under {}: (time, waiting, busy)", policy);
        }
    }
}

/// I7 on the plainest case: as many nice 0 hogs as wished on one CPU.
#[test]
fn hogs_wait_no_longer_than_their_policy_promises() {
    use schedlab_workload::ir::{Op, Program, ProgramId, TaskSpec, Workload};
    for n_hogs in [2u32, 3, 7] {
        let workload = Workload {
            name: "hogs".to_string(),
            tasks: vec![TaskSpec { count: n_hogs, ..TaskSpec::new("hog", ProgramId(0)) }],
            programs: vec![Program { ops: vec![Op::RunForever], n_counters: 0 }],
            ..Workload::default()
        };
        for policy in all_policies() {
            longest_wait::check(&policy, &workload, n_hogs as usize - 1);
        }
    }
}

mod longest_wait {
    use schedlab_lab::metered::Metered;
    use schedlab_lab::spec::PolicySpec;
    use schedlab_policies::with_policy;
    use schedlab_policy_api::{Build, PolicyDef, PolicyVisitor, Topology};
    use schedlab_sim::{Sim, SimConfig};
    use schedlab_units::{Nanos, Time};
    use schedlab_workload::Workload;

    struct Visit<'a>(&'a PolicySpec, &'a Workload, usize);

    impl PolicyVisitor for Visit<'_> {
        type Out = ();

        fn visit<P: PolicyDef>(self) {
            let Self(spec, workload, n_competitors) = self;
            let topo = Topology::flat(1).expect("legal");
            let tunables = spec.tunables::<P::Tunables>();
            let time = P::time(&tunables);
            let build = Build { topo: &topo, hz: time.hz, n_tasks: 8 };
            let policy = P::build(&tunables, build);
            let Some(bound) = policy.wait_bound(n_competitors) else { return };
            let observer = Metered::new(workload, 1, Nanos::ZERO);
            let mut sim = Sim::new(workload, policy, observer, SimConfig::new(topo, time));
            let end = Time::ZERO + Nanos::from_s(20);
            sim.run_until(end).expect("runs");
            let figures = sim.into_parts().1.finish(end);
            for task in &figures.tasks {
                let longest = task.figures.longest_wait;
                assert!(
                    longest <= bound,
                    "I7: {} waits {longest} > {bound} under {spec}",
                    task.name
                );
            }
        }
    }

    pub(crate) fn check(spec: &PolicySpec, workload: &Workload, n_competitors: usize) {
        with_policy(spec.info().name, Visit(spec, workload, n_competitors)).expect("there");
    }
}
