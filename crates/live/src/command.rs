// SPDX-License-Identifier: GPL-2.0-only
//! The command that is run under the policy.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitStatus};
use std::thread::JoinHandle;

use schedlab_units::CpuSet;

/// The kernel's number of SCHED_EXT.
const SCHED_EXT: i32 = 7;
/// Timer slack of an ordinary process in ns; a child of a real-time thread would have none.
const TIMER_SLACK: u64 = 50_000;

/// How to start it.
#[derive(Clone, Debug)]
pub struct Start {
    /// Program and arguments.
    pub words: Vec<OsString>,
    /// CPUs that it may use.
    pub cpus: CpuSet,
    /// Whether it is to be a SCHED_EXT task, which its children inherit.
    pub as_ext: bool,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Its exit code, or 128 and the signal that killed it.
    pub code: i32,
}

impl From<ExitStatus> for Ended {
    fn from(status: ExitStatus) -> Self {
        let by_signal = status.signal().map(|signal| 128 + signal);
        Self { code: status.code().or(by_signal).unwrap_or(128) }
    }
}

/// The command under way.
pub struct Running(Option<JoinHandle<io::Result<Ended>>>);

impl Running {
    /// Starts it from a thread of its own: whoever starts a program waits until it has come to its
    /// first instruction, and it comes there only when the host has let it run.
    pub fn start(start: Start) -> Self {
        let starter = std::thread::Builder::new().name("starter".to_string());
        let handle = starter.spawn(move || run(&start));
        Self(handle.ok())
    }

    /// Whether it has ended, or could not be started.
    pub fn is_over(&self) -> bool {
        self.0.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for its end.
    ///
    /// # Errors
    /// Why it could not be started.
    pub fn wait(mut self) -> io::Result<Ended> {
        let Some(handle) = self.0.take() else {
            return Err(io::Error::other("no thread could be made to start it"));
        };
        handle.join().unwrap_or_else(|_| Err(io::Error::other("its starter failed")))
    }
}

fn run(start: &Start) -> io::Result<Ended> {
    set_scheduler(libc::SCHED_OTHER, 0)?;
    let (program, arguments) = start.words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(arguments);
    let cpus = cpu_mask(&start.cpus);
    let policy = if start.as_ext { SCHED_EXT } else { libc::SCHED_OTHER };
    // SAFETY: between fork and exec only system calls are made, no memory is taken.
    unsafe {
        command.pre_exec(move || prepare_child(&cpus, policy));
    }
    Ok(command.spawn()?.wait()?.into())
}

fn prepare_child(cpus: &libc::cpu_set_t, policy: i32) -> io::Result<()> {
    // SAFETY: the mask outlives the call and has the size given.
    let affinity = unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), cpus) };
    check(affinity)?;
    // SAFETY: system calls on the calling process without pointers.
    unsafe {
        check(libc::setpriority(libc::PRIO_PROCESS, 0, 0))?;
        check(libc::prctl(libc::PR_SET_TIMERSLACK, TIMER_SLACK))?;
    }
    set_scheduler(policy, 0)
}

fn check(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Sets class and priority of the calling thread.
pub(crate) fn set_scheduler(policy: i32, priority: i32) -> io::Result<()> {
    let param = libc::sched_param { sched_priority: priority };
    // SAFETY: the parameter outlives the call.
    check(unsafe { libc::sched_setscheduler(0, policy, &raw const param) })
}

/// The kernel's mask of a set of CPUs, as far as that mask reaches.
pub(crate) fn cpu_mask(cpus: &CpuSet) -> libc::cpu_set_t {
    // SAFETY: an array of integers, for which all zeroes are a value.
    let mut mask: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for cpu in cpus.iter().filter(|cpu| cpu.index() < libc::CPU_SETSIZE as usize) {
        // SAFETY: the index was checked.
        unsafe { libc::CPU_SET(cpu.index(), &mut mask) };
    }
    mask
}
