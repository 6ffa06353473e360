// SPDX-License-Identifier: GPL-2.0-only
//! The run list, laid out for a quick scan.
//!
//! The list is an array in list order whose END is the head, so that a wake-up is a push. What
//! the scan reads of a task lies in columns of its own; a place that a task left stays as a hole
//! until enough of them have gathered. It knows nothing of classes, ticks or locks.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use schedlab_units::{CpuId, TaskId};

use super::value::{ActiveMm, Entry};

/// Places examined at a time; a multiple of every vector width.
const BLOCK: usize = 16;
/// Marks a place without a task, and a task without a place.
const NONE: u32 = u32::MAX;

/// All runnable tasks in list order.
///
/// The columns have one row per place. Places below `first` are free, those from `first` on hold
/// tasks or holes; free places and holes look like [`Entry::HELD`], so a scan may read them.
#[derive(Clone, Debug)]
pub(super) struct RunList {
    weight: Vec<i32>,
    processor: Vec<u32>,
    mm: Vec<u32>,
    task: Vec<u32>,
    /// Place of each task, indexed by task id.
    place: Vec<u32>,
    /// The tail's place, or the length of the columns; at least [`BLOCK`].
    first: usize,
    /// Number of tasks.
    n: usize,
}

/// The best task of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Best {
    pub(super) goodness: i32,
    /// None = nothing beat the value the scan began with.
    pub(super) task: Option<TaskId>,
}

impl RunList {
    /// An empty list with room for `n_tasks`.
    pub(super) fn new(n_tasks: usize) -> Self {
        // A third of the places may be holes, see `settle_holes`.
        let room = 2 * BLOCK + n_tasks + n_tasks / 2;
        let mut list = Self {
            weight: Vec::with_capacity(room),
            processor: Vec::with_capacity(room),
            mm: Vec::with_capacity(room),
            task: Vec::with_capacity(room),
            place: Vec::with_capacity(n_tasks),
            first: BLOCK,
            n: 0,
        };
        list.grow_to(BLOCK);
        list
    }

