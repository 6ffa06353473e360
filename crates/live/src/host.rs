// SPDX-License-Identifier: GPL-2.0-only
//! The host: records of the relay become inputs of the core, its answers become decisions.
//!
//! A record is a fact of the past, and a decision may come too late. What a CPU does is therefore
//! known in three steps: the core's current task is what *should* run; the decision given is what
//! the relay was told; and the CPU *asks* when it has nothing to run. Rules that hold:
//! - the order of records is the order of truth, and time never runs backwards;
//! - a CPU that asks runs nothing of ours, whatever was believed;
//! - a decision names the lease of its task, and is void once the task was handed over again;
//! - a CPU that never asked, or lost its task to another class, is taken until it asks.

mod cpus;
mod tasks;
mod ticks;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::io;
use std::time::Duration;

use schedlab_kcore::{Core, Entry};
use schedlab_policy_api::{Observer, Policy, TunableValue};
use schedlab_units::{CpuId, CpuSet, Hz, Nanos, TaskId, Time};

use crate::kernel::Kernel;
use crate::message::{Kind, Message, Msg, Run, flag};
use cpus::Cpu;
use tasks::LiveTask;

/// How many records an explanation shows.
const RECENT: usize = 64;

/// Receives what only the host knows of tasks.
pub trait LiveObserver: Observer {
    /// `task` came under the policy as this thread.
    fn joined(&mut self, task: TaskId, thread: &Thread);
    /// The name of `task` is this one from now on.
    fn renamed(&mut self, task: TaskId, name: &str);
    /// `task` used so much CPU time since it was last heard of, by the kernel's own account.
    fn ran(&mut self, task: TaskId, span: Nanos);
}

/// A thread of the running kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Its number.
    pub pid: u32,
    /// Number of its process.
    pub tgid: u32,
    /// Number of the parent process.
    pub parent: u32,
    /// Its name.
    pub comm: String,
    /// Its nice value.
    pub nice: i8,
}

/// Spreads pids, which the kernel gives out one after the other: nobody chooses them to collide.
#[derive(Default)]
struct PidHasher(u64);

impl Hasher for PidHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32(u32::from(*byte)));
    }
    fn write_u32(&mut self, pid: u32) {
        // 2^64 divided by the golden ratio.
        self.0 = (self.0 ^ u64::from(pid)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }
}

/// What a policy tells the host about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Habits {
    /// Rate at which it counts ticks.
    pub hz: Hz,
    /// Rate at which this kernel ticks.
    pub kernel_hz: Hz,
    /// Whether running tasks need ticks at all.
    pub ticks: bool,
}

/// How often something happened that a faultless relay and host never see; all 0 in tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Oddities {
    /// Records about a task that never joined.
    pub strangers: u64,
    /// Tasks that slept without having been run by the policy, as far as it knew.
    pub unseen_runs: u64,
    /// CPUs that asked while their task had not come back.
    pub lost_tasks: u64,
    /// Records of a task that had exited.
    pub after_exit: u64,
}

/// Totals of the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Records by kind, in the order of [`Kind::ALL`].
    pub records: [u64; Kind::ALL.len()],
    /// Batches of records.
    pub batches: u64,
    /// Decisions given.
    pub decisions: u64,
    /// Runs that the policy ended.
    pub stops: u64,
    /// Policy ticks.
    pub ticks: u64,
    /// CPUs that went to another class with a task or a decision of ours.
    pub taken: u64,
    /// Tasks that an idle CPU took at once, and that the policy would have put elsewhere.
    pub disagreed: u64,
    /// Times that idle CPUs looked for work only because a task had waited beside them for long.
    pub nudges: u64,
    /// CPU time of all tasks by the kernel's account.
    pub run: Nanos,
    /// What should not happen.
    pub odd: Oddities,
}

