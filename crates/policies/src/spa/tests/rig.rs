// SPDX-License-Identifier: GPL-2.0-only
//! Machines around the policy: one to be driven by hand, and workload W1 of the spec.

use schedlab_kcore::{Core, CoreConfig, NewTask};
use schedlab_policy_api::{
    Build, Inspect, NoObserver, Policy, PolicyDef, TaskState, Topology, Tunables,
};
use schedlab_units::{CpuId, Hz, Nanos, Nice, Rng, TaskId, Time};

use crate::spa::{Spa, SpaTunables};

/// The only CPU of a rig for one.
pub(super) const CPU: CpuId = CpuId(0);

/// Tunables from a list such as `time_slice=100ms;bonus=off`, empty = 2.6.6.
pub(super) fn tunables(set: &str) -> SpaTunables {
    let mut tunables = SpaTunables::default();
    for setting in set.split(';').filter(|setting| !setting.is_empty()) {
        let (name, value) = setting.split_once('=').expect("name=value");
        tunables.set_text(name, value).expect("a legal setting");
    }
    tunables
}

/// Core and policy, with every switch taking no time.
pub(super) struct Rig {
    pub(super) core: Core<Spa, NoObserver>,
    pub(super) now: Time,
    pub(super) switches: u64,
}

impl Rig {
    /// `n_cpus` idle CPUs at HZ 1000 and 300 s after the start of the clock.
    pub(super) fn new(n_cpus: u32, set: &str, check: bool) -> Self {
        let topo = Topology::flat(n_cpus).expect("a machine");
        let hz = Hz::new(1000);
        let build = Build { topo: &topo, hz, n_tasks: 4 };
        let policy = Spa::build(&tunables(set), build);
        let config = CoreConfig { topo, hz, seed: 1, n_tasks: 4, check };
        let now = Time::ZERO + Nanos::from_s(300);
        Self { core: Core::new(policy, NoObserver, config), now, switches: 0 }
    }
    /// Facts of a process with this nice value that starts on CPU 0.
    pub(super) fn process(&self, nice: i32) -> NewTask {
        let mut new = NewTask::normal(self.core.topo().all(), 1);
        new.nice = Nice::new(nice).expect("a nice value");
        new
    }
    /// Forks a task of the start with this `sleep_avg` in ms; it sleeps until it is woken.
    pub(super) fn create(&mut self, new: &NewTask, sleep_avg_ms: u64) -> TaskId {
        let task = self.core.fork(self.now, CPU, None, new);
        self.core.policy_mut().set_sleep_avg(task, sleep_avg_ms * 1_000_000);
        task
    }
    /// Creates a task and wakes it for the first time where it belongs; nobody reacts yet.
    pub(super) fn start(&mut self, new: &NewTask, sleep_avg_ms: u64) -> TaskId {
        let task = self.create(new, sleep_avg_ms);
        self.core.wake_up_new(self.now, new.cpu, task, None);
        task
    }
    /// Forks and wakes a child of `parent` on its CPU, with its facts.
    pub(super) fn fork(&mut self, parent: TaskId) -> TaskId {
        let facts = self.core.tasks().get(parent).clone();
        let new = NewTask {
            class: facts.class,
            nice: facts.nice,
            rt_priority: facts.rt_priority,
            affinity: facts.affinity,
            cpu: facts.cpu,
            tgid: facts.tgid,
            mm: facts.mm,
            slice_request_ns: 0,
        };
        let child = self.core.fork(self.now, facts.cpu, Some(parent), &new);
        self.core.wake_up_new(self.now, facts.cpu, child, None);
        child
    }
    /// `schedule` on `cpu`, its switch included.
    pub(super) fn schedule(&mut self, cpu: CpuId) {
        if self.core.schedule(self.now, cpu).is_real() {
            self.switches += 1;
            self.core.finish_switch(self.now, cpu);
        }
        self.drain();
    }
    /// The current task of `cpu` falls asleep.
    pub(super) fn block(&mut self, cpu: CpuId, state: TaskState) {
        self.switches += 1;
        self.core.block(self.now, cpu, state);
        self.core.finish_switch(self.now, cpu);
        self.drain();
    }
    /// Everybody who has been asked to calls `schedule`, in index order.
    pub(super) fn settle(&mut self) {
        for cpu in self.core.topo().cpus() {
            if self.core.need_resched(cpu) {
                self.schedule(cpu);
            }
        }
    }
    /// Forgets requests that were looked at.
    pub(super) fn drain(&mut self) {
        self.core.clear_resched();
    }
    /// Time goes on by whole milliseconds; every CPU ticks at each, then schedules.
    pub(super) fn run_ms(&mut self, n: u64) {
        for _ in 0..n {
            self.now = self.now + Nanos::from_ms(1);
            for cpu in self.core.topo().cpus() {
                self.core.tick(self.now, cpu);
            }
            self.settle();
        }
    }
    /// What the policy says of `task` under `name`.
    pub(super) fn inspect(&self, task: TaskId, name: &str) -> i64 {
        let figures = self.core.inspect(self.now, task);
        figures.iter().find(|(n, _)| *n == name).expect("the policy says so").1
    }
    /// A total of the policy.
    pub(super) fn stat(&self, name: &str) -> i64 {
        let mut totals = Inspect::new();
        self.core.policy().stats(&mut totals);
        totals.iter().find(|(n, _)| *n == name).expect("the policy says so").1
    }
}

