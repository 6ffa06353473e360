// SPDX-License-Identifier: GPL-2.0-only
//! Rows of linux-2.6-spa §9 about the array: slots, promotion, its interval, merging; and the array
//! against a naive twin.

use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use proptest::prelude::*;
use schedlab_policy_api::SchedClass;
use schedlab_units::{CpuId, Hz, TaskId};

use super::rig::{CPU, Rig, tunables};
use crate::spa::array::{Arrays, IDLE_SLOT};
use crate::spa::tunables::Knobs;

#[test]
fn vectors_54_slot() {
    for (nice, sleep_avg_ms, slot) in
        [(0, 0, 130), (0, 1020, 120), (19, 0, 149), (-20, 1020, 100), (-20, 0, 110)]
    {
        let mut rig = Rig::new(1, "", true);
        let new = rig.process(nice);
        let task = rig.start(&new, sleep_avg_ms);
        assert_eq!(rig.inspect(task, "slot"), slot, "nice {nice}, {sleep_avg_ms} ms");
    }
}

#[test]
fn bonus_off_files_everybody_without_it() {
    let mut rig = Rig::new(1, "bonus=off", true);
    let new = rig.process(-5);
    let task = rig.start(&new, 1020);
    assert_eq!(rig.inspect(task, "slot"), 125);
    assert_eq!(rig.inspect(task, "bonus"), 10);
}

#[test]
fn vectors_55_promotion() {
    for (n, slot) in [(1, 129), (5, 125), (30, 100), (31, 100)] {
        let mut arrays = Arrays::new(1, 2);
        arrays.grow();
        arrays.grow();
        arrays.push_tail(CPU, 130, TaskId(0));
        arrays.push_tail(CPU, 42, TaskId(1));
        for _ in 0..n {
            arrays.promote(CPU);
        }
        assert_eq!(arrays.place(TaskId(0)), (slot, 0), "{n} promotions");
        assert_eq!(arrays.place(TaskId(1)), (42, 0), "{n} promotions");
        assert!(arrays.is_occupied(CPU, IDLE_SLOT));
        assert!(!arrays.is_occupied(CPU, IDLE_SLOT - 1));
    }
}

#[test]
fn promotion_leaves_real_time_and_idle_slots() {
    let mut rig = Rig::new(1, "", true);
    let mut new = rig.process(0);
    new.class = SchedClass::Rr;
    new.rt_priority = 57;
    let first = rig.start(&new, 0);
    let second = rig.start(&new, 0);
    rig.schedule(CPU);
    rig.run_ms(500);
    assert_eq!(rig.stat("promotions"), 4);
    assert_eq!((rig.inspect(first, "slot"), rig.inspect(second, "slot")), (42, 42));
}

#[test]
fn vectors_56_promotion_interval() {
    let knobs = Knobs::new(&tunables(""), 1, Hz::new(1000));
    let intervals = [2, 3, 5].map(|n| knobs.promotion_interval(n));
    assert_eq!(intervals, [110, 165, 275]);
    let hydra = Knobs::new(&tunables("promotion_multiplier=nr_running_minus_1"), 1, Hz::new(1000));
    assert_eq!(hydra.promotion_interval(2), 55);
    // One task: none, however long it runs.
    let mut rig = Rig::new(1, "", true);
    let new = rig.process(0);
    rig.start(&new, 0);
    rig.schedule(CPU);
    rig.run_ms(2000);
    assert_eq!(rig.stat("promotions"), 0);
}

/// The due time that has passed while one task was alone counts at the first tick with two.
#[test]
fn promotion_due_while_alone() {
    for (set, promotions) in [("", 1), ("reset_due_when_idle=on", 0)] {
        let mut rig = Rig::new(1, set, true);
        let new = rig.process(0);
        rig.start(&new, 0);
        rig.schedule(CPU);
        rig.run_ms(200);
        rig.start(&new, 0);
        rig.settle();
        rig.run_ms(1);
        assert_eq!(rig.stat("promotions"), promotions, "`{set}`");
        rig.run_ms(109);
        assert_eq!(rig.stat("promotions"), 1, "`{set}`");
    }
}

#[test]
fn vectors_57_merge_at_the_ceiling() {
    let mut arrays = Arrays::new(1, 3);
    for (task, slot) in [(0, 100), (1, 100), (2, 101)] {
        arrays.grow();
        arrays.push_tail(CPU, slot, TaskId(task));
    }
    arrays.promote(CPU);
    let order = [0, 1, 2].map(|task| arrays.place(TaskId(task)));
    assert_eq!(order, [(100, 0), (100, 1), (100, 2)]);
}

