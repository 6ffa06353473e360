// SPDX-License-Identifier: GPL-2.0-only
//! The single priority array of each CPU: 151 lists and a bitmap.
//!
//! Lists are circular and linked by index through one table: first the heads of all CPUs' slots,
//! then the tasks. A task does not know its slot, so a promotion moves whole lists without visiting
//! their tasks; the last task of a list finds the slot by the head beside it.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use schedlab_units::{CpuId, TaskId};

/// The first slot for other than real-time tasks, `MAX_RT_PRIO`; the ceiling of promotion.
pub(super) const CEILING: u8 = 100;
/// The slot of the idle task, `IDLE_PRIO`.
pub(super) const IDLE_SLOT: u8 = 150;
/// Slots of a CPU.
const N_SLOTS: usize = IDLE_SLOT as usize + 1;
/// The bitmap of a CPU that only the idle task wants.
const ONLY_IDLE: [u64; 3] = [0, 0, 1 << (IDLE_SLOT - 128)];

#[derive(Clone, Copy, Debug)]
struct Link {
    prev: u32,
    next: u32,
}

/// The arrays of all CPUs. A task is in at most one list.
///
/// The idle task of each CPU always wants it: it is the permanent bit of slot 150.
#[derive(Debug)]
pub(super) struct Arrays {
    links: Vec<Link>,
    n_heads: u32,
    bits: Vec<[u64; 3]>,
}

