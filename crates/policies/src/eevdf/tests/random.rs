// SPDX-License-Identifier: GPL-2.0-only
//! Random legal runs with all invariants on, and properties of the fluid clock.

use alloc::string::String;
use alloc::vec::Vec;

use proptest::prelude::*;
use schedlab_kcore::{Core, CoreConfig, NewTask, Wakeup};
use schedlab_policy_api::{
    Build, Fingerprint, Mm, PolicyDef, SchedClass, TaskState, Topology, Tunables,
};
use schedlab_units::{CpuId, CpuSet, Hz, Nice, Rng, TaskId, Time, VTime};

use super::harness::knobs;
use crate::eevdf::Eevdf;
use crate::fair::Fluid;

/// A host that does legal things in random order.
pub(crate) struct Chaos<P> {
    core: Core<P, Fingerprint>,
    rng: Rng,
    now: u64,
    tick: u64,
    next_tick: u64,
    tasks: Vec<TaskId>,
    sent: Vec<(TaskId, CpuId)>,
    n_cpus: u64,
}

impl<P: PolicyDef> Chaos<P> {
    pub(crate) fn new(shape: (u32, u32, u32, u32), seed: u64, set: &[(&str, &str)]) -> Self {
        let (nodes, llcs, cores, threads) = shape;
        let topo = Topology::new(nodes, llcs, cores, threads).expect("a machine");
        let hz = Hz::new(1000);
        let build = Build { topo: &topo, hz, n_tasks: 4 };
        let policy = P::build(&knobs(set), build);
        let n_cpus = topo.n_cpus() as u64;
        let config = CoreConfig { topo, hz, seed, n_tasks: 4, check: true };
        Self {
            core: Core::new(policy, Fingerprint::default(), config),
            rng: Rng::stream(seed, "chaos", 0),
            now: 0,
            tick: hz.tick().as_ns(),
            next_tick: hz.tick().as_ns(),
            tasks: Vec::new(),
            sent: Vec::new(),
            n_cpus,
        }
    }
    fn time(&self) -> Time {
        Time::from_ns(self.now)
    }
    fn chance(&mut self, percent: u64) -> bool {
        self.rng.below(100) < percent
    }
    fn cpu(&mut self) -> CpuId {
        CpuId(self.rng.below(self.n_cpus) as u32)
    }
    fn affinity(&mut self) -> CpuSet {
        if self.chance(60) {
            return CpuSet::first_n(self.n_cpus as usize);
        }
        let mut set = CpuSet::single(self.cpu());
        if self.chance(70) {
            set.insert(self.cpu());
        }
        set
    }
    fn class(&mut self) -> (SchedClass, u8) {
        let prio = 1 + self.rng.below(4) as u8;
        match self.rng.below(10) {
            0 => (SchedClass::Fifo, prio),
            1 => (SchedClass::Rr, prio),
            2 => (SchedClass::Batch, 0),
            3 => (SchedClass::Idle, 0),
            _ => (SchedClass::Normal, 0),
        }
    }
    fn state(&self, task: TaskId) -> TaskState {
        self.core.tasks().get(task).state
    }

    /// Lets time pass to the next event, at most to the next tick.
    fn advance(&mut self) {
        self.now += self.rng.exponential(150_000);
        if self.now >= self.next_tick {
            self.now = self.next_tick;
            self.next_tick += self.tick;
            for cpu in 0..self.n_cpus as u32 {
                if !self.core.is_switching(CpuId(cpu)) {
                    self.core.tick(self.time(), CpuId(cpu));
                }
            }
        }
    }

    /// Finishes switches, delivers wake-ups and reschedules, most of the time.
    fn settle(&mut self) {
        for cpu in (0..self.n_cpus as u32).map(CpuId) {
            if self.core.is_switching(cpu) && self.chance(80) {
                self.core.finish_switch(self.time(), cpu);
            }
        }
        let mut sent = core::mem::take(&mut self.sent);
        sent.retain(|(task, cpu)| {
            let late = self.chance(30);
            if !late {
                self.core.wake_arrive(self.time(), *cpu, *task);
            }
            late
        });
        self.sent.append(&mut sent);
        for _ in 0..4 {
            for cpu in (0..self.n_cpus as u32).map(CpuId) {
                if self.core.need_resched(cpu) && !self.core.is_switching(cpu) {
                    self.core.schedule(self.time(), cpu);
                }
            }
        }
        self.core.clear_resched();
        let mut at = 0;
        while let Some(request) = self.core.timer_at(at) {
            // Timers may come late, and some of them do not come at all.
            at += 1;
            if request.at < Time::MAX && self.rng.below(4) == 0 {
                self.core.timer(self.time(), request.cpu, request.timer);
            }
        }
        self.core.clear_timers();
    }

