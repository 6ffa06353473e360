// SPDX-License-Identifier: GPL-2.0-only
//! The lists: one per CPU and one for all FIFO and RR tasks.
//!
//! A task is on at most one, so its links live in one table by task id. All operations but walking
//! take constant time; goodness and maxima are unknown here.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use schedlab_units::TaskId;

/// No task, and no queue.
const NONE: u32 = u32::MAX;

/// Where a task is.
#[derive(Clone, Copy, Debug)]
struct Link {
    /// Towards the head.
    prev: u32,
    /// Towards the tail.
    next: u32,
    queue: u32,
}

impl Link {
    const FREE: Self = Self { prev: NONE, next: NONE, queue: NONE };
}

/// The ends of a list.
#[derive(Clone, Copy, Debug)]
struct List {
    head: u32,
    tail: u32,
    len: usize,
}

/// Lists of tasks, numbered from 0.
#[derive(Clone, Debug)]
pub(super) struct Queues {
    lists: Vec<List>,
    /// Indexed by task id.
    links: Vec<Link>,
    n_tasks: usize,
}

impl Queues {
    /// `n_queues` empty lists with room for `n_tasks` in all.
    pub(super) fn new(n_queues: usize, n_tasks: usize) -> Self {
        let list = List { head: NONE, tail: NONE, len: 0 };
        Self { lists: alloc::vec![list; n_queues], links: Vec::with_capacity(n_tasks), n_tasks: 0 }
    }

    /// Number of tasks on list `queue`.
    #[inline]
    pub(super) fn len(&self, queue: usize) -> usize {
        self.lists[queue].len
    }
    /// Number of tasks on all lists.
    pub(super) fn total(&self) -> usize {
        self.n_tasks
    }
    /// The list that `task` is on.
    #[inline]
    pub(super) fn queue_of(&self, task: TaskId) -> Option<usize> {
        let link = self.links.get(task.index())?;
        (link.queue != NONE).then_some(link.queue as usize)
    }
    /// Tasks of list `queue` from head to tail.
    pub(super) fn iter(&self, queue: usize) -> impl Iterator<Item = TaskId> {
        let some = |task: u32| (task != NONE).then_some(TaskId(task));
        let next = move |task: &TaskId| some(self.links[task.index()].next);
        core::iter::successors(some(self.lists[queue].head), next)
    }

    /// Puts `task` at the head of list `queue`.
    ///
    /// # Panics
    /// When it is on a list.
    pub(super) fn add_first(&mut self, queue: usize, task: TaskId) {
        let head = self.lists[queue].head;
        self.insert(queue, task, NONE, head);
    }
    /// Puts `task` at the tail of list `queue`.
    ///
    /// # Panics
    /// When it is on a list.
    pub(super) fn add_last(&mut self, queue: usize, task: TaskId) {
        let tail = self.lists[queue].tail;
        self.insert(queue, task, tail, NONE);
    }
    /// Takes `task` off its list, whose number is returned.
    ///
    /// # Panics
    /// When it is on none.
    pub(super) fn remove(&mut self, task: TaskId) -> usize {
        let queue = self.queue_of(task).unwrap_or_else(|| panic!("task {task} is on no list"));
        let Link { prev, next, .. } = core::mem::replace(&mut self.links[task.index()], Link::FREE);
        self.join(queue, prev, next);
        self.lists[queue].len -= 1;
        self.n_tasks -= 1;
        queue
    }

    fn insert(&mut self, queue: usize, task: TaskId, prev: u32, next: u32) {
        assert!(self.queue_of(task).is_none(), "task {task} is on a list already");
        if task.index() >= self.links.len() {
            self.links.resize(task.index() + 1, Link::FREE);
        }
        self.links[task.index()] = Link { prev, next, queue: queue as u32 };
        self.join(queue, prev, task.0);
        self.join(queue, task.0, next);
        self.lists[queue].len += 1;
        self.n_tasks += 1;
    }

    /// Makes `prev` and `next` neighbours on list `queue`; none = its end.
    fn join(&mut self, queue: usize, prev: u32, next: u32) {
        match prev {
            NONE => self.lists[queue].head = next,
            prev => self.links[prev as usize].next = next,
        }
        match next {
            NONE => self.lists[queue].tail = prev,
            next => self.links[next as usize].prev = prev,
        }
    }

    /// I9: links lead both ways, every task is on the list it names, lengths and total are true.
    ///
    /// # Errors
    /// A sentence with the values that disagree.
    pub(super) fn check(&self) -> Result<(), String> {
        let mut n_tasks = 0;
        for (queue, list) in self.lists.iter().enumerate() {
            let (mut before, mut len) = (NONE, 0);
            for task in self.iter(queue) {
                let link = self.links[task.index()];
                if link.prev != before || link.queue as usize != queue || len > self.links.len() {
                    return Err(format!("task {task} after {before} on list {queue} has {link:?}"));
                }
                before = task.0;
                len += 1;
            }
            if list.tail != before || list.len != len {
                return Err(format!("list {queue} is {list:?} but has {len} tasks"));
            }
            n_tasks += len;
        }
        let n_linked = self.links.iter().filter(|link| link.queue != NONE).count();
        if n_tasks == self.n_tasks && n_linked == n_tasks {
            Ok(())
        } else {
            Err(format!("{} tasks are counted, {n_tasks} listed, {n_linked} linked", self.n_tasks))
        }
    }
}