impl Arrays {
    /// Empty arrays with room for `n_tasks`.
    pub(super) fn new(n_cpus: usize, n_tasks: usize) -> Self {
        let n_heads = u32::try_from(n_cpus * N_SLOTS).expect("at most 1024 CPUs");
        let mut links = Vec::with_capacity(n_cpus * N_SLOTS + n_tasks);
        links.extend((0..n_heads).map(|head| Link { prev: head, next: head }));
        Self { links, n_heads, bits: alloc::vec![ONLY_IDLE; n_cpus] }
    }
    /// Makes room for one more task.
    pub(super) fn grow(&mut self) {
        let node = self.links.len() as u32;
        self.links.push(Link { prev: node, next: node });
    }
    fn head(cpu: CpuId, slot: u8) -> u32 {
        cpu.0 * N_SLOTS as u32 + u32::from(slot)
    }
    fn node(&self, task: TaskId) -> u32 {
        self.n_heads + task.0
    }
    fn task(&self, node: u32) -> Option<TaskId> {
        node.checked_sub(self.n_heads).map(TaskId)
    }
    fn set(&mut self, cpu: CpuId, slot: u8) {
        self.bits[cpu.index()][usize::from(slot / 64)] |= 1 << (slot % 64);
    }
    fn clear(&mut self, cpu: CpuId, slot: u8) {
        self.bits[cpu.index()][usize::from(slot / 64)] &= !(1 << (slot % 64));
    }
    /// Whether a task is filed in `slot`; always true of the idle slot.
    pub(super) fn is_occupied(&self, cpu: CpuId, slot: u8) -> bool {
        self.bits[cpu.index()][usize::from(slot / 64)] >> (slot % 64) & 1 != 0
    }
    /// Whether `task` is in a list.
    pub(super) fn contains(&self, task: TaskId) -> bool {
        let node = self.node(task);
        self.links[node as usize].next != node
    }
    fn link(&mut self, node: u32, prev: u32, next: u32) {
        self.links[node as usize] = Link { prev, next };
        self.links[prev as usize].next = node;
        self.links[next as usize].prev = node;
    }
    /// Files `task` as the last of `slot`.
    ///
    /// Source: 2.6.6 `sched.c` `enqueue_task`.
    pub(super) fn push_tail(&mut self, cpu: CpuId, slot: u8, task: TaskId) {
        debug_assert!(!self.contains(task), "task {task} is filed twice");
        let (head, node) = (Self::head(cpu, slot), self.node(task));
        self.link(node, self.links[head as usize].prev, head);
        self.set(cpu, slot);
    }
    /// Files `task` just before `other`, in its list.
    pub(super) fn insert_before(&mut self, task: TaskId, other: TaskId) {
        debug_assert!(!self.contains(task) && self.contains(other), "{task} before {other}");
        let (node, next) = (self.node(task), self.node(other));
        self.link(node, self.links[next as usize].prev, next);
    }
    /// Takes `task` out of its list.
    ///
    /// Source: 2.6.6 `sched.c` `dequeue_task`; the way to the slot: spec §3.
    pub(super) fn remove(&mut self, task: TaskId) {
        debug_assert!(self.contains(task), "task {task} is not filed");
        let node = self.node(task);
        let Link { prev, next } = self.links[node as usize];
        self.links[prev as usize].next = next;
        self.links[next as usize].prev = prev;
        self.links[node as usize] = Link { prev: node, next: node };
        if prev == next {
            // Only the head is left beside it.
            let (cpu, slot) = (prev / N_SLOTS as u32, prev % N_SLOTS as u32);
            self.clear(CpuId(cpu), slot as u8);
        }
    }
    /// The first occupied slot from `from` on; the idle slot if there is no other.
    fn first_from(&self, cpu: CpuId, from: u8) -> u8 {
        let bits = &self.bits[cpu.index()];
        let mut word = usize::from(from / 64);
        let mut left = bits[word] & u64::MAX << (from % 64);
        while left == 0 {
            word += 1;
            left = bits[word];
        }
        word as u8 * 64 + left.trailing_zeros() as u8
    }
    /// The first task of the first occupied slot, with the slot; none = the idle task.
    pub(super) fn first(&self, cpu: CpuId) -> Option<(u8, TaskId)> {
        let slot = self.first_from(cpu, 0);
        let head = Self::head(cpu, slot);
        self.task(self.links[head as usize].next).map(|task| (slot, task))
    }
    /// The next occupied slot below `slot`, that is of worse priority, the idle one excluded.
    pub(super) fn next_occupied(&self, cpu: CpuId, slot: u8) -> Option<u8> {
        let next = self.first_from(cpu, slot + 1);
        (next != IDLE_SLOT).then_some(next)
    }
    /// Promotes every task of `cpu` below the ceiling by one slot; O(1) in the number of tasks.
    ///
    /// Source: P. Williams, 28 May 2004; spec §4.2 promotion.
    pub(super) fn promote(&mut self, cpu: CpuId) {
        for slot in CEILING + 1..IDLE_SLOT {
            if self.is_occupied(cpu, slot) {
                self.splice_tail(Self::head(cpu, slot), Self::head(cpu, slot - 1));
                self.clear(cpu, slot);
                self.set(cpu, slot - 1);
            }
        }
    }
    /// Appends the list of head `from`, which is not empty, to the list of head `to`.
    fn splice_tail(&mut self, from: u32, to: u32) {
        let Link { prev: last, next: first } = self.links[from as usize];
        let tail = self.links[to as usize].prev;
        self.links[tail as usize].next = first;
        self.links[first as usize].prev = tail;
        self.links[last as usize].next = to;
        self.links[to as usize].prev = last;
        self.links[from as usize] = Link { prev: from, next: from };
    }
    /// The tasks of a slot from the tail to the head.
    fn slot_backwards(&self, cpu: CpuId, slot: u8) -> impl Iterator<Item = TaskId> + '_ {
        let mut node = Self::head(cpu, slot);
        core::iter::from_fn(move || {
            node = self.links[node as usize].prev;
            self.task(node)
        })
    }
    /// The tasks of `cpu` as the balancer scans them: slots from 0 upwards, each from its tail.
    pub(super) fn scan(&self, cpu: CpuId) -> impl Iterator<Item = TaskId> + '_ {
        let mut from = 0;
        core::iter::from_fn(move || {
            let slot = self.first_from(cpu, from);
            from = slot + 1;
            (slot != IDLE_SLOT).then(|| self.slot_backwards(cpu, slot))
        })
        .flatten()
    }
    /// Slot of `task` and how many are ahead of it there; it is filed. Walks the list.
    pub(super) fn place(&self, task: TaskId) -> (u8, usize) {
        let mut node = self.links[self.node(task) as usize].prev;
        let mut ahead = 0;
        while node >= self.n_heads {
            node = self.links[node as usize].prev;
            ahead += 1;
        }
        ((node % N_SLOTS as u32) as u8, ahead)
    }
    /// I9 for `cpu`: bit set ⇔ list not empty, links agree both ways; calls `each` with every task
    /// and its slot.
    pub(super) fn check(
        &self,
        cpu: CpuId,
        mut each: impl FnMut(u8, TaskId) -> Result<(), String>,
    ) -> Result<(), String> {
        for slot in 0..=IDLE_SLOT {
            let head = Self::head(cpu, slot);
            let mut node = head;
            loop {
                let next = self.links[node as usize].next;
                if self.links[next as usize].prev != node {
                    return Err(format!("links {node} and {next} of CPU {cpu} disagree"));
                }
                node = next;
                let Some(task) = self.task(node) else { break };
                each(slot, task)?;
            }
            let is_empty = self.links[head as usize].next == head;
            if node != head || is_empty == (self.is_occupied(cpu, slot) && slot != IDLE_SLOT) {
                return Err(format!("slot {slot} of CPU {cpu}: bit and list disagree"));
            }
        }
        Ok(())
    }
}