    fn step(&mut self) {
        self.advance();
        let (now, cpu) = (self.time(), self.cpu());
        let current = self.core.curr(cpu).filter(|_| !self.core.is_switching(cpu));
        let any = (!self.tasks.is_empty()).then(|| {
            let at = self.rng.below(self.tasks.len() as u64) as usize;
            self.tasks[at]
        });
        match (self.rng.below(16), current, any) {
            (0..=1, _, _) if self.tasks.len() < 24 => self.fork(cpu),
            (2..=5, Some(_), _) => {
                let state = match self.rng.below(2) {
                    0 => TaskState::Sleeping,
                    _ => TaskState::Uninterruptible,
                };
                self.core.block(now, cpu, state);
            }
            (6..=9, waker, Some(task)) => {
                let sync = self.chance(50);
                let waker = waker.filter(|waker| *waker != task);
                if let Wakeup::Sent(to) = self.core.wake(now, cpu, task, waker, sync) {
                    self.sent.push((task, to));
                }
            }
            (10, Some(_), _) => self.core.yield_task(now, cpu),
            (11, Some(task), _) if self.chance(30) => {
                self.core.exit(now, cpu);
                self.tasks.retain(|other| *other != task);
            }
            (12, Some(_), _) => self.core.exec(now, cpu, Mm(7)),
            (13, _, Some(task)) => {
                let nice = Nice::clamped(self.rng.range(0, 39) as i32 - 20);
                self.core.set_nice(now, cpu, task, nice);
            }
            (14, _, Some(task)) if self.state(task) != TaskState::Waking => {
                let (class, rt_priority) = self.class();
                self.core.set_class(now, cpu, task, class, rt_priority);
            }
            (15, _, Some(task)) if self.state(task) != TaskState::Waking => {
                let leaving =
                    self.core.tasks().get(task).on_cpu && self.state(task) != TaskState::Running;
                if self.chance(50) && !leaving {
                    let affinity = self.affinity();
                    self.core.set_affinity(now, cpu, task, &affinity);
                } else {
                    let slice = self.rng.below(5) * 400_000;
                    self.core.set_slice(now, cpu, task, slice);
                }
            }
            _ => {}
        }
        self.settle();
        self.reap(cpu);
    }

    fn fork(&mut self, cpu: CpuId) {
        let (class, rt_priority) = self.class();
        let all = CpuSet::first_n(self.n_cpus as usize);
        let new = NewTask {
            class,
            rt_priority,
            nice: Nice::clamped(self.rng.range(0, 39) as i32 - 20),
            affinity: self.affinity(),
            cpu,
            slice_request_ns: self.rng.below(3) * 300_000,
            ..NewTask::normal(&all, 1)
        };
        let (now, parent) = (self.time(), self.core.curr(cpu));
        let task = self.core.fork(now, cpu, parent, &new);
        self.core.wake_up_new(now, cpu, task, None);
        self.tasks.push(task);
    }

    fn reap(&mut self, cpu: CpuId) {
        let dead: Vec<TaskId> = self
            .core
            .tasks()
            .iter()
            .filter(|(_, facts)| facts.state == TaskState::Zombie && !facts.on_cpu)
            .map(|(task, _)| task)
            .collect();
        for task in dead {
            let children: Vec<TaskId> = self
                .core
                .tasks()
                .iter()
                .filter(|(_, facts)| facts.parent == Some(task))
                .map(|(child, _)| child)
                .collect();
            for child in children {
                self.core.orphan(child);
            }
            self.core.reap(self.time(), cpu, task);
        }
    }

    pub(crate) fn run(mut self, steps: usize) -> u64 {
        for _ in 0..steps {
            self.step();
        }
        self.core.check_conservation(self.time()).expect("time is conserved");
        self.core.observer().value()
    }
}

pub(crate) const SHAPES: [(u32, u32, u32, u32); 6] =
    [(1, 1, 1, 1), (1, 1, 4, 1), (1, 1, 2, 2), (2, 1, 2, 2), (1, 2, 2, 1), (2, 2, 2, 2)];