/// The host of one policy.
pub struct Host<P, O> {
    core: Core<P, O>,
    habits: Habits,
    cpus: Vec<Cpu>,
    /// CPUs that the policy uses, and those of them that are online.
    policy_cpus: CpuSet,
    online: CpuSet,
    ids: HashMap<u32, TaskId, BuildHasherDefault<PidHasher>>,
    tasks: Vec<LiveTask>,
    /// CLOCK_MONOTONIC of the host's time zero.
    epoch: u64,
    now: Time,
    timers: BTreeMap<u32, (Time, CpuId)>,
    next_mm: u32,
    /// The tick in which idle CPUs ticked last.
    idle_jiffy: u64,
    /// Since when an idle CPU has been seen beside a waiting task at every look.
    idle_beside_waiting_since: Option<Time>,
    totals: Totals,
    /// The last records, to explain a silence.
    recent: VecDeque<Msg>,
}

impl<P: Policy, O: LiveObserver> Host<P, O> {
    /// A host around `core`, whose time 0 is the instant `epoch` of CLOCK_MONOTONIC in ns; all CPUs
    /// are taken until they ask.
    pub fn new(mut core: Core<P, O>, habits: Habits, policy_cpus: CpuSet, epoch: u64) -> Self {
        let n_cpus = core.topo().n_cpus();
        for cpu in (0..n_cpus).map(CpuId::from_index) {
            core.take_cpu(Time::ZERO, cpu);
        }
        Self {
            core,
            habits,
            cpus: vec![Cpu::default(); n_cpus],
            policy_cpus,
            online: policy_cpus,
            ids: HashMap::with_capacity_and_hasher(8192, BuildHasherDefault::default()),
            tasks: Vec::with_capacity(8192),
            epoch,
            now: Time::ZERO,
            timers: BTreeMap::new(),
            next_mm: 1 << 31,
            idle_jiffy: 0,
            idle_beside_waiting_since: None,
            totals: Totals::default(),
            recent: VecDeque::with_capacity(RECENT),
        }
    }

