// SPDX-License-Identifier: GPL-2.0-only
//! The event queue: one total order of everything that happens.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use schedlab_units::{CpuId, TaskId, Time};

use crate::EventOrder;

/// Kinds of events of one instant, in the order in which they are handled (contract §7).
///
/// The order of these variants is deliberate. Ticks come first of all; they are not queued, the
/// engine computes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Rank {
    /// Expired timers, by task, or by CPU and in the order of arming, as the kernel has it.
    Timer = 1,
    /// Device interrupts and kicks, in the order of sending.
    Interrupt = 2,
    /// Ends of the CPUs' own work, by CPU.
    WorkEnd = 3,
}

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The sleep of a task ends; stale unless the task still waits for wait number `wait`.
    Timer {
        /// The task.
        task: TaskId,
        /// Which of its waits.
        wait: u32,
    },
    /// A timer of the policy; stale unless the request is still the latest.
    PolicyTimer {
        /// The policy's name for it.
        timer: u32,
        /// Which request.
        request: u32,
        /// The CPU whose clock delivers it.
        cpu: CpuId,
    },
    /// A device has served a task; never stale.
    Device {
        /// The task.
        task: TaskId,
        /// Which of its waits.
        wait: u32,
    },
    /// A reschedule interrupt arrives.
    Kick {
        /// Where.
        cpu: CpuId,
        /// Whether it is an interrupt, or a polling CPU noticing its flag.
        interrupt: bool,
    },
    /// A remote wake-up arrives.
    WakeArrive {
        /// Where.
        cpu: CpuId,
        /// Who.
        task: TaskId,
    },
    /// A wake-up by another task, where it is an event of its own; stale as for `Timer`.
    Wakeup {
        /// Who is woken.
        task: TaskId,
        /// Which of its waits.
        wait: u32,
    },
    /// A task of the start is created and woken.
    Start {
        /// Index into the engine's list of starts.
        index: u32,
    },
    /// A CPU's present work ends; stale unless it is still work number `work`.
    WorkEnd {
        /// Where.
        cpu: CpuId,
        /// Which of its works.
        work: u32,
    },
}

struct Entry {
    /// time ‖ rank ‖ subject ‖ sequence, compared as one number.
    key: u128,
    event: Event,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    /// Reversed: the standard heap yields its largest entry first.
    #[inline]
    fn cmp(&self, other: &Self) -> Ordering {
        other.key.cmp(&self.key)
    }
}

/// Pending events in order of time, rank, subject (task or CPU), and sequence of sending.
///
/// The key is packed as 64 bits of time, 4 of rank, 24 of subject and 36 of sequence.
#[derive(Default)]
pub struct EventQueue {
    heap: BinaryHeap<Entry>,
    sequence: u64,
    order: EventOrder,
}

impl EventQueue {
    /// An empty queue with room for `capacity` events.
    pub fn with_capacity(capacity: usize) -> Self {
        Self { heap: BinaryHeap::with_capacity(capacity), ..Self::default() }
    }
    /// The same queue with the events of an instant in this order.
    pub(crate) fn ordered(self, order: EventOrder) -> Self {
        Self { order, ..self }
    }
    /// The place of a tick created now among events of its instant.
    pub(crate) fn next_place(&mut self) -> u64 {
        if self.order == EventOrder::Kind {
            return 0;
        }
        self.sequence += 1;
        Self::CREATED | (self.sequence - 1)
    }
    /// First of the places of events in the order of creation; kicks come before.
    const CREATED: u64 = 1 << 60;
    /// Adds `event` at `time`; among events of one instant and rank the smaller `subject` comes
    /// first, then the earlier added.
    ///
    /// # Panics
    /// When `subject` does not fit 24 bits.
    #[inline]
    pub fn push(&mut self, time: Time, rank: Rank, subject: u32, event: Event) {
        assert!(subject < 1 << 24, "subject {subject} does not fit the key");
        // The sequence wraps after 2^36 events; only events of one instant, rank and subject are
        // ordered by it.
        let sequence = self.sequence & ((1 << 36) - 1);
        self.sequence = self.sequence.wrapping_add(1);
        let low = match (self.order, event) {
            (EventOrder::Kind, _) => {
                (u64::from(rank as u8) << 60) | (u64::from(subject) << 36) | sequence
            }
            (EventOrder::Creation, Event::Kick { cpu, .. }) => (u64::from(cpu.0) << 36) | sequence,
            (EventOrder::Creation, _) => Self::CREATED | sequence,
        };
        let key = (u128::from(time.as_ns()) << 64) | u128::from(low);
        self.heap.push(Entry { key, event });
    }
    /// Time of the earliest event.
    #[inline]
    pub fn next_time(&self) -> Option<Time> {
        self.heap.peek().map(|entry| Time::from_ns((entry.key >> 64) as u64))
    }
    /// Time of the earliest event and its place among those of that time.
    #[inline]
    pub(crate) fn next_key(&self) -> Option<(Time, u64)> {
        let key = self.heap.peek()?.key;
        Some((Time::from_ns((key >> 64) as u64), key as u64))
    }
    /// The earliest event without taking it.
    #[inline]
    pub fn peek(&self) -> Option<(Time, Event)> {
        let entry = self.heap.peek()?;
        Some((Time::from_ns((entry.key >> 64) as u64), entry.event))
    }
    /// Takes the earliest event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, Event)> {
        let entry = self.heap.pop()?;
        Some((Time::from_ns((entry.key >> 64) as u64), entry.event))
    }
    /// Drops the events that `keep` denies; the order of the others stays.
    pub fn retain(&mut self, mut keep: impl FnMut(&Event) -> bool) {
        self.heap.retain(|entry| keep(&entry.event));
    }
    /// Number of pending events, stale ones included.
    pub fn len(&self) -> usize {
        self.heap.len()
    }
    /// Whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.heap.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn event_queue_pops_in_total_order(pushes in prop::collection::vec((0u64..5, 1u8..4, 0u32..4), 0..60)) {
            let mut queue = EventQueue::default();
            let mut twin = Vec::new();
            for (seq, (time, rank, subject)) in pushes.into_iter().enumerate() {
                let event = Event::Start { index: seq as u32 };
                let rank = [Rank::Timer, Rank::Interrupt, Rank::WorkEnd][rank as usize - 1];
                queue.push(Time::from_ns(time), rank, subject, event);
                twin.push((time, rank, subject, seq as u32));
            }
            twin.sort_unstable();
            for (time, _, _, seq) in twin {
                prop_assert_eq!(queue.pop(), Some((Time::from_ns(time), Event::Start { index: seq })));
            }
            prop_assert!(queue.is_empty());
        }
    }
}
