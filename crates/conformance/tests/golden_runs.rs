// SPDX-License-Identifier: GPL-2.0-only
//! Rows of linux-2.6-spa §9: the golden runs of workload W1, a sleeper beside a hog, through the
//! whole simulator instead of the policies' own machines.
//!
//! The simulator starts at jiffy 0 instead of 300000. On one CPU neither policy looks at anything
//! but differences of times and jiffies, so nothing else follows from that. All else is as the spec
//! has it: the sleeper is queued before the hog, one `schedule` at the start, the first tick 1 ms
//! later, no cost of switches; at one instant the tick, then timers, then `schedule`, then the end
//! of bursts; the tick at the end of the run included.

use schedlab_lab::spec::PolicySpec;
use schedlab_policies::with_policy;
use schedlab_policy_api::{
    Build, Inspect, Observer, PolicyDef, PolicyVisitor, PrevState, SchedEvent, Topology,
};
use schedlab_sim::{HostObserver, Sim, SimConfig, Status};
use schedlab_units::{Nanos, TaskId, Time};
use schedlab_workload::{LoadOptions, Workload, load_text};

const SLEEPER: TaskId = TaskId(0);
const HOG: TaskId = TaskId(1);

/// W1 with bursts and sleeps of these lengths.
fn w1(burst_us: u64, sleep_ms: u64) -> Workload {
    let text = format!(
        "[workload]\nname = \"w1\"\nabout = \"a sleeper beside a hog\"\n\
         [[task]]\nname = \"sleeper\"\nloop = [\"run {burst_us}us\", \"sleep {sleep_ms}ms\"]\n\
         [[task]]\nname = \"hog\"\ndo = [\"run forever\"]\n"
    );
    let loaded = load_text("w1.toml", text, &[], &LoadOptions::default());
    loaded.unwrap_or_else(|error| panic!("{error:?}")).workload
}

/// Counts switches and the bursts that the sleeper has completed.
#[derive(Default)]
struct Counts {
    switches: u64,
    bursts: u64,
}

impl Observer for Counts {
    fn event(&mut self, _: Time, event: &SchedEvent) {
        if let SchedEvent::Switch { prev, prev_state, .. } = event {
            self.switches += 1;
            let completed = *prev == Some(SLEEPER) && *prev_state == PrevState::Sleeping;
            self.bursts += u64::from(completed);
        }
    }
}
impl HostObserver for Counts {}

struct Run<'a> {
    policy: &'a PolicySpec,
    workload: &'a Workload,
    length: Nanos,
}

impl PolicyVisitor for Run<'_> {
    /// Figures by the names of the tables' columns.
    type Out = Vec<(&'static str, i64)>;

    fn visit<P: PolicyDef>(self) -> Self::Out {
        let tunables = self.policy.tunables::<P::Tunables>();
        let topo = Topology::flat(1).expect("a machine");
        let time = P::time(&tunables);
        let policy = P::build(&tunables, Build { topo: &topo, hz: time.hz, n_tasks: 2 });
        let config = SimConfig { check: true, ..SimConfig::new(topo, time) };
        let mut sim = Sim::new(self.workload, policy, Counts::default(), config);
        let end = Time::ZERO + self.length;
        // Up to and with what falls on the end.
        let status = sim.run_until(end + Nanos::from_ns(1));
        assert_eq!((status, sim.now()), (Ok(Status::Running), end));
        let core = sim.core();
        let run = |task| core.task_account(end, task).run.as_ns() as i64;
        let figures = core.inspect(end, SLEEPER);
        let of_sleeper = |wanted: &str| {
            figures.iter().find(|(name, _)| *name == wanted).expect("the policy says so").1
        };
        let mut stats = Inspect::new();
        core.policy().stats(&mut stats);
        let counts = core.observer();
        let mut out = vec![
            ("sleeper_ns", run(SLEEPER)),
            ("hog_ns", run(HOG)),
            ("switches", counts.switches as i64),
            ("bursts", counts.bursts as i64),
            ("sleep_avg", of_sleeper("sleep_avg")),
            ("credit", of_sleeper("interactive_credit")),
        ];
        out.extend(stats.into_iter().filter(|(name, _)| *name == "promotions"));
        out
    }
}

/// Runs every row of `table` under `policy`.
fn check(table: &str, policy: &str) {
    let mut lines = table.lines().filter(|line| !line.starts_with('#'));
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let mut n_rows = 0;
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        let cell = |name: &str| cells[header.iter().position(|n| *n == name).expect("a column")];
        let number = |name: &str| -> i64 { cell(name).parse().expect("a number") };
        let mut spec = policy.to_string();
        if !cell("set").is_empty() {
            spec += if spec.contains(':') { "," } else { ":" };
            spec += cell("set");
        }
        let spec = PolicySpec::parse(&spec).expect("a policy");
        let workload = w1(number("burst_us") as u64, number("sleep_ms") as u64);
        let length = Nanos::from_s(number("length_s") as u64);
        let run = Run { policy: &spec, workload: &workload, length };
        for (name, found) in with_policy(spec.info().name, run).expect("it is there") {
            assert_eq!(found, number(name), "row {}, {name}", cell("id"));
        }
        n_rows += 1;
    }
    assert_eq!(n_rows, 6, "{policy}");
}

#[test]
fn vectors_66_to_71_golden_runs_through_the_simulator() {
    let table = include_str!("../../policies/src/o1/vectors/golden.csv");
    // 80 % of 1020 ms are the 816 ms of the spec.
    check(table, "o1@2.6.6:start_sleep_avg=80");
}

#[test]
fn vectors_72_to_77_spa_through_the_simulator() {
    check(include_str!("../../policies/src/spa/vectors/golden.csv"), "spa@2.6.6");
}
