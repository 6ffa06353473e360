// SPDX-License-Identifier: GPL-2.0-only
//! Processes: how many of their threads run, and who forked them.
//!
//! The kernel keeps the counter in the task record of the group leader; a place of its own outlives
//! every thread.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use schedlab_units::TaskId;

/// A task and the number of its slot's life.
pub(super) type Life = (TaskId, u32);

/// One process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    /// Threads that run or wait for a CPU, or the counter of the branch penalty.
    pub(super) threads_running: u32,
    /// The task that forked the process; none = it starts the workload.
    pub(super) parent: Option<Life>,
    /// Threads not yet collected.
    members: u32,
    /// Its number at the start of the workload.
    tgid: Option<u32>,
}

/// All processes.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    slots: Vec<Group>,
    free: Vec<u32>,
    /// Processes of the start of the workload, which may be created thread by thread.
    at_start: BTreeMap<u32, u32>,
}

impl Groups {
    /// No processes, with room for `n`.
    pub(super) fn new(n: usize) -> Self {
        Self {
            slots: Vec::with_capacity(n),
            free: Vec::with_capacity(n),
            at_start: BTreeMap::new(),
        }
    }
    /// A process of one thread forked by `parent`.
    pub(super) fn create(&mut self, threads_running: u32, parent: Life) -> u32 {
        self.add(Group { threads_running, parent: Some(parent), members: 1, tgid: None })
    }
    /// Process `tgid` of the start of the workload with one thread more.
    pub(super) fn join_at_start(&mut self, tgid: u32, threads_running: u32) -> u32 {
        if let Some(group) = self.at_start.get(&tgid).copied() {
            self.join(group);
            return group;
        }
        let group = Group { threads_running, parent: None, members: 1, tgid: Some(tgid) };
        let index = self.add(group);
        self.at_start.insert(tgid, index);
        index
    }
    fn add(&mut self, group: Group) -> u32 {
        if let Some(index) = self.free.pop() {
            self.slots[index as usize] = group;
            return index;
        }
        self.slots.push(group);
        // A later `leave` must not allocate.
        self.free.reserve(self.slots.len());
        self.slots.len() as u32 - 1
    }
    /// `group` has one thread more.
    pub(super) fn join(&mut self, group: u32) {
        self.get_mut(group).members += 1;
    }
    /// A thread of `group` is gone; so is the group with its last one.
    pub(super) fn leave(&mut self, group: u32) {
        let slot = self.get_mut(group);
        slot.members -= 1;
        if slot.members == 0 {
            if let Some(tgid) = slot.tgid {
                self.at_start.remove(&tgid);
            }
            self.free.push(group);
        }
    }
    /// The process with index `group`.
    #[inline]
    pub(super) fn get(&self, group: u32) -> &Group {
        &self.slots[group as usize]
    }
    /// The process with index `group`, to be changed.
    #[inline]
    pub(super) fn get_mut(&mut self, group: u32) -> &mut Group {
        &mut self.slots[group as usize]
    }
    /// Number of slots ever used.
    pub(super) fn n_slots(&self) -> usize {
        self.slots.len()
    }
}
