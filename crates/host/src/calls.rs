// SPDX-License-Identifier: GPL-2.0-only
//! System calls that the safe crates do not have, and the few that need a word of explanation.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::thread::ClockId;
use rustix::time::{Timespec, clock_getres, clock_gettime};
use schedlab_policy_api::SchedClass;
use schedlab_units::{Nanos, Time};

/// Signal that makes a blocked thread look whether it must end.
const NUDGE: libc::c_int = libc::SIGUSR1;
/// Signal that stands for the workload's own.
const SIGNAL: libc::c_int = libc::SIGUSR2;

fn time_of(at: Timespec) -> Time {
    Time::from_ns(at.tv_sec as u64 * 1_000_000_000 + at.tv_nsec as u64)
}

pub(crate) fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ }
}

/// `CLOCK_MONOTONIC`.
#[inline]
pub(crate) fn now() -> Time {
    time_of(clock_gettime(rustix::time::ClockId::Monotonic))
}

/// CPU time of the calling thread.
#[inline]
pub(crate) fn cpu_time() -> Nanos {
    Nanos::from_ns(time_of(clock_gettime(rustix::time::ClockId::ThreadCPUTime)).as_ns())
}

/// Length of a tick: the resolution of the coarse clock is exactly one.
pub(crate) fn tick() -> Nanos {
    Nanos::from_ns(time_of(clock_getres(rustix::time::ClockId::RealtimeCoarse)).as_ns())
}

/// Sleeps until `at`, or until a signal comes.
pub(crate) fn sleep_until(at: Time) -> io::Result<()> {
    let at = timespec(at.as_ns());
    Ok(rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &at)?)
}

extern "C" fn do_nothing(_signal: libc::c_int) {}

