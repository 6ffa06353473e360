// SPDX-License-Identifier: GPL-2.0-only
//! The run list, laid out for a quick scan.
//!
//! The list is an array in list order whose END is the head, so that a wake-up is a push. A place
//! that a task left stays as a hole until enough of them have gathered. A scan goes over narrow
//! images of the entries and looks only where these promise more than it has found. Classes, ticks
//! and locks are unknown here.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use schedlab_units::TaskId;

use super::value::{Asker, AskerImage, Entry, Image};

/// Places examined at a time; a multiple of every vector width.
const BLOCK: usize = 32;
/// Marks a place without a task, and a task without a place.
const NONE: u32 = u32::MAX;

/// All runnable tasks in list order.
///
/// Places below `first` are free, those from `first` on hold tasks or holes; free places and holes
/// look like [`Entry::HELD`], so a scan may read them.
#[derive(Clone, Debug)]
pub(super) struct RunList {
    rows: Vec<Row>,
    /// [`Image::weight`] by place, and so on.
    weight: Vec<i16>,
    processor: Vec<u16>,
    mm: Vec<u16>,
    /// Place of each task, indexed by task id.
    place: Vec<u32>,
    /// The tail's place, or the length of the columns; at least [`BLOCK`].
    first: usize,
    /// Number of tasks.
    n: usize,
}

/// A place of the list.
#[derive(Clone, Copy, Debug)]
struct Row {
    task: u32,
    entry: Entry,
}

impl Row {
    const FREE: Self = Self { task: NONE, entry: Entry::HELD };
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
        // What `settle_holes` and `add_last` allow: n + n/2 + n/4 places and a few blocks.
        let room = 6 * BLOCK + 2 * n_tasks;
        let mut list = Self {
            rows: Vec::with_capacity(room),
            weight: Vec::with_capacity(room),
            processor: Vec::with_capacity(room),
            mm: Vec::with_capacity(room),
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
        let place = self.rows.len();
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
        for place in self.first..self.rows.len() {
            let task = self.rows[place].task;
            if task != NONE {
                self.set_entry(place, entry_of(TaskId(task)));
            }
        }
    }

