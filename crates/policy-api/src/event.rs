// SPDX-License-Identifier: GPL-2.0-only
//! The event stream: everything a report can know about a run.

use schedlab_units::{CpuId, Nice, TaskId, Time};

use crate::SchedClass;

/// State in which a task left its CPU (`prev_state` of `sched_switch`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PrevState {
    /// Preempted while willing (`R+`).
    Preempted,
    /// Still runnable after `sched_yield` (`R`).
    Yielded,
    /// Interruptible sleep (`S`).
    Sleeping,
    /// Uninterruptible sleep (`D`).
    Uninterruptible,
    /// Exited (`Z`).
    Zombie,
}

/// What a CPU spends its time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CpuMode {
    /// The idle task.
    Idle,
    /// The work of its current task.
    Busy,
    /// Work of the scheduler itself, by the cost model.
    Overhead(Overhead),
}

/// Which work of the scheduler a CPU does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Overhead {
    /// `schedule` and the context switch, lock wait and cache refill included.
    Switch,
    /// The tick interrupt.
    Tick,
    /// A reschedule, device or timer interrupt.
    Interrupt,
    /// Waking another task, lock wait included.
    Wakeup,
    /// Leaving an idle state.
    IdleExit,
}

/// One observed fact; names are those of the kernel's tracepoints where it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SchedEvent {
    /// `parent` forked `task`; none = the task starts the workload. It is not yet runnable.
    ProcessFork {
        /// The child.
        task: TaskId,
        /// The forking task.
        parent: Option<TaskId>,
    },
    /// First wake-up of a task, now waiting for `cpu`.
    WakeupNew {
        /// The new task.
        task: TaskId,
        /// The CPU whose queue it joined.
        cpu: CpuId,
    },
    /// A wake-up begins; the run delay counts from here.
    Waking {
        /// The woken task.
        task: TaskId,
        /// The waker, none = an interrupt.
        waker: Option<TaskId>,
        /// The CPU that executes the wake-up.
        this_cpu: CpuId,
        /// The CPU whose queue it will join.
        target: CpuId,
    },
    /// The woken task joined the queue of `cpu`.
    Wakeup {
        /// The woken task.
        task: TaskId,
        /// The CPU whose queue it joined.
        cpu: CpuId,
    },
    /// `cpu` changed its current task; none = the idle task.
    Switch {
        /// The CPU.
        cpu: CpuId,
        /// The task that leaves.
        prev: Option<TaskId>,
        /// In which state it leaves; for the idle task [`PrevState::Preempted`].
        prev_state: PrevState,
        /// The task that comes.
        next: Option<TaskId>,
    },
    /// A task moved between CPUs (emitted when its CPU changes).
    MigrateTask {
        /// The task.
        task: TaskId,
        /// Its old CPU.
        from: CpuId,
        /// Its new CPU.
        to: CpuId,
    },
    /// `cpu` was asked to call `schedule`.
    NeedResched {
        /// The CPU.
        cpu: CpuId,
        /// The CPU that asks.
        by: CpuId,
    },
    /// The current task called `sched_yield`.
    Yield {
        /// The task.
        task: TaskId,
    },
    /// The task replaced its program.
    ProcessExec {
        /// The task.
        task: TaskId,
    },
    /// The current task of `cpu` exited.
    ProcessExit {
        /// The task.
        task: TaskId,
        /// The CPU it leaves.
        cpu: CpuId,
    },
    /// An exited task was collected by its parent; its id may be used again.
    ProcessFree {
        /// The task.
        task: TaskId,
    },
    /// Nice, class or priority of a task changed.
    PrioChange {
        /// The task.
        task: TaskId,
        /// Its nice value now.
        nice: Nice,
        /// Its class now.
        class: SchedClass,
        /// Its real-time priority now.
        rt_priority: u8,
    },
    /// `cpu` turns to other work.
    CpuMode {
        /// The CPU.
        cpu: CpuId,
        /// What it does from now on.
        mode: CpuMode,
    },
    /// A task counted an event of its own under mark `mark` (an index of the workload's marks).
    MarkCount {
        /// The task.
        task: TaskId,
        /// The mark.
        mark: u32,
        /// How many.
        n: u64,
    },
    /// A task measured a span of `ns` under mark `mark`.
    MarkLatency {
        /// The task.
        task: TaskId,
        /// The mark.
        mark: u32,
        /// The span in ns.
        ns: u64,
    },
    /// A task finished a piece of work that had a deadline.
    Deadline {
        /// The task.
        task: TaskId,
        /// When it was due.
        due: Time,
    },
}

/// Receives every event of a run in order.
pub trait Observer {
    /// Called with each event at its time.
    fn event(&mut self, now: Time, event: &SchedEvent);
}

/// Sees nothing and costs nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoObserver;

impl Observer for NoObserver {
    #[inline]
    fn event(&mut self, _now: Time, _event: &SchedEvent) {}
}

impl<A: Observer, B: Observer> Observer for (A, B) {
    #[inline]
    fn event(&mut self, now: Time, event: &SchedEvent) {
        self.0.event(now, event);
        self.1.event(now, event);
    }
}

impl<O: Observer> Observer for Option<O> {
    #[inline]
    fn event(&mut self, now: Time, event: &SchedEvent) {
        if let Some(observer) = self {
            observer.event(now, event);
        }
    }
}

impl<O: Observer + ?Sized> Observer for &mut O {
    #[inline]
    fn event(&mut self, now: Time, event: &SchedEvent) {
        (**self).event(now, event);
    }
}
