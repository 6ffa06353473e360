// SPDX-License-Identifier: GPL-2.0-only
//! Waiting entities in order of their virtual deadlines, with the smallest virtual time of every
//! subtree.
//!
//! A treap whose nodes lie in one table for all CPUs, indexed by task: nothing is allocated when a
//! task is queued. Equal deadlines keep the order of insertion, as in the kernel's tree, or on wish
//! that of virtual times; heights are logarithmic by pseudo-random priorities, which depend on
//! nothing but the order of insertions.

use alloc::vec::Vec;

use schedlab_units::{TaskId, VTime};

/// No node.
const NIL: u32 = u32::MAX;

/// Place of one task in a tree. The keys are constant while it is there.
#[derive(Clone, Copy, Debug)]
struct Node {
    deadline: VTime,
    vruntime: VTime,
    slice: u64,
    /// Smallest `vruntime` of the subtree.
    min_vruntime: VTime,
    /// Smallest `slice` of the subtree.
    min_slice: u64,
    parent: u32,
    left: u32,
    right: u32,
    /// Heap key: no node's is larger than its parent's.
    priority: u32,
}

impl Node {
    const FREE: Self = Self {
        deadline: VTime(0),
        vruntime: VTime(0),
        slice: 0,
        min_vruntime: VTime(0),
        min_slice: 0,
        parent: NIL,
        left: NIL,
        right: NIL,
        priority: 0,
    };
}

/// Keys of an entity that is put into a tree.
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    /// Orders the tree.
    pub(crate) deadline: VTime,
    /// Decides on eligibility.
    pub(crate) vruntime: VTime,
    /// Its smallest value is known for every subtree.
    pub(crate) slice: u64,
}

/// One CPU's tree; its nodes are in [`Nodes`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tree {
    root: u32,
    first: u32,
    len: u32,
    /// Among equal deadlines the smaller virtual time is first, not the earlier insertion.
    by_vruntime: bool,
    /// State of the generator of priorities.
    seed: u32,
}

impl Tree {
    /// An empty tree.
    pub(crate) const fn new() -> Self {
        Self { root: NIL, first: NIL, len: 0, by_vruntime: false, seed: 0x9e37_79b9 }
    }
    /// An empty tree that puts equal deadlines in order of virtual times, as trees keyed by those
    /// (before 6.8) find them.
    pub(crate) const fn in_order_of_vruntime() -> Self {
        Self { by_vruntime: true, ..Self::new() }
    }
    /// Whether an entity with `keys` belongs before `node`.
    #[inline]
    fn puts_before(&self, keys: Keys, node: &Node) -> bool {
        keys.deadline.before(node.deadline)
            || (self.by_vruntime
                && keys.deadline == node.deadline
                && keys.vruntime.before(node.vruntime))
    }
    /// Number of entities.
    pub(crate) fn len(&self) -> u32 {
        self.len
    }
    /// The entity with the earliest deadline. O(1).
    #[inline]
    pub(crate) fn first(&self) -> Option<TaskId> {
        id(self.first)
    }
    /// The next priority (xorshift32: never 0, period 2^32 − 1).
    fn next_priority(&mut self) -> u32 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 17;
        self.seed ^= self.seed << 5;
        self.seed
    }
}

#[inline]
fn id(node: u32) -> Option<TaskId> {
    (node != NIL).then_some(TaskId(node))
}

/// Nodes of all trees, indexed by task.
#[derive(Clone, Debug)]
pub(crate) struct Nodes {
    nodes: Vec<Node>,
}

impl Nodes {
    /// Room for `n_tasks` nodes.
    pub(crate) fn with_capacity(n_tasks: usize) -> Self {
        Self { nodes: Vec::with_capacity(n_tasks) }
    }
    /// Makes a node for `task` if there is none.
    pub(crate) fn provide(&mut self, task: TaskId) {
        if self.nodes.len() <= task.index() {
            self.nodes.resize(task.index() + 1, Node::FREE);
        }
    }
    #[inline]
    fn get(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }
    #[inline]
    fn get_mut(&mut self, node: u32) -> &mut Node {
        &mut self.nodes[node as usize]
    }

