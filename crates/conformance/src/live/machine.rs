// SPDX-License-Identifier: GPL-2.0-only
//! The simulated machine: CPUs, tasks, time.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use schedlab_live::kernel::Counters;
use schedlab_live::message::{Decision, Message, Run};
use schedlab_units::{CpuSet, Rng};

use super::ledger::Ledger;
use super::{Relaying, Scenario};

/// Period of the kernel's tick in ns (HZ = 1000).
pub(super) const TICK_NS: u64 = 1_000_000;
/// Period of the relay's watch in ns.
pub(super) const WATCH_NS: u64 = 50_000_000;
/// A slice without end (`SCX_SLICE_INF`).
pub(super) const SLICE_INF: u64 = u64::MAX;
/// A slice nobody chose, in ns (`SCX_SLICE_DFL`).
pub(super) const SLICE_DFL: u64 = 20_000_000;
/// CLOCK_MONOTONIC in ns at the start.
pub(super) const EPOCH: u64 = 1_000_000_000;
/// The kernel's number of the policy SCHED_EXT.
pub(super) const SCHED_EXT: u64 = 7;

/// Where a task is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// It sleeps, or waits to be woken the first time.
    Asleep,
    /// The relay has it: the host is to decide.
    Custody,
    /// On the relay's own queue, first in, first out.
    Spare,
    /// On the local queue of a CPU.
    Local(usize),
    /// Current on a CPU.
    Running(usize),
    /// Of another class.
    Elsewhere,
    /// Gone, but for its storage.
    Dead,
}

/// What the relay keeps about a task (`struct task_ctx`).
#[derive(Clone, Debug, Default)]
pub(super) struct TaskCtx {
    pub(super) lease: u32,
    pub(super) run_ticks: bool,
    pub(super) reported: u64,
    pub(super) blocked_at: u64,
    pub(super) granted: u64,
    pub(super) granted_at: u64,
    pub(super) run_lease: u32,
    pub(super) stop_lease: u32,
    pub(super) why: u32,
    pub(super) wake_flags: u32,
    pub(super) unint: bool,
    pub(super) is_new: bool,
    pub(super) joined: bool,
    pub(super) queued: bool,
    pub(super) direct: u32,
    pub(super) waker: (u32, usize),
    pub(super) exit_reported: bool,
}

/// A task of the simulated kernel.
#[derive(Clone, Debug)]
pub(super) struct FakeTask {
    pub(super) tgid: u32,
    pub(super) parent: u32,
    pub(super) nice: i64,
    pub(super) policy: u64,
    pub(super) allowed: CpuSet,
    /// Its migration is disabled: it may run on its CPU only.
    pub(super) pinned: bool,
    /// The kernel has said so in its mask.
    pub(super) mask_pinned: bool,
    pub(super) kernel_thread: bool,
    pub(super) exiting: bool,
    pub(super) cpu: usize,
    pub(super) place: Place,
    /// Until then it is on the stack of the CPU it left.
    pub(super) on_cpu_until: u64,
    pub(super) slice: u64,
    pub(super) sum_exec: u64,
    /// CPU time until its program goes on.
    pub(super) work: u64,
    /// Changes whenever pending events about it become void.
    pub(super) token: u64,
    pub(super) ctx: TaskCtx,
}

/// A CPU of the simulated kernel.
#[derive(Clone, Debug)]
pub(super) struct FakeCpu {
    pub(super) curr: Option<u32>,
    /// Since when `curr` was charged.
    pub(super) since: u64,
    /// A task of another class wants it.
    pub(super) other: bool,
    /// The task that changes into our class while it is the other one.
    pub(super) becomes: Option<u32>,
    /// The host's thread runs on it.
    pub(super) host: bool,
    /// It was told that it is idle.
    pub(super) idle: bool,
    pub(super) online: bool,
    pub(super) local: VecDeque<u32>,
    pub(super) slot: Option<Decision>,
    pub(super) seen: Option<Run>,
    pub(super) asked: bool,
    pub(super) foreign: bool,
    pub(super) pushed_aside: Option<Run>,
    pub(super) current_run: Option<Run>,
}

impl FakeCpu {
    /// Whether a class above ours has it.
    pub(super) fn above(&self) -> bool {
        self.other || self.host
    }
}

/// How a kick works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kick {
    /// The CPU looks for work if it is idle.
    Idle,
    /// The slice of the current task is over.
    Preempt,
    /// The CPU calls `schedule`.
    Resched,
}

/// Something that happens at an instant.
#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    /// The work of a running task is done.
    WorkDone {
        pid: u32,
        token: u64,
    },
    /// A task is woken by an interrupt.
    Timer {
        pid: u32,
        token: u64,
    },
    /// The last tick was a tick ago.
    Tick,
    /// The relay's timer.
    Watch,
    Kick {
        cpu: usize,
        kick: Kick,
    },
    /// A task of another class arrives.
    Arrives {
        cpu: usize,
    },
    /// It leaves again.
    Departs {
        cpu: usize,
    },
    /// Somebody changes a task.
    Change,
    /// A CPU comes or goes.
    Hotplug,
    /// The storage of a dead task goes.
    Free {
        pid: u32,
    },
}

