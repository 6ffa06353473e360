// SPDX-License-Identifier: GPL-2.0-only
//! Processes that share the memory of this one (decision 0285).
//!
//! A process is made by `clone` with `CLONE_VM`: it has a number, signal handlers and a death of its
//! own, and the kernel schedules, places and accounts it as any other. What it lacks is what a C
//! library gives a thread: thread-local storage. A sleeping thread lends it its own (`lender`).
//!
//! All processes are children of the one that plays, also those that a child asks for, so lenders
//! can wait for them, and none outlives the thread that began the play.

use std::ffi::{c_int, c_void};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use rustix::process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal};

use crate::calls;
use crate::lender::Lenders;
use crate::task::lock;

/// Stack of a process: room for the largest buffer of an operation, many times.
pub(crate) const STACK: usize = 192 << 10;
/// Exit status of a process that panicked.
const PANICKED: c_int = 101;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// Its work was done.
    Done,
    /// Its work panicked.
    Panicked,
    /// This signal ended it.
    Killed(i32),
}

type Body = Box<dyn FnOnce() + Send>;
pub(crate) type After = Box<dyn FnOnce(Outcome) + Send>;

/// Makes processes.
pub(crate) struct Processes {
    pub(crate) lenders: Arc<Lenders>,
    home: Pid,
}

/// What a process begins with.
struct Start {
    home: Pid,
    body: Body,
}

impl Processes {
    /// A maker without lenders, to be called by the process that all others are children of.
    pub(crate) fn new() -> Self {
        Self { lenders: Arc::default(), home: getpid() }
    }

    /// Makes a process that does `body`. A lender calls `after` when it and all its threads are gone.
    ///
    /// May be called by the process that plays and by each of its children.
    ///
    /// # Errors
    /// When the host makes no more processes.
    pub(crate) fn launch(&self, body: Body, after: After) -> io::Result<()> {
        let lender = self.lenders.borrow()?;
        *lock(&lender.after) = Some(after);
        let start = Box::into_raw(Box::new(Start { home: self.home, body }));
        let mut flags = libc::CLONE_VM
            | libc::CLONE_FILES
            | libc::CLONE_FS
            | libc::CLONE_SETTLS
            | libc::CLONE_PARENT_SETTID
            | libc::CLONE_CHILD_CLEARTID;
        if getpid() != self.home {
            flags |= libc::CLONE_PARENT;
        }
        // SAFETY: the stack is mapped, unused since the lender is free, and stays mapped while the
        // lender lives, which is in `all`; the lender lies in a bare system call, so nobody else
        // uses the storage, until the kernel clears `word`, which it does when the new process has
        // left user space for good. `start` is handed over, and both words live as long as the
        // lender.
        let made = unsafe {
            libc::clone(
                begin,
                lender.stack.top(),
                flags,
                start.cast::<c_void>(),
                lender.pid.as_ptr(),
                lender.storage as *mut c_void,
                lender.word.as_ptr(),
            )
        };
        if made >= 0 {
            return Ok(());
        }
        let error = io::Error::last_os_error();
        // SAFETY: no process was made that could have taken it.
        drop(unsafe { Box::from_raw(start) });
        lock(&lender.after).take();
        self.lenders.offer(lender);
        Err(error)
    }
}

/// The end of a process, and of all its threads.
pub(crate) fn wait_for(pid: i32) -> Outcome {
    let mut status = 0;
    loop {
        // SAFETY: `status` outlives the call.
        let got = unsafe { libc::waitpid(pid, &raw mut status, libc::__WALL) };
        if got == pid {
            break;
        }
        if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return Outcome::Killed(0);
        }
    }
    match status {
        _ if libc::WIFSIGNALED(status) => Outcome::Killed(libc::WTERMSIG(status)),
        _ if libc::WEXITSTATUS(status) == 0 => Outcome::Done,
        _ => Outcome::Panicked,
    }
}

