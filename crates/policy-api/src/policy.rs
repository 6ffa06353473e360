// SPDX-License-Identifier: GPL-2.0-only
//! The hooks of a policy, one per kernel entry point.

use alloc::string::String;
use alloc::vec::Vec;

use schedlab_units::{CpuId, Nanos, Nice, TaskId, Time};

use crate::{Ctx, TaskTable, Topology, TunableValue};

/// Why a task becomes runnable on a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Enqueue {
    /// First wake-up after fork (`wake_up_new_task`).
    New,
    /// Wake-up from sleep.
    Wakeup,
    /// Arrival from another CPU's queue.
    Migrate,
    /// End of a change of nice, class or affinity.
    Restore,
}

/// Why a task leaves a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dequeue {
    /// It goes to sleep.
    Sleep,
    /// It has exited.
    Exit,
    /// It moves to another CPU's queue.
    Migrate,
    /// Start of a change of nice, class or affinity.
    Save,
}

/// Why the current task stops being current.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutPrev {
    /// It is still willing.
    Preempted,
    /// It called `sched_yield`.
    Yielded,
    /// It sleeps or has exited; its `dequeue` came before.
    Blocked,
    /// It stays current: the first half of a change of nice, class or affinity.
    Saved,
}

/// What kind of placement `select_cpu` and `wakeup_preempt` are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// A wake-up; `waker` is none when an interrupt does it.
    Wakeup {
        /// The task that wakes.
        waker: Option<TaskId>,
        /// The waker promises to sleep at once (WF_SYNC).
        sync: bool,
    },
    /// First wake-up of a new task (WF_FORK).
    Fork,
    /// `exec`, the cheap moment to move (WF_EXEC).
    Exec,
    /// Arrival by a move of the policy's own.
    Migrate,
}

/// Which fact of a task changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// `nice` (`set_user_nice`).
    Nice,
    /// `class` or `rt_priority` (`sched_setscheduler`).
    Class,
    /// `affinity` (`set_cpus_allowed`).
    Affinity,
    /// `slice_request_ns` (`sched_setattr`).
    Slice,
    /// `mm`, by exec.
    Exec,
}

/// Why a CPU looks for work elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// It is about to go idle (`sched_balance_newidle`).
    NewlyIdle,
}

/// How the kernel that the policy comes from locks its queues; the cost model charges by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locking {
    /// One lock for the machine (2.4, BFS).
    Global,
    /// One lock per CPU's queue.
    PerCpu,
}

/// What a live host, for which every message costs, needs to know of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveHabits {
    /// Whether ticks change anything.
    pub ticks: bool,
    /// Whether a wake-up can take the CPU from a running task; else only a waiting CPU needs to
    /// hear of it.
    pub wakeups_preempt: bool,
    /// Whether a woken task may have any idle CPU that it is allowed, without the policy being
    /// asked first: true only if the policy would run it at once on some idle CPU anyway.
    pub woken_takes_idle_cpu: bool,
}

/// A SCHED_NORMAL task that always wants the CPU, a hog, and those with whom it shares one. All exist
/// from the start, in processes of their own; nobody forks or changes its nice value, and the
/// machine costs nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Company<'a> {
    /// Nice value of the hog.
    pub nice: Nice,
    /// Nice values of the others.
    pub others: &'a [Nice],
    /// Whether the others sleep and wake as they like; else they are hogs as well.
    pub sleepers: bool,
}

/// Named figures that explain a policy's decision to a person.
pub type Inspect = Vec<(&'static str, i64)>;

/// What read-only methods of a policy may see.
pub struct View<'a> {
    /// Time of the question.
    pub now: Time,
    /// CPUs, SMT siblings, caches, nodes.
    pub topo: &'a Topology,
    /// Facts the core owns.
    pub tasks: &'a TaskTable,
    /// Current task of each CPU; none = its idle task.
    pub curr: &'a [Option<TaskId>],
}

