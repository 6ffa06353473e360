// SPDX-License-Identifier: GPL-2.0-only
//! Priority arrays: 140 lists each with a bitmap of those that are not empty.
//!
//! All arrays of the machine share one table of links by task id, so that nothing is allocated when
//! a task moves. Who uses which array for what is not decided here.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use schedlab_units::TaskId;

/// Number of priorities: 100 real-time ones and 40 of nice.
///
/// Source: 2.6.0-test1 `sched.h` `MAX_PRIO`; spec §2.
pub(super) const MAX_PRIO: usize = 140;

/// No task, no array.
const NONE: u32 = u32::MAX;

/// First and last task of a list.
#[derive(Clone, Copy)]
struct Ends {
    head: u32,
    tail: u32,
}

impl Ends {
    const EMPTY: Self = Self { head: NONE, tail: NONE };
}

/// One priority array (`struct prio_array`).
struct PrioArray {
    bitmap: [u64; MAX_PRIO.div_ceil(64)],
    lists: [Ends; MAX_PRIO],
    nr_active: u32,
}

/// A task's place in its list.
#[derive(Clone, Copy)]
struct Links {
    prev: u32,
    next: u32,
    array: u32,
    prio: u8,
}

impl Links {
    const OFF: Self = Self { prev: NONE, next: NONE, array: NONE, prio: 0 };
}

/// All priority arrays of a machine.
pub(super) struct PrioArrays {
    arrays: Vec<PrioArray>,
    links: Vec<Links>,
}

impl PrioArrays {
    /// `n_arrays` empty arrays with room for `n_tasks` tasks; more may come.
    pub(super) fn new(n_arrays: usize, n_tasks: usize) -> Self {
        let empty = || PrioArray {
            bitmap: [0; MAX_PRIO.div_ceil(64)],
            lists: [Ends::EMPTY; MAX_PRIO],
            nr_active: 0,
        };
        Self {
            arrays: (0..n_arrays).map(|_| empty()).collect(),
            links: Vec::with_capacity(n_tasks),
        }
    }

    /// Makes room for `task`, which is on no list.
    pub(super) fn provide(&mut self, task: TaskId) {
        if task.index() >= self.links.len() {
            self.links.resize(task.index() + 1, Links::OFF);
        }
    }

    /// The array that `task` is on.
    #[inline]
    pub(super) fn array_of(&self, task: TaskId) -> Option<usize> {
        let array = self.links[task.index()].array;
        (array != NONE).then_some(array as usize)
    }

    /// The list that `task` is on, or was on last.
    #[inline]
    pub(super) fn prio_of(&self, task: TaskId) -> u8 {
        self.links[task.index()].prio
    }

    /// Number of tasks on `array`.
    #[inline]
    pub(super) fn nr_active(&self, array: usize) -> u32 {
        self.arrays[array].nr_active
    }

    /// Appends `task` to list `prio` of `array` (`enqueue_task`).
    pub(super) fn enqueue(&mut self, task: TaskId, array: usize, prio: u8) {
        let last = self.arrays[array].lists[usize::from(prio)].tail;
        self.insert(task, array, prio, last, NONE);
    }

    /// Puts `task` at the head of list `prio` of `array`.
    pub(super) fn enqueue_head(&mut self, task: TaskId, array: usize, prio: u8) {
        let first = self.arrays[array].lists[usize::from(prio)].head;
        self.insert(task, array, prio, NONE, first);
    }

    /// Puts `task` immediately before `other` in the list of that.
    ///
    /// # Panics
    /// When `other` is on no list.
    pub(super) fn insert_before(&mut self, task: TaskId, other: TaskId) {
        let Links { prev, array, prio, .. } = self.links[other.index()];
        assert!(array != NONE, "task {other} is on no list to stand before");
        self.insert(task, array as usize, prio, prev, other.0);
    }

