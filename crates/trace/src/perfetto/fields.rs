// SPDX-License-Identifier: GPL-2.0-only
//! Numbers of the fields used, by message.

/// `TracePacket`.
pub(super) mod packet {
    pub(crate) const FTRACE_EVENTS: u32 = 1;
    pub(crate) const PROCESS_TREE: u32 = 2;
    pub(crate) const CLOCK_SNAPSHOT: u32 = 6;
    pub(crate) const TIMESTAMP: u32 = 8;
    pub(crate) const SEQUENCE_ID: u32 = 10;
    pub(crate) const TRACK_EVENT: u32 = 11;
    pub(crate) const SEQUENCE_FLAGS: u32 = 13;
    pub(crate) const SYSTEM_INFO: u32 = 45;
    pub(crate) const TRACK_DESCRIPTOR: u32 = 60;
    /// Ours: who wrote the trace.
    pub(crate) const SCHEDLAB: u32 = 50_000;
    /// Ours: the last packet, with the number of records, so that a cut is noticed.
    pub(crate) const SCHEDLAB_END: u32 = 50_005;
    /// Ours: the file shows several runs as tracks and holds no records.
    pub(crate) const SCHEDLAB_RUNS: u32 = 50_006;
}

/// `FtraceEventBundle`.
pub(super) mod bundle {
    pub(crate) const CPU: u32 = 1;
    pub(crate) const EVENT: u32 = 2;
    pub(crate) const LOST_EVENTS: u32 = 3;
    pub(crate) const COMPACT_SCHED: u32 = 4;
}

/// `FtraceEvent`.
pub(super) mod event {
    pub(crate) const TIMESTAMP: u32 = 1;
    pub(crate) const PID: u32 = 2;
    pub(crate) const SWITCH: u32 = 4;
    pub(crate) const COMMON_FLAGS: u32 = 5;
    pub(crate) const WAKEUP: u32 = 17;
    pub(crate) const WAKING: u32 = 20;
    pub(crate) const WAKEUP_NEW: u32 = 114;
    pub(crate) const EXEC: u32 = 237;
    pub(crate) const EXIT: u32 = 238;
    pub(crate) const FORK: u32 = 239;
    pub(crate) const MIGRATE: u32 = 491;
    /// Ours: name of the context where it is not the one that the records before tell.
    pub(crate) const CONTEXT_COMM: u32 = 50_001;
    /// Ours: a message whose field 1 is the number of events lost before, 0 = unknown.
    pub(crate) const LOST: u32 = 50_002;
    /// Ours: thread and ns of `sched_stat_runtime`.
    pub(crate) const STAT_RUNTIME: u32 = 50_003;
    /// Ours: the context where it is not the thread, one of the two below.
    pub(crate) const CONTEXT: u32 = 50_004;
    pub(crate) const IS_UNKNOWN: u64 = 1;
    pub(crate) const IS_INTERRUPT: u64 = 2;
}

/// `CompactSched`.
pub(super) mod compact {
    pub(crate) const SWITCH_TIMESTAMP: u32 = 1;
    pub(crate) const SWITCH_PREV_STATE: u32 = 2;
    pub(crate) const SWITCH_NEXT_PID: u32 = 3;
    pub(crate) const SWITCH_NEXT_PRIO: u32 = 4;
    pub(crate) const INTERN_TABLE: u32 = 5;
    pub(crate) const SWITCH_NEXT_COMM: u32 = 6;
    pub(crate) const WAKING_TIMESTAMP: u32 = 7;
    pub(crate) const WAKING_PID: u32 = 8;
    pub(crate) const WAKING_TARGET_CPU: u32 = 9;
    pub(crate) const WAKING_PRIO: u32 = 10;
    pub(crate) const WAKING_COMM: u32 = 11;
    pub(crate) const WAKING_FLAGS: u32 = 12;
}

/// `common_flags` of a hard interrupt and of one that cannot be masked, and of a soft one.
pub(super) const FLAGS_HARD: u64 = 0x08 | 0x40;
pub(super) const FLAGS_SOFT: u64 = 0x10;

/// `prev_state` of kernels from 4.14 on.
pub(super) mod state {
    pub(crate) const SLEEPING: u64 = 0x01;
    pub(crate) const UNINTERRUPTIBLE: u64 = 0x02;
    pub(crate) const DEAD: u64 = 0x10;
    pub(crate) const ZOMBIE: u64 = 0x20;
    pub(crate) const IDLE: u64 = 0x80;
    pub(crate) const PREEMPTED: u64 = 0x100;
}
