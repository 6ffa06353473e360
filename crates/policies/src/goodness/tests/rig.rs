// SPDX-License-Identifier: GPL-2.0-only
//! A machine without costs around the policy: what the spec's traces assume.

use alloc::vec::Vec;

use schedlab_kcore::{Core, CoreConfig, NewTask};
use schedlab_policy_api::{
    Build, Mm, NoObserver, PolicyDef, Resched, SchedClass, TaskState, Topology, Tunables,
};
use schedlab_units::{CpuId, CpuSet, Hz, Nanos, Nice, TaskId, Time};

use crate::goodness::Goodness;

/// Facts of a task as the vectors write them: `counter[/nice][:class prio][!yield]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    pub(crate) counter: u32,
    pub(crate) nice: Nice,
    pub(crate) class: SchedClass,
    pub(crate) rt_priority: u8,
    pub(crate) yielded: bool,
}

impl Figures {
    pub(crate) fn parse(text: &str) -> Self {
        let (text, yielded) = text.strip_suffix('!').map_or((text, false), |text| (text, true));
        let (text, class) = text.split_once(':').unwrap_or((text, "other 0"));
        let (counter, nice) = text.split_once('/').unwrap_or((text, "0"));
        let (class, rt_priority) = class.split_once(' ').expect("class and priority");
        Self {
            counter: counter.parse().expect("a counter"),
            nice: Nice::new(nice.parse().expect("a number")).expect("a nice value"),
            class: SchedClass::from_name(class).expect("a class"),
            rt_priority: rt_priority.parse().expect("a priority"),
            yielded,
        }
    }
}

/// Tunables from a list such as `t_up=0;prev_bias=off`, empty = the default variant.
pub(crate) fn tunables<T: Tunables>(set: &str) -> T {
    let mut tunables = T::default();
    for setting in set.split(';').filter(|setting| !setting.is_empty()) {
        let (name, value) = setting.split_once('=').expect("name=value");
        tunables.set_text(name, value).expect("a legal setting");
    }
    tunables
}

/// A policy whose tasks own ticks that a test may set.
pub(crate) trait Ticks: PolicyDef {
    fn give(&mut self, task: TaskId, ticks: u32);
}

impl Ticks for Goodness {
    fn give(&mut self, task: TaskId, ticks: u32) {
        self.set_counter(task, ticks);
    }
}

pub(crate) type Rig = Machine<Goodness>;

/// Core and policy, with every switch taking no time.
pub(crate) struct Machine<P> {
    pub(crate) core: Core<P, NoObserver>,
    pub(crate) now: Time,
    n_processes: u32,
}

impl<P: Ticks> Machine<P> {
    /// `n_cpus` idle CPUs at HZ 100 and time 0.
    pub(crate) fn new(n_cpus: u32, set: &str) -> Self {
        let topo = Topology::flat(n_cpus).expect("a machine");
        let hz = Hz::new(100);
        let build = Build { topo: &topo, hz, n_tasks: 4 };
        let policy = P::build(&tunables(set), build);
        let config = CoreConfig { topo, hz, seed: 1, n_tasks: 4, check: true };
        Self { core: Core::new(policy, NoObserver, config), now: Time::ZERO, n_processes: 0 }
    }

    /// Facts of a process of its own that may run everywhere and last ran on CPU 0.
    pub(crate) fn process(&mut self, figures: Figures) -> NewTask {
        self.n_processes += 1;
        let mut new = NewTask::normal(self.core.topo().all(), self.n_processes);
        new.nice = figures.nice;
        new.class = figures.class;
        new.rt_priority = figures.rt_priority;
        new
    }

    /// Creates a task of the workload with these ticks; it sleeps until [`Machine::wake_new`].
    pub(crate) fn create(&mut self, new: &NewTask, counter: u32) -> TaskId {
        let task = self.core.fork(self.now, CpuId(0), None, new);
        self.core.policy_mut().give(task, counter);
        task
    }

    /// [`Machine::process`] and [`Machine::create`] in one.
    pub(crate) fn hog(&mut self, figures: &str) -> TaskId {
        let figures = Figures::parse(figures);
        let new = self.process(figures);
        self.create(&new, figures.counter)
    }

    /// Wakes a task for the first time on `here`; nobody reacts yet.
    pub(crate) fn wake_new(&mut self, here: CpuId, task: TaskId) {
        self.core.wake_up_new(self.now, here, task, None);
    }

    /// Wakes a sleeping task on `here`; nobody reacts yet.
    pub(crate) fn wake(&mut self, here: CpuId, task: TaskId) {
        self.core.wake(self.now, here, task, None, false);
    }

    /// `schedule` on `cpu`, its switch included.
    pub(crate) fn schedule(&mut self, cpu: CpuId) {
        if self.core.schedule(self.now, cpu).is_real() {
            self.core.finish_switch(self.now, cpu);
        }
    }

    /// The current task of `cpu` falls asleep.
    pub(crate) fn block(&mut self, cpu: CpuId) {
        self.core.block(self.now, cpu, TaskState::Sleeping);
        self.core.finish_switch(self.now, cpu);
    }

    /// Everybody who has been asked to calls `schedule`, `own` CPU first.
    pub(crate) fn settle(&mut self, own: CpuId) {
        for _ in 0..100 {
            let cpus = core::iter::once(own).chain(self.core.topo().cpus());
            let mut asked = cpus.filter(|cpu| self.core.need_resched(*cpu));
            let Some(cpu) = asked.next() else { return };
            drop(asked);
            self.schedule(cpu);
        }
        panic!("the machine does not come to rest");
    }

    /// The tick of `cpu`, and at once what follows on this CPU.
    pub(crate) fn tick(&mut self, cpu: CpuId) {
        self.core.tick(self.now, cpu);
    }

    /// Time goes on by `span`.
    pub(crate) fn advance(&mut self, span: Nanos) {
        self.now = self.now + span;
    }

    /// Requests for `schedule` since the last call.
    pub(crate) fn take_resched(&mut self) -> Vec<Resched> {
        let requests = (0..).map_while(|i| self.core.resched_at(i)).collect();
        self.core.clear_resched();
        requests
    }

    /// What the policy says of `task` under `name`.
    pub(crate) fn inspect(&self, task: TaskId, name: &str) -> i64 {
        let figures = self.core.inspect(self.now, task);
        figures.iter().find(|(n, _)| *n == name).expect("the policy says so").1
    }

    /// A total of the policy.
    pub(crate) fn stat(&self, name: &str) -> i64 {
        use schedlab_policy_api::Inspect;
        let mut totals = Inspect::new();
        self.core.policy().stats(&mut totals);
        totals.iter().find(|(n, _)| *n == name).expect("the policy says so").1
    }

    /// The tasks of the run list from the head.
    pub(crate) fn list(&self) -> Vec<TaskId> {
        let runnable = self.core.tasks().iter().filter(|(_, facts)| facts.state.wants_cpu());
        let mut list: Vec<TaskId> = runnable.map(|(task, _)| task).collect();
        list.sort_by_key(|task| self.inspect(*task, "position"));
        list
    }
}

/// Only `cpu`.
pub(crate) fn only(cpu: u32) -> CpuSet {
    CpuSet::single(CpuId(cpu))
}

/// Address space number `mm`.
pub(crate) fn mm(mm: u32) -> Option<Mm> {
    Some(Mm(mm))
}