/// Jiffies after which a `nanosleep` ends in 2.6.6 on i386, counted from the one of the call.
///
/// TICK_NSEC is 999 848 there (spec §2.1, §6 Q12).
pub(super) fn sleep_jiffies(span: Nanos) -> u64 {
    span.as_ns().div_ceil(999_848) + 1
}

/// Workload W1: a sleeper S beside a hog H, set up as for the golden runs.
pub(super) struct Pair {
    pub(super) rig: Rig,
    pub(super) sleeper: TaskId,
    pub(super) hog: TaskId,
    pub(super) bursts: u64,
    start: Time,
    burst: Nanos,
    sleep: Nanos,
    /// Draws the length of every burst within ±3 %; none = exact bursts.
    jitter: Option<Rng>,
    burst_left: Nanos,
    wakes_at: Option<u64>,
    next_tick: Time,
    /// CPU time of S.
    pub(super) sleeper_run: Nanos,
    /// CPU time of H.
    pub(super) hog_run: Nanos,
}

impl Pair {
    /// S with bursts of `burst_us` and sleeps of `sleep_ms`, H, both nice 0 with bonus 8.
    pub(super) fn new(set: &str, burst_us: u64, sleep_ms: u64, jitter: Option<Rng>) -> Self {
        Self::with_hogs(set, burst_us, sleep_ms, jitter, 1)
    }
    /// The same beside `n_hogs`; what counts as H's CPU time is that of the first.
    pub(super) fn with_hogs(
        set: &str,
        burst_us: u64,
        sleep_ms: u64,
        jitter: Option<Rng>,
        n_hogs: u32,
    ) -> Self {
        let mut rig = Rig::new(1, set, jitter.is_none());
        let new = rig.process(0);
        let sleeper = rig.start(&new, 816);
        let hog = rig.start(&new, 816);
        (1..n_hogs).for_each(|_| {
            rig.start(&new, 816);
        });
        rig.schedule(CPU);
        let start = rig.now;
        let mut pair = Self {
            rig,
            sleeper,
            hog,
            bursts: 0,
            start,
            burst: Nanos::from_us(burst_us),
            sleep: Nanos::from_ms(sleep_ms),
            jitter,
            burst_left: Nanos::ZERO,
            wakes_at: None,
            next_tick: start + Nanos::from_ms(1),
            sleeper_run: Nanos::ZERO,
            hog_run: Nanos::ZERO,
        };
        pair.burst_left = pair.next_burst();
        pair
    }
    fn next_burst(&mut self) -> Nanos {
        let ns = self.burst.as_ns();
        let ns = self.jitter.as_mut().map_or(ns, |rng| rng.range(ns * 97 / 100, ns * 103 / 100));
        Nanos::from_ns(ns)
    }
    /// Goes on to the next tick or the end of a burst; whether the current task changed.
    pub(super) fn step(&mut self) -> bool {
        let curr = self.rig.core.curr(CPU);
        let mut at = self.next_tick;
        if curr == Some(self.sleeper) {
            at = at.min(self.rig.now + self.burst_left);
        }
        let span = at - self.rig.now;
        if curr == Some(self.sleeper) {
            self.sleeper_run += span;
            self.burst_left -= span;
        } else if curr == Some(self.hog) {
            self.hog_run += span;
        }
        self.rig.now = at;
        if at == self.next_tick {
            self.next_tick = at + Nanos::from_ms(1);
            self.rig.core.tick(at, CPU);
            if self.wakes_at == Some(at.as_ns() / 1_000_000) {
                self.wakes_at = None;
                self.burst_left = self.next_burst();
                self.rig.core.wake(at, CPU, self.sleeper, None, false);
            }
            self.rig.settle();
        }
        if self.burst_left.is_zero() && self.rig.core.curr(CPU) == Some(self.sleeper) {
            self.bursts += 1;
            self.wakes_at = Some(at.as_ns() / 1_000_000 + sleep_jiffies(self.sleep));
            self.rig.block(CPU, TaskState::Sleeping);
        }
        self.rig.core.curr(CPU) != curr
    }
    /// Runs on until `span` after the start, the tick there included.
    pub(super) fn run_until(&mut self, span: Nanos) {
        while self.next_tick <= self.start + span {
            self.step();
        }
    }
    /// Whether S wants the CPU and does not have it.
    pub(super) fn sleeper_waits(&self) -> bool {
        self.wakes_at.is_none() && self.rig.core.curr(CPU) != Some(self.sleeper)
    }
    /// Time since the start.
    pub(super) fn elapsed(&self) -> Nanos {
        self.rig.now - self.start
    }
}
