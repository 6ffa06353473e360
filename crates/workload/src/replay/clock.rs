// SPDX-License-Identifier: GPL-2.0-only
//! The CPU time of one thread, and at which point of it things happened.
//!
//! `sched_stat_runtime` gives CPU time exactly, but only in lumps: one record covers all since the
//! record before. Things that happened in between are placed by the wall time the thread was on its
//! CPU, counted back from the end of the lump: CPU time stands still while an interrupt steals
//! the CPU, and the first lump of a recording began before it, so the end is the better anchor.
//! A stretch on the CPU without any such record counts with its wall time.

use schedlab_units::Time;

/// A thing that happened to the thread: index into its steps.
type StepIndex = usize;

/// How CPU times were found, for reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sources {
    /// CPU time told by `sched_stat_runtime`, ns.
    pub(super) by_stat_ns: u64,
    /// CPU time taken from switches, ns.
    pub(super) by_span_ns: u64,
    /// Part of `by_span_ns` whose beginning or end is not recorded: at least this much, ns.
    pub(super) at_least_ns: u64,
}

/// CPU time of one thread.
#[derive(Clone, Debug, Default)]
pub(super) struct CpuClock {
    /// CPU time up to the last lump, ns.
    total: u64,
    /// On its CPU, since then or since a later lump, and until when that is certain.
    on: Option<(Time, Time)>,
    /// Whether this stretch had a lump.
    lumped: bool,
    /// Whether the stretch began before it was noticed.
    open_start: bool,
    /// Steps since the last lump with their wall time since then.
    pending: Vec<(StepIndex, u64)>,
    pub(super) sources: Sources,
}

impl CpuClock {
    /// CPU time so far, ns; complete when the thread is off its CPU.
    pub(super) fn total(&self) -> u64 {
        self.total
    }
    /// The thread comes to a CPU at `now`; `open_start` when it may have been there for longer.
    pub(super) fn switch_in(&mut self, now: Time, open_start: bool) {
        debug_assert!(self.on.is_none() && self.pending.is_empty());
        self.on = Some((now, now));
        self.lumped = false;
        self.open_start = open_start;
    }
    /// The thread is certainly on its CPU at `now`.
    pub(super) fn seen(&mut self, now: Time) {
        if let Some((_, until)) = &mut self.on {
            *until = (*until).max(now);
        }
    }
    /// Places step `index` at `now`; its CPU time is written by a later call, or returned here.
    pub(super) fn place(&mut self, index: StepIndex, now: Time) -> Option<u64> {
        if self.on.is_none() {
            return Some(self.total);
        }
        self.pending.push((index, self.wall_until(now)));
        None
    }
    /// A lump of `runtime` ns ends at `now`; hands out the places of the steps in it.
    pub(super) fn lump(&mut self, runtime: u64, now: Time, mut set: impl FnMut(StepIndex, u64)) {
        let wall = self.wall_until(now);
        for (index, at) in self.pending.drain(..) {
            // progress = end − (wall − at), not before the beginning of the lump.
            let back = (wall - at.min(wall)).min(runtime);
            set(index, self.total.saturating_add(runtime - back));
        }
        self.total = self.total.saturating_add(runtime);
        self.sources.by_stat_ns = self.sources.by_stat_ns.saturating_add(runtime);
        self.lumped = true;
        if let Some((since, until)) = &mut self.on {
            *since = (*since).max(now);
            *until = (*until).max(now);
        }
    }
    /// The thread leaves its CPU, at `now` or, when that is not known, after it was last seen.
    pub(super) fn switch_out(&mut self, now: Option<Time>, mut set: impl FnMut(StepIndex, u64)) {
        let Some((_, seen)) = self.on else { return };
        let wall = self.wall_until(now.unwrap_or(seen));
        if self.lumped {
            // The kernel accounts when a thread leaves: what follows the last lump is the switch.
            for (index, _) in self.pending.drain(..) {
                set(index, self.total);
            }
        } else {
            for (index, at) in self.pending.drain(..) {
                set(index, self.total.saturating_add(at.min(wall)));
            }
            self.total = self.total.saturating_add(wall);
            self.sources.by_span_ns = self.sources.by_span_ns.saturating_add(wall);
            if self.open_start || now.is_none() {
                self.sources.at_least_ns = self.sources.at_least_ns.saturating_add(wall);
            }
        }
        self.on = None;
    }

    fn wall_until(&self, now: Time) -> u64 {
        self.on.map_or(0, |(since, _)| now.saturating_since(since).as_ns())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Time {
        Time::from_ns(ns)
    }

    #[test]
    fn stretch_without_lump_counts_its_wall_time() {
        let mut clock = CpuClock::default();
        let mut places = vec![];
        clock.switch_in(at(100), false);
        assert_eq!(clock.place(0, at(130)), None);
        clock.switch_out(Some(at(150)), |i, p| places.push((i, p)));
        assert_eq!((places, clock.total()), (vec![(0, 30)], 50));
        assert_eq!(clock.place(1, at(170)), Some(50));
    }

    #[test]
    fn lump_places_steps_counted_from_its_end() {
        let mut clock = CpuClock::default();
        let mut places = vec![];
        clock.switch_in(at(100), true);
        clock.place(0, at(104));
        clock.place(1, at(115));
        // 1000 ns of CPU time, most of it before the recording began.
        clock.lump(1000, at(120), |i, p| places.push((i, p)));
        clock.place(2, at(150));
        // An interrupt stole 50 of 60 ns.
        clock.lump(10, at(180), |i, p| places.push((i, p)));
        clock.place(3, at(182));
        clock.switch_out(Some(at(185)), |i, p| places.push((i, p)));
        assert_eq!(places, [(0, 984), (1, 995), (2, 1000), (3, 1010)]);
        assert_eq!((clock.total(), clock.sources.by_stat_ns), (1010, 1010));
        assert_eq!(clock.sources.by_span_ns, 0);
    }

    #[test]
    fn stretch_of_unknown_end_counts_up_to_where_it_was_seen() {
        let mut clock = CpuClock::default();
        clock.switch_in(at(100), false);
        clock.seen(at(140));
        clock.switch_out(None, |_, _| {});
        assert_eq!((clock.total(), clock.sources.at_least_ns), (40, 40));
    }

    #[test]
    fn lump_off_the_cpu_is_counted() {
        let mut clock = CpuClock::default();
        clock.lump(7, at(10), |_, _| {});
        clock.switch_in(at(20), false);
        clock.switch_out(Some(at(25)), |_, _| {});
        assert_eq!(clock.total(), 12);
    }
}