    /// Puts `task` behind all entities whose deadline is not later. Expected O(log n).
    pub(crate) fn insert(&mut self, tree: &mut Tree, task: TaskId, keys: Keys) {
        let node = task.0;
        let priority = tree.next_priority();
        let (mut parent, mut at, mut leftmost) = (NIL, tree.root, true);
        while at != NIL {
            parent = at;
            // Subtree minima on the way down include the new entity at once.
            let above = self.get_mut(at);
            if keys.vruntime.before(above.min_vruntime) {
                above.min_vruntime = keys.vruntime;
            }
            above.min_slice = above.min_slice.min(keys.slice);
            if tree.puts_before(keys, above) {
                at = above.left;
            } else {
                at = above.right;
                leftmost = false;
            }
        }
        *self.get_mut(node) = Node {
            deadline: keys.deadline,
            vruntime: keys.vruntime,
            slice: keys.slice,
            min_vruntime: keys.vruntime,
            min_slice: keys.slice,
            parent,
            left: NIL,
            right: NIL,
            priority,
        };
        if parent == NIL {
            tree.root = node;
        } else if tree.puts_before(keys, self.get(parent)) {
            self.get_mut(parent).left = node;
        } else {
            self.get_mut(parent).right = node;
        }
        if leftmost {
            tree.first = node;
        }
        tree.len += 1;
        while self.get(node).parent != NIL && self.get(self.get(node).parent).priority < priority {
            self.rotate_up(tree, node);
        }
    }

    /// Takes `task` out. Expected O(log n).
    pub(crate) fn remove(&mut self, tree: &mut Tree, task: TaskId) {
        let node = task.0;
        if tree.first == node {
            tree.first = self.successor_of_first(node);
        }
        loop {
            let Node { left, right, .. } = *self.get(node);
            let child = match (left, right) {
                (NIL, NIL) => break,
                (NIL, only) | (only, NIL) => only,
                (left, right) if self.get(left).priority > self.get(right).priority => left,
                (_, right) => right,
            };
            self.rotate_up(tree, child);
        }
        let parent = self.get(node).parent;
        self.replace_child(tree, parent, node, NIL);
        tree.len -= 1;
        let mut at = parent;
        while at != NIL && self.renew_minima(at) {
            at = self.get(at).parent;
        }
    }

    /// The entity after the first one, which has no left child.
    fn successor_of_first(&self, node: u32) -> u32 {
        let Node { right, parent, .. } = *self.get(node);
        if right == NIL { parent } else { self.leftmost(right) }
    }

    fn leftmost(&self, mut node: u32) -> u32 {
        while self.get(node).left != NIL {
            node = self.get(node).left;
        }
        node
    }

    /// The entity with the earliest deadline among those that `eligible` accepts by their virtual
    /// time; it must accept everything before whatever it accepts. Expected O(log n).
    ///
    /// Source: v6.12 `fair.c` `pick_eevdf`.
    pub(crate) fn first_eligible(
        &self,
        tree: &Tree,
        eligible: impl Fn(VTime) -> bool,
    ) -> Option<TaskId> {
        let first = id(tree.first)?;
        if eligible(self.get(first.0).vruntime) {
            return Some(first);
        }
        let mut at = tree.root;
        while at != NIL {
            let Node { left, right, vruntime, .. } = *self.get(at);
            if left != NIL && eligible(self.get(left).min_vruntime) {
                at = left;
            } else if eligible(vruntime) {
                return Some(TaskId(at));
            } else {
                at = right;
            }
        }
        None
    }

    /// Smallest virtual time in the tree. O(1).
    pub(crate) fn min_vruntime(&self, tree: &Tree) -> Option<VTime> {
        id(tree.root).map(|root| self.get(root.0).min_vruntime)
    }

    /// Smallest slice in the tree. O(1).
    pub(crate) fn min_slice(&self, tree: &Tree) -> Option<u64> {
        id(tree.root).map(|root| self.get(root.0).min_slice)
    }

