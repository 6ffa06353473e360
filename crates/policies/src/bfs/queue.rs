// SPDX-License-Identifier: GPL-2.0-only
//! The global queue: a FIFO list for each priority and a bitmap of those that are not empty.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use schedlab_units::TaskId;

use super::task::PRIO_LIMIT;

/// Marks the end of a list, and a task on no list.
const NONE: u32 = u32::MAX;

/// A task's place, indexed by task id; `prio` is [`PRIO_LIMIT`] for a task that is not queued.
#[derive(Clone, Copy, Debug)]
struct Node {
    prev: u32,
    next: u32,
    prio: u8,
    /// The task's deadline, which does not change while it is queued.
    deadline: u64,
}

impl Node {
    const OUT: Self = Self { prev: NONE, next: NONE, prio: PRIO_LIMIT, deadline: 0 };
}

#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
}

/// All tasks that wait for a CPU.
#[derive(Clone, Debug)]
pub(super) struct Queue {
    lists: [List; PRIO_LIMIT as usize],
    /// Bit p is set while list p is not empty.
    bitmap: u128,
    nodes: Vec<Node>,
    len: usize,
}

impl Queue {
    /// An empty queue with room for `n` tasks.
    pub(super) fn new(n: usize) -> Self {
        Self {
            lists: [List { head: NONE, tail: NONE }; PRIO_LIMIT as usize],
            bitmap: 0,
            nodes: Vec::with_capacity(n),
            len: 0,
        }
    }
    /// Makes a place for `task`.
    pub(super) fn provide(&mut self, task: TaskId) {
        if task.index() >= self.nodes.len() {
            self.nodes.resize(task.index() + 1, Node::OUT);
        }
    }
    /// Number of waiting tasks (`qnr`).
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }
    /// Whether `task` waits.
    #[inline]
    pub(super) fn contains(&self, task: TaskId) -> bool {
        self.nodes[task.index()].prio != PRIO_LIMIT
    }
    /// Adds `task` at the tail of list `prio`.
    ///
    /// Source: 0.357 `sched_bfs.c` `enqueue_task`; spec §4.2 step 4.
    pub(super) fn push(&mut self, task: TaskId, prio: u8, deadline: u64) {
        assert!(!self.contains(task), "task {task} is queued already");
        let list = &mut self.lists[usize::from(prio)];
        let tail = core::mem::replace(&mut list.tail, task.0);
        if tail == NONE {
            list.head = task.0;
            self.bitmap |= 1 << prio;
        } else {
            self.nodes[tail as usize].next = task.0;
        }
        self.nodes[task.index()] = Node { prev: tail, next: NONE, prio, deadline };
        self.len += 1;
    }
    /// Takes `task` off its list.
    ///
    /// Source: 0.357 `sched_bfs.c` `dequeue_task`; spec §4.2.
    pub(super) fn remove(&mut self, task: TaskId) {
        assert!(self.contains(task), "task {task} is not queued");
        let node = core::mem::replace(&mut self.nodes[task.index()], Node::OUT);
        let list = &mut self.lists[usize::from(node.prio)];
        match node.prev {
            NONE => list.head = node.next,
            prev => self.nodes[prev as usize].next = node.next,
        }
        match node.next {
            NONE => list.tail = node.prev,
            next => self.nodes[next as usize].prev = node.prev,
        }
        if list.head == NONE {
            self.bitmap &= !(1 << node.prio);
        }
        self.len -= 1;
    }
    /// Priorities of lists that are not empty, the best first.
    pub(super) fn prios(&self) -> impl Iterator<Item = u8> + use<> {
        let mut left = self.bitmap;
        core::iter::from_fn(move || {
            let prio = (left != 0).then(|| left.trailing_zeros() as u8)?;
            left &= left - 1;
            Some(prio)
        })
    }
    /// Tasks of list `prio` with their deadlines, the head first.
    #[inline]
    pub(super) fn iter(&self, prio: u8) -> impl Iterator<Item = (TaskId, u64)> + '_ {
        let mut at = self.lists[usize::from(prio)].head;
        core::iter::from_fn(move || {
            let node = self.nodes.get(at as usize)?;
            let task = TaskId(at);
            at = node.next;
            Some((task, node.deadline))
        })
    }

    /// I9: links, bitmap and number agree.
    pub(super) fn check(&self) -> Result<(), String> {
        let mut n = 0;
        for prio in 0..PRIO_LIMIT {
            let list = &self.lists[usize::from(prio)];
            if (list.head != NONE) != (self.bitmap & 1 << prio != 0) {
                return Err(format!("bit {prio} of {:#x} is wrong for {list:?}", self.bitmap));
            }
            let mut before = NONE;
            for (task, _) in self.iter(prio) {
                let node = &self.nodes[task.index()];
                if node.prio != prio || node.prev != before {
                    return Err(format!("task {task} behind {before} on list {prio}: {node:?}"));
                }
                before = task.0;
                n += 1;
            }
            if list.tail != before {
                return Err(format!("list {prio} ends with {before}, not {}", list.tail));
            }
        }
        if n == self.len {
            Ok(())
        } else {
            Err(format!("{n} tasks are on the lists, not {}", self.len))
        }
    }
}