    fn insert(&mut self, task: TaskId, array: usize, prio: u8, prev: u32, next: u32) {
        debug_assert!(self.array_of(task).is_none(), "task {task} is on a list already");
        self.links[task.index()] = Links { prev, next, array: array as u32, prio };
        let place = &mut self.arrays[array];
        let ends = &mut place.lists[usize::from(prio)];
        if prev == NONE {
            ends.head = task.0;
        } else {
            self.links[prev as usize].next = task.0;
        }
        if next == NONE {
            ends.tail = task.0;
        } else {
            self.links[next as usize].prev = task.0;
        }
        place.bitmap[usize::from(prio) / 64] |= 1 << (prio % 64);
        place.nr_active += 1;
    }

    /// Takes `task` off its list (`dequeue_task`).
    ///
    /// # Panics
    /// When `task` is on no list.
    pub(super) fn dequeue(&mut self, task: TaskId) {
        let Links { prev, next, array, prio } = self.links[task.index()];
        assert!(array != NONE, "task {task} is on no list");
        let place = &mut self.arrays[array as usize];
        let ends = &mut place.lists[usize::from(prio)];
        if prev == NONE {
            ends.head = next;
        } else {
            self.links[prev as usize].next = next;
        }
        if next == NONE {
            ends.tail = prev;
        } else {
            self.links[next as usize].prev = prev;
        }
        if ends.head == NONE {
            place.bitmap[usize::from(prio) / 64] &= !(1 << (prio % 64));
        }
        place.nr_active -= 1;
        self.links[task.index()].array = NONE;
    }

    /// The head of the best list of `array` that is not empty (`sched_find_first_bit`).
    pub(super) fn first(&self, array: usize) -> Option<TaskId> {
        let place = &self.arrays[array];
        let prio = Self::lists_in_use(place).next()?;
        Some(TaskId(place.lists[prio].head))
    }

