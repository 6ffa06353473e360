// SPDX-License-Identifier: GPL-2.0-only
//! Simulated events per second, beside the bare cost of an event queue of the same size.
//!
//! `cargo bench -p schedlab-lab` prints the table of docs/performance.md. Everything is measured in
//! one process, alternating, and reported as the best of several passes: the ratios count.

use std::hint::black_box;
use std::time::{Duration, Instant};

use schedlab_lab::metered::Metered;
use schedlab_lab::spec::PolicySpec;
use schedlab_policies::with_policy;
use schedlab_policy_api::{Build, NoObserver, PolicyDef, PolicyVisitor, Topology};
use schedlab_sim::{CostModel, Event, EventQueue, HostObserver, Rank, Sim, SimConfig};
use schedlab_units::{Nanos, Rng, Time};
use schedlab_workload::Workload;
use schedlab_workload::ir::{Dist, Op, Program, ProgramId, TaskSpec};

const PASSES: u32 = 5;
const POLICIES: [&str; 2] = ["goodness", "eevdf"];
/// Nodes, caches per node, cores per cache, threads per core; tasks.
const SIZES: [([u32; 4], u32); 4] =
    [([1, 1, 1, 1], 8), ([1, 1, 8, 1], 64), ([2, 1, 10, 2], 800), ([4, 4, 8, 2], 10_000)];

/// One hog for every second CPU; the others compute 200 µs and sleep on average so long that
/// together they want 90 % of the machine.
fn mixed(n_cpus: u32, n_tasks: u32) -> Workload {
    const RUN: u64 = 200_000;
    let n_hogs = n_cpus.div_ceil(2);
    let n_sleepers = u64::from(n_tasks - n_hogs);
    let period = RUN * n_sleepers * 10 / (u64::from(n_cpus) * 9);
    let task = |name: &str, count: u32, program: u32| TaskSpec {
        count,
        ..TaskSpec::new(name, ProgramId(program))
    };
    let sleeper = vec![
        Op::Run(Dist::Exponential(RUN)),
        Op::Sleep(Dist::Exponential(period.saturating_sub(RUN))),
        Op::Jump { target: 0 },
    ];
    Workload {
        name: "mixed".to_string(),
        tasks: vec![task("hog", n_hogs, 0), task("sleeper", n_tasks - n_hogs, 1)],
        programs: vec![
            Program { ops: vec![Op::RunForever], n_counters: 0 },
            Program { ops: sleeper, n_counters: 0 },
        ],
        ..Workload::default()
    }
}

struct Visit<'a> {
    workload: &'a Workload,
    topo: &'a Topology,
    with_metrics: bool,
    n_events: u64,
    spec: &'a PolicySpec,
}

impl PolicyVisitor for Visit<'_> {
    type Out = Duration;

    fn visit<P: PolicyDef>(self) -> Duration {
        if self.with_metrics {
            let metered = Metered::new(self.workload, self.topo.n_cpus(), Nanos::ZERO);
            self.measure::<P, _>(metered)
        } else {
            self.measure::<P, _>(NoObserver)
        }
    }
}

impl Visit<'_> {
    fn measure<P: PolicyDef, O: HostObserver>(&self, observer: O) -> Duration {
        let tunables = self.spec.tunables::<P::Tunables>();
        let time = P::time(&tunables);
        let n_tasks = self.workload.tasks.iter().map(|t| t.count as usize).sum();
        let build = Build { topo: self.topo, hz: time.hz, n_tasks };
        let cost = CostModel::built_in("default").expect("there");
        let config = SimConfig { cost, ..SimConfig::new(self.topo.clone(), time) };
        let policy = P::build(&tunables, build);
        let mut sim = Sim::new(self.workload, policy, observer, config);
        // The start, when all tasks come at once, is not measured.
        let mut until = Time::ZERO + Nanos::from_ms(100);
        sim.run_until(until).expect("runs");
        let first = sim.events();
        let clock = Instant::now();
        while sim.events() - first < self.n_events {
            until = until + Nanos::from_ms(1);
            sim.run_until(until).expect("runs");
        }
        let n = u32::try_from(sim.events() - first).expect("few enough");
        black_box(sim.core().tasks().n_live());
        clock.elapsed() * 1000 / n
    }
}

/// Time of 1000 operations "take the earliest, add a later one" with `pending` events queued.
fn queue_floor(pending: u32, n: u32) -> Duration {
    let mut queue = EventQueue::with_capacity(pending as usize);
    let mut rng = Rng::stream(1, "bench", 0);
    for i in 0..pending {
        let at = Time::from_ns(rng.below(4_000_000));
        queue.push(at, Rank::Timer, i, Event::Start { index: i });
    }
    let clock = Instant::now();
    for _ in 0..n {
        let (at, event) = queue.pop().expect("never empty");
        queue.push(at + Nanos::from_ns(rng.below(4_000_000)), Rank::Timer, 0, event);
    }
    black_box(queue.len());
    clock.elapsed() * 1000 / n
}

/// Millions a second.
fn rate(per_thousand: Duration) -> f64 {
    1e6 / per_thousand.as_nanos() as f64
}

fn main() {
    println!(
        "| CPUs / tasks | policy | without metrics, M/s | with metrics, M/s | ns per event | queue floor, ns | ratio |"
    );
    println!("|---|---|---|---|---|---|---|");
    let mut per_event = Vec::new();
    for (shape, n_tasks) in SIZES {
        let [nodes, llcs, cores, threads] = shape;
        let topo = Topology::new(nodes, llcs, cores, threads).expect("legal");
        let workload = mixed(topo.n_cpus() as u32, n_tasks);
        for name in POLICIES {
            let Ok(spec) = PolicySpec::parse(name) else { continue };
            let mut best = [Duration::MAX; 3];
            for _ in 0..PASSES {
                for (slot, with_metrics) in [(0, false), (1, true)] {
                    let visit = Visit {
                        workload: &workload,
                        topo: &topo,
                        with_metrics,
                        n_events: 500_000,
                        spec: &spec,
                    };
                    let time = with_policy(name, visit).expect("there");
                    best[slot] = best[slot].min(time);
                }
                best[2] = best[2].min(queue_floor(n_tasks, 500_000));
            }
            let [bare, metered, floor] = best;
            println!(
                "| {} / {n_tasks} | {name} | {:.2} | {:.2} | {} | {} | {:.1} |",
                topo.n_cpus(),
                rate(bare),
                rate(metered),
                metered.as_nanos() / 1000,
                floor.as_nanos() / 1000,
                metered.as_secs_f64() / floor.as_secs_f64(),
            );
            per_event.push((name, n_tasks, metered));
        }
    }
    for name in POLICIES {
        let of = |n| per_event.iter().find(|(p, t, _)| *p == name && *t == n).map(|x| x.2);
        if let (Some(small), Some(large)) = (of(64), of(10_000)) {
            let growth = large.as_secs_f64() / small.as_secs_f64();
            println!("\n{name}: cost per event from 8/64 to 256/10000 grows {growth:.2}-fold");
        }
    }
}
