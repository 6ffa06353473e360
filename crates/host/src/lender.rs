// SPDX-License-Identifier: GPL-2.0-only
//! Threads that lend their thread-local storage to processes without any (decision 0285).
//!
//! A lender lies in a bare system call while somebody else uses its storage. The kernel wakes it
//! when that one has left for good.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, WaitTimeoutResult};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::thread::futex;
use schedlab_policy_api::SchedClass;
use schedlab_units::Nanos;

use crate::calls;
use crate::process::{After, STACK, wait_for};
use crate::stack::Stack;
use crate::task::lock;

/// Whether this architecture's thread pointer is known; without it tasks are threads.
pub(crate) const AVAILABLE: bool = cfg!(all(
    target_pointer_width = "64",
    any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
));
/// Stack of a lender, which does nothing but wait and count.
const STACK_OF_LENDER: usize = 64 << 10;
/// How long somebody who finds no lender sleeps before looking around.
const LOOK: Duration = Duration::from_millis(20);

/// A lender's word: free, or its storage is in use. The kernel writes 0 when the borrower leaves.
const SLEEP: u32 = u32::MAX;
/// A lender's word: it is no longer needed.
const END: u32 = 1;

/// A thread that lends its storage.
pub(crate) struct Lender {
    pub(crate) word: AtomicU32,
    /// 1 = it no longer touches its storage.
    lies: AtomicU32,
    /// Number of the process that borrows.
    pub(crate) pid: AtomicI32,
    pub(crate) storage: usize,
    pub(crate) stack: Stack,
    /// What it does when that process is gone.
    pub(crate) after: Mutex<Option<After>>,
}

/// All lenders of a play.
#[derive(Default)]
pub(crate) struct Lenders {
    threads: Mutex<Vec<JoinHandle<()>>>,
    all: Mutex<Vec<Arc<Lender>>>,
    spare: Mutex<Vec<Arc<Lender>>>,
    offered: Condvar,
    /// 1 = there are too few lenders.
    wanted: AtomicU32,
    /// How many spare ones there should be.
    reserve: AtomicUsize,
    closed: AtomicBool,
}

impl Lenders {
    /// Makes lenders for `n` processes at once, and keeps `reserve` more from now on.
    ///
    /// # Errors
    /// When the host makes no more threads.
    pub(crate) fn provide(self: &Arc<Self>, n: usize, reserve: usize) -> io::Result<()> {
        self.reserve.store(reserve, Ordering::Relaxed);
        self.fill(n + reserve)?;
        let mut spare = lock(&self.spare);
        while spare.len() < n + reserve && !self.closed.load(Ordering::Relaxed) {
            (spare, _) = wait(&self.offered, spare);
        }
        if spare.len() < n + reserve { Err(io::ErrorKind::OutOfMemory.into()) } else { Ok(()) }
    }

    /// Sleeps until lenders are wanted, and makes them; at most for `limit`.
    ///
    /// # Errors
    /// When the host makes no more threads.
    pub(crate) fn tend(self: &Arc<Self>, limit: Duration) -> io::Result<()> {
        let limit = calls::timespec(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX));
        let _ = futex::wait(&self.wanted, futex::Flags::PRIVATE, 0, Some(&limit));
        if self.wanted.swap(0, Ordering::AcqRel) == 0 {
            return Ok(());
        }
        self.fill(self.reserve.load(Ordering::Relaxed))
    }

    fn fill(self: &Arc<Self>, n: usize) -> io::Result<()> {
        let missing = n.saturating_sub(lock(&self.spare).len());
        let mut threads = lock(&self.threads);
        for _ in 0..missing {
            let lenders = Arc::clone(self);
            let thread = std::thread::Builder::new().name("schedlab-lender".to_string());
            let made = thread.stack_size(STACK_OF_LENDER).spawn(move || lend(&lenders));
            threads.push(made.inspect_err(|_| self.shut())?);
        }
        Ok(())
    }

    /// Ends all lenders; no process may be left.
    pub(crate) fn close(&self) {
        self.shut();
        for lender in lock(&self.all).iter() {
            lender.word.store(END, Ordering::Release);
            let _ = futex::wake(&lender.word, futex::Flags::empty(), 1);
        }
        for thread in lock(&self.threads).drain(..) {
            let _ = thread.join();
        }
    }

    /// How many lenders there are, and how many of them are free.
    #[cfg(test)]
    pub(crate) fn count(&self) -> (usize, usize) {
        (lock(&self.threads).len(), lock(&self.spare).len())
    }

    fn shut(&self) {
        self.closed.store(true, Ordering::Release);
        self.offered.notify_all();
    }

    /// `lender` is free.
    pub(crate) fn offer(&self, lender: Arc<Lender>) {
        lock(&self.spare).push(lender);
        self.offered.notify_one();
    }

    /// A free lender, which no longer touches its storage; sleeps until there is one.
    ///
    /// # Errors
    /// When the host makes no more threads.
    pub(crate) fn borrow(&self) -> io::Result<Arc<Lender>> {
        let mut spare = lock(&self.spare);
        loop {
            if spare.len() <= self.reserve.load(Ordering::Relaxed) / 2 {
                self.wanted.store(1, Ordering::Release);
                let _ = futex::wake(&self.wanted, futex::Flags::PRIVATE, 1);
            }
            if let Some(lender) = spare.pop() {
                drop(spare);
                while lender.lies.load(Ordering::Acquire) == 0 {
                    let _ = futex::wait(&lender.lies, futex::Flags::PRIVATE, 0, None);
                }
                return Ok(lender);
            }
            if self.closed.load(Ordering::Acquire) {
                return Err(io::ErrorKind::OutOfMemory.into());
            }
            (spare, _) = wait(&self.offered, spare);
        }
    }
}

