// SPDX-License-Identifier: GPL-2.0-only
//! Recorded scheduling events, as traces of real kernels and of simulated runs hold them.

use alloc::string::String;
use alloc::vec::Vec;

use schedlab_units::{CpuId, Time};

/// A thread id of the recorded system; 0 is the idle task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pid(pub u32);

/// Index into [`Recording::comms`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommId(pub u32);

/// State in which a recorded task left its CPU, reduced to what matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordedState {
    /// `R`: still runnable (yield, slice over, preempted on the way to user mode).
    Runnable,
    /// `R+`: preempted inside the kernel.
    Preempted,
    /// `S`, `T`, `t`, `P`, `I`: voluntary sleep.
    Sleeping,
    /// `D`: uninterruptible sleep.
    Uninterruptible,
    /// `X`, `Z`, `x`: gone.
    Exited,
}

/// What a record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordEvent {
    /// `sched_switch`.
    Switch {
        /// Leaving thread.
        prev: Pid,
        /// Its name.
        prev_comm: CommId,
        /// Its priority on the kernel's scale, −1 = deadline.
        prev_prio: i32,
        /// Its state.
        prev_state: RecordedState,
        /// Coming thread.
        next: Pid,
        /// Its name.
        next_comm: CommId,
        /// Its priority.
        next_prio: i32,
    },
    /// `sched_waking`: written by the waker, on the waker's CPU.
    Waking {
        /// Woken thread.
        pid: Pid,
        /// Its name.
        comm: CommId,
        /// Its priority.
        prio: i32,
        /// The CPU it is woken for.
        target_cpu: CpuId,
    },
    /// `sched_wakeup`.
    Wakeup {
        /// Woken thread.
        pid: Pid,
        /// Its name.
        comm: CommId,
        /// Its priority.
        prio: i32,
        /// The CPU it was put on.
        target_cpu: CpuId,
    },
    /// `sched_wakeup_new`.
    WakeupNew {
        /// New thread.
        pid: Pid,
        /// Its name.
        comm: CommId,
        /// Its priority.
        prio: i32,
        /// The CPU it was put on.
        target_cpu: CpuId,
    },
    /// `sched_migrate_task`.
    Migrate {
        /// The thread.
        pid: Pid,
        /// Its name.
        comm: CommId,
        /// Its priority.
        prio: i32,
        /// Old CPU.
        orig_cpu: CpuId,
        /// New CPU.
        dest_cpu: CpuId,
    },
    /// `sched_process_fork`.
    Fork {
        /// Parent.
        parent: Pid,
        /// Its name.
        parent_comm: CommId,
        /// Child.
        child: Pid,
        /// Its name.
        child_comm: CommId,
    },
    /// `sched_process_exec`.
    Exec {
        /// The thread; its name from now on is the record's `comm`.
        pid: Pid,
    },
    /// `sched_process_exit`.
    Exit {
        /// The thread.
        pid: Pid,
        /// Its name.
        comm: CommId,
        /// Its priority.
        prio: i32,
    },
    /// `sched_stat_runtime`.
    StatRuntime {
        /// The thread.
        pid: Pid,
        /// CPU time since the last such record, ns.
        runtime_ns: u64,
    },
    /// Events were lost on this CPU before this moment.
    Lost {
        /// How many, 0 = unknown.
        count: u64,
    },
}

/// Whether the context of a record was the thread itself or an interrupt on top of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum RecordContext {
    /// The trace does not say, or says only "soft interrupt", which may be the thread's own work.
    #[default]
    Unknown,
    /// The thread itself.
    Task,
    /// A hardware interrupt: the thread had nothing to do with what happened.
    Interrupt,
}

/// One line of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRecord {
    /// When.
    pub time: Time,
    /// On which CPU.
    pub cpu: CpuId,
    /// In whose context: the current thread of that CPU.
    pub pid: Pid,
    /// The context's name.
    pub comm: CommId,
    /// Whether an interrupt had taken over that context.
    pub context: RecordContext,
    /// What.
    pub event: RecordEvent,
}

/// A trace in memory: records in time order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// Thread names by [`CommId`].
    pub comms: Vec<String>,
    /// Records, stably sorted by time.
    pub records: Vec<TraceRecord>,
    /// Number of CPUs: one more than the highest seen.
    pub n_cpus: u32,
    /// Thread and process (`tgid`) of every thread whose process the trace tells, by thread.
    pub tgids: Vec<(Pid, Pid)>,
}