    /// Makes every CPU of the policy look for work, and so ask.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn start(&mut self, kernel: &mut impl Kernel) -> io::Result<()> {
        self.policy_cpus.iter().for_each(|cpu| kernel.kick(cpu));
        self.commit(kernel)
    }

    /// Handles a batch of records and makes the decisions that follow known.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn handle(&mut self, kernel: &mut impl Kernel, batch: &[Message]) -> io::Result<()> {
        for message in batch {
            self.record(kernel, message);
        }
        self.totals.batches += 1;
        self.run_timers(kernel);
        self.commit(kernel)
    }

    /// Handles what time brings by itself: timers of the policy, ticks of idle CPUs. `clock` is
    /// CLOCK_MONOTONIC in ns.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn pass_time(&mut self, kernel: &mut impl Kernel, clock: u64) -> io::Result<()> {
        self.advance(clock);
        self.run_timers(kernel);
        self.tick_idle(kernel);
        self.commit(kernel)
    }

    /// How long the host may sleep, at most `longest`.
    pub fn patience(&self, longest: Duration) -> Duration {
        let timer = self.timers.values().map(|(at, _)| *at).min();
        let until_timer = timer.map_or(longest, |at| {
            Duration::from_nanos(at.saturating_since(self.now).as_ns().max(1))
        });
        let idle = if self.idle_cpu_beside_waiting_task() {
            Duration::from_nanos(self.habits.hz.tick().as_ns())
        } else {
            longest
        };
        longest.min(until_timer).min(idle)
    }

    fn advance(&mut self, clock: u64) {
        let now = Time::from_ns(clock.saturating_sub(self.epoch));
        self.now = self.now.max(now);
    }

    fn record(&mut self, kernel: &mut impl Kernel, message: &Message) {
        self.advance(message.msg.t_ns);
        if self.recent.len() == RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(message.msg);
        self.totals.records[message.kind as usize - 1] += 1;
        match message.kind {
            Kind::Join => self.join(message),
            Kind::Cpu => self.hotplug(message.cpu(), message.msg.a != 0),
            Kind::Pick => self.asks(message),
            Kind::Busy => self.decision_came_back(message),
            Kind::Wake => {}
            _ => match self.ids.get(&message.msg.pid).copied() {
                Some(task) => self.task_record(kernel, message, task),
                None => self.totals.odd.strangers += 1,
            },
        }
        self.react(kernel);
    }

    fn task_record(&mut self, kernel: &mut impl Kernel, message: &Message, task: TaskId) {
        self.account(task, message);
        match message.kind {
            Kind::Enq => self.waits(task, message),
            Kind::Deq => self.task(task).waits = false,
            Kind::Block => self.blocks(task, message),
            Kind::Tick => self.tick(kernel, task),
            Kind::Nice => self.renice(task, message),
            Kind::Affine => self.allow(task, message),
            Kind::Leave => self.leave(task),
            Kind::Exec => self.exec(task, message),
            Kind::Name => self.rename(task, message),
            Kind::Run if message.has(flag::DIRECT) => self.runs_already(task, message),
            Kind::Run | Kind::Join | Kind::Cpu | Kind::Pick | Kind::Busy | Kind::Wake => {}
        }
    }

    /// Changes a tunable of the policy; false = it takes no change of it while it runs.
    pub fn set_tunable(&mut self, name: &'static str, value: TunableValue) -> bool {
        self.core.set_tunable(self.now, name, value)
    }

    /// The core.
    pub fn core(&self) -> &Core<P, O> {
        &self.core
    }
    /// Time of the last record.
    pub fn now(&self) -> Time {
        self.now
    }
    /// Totals so far.
    pub fn totals(&self) -> &Totals {
        &self.totals
    }
    /// Threads under the policy, with their tasks.
    pub fn threads(&self) -> impl Iterator<Item = (TaskId, &Thread, Nanos)> {
        self.core.tasks().iter().filter_map(|(id, _)| {
            let task = self.tasks.get(id.index())?;
            task.thread.as_ref().map(|thread| (id, thread, task.run))
        })
    }
    /// Begins to keep the core's transcript.
    pub fn start_transcript(&mut self) {
        self.core.start_transcript();
    }
    /// The core's transcript so far; keeping it ends.
    pub fn take_transcript(&mut self) -> Vec<Entry> {
        self.core.take_transcript()
    }
    /// Ends every task at `clock` and yields the core.
    pub fn finish(mut self, clock: u64) -> (Core<P, O>, Time, Totals) {
        self.advance(clock);
        (self.core, self.now, self.totals)
    }

    /// Both views of every CPU, the tasks and the last records, for a person who looks for a lost wake-up.
    pub fn explain(&self, kernel: &mut impl Kernel) -> String {
        let mut text = String::new();
        for cpu in self.policy_cpus.iter() {
            let model = &self.cpus[cpu.index()];
            let current = if self.core.is_taken(cpu) {
                "taken".to_string()
            } else {
                self.core.curr(cpu).map_or("none".to_string(), |task| task.to_string())
            };
            let run = |run: Option<Run>| {
                run.map_or("-".to_string(), |r| format!("({}, {})", r.pid, r.lease))
            };
            text += &format!(
                "CPU {cpu}: host: current {current} asked {} fresh {} given {}; relay: {}\n",
                model.asked,
                model.fresh,
                run(model.given),
                kernel.explain(cpu)
            );
        }
        for (id, thread, run) in self.threads() {
            let (facts, live) = (self.core.tasks().get(id), &self.tasks[id.index()]);
            text += &format!(
                "task {id}: pid {} {:?} {:?} on CPU {} waits {} lease {} run {run}\n",
                thread.pid, thread.comm, facts.state, facts.cpu, live.waits, live.lease
            );
        }
        for msg in &self.recent {
            let kind = Kind::from_number(msg.kind).map_or("?", Kind::name);
            text += &format!(
                "{} ns: {kind} CPU {} pid {} lease {} flags {:#x} a {}\n",
                msg.t_ns, msg.cpu, msg.pid, msg.lease, msg.flags, msg.a
            );
        }
        text + &format!("{:?}\n", self.totals.odd)
    }
}
