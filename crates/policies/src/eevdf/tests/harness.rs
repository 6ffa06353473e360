// SPDX-License-Identifier: GPL-2.0-only
//! A core around the policy, driven by hand: no cost, no workload, invariants on.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use schedlab_kcore::{Core, CoreConfig, NewTask, Wakeup};
use schedlab_policy_api::{
    Build, Inspect, NoObserver, PolicyDef, SchedClass, TaskState, Topology, Tunables, Variant,
};
use schedlab_units::{CpuId, Hz, Nice, TaskId, Time};

use crate::eevdf::Eevdf;

/// A core with its clock.
pub(crate) struct Bench<P> {
    pub(crate) core: Core<P, NoObserver>,
    pub(crate) now: u64,
    tick: u64,
}

/// A bench with EEVDF on it.
pub(super) type Rig = Bench<Eevdf>;

/// Tunables with some set as a user writes them.
pub(crate) fn knobs<T: Tunables>(set: &[(&str, &str)]) -> T {
    let mut knobs = T::default();
    for (name, value) in set {
        knobs.set_text(name, value).expect("a legal tunable");
    }
    knobs
}

/// The knobs that the variant called `name` sets, as a user writes them.
pub(crate) fn set_of<T: Tunables>(
    variants: &[Variant],
    name: &str,
) -> Vec<(&'static str, &'static str)> {
    let variant = variants.iter().find(|v| v.name == name).expect("a variant");
    let text = |(knob, value): &(&'static str, i64)| {
        let index = T::index_of(knob).expect("a tunable");
        (*knob, &*T::SPECS[index].show(*value).leak())
    };
    variant.set.iter().map(text).collect()
}

impl Rig {
    /// One CPU, slice 2.8 ms, whole first slices.
    pub(super) fn single(hz: u32, set: &[(&str, &str)]) -> Self {
        let mut all = alloc::vec![("base_slice", "2.8ms"), ("place_deadline_initial", "off")];
        all.extend_from_slice(set);
        Self::new(Topology::flat(1).expect("a machine"), hz, &all)
    }
}

impl<P: PolicyDef> Bench<P> {
    pub(crate) fn new(topo: Topology, hz: u32, set: &[(&str, &str)]) -> Self {
        let hz = Hz::new(hz);
        let build = Build { topo: &topo, hz, n_tasks: 16 };
        let policy = P::build(&knobs(set), build);
        let config = CoreConfig { topo, hz, seed: 1, n_tasks: 16, check: true };
        Self { core: Core::new(policy, NoObserver, config), now: 0, tick: hz.tick().as_ns() }
    }
    pub(crate) fn time(&self) -> Time {
        Time::from_ns(self.now)
    }
    /// Facts of a nice 0 task.
    pub(crate) fn normal(&self) -> NewTask {
        NewTask::normal(self.core.topo().all(), 1)
    }
    /// Forks and wakes a task; `on` overrides the choice of a CPU.
    pub(crate) fn spawn(&mut self, new: &NewTask, on: Option<u32>) -> TaskId {
        let now = self.time();
        let task = self.core.fork(now, new.cpu, None, new);
        self.core.wake_up_new(now, new.cpu, task, on.map(CpuId));
        task
    }
    pub(crate) fn spawn_nice(&mut self, nice: i32) -> TaskId {
        let nice = Nice::new(nice).expect("a nice value");
        let new = NewTask { nice, ..self.normal() };
        self.spawn(&new, Some(0))
    }
    pub(crate) fn spawn_rt(&mut self, class: SchedClass, rt_priority: u8, on: u32) -> TaskId {
        let new = NewTask { class, rt_priority, ..self.normal() };
        self.spawn(&new, Some(on))
    }
    /// Calls `schedule` on `cpu` and finishes the switch at once; the task that runs then.
    pub(crate) fn schedule(&mut self, cpu: u32) -> Option<TaskId> {
        let (now, cpu) = (self.time(), CpuId(cpu));
        if self.core.schedule(now, cpu).is_real() {
            self.core.finish_switch(now, cpu);
        }
        self.core.curr(cpu)
    }
    /// The current task of `cpu` goes to sleep; the task that runs then.
    pub(crate) fn block(&mut self, cpu: u32) -> Option<TaskId> {
        let (now, cpu) = (self.time(), CpuId(cpu));
        if self.core.block(now, cpu, TaskState::Sleeping).is_real() {
            self.core.finish_switch(now, cpu);
        }
        self.core.curr(cpu)
    }
    /// Wakes `task` from `this_cpu`, arriving at once where it is sent to.
    pub(crate) fn wake(&mut self, this_cpu: u32, task: TaskId, waker: Option<TaskId>) -> CpuId {
        let now = self.time();
        match self.core.wake(now, CpuId(this_cpu), task, waker, false) {
            Wakeup::Queued(cpu) => cpu,
            Wakeup::Sent(cpu) => {
                self.core.wake_arrive(now, cpu, task);
                cpu
            }
            Wakeup::NotAsleep => panic!("task {task} is not asleep"),
        }
    }
    pub(crate) fn need_resched(&self, cpu: u32) -> bool {
        self.core.need_resched(CpuId(cpu))
    }
    /// Reschedules all CPUs that were asked to, until none is.
    pub(crate) fn settle(&mut self) {
        let cpus: Vec<CpuId> = self.core.topo().cpus().collect();
        while let Some(cpu) = cpus.iter().find(|cpu| self.core.need_resched(**cpu)) {
            self.schedule(cpu.0);
        }
        self.core.clear_resched();
    }
    /// Lets time pass to `until` ns with a tick of every CPU at each multiple of TICK.
    pub(crate) fn run_until(&mut self, until: u64) {
        let cpus: Vec<CpuId> = self.core.topo().cpus().collect();
        loop {
            let next = (self.now / self.tick + 1) * self.tick;
            if next > until {
                self.now = until;
                return;
            }
            self.now = next;
            for cpu in &cpus {
                self.core.tick(self.time(), *cpu);
            }
            self.settle();
        }
    }
    /// The next `n` picks of CPU 0 from the start on, a tick apart at least, as "ms:letter" with
    /// the first task as A; `*` = the running task is picked again.
    pub(crate) fn picks(&mut self, n: usize) -> Vec<String> {
        let mut picks = Vec::new();
        let mut prev = None;
        while picks.len() < n {
            if self.need_resched(0) {
                let next = self.schedule(0).expect("somebody is runnable");
                let letter = char::from(b'A' + next.0 as u8);
                let again = if prev == Some(next) { "*" } else { "" };
                picks.push(format!("{}:{letter}{again}", self.now / 1_000_000));
                prev = Some(next);
            }
            if picks.len() < n {
                self.now += self.tick;
                self.core.tick(self.time(), CpuId(0));
            }
        }
        picks
    }
    pub(crate) fn inspect(&self, task: TaskId) -> Inspect {
        self.core.inspect(self.time(), task)
    }
    /// A figure that the policy gives for `task`.
    pub(crate) fn figure(&self, task: TaskId, name: &str) -> i64 {
        let all = self.inspect(task);
        let found = all.iter().find(|(figure, _)| *figure == name);
        found.unwrap_or_else(|| panic!("no figure {name} in {all:?}")).1
    }
    /// Run time of `task` so far, ns.
    pub(crate) fn run_ns(&self, task: TaskId) -> u64 {
        self.core.task_account(self.time(), task).run.as_ns()
    }
}
