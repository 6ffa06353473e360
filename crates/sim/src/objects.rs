// SPDX-License-Identifier: GPL-2.0-only
//! The objects that tasks share: pipes, semaphores, mutexes and the rest.
//!
//! These are the objects' own state and rules. Who is woken at which cost is the engine's affair:
//! methods here return the tasks to wake.

use std::collections::VecDeque;

use schedlab_units::{TaskId, Time};
use schedlab_workload::Period;
use schedlab_workload::ir::{Objects as Specs, PipeSpec};

use crate::wait_queue::{Links, WaitQueue};

/// A pipe or socket.
pub(crate) struct Pipe {
    spec: PipeSpec,
    /// Bytes charged against the capacity.
    charged: u64,
    /// Bytes that can be read.
    readable: u64,
    /// Payload and charge of each unread socket message.
    messages: VecDeque<(u64, u64)>,
    pub(crate) readers: WaitQueue,
    pub(crate) writers: WaitQueue,
}

/// What a read or write did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    /// Bytes still to be moved; above zero the caller sleeps.
    pub(crate) left: u64,
    /// Whether the other side is to be woken.
    pub(crate) wake_peer: bool,
}

impl Pipe {
    fn new(spec: &PipeSpec) -> Self {
        Self {
            spec: spec.clone(),
            charged: 0,
            readable: 0,
            messages: VecDeque::new(),
            readers: WaitQueue::default(),
            writers: WaitQueue::default(),
        }
    }
    /// Whether wake-ups carry the SYNC hint.
    pub(crate) fn is_sync(&self) -> bool {
        self.spec.sync
    }
    /// Whether messages are charged as in a socket buffer.
    pub(crate) fn is_socket(&self) -> bool {
        self.spec.charge_per_write.is_some()
    }
    /// Whether a reader would get something.
    pub(crate) fn is_readable(&self) -> bool {
        self.readable > 0
    }
    /// Whether a waiting writer would be woken by the state alone.
    pub(crate) fn has_room(&self) -> bool {
        !self.is_socket() && self.charged < self.spec.capacity
    }

    /// Writes up to `bytes`.
    ///
    /// A socket takes a whole message while less than its capacity is charged; a pipe takes what
    /// fits, but a write no larger than the capacity only as a whole.
    pub(crate) fn write(&mut self, bytes: u64) -> Transfer {
        let was_empty = self.readable == 0;
        let moved = match self.spec.charge_per_write {
            Some(charge) => {
                if self.charged >= self.spec.capacity {
                    return Transfer { left: bytes, wake_peer: false };
                }
                self.messages.push_back((bytes, charge));
                self.charged += charge;
                bytes
            }
            None => {
                let room = self.spec.capacity - self.charged;
                let moved = if bytes <= room {
                    bytes
                } else if bytes <= self.spec.capacity {
                    0
                } else {
                    room
                };
                self.charged += moved;
                moved
            }
        };
        self.readable += moved;
        let wake_peer = moved > 0 && (was_empty || self.spec.wake_reader_always);
        Transfer { left: bytes - moved, wake_peer }
    }

    /// Reads up to `bytes`.
    pub(crate) fn read(&mut self, bytes: u64) -> Transfer {
        let moved = bytes.min(self.readable);
        let charged_before = self.charged;
        self.readable -= moved;
        if self.spec.charge_per_write.is_some() {
            let mut rest = moved;
            while rest > 0 {
                let (payload, charge) =
                    self.messages.front_mut().expect("readable bytes have a message");
                let part = rest.min(*payload);
                *payload -= part;
                rest -= part;
                if *payload == 0 {
                    self.charged -= *charge;
                    self.messages.pop_front();
                }
            }
        } else {
            self.charged -= moved;
        }
        let was_short = charged_before > self.spec.writer_wake_below;
        let wake_peer = moved > 0 && was_short && self.charged <= self.spec.writer_wake_below;
        Transfer { left: bytes - moved, wake_peer }
    }
}

/// A counting semaphore; a post to a waiter hands over without counting.
pub(crate) struct Semaphore {
    pub(crate) count: u64,
    pub(crate) waiters: WaitQueue,
}

/// A mutex handed to the longest waiter.
pub(crate) struct Mutex {
    /// Serial of the owner.
    pub(crate) owner: Option<u64>,
    pub(crate) waiters: WaitQueue,
}

/// A futex word.
pub(crate) struct Futex {
    pub(crate) blocked: bool,
    pub(crate) waiters: WaitQueue,
}

/// A barrier.
pub(crate) struct Barrier {
    pub(crate) parties: u32,
    pub(crate) arrived: WaitQueue,
}

