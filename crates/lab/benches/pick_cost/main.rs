// SPDX-License-Identifier: GPL-2.0-only
//! What a choice costs against the length of the run queue, without the simulator.
//!
//! `cargo bench -p schedlab-lab --bench pick_cost` prints the tables of docs/performance.md and
//! writes docs/pick-cost.svg. One CPU, driven through `Core`, with tasks of mixed nice that are
//! always runnable. Time passes between two operations, a quarter of the policy's own tick, and
//! every fourth operation is preceded by that tick, so that slices run out as they do in life.
//!
//! Two operations, because neither alone asks every policy the same:
//! - *yield*: the current task calls `sched_yield`, then `schedule` and `finish_switch`. It puts
//!   the old task back and picks a new one, with as little as possible around it; but a policy of
//!   strict priorities takes the same task again where that is alone at the top, and then nothing
//!   is put back. The share that switched is printed where it is below 99 %.
//! - *sleep and wake*: the current task blocks, `schedule` picks another, the switch is finished,
//!   and the sleeper is woken and queued again beside the others. It always switches.

mod svg;

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use schedlab_kcore::{Core, CoreConfig, NewTask};
use schedlab_lab::spec::PolicySpec;
use schedlab_policies::{NAMES, with_policy};
use schedlab_policy_api::{Build, NoObserver, PolicyDef, PolicyVisitor, TaskState, Topology};
use schedlab_units::{CpuId, Hz, Nice, Time};

use crate::svg::{Panel, Series};

const LENGTHS: [u32; 9] = [1, 3, 10, 30, 100, 300, 1000, 3000, 10_000];
const PASSES: u32 = 9;
const WARM_UP: Duration = Duration::from_millis(8);
const MEASURED: Duration = Duration::from_millis(4);
/// Operations between two looks at the clock; a multiple of the four from tick to tick.
const BATCH: u32 = 100;
const CPU: CpuId = CpuId(0);

/// What the authors promised a choice to cost, n = runnable tasks of the queue.
const PROMISED: &[(&str, &str)] = &[
    ("bfs", "O(n)"),
    ("cfs", "O(log n)"),
    ("eevdf", "O(log n)"),
    ("fifo", "O(1)"),
    ("goodness", "O(n)"),
    ("mq", "O(n)"),
    ("o1", "O(1)"),
    ("rr", "O(1)"),
    ("spa", "O(1)"),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Yield,
    SleepAndWake,
}

/// One CPU and always runnable tasks.
struct Machine<P> {
    core: Core<P, NoObserver>,
    now: Time,
    hz: Hz,
    n_operations: u64,
    n_switches: u64,
}

impl<P: PolicyDef> Machine<P> {
    fn new(spec: &PolicySpec, n_tasks: u32) -> Self {
        let (topo, hz, n) = (Topology::flat(1).expect("legal"), P::INFO.time.hz, n_tasks as usize);
        let policy = P::build(&spec.tunables(), Build { topo: &topo, hz, n_tasks: n });
        let config = CoreConfig { topo, hz, seed: 1, n_tasks: n, check: false };
        let core = Core::new(policy, NoObserver, config);
        let mut machine = Self { core, now: Time::ZERO, hz, n_operations: 0, n_switches: 0 };
        for i in 0..n_tasks {
            let facts = NewTask {
                // 7 is prime to 40: neighbours differ and every nice value is as frequent.
                nice: Nice::clamped((i * 7 % 40) as i32 - 20),
                ..NewTask::normal(machine.core.topo().all(), i)
            };
            let task = machine.core.fork(machine.now, CPU, None, &facts);
            machine.core.wake_up_new(machine.now, CPU, task, None);
        }
        machine.schedule();
        machine
    }

    fn schedule(&mut self) {
        if self.core.schedule(self.now, CPU).is_real() {
            self.n_switches += 1;
            self.core.finish_switch(self.now, CPU);
        }
    }

    fn operate(&mut self, operation: Operation) {
        self.now = self.now + self.hz.tick() / 4;
        if self.n_operations.is_multiple_of(4) {
            self.core.tick(self.now, CPU);
        }
        self.n_operations += 1;
        match operation {
            Operation::Yield => {
                self.core.yield_task(self.now, CPU);
                self.schedule();
            }
            Operation::SleepAndWake => {
                let sleeper = self.core.curr(CPU).expect("never idle between operations");
                self.core.block(self.now, CPU, TaskState::Sleeping);
                self.n_switches += 1;
                self.core.finish_switch(self.now, CPU);
                self.core.wake(self.now, CPU, sleeper, None, false);
                if self.core.curr(CPU).is_none() {
                    self.schedule();
                }
            }
        }
        // No simulator is here to honour what the policy asked for.
        self.core.clear_resched();
        self.core.clear_timers();
        black_box(self.core.take_work());
    }

