// SPDX-License-Identifier: GPL-2.0-only
//! A machine without costs around the policy, with the event order of spec bfs appendix B.

use alloc::string::String;
use alloc::vec::Vec;

use schedlab_kcore::{Core, CoreConfig, NewTask};
use schedlab_policy_api::{
    Build, Inspect, NoObserver, Policy, PolicyDef, SchedClass, TaskState, Topology, Tunables,
};
use schedlab_units::{CpuId, Hz, Nice, TaskId, Time};

use crate::bfs::{Bfs, BfsTunables};

/// Both knobs of the patch as in its kernel.
pub(super) const DEPTH: &str = "fork_depth_penalty=1;deadline_cap=1";

/// Tunables from a list such as `rr_interval=9;reload_on_rerun=on`, empty = plain 0.357.
pub(super) fn tunables(set: &str) -> BfsTunables {
    let mut tunables = BfsTunables::default();
    for setting in set.split(';').filter(|setting| !setting.is_empty()) {
        let (name, value) = setting.split_once('=').expect("name=value");
        tunables.set_text(name, value).expect("a legal setting");
    }
    tunables
}

impl Bfs {
    /// Sets depth of `task`.
    pub(super) fn set_depth(&mut self, task: TaskId, depth: i32) {
        self.tasks[task.index()].fork_depth = depth;
        if self.knobs.branch {
            let group = self.tasks[task.index()].group;
            self.groups.get_mut(group).threads_running = depth as u32 - 1;
        }
    }
    /// A full quota and a new deadline for `task`.
    pub(super) fn refill(&mut self, task: TaskId) {
        self.time_slice_expired(task);
        self.tasks[task.index()].last_ran = 0;
    }
}

/// Core and policy, with every switch taking no time.
pub(super) struct Rig {
    pub(super) core: Core<Bfs, NoObserver>,
    pub(super) now: Time,
    tick_ns: u64,
    n_ticks: u64,
    n_processes: u32,
    trace: Vec<String>,
}