fn wait<'l, T>(
    condition: &Condvar,
    guard: MutexGuard<'l, T>,
) -> (MutexGuard<'l, T>, WaitTimeoutResult) {
    condition.wait_timeout(guard, LOOK).unwrap_or_else(PoisonError::into_inner)
}

/// The life of a lender.
fn lend(lenders: &Lenders) {
    calls::block_all_signals();
    // Of a class that preempts nobody: it only wakes to count out who has left.
    let _ = calls::set_sched(SchedClass::Batch, 0, 0, Nanos::ZERO, false);
    let Ok(stack) = Stack::new(STACK) else { return lenders.shut() };
    let lender = Arc::new(Lender {
        word: AtomicU32::new(SLEEP),
        lies: AtomicU32::new(0),
        pid: AtomicI32::new(0),
        storage: thread_pointer(),
        stack,
        after: Mutex::default(),
    });
    {
        let mut all = lock(&lenders.all);
        // Who comes after that is told by nobody.
        if lenders.closed.load(Ordering::Acquire) {
            return;
        }
        all.push(Arc::clone(&lender));
    }
    loop {
        lenders.offer(Arc::clone(&lender));
        sleep(&lender);
        if lender.word.compare_exchange(0, SLEEP, Ordering::AcqRel, Ordering::Acquire).is_err() {
            return;
        }
        let outcome = wait_for(lender.pid.load(Ordering::Acquire));
        let after = lock(&lender.after).take();
        if let Some(after) = after {
            after(outcome);
        }
    }
}

/// Sleeps while the word says so. From its first store on somebody else may use this thread's
/// storage, so nothing is called but the kernel, by functions that keep no `errno`.
#[inline(never)]
fn sleep(lender: &Lender) {
    lender.lies.store(1, Ordering::Release);
    let _ = futex::wake(&lender.lies, futex::Flags::PRIVATE, 1);
    while lender.word.load(Ordering::Acquire) == SLEEP {
        // The kernel's own wake-up at an exit is not a private one.
        let _ = futex::wait(&lender.word, futex::Flags::empty(), SLEEP, None);
    }
    lender.lies.store(0, Ordering::Release);
}

/// Where the calling thread's storage is.
fn thread_pointer() -> usize {
    let pointer: usize;
    #[cfg(all(target_pointer_width = "64", target_arch = "x86_64"))]
    // SAFETY: the ABI has the storage's address at its own beginning; nothing is written.
    unsafe {
        std::arch::asm!("mov {}, fs:0", out(reg) pointer, options(nostack, readonly, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads a register that user space may read.
    unsafe {
        std::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, nomem, preserves_flags));
    }
    #[cfg(target_arch = "riscv64")]
    // SAFETY: reads a register.
    unsafe {
        std::arch::asm!("mv {}, tp", out(reg) pointer, options(nostack, nomem, preserves_flags));
    }
    #[cfg(not(all(
        target_pointer_width = "64",
        any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")
    )))]
    {
        pointer = 0;
    }
    pointer
}