    /// Whether what is stored with `task` are these keys.
    pub(crate) fn has_keys(&self, task: TaskId, keys: Keys) -> bool {
        let node = self.get(task.0);
        (node.deadline, node.vruntime, node.slice) == (keys.deadline, keys.vruntime, keys.slice)
    }

    /// Entities in order.
    pub(crate) fn iter(&self, tree: &Tree) -> impl Iterator<Item = TaskId> + '_ {
        let mut at = tree.first;
        core::iter::from_fn(move || {
            let task = id(at)?;
            let Node { right, mut parent, .. } = *self.get(at);
            if right != NIL {
                at = self.leftmost(right);
            } else {
                let mut child = at;
                while parent != NIL && self.get(parent).right == child {
                    child = parent;
                    parent = self.get(parent).parent;
                }
                at = parent;
            }
            Some(task)
        })
    }

    /// Whether the order, the minima, the links and the heap are right below the root.
    pub(crate) fn is_sound(&self, tree: &Tree) -> bool {
        let mut n = 0;
        let mut last: Option<VTime> = None;
        for task in self.iter(tree) {
            n += 1;
            let node = *self.get(task.0);
            if last.is_some_and(|last| node.deadline.before(last)) {
                return false;
            }
            last = Some(node.deadline);
            let (mut min_vruntime, mut min_slice) = (node.vruntime, node.slice);
            for child in [node.left, node.right].into_iter().filter(|child| *child != NIL) {
                let child = self.get(child);
                if child.parent != task.0 || child.priority > node.priority {
                    return false;
                }
                if child.min_vruntime.before(min_vruntime) {
                    min_vruntime = child.min_vruntime;
                }
                min_slice = min_slice.min(child.min_slice);
            }
            if (min_vruntime, min_slice) != (node.min_vruntime, node.min_slice) {
                return false;
            }
        }
        n == tree.len && (tree.root == NIL || self.leftmost(tree.root) == tree.first)
    }

    /// Computes the minima of `node` from its children; true when one changed.
    fn renew_minima(&mut self, node: u32) -> bool {
        let Node { left, right, vruntime, slice, .. } = *self.get(node);
        let (mut min_vruntime, mut min_slice) = (vruntime, slice);
        for child in [left, right] {
            if child != NIL {
                let child = self.get(child);
                if child.min_vruntime.before(min_vruntime) {
                    min_vruntime = child.min_vruntime;
                }
                min_slice = min_slice.min(child.min_slice);
            }
        }
        let this = self.get_mut(node);
        let changed = (this.min_vruntime, this.min_slice) != (min_vruntime, min_slice);
        (this.min_vruntime, this.min_slice) = (min_vruntime, min_slice);
        changed
    }

    /// Makes `node` the parent of its parent; the order stays.
    fn rotate_up(&mut self, tree: &mut Tree, node: u32) {
        let parent = self.get(node).parent;
        let grandparent = self.get(parent).parent;
        let inner = if self.get(parent).left == node {
            let inner = core::mem::replace(&mut self.get_mut(node).right, parent);
            self.get_mut(parent).left = inner;
            inner
        } else {
            let inner = core::mem::replace(&mut self.get_mut(node).left, parent);
            self.get_mut(parent).right = inner;
            inner
        };
        if inner != NIL {
            self.get_mut(inner).parent = parent;
        }
        self.get_mut(parent).parent = node;
        self.replace_child(tree, grandparent, parent, node);
        self.get_mut(node).parent = grandparent;
        // The subtree holds the same entities as before.
        let Node { min_vruntime, min_slice, .. } = *self.get(parent);
        let this = self.get_mut(node);
        (this.min_vruntime, this.min_slice) = (min_vruntime, min_slice);
        self.renew_minima(parent);
    }

    fn replace_child(&mut self, tree: &mut Tree, parent: u32, old: u32, new: u32) {
        if parent == NIL {
            tree.root = new;
        } else if self.get(parent).left == old {
            self.get_mut(parent).left = new;
        } else {
            self.get_mut(parent).right = new;
        }
    }
}

#[cfg(test)]
mod tests;
