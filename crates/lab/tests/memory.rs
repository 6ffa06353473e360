// SPDX-License-Identifier: GPL-2.0-only
//! What a run allocates: nothing per event after start-up, and no more the longer it goes on.
//!
//! All checks are one test, because the allocator counts for the whole process.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use schedlab_lab::metered::Metered;
use schedlab_lab::spec::PolicySpec;
use schedlab_policies::{NAMES, with_policy};
use schedlab_policy_api::{Build, PolicyDef, PolicyVisitor, Topology};
use schedlab_sim::{CostModel, Sim, SimConfig};
use schedlab_units::{Nanos, Time};
use schedlab_workload::Workload;
use schedlab_workload::ir::{Dist, ObjectId, Objects, Op, PipeSpec, Program, ProgramId, TaskSpec};

struct Counting;

static N_ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);
static LIVE_BYTES: AtomicUsize = AtomicUsize::new(0);
static PEAK_BYTES: AtomicUsize = AtomicUsize::new(0);

fn grown(bytes: usize) {
    N_ALLOCATIONS.fetch_add(1, Relaxed);
    let live = LIVE_BYTES.fetch_add(bytes, Relaxed) + bytes;
    PEAK_BYTES.fetch_max(live, Relaxed);
}

// SAFETY: every call is passed on to the system allocator unchanged; only counters are kept.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        // SAFETY: the caller's promises are the same.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        LIVE_BYTES.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promises are the same.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Hogs, sleepers and pipe pairs: 64 tasks for 8 CPUs, or as many times more as asked for.
fn workload(times: u32) -> Workload {
    let task = |name: &str, count: u32, program: u32| TaskSpec {
        count,
        ..TaskSpec::new(name, ProgramId(program))
    };
    let pipe = |name: &str| PipeSpec {
        name: name.to_string(),
        capacity: 1000,
        charge_per_write: None,
        writer_wake_below: 999,
        sync: true,
        wake_reader_always: false,
    };
    let run = |ns| Op::Run(Dist::Exponential(ns));
    let end = Op::Jump { target: 0 };
    let write = |id| Op::Write { pipe: ObjectId(id), bytes: 100 };
    let read = |id| Op::Read { pipe: ObjectId(id), bytes: 100 };
    let programs = vec![
        vec![Op::RunForever],
        vec![run(200_000), Op::Sleep(Dist::Exponential(3_000_000)), end.clone()],
        vec![write(0), run(20_000), read(1), end.clone()],
        vec![read(0), run(20_000), write(1), Op::Yield, end],
    ];
    let programs = programs.into_iter().map(|ops| Program { ops, n_counters: 0 }).collect();
    Workload {
        tasks: vec![
            task("hog", 4 * times, 0),
            task("sleeper", 40 * times, 1),
            task("ping", 10 * times, 2),
            task("pong", 10 * times, 3),
        ],
        programs,
        objects: Objects { pipes: vec![pipe("a"), pipe("b")], ..Objects::default() },
        ..Workload::default()
    }
}

/// Runs for `warm`, then until `end`; yields the allocations and the events in between.
struct Visit<'a> {
    spec: &'a PolicySpec,
    workload: &'a Workload,
    topo: &'a Topology,
    warm: Nanos,
    end: Nanos,
}

impl PolicyVisitor for Visit<'_> {
    type Out = (usize, u64);

    fn visit<P: PolicyDef>(self) -> Self::Out {
        let tunables = self.spec.tunables::<P::Tunables>();
        let time = P::time(&tunables);
        let n_tasks = self.workload.tasks.iter().map(|t| t.count as usize).sum();
        let build = Build { topo: self.topo, hz: time.hz, n_tasks };
        let cost = CostModel::built_in("default").expect("there");
        let config = SimConfig { cost, ..SimConfig::new(self.topo.clone(), time) };
        let observer = Metered::new(self.workload, self.topo.n_cpus(), Nanos::ZERO);
        let policy = P::build(&tunables, build);
        let mut sim = Sim::new(self.workload, policy, observer, config);
        sim.run_until(Time::ZERO + self.warm).expect("runs");
        let (n_before, events_before) = (N_ALLOCATIONS.load(Relaxed), sim.events());
        sim.run_until(Time::ZERO + self.end).expect("runs");
        (N_ALLOCATIONS.load(Relaxed) - n_before, sim.events() - events_before)
    }
}

/// Bytes that a run adds at its peak to what is in use before it.
fn peak_of<R>(run: impl FnOnce() -> R) -> usize {
    let before = LIVE_BYTES.load(Relaxed);
    PEAK_BYTES.store(before, Relaxed);
    let _result = run();
    PEAK_BYTES.load(Relaxed) - before
}

#[test]
fn run_allocates_nothing_per_event_and_does_not_grow() {
    let s = Nanos::from_s;
    let topo = Topology::flat(8).expect("legal");
    let small = workload(1);
    for name in NAMES {
        let spec = PolicySpec::parse(name).expect("there");
        let run = |warm, end| {
            let visit = Visit { spec: &spec, workload: &small, topo: &topo, warm, end };
            with_policy(name, visit).expect("there")
        };
        let (n_allocations, n_events) = run(s(2), s(4));
        assert!(n_events > 10_000, "{name}: {n_events} events prove nothing");
        assert_eq!(n_allocations, 0, "{name}: allocations in {n_events} events after start-up");

        let short = peak_of(|| run(Nanos::ZERO, s(3)));
        let long = peak_of(|| run(Nanos::ZERO, s(30)));
        assert!(long <= short + short / 50, "{name}: peak grows from {short} to {long} bytes");
    }
    let topo = Topology::new(4, 4, 8, 2).expect("legal");
    let large = workload(157);
    for name in NAMES {
        let spec = PolicySpec::parse(name).expect("there");
        let (warm, end) = (Nanos::ZERO, Nanos::from_ms(300));
        let visit = Visit { spec: &spec, workload: &large, topo: &topo, warm, end };
        let peak = peak_of(|| with_policy(name, visit).expect("there"));
        assert!(peak < 200_000_000, "{name}: 256 CPUs and 10048 tasks take {peak} bytes");
    }
}