impl Rig {
    /// `n_cpus` idle CPUs with one cache at `hz` and time 0.
    pub(super) fn new(n_cpus: u32, hz: u32, set: &str) -> Self {
        Self::on(Topology::flat(n_cpus).expect("a machine"), hz, set)
    }
    /// The idle machine `topo`.
    pub(super) fn on(topo: Topology, hz: u32, set: &str) -> Self {
        Self::build(topo, hz, set, true)
    }
    /// As [`Rig::new`] for long runs: the invariants are not checked after every input.
    pub(super) fn unchecked(n_cpus: u32, hz: u32, set: &str) -> Self {
        Self::build(Topology::flat(n_cpus).expect("a machine"), hz, set, false)
    }
    fn build(topo: Topology, hz: u32, set: &str, check: bool) -> Self {
        let hz = Hz::new(hz);
        let policy = Bfs::build(&tunables(set), Build { topo: &topo, hz, n_tasks: 4 });
        let tick_ns = hz.tick().as_ns();
        let config = CoreConfig { topo, hz, seed: 1, n_tasks: 4, check };
        Self {
            core: Core::new(policy, NoObserver, config),
            now: Time::ZERO,
            tick_ns,
            n_ticks: 0,
            n_processes: 0,
            trace: Vec::new(),
        }
    }
    pub(super) fn policy(&mut self) -> &mut Bfs {
        self.core.policy_mut()
    }
    /// Facts of a nice 0 process of its own.
    pub(super) fn process(&mut self) -> NewTask {
        self.n_processes += 1;
        NewTask::normal(self.core.topo().all(), self.n_processes)
    }
    /// Creates a task of the start; it sleeps until [`Rig::wake_new`].
    pub(super) fn create(&mut self, new: &NewTask, depth: i32) -> TaskId {
        let task = self.core.fork(self.now, CpuId(0), None, new);
        self.policy().set_depth(task, depth);
        task
    }
    /// A process of this nice value, class and depth, which is queued.
    pub(super) fn hog(&mut self, nice: i32, class: SchedClass, depth: i32) -> TaskId {
        let mut new = self.process();
        new.nice = Nice::new(nice).expect("legal");
        new.class = class;
        let task = self.create(&new, depth);
        self.wake_new(task);
        task
    }
    /// As [`Rig::hog`], with a full quota and a deadline from now on.
    pub(super) fn fresh(&mut self, nice: i32, depth: i32) -> TaskId {
        let mut new = self.process();
        new.nice = Nice::new(nice).expect("legal");
        let task = self.create(&new, depth);
        self.policy().refill(task);
        self.wake_new(task);
        task
    }
    /// First wake-up on CPU 0; nobody reacts yet.
    pub(super) fn wake_new(&mut self, task: TaskId) {
        self.core.wake_up_new(self.now, CpuId(0), task, None);
    }
    /// Wakes a sleeping task on `here`; nobody reacts yet.
    pub(super) fn wake(&mut self, here: u32, task: TaskId, sync: bool) {
        self.core.wake(self.now, CpuId(here), task, None, sync);
    }
    /// `schedule` on `cpu`, its switch included.
    pub(super) fn schedule(&mut self, cpu: u32) {
        let cpu = CpuId(cpu);
        let switch = self.core.schedule(self.now, cpu);
        if switch.is_real() {
            self.core.finish_switch(self.now, cpu);
            self.note(cpu);
        }
    }
    /// The current task of `cpu` falls asleep.
    pub(super) fn block(&mut self, cpu: u32, state: TaskState) {
        let cpu = CpuId(cpu);
        self.core.block(self.now, cpu, state);
        self.core.finish_switch(self.now, cpu);
        self.note(cpu);
    }
    /// The current task of `cpu` exits and is collected, then `heir` wakes and runs.
    pub(super) fn exit(&mut self, cpu: u32, heir: TaskId) {
        let task = self.curr(cpu).expect("somebody runs");
        self.wake(cpu, heir, false);
        self.core.exit(self.now, CpuId(cpu));
        self.core.finish_switch(self.now, CpuId(cpu));
        self.core.reap(self.now, CpuId(cpu), task);
        assert_eq!(self.curr(cpu), Some(heir));
    }
    /// Every CPU that has been asked to calls `schedule`, the lowest first.
    pub(super) fn settle(&mut self) {
        for _ in 0..1000 {
            let asked = self.core.topo().cpus().find(|cpu| self.core.need_resched(*cpu));
            let Some(cpu) = asked else { return self.core.clear_resched() };
            self.schedule(cpu.0);
        }
        panic!("the machine does not come to rest");
    }
    /// Every CPU schedules once, the lowest first.
    pub(super) fn start(&mut self) {
        for cpu in self.core.topo().cpus() {
            self.schedule(cpu.0);
        }
        self.settle();
    }
    /// The next tick of all CPUs, each followed by what it causes.
    pub(super) fn tick(&mut self) {
        self.n_ticks += 1;
        self.now = Time::from_ns(self.n_ticks * self.tick_ns);
        for cpu in self.core.topo().cpus() {
            self.core.tick(self.now, cpu);
            self.settle();
        }
    }
    /// When the next tick comes.
    pub(super) fn next_tick_ns(&self) -> u64 {
        (self.n_ticks + 1) * self.tick_ns
    }
    /// Ticks until `ms`.
    pub(super) fn run_until_ms(&mut self, ms: u64) {
        while self.next_tick_ns() <= ms * 1_000_000 {
            self.tick();
        }
    }
    /// Moves the clock between two ticks.
    pub(super) fn advance_to(&mut self, ns: u64) {
        assert!(ns <= self.next_tick_ns(), "no tick may be left out");
        self.now = Time::from_ns(ns);
    }
    /// The current task of `cpu`.
    pub(super) fn curr(&self, cpu: u32) -> Option<TaskId> {
        self.core.curr(CpuId(cpu))
    }
    /// Time that `task` ran, in hundredths of a percent of one CPU since the start.
    pub(super) fn share(&self, task: TaskId) -> u64 {
        let run = self.core.task_account(self.now, task).run;
        run.as_ns() * 10_000 / self.now.as_ns()
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
    fn note(&mut self, cpu: CpuId) {
        if let Some(task) = self.core.curr(cpu) {
            let us = self.now.as_ns() / 1000;
            let fraction = match us % 1000 {
                0 => String::new(),
                rest => alloc::format!(".{}", rest / 100),
            };
            let at = alloc::format!("{}{fraction}:{}:{}", us / 1000, cpu.0, task.0);
            self.trace.push(at);
        }
    }
    /// Dispatches so far as `ms:cpu:name`, tasks named by `names` in id order.
    pub(super) fn trace(&self, names: &str) -> Vec<String> {
        let rename = |entry: &String| {
            let (at, task) = entry.rsplit_once(':').expect("three parts");
            let task: usize = task.parse().expect("a number");
            alloc::format!("{at}:{}", &names[task..=task])
        };
        self.trace.iter().map(rename).collect()
    }
}
