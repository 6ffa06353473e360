// SPDX-License-Identifier: GPL-2.0-only
//! A task as others see it: who it is, how it is woken, its children.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustix::thread::futex;
use schedlab_workload::ir::TemplateId;

use crate::calls::Address;

/// Locks; a task that panicked ends the play anyway.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Which children a task waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Waiting {
    #[default]
    No,
    One,
    All,
}

/// Children of a task.
#[derive(Debug, Default)]
pub(crate) struct Family {
    pub(crate) live: u64,
    pub(crate) zombies: u64,
    pub(crate) waiting: Waiting,
}

/// The process of one task or several.
#[derive(Debug, Default)]
pub(crate) struct Process {
    /// Its number in the kernel; 0 = not running yet.
    tgid: AtomicU32,
    /// Threads in it besides its first.
    pub(crate) threads: AtomicU32,
}

/// A task as it is played.
#[derive(Debug)]
pub(crate) struct Task {
    /// Index in the order of making.
    pub(crate) index: usize,
    pub(crate) template: TemplateId,
    pub(crate) instance: u32,
    pub(crate) parent: Option<Weak<Task>>,
    pub(crate) process: Arc<Process>,
    /// Kernel's number of its thread; 0 = not running yet.
    tid: AtomicU32,
    /// Whether a fatal signal was sent to it.
    pub(crate) killed: AtomicBool,
    pub(crate) in_sigwait: AtomicBool,
    /// Whether its program has ended.
    pub(crate) gone: AtomicBool,
    /// When the list it waited on was taken.
    pub(crate) served_at: AtomicU64,
    /// Whether its program ever waits for children.
    pub(crate) waits: bool,
    pub(crate) family: Mutex<Family>,
    /// 1 = a wake-up has come that was not taken yet.
    woken: AtomicU32,
}

impl Task {
    pub(crate) fn new(
        index: usize,
        template: TemplateId,
        instance: u32,
        parent: Option<Weak<Task>>,
        process: Arc<Process>,
        waits: bool,
    ) -> Self {
        Self {
            index,
            template,
            instance,
            parent,
            process,
            tid: AtomicU32::new(0),
            killed: AtomicBool::new(false),
            in_sigwait: AtomicBool::new(false),
            gone: AtomicBool::new(false),
            served_at: AtomicU64::new(0),
            waits,
            family: Mutex::default(),
            woken: AtomicU32::new(0),
        }
    }

    /// Sleeps until [`Task::unpark`]; false when `ended` came first.
    pub(crate) fn park(&self, ended: impl Fn() -> bool) -> bool {
        loop {
            if self.woken.swap(0, Ordering::AcqRel) == 1 {
                return true;
            }
            if ended() {
                return false;
            }
            // An early return for any reason only leads to another look.
            let _ = futex::wait(&self.woken, futex::Flags::PRIVATE, 0, None);
        }
    }

    /// Wakes the task, or lets its next [`Task::park`] return at once.
    pub(crate) fn unpark(&self) {
        self.woken.store(1, Ordering::Release);
        let _ = futex::wake(&self.woken, futex::Flags::PRIVATE, 1);
    }

    /// It runs, and signals reach it there from now on.
    pub(crate) fn found_at(&self, at: Address) {
        self.process.tgid.store(at.tgid, Ordering::Release);
        self.tid.store(at.tid, Ordering::Release);
    }

    /// Where signals reach it, once it runs.
    pub(crate) fn address(&self) -> Option<Address> {
        match self.tid.load(Ordering::Acquire) {
            0 => None,
            tid => Some(Address { tgid: self.process.tgid.load(Ordering::Acquire), tid }),
        }
    }

    /// A child's program has ended.
    pub(crate) fn child_gone(&self) {
        let mut family = lock(&self.family);
        family.live = family.live.saturating_sub(1);
        if !self.waits {
            return;
        }
        family.zombies += 1;
        let satisfied = match family.waiting {
            Waiting::No => false,
            Waiting::One => true,
            Waiting::All => family.live == 0,
        };
        if satisfied {
            family.waiting = Waiting::No;
            drop(family);
            self.unpark();
        }
    }

    /// Collects children that have exited; false = sleep and ask again.
    pub(crate) fn collect(&self, all: bool) -> bool {
        let mut family = lock(&self.family);
        if all {
            family.zombies = 0;
        } else if family.zombies > 0 {
            family.zombies -= 1;
            return true;
        }
        if family.live == 0 {
            return true;
        }
        family.waiting = if all { Waiting::All } else { Waiting::One };
        false
    }
}
