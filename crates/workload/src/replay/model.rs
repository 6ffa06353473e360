// SPDX-License-Identifier: GPL-2.0-only
//! A recording sorted by threads: what each did, in order, and who woke whom.

use schedlab_policy_api::{CommId, Pid};
use schedlab_units::{CpuId, Time};

use super::clock::CpuClock;
use super::machine::Cpu;

/// Index into [`Timeline::threads`]: one life of one pid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ThreadId(pub(super) u32);

impl ThreadId {
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Index into [`Timeline::wakes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WakeId(pub(super) u32);

/// What a thread did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// Slept until this wake-up.
    Sleep(WakeId),
    /// Was about to sleep when this wake-up came.
    Early(WakeId),
    /// Caused this wake-up.
    Post(WakeId),
    /// Forked this thread.
    Fork(ThreadId),
    /// Replaced its program.
    Exec,
    /// Has this priority (kernel scale) from here on.
    Prio(i32),
    /// Ended.
    Exit,
    /// Nothing is known for this many ns.
    Gap(u64),
}

/// One step of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Step {
    /// CPU time of the thread before it, ns.
    pub(super) at_ns: u64,
    pub(super) what: What,
}

/// A wake-up together with the sleep it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wake {
    pub(super) wakee: ThreadId,
    /// When the sleep began; for an early wake-up, when it came.
    pub(super) since: Time,
    /// Where it began.
    pub(super) cpu: CpuId,
    /// Whether it was an uninterruptible sleep.
    pub(super) uninterruptible: bool,
    /// Whether the sleep began before the recording.
    pub(super) initial: bool,
    /// When it ended; `None` while it lasts.
    pub(super) until: Option<Time>,
    pub(super) source: Source,
}

/// Where a wake-up came from, as far as records tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The sleep outlasts the recording.
    None,
    /// It was not recorded; the thread was seen running again.
    Unseen,
    /// It came while the thread was on its way to sleep, before it had left its CPU.
    Before,
    /// An interrupt on an idle CPU, or one that the trace says was an interrupt.
    Interrupt,
    /// It came while this thread was running on CPU `cpu`.
    Thread {
        waker: ThreadId,
        cpu: CpuId,
        /// Whether the trace says that it was the thread itself.
        certain: bool,
    },
}

/// What a thread is known to do at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Not heard of yet.
    Unseen,
    /// Forked, not yet woken.
    New,
    /// Waiting for a CPU; `woken` if it has not run since its wake-up.
    Queued {
        woken: bool,
    },
    On(CpuId),
    Asleep(WakeId),
    /// It left its CPU at some time after this one.
    Unknown(Time),
    Gone,
}

/// One life of one thread.
#[derive(Clone, Debug)]
pub(super) struct Thread {
    pub(super) pid: Pid,
    /// How many threads had this pid before.
    pub(super) life: u32,
    /// Its names in order of appearance; the last one counts.
    pub(super) comms: Vec<CommId>,
    pub(super) parent: Option<ThreadId>,
    /// First priority seen, kernel scale.
    pub(super) prio: Option<i32>,
    pub(super) last_prio: Option<i32>,
    /// When it was first able to run.
    pub(super) start: Time,
    pub(super) steps: Vec<Step>,
    pub(super) clock: CpuClock,
    pub(super) n_switch_in: u64,
    /// Unknown periods and their length.
    pub(super) n_gaps: u64,
    pub(super) gap_ns: u64,
    /// CPU time in stretches whose wholeness a filter leaves in doubt, ns.
    pub(super) assumed_ns: u64,
    pub(super) state: State,
    /// Whether a wake-up came since the thread was last put on a CPU, and which if by a thread.
    pub(super) woken_on_cpu: bool,
    pub(super) early: Option<WakeId>,
    pub(super) exiting: bool,
}

/// Records that do not fit, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Oddities {
    /// Wake-ups of a thread that had been woken and had not run since.
    pub(super) woken_twice: u64,
    /// Wake-ups by an interrupt of a thread that was not asleep yet: without effect.
    pub(super) early_interrupts: u64,
    /// Wake-ups of a thread in its own context: an interrupt while it was about to sleep.
    pub(super) own_context: u64,
    /// Notices of lost events.
    pub(super) losses: u64,
}

/// The whole recording by threads.
#[derive(Debug)]
pub(super) struct Timeline {
    pub(super) threads: Vec<Thread>,
    pub(super) wakes: Vec<Wake>,
    pub(super) cpus: Vec<Cpu>,
    pub(super) start: Time,
    pub(super) end: Time,
    /// Whether a filter left out switches.
    pub(super) filtered: bool,
    pub(super) oddities: Oddities,
}