    /// Operates for at least `span`; the time of one operation in ns.
    ///
    /// It is the median over batches: where other work takes the CPU away, few batches see it.
    fn run(&mut self, operation: Operation, span: Duration) -> f64 {
        let (start, mut batches) = (Instant::now(), Vec::new());
        while start.elapsed() < span {
            let clock = Instant::now();
            for _ in 0..BATCH {
                self.operate(operation);
            }
            batches.push(clock.elapsed());
        }
        let middle = batches.len() / 2;
        let (_, median, _) = batches.select_nth_unstable(middle);
        median.as_nanos() as f64 / f64::from(BATCH)
    }
}

/// One measurement.
#[derive(Clone, Copy)]
struct Cost {
    ns: f64,
    /// Switches for each operation.
    switched: f64,
}

struct Visit<'a> {
    spec: &'a PolicySpec,
    n_tasks: u32,
    operation: Operation,
}

impl PolicyVisitor for Visit<'_> {
    type Out = Cost;

    fn visit<P: PolicyDef>(self) -> Cost {
        let mut machine = Machine::<P>::new(self.spec, self.n_tasks);
        machine.run(self.operation, WARM_UP);
        let (operations, switches) = (machine.n_operations, machine.n_switches);
        let ns = machine.run(self.operation, MEASURED);
        let n = (machine.n_operations - operations) as f64;
        Cost { ns, switched: (machine.n_switches - switches) as f64 / n }
    }
}

/// The best of all passes, for every policy and length.
fn measure(operation: Operation) -> Vec<Vec<Cost>> {
    let worst = Cost { ns: f64::INFINITY, switched: 0.0 };
    let mut best = vec![vec![worst; LENGTHS.len()]; NAMES.len()];
    for _ in 0..PASSES {
        for (name, best) in NAMES.iter().zip(&mut best) {
            let spec = PolicySpec::parse(name).expect("registered");
            for (n_tasks, best) in LENGTHS.into_iter().zip(best) {
                let visit = Visit { spec: &spec, n_tasks, operation };
                let cost = with_policy(name, visit).expect("registered");
                if cost.ns < best.ns {
                    *best = cost;
                }
            }
        }
    }
    best
}

fn promised(name: &str) -> &'static str {
    PROMISED.iter().find(|(policy, _)| *policy == name).map_or("?", |(_, promise)| promise)
}

fn print_table(costs: &[Vec<Cost>]) {
    let head: Vec<String> = LENGTHS.iter().map(u32::to_string).collect();
    println!("| policy | promised | {} | 10000 : 100 |", head.join(" | "));
    println!("|---|---|{}", "---|".repeat(LENGTHS.len() + 1));
    let hundred = LENGTHS.iter().position(|n| *n == 100).expect("among them");
    for (name, costs) in NAMES.iter().zip(costs) {
        let cells: Vec<String> = costs.iter().map(|cost| format!("{:.0}", cost.ns)).collect();
        let growth = costs[LENGTHS.len() - 1].ns / costs[hundred].ns;
        println!("| `{name}` | {} | {} | {growth:.1} |", promised(name), cells.join(" | "));
    }
    for (name, costs) in NAMES.iter().zip(costs) {
        let partly: Vec<String> = LENGTHS
            .iter()
            .zip(costs)
            .filter(|(n, cost)| **n > 1 && cost.switched < 0.99)
            .map(|(n, cost)| format!("{:.0} % at {n}", 100.0 * cost.switched))
            .collect();
        if !partly.is_empty() {
            println!("\n`{name}` switched only in {}.", partly.join(", "));
        }
    }
    println!();
}

fn panel(title: &'static str, costs: &[Vec<Cost>]) -> Panel {
    let series = NAMES.iter().zip(costs).map(|(name, costs)| Series {
        name,
        points: LENGTHS.iter().zip(costs).map(|(n, cost)| (f64::from(*n), cost.ns)).collect(),
    });
    Panel { title, series: series.collect() }
}

/// What and where this is, for the foot of the figure.
fn origin() -> String {
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    let n_cpus = std::thread::available_parallelism().map_or(1, usize::from);
    format!(
        "cargo bench -p schedlab-lab --bench pick_cost · {} · {n_cpus} CPUs of {}",
        svg::today(),
        model.unwrap_or("an unknown machine"),
    )
}

fn main() {
    println!("Yield: ns for each operation at n runnable tasks.\n");
    let yielding = measure(Operation::Yield);
    print_table(&yielding);
    println!("Sleep and wake: ns for each operation at n runnable tasks.\n");
    let waking = measure(Operation::SleepAndWake);
    print_table(&waking);
    println!("{}", origin());
    let panels = [panel("yield", &yielding), panel("sleep and wake", &waking)];
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/pick-cost.svg");
    std::fs::write(&path, svg::figure(&panels, &origin())).expect("docs/ can be written to");
}
