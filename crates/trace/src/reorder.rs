// SPDX-License-Identifier: GPL-2.0-only
//! Puts records in the order of time with bounded memory.

use std::collections::VecDeque;

use schedlab_policy_api::TraceRecord;

/// Records held back. Traces are sorted but for neighbours, so that a place near the end is found
/// at once and memory stays below half a megabyte.
const WINDOW: usize = 4096;

/// A window over a nearly sorted stream; equal times keep their order.
#[derive(Debug, Default)]
pub(crate) struct Reorder {
    held: VecDeque<TraceRecord>,
    handed_out: Option<TraceRecord>,
}

/// What comes out when a record goes in.
pub(crate) enum Out {
    Nothing,
    /// The earliest record held.
    Next(TraceRecord),
    /// The record itself: later ones have been handed out already.
    Late(TraceRecord),
}

impl Reorder {
    /// Takes `record`.
    pub(crate) fn push(&mut self, record: TraceRecord) -> Out {
        if self.handed_out.is_some_and(|last| record.time < last.time) {
            return Out::Late(record);
        }
        let mut at = self.held.len();
        while at > 0 && self.held[at - 1].time > record.time {
            at -= 1;
        }
        self.held.insert(at, record);
        if self.held.len() <= WINDOW {
            return Out::Nothing;
        }
        self.pop().map_or(Out::Nothing, Out::Next)
    }

    /// The earliest record held.
    pub(crate) fn pop(&mut self) -> Option<TraceRecord> {
        let next = self.held.pop_front()?;
        self.handed_out = Some(next);
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_policy_api::{CommId, Pid, RecordContext, RecordEvent};
    use schedlab_units::{CpuId, Time};

    fn record(ns: u64, pid: u32) -> TraceRecord {
        TraceRecord {
            time: Time::from_ns(ns),
            cpu: CpuId(0),
            pid: Pid(pid),
            comm: CommId(0),
            context: RecordContext::Unknown,
            event: RecordEvent::Lost { count: 0 },
        }
    }

    #[test]
    fn window_sorts_and_keeps_the_order_of_one_instant() {
        let mut window = Reorder::default();
        for (ns, pid) in [(5, 1), (3, 2), (5, 3), (3, 4), (4, 5)] {
            assert!(matches!(window.push(record(ns, pid)), Out::Nothing));
        }
        let pids: Vec<u32> = std::iter::from_fn(|| window.pop()).map(|r| r.pid.0).collect();
        assert_eq!(pids, [2, 4, 5, 1, 3]);
    }

    #[test]
    fn record_behind_what_was_handed_out_is_late() {
        let mut window = Reorder::default();
        let mut out = Vec::new();
        for ns in 10..10 + WINDOW as u64 + 5 {
            if let Out::Next(r) = window.push(record(ns, 0)) {
                out.push(r.time.as_ns());
            }
        }
        assert_eq!(out, [10, 11, 12, 13, 14]);
        assert!(matches!(window.push(record(13, 9)), Out::Late(r) if r.pid == Pid(9)));
        assert!(matches!(window.push(record(14, 9)), Out::Next(r) if r.pid == Pid(9)));
    }
}
