// SPDX-License-Identifier: GPL-2.0-only
//! The figures of a run as plain data.

use schedlab_policy_api::SchedClass;
use schedlab_units::{Nanos, Nice, Time};

use crate::cpu::CpuFigures;
use crate::distribution::Summary;
use crate::schbench::SchbenchHistogram;

/// All figures of a run. They cover the measured time only: from the end of the warm-up on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFigures {
    /// The measured time.
    pub elapsed: Nanos,
    /// The time before it.
    pub warmup: Nanos,
    /// By CPU.
    pub cpus: Vec<CpuFigures>,
    /// Counts over everything.
    pub totals: Totals,
    /// By row, in the order of [`crate::Config::rows`]; rows that never had a life are there too.
    pub tasks: Vec<TaskFigures>,
    /// By group, in order of first appearance.
    pub groups: Vec<GroupFigures>,
    /// By mark, in the order of [`crate::Config::marks`].
    pub marks: Vec<MarkFigures>,
    /// Rows that had deadlines.
    pub deadlines: Vec<DeadlineFigures>,
}

/// Counts over all tasks and CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Changes of a CPU's current task, those from and to the idle task included.
    pub context_switches: u64,
    /// Those in which a task slept or exited (the kernel's `nvcsw`).
    pub voluntary: u64,
    /// Those in which a willing task left, preempted or by `sched_yield` (the kernel's `nivcsw`).
    pub involuntary: u64,
    /// Those in which a willing task left that had not yielded.
    pub preemptions: u64,
    /// Changes of a task's CPU.
    pub migrations: u64,
    /// Wake-ups of sleeping tasks; the first one of a new task is counted in `forks`.
    pub wakeups: u64,
    /// Tasks forked by tasks.
    pub forks: u64,
    /// Tasks that exited.
    pub exits: u64,
}

/// The figures of a row: one task, or all lives of one forked template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskFigures {
    /// Index of the row.
    pub id: u32,
    /// Name of the task.
    pub name: String,
    /// Name of its group.
    pub group: String,
    /// Nice value, the last it had.
    pub nice: Nice,
    /// Class, the last it had.
    pub class: SchedClass,
    /// What it did at the end; of several lives, the one that began last.
    pub state: EndState,
    /// When it exited, since the start of the run; of several lives, the last that did.
    pub exit: Option<Time>,
    /// Times, counts and delays.
    pub figures: Figures,
}

/// The figures of all rows of a group together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupFigures {
    /// Name of the group.
    pub name: String,
    /// Times, counts and delays.
    pub figures: Figures,
}

/// Times, counts and delays of one or more tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// Number of tasks that lived during the measured time.
    pub lives: u64,
    /// Time as current task; the cost of the switch to a task is part of it, as in the kernel.
    pub run: Nanos,
    /// Time runnable without being current.
    pub wait: Nanos,
    /// All other time of the life, that between fork and first wake-up included.
    pub sleep: Nanos,
    /// From fork to exit, or to the end of the run: exactly `run + wait + sleep`.
    pub life: Nanos,
    /// Wake-ups out of a sleep.
    pub wakeups: u64,
    /// Switches in which it slept or exited.
    pub voluntary: u64,
    /// Switches in which it was preempted or yielded.
    pub involuntary: u64,
    /// Switches in which it was preempted.
    pub preemptions: u64,
    /// Changes of its CPU.
    pub migrations: u64,
    /// Longest stay on a queue, one still open at the end included.
    pub longest_wait: Nanos,
    /// From wake-up to running, of every wake-up that got so far.
    pub wakeup_latency: Option<Summary>,
    /// Length of every finished stay on a queue, whatever began it.
    pub run_delay: Option<Summary>,
}

/// What a task did when the run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EndState {
    /// Not yet woken for the first time, or never forked.
    New,
    /// Waited for a CPU.
    Runnable,
    /// Was current.
    Running,
    /// Slept.
    Sleeping,
    /// Slept uninterruptibly.
    Uninterruptible,
    /// Had exited.
    Exited,
}

impl EndState {
    /// Name in results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Runnable => "runnable",
            Self::Running => "running",
            Self::Sleeping => "sleeping",
            Self::Uninterruptible => "uninterruptible",
            Self::Exited => "exited",
        }
    }
}

/// What a workload counted or timed itself under one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkFigures {
    /// Name of the mark.
    pub name: String,
    /// Unit of `sum`.
    pub unit: String,
    /// Number of events.
    pub count: u64,
    /// What they counted, a measured span one each; saturates.
    pub sum: u64,
    /// The measured spans.
    pub latency: Option<Summary>,
    /// The same as schbench counts them, where that was asked for.
    pub schbench: Option<SchbenchHistogram>,
}

/// How a row kept its deadlines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadlineFigures {
    /// Index of the row.
    pub id: u32,
    /// Name of the task.
    pub task: String,
    /// Work finished in time, at the due instant included.
    pub met: u64,
    /// Work finished late.
    pub missed: u64,
    /// How late, of the late ones.
    pub late: Option<Summary>,
}
