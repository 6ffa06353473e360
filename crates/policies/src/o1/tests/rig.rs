// SPDX-License-Identifier: GPL-2.0-only
//! A machine without costs around the policy: what the spec's traces assume.

use alloc::vec::Vec;

use schedlab_kcore::{Core, CoreConfig, NewTask};
use schedlab_policy_api::{
    Build, Inspect, NoObserver, Policy, PolicyDef, SchedClass, TaskState, Topology, Tunables,
};
use schedlab_units::{CpuId, Hz, Nanos, Nice, TaskId, Time};

use crate::o1::policy::O1;
use crate::o1::tunables::{Knobs, O1Tunables, VARIANTS};

pub(super) const CPU0: CpuId = CpuId(0);
pub(super) const MS: u64 = 1_000_000;

/// Tunables of `variant` with a list of settings such as `child_penalty=95;granularity=0`.
pub(super) fn tunables(variant: &str, set: &str) -> O1Tunables {
    let mut tunables = O1Tunables::default();
    let preset = VARIANTS.iter().find(|v| v.name == variant).expect("a variant");
    for (name, value) in preset.set {
        tunables.set(name, *value).expect("presets are legal");
    }
    for setting in set.split(';').filter(|setting| !setting.is_empty()) {
        let (name, value) = setting.split_once('=').expect("name=value");
        tunables.set_text(name, value).expect("a legal setting");
    }
    tunables
}

/// `variant` on one CPU at HZ 1000.
pub(super) fn knobs(variant: &str) -> Knobs {
    Knobs::new(&tunables(variant, ""), 1, Hz::new(1000))
}

pub(super) fn nice(n: i32) -> Nice {
    Nice::new(n).expect("a nice value")
}

/// Core and policy at HZ 1000, with every switch taking no time.
pub(super) struct Rig {
    pub(super) core: Core<O1, NoObserver>,
    pub(super) now: Time,
    n_processes: u32,
}

impl Rig {
    /// One CPU under `variant`.
    pub(super) fn up(variant: &str) -> Self {
        Self::new(1, variant, "")
    }

    /// `n_cpus` idle CPUs at time 0.
    pub(super) fn new(n_cpus: u32, variant: &str, set: &str) -> Self {
        Self::on(Topology::flat(n_cpus).expect("a machine"), variant, set, true)
    }

    /// The machine `topo` with all CPUs idle at time 0; `check`: invariants after every input.
    pub(super) fn on(topo: Topology, variant: &str, set: &str, check: bool) -> Self {
        let hz = Hz::new(1000);
        let build = Build { topo: &topo, hz, n_tasks: 4 };
        let policy = O1::build(&tunables(variant, set), build);
        let config = CoreConfig { topo, hz, seed: 1, n_tasks: 4, check };
        Self { core: Core::new(policy, NoObserver, config), now: Time::ZERO, n_processes: 0 }
    }

    /// Facts of a nice 0 process of its own.
    pub(super) fn process(&mut self) -> NewTask {
        self.n_processes += 1;
        NewTask::normal(self.core.topo().all(), self.n_processes)
    }

    /// Starts a task of the workload with these facts at the tail of active.
    pub(super) fn start(&mut self, new: &NewTask, sleep_avg: u64) -> TaskId {
        let task = self.core.fork(self.now, CPU0, None, new);
        self.core.policy_mut().set_sleep_avg(task, sleep_avg);
        self.core.wake_up_new(self.now, CPU0, task, None);
        task
    }

    /// Starts a nice 0 task with this sleep average.
    pub(super) fn task(&mut self, sleep_avg: u64) -> TaskId {
        let new = self.process();
        self.start(&new, sleep_avg)
    }

    /// Starts a task that runs before all others: RT priority 50, FIFO.
    pub(super) fn fifo(&mut self) -> TaskId {
        let mut new = self.process();
        new.class = SchedClass::Fifo;
        new.rt_priority = 50;
        let task = self.core.fork(self.now, CPU0, None, &new);
        self.core.wake_up_new(self.now, CPU0, task, None);
        task
    }

    /// The current task of `cpu` forks; nobody reacts yet.
    pub(super) fn fork(&mut self, cpu: CpuId) -> TaskId {
        let parent = self.core.curr(cpu);
        let mut new = self.process();
        new.cpu = cpu;
        let task = self.core.fork(self.now, cpu, parent, &new);
        self.core.wake_up_new(self.now, cpu, task, None);
        task
    }

    /// `schedule` on `cpu`, its switch included.
    pub(super) fn schedule(&mut self, cpu: CpuId) {
        if self.core.schedule(self.now, cpu).is_real() {
            self.core.finish_switch(self.now, cpu);
        }
    }

    /// The current task of `cpu` falls asleep.
    pub(super) fn block(&mut self, cpu: CpuId) {
        self.core.block(self.now, cpu, TaskState::Sleeping);
        self.core.finish_switch(self.now, cpu);
    }

    /// Everybody who has been asked to calls `schedule`.
    pub(super) fn settle(&mut self) {
        for _ in 0..100 {
            let mut asked = self.core.topo().cpus().filter(|cpu| self.core.need_resched(*cpu));
            let Some(cpu) = asked.next() else { return };
            drop(asked);
            self.schedule(cpu);
        }
        panic!("the machine does not come to rest");
    }

    /// An interrupt wakes `task`, and whoever was asked reacts.
    pub(super) fn wake(&mut self, task: TaskId) {
        self.core.wake(self.now, CPU0, task, None, false);
        self.settle();
    }

    /// Time goes on by `span` without ticks; it must not reach the next one.
    pub(super) fn advance(&mut self, span: Nanos) {
        self.now = self.now + span;
    }

    /// Time goes on to the next tick of all CPUs, which is handled.
    pub(super) fn tick(&mut self) {
        let jiffy = self.now.as_ns() / MS + 1;
        self.now = Time::from_ns(jiffy * MS);
        for cpu in self.core.topo().cpus() {
            self.core.tick(self.now, cpu);
            self.settle();
        }
    }

    /// `n` ticks.
    pub(super) fn ticks(&mut self, n: u64) {
        for _ in 0..n {
            self.tick();
        }
    }

    /// Who is current on CPU 0 at each of the next `n` ticks, as indices into `tasks`, run-length
    /// encoded.
    pub(super) fn stints(&mut self, n: u64, tasks: &[TaskId]) -> Vec<(usize, u64)> {
        let mut stints: Vec<(usize, u64)> = Vec::new();
        for _ in 0..n {
            let curr = self.core.curr(CPU0).expect("somebody runs");
            let index = tasks.iter().position(|task| *task == curr).expect("known");
            match stints.last_mut() {
                Some((last, n)) if *last == index => *n += 1,
                _ => stints.push((index, 1)),
            }
            self.tick();
        }
        stints
    }

    /// What the policy says of `task` under `name`.
    pub(super) fn figure(&self, task: TaskId, name: &str) -> i64 {
        let figures = self.core.inspect(self.now, task);
        figures.iter().find(|(n, _)| *n == name).expect("the policy says so").1
    }

    /// A total of the policy.
    pub(super) fn stat(&self, name: &str) -> i64 {
        let mut totals = Inspect::new();
        self.core.policy().stats(&mut totals);
        totals.iter().find(|(n, _)| *n == name).expect("the policy says so").1
    }

    /// Jiffies now.
    pub(super) fn jiffies(&self) -> u64 {
        self.now.as_ns() / MS
    }
}