/// A scheduling algorithm, one method per kernel entry point.
///
/// A task is *runnable* between `enqueue` and `dequeue`, and *running* between `set_next` and
/// `put_prev`; the core keeps both brackets balanced. Whether the current task stays on its queue
/// (2.4, O(1)) or leaves it (CFS, EEVDF, BFS) is the policy's affair.
///
/// `schedule` on a CPU is: if the previous task blocks, `dequeue(Sleep)`; then `pick_next` while the
/// previous task is still `cx.curr`; if nothing was found, `balance(NewlyIdle)` and, when a task
/// moved, `pick_next` again; if the choice is the previous task nothing else happens, otherwise
/// `put_prev(previous)`, `set_next(choice)`, and once the switch is over `finish_task_switch`.
pub trait Policy {
    /// `task` becomes runnable on the queue of `cpu` (`enqueue_task`).
    fn enqueue(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId, why: Enqueue);
    /// `task` stops being runnable on the queue of `cpu` (`dequeue_task`); it may be current.
    fn dequeue(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId, why: Dequeue);
    /// Chooses the next task of `cpu`, the previous one included if it is still runnable
    /// (`pick_next_task`). `cx.curr` is still the previous task.
    fn pick_next(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) -> Option<TaskId>;
    /// `task` becomes current on `cpu` (`set_next_task`); `cx.curr` says so already.
    fn set_next(&mut self, _cx: &mut Ctx<'_>, _cpu: CpuId, _task: TaskId) {}
    /// `task` stops being current on `cpu` (`put_prev_task`); `cx.curr` still names it.
    fn put_prev(&mut self, _cx: &mut Ctx<'_>, _cpu: CpuId, _task: TaskId, _why: PutPrev) {}
    /// A class above the policy's takes `cpu` from its current task `task`, which stays willing: a
    /// [`Policy::put_prev`] that no choice came before. Only live hosts call it.
    fn push_aside(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId) {
        self.put_prev(cx, cpu, task, PutPrev::Preempted);
    }
    /// The switch away from `prev` is finished on `cpu`; none = the idle task
    /// (`finish_task_switch`, 2.4 `__schedule_tail`).
    fn finish_task_switch(&mut self, _cx: &mut Ctx<'_>, _cpu: CpuId, _prev: Option<TaskId>) {}
    /// The CPU on whose queue `task` is to be put (`select_task_rq`).
    fn select_cpu(&mut self, cx: &mut Ctx<'_>, task: TaskId, _wake: Wake) -> CpuId {
        cx.tasks.cpu(task)
    }
    /// Whether a wake-up of `task` towards `cpu` is to be enqueued there, after an interrupt,
    /// instead of here and now (feature TTWU_QUEUE).
    fn ttwu_queue(&self, _cx: &Ctx<'_>, _task: TaskId, _cpu: CpuId) -> bool {
        false
    }
    /// `woken` was enqueued on `cpu`: whom to disturb, if anybody (`wakeup_preempt`).
    fn wakeup_preempt(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, _woken: TaskId, _wake: Wake) {
        if cx.curr(cpu).is_none() {
            cx.resched(cpu);
        }
    }
    /// The scheduler tick of `cpu`; idle CPUs tick too (`scheduler_tick`).
    fn tick(&mut self, _cx: &mut Ctx<'_>, _cpu: CpuId) {}
    /// The current task of `cpu` called `sched_yield`.
    fn yield_task(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, _curr: TaskId) {
        cx.resched(cpu);
    }
    /// `child` was forked by `parent`, none for a task that starts the workload; its facts are
    /// copied, it is not yet runnable (`sched_fork`). The policy resets its state of that slot.
    fn task_fork(&mut self, _cx: &mut Ctx<'_>, _child: TaskId, _parent: Option<TaskId>) {}
    /// `task`, exited before, was collected by `parent`, none = init (`release_task`).
    fn task_exit(&mut self, _cx: &mut Ctx<'_>, _task: TaskId, _parent: Option<TaskId>) {}
    /// A fact of `task` is about to change. The core has called `dequeue(Save)` and
    /// `put_prev(Saved)` if they apply and [`Policy::requeues_on_change`] asks for it.
    fn task_changing(&mut self, _cx: &mut Ctx<'_>, _task: TaskId, _what: Change) {}
    /// A fact of `task` has changed; `enqueue(Restore)` and `set_next` follow if they apply, then
    /// [`Policy::prio_changed`].
    fn task_changed(&mut self, _cx: &mut Ctx<'_>, _task: TaskId, _what: Change) {}
    /// Last step of a change: whom to disturb (`prio_changed`, `switched_to`).
    fn prio_changed(&mut self, _cx: &mut Ctx<'_>, _task: TaskId, _what: Change) {}
    /// Whether the task leaves its queue around a change of this kind.
    fn requeues_on_change(&self, _what: Change) -> bool {
        true
    }
    /// `cpu` found nothing to run: ask for moves (`sched_balance_newidle`). Periodic balancing
    /// starts in `tick`.
    fn balance(&mut self, _cx: &mut Ctx<'_>, _cpu: CpuId, _idle: Idle) {}
    /// A timer that the policy armed has expired.
    fn timer(&mut self, _cx: &mut Ctx<'_>, _timer: u32) {}

    /// What a live host may spare itself.
    fn live_habits(&self) -> LiveHabits {
        LiveHabits { ticks: true, wakeups_preempt: true, woken_takes_idle_cpu: false }
    }
    /// Tunables that may change while tasks run, as sysctls do.
    fn live_tunables(&self) -> &'static [&'static str] {
        &[]
    }
    /// Changes one of [`Policy::live_tunables`] to a value that its declaration allows.
    fn set_tunable(&mut self, _name: &str, _value: TunableValue) {}
    /// Longest time that the hog of `company` waits for its CPU, as the policy promises (I7); none =
    /// it promises nothing, for the reason in `PolicyInfo::starvation`.
    fn wait_bound(&self, _company: Company<'_>) -> Option<Nanos> {
        None
    }
    /// How the cost model charges for locks.
    fn locking(&self) -> Locking {
        Locking::PerCpu
    }
    /// Figures that explain why `task` stands where it does.
    fn inspect(&self, _view: &View<'_>, _task: TaskId, _out: &mut Inspect) {}
    /// Totals of the policy's own, for the result.
    fn stats(&self, _out: &mut Inspect) {}
    /// Checks the structures (I9: bit set ⇔ list not empty, sums equal their parts) and the promises
    /// I6 and I7; called between hooks.
    ///
    /// # Errors
    /// A sentence with the values that disagree.
    fn invariants(&self, _view: &View<'_>) -> Result<(), String> {
        Ok(())
    }
}
