// SPDX-License-Identifier: GPL-2.0-only
//! Simulated events per second, beside the bare cost of an event queue of the same size.
//!
//! `cargo bench -p schedlab-lab --bench throughput` prints the first table of docs/performance.md.
//! Everything is measured in one process, policy after policy in every pass, and reported as the
//! best of several passes: the ratios count.

use std::hint::black_box;
use std::time::{Duration, Instant};

use schedlab_lab::metered::Metered;
use schedlab_lab::spec::PolicySpec;
use schedlab_policies::{NAMES, with_policy};
use schedlab_policy_api::{Build, NoObserver, PolicyDef, PolicyVisitor, Topology};
use schedlab_sim::{CostModel, Event, EventQueue, HostObserver, Rank, Sim, SimConfig};
use schedlab_units::{Nanos, Rng, Time};
use schedlab_workload::Workload;
use schedlab_workload::ir::{Dist, Op, Program, ProgramId, TaskSpec};

const PASSES: u32 = 5;
/// Events between two looks at the clock, at least.
const SLICE: u64 = 2000;
/// The policy that the others are compared with.
const YARDSTICK: &str = "rr";
/// Policies of the sizes where not all are measured.
const FEW: &[&str] = &["bfs", "eevdf", "goodness", YARDSTICK];

/// A machine and how much happens on it.
struct Size {
    /// Nodes, caches per node, cores per cache, threads per core.
    shape: [u32; 4],
    n_tasks: u32,
    policies: &'static [&'static str],
    /// Events in one measurement.
    n_events: u32,
}

const SIZES: [Size; 4] = [
    Size { shape: [1, 1, 1, 1], n_tasks: 8, policies: FEW, n_events: 500_000 },
    Size { shape: [1, 1, 8, 1], n_tasks: 64, policies: NAMES, n_events: 500_000 },
    Size { shape: [2, 1, 10, 2], n_tasks: 800, policies: FEW, n_events: 500_000 },
    Size { shape: [4, 4, 8, 2], n_tasks: 10_000, policies: FEW, n_events: 500_000 },
];

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
        let mut slices = Vec::new();
        while sim.events() - first < self.n_events {
            let (clock, before) = (Instant::now(), sim.events());
            while sim.events() - before < SLICE {
                until = until + Nanos::from_ms(1);
                sim.run_until(until).expect("runs");
            }
            let n = u32::try_from(sim.events() - before).expect("few enough");
            slices.push(clock.elapsed() * 1000 / n);
        }
        black_box(sim.core().tasks().n_live());
        median(slices)
    }
}

/// The typical slice of a measurement: where other work takes the CPU away, few slices see it.
fn median(mut slices: Vec<Duration>) -> Duration {
    let middle = slices.len() / 2;
    *slices.select_nth_unstable(middle).1
}

/// Time of 1000 operations "take the earliest, add a later one" with `pending` events queued.
fn queue_floor(pending: u32, n: u32) -> Duration {
    let mut queue = EventQueue::with_capacity(pending as usize);
    let mut rng = Rng::stream(1, "bench", 0);
    for i in 0..pending {
        let at = Time::from_ns(rng.below(4_000_000));
        queue.push(at, Rank::Timer, i, Event::Start { index: i });
    }
    let mut slices = Vec::new();
    for _ in 0..n / 1000 {
        let clock = Instant::now();
        for _ in 0..1000 {
            let (at, event) = queue.pop().expect("never empty");
            queue.push(at + Nanos::from_ns(rng.below(4_000_000)), Rank::Timer, 0, event);
        }
        slices.push(clock.elapsed());
    }
    black_box(queue.len());
    median(slices)
}

/// The best times of a thousand events of one policy.
#[derive(Clone, Copy)]
struct Best {
    bare: Duration,
    metered: Duration,
}

/// Best of all passes for each policy of `size`, and for the bare queue.
fn measure(size: &Size, topo: &Topology) -> (Vec<Best>, Duration) {
    let workload = mixed(topo.n_cpus() as u32, size.n_tasks);
    let mut best = vec![Best { bare: Duration::MAX, metered: Duration::MAX }; size.policies.len()];
    let mut floor = Duration::MAX;
    for _ in 0..PASSES {
        for (name, best) in size.policies.iter().zip(&mut best) {
            let spec = PolicySpec::parse(name).expect("registered");
            for (slot, with_metrics) in [(&mut best.bare, false), (&mut best.metered, true)] {
                let visit = Visit {
                    workload: &workload,
                    topo,
                    with_metrics,
                    n_events: u64::from(size.n_events),
                    spec: &spec,
                };
                *slot = (*slot).min(with_policy(name, visit).expect("registered"));
            }
        }
        floor = floor.min(queue_floor(size.n_tasks, size.n_events));
    }
    (best, floor)
}

/// Millions a second.
fn rate(per_thousand: Duration) -> f64 {
    1e6 / per_thousand.as_nanos() as f64
}

/// How many times longer `a` takes than `b`.
fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64()
}

fn main() {
    println!(
        "| CPUs / tasks | policy | without metrics, M/s | of `rr` | with metrics, M/s | of `rr` | ns per event | queue floor, ns | ratio |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    let mut per_event = Vec::new();
    for size in &SIZES {
        let [nodes, llcs, cores, threads] = size.shape;
        let topo = Topology::new(nodes, llcs, cores, threads).expect("legal");
        let (best, floor) = measure(size, &topo);
        let yardstick = size.policies.iter().position(|name| *name == YARDSTICK);
        let rr = best[yardstick.expect("measured at every size")];
        for (name, Best { bare, metered }) in size.policies.iter().zip(best) {
            println!(
                "| {} / {} | `{name}` | {:.2} | {:.0} % | {:.2} | {:.0} % | {} | {} | {:.1} |",
                topo.n_cpus(),
                size.n_tasks,
                rate(bare),
                100.0 * ratio(rr.bare, bare),
                rate(metered),
                100.0 * ratio(rr.metered, metered),
                metered.as_nanos() / 1000,
                floor.as_nanos() / 1000,
                ratio(metered, floor),
            );
            per_event.push((*name, size.n_tasks, metered));
        }
    }
    println!("\nFrom 8/64 to 256/10000 the cost per event with metrics grows");
    for name in FEW {
        let of = |n| per_event.iter().find(|(p, t, _)| p == name && *t == n).map(|x| x.2);
        if let (Some(small), Some(large)) = (of(64), of(10_000)) {
            println!("- `{name}`: {:.2}-fold", ratio(large, small));
        }
    }
}