/// A timer shared by name.
pub(crate) struct SharedTimer {
    pub(crate) per_task: bool,
    pub(crate) next: Option<Time>,
    /// Set for good by the first absolute use.
    pub(crate) absolute: bool,
}

/// All objects of a workload at run time.
pub(crate) struct Objects {
    pub(crate) pipes: Vec<Pipe>,
    pub(crate) semaphores: Vec<Semaphore>,
    pub(crate) mutexes: Vec<Mutex>,
    pub(crate) conditions: Vec<WaitQueue>,
    pub(crate) barriers: Vec<Barrier>,
    pub(crate) futexes: Vec<Futex>,
    pub(crate) lists: Vec<WaitQueue>,
    pub(crate) timers: Vec<SharedTimer>,
    pub(crate) periods: Vec<Period>,
    pub(crate) links: Links,
}

impl Objects {
    /// Takes `task` off every wait queue.
    pub(crate) fn forget(&mut self, task: TaskId) {
        let pipes = self.pipes.iter_mut().flat_map(|p| [&mut p.readers, &mut p.writers]);
        let queues = pipes
            .chain(self.semaphores.iter_mut().map(|s| &mut s.waiters))
            .chain(self.mutexes.iter_mut().map(|m| &mut m.waiters))
            .chain(self.conditions.iter_mut())
            .chain(self.barriers.iter_mut().map(|b| &mut b.arrived))
            .chain(self.futexes.iter_mut().map(|f| &mut f.waiters));
        let queues = queues.chain(self.lists.iter_mut());
        for queue in queues {
            self.links.remove(queue, task);
        }
    }
    pub(crate) fn new(specs: &Specs) -> Self {
        Self {
            pipes: specs.pipes.iter().map(Pipe::new).collect(),
            semaphores: specs
                .semaphores
                .iter()
                .map(|s| Semaphore { count: s.initial, waiters: WaitQueue::default() })
                .collect(),
            mutexes: specs
                .mutexes
                .iter()
                .map(|_| Mutex { owner: None, waiters: WaitQueue::default() })
                .collect(),
            conditions: vec![WaitQueue::default(); specs.conditions.len()],
            barriers: specs
                .barriers
                .iter()
                .map(|b| Barrier { parties: b.parties, arrived: WaitQueue::default() })
                .collect(),
            futexes: specs
                .futexes
                .iter()
                .map(|_| Futex { blocked: false, waiters: WaitQueue::default() })
                .collect(),
            lists: vec![WaitQueue::default(); specs.lists.len()],
            timers: specs
                .timers
                .iter()
                .map(|t| SharedTimer { per_task: t.per_task, next: None, absolute: false })
                .collect(),
            periods: vec![Period::default(); specs.periods.len()],
            links: Links::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pipe(capacity: u64, charge: Option<u64>, below: u64) -> Pipe {
        Pipe::new(&PipeSpec {
            name: "p".to_string(),
            capacity,
            charge_per_write: charge,
            writer_wake_below: below,
            sync: true,
            wake_reader_always: charge.is_some(),
        })
    }

    /// AF_UNIX with the default send buffer and 100-byte messages; `tests/sockets.rs` has the row.
    #[test]
    fn socket_blocks_after_278_messages_and_wakes_at_69() {
        let mut socket = pipe(212_992, Some(768), 212_992 / 4);
        let mut n_sent = 0;
        while socket.write(100).left == 0 {
            n_sent += 1;
        }
        assert_eq!(n_sent, 278);
        let mut n_left = n_sent;
        loop {
            n_left -= 1;
            if socket.read(100).wake_peer {
                break;
            }
        }
        assert_eq!(n_left, 69);
    }

    #[test]
    fn pipe_of_64000_bytes_holds_640_messages() {
        let mut pipe = pipe(64_000, None, 63_999);
        let mut n_sent = 0;
        while pipe.write(100).left == 0 {
            n_sent += 1;
        }
        assert_eq!(n_sent, 640);
        assert!(pipe.read(100).wake_peer, "a full pipe wakes its writer");
        assert!(!pipe.read(100).wake_peer, "one that was not full does not");
    }

    #[test]
    fn pipe_large_write_goes_in_pieces() {
        let mut pipe = pipe(100, None, 99);
        assert_eq!(pipe.write(250), Transfer { left: 150, wake_peer: true });
        assert_eq!(pipe.read(100), Transfer { left: 0, wake_peer: true });
        assert_eq!(pipe.write(150), Transfer { left: 50, wake_peer: true });
    }
}