    /// Tasks from head to tail with what the scan sees of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = (TaskId, Entry)> {
        let rows = self.rows[self.first..].iter().rev();
        rows.filter(|row| row.task != NONE).map(|row| (TaskId(row.task), row.entry))
    }

    /// The task of largest goodness for `asker`, the one nearest to the head among equals, provided
    /// it is above `floor`. `allowed` is asked only about tasks that would win so far.
    ///
    /// Source: 2.4.5 `sched.c` `schedule`; spec §4.7 S5.
    pub(super) fn scan(&self, asker: Asker, floor: i32, allowed: impl Fn(TaskId) -> bool) -> Best {
        let image = asker.image();
        let mut best = Best { goodness: floor, task: None };
        let mut end = self.rows.len();
        while end > self.first {
            // `first` is at least BLOCK, so the last block may reach into free places.
            let start = end - BLOCK;
            if i32::from(self.ceiling(start, image)) > best.goodness {
                for row in self.rows[start.max(self.first)..end].iter().rev() {
                    let goodness = row.entry.goodness(asker);
                    if goodness > best.goodness && allowed(TaskId(row.task)) {
                        best = Best { goodness, task: Some(TaskId(row.task)) };
                    }
                }
            }
            end = start;
        }
        best
    }

    /// What no goodness among the [`BLOCK`] places from `start` on exceeds.
    #[inline]
    fn ceiling(&self, start: usize, asker: AskerImage) -> i16 {
        let places = start..start + BLOCK;
        let weights = self.weight[places.clone()].iter();
        let columns = weights.zip(&self.processor[places.clone()]).zip(&self.mm[places]);
        columns
            .map(|((&weight, &processor), &mm)| Image { weight, processor, mm }.ceiling(asker))
            .fold(i16::MIN, i16::max)
    }

    #[inline]
    fn set_entry(&mut self, place: usize, entry: Entry) {
        let image = entry.image();
        self.rows[place].entry = entry;
        self.weight[place] = image.weight;
        self.processor[place] = image.processor;
        self.mm[place] = image.mm;
    }

    #[inline]
    fn put(&mut self, place: usize, task: TaskId, entry: Entry) {
        self.set_entry(place, entry);
        self.rows[place].task = task.0;
        self.place[task.index()] = u32::try_from(place).expect("the list is shorter than 2^32");
    }

    fn clear(&mut self, place: usize) {
        self.set_entry(place, Entry::HELD);
        self.rows[place].task = NONE;
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

    /// Lengthens the array with free places.
    fn grow_to(&mut self, len: usize) {
        let image = Entry::HELD.image();
        self.rows.resize(len, Row::FREE);
        self.weight.resize(len, image.weight);
        self.processor.resize(len, image.processor);
        self.mm.resize(len, image.mm);
    }

    fn truncate(&mut self, len: usize) {
        self.rows.truncate(len);
        self.weight.truncate(len);
        self.processor.truncate(len);
        self.mm.truncate(len);
    }

    /// Drops holes at both ends, and packs the list once holes are a third of what a scan reads or
    /// there are more free places than `add_last` would make.
    fn settle_holes(&mut self) {
        let mut len = self.rows.len();
        while len > self.first && self.rows[len - 1].task == NONE {
            len -= 1;
        }
        self.truncate(len);
        while self.first < len && self.rows[self.first].task == NONE {
            self.first += 1;
        }
        let holes = len - self.first - self.n;
        if holes > self.n / 2 + BLOCK || self.first > self.n / 4 + 4 * BLOCK {
            self.repack(BLOCK);
        }
    }

    /// Closes all holes and leaves `first` free places below the tail.
    fn repack(&mut self, first: usize) {
        let mut to = self.first;
        for from in self.first..self.rows.len() {
            if self.rows[from].task != NONE {
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
            let Row { task, entry } = self.rows[from];
            self.clear(from);
            self.put(to, TaskId(task), entry);
        }
    }

    /// I9: the two directions of the index agree, images are true, free places look free, `n` counts.
    ///
    /// # Errors
    /// A sentence with the values that disagree.
    pub(super) fn check(&self) -> Result<(), String> {
        let mut n = 0;
        for (place, row) in self.rows.iter().enumerate() {
            let image = Image {
                weight: self.weight[place],
                processor: self.processor[place],
                mm: self.mm[place],
            };
            if image != row.entry.image() {
                return Err(format!("place {place} holds {row:?} but shows {image:?}"));
            }
            if row.task == NONE {
                if row.entry != Entry::HELD {
                    return Err(format!("place {place} is free but holds {row:?}"));
                }
            } else {
                n += 1;
                if place < self.first || self.place[row.task as usize] as usize != place {
                    return Err(format!("{row:?} lies at place {place}, not where it says"));
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
    use schedlab_units::CpuId;

    use crate::goodness::value::ActiveMm;

    /// The list as the kernel has it, head first, scanned as the text says.
    #[derive(Default)]
    struct Twin(Vec<(TaskId, Entry)>);

    impl Twin {
        fn scan(&self, asker: Asker, floor: i32, banned: u32) -> Best {
            let mut best = Best { goodness: floor, task: None };
            for (task, entry) in &self.0 {
                let goodness = entry.goodness(asker);
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
        let weight = prop_oneof![8 => 2..78, 1 => 1001..1100, 1 => -1..=0, 1 => Just(-(1 << 14))];
        let mm = prop_oneof![mm(), Just(Entry::ANY_MM)];
        (weight, 0u32..4, mm).prop_map(|(weight, processor, mm)| match weight {
            2..78 => Entry { weight, processor, mm },
            _ => Entry::fixed(weight),
        })
    }

    /// Some address spaces look alike in an image, some like a marker.
    fn mm() -> impl Strategy<Value = u32> {
        prop::sample::select(vec![0, 1, 1 << 16, (1 << 16) + 1, 0xfffd, 0xffff])
    }

    fn op(n_tasks: u32) -> impl Strategy<Value = Op> {
        prop_oneof![
            4 => (0..n_tasks, entry()).prop_map(|(t, e)| Op::First(t, e)),
            2 => (0..n_tasks, entry()).prop_map(|(t, e)| Op::Last(t, e)),
            4 => (0..n_tasks).prop_map(Op::Remove),
            1 => (0..n_tasks, entry()).prop_map(|(t, e)| Op::Set(t, e)),
            2 => (0u32..4, mm(), prop_oneof![Just(-1000), -1..60], 0u32..8)
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
                let asker = Asker { cpu: CpuId(cpu), active: ActiveMm::of(Mm(mm)), pcp: 15 };
                let found = list.scan(asker, floor, |t| t.0 % 7 != banned);
                prop_assert_eq!(found, twin.scan(asker, floor, banned));
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
            let mut list = RunList::new(n_tasks as usize);
            let capacity = list.rows.capacity();
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
            prop_assert_eq!(list.rows.capacity(), capacity, "room for all was made at the start");
        }
    }

    #[test]
    fn run_list_used_as_queue_does_not_grow() {
        let mut list = RunList::new(100);
        let entry = Entry { weight: 26, processor: 0, mm: 0 };
        let capacity = list.rows.capacity();
        for t in 0..60 {
            list.add_first(TaskId(t), entry);
        }
        for round in 0..10_000 {
            let t = TaskId(round % 60);
            list.remove(t);
            if round % 3 == 0 { list.add_last(t, entry) } else { list.add_first(t, entry) }
        }
        assert_eq!(list.rows.capacity(), capacity);
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