#[derive(Clone, Debug)]
enum Op {
    Push { cpu: u32, slot: u8, task: u32 },
    Before { task: u32, other: u32 },
    Remove { task: u32 },
    Promote { cpu: u32 },
}

const N_CPUS: u32 = 2;
const N_TASKS: u32 = 12;

fn op() -> impl Strategy<Value = Op> {
    let (cpu, task) = (|| 0..N_CPUS, || 0..N_TASKS);
    let slot = prop_oneof![0..IDLE_SLOT, 98..104u8, 60..70u8, 126..130u8, 147..150u8];
    prop_oneof![
        5 => (cpu(), slot, task()).prop_map(|(cpu, slot, task)| Op::Push { cpu, slot, task }),
        1 => (task(), task()).prop_map(|(task, other)| Op::Before { task, other }),
        3 => task().prop_map(|task| Op::Remove { task }),
        2 => cpu().prop_map(|cpu| Op::Promote { cpu }),
    ]
}

/// The same as queues that move task by task.
struct Naive {
    slots: Vec<Vec<VecDeque<u32>>>,
}

impl Naive {
    fn find(&self, task: u32) -> Option<(usize, usize, usize)> {
        self.slots.iter().enumerate().find_map(|(cpu, slots)| {
            slots.iter().enumerate().find_map(|(slot, queue)| {
                queue.iter().position(|t| *t == task).map(|at| (cpu, slot, at))
            })
        })
    }
    fn apply(&mut self, op: &Op, arrays: &mut Arrays) {
        match *op {
            Op::Push { cpu, slot, task } if self.find(task).is_none() => {
                self.slots[cpu as usize][usize::from(slot)].push_back(task);
                arrays.push_tail(CpuId(cpu), slot, TaskId(task));
            }
            Op::Before { task, other } if self.find(task).is_none() => {
                let Some((cpu, slot, at)) = self.find(other) else { return };
                self.slots[cpu][slot].insert(at, task);
                arrays.insert_before(TaskId(task), TaskId(other));
            }
            Op::Remove { task } => {
                let Some((cpu, slot, at)) = self.find(task) else { return };
                self.slots[cpu][slot].remove(at);
                arrays.remove(TaskId(task));
            }
            Op::Promote { cpu } => {
                let slots = &mut self.slots[cpu as usize];
                for slot in 101..150 {
                    let moved = core::mem::take(&mut slots[slot]);
                    slots[slot - 1].extend(moved);
                }
                arrays.promote(CpuId(cpu));
            }
            Op::Push { .. } | Op::Before { .. } => {}
        }
    }
    fn compare(&self, arrays: &Arrays) {
        for (cpu, slots) in self.slots.iter().enumerate() {
            let id = CpuId::from_index(cpu);
            let mut filed = vec![VecDeque::new(); slots.len()];
            let note = |slot: u8, task: TaskId| {
                filed[usize::from(slot)].push_back(task.0);
                Ok(())
            };
            arrays.check(id, note).expect("consistent");
            assert_eq!(&filed, slots, "CPU {cpu}");
            let occupied = || (0..150u8).filter(|slot| !slots[usize::from(*slot)].is_empty());
            let first = occupied().next().map(|slot| (slot, slots[usize::from(slot)][0]));
            assert_eq!(arrays.first(id).map(|(slot, task)| (slot, task.0)), first);
            for from in [0, 63, 64, 99, 127, 128, 149] {
                let next = occupied().find(|slot| *slot > from);
                assert_eq!(arrays.next_occupied(id, from), next, "below {from}");
            }
            let scan: Vec<u32> = arrays.scan(id).map(|task| task.0).collect();
            let naive: Vec<u32> = slots.iter().flat_map(|q| q.iter().rev().copied()).collect();
            assert_eq!(scan, naive);
        }
        for task in 0..N_TASKS {
            let place = self.find(task).map(|(_, slot, at)| (slot as u8, at));
            assert_eq!(arrays.contains(TaskId(task)), place.is_some());
            if let Some(place) = place {
                assert_eq!(arrays.place(TaskId(task)), place);
            }
        }
    }
}

proptest! {
    #[test]
    fn array_behaves_like_plain_queues(ops in prop::collection::vec(op(), 1..300)) {
        let mut arrays = Arrays::new(N_CPUS as usize, 0);
        (0..N_TASKS).for_each(|_| arrays.grow());
        let mut naive = Naive { slots: vec![vec![VecDeque::new(); 151]; N_CPUS as usize] };
        for op in &ops {
            naive.apply(op, &mut arrays);
            naive.compare(&arrays);
        }
    }
}
