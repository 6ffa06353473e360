// SPDX-License-Identifier: GPL-2.0-only
//! What a play yields, as plain data. Times are those of `CLOCK_MONOTONIC`.

use schedlab_policy_api::{Pid, Recording, SchedClass};
use schedlab_units::{Nanos, Nice, Time};
use schedlab_workload::ir::TemplateId;

/// A play that took place.
#[derive(Clone, Debug, Default)]
pub struct Played {
    /// The instant that counts as zero.
    pub start: Time,
    /// When it was over: the last exit, or the cut.
    pub end: Time,
    /// Number of CPUs of the machine that the workload saw.
    pub n_cpus: usize,
    /// Numbers of those CPUs on this host, in the order in which the workload counts them.
    pub cpus: Vec<u32>,
    /// Tasks in the order in which they were made.
    pub tasks: Vec<PlayedTask>,
    /// What the tasks noted, in order of time.
    pub notes: Vec<Note>,
    /// What the kernel's tracepoints showed of the time; none where they may not be used.
    pub recording: Option<Recording>,
    /// Events that the kernel's buffers lost.
    pub lost: u64,
    /// Operations that were played, control flow not counted.
    pub ops: u64,
    /// Whether the play came to its own end or to the length asked for.
    pub complete: bool,
    /// What a reader must know before trusting the figures.
    pub remarks: Vec<String>,
}

/// A task that was played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayedTask {
    /// Number of its thread in the kernel; 0 = it never began.
    pub pid: Pid,
    /// Number of its process in the kernel, that of the process's first thread.
    pub process: Pid,
    /// Which template it is of.
    pub template: TemplateId,
    /// Which of the template's tasks it is.
    pub instance: u32,
    /// Index of the task that forked it; none = a task of the start.
    pub parent: Option<usize>,
    /// When it was made; for a task of the start the start.
    pub born: Time,
    /// When its program ended; none = it was cut.
    pub exit: Option<Time>,
    /// What the kernel counted for it.
    pub counts: Counts,
}

/// What `/proc/…/schedstat` and `status` tell of a task, as it ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// CPU time.
    pub run: Nanos,
    /// Time on run queues; none where the kernel does not count it.
    pub wait: Option<Nanos>,
    /// `voluntary_ctxt_switches`.
    pub voluntary: u64,
    /// `nonvoluntary_ctxt_switches`.
    pub involuntary: u64,
}

/// Something a task did that no tracepoint shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    /// When.
    pub time: Time,
    /// Index of the task.
    pub task: usize,
    /// What.
    pub what: Noted,
}

/// What a task noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Noted {
    /// It counted `n` under a mark.
    Count {
        /// Index of the mark.
        mark: u32,
        /// How many.
        n: u64,
    },
    /// It measured a span under a mark.
    Latency {
        /// Index of the mark.
        mark: u32,
        /// The span in ns.
        ns: u64,
    },
    /// It finished work that was due.
    Deadline {
        /// The timer expiry it counts from; none = the task's last wake-up.
        release: Option<Time>,
        /// The allowance.
        within: Nanos,
    },
    /// It called `sched_yield`, which returned at `until`.
    Yield {
        /// The return.
        until: Time,
    },
    /// It asked for another program image, and was balanced.
    Exec,
    /// Its parameters changed.
    Sched {
        /// Its nice value now.
        nice: Nice,
        /// Its class now.
        class: SchedClass,
        /// Its real-time priority now.
        rt_priority: u8,
    },
}