/// The simulated kernel with its relay.
pub struct FakeKernel {
    pub(super) scenario: Scenario,
    pub(super) relaying: Relaying,
    pub(super) rng: Rng,
    pub(super) now: u64,
    pub(super) seq: u64,
    pub(super) events: BinaryHeap<Reverse<(u64, u64, EventKey)>>,
    pub(super) pending: BTreeMap<u64, Event>,
    pub(super) cpus: Vec<FakeCpu>,
    pub(super) tasks: BTreeMap<u32, FakeTask>,
    pub(super) next_pid: u32,
    pub(super) spare: VecDeque<u32>,
    pub(super) ring: VecDeque<Message>,
    pub(super) queued: u32,
    pub(super) last_queued: u32,
    pub(super) host_awake: bool,
    pub(super) wake_at: Option<u64>,
    pub(super) kicks: CpuSet,
    pub(super) stops: Vec<(usize, Run)>,
    pub(super) counters: Counters,
    pub(super) ledger: Ledger,
    /// Programs go to sleep and stay there.
    pub(super) winding_down: bool,
    pub(super) stamp: u64,
}

/// Key of an event among those pending.
pub(super) type EventKey = u64;

impl FakeKernel {
    /// A machine whose tasks begin to work.
    pub fn new(scenario: Scenario, relaying: Relaying) -> Self {
        let cpu = FakeCpu {
            curr: None,
            since: 0,
            other: false,
            becomes: None,
            host: false,
            idle: true,
            online: true,
            local: VecDeque::new(),
            slot: None,
            seen: None,
            asked: false,
            foreign: false,
            pushed_aside: None,
            current_run: None,
        };
        let mut kernel = Self {
            rng: Rng::stream(scenario.seed, "fake kernel", 0),
            now: EPOCH,
            seq: 0,
            events: BinaryHeap::new(),
            pending: BTreeMap::new(),
            cpus: vec![cpu; scenario.n_cpus],
            tasks: BTreeMap::new(),
            next_pid: 100,
            spare: VecDeque::new(),
            ring: VecDeque::new(),
            queued: 0,
            last_queued: 0,
            host_awake: true,
            wake_at: None,
            kicks: CpuSet::EMPTY,
            stops: Vec::new(),
            counters: Counters::default(),
            ledger: Ledger::new(scenario.n_cpus, !relaying.idle_dispatch && !scenario.is_lossy()),
            winding_down: false,
            stamp: 0,
            scenario,
            relaying,
        };
        kernel.after(TICK_NS, Event::Tick);
        kernel.after(WATCH_NS, Event::Watch);
        kernel.populate();
        kernel
    }

    /// CLOCK_MONOTONIC in ns.
    pub fn clock(&self) -> u64 {
        self.now
    }

    /// Lets `event` happen `delay` ns from now.
    pub(super) fn after(&mut self, delay: u64, event: Event) {
        self.seq += 1;
        self.events.push(Reverse((self.now + delay, self.seq, self.seq)));
        self.pending.insert(self.seq, event);
    }

    /// When the next event is due.
    pub(super) fn next_event(&self) -> Option<u64> {
        self.events.peek().map(|Reverse((at, ..))| *at)
    }

    /// Lets everything happen that is due by `until`.
    pub(super) fn pass_until(&mut self, until: u64) {
        while self.next_event().is_some_and(|at| at <= until) {
            self.step();
        }
        self.now = self.now.max(until);
    }

    /// Lets a random time of at most `most` ns pass.
    pub(super) fn pass_some(&mut self, most: u64) {
        let span = self.rng.below(most + 1);
        self.pass_until(self.now + span);
    }

    /// Lets the next event happen.
    pub(super) fn step(&mut self) {
        let Some(Reverse((at, _, key))) = self.events.pop() else { return };
        self.now = self.now.max(at);
        let event = self.pending.remove(&key).expect("every event is pending");
        match event {
            Event::WorkDone { pid, token } => {
                if self.tasks.get(&pid).is_some_and(|task| task.token == token) {
                    self.work_done(pid);
                }
            }
            Event::Timer { pid, token } => {
                let task = self.tasks.get(&pid);
                if task.is_some_and(|task| task.token == token && task.place == Place::Asleep) {
                    self.wake(pid, None, false);
                }
            }
            Event::Tick => self.tick_all(),
            Event::Watch => self.watch(),
            Event::Kick { cpu, kick } => self.kicked(cpu, kick),
            Event::Arrives { cpu } => self.arrives(cpu),
            Event::Departs { cpu } => self.departs(cpu),
            Event::Change => self.change_somebody(),
            Event::Hotplug => self.hotplug(),
            Event::Free { pid } => self.free(pid),
        }
    }

    pub(super) fn task(&mut self, pid: u32) -> &mut FakeTask {
        self.tasks.get_mut(&pid).expect("pids that are used name tasks")
    }

    /// True in `n` of 100 cases.
    pub(super) fn percent(&mut self, n: u64) -> bool {
        self.rng.below(100) < n
    }

    /// Whether no task wants a CPU.
    pub fn is_at_rest(&self) -> bool {
        self.tasks
            .values()
            .all(|task| matches!(task.place, Place::Asleep | Place::Elsewhere | Place::Dead))
    }

    /// From now on tasks go to sleep when their work is done, and nobody disturbs them.
    pub fn wind_down(&mut self) {
        self.winding_down = true;
    }

    /// Whether the ring lost records.
    pub fn lost_records(&self) -> bool {
        self.counters.ring_full != 0
    }

    /// CPU time in ns that records told of.
    pub fn told_run(&self) -> u64 {
        self.ledger.run
    }
}
