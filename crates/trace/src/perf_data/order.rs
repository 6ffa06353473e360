// SPDX-License-Identifier: GPL-2.0-only
//! Records in the order of time, by the rounds in which perf emptied the buffers of the CPUs.
//!
//! What a later round holds is no older than the newest record of the round before this one, so
//! after each round all up to there can be handed out.

/// The most that is held back. Rounds are shorter, but a file may be without their ends.
const HELD_MAX: usize = 1 << 20;

/// Holds back what may not be handed out yet.
#[derive(Debug)]
pub(super) struct Rounds<T> {
    held: Vec<(u64, T)>,
    /// Newest time of the rounds that have ended, and of all so far.
    ended: u64,
    newest: u64,
    is_sorted: bool,
}

impl<T> Rounds<T> {
    pub(super) fn new() -> Self {
        Self { held: Vec::new(), ended: 0, newest: 0, is_sorted: true }
    }
    pub(super) fn push(&mut self, time: u64, item: T) {
        self.is_sorted &= self.held.last().is_none_or(|(last, _)| *last <= time);
        self.newest = self.newest.max(time);
        self.held.push((time, item));
    }
    /// A round has ended; what can be handed out, in order.
    pub(super) fn end_round(&mut self) -> impl Iterator<Item = T> + use<T> {
        let ready = self.take(self.ended);
        self.ended = self.newest;
        ready
    }
    /// Whether more is held back than there is room for.
    pub(super) fn is_full(&self) -> bool {
        self.held.len() >= HELD_MAX
    }
    /// The half with the earlier times, in order.
    pub(super) fn oldest_half(&mut self) -> impl Iterator<Item = T> + use<T> {
        self.sort();
        let middle = self.held.get(self.held.len() / 2).map_or(0, |(time, _)| *time);
        self.take(middle)
    }
    /// All that is left, in order.
    pub(super) fn finish(&mut self) -> impl Iterator<Item = T> + use<T> {
        self.take(u64::MAX)
    }

    fn sort(&mut self) {
        if !self.is_sorted {
            self.held.sort_by_key(|(time, _)| *time);
            self.is_sorted = true;
        }
    }

    fn take(&mut self, until: u64) -> impl Iterator<Item = T> + use<T> {
        self.sort();
        let n = self.held.partition_point(|(time, _)| *time <= until);
        let rest = self.held.split_off(n);
        std::mem::replace(&mut self.held, rest).into_iter().map(|(_, item)| item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_hand_out_what_the_next_round_cannot_precede() {
        let mut rounds = Rounds::new();
        for time in [5, 9, 2, 4] {
            rounds.push(time, time);
        }
        assert_eq!(rounds.end_round().count(), 0);
        for time in [7, 12, 11] {
            rounds.push(time, time);
        }
        assert_eq!(rounds.end_round().collect::<Vec<_>>(), [2, 4, 5, 7, 9]);
        rounds.push(10, 10);
        assert_eq!(rounds.finish().collect::<Vec<_>>(), [10, 11, 12]);
    }

    #[test]
    fn oldest_half_is_that_of_the_earlier_times() {
        let mut rounds = Rounds::new();
        assert_eq!(rounds.oldest_half().count(), 0);
        for time in [4, 1, 3, 3, 5] {
            rounds.push(time, time);
        }
        assert!(!rounds.is_full());
        assert_eq!(rounds.oldest_half().collect::<Vec<_>>(), [1, 3, 3]);
        assert_eq!(rounds.finish().collect::<Vec<_>>(), [4, 5]);
    }

    #[test]
    fn equal_times_keep_their_order() {
        let mut rounds = Rounds::new();
        for (time, item) in [(3, 'a'), (1, 'b'), (3, 'c'), (1, 'd')] {
            rounds.push(time, item);
        }
        assert_eq!(rounds.finish().collect::<String>(), "bdac");
    }
}