/// The life of a process. Its return ends its first thread, not the process, and no handlers run
/// that are for the end of the process that plays.
extern "C" fn begin(start: *mut c_void) -> c_int {
    // SAFETY: it is what `launch` has handed over, once.
    let Start { home, body } = *unsafe { Box::from_raw(start.cast::<Start>()) };
    calls::let_faults_kill();
    let bound = set_parent_process_death_signal(Some(Signal::KILL));
    // Who died before that is no parent any more.
    if bound.is_err() || getppid() != Some(home) {
        return 0;
    }
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(()) => 0,
        Err(_) => PANICKED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::thread::futex;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::sync::mpsc::channel;
    use std::time::Duration;

    /// Runs `body` in a process and returns how it ended.
    fn ended(processes: &Processes, body: impl FnOnce() + Send + 'static) -> Outcome {
        let (tell, told) = channel();
        let after = move |outcome| tell.send(outcome).expect("somebody listens");
        processes.launch(Box::new(body), Box::new(after)).expect("a process");
        told.recv().expect("an outcome")
    }

    fn some() -> Processes {
        let processes = Processes::new();
        processes.lenders.provide(2, 0).expect("lenders");
        processes
    }

    #[test]
    fn process_has_a_number_of_its_own_and_shares_memory() {
        let processes = some();
        let home = getpid();
        let (tell, told) = channel();
        let outcome = ended(&processes, move || {
            tell.send((getpid(), getppid())).expect("somebody listens");
        });
        processes.lenders.close();
        let (pid, parent) = told.recv().expect("sent before the end");
        assert_eq!((outcome, parent), (Outcome::Done, Some(home)));
        assert_ne!(pid, home);
    }

    #[test]
    fn threads_of_a_process_are_counted_to_it_and_waited_for() {
        let processes = some();
        let seen = Arc::new(AtomicU32::new(0));
        for _ in 0..1000 {
            let seen = Arc::clone(&seen);
            let outcome = ended(&processes, move || {
                let pid = getpid();
                std::thread::spawn(move || {
                    let buffers: Vec<Vec<u8>> = (0..20).map(|n| vec![1; n * 100]).collect();
                    let one = u32::from(getpid() == pid && buffers.len() == 20);
                    seen.fetch_add(one, Ordering::Relaxed);
                });
            });
            assert_eq!(outcome, Outcome::Done);
        }
        processes.lenders.close();
        assert_eq!(seen.load(Ordering::Relaxed), 1000);
    }

    #[test]
    fn process_of_a_process_is_a_child_of_the_first() {
        let processes = Arc::new(some());
        let home = getpid();
        let (tell, told) = channel();
        let again = Arc::clone(&processes);
        let outcome = ended(&processes, move || {
            let outer = getpid();
            let body = move || {
                tell.send((getpid() != outer, getppid())).expect("somebody listens");
            };
            again.launch(Box::new(body), Box::new(|_| ())).expect("a process");
        });
        assert_eq!(outcome, Outcome::Done);
        assert_eq!(told.recv(), Ok((true, Some(home))));
        // Its storage is free again once both lenders are.
        while processes.lenders.count().1 < 2 {
            std::thread::yield_now();
        }
        processes.lenders.close();
    }

    #[test]
    fn panic_in_a_process_is_told_and_nothing_else_ends() {
        let processes = some();
        let outcome = ended(&processes, || std::panic::resume_unwind(Box::new("on purpose")));
        assert_eq!(outcome, Outcome::Panicked);
        assert_eq!(ended(&processes, || ()), Outcome::Done);
        processes.lenders.close();
    }

    #[test]
    fn signal_from_outside_is_told() {
        let processes = some();
        let outcome = ended(&processes, || {
            rustix::process::kill_process(getpid(), Signal::KILL).expect("a signal");
        });
        assert_eq!(outcome, Outcome::Killed(9));
        let outcome = ended(&processes, || {
            rustix::process::kill_process(getpid(), Signal::SEGV).expect("a signal");
        });
        assert_eq!(outcome, Outcome::Killed(11));
        processes.lenders.close();
    }

    #[test]
    fn reserve_is_filled_when_it_is_half_empty() {
        let processes = Processes::new();
        processes.lenders.provide(0, 4).expect("lenders");
        let gate = Arc::new(AtomicU32::new(0));
        for _ in 0..3 {
            let gate = Arc::clone(&gate);
            let body = move || {
                while gate.load(Ordering::Acquire) == 0 {
                    let _ = futex::wait(&gate, futex::Flags::PRIVATE, 0, None);
                }
            };
            processes.launch(Box::new(body), Box::new(|_| ())).expect("a process");
        }
        processes.lenders.tend(Duration::ZERO).expect("lenders");
        assert_eq!(processes.lenders.count().0, 7);
        gate.store(1, Ordering::Release);
        let _ = futex::wake(&gate, futex::Flags::PRIVATE, u32::MAX >> 1);
        while processes.lenders.count().1 < 7 {
            std::thread::yield_now();
        }
        processes.lenders.close();
    }
}
