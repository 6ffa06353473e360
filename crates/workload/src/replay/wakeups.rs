// SPDX-License-Identifier: GPL-2.0-only
//! Wake-ups: which sleep they end, and whose doing they seem to be.

use schedlab_policy_api::{Pid, RecordContext, TraceRecord};
use schedlab_units::Time;

use super::machine::Occupant;
use super::model::{Source, State, ThreadId, Wake, WakeId, What};
use super::timeline::Builder;

impl Builder {
    /// A wake-up of `pid` by the context of `record`.
    pub(super) fn wake(&mut self, record: &TraceRecord, pid: Pid) {
        let now = record.time;
        let Some(wakee) = self.thread(pid, now) else { return };
        let source = self.source(record, wakee);
        let from_thread = matches!(source, Source::Thread { .. });
        let new = |since, initial| Wake {
            wakee,
            since,
            cpu: record.cpu,
            uninterruptible: false,
            initial,
            until: Some(now),
            source,
        };
        let wake = match self.get(wakee).state {
            State::Asleep(wake) => {
                self.end_sleep(wake, source, now);
                wake
            }
            State::Unseen if from_thread => {
                self.get_mut(wakee).start = self.line.start;
                let wake = self.new_wake(new(self.line.start, true));
                self.step(wakee, What::Sleep(wake), now);
                wake
            }
            State::Unseen => {
                let thread = self.get_mut(wakee);
                (thread.start, thread.state) = (now, State::Queued { woken: true });
                return;
            }
            State::Unknown(since) => {
                let gone = self.get_mut(wakee);
                gone.n_gaps += 1;
                gone.gap_ns += now.saturating_since(since).as_ns();
                let wake = self.new_wake(new(since, false));
                self.step(wakee, What::Sleep(wake), now);
                wake
            }
            State::On(_) | State::Queued { woken: false } => {
                self.get_mut(wakee).woken_on_cpu = true;
                let oddities = &mut self.line.oddities;
                if self.line.cpus[record.cpu.index()].current == Occupant::Thread(wakee) {
                    oddities.own_context += 1;
                    return;
                }
                if !from_thread {
                    oddities.early_interrupts += 1;
                    return;
                }
                let wake = self.new_wake(new(now, false));
                self.step(wakee, What::Early(wake), now);
                self.post(wake, now);
                self.get_mut(wakee).early = Some(wake);
                return;
            }
            State::Queued { woken: true } | State::New | State::Gone => {
                self.line.oddities.woken_twice += 1;
                return;
            }
        };
        self.get_mut(wakee).state = State::Queued { woken: true };
        self.post(wake, now);
    }

    /// Writes the wake-up into the steps of the thread that caused it.
    pub(super) fn post(&mut self, wake: WakeId, now: Time) {
        if let Source::Thread { waker, .. } = self.line.wakes[wake.0 as usize].source {
            self.step(waker, What::Post(wake), now);
        }
    }

    pub(super) fn source(&mut self, record: &TraceRecord, wakee: ThreadId) -> Source {
        let waker = self.thread(record.pid, record.time).filter(|waker| *waker != wakee);
        match waker {
            Some(waker) if record.context != RecordContext::Interrupt => Source::Thread {
                waker,
                cpu: record.cpu,
                certain: record.context == RecordContext::Task,
            },
            // A context that the trace could not name is no thread we know.
            _ => Source::Interrupt,
        }
    }

    /// `pid` is runnable, whoever woke it.
    pub(super) fn wake_unseen(&mut self, pid: Pid, now: Time) {
        let Some(thread) = self.thread(pid, now) else { return };
        match self.get(thread).state {
            State::Asleep(wake) if !self.get(thread).woken_on_cpu => {
                self.end_sleep(wake, Source::Unseen, now);
            }
            State::Asleep(wake) => {
                let since = self.line.wakes[wake.0 as usize].since;
                self.end_sleep(wake, Source::Before, since);
            }
            State::Unseen => self.get_mut(thread).start = now,
            _ => return,
        }
        self.get_mut(thread).state = State::Queued { woken: true };
    }

    pub(super) fn new_wake(&mut self, wake: Wake) -> WakeId {
        let id = WakeId(u32::try_from(self.line.wakes.len()).expect("below 2^32 wake-ups"));
        self.line.wakes.push(wake);
        id
    }

    pub(super) fn end_sleep(&mut self, wake: WakeId, source: Source, now: Time) {
        let wake = &mut self.line.wakes[wake.0 as usize];
        (wake.source, wake.until) = (source, Some(now));
    }
}
