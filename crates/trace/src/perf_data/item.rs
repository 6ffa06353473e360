// SPDX-License-Identifier: GPL-2.0-only
//! What waits for its turn in the order of time.

use schedlab_policy_api::RecordContext;
use schedlab_units::{CpuId, Time};

use crate::intake::Stamp;
use crate::tep::Hit;

/// What waits for its turn, and where it stood.
pub(super) struct Item {
    pub(super) offset: u64,
    pub(super) what: What,
}

pub(super) enum What {
    Event {
        time: u64,
        cpu: CpuId,
        tid: Option<(u32, u32)>,
        hit: Hit,
    },
    Other {
        time: u64,
        cpu: CpuId,
        tid: Option<(u32, u32)>,
        /// Number of the tracepoint; none for a counter of perf's.
        id: Option<u16>,
    },
    Comm {
        tid: u32,
        name: Vec<u8>,
    },
    Fork {
        tid: u32,
        parent: u32,
    },
    Lost {
        cpu: CpuId,
        count: u64,
    },
}

/// Process and thread of a sample. A thread that has given up its id is −1 to perf, but the event
/// itself still knows it.
pub(super) fn running(tid: Option<(u32, u32)>, pid: Option<u32>) -> Option<(u32, u32)> {
    match (tid, pid) {
        (Some((process, u32::MAX)), Some(pid)) => Some((process, pid)),
        (None, Some(pid)) => Some((u32::MAX, pid)),
        _ => tid,
    }
}

/// The moment of an event, for the intake.
pub(super) fn stamp(
    time: u64,
    cpu: CpuId,
    tid: Option<(u32, u32)>,
    comm: &[u8],
    context: RecordContext,
) -> Stamp<'_> {
    let known = |id: u32| (id != u32::MAX).then_some(id);
    Stamp {
        time: Time::from_ns(time),
        cpu,
        pid: tid.and_then(|(_, tid)| known(tid)),
        tgid: tid.and_then(|(process, _)| known(process)),
        comm,
        context,
    }
}