/// Gives the nudge a handler that does nothing, so that it ends blocking calls and nothing else.
pub(crate) fn handle_nudges() -> io::Result<()> {
    // SAFETY: an all-zero sigaction is a valid value, and its mask is then set by `sigemptyset`;
    // the handler touches nothing, which is safe in any context.
    let outcome = unsafe {
        let mut action = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
        action.sa_sigaction = do_nothing as *const () as libc::sighandler_t;
        libc::sigemptyset(&raw mut action.sa_mask);
        libc::sigaction(NUDGE, &raw const action, std::ptr::null_mut())
    };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Lets a fault end the calling process at once.
///
/// The language's own handler looks for a stack overflow with a lock that it trusts the end of the
/// process to release; where processes share memory that would stop the others for good.
pub(crate) fn let_faults_kill() {
    for fault in [libc::SIGSEGV, libc::SIGBUS] {
        // SAFETY: the default action is a valid one, and no handler of this process is replaced
        // that somebody relies on.
        unsafe { libc::signal(fault, libc::SIG_DFL) };
    }
}

fn set_of(signals: &[libc::c_int]) -> libc::sigset_t {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigemptyset` initialises the whole set before it is read.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in signals {
            libc::sigaddset(set.as_mut_ptr(), *signal);
        }
        set.assume_init()
    }
}

/// Keeps the workload's signal pending until it is waited for, and the user's signals away.
pub(crate) fn block_signals() {
    let set = set_of(&[SIGNAL, libc::SIGINT, libc::SIGTERM, libc::SIGHUP]);
    // SAFETY: the set is initialised, and the old mask is not asked for.
    unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) };
}

/// Keeps all signals away from the calling thread.
pub(crate) fn block_all_signals() {
    let mut set = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: `sigfillset` initialises the whole set before it is read; the old mask is not asked
    // for.
    unsafe {
        libc::sigfillset(set.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), std::ptr::null_mut());
    }
}

/// Takes the workload's signal; waits at most `limit` for it.
///
/// # Errors
/// `WouldBlock` when the time is over, `Interrupted` when another signal came.
pub(crate) fn wait_for_signal(limit: Option<Nanos>) -> io::Result<()> {
    let set = set_of(&[SIGNAL]);
    let limit = limit.map(|limit| libc::timespec {
        tv_sec: (limit.as_ns() / 1_000_000_000) as libc::time_t,
        tv_nsec: (limit.as_ns() % 1_000_000_000) as _,
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), |limit| limit as *const libc::timespec);
    // SAFETY: set and limit outlive the call, and no information is asked for.
    let signal = unsafe { libc::sigtimedwait(&raw const set, std::ptr::null_mut(), limit) };
    if signal >= 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// A thread in the kernel, with the process it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) tgid: u32,
    pub(crate) tid: u32,
}

impl Address {
    /// The calling thread's, asked of the kernel: a process with borrowed storage (`process`) has
    /// that of another thread in it.
    pub(crate) fn here() -> Self {
        let tgid = rustix::process::getpid().as_raw_pid() as u32;
        Self { tgid, tid: rustix::thread::gettid().as_raw_pid() as u32 }
    }
}

fn send(to: Address, signal: libc::c_int) {
    // SAFETY: sends a signal to a thread that plays; both signals are blocked or handled in every
    // one of them, and a thread that is gone is an error without effect.
    unsafe { libc::syscall(libc::SYS_tgkill, to.tgid, to.tid, signal) };
}

/// Makes a blocked thread that plays look around.
pub(crate) fn nudge(to: Address) {
    send(to, NUDGE);
}

/// Sends the workload's signal to a thread that plays; one already pending stays one.
pub(crate) fn signal(to: Address) {
    send(to, SIGNAL);
}

/// A file that may be executed and is of no format that a kernel knows.
///
/// It is text, because for other files some kernels look for a module first.
pub(crate) fn unknown_image() -> io::Result<OwnedFd> {
    let name = c"schedlab-image";
    let plain = MemfdFlags::CLOEXEC;
    // Kernels before 6.3 do not know the flag, and need none.
    let file =
        memfd_create(name, plain | MemfdFlags::EXEC).or_else(|_| memfd_create(name, plain))?;
    rustix::io::write(&file, b"no program, only what exec balancing needs to take place\n")?;
    Ok(file)
}

/// Lets the calling thread execute `image`, which the kernel refuses after it has looked for a CPU.
/// Returns how it refused.
pub(crate) fn exec(image: &OwnedFd) -> io::Error {
    let arguments = [c"schedlab".as_ptr(), std::ptr::null()];
    let environment = [std::ptr::null::<libc::c_char>()];
    // SAFETY: path and lists are terminated and outlive the call. The file is of no known format,
    // so the call returns and this program's image stays.
    unsafe {
        libc::syscall(
            libc::SYS_execveat,
            image.as_raw_fd(),
            c"".as_ptr(),
            arguments.as_ptr(),
            environment.as_ptr(),
            libc::AT_EMPTY_PATH,
        )
    };
    io::Error::last_os_error()
}

/// `struct sched_attr` in its first form, which every kernel since 3.14 takes.
#[repr(C)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// The kernel's number of the class that a policy which runs live schedules.
const SCHED_EXT: i32 = 7;

/// Sets the calling thread's scheduling parameters.
///
/// A slice is asked for by `sched_runtime`, which kernels before 6.12 ignore.
pub(crate) fn set_sched(
    class: SchedClass,
    nice: i32,
    priority: u8,
    slice: Nanos,
    ext: bool,
) -> io::Result<()> {
    let policy = match class {
        SchedClass::Normal | SchedClass::Batch if ext => SCHED_EXT,
        SchedClass::Normal => libc::SCHED_OTHER,
        SchedClass::Fifo => libc::SCHED_FIFO,
        SchedClass::Rr => libc::SCHED_RR,
        SchedClass::Batch => libc::SCHED_BATCH,
        SchedClass::Idle => libc::SCHED_IDLE,
        SchedClass::Iso => return Err(io::ErrorKind::Unsupported.into()),
    };
    let attr = SchedAttr {
        size: size_of::<SchedAttr>() as u32,
        policy: policy as u32,
        flags: 0,
        nice: if class.is_rt() { 0 } else { nice },
        priority: if class.is_rt() { u32::from(priority) } else { 0 },
        runtime: if class.is_rt() { 0 } else { slice.as_ns() },
        deadline: 0,
        period: 0,
    };
    // SAFETY: the structure is of the size it names and lives until the call returns.
    let outcome = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attr, 0) };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