    fn lists_in_use(place: &PrioArray) -> impl Iterator<Item = usize> + '_ {
        place.bitmap.iter().enumerate().flat_map(|(word, bits)| {
            let mut bits = *bits;
            core::iter::from_fn(move || {
                let bit = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
                bits &= bits - 1;
                Some(word * 64 + bit)
            })
        })
    }

    /// The tasks of `array`, best priority first, each list from tail to head: the order in which
    /// `load_balance` looks at them.
    pub(super) fn iter_from_tails(&self, array: usize) -> impl Iterator<Item = TaskId> + '_ {
        let place = &self.arrays[array];
        Self::lists_in_use(place).flat_map(move |prio| {
            let mut at = place.lists[prio].tail;
            core::iter::from_fn(move || {
                let task = (at != NONE).then_some(TaskId(at))?;
                at = self.links[task.index()].prev;
                Some(task)
            })
        })
    }

    /// I9: bits tell which lists are not empty, links agree in both directions, `nr_active` counts.
    ///
    /// # Errors
    /// A sentence with the values that disagree.
    pub(super) fn check(&self) -> Result<(), String> {
        for (array, place) in self.arrays.iter().enumerate() {
            let mut n = 0;
            for (prio, ends) in place.lists.iter().enumerate() {
                let bit = place.bitmap[prio / 64] >> (prio % 64) & 1 != 0;
                if bit != (ends.head != NONE) {
                    return Err(format!("bit {prio} of array {array} is {bit}"));
                }
                let (mut before, mut at) = (NONE, ends.head);
                while at != NONE {
                    let links = self.links[at as usize];
                    if links.prev != before
                        || links.array as usize != array
                        || usize::from(links.prio) != prio
                    {
                        return Err(format!("task {at} is linked wrongly in list {array}/{prio}"));
                    }
                    (before, at) = (at, links.next);
                    n += 1;
                }
                if ends.tail != before {
                    return Err(format!("list {array}/{prio} ends at {before}"));
                }
            }
            if n != place.nr_active {
                return Err(format!("array {array} counts {} of {n} tasks", place.nr_active));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    const N_TASKS: u32 = 12;

    #[derive(Clone, Debug)]
    enum Op {
        Enqueue(u32, usize, u8),
        EnqueueHead(u32, usize, u8),
        Before(u32, u32),
        Dequeue(u32),
    }

    fn op() -> impl Strategy<Value = Op> {
        let prio = || prop::sample::select(vec![0u8, 1, 63, 64, 115, 120, 127, 128, 139]);
        let task = || 0..N_TASKS;
        prop_oneof![
            3 => (task(), 0usize..2, prio()).prop_map(|(t, a, p)| Op::Enqueue(t, a, p)),
            1 => (task(), 0usize..2, prio()).prop_map(|(t, a, p)| Op::EnqueueHead(t, a, p)),
            1 => (task(), task()).prop_map(|(t, o)| Op::Before(t, o)),
            3 => task().prop_map(Op::Dequeue),
        ]
    }

    /// Each array as one list of (priority, task), sorted by priority.
    type Twin = [Vec<(u8, u32)>; 2];

    fn place_of(twin: &Twin, task: u32) -> Option<(usize, usize)> {
        (0..2).find_map(|a| Some((a, twin[a].iter().position(|(_, t)| *t == task)?)))
    }

    fn apply(arrays: &mut PrioArrays, twin: &mut Twin, op: Op) {
        match op {
            Op::Enqueue(t, a, p) if place_of(twin, t).is_none() => {
                arrays.enqueue(TaskId(t), a, p);
                let at = twin[a].iter().take_while(|(prio, _)| *prio <= p).count();
                twin[a].insert(at, (p, t));
            }
            Op::EnqueueHead(t, a, p) if place_of(twin, t).is_none() => {
                arrays.enqueue_head(TaskId(t), a, p);
                let at = twin[a].iter().take_while(|(prio, _)| *prio < p).count();
                twin[a].insert(at, (p, t));
            }
            Op::Before(t, other) if place_of(twin, t).is_none() => {
                if let Some((a, at)) = place_of(twin, other) {
                    arrays.insert_before(TaskId(t), TaskId(other));
                    let prio = twin[a][at].0;
                    twin[a].insert(at, (prio, t));
                }
            }
            Op::Dequeue(t) => {
                if let Some((a, at)) = place_of(twin, t) {
                    arrays.dequeue(TaskId(t));
                    twin[a].remove(at);
                }
            }
            _ => {}
        }
    }

    proptest! {
        #[test]
        fn prio_arrays_behave_like_sorted_lists(ops in prop::collection::vec(op(), 0..300)) {
            let mut arrays = PrioArrays::new(2, N_TASKS as usize);
            (0..N_TASKS).for_each(|t| arrays.provide(TaskId(t)));
            let mut twin = Twin::default();
            for op in ops {
                apply(&mut arrays, &mut twin, op);
                prop_assert_eq!(arrays.check(), Ok(()));
                for (a, list) in twin.iter().enumerate() {
                    prop_assert_eq!(arrays.nr_active(a) as usize, list.len());
                    prop_assert_eq!(arrays.first(a), list.first().map(|(_, t)| TaskId(*t)));
                    let runs = list.chunk_by(|x, y| x.0 == y.0);
                    let expected: Vec<TaskId> =
                        runs.flat_map(|run| run.iter().rev().map(|(_, t)| TaskId(*t))).collect();
                    prop_assert_eq!(arrays.iter_from_tails(a).collect::<Vec<_>>(), expected);
                }
                for t in 0..N_TASKS {
                    let at = place_of(&twin, t);
                    prop_assert_eq!(arrays.array_of(TaskId(t)), at.map(|(a, _)| a));
                    if let Some((a, at)) = at {
                        prop_assert_eq!(arrays.prio_of(TaskId(t)), twin[a][at].0);
                    }
                }
            }
        }
    }
}
