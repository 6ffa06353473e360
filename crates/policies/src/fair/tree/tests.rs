// SPDX-License-Identifier: GPL-2.0-only
//! The tree against a naive twin: a list in order.

use super::*;
use proptest::prelude::*;

/// The naive twin: a list in order.
#[derive(Default)]
struct Twin {
    list: Vec<(TaskId, Keys)>,
    by_vruntime: bool,
}

impl Twin {
    fn insert(&mut self, task: TaskId, keys: Keys) {
        let later = |(_, other): &(TaskId, Keys)| {
            let tie = self.by_vruntime && keys.deadline == other.deadline;
            keys.deadline.before(other.deadline) || (tie && keys.vruntime.before(other.vruntime))
        };
        let at = self.list.iter().position(later).unwrap_or(self.list.len());
        self.list.insert(at, (task, keys));
    }
    fn remove(&mut self, task: TaskId) {
        self.list.retain(|(other, _)| *other != task);
    }
    fn first_eligible(&self, limit: VTime) -> Option<TaskId> {
        let eligible = |(_, keys): &&(TaskId, Keys)| !limit.before(keys.vruntime);
        self.list.iter().find(eligible).map(|(task, _)| *task)
    }
    fn min_vruntime(&self, base: VTime) -> Option<VTime> {
        self.list.iter().map(|(_, keys)| keys.vruntime).min_by_key(|v| v.delta(base))
    }
}

#[derive(Clone, Debug)]
enum Op {
    Toggle { task: u32, deadline: u8, vruntime: u8 },
    Pick { limit: u8 },
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => (0u32..48, 0u8..20, any::<u8>())
            .prop_map(|(task, deadline, vruntime)| Op::Toggle { task, deadline, vruntime }),
        1 => any::<u8>().prop_map(|limit| Op::Pick { limit }),
    ]
}

proptest! {
    #[test]
    fn tree_behaves_like_sorted_list(
        ops in prop::collection::vec(op(), 0..400),
        base in prop_oneof![Just(0), Just(u64::MAX - 100), any::<u64>()],
        by_vruntime in any::<bool>(),
    ) {
        let base = VTime(base);
        let tree = if by_vruntime { Tree::in_order_of_vruntime() } else { Tree::new() };
        let (mut nodes, mut tree, mut twin) =
            (Nodes::with_capacity(0), tree, Twin { by_vruntime, ..Twin::default() });
        for op in ops {
            match op {
                Op::Toggle { task, deadline, vruntime } => {
                    let task = TaskId(task);
                    nodes.provide(task);
                    if twin.list.iter().any(|(other, _)| *other == task) {
                        nodes.remove(&mut tree, task);
                        twin.remove(task);
                    } else {
                        let keys = Keys {
                            deadline: base.advance(u64::from(deadline)),
                            vruntime: base.advance(u64::from(vruntime)),
                            slice: u64::from(vruntime ^ deadline),
                        };
                        nodes.insert(&mut tree, task, keys);
                        twin.insert(task, keys);
                    }
                }
                Op::Pick { limit } => {
                    let limit = base.advance(u64::from(limit));
                    let picked = nodes.first_eligible(&tree, |v| !limit.before(v));
                    prop_assert_eq!(picked, twin.first_eligible(limit));
                }
            }
            prop_assert!(nodes.is_sound(&tree));
            prop_assert_eq!(tree.first(), twin.list.first().map(|(task, _)| *task));
            prop_assert_eq!(nodes.min_vruntime(&tree), twin.min_vruntime(base));
            let order: Vec<TaskId> = nodes.iter(&tree).collect();
            let expected: Vec<TaskId> = twin.list.iter().map(|(task, _)| *task).collect();
            prop_assert_eq!(order, expected);
        }
    }
}

#[test]
fn tree_of_many_entities_is_shallow() {
    let (mut nodes, mut tree) = (Nodes::with_capacity(0), Tree::new());
    for task in 0..10_000u32 {
        let key = VTime(u64::from(task));
        nodes.provide(TaskId(task));
        nodes.insert(&mut tree, TaskId(task), Keys { deadline: key, vruntime: key, slice: 1 });
    }
    let depth = |mut node: u32| {
        let mut depth = 0;
        while nodes.get(node).parent != NIL {
            node = nodes.get(node).parent;
            depth += 1;
        }
        depth
    };
    let deepest = (0..10_000).map(depth).max();
    assert!(deepest.is_some_and(|deepest| deepest < 50), "{deepest:?}");
}
