// SPDX-License-Identifier: GPL-2.0-only
//! The queue and the processes against naive twins.

use alloc::vec::Vec;

use proptest::prelude::*;
use schedlab_units::TaskId;

use crate::bfs::groups::Groups;
use crate::bfs::queue::Queue;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// A push of a task that is not queued, else its removal; the twin is a plain list.
    #[test]
    fn queue_equals_a_plain_list(steps in prop::collection::vec((0u32..20, 0u8..103), 0..200)) {
        let mut queue = Queue::new(0);
        (0..20).for_each(|task| queue.provide(TaskId(task)));
        let mut twin: Vec<(u8, TaskId, u64)> = Vec::new();
        for (step, (task, prio)) in steps.into_iter().enumerate() {
            let task = TaskId(task);
            if let Some(at) = twin.iter().position(|(_, queued, _)| *queued == task) {
                prop_assert!(queue.contains(task));
                queue.remove(task);
                twin.remove(at);
            } else {
                prop_assert!(!queue.contains(task));
                queue.push(task, prio, step as u64);
                twin.push((prio, task, step as u64));
            }
            prop_assert_eq!(queue.check(), Ok(()));
            prop_assert_eq!(queue.len(), twin.len());
            let listed: Vec<(u8, TaskId, u64)> = queue
                .prios()
                .flat_map(|prio| queue.iter(prio).map(move |(task, at)| (prio, task, at)))
                .collect();
            let mut expected = twin.clone();
            // Stable: within a priority in order of arrival.
            expected.sort_by_key(|(prio, _, _)| *prio);
            prop_assert_eq!(listed, expected);
        }
    }
}

#[test]
fn a_process_lives_as_long_as_its_last_thread() {
    let mut groups = Groups::new(0);
    let started = groups.join_at_start(7, 0);
    assert_eq!(groups.join_at_start(7, 0), started);
    let forked = groups.create(3, (TaskId(0), 0));
    assert_ne!(forked, started);
    assert_eq!(groups.get(forked).threads_running, 3);
    groups.leave(started);
    assert_eq!(groups.join_at_start(7, 0), started, "one thread was left");
    groups.leave(started);
    groups.leave(started);
    let next = groups.join_at_start(7, 0);
    assert_eq!(next, started, "the slot is free for another process");
    assert_eq!(groups.n_slots(), 2);
}
