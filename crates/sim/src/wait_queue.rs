// SPDX-License-Identifier: GPL-2.0-only
//! Queues of tasks that wait, linked through a table of one link a task.
//!
//! A task waits in at most one queue at a time, so queues never allocate.

use schedlab_units::TaskId;

/// Tasks in the order in which they will be served.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WaitQueue {
    head: Option<TaskId>,
    tail: Option<TaskId>,
    len: u32,
}

impl WaitQueue {
    pub(crate) const fn len(&self) -> u32 {
        self.len
    }
    /// The task to be served next.
    pub(crate) const fn first(&self) -> Option<TaskId> {
        self.head
    }
}

/// The links of all queues: the task behind each.
#[derive(Debug, Default)]
pub(crate) struct Links(Vec<Option<TaskId>>);

impl Links {
    /// Makes room for `task`.
    pub(crate) fn provide(&mut self, task: TaskId) {
        if task.index() >= self.0.len() {
            self.0.resize(task.index() + 1, None);
        }
    }
    /// Adds `task` as the last to be served.
    pub(crate) fn push_back(&mut self, queue: &mut WaitQueue, task: TaskId) {
        self.0[task.index()] = None;
        match queue.tail.replace(task) {
            Some(last) => self.0[last.index()] = Some(task),
            None => queue.head = Some(task),
        }
        queue.len += 1;
    }
    /// Adds `task` as the next to be served.
    pub(crate) fn push_front(&mut self, queue: &mut WaitQueue, task: TaskId) {
        self.0[task.index()] = queue.head.replace(task);
        if queue.tail.is_none() {
            queue.tail = Some(task);
        }
        queue.len += 1;
    }
    /// Takes the task to be served next.
    pub(crate) fn pop_front(&mut self, queue: &mut WaitQueue) -> Option<TaskId> {
        let task = queue.head?;
        queue.head = self.0[task.index()].take();
        if queue.head.is_none() {
            queue.tail = None;
        }
        queue.len -= 1;
        Some(task)
    }
    /// Takes `task` out, wherever it stands; nothing happens when it is not there.
    pub(crate) fn remove(&mut self, queue: &mut WaitQueue, task: TaskId) {
        let mut before = None;
        let mut at = queue.head;
        while let Some(here) = at {
            let next = self.0[here.index()];
            if here == task {
                match before {
                    None => queue.head = next,
                    Some(before) => self.0[TaskId::index(before)] = next,
                }
                if queue.tail == Some(task) {
                    queue.tail = before;
                }
                self.0[task.index()] = None;
                queue.len -= 1;
                return;
            }
            before = at;
            at = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn wait_queue_behaves_like_a_deque(ops in prop::collection::vec((0u8..4, 0u32..8), 0..80)) {
            let mut links = Links::default();
            links.provide(TaskId(7));
            let mut queue = WaitQueue::default();
            let mut twin = VecDeque::new();
            for (op, id) in ops {
                let task = TaskId(id);
                let waits = twin.contains(&task);
                match op {
                    0 if !waits => {
                        links.push_back(&mut queue, task);
                        twin.push_back(task);
                    }
                    1 if !waits => {
                        links.push_front(&mut queue, task);
                        twin.push_front(task);
                    }
                    2 => prop_assert_eq!(links.pop_front(&mut queue), twin.pop_front()),
                    3 => {
                        links.remove(&mut queue, task);
                        twin.retain(|t| *t != task);
                    }
                    _ => {}
                }
                prop_assert_eq!(queue.len() as usize, twin.len());
                prop_assert_eq!(queue.first(), twin.front().copied());
            }
            while let Some(task) = twin.pop_front() {
                prop_assert_eq!(links.pop_front(&mut queue), Some(task));
            }
        }
    }
}
