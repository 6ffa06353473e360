// SPDX-License-Identifier: GPL-2.0-only
//! Questions on their way to the host thread, and answers on their way back.
//!
//! Channels of the standard library are no choice: a receiver spins while a sender that has lost
//! its CPU is half-way, and a real-time receiver never gives that CPU back.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, Thread};
use std::time::Instant;

use super::CLIENTS_MAX;
use super::message::{Answer, Ask};

/// Questions that may be open: those whose askers have given up stay until the host looks at them.
const OPEN_MAX: usize = 4 * CLIENTS_MAX;

/// The questions that nobody has looked at.
#[derive(Default)]
pub(super) struct Queue {
    /// Length of the list, so that the host need not touch the lock when there is nothing.
    waiting: AtomicUsize,
    /// None when no more questions are taken.
    asked: Mutex<Option<VecDeque<(Ask, Reply)>>>,
}

impl Queue {
    /// An empty queue that takes questions.
    pub(super) fn new() -> Self {
        Self { waiting: AtomicUsize::new(0), asked: Mutex::new(Some(VecDeque::new())) }
    }

    /// Asks and waits for the answer until `deadline`.
    pub(super) fn ask(&self, ask: Ask, deadline: Instant) -> Answer {
        let slot = Arc::new(Slot { answer: OnceLock::new(), asker: thread::current() });
        let reply = Reply { slot: Some(Arc::clone(&slot)) };
        {
            let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(list) = asked.as_mut() else { return ended() };
            if list.len() >= OPEN_MAX {
                return busy();
            }
            list.push_back((ask, reply));
            self.waiting.store(list.len(), Ordering::Release);
        }
        loop {
            if let Some(answer) = slot.answer.get() {
                return answer.clone();
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return busy();
            }
            thread::park_timeout(left);
        }
    }

    /// The next question, if it is there for the taking.
    pub(super) fn take(&self) -> Option<(Ask, Reply)> {
        if self.waiting.load(Ordering::Acquire) == 0 {
            return None;
        }
        // Somebody is just adding a question: the next call is soon enough.
        let mut asked = self.asked.try_lock().ok()?;
        let list = asked.as_mut()?;
        let next = list.pop_front();
        self.waiting.store(list.len(), Ordering::Release);
        next
    }

    /// Answers all open questions that the end has come, and takes no more.
    pub(super) fn close(&self) {
        let open = self.asked.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.waiting.store(0, Ordering::Release);
        drop(open);
    }
}

fn busy() -> Answer {
    Answer::unavailable("the scheduler is too busy to answer; try again")
}

fn ended() -> Answer {
    Answer::unavailable("live scheduling is just ending")
}

struct Slot {
    answer: OnceLock<Answer>,
    asker: Thread,
}

/// The way back to whoever asked; dropped without an answer, it tells that there will be none.
pub struct Reply {
    slot: Option<Arc<Slot>>,
}

impl Reply {
    /// Sends the answer, without ever waiting; nobody may be there any more to take it.
    pub fn send(mut self, answer: Answer) {
        self.give(answer);
    }

    fn give(&mut self, answer: Answer) {
        if let Some(slot) = self.slot.take() {
            // This is the only place that sets it, and the slot is gone after the first time.
            let _ = slot.answer.set(answer);
            slot.asker.unpark();
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.give(ended());
    }
}

impl std::fmt::Debug for Reply {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reply")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::PATIENCE;

    /// What one asker gets from a host that does `host` with the question.
    fn asked(host: impl FnOnce(&Queue, Reply)) -> Answer {
        let queue = Queue::new();
        thread::scope(|scope| {
            let asker = scope.spawn(|| queue.ask(Ask::Status, Instant::now() + PATIENCE));
            let (ask, reply) = loop {
                match queue.take() {
                    Some(taken) => break taken,
                    None => thread::yield_now(),
                }
            };
            assert_eq!(ask, Ask::Status);
            host(&queue, reply);
            asker.join().expect("no panic")
        })
    }

    #[test]
    fn answer_reaches_the_asker() {
        assert_eq!(asked(|_, reply| reply.send(Answer::Done)), Answer::Done);
    }

    #[test]
    fn dropped_reply_tells_of_the_end() {
        assert_eq!(asked(|_, reply| drop(reply)), ended());
    }

    #[test]
    fn closed_queue_answers_at_once() {
        let queue = Queue::new();
        queue.close();
        assert_eq!(queue.ask(Ask::Tasks, Instant::now() + PATIENCE), ended());
        assert!(queue.take().is_none());
    }

    #[test]
    fn asker_gives_up_at_the_deadline_and_a_late_answer_harms_nobody() {
        let queue = Queue::new();
        let answer = queue.ask(Ask::Status, Instant::now());
        assert_eq!(answer, busy());
        let (_, reply) = queue.take().expect("the question is still there");
        reply.send(Answer::Done);
    }

    #[test]
    fn host_that_never_looks_is_not_buried_under_questions() {
        let queue = Queue::new();
        for _ in 0..2 * OPEN_MAX {
            assert_eq!(queue.ask(Ask::Status, Instant::now()), busy());
        }
        assert_eq!(std::iter::from_fn(|| queue.take()).count(), OPEN_MAX);
    }

    #[test]
    fn held_lock_makes_nobody_wait() {
        let queue = Queue::new();
        queue.waiting.store(1, Ordering::Release);
        let held = queue.asked.lock().expect("not poisoned");
        assert!(queue.take().is_none());
        drop(held);
    }
}
