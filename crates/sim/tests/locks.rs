// SPDX-License-Identifier: GPL-2.0-only
//! What sections under run-queue locks cost who asks for them.

use schedlab_policies::{Fifo, FifoTunables};
use schedlab_policy_api::{Build, Observer, PolicyDef, SchedEvent, Topology};
use schedlab_sim::{CostModel, HostObserver, Sim, SimConfig, Status};
use schedlab_units::{Nanos, TaskId, Time};
use schedlab_workload::{LoadOptions, load_text};

struct Nothing;

impl Observer for Nothing {
    fn event(&mut self, _now: Time, _event: &SchedEvent) {}
}
impl HostObserver for Nothing {}

const COST: &str = r#"
about = "a wake-up takes 1000 ns, 300 ns of the system call hold the lock too"
lock_contention = true
wakeup = { ns = 1000, source = "test" }
wakeup_lock = { ns = 300, source = "test" }
"#;

/// Run time in ns of a task that wakes `n` others at once on one CPU.
fn run_of_waker(n: u32) -> Nanos {
    let text = format!(
        r#"
[workload]
name = "wakes"
[[futex]]
name = "go"
[[task]]
name = "waker"
do = ["futex-arm go", "sleep 1ms", "futex-wake go all"]
[[task]]
name = "sleeper"
count = {n}
do = ["futex-wait go"]
"#
    );
    let loaded = load_text("wakes.toml", text, &[], &LoadOptions::default());
    let workload = loaded.expect("well formed").workload;
    let topo = Topology::flat(1).expect("legal");
    let time = Fifo::INFO.time;
    let build = Build { topo: &topo, hz: time.hz, n_tasks: n as usize + 1 };
    let policy = Fifo::build(&FifoTunables::default(), build);
    let cost = CostModel::parse("test", COST).expect("well formed");
    let config = SimConfig { cost, check: true, ..SimConfig::new(topo, time) };
    let mut sim = Sim::new(&workload, policy, Nothing, config);
    assert_eq!(sim.run_until(Time::MAX), Ok(Status::Finished));
    sim.core().task_account(sim.now(), TaskId(0)).run
}

/// Each further section begins when the one before ends, 1300 ns later: the time grows with the
/// number of sections, not with the sum of the instants at which each of them ends.
#[test]
fn waker_of_many_waits_for_none_of_its_own_sections() {
    let one = run_of_waker(1);
    for n in [2, 4, 40] {
        let ns = u64::from(n - 1) * 1300;
        assert_eq!(run_of_waker(n) - one, Nanos::from_ns(ns), "{n} sleepers");
    }
}