    /// Number of tasks on the list (`nr_running`).
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.n
    }

    /// Whether `task` is on the list.
    #[inline]
    pub(super) fn contains(&self, task: TaskId) -> bool {
        self.place.get(task.index()).is_some_and(|place| *place != NONE)
    }

    /// Adds `task` at the head. Amortised constant time.
    ///
    /// # Panics
    /// When it is on the list.
    pub(super) fn add_first(&mut self, task: TaskId, entry: Entry) {
        self.claim(task);
        let place = self.task.len();
        self.grow_to(place + 1);
        self.put(place, task, entry);
        self.n += 1;
    }

    /// Adds `task` at the tail. Amortised constant time.
    ///
    /// # Panics
    /// When it is on the list.
    pub(super) fn add_last(&mut self, task: TaskId, entry: Entry) {
        self.claim(task);
        if self.first == BLOCK {
            self.repack(2 * BLOCK + self.n / 4);
        }
        self.first -= 1;
        self.put(self.first, task, entry);
        self.n += 1;
    }

    /// Takes `task` off the list. Amortised constant time.
    ///
    /// # Panics
    /// When it is not on the list.
    pub(super) fn remove(&mut self, task: TaskId) {
        let place = self.place_of(task);
        self.clear(place);
        self.place[task.index()] = NONE;
        self.n -= 1;
        self.settle_holes();
    }

    /// Changes what the scan sees of `task`.
    ///
    /// # Panics
    /// When it is not on the list.
    #[inline]
    pub(super) fn set(&mut self, task: TaskId, entry: Entry) {
        let place = self.place_of(task);
        self.set_entry(place, entry);
    }

    /// Recomputes what the scan sees of every task.
    pub(super) fn set_all(&mut self, entry_of: impl Fn(TaskId) -> Entry) {
        for place in self.first..self.task.len() {
            if self.task[place] != NONE {
                self.set_entry(place, entry_of(TaskId(self.task[place])));
            }
        }
    }

    /// Tasks from head to tail with what the scan sees of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = (TaskId, Entry)> {
        (self.first..self.task.len())
            .rev()
            .filter(|place| self.task[*place] != NONE)
            .map(|place| (TaskId(self.task[place]), self.entry(place)))
    }

    /// The task of largest goodness for `cpu`, the one nearest to the head among equals, provided
    /// it is above `floor`. `allowed` is asked only about tasks that would win so far.
    ///
    /// A block is looked into only if its largest value is above the best so far, so most of the
    /// list is passed over a vector at a time.
    ///
    /// Source: 2.4.5 `sched.c` `schedule`; spec §4.7 S5.
    pub(super) fn scan(
        &self,
        cpu: CpuId,
        active: ActiveMm,
        pcp: i32,
        floor: i32,
        allowed: impl Fn(TaskId) -> bool,
    ) -> Best {
        let mut best = Best { goodness: floor, task: None };
        let mut end = self.task.len();
        while end > self.first {
            // `first` is at least BLOCK, so the last block may reach into free places.
            let start = end - BLOCK;
            if self.block_max(start, cpu, active, pcp) > best.goodness {
                for place in (start..end).rev() {
                    let goodness = self.entry(place).goodness(cpu, active, pcp);
                    if goodness > best.goodness && allowed(TaskId(self.task[place])) {
                        best = Best { goodness, task: Some(TaskId(self.task[place])) };
                    }
                }
            }
            end = start;
        }
        best
    }

    /// The largest goodness among the [`BLOCK`] places from `start` on.
    #[inline]
    fn block_max(&self, start: usize, cpu: CpuId, active: ActiveMm, pcp: i32) -> i32 {
        let range = start..start + BLOCK;
        let columns = self.weight[range.clone()]
            .iter()
            .zip(&self.processor[range.clone()])
            .zip(&self.mm[range]);
        columns
            .map(|((&weight, &processor), &mm)| {
                Entry { weight, processor, mm }.goodness(cpu, active, pcp)
            })
            .fold(Entry::HELD.weight, i32::max)
    }

    #[inline]
    fn entry(&self, place: usize) -> Entry {
        Entry { weight: self.weight[place], processor: self.processor[place], mm: self.mm[place] }
    }

    #[inline]
    fn set_entry(&mut self, place: usize, entry: Entry) {
        self.weight[place] = entry.weight;
        self.processor[place] = entry.processor;
        self.mm[place] = entry.mm;
    }

    #[inline]
    fn put(&mut self, place: usize, task: TaskId, entry: Entry) {
        self.set_entry(place, entry);
        self.task[place] = task.0;
        self.place[task.index()] = u32::try_from(place).expect("the list is shorter than 2^32");
    }

    fn clear(&mut self, place: usize) {
        self.set_entry(place, Entry::HELD);
        self.task[place] = NONE;
    }

    #[inline]
    fn place_of(&self, task: TaskId) -> usize {
        assert!(self.contains(task), "task {task} is not on the run list");
        self.place[task.index()] as usize
    }

    /// Makes sure that `task` has a row in the table of places and is not listed.
    fn claim(&mut self, task: TaskId) {
        assert!(!self.contains(task), "task {task} is on the run list already");
        if task.index() >= self.place.len() {
            self.place.resize(task.index() + 1, NONE);
        }
    }

    /// Lengthens the columns with free places.
    fn grow_to(&mut self, len: usize) {
        self.weight.resize(len, Entry::HELD.weight);
        self.processor.resize(len, Entry::HELD.processor);
        self.mm.resize(len, Entry::HELD.mm);
        self.task.resize(len, NONE);
    }

    fn truncate(&mut self, len: usize) {
        self.weight.truncate(len);
        self.processor.truncate(len);
        self.mm.truncate(len);
        self.task.truncate(len);
    }

    /// Drops holes at both ends, and packs the list once holes are a third of what a scan reads or
    /// free places outnumber the tasks.
    fn settle_holes(&mut self) {
        let mut len = self.task.len();
        while len > self.first && self.task[len - 1] == NONE {
            len -= 1;
        }
        self.truncate(len);
        while self.first < len && self.task[self.first] == NONE {
            self.first += 1;
        }
        let holes = len - self.first - self.n;
        if holes > self.n / 2 + BLOCK || self.first > self.n + 4 * BLOCK {
            self.repack(BLOCK);
        }
    }

    /// Closes all holes and leaves `first` free places below the tail.
    fn repack(&mut self, first: usize) {
        let mut to = self.first;
        for from in self.first..self.task.len() {
            if self.task[from] != NONE {
                self.move_place(from, to);
                to += 1;
            }
        }
        self.truncate(to);
        let n = self.n;
        if first < self.first {
            for i in 0..n {
                self.move_place(self.first + i, first + i);
            }
            self.truncate(first + n);
        } else {
            self.grow_to(first + n);
            for i in (0..n).rev() {
                self.move_place(self.first + i, first + i);
            }
        }
        self.first = first;
    }

    fn move_place(&mut self, from: usize, to: usize) {
        if from != to {
            let (task, entry) = (TaskId(self.task[from]), self.entry(from));
            self.clear(from);
            self.put(to, task, entry);
        }
    }

    /// I9: the two directions of the index agree, free places look free, and `n` counts.
    ///
    /// # Errors
    /// A sentence with the values that disagree.
    pub(super) fn check(&self) -> Result<(), String> {
        let mut n = 0;
        for (place, task) in self.task.iter().enumerate() {
            if *task == NONE {
                if self.entry(place) != Entry::HELD {
                    return Err(format!("place {place} is free but holds {:?}", self.entry(place)));
                }
            } else {
                n += 1;
                if place < self.first || self.place[*task as usize] as usize != place {
                    return Err(format!("task {task} lies at place {place}, not where it says"));
                }
            }
        }
        if n != self.n || self.place.iter().filter(|place| **place != NONE).count() != n {
            return Err(format!("the run list counts {} tasks but holds {n}", self.n));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;
    use schedlab_policy_api::Mm;

    /// The list as the kernel has it, head first, scanned as the text says.
    #[derive(Default)]
    struct Twin(Vec<(TaskId, Entry)>);

    impl Twin {
        fn scan(&self, cpu: CpuId, active: ActiveMm, floor: i32, banned: u32) -> Best {
            let mut best = Best { goodness: floor, task: None };
            for (task, entry) in &self.0 {
                let goodness = entry.goodness(cpu, active, 15);
                if task.0 % 7 != banned && goodness > best.goodness {
                    best = Best { goodness, task: Some(*task) };
                }
            }
            best
        }
    }

    #[derive(Clone, Debug)]
    enum Op {
        First(u32, Entry),
        Last(u32, Entry),
        Remove(u32),
        Set(u32, Entry),
        Scan { cpu: u32, mm: u32, floor: i32, banned: u32 },
    }

    fn entry() -> impl Strategy<Value = Entry> {
        let weight = prop_oneof![8 => 2..78, 1 => 1001..1100, 1 => -1..=0, 1 => Just(i32::MIN / 2)];
        (weight, 0u32..4, 0u32..4).prop_map(|(weight, processor, mm)| match weight {
            2..78 => Entry { weight, processor, mm: if mm == 3 { u32::MAX - 2 } else { mm } },
            _ => Entry { weight, ..Entry::HELD },
        })
    }

    fn op(n_tasks: u32) -> impl Strategy<Value = Op> {
        prop_oneof![
            4 => (0..n_tasks, entry()).prop_map(|(t, e)| Op::First(t, e)),
            2 => (0..n_tasks, entry()).prop_map(|(t, e)| Op::Last(t, e)),
            4 => (0..n_tasks).prop_map(Op::Remove),
            1 => (0..n_tasks, entry()).prop_map(|(t, e)| Op::Set(t, e)),
            2 => (0u32..4, 0u32..4, prop_oneof![Just(-1000), -1..60], 0u32..8)
                .prop_map(|(cpu, mm, floor, banned)| Op::Scan { cpu, mm, floor, banned }),
        ]
    }

    fn apply(list: &mut RunList, twin: &mut Twin, op: Op) -> Result<(), TestCaseError> {
        let at = |twin: &Twin, t: u32| twin.0.iter().position(|(task, _)| task.0 == t);
        match op {
            Op::First(t, entry) if at(twin, t).is_none() => {
                list.add_first(TaskId(t), entry);
                twin.0.insert(0, (TaskId(t), entry));
            }
            Op::Last(t, entry) if at(twin, t).is_none() => {
                list.add_last(TaskId(t), entry);
                twin.0.push((TaskId(t), entry));
            }
            Op::Remove(t) => {
                if let Some(at) = at(twin, t) {
                    list.remove(TaskId(t));
                    twin.0.remove(at);
                }
            }
            Op::Set(t, entry) => {
                if let Some(at) = at(twin, t) {
                    list.set(TaskId(t), entry);
                    twin.0[at].1 = entry;
                }
            }
            Op::Scan { cpu, mm, floor, banned } => {
                let (cpu, active) = (CpuId(cpu), ActiveMm::of(Mm(mm)));
                let found = list.scan(cpu, active, 15, floor, |t| t.0 % 7 != banned);
                prop_assert_eq!(found, twin.scan(cpu, active, floor, banned));
            }
            _ => {}
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn run_list_behaves_like_kernel_list(
            n_tasks in prop_oneof![Just(5u32), Just(40), Just(200)],
            seed_ops in prop::collection::vec(op(200), 0..600),
        ) {
            let mut list = RunList::new(8);
            let mut twin = Twin::default();
            for mut op in seed_ops {
                match &mut op {
                    Op::First(t, _) | Op::Last(t, _) | Op::Remove(t) | Op::Set(t, _) => *t %= n_tasks,
                    Op::Scan { .. } => {}
                }
                apply(&mut list, &mut twin, op)?;
                prop_assert_eq!(list.len(), twin.0.len());
                prop_assert_eq!(list.check(), Ok(()));
            }
            prop_assert_eq!(list.iter().collect::<Vec<_>>(), twin.0);
        }
    }

    #[test]
    fn run_list_used_as_queue_does_not_grow() {
        let mut list = RunList::new(100);
        let entry = Entry { weight: 26, processor: 0, mm: 0 };
        let capacity = list.task.capacity();
        for t in 0..60 {
            list.add_first(TaskId(t), entry);
        }
        for round in 0..10_000 {
            let t = TaskId(round % 60);
            list.remove(t);
            if round % 3 == 0 { list.add_last(t, entry) } else { list.add_first(t, entry) }
        }
        assert_eq!(list.task.capacity(), capacity);
        assert_eq!(list.len(), 60);
    }

    #[test]
    fn run_list_set_all_reaches_every_task() {
        let mut list = RunList::new(0);
        for t in [3, 1, 2] {
            list.add_first(TaskId(t), Entry::HELD);
        }
        list.remove(TaskId(1));
        list.set_all(|t| Entry { weight: t.0 as i32, processor: 0, mm: 0 });
        let seen: Vec<_> = list.iter().map(|(t, e)| (t.0, e.weight)).collect();
        assert_eq!(seen, vec![(2, 2), (3, 3)]);
    }
}
