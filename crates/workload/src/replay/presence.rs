// SPDX-License-Identifier: GPL-2.0-only
//! Which thread is on which CPU: the rules for coming, leaving, and doing so unseen.

use schedlab_policy_api::{Pid, RecordedState};
use schedlab_units::{CpuId, Time};

use super::machine::Occupant;
use super::model::{Source, State, Thread, ThreadId, Wake, What};
use super::timeline::Builder;

impl Builder {
    /// `pid` is the context of a record of `cpu`: it runs there.
    pub(super) fn observe(&mut self, cpu: CpuId, pid: Pid, now: Time) {
        if pid == Pid(u32::MAX) {
            return;
        }
        let seen = match self.living(pid, now) {
            Some(thread) => Occupant::Thread(thread),
            None => Occupant::Idle,
        };
        if self.line.cpus[cpu.index()].current != seen {
            self.vacate(cpu, now);
            if let Occupant::Thread(thread) = seen {
                self.come(thread, cpu, now, true);
            }
        }
        if let Occupant::Thread(thread) = seen {
            self.get_mut(thread).clock.seen(now);
        }
        let cpu = &mut self.line.cpus[cpu.index()];
        (cpu.current, cpu.seen) = (seen, Some(now));
    }

    /// The occupant of `cpu` has left unseen.
    pub(super) fn vacate(&mut self, cpu: CpuId, now: Time) {
        let slot = &mut self.line.cpus[cpu.index()];
        slot.changed_unseen(now);
        if let Occupant::Thread(thread) = std::mem::replace(&mut slot.current, Occupant::Unknown) {
            let seen = slot.seen.unwrap_or(now);
            let Thread { clock, steps, .. } = self.get_mut(thread);
            clock.switch_out(None, |i, at| steps[i].at_ns = at);
            self.get_mut(thread).state = State::Unknown(seen);
        }
    }

    /// `thread` is on `cpu`, by a switch or, when `noticed`, by other evidence.
    pub(super) fn come(&mut self, thread: ThreadId, cpu: CpuId, now: Time, noticed: bool) {
        let whole = !self.line.filtered;
        let has_wakes = self.has_waking || self.has_wakeup;
        let mut since = now;
        match self.get(thread).state {
            State::On(other) => {
                // It cannot be in two places: it left the other one unseen.
                self.vacate(other, now);
                self.gap(thread, now);
            }
            State::Asleep(wake) if self.get(thread).woken_on_cpu => {
                let since = self.line.wakes[wake.0 as usize].since;
                self.end_sleep(wake, Source::Before, since);
            }
            State::Asleep(wake) => self.end_sleep(wake, Source::Unseen, now),
            State::Unknown(_) => self.gap(thread, now),
            State::Unseen if whole && noticed => {
                // Nothing was recorded on this CPU before, so it ran there from the beginning.
                let first = self.line.cpus[cpu.index()].seen.is_none();
                if first {
                    since = self.line.start;
                }
                self.get_mut(thread).start = since;
            }
            State::Unseen if whole && has_wakes && self.line.oddities.losses == 0 => {
                // Its wake-up would be recorded, so it was waiting for a CPU from the beginning.
                self.get_mut(thread).start = self.line.start;
            }
            State::Unseen => self.get_mut(thread).start = now,
            State::New | State::Queued { .. } | State::Gone => {}
        }
        let thread = self.get_mut(thread);
        thread.state = State::On(cpu);
        (thread.woken_on_cpu, thread.early) = (false, None);
        thread.n_switch_in += 1;
        thread.clock.switch_in(since, noticed);
    }

    pub(super) fn switch_in(&mut self, pid: Pid, cpu: CpuId, now: Time) {
        if matches!(self.line.cpus[cpu.index()].current, Occupant::Thread(_)) {
            self.vacate(cpu, now);
        }
        let mut occupant = Occupant::Idle;
        if let Some(thread) = self.living(pid, now) {
            self.come(thread, cpu, now, false);
            occupant = Occupant::Thread(thread);
        }
        let cpu = &mut self.line.cpus[cpu.index()];
        (cpu.current, cpu.seen) = (occupant, Some(now));
    }

    /// `pid` leaves `cpu`, on which it was just observed.
    pub(super) fn switch_out(&mut self, pid: Pid, state: RecordedState, cpu: CpuId, now: Time) {
        let Some(thread) = self.thread(pid, now) else { return };
        let filtered = self.line.filtered;
        let Thread { clock, steps, assumed_ns, .. } = self.get_mut(thread);
        let before = clock.sources.by_span_ns;
        clock.switch_out(Some(now), |i, at| steps[i].at_ns = at);
        if filtered {
            *assumed_ns += clock.sources.by_span_ns - before;
        }
        self.get_mut(thread).state = match state {
            RecordedState::Runnable | RecordedState::Preempted => State::Queued { woken: false },
            RecordedState::Sleeping | RecordedState::Uninterruptible => {
                let uninterruptible = state == RecordedState::Uninterruptible;
                if let Some(early) = self.get(thread).early {
                    // Now it shows which sleep the early wake-up was meant for.
                    self.line.wakes[early.0 as usize].uninterruptible = uninterruptible;
                }
                let wake = self.new_wake(Wake {
                    wakee: thread,
                    since: now,
                    cpu,
                    uninterruptible,
                    initial: false,
                    until: None,
                    source: Source::None,
                });
                self.step(thread, What::Sleep(wake), now);
                State::Asleep(wake)
            }
            RecordedState::Exited => {
                self.step(thread, What::Exit, now);
                State::Gone
            }
        };
        self.line.cpus[cpu.index()].current = Occupant::Unknown;
    }

    /// Events of `cpu` were lost: who runs there now is not known.
    pub(super) fn lost(&mut self, cpu: CpuId, now: Time) {
        self.line.oddities.losses += 1;
        if self.line.cpus[cpu.index()].current != Occupant::Unknown {
            self.vacate(cpu, now);
        }
    }

    /// An unknown period of `thread` ends.
    pub(super) fn gap(&mut self, thread: ThreadId, now: Time) {
        if let State::Unknown(since) = self.get(thread).state {
            let ns = now.saturating_since(since).as_ns();
            let gone = self.get_mut(thread);
            gone.n_gaps += 1;
            gone.gap_ns += ns;
            if ns > 0 {
                self.step(thread, What::Gap(ns), now);
            }
        }
    }
}