const SETTINGS: [&[(&str, &str)]; 6] = [
    &[],
    &[("vruntime_base", "min_vruntime"), ("yield_mode", "deadline")],
    &[("next_buddy", "on"), ("ni_random", "on"), ("hrtick", "on"), ("sis_util", "off")],
    &[
        ("delay_dequeue", "off"),
        ("place_lag", "off"),
        ("place_rel_deadline", "off"),
        ("run_to_parity", "off"),
        ("util_est", "off"),
    ],
    &[
        ("migration_cost", "0"),
        ("newidle_cost_per_cpu", "0"),
        ("fair_server_period", "2ms"),
        ("fair_server_runtime", "500us"),
        ("rr_timeslice", "2ms"),
        ("ttwu_queue", "off"),
    ],
    &[
        ("delay_dequeue", "off"),
        ("place_at_fork", "on"),
        ("equal_deadlines", "vruntime"),
        ("custom_slice", "off"),
        ("unprotect_idle", "off"),
        ("fair_server_runtime", "0"),
        ("rt_period", "4ms"),
        ("rt_runtime", "1ms"),
    ],
];

/// Legal values for some of the knobs `T`, as a user writes them: extremes as often as values
/// between, which are spread over the orders of magnitude.
pub(crate) fn some_knobs<T: Tunables>(rng: &mut Rng) -> Vec<(&'static str, String)> {
    let mut set = Vec::new();
    for spec in T::SPECS {
        if rng.below(3) > 0 {
            continue;
        }
        let span = spec.max.abs_diff(spec.min);
        let magnitude = rng.below(1 + u64::from(span.ilog2()));
        let above = match rng.below(4) {
            0 => 0,
            1 => span,
            _ => rng.below((span >> magnitude) + 1),
        };
        set.push((spec.name, spec.show(spec.min.wrapping_add_unsigned(above))));
    }
    set
}

/// One run on machine `shape` with some knobs set, twice: its fingerprints.
pub(crate) fn run_with_some_knobs<P: PolicyDef>(
    shape: (u32, u32, u32, u32),
    seed: u64,
    steps: usize,
) -> (u64, u64) {
    let owned = some_knobs::<P::Tunables>(&mut Rng::stream(seed, "knobs", 0));
    let set: Vec<(&str, &str)> = owned.iter().map(|(name, text)| (*name, &**text)).collect();
    let run = || Chaos::<P>::new(shape, seed, &set).run(steps);
    (run(), run())
}

pub(crate) fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(96) }
}

proptest! {
    #![proptest_config(config())]
    #[test]
    fn random_runs_keep_all_invariants(
        shape in 0..SHAPES.len(),
        setting in 0..SETTINGS.len(),
        seed in any::<u64>(),
    ) {
        let run = || Chaos::<Eevdf>::new(SHAPES[shape], seed, SETTINGS[setting]).run(600);
        prop_assert_eq!(run(), run());
    }

    #[test]
    fn random_runs_with_random_knobs_keep_all_invariants(
        shape in 0..SHAPES.len(),
        seed in any::<u64>(),
    ) {
        let (once, again) = run_with_some_knobs::<Eevdf>(SHAPES[shape], seed, 600);
        prop_assert_eq!(once, again);
    }

    #[test]
    fn fluid_clock_keeps_its_promises(
        entities in prop::collection::vec((-1_000_000_000i64..1_000_000_000, 2u64..88_762), 1..40),
        base in any::<u64>(),
        shift in -1_000_000_000i64..1_000_000_000,
    ) {
        let base = VTime(base);
        let mut fluid = Fluid { base, sum: 0, weight: 0 };
        for (key, weight) in &entities {
            fluid.add(base.offset(*key), *weight);
        }
        let mean = fluid.mean();
        // W·⌊V⌋ ≤ Σ w·key < W·(⌊V⌋ + 1)
        prop_assert!(fluid.weight * mean <= fluid.sum);
        prop_assert!(fluid.sum < fluid.weight * (mean + 1));
        let avg_vruntime = base.offset(mean);
        prop_assert!(fluid.eligible(avg_vruntime));
        prop_assert!(!fluid.eligible(avg_vruntime.advance(1)));
        // The total lag is zero but for the rounding, so somebody is eligible.
        prop_assert!(entities.iter().any(|(key, _)| fluid.eligible(base.offset(*key))));
        let mut moved = fluid;
        moved.rebase(shift);
        prop_assert_eq!(moved.base.offset(moved.mean()), avg_vruntime);
        for (key, weight) in &entities {
            moved.sub(base.offset(*key), *weight);
        }
        prop_assert_eq!((moved.sum, moved.weight), (0, 0));
    }
}
