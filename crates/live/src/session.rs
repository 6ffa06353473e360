// SPDX-License-Identifier: GPL-2.0-only
//! A live run from its first record to the hand-over to the kernel's own scheduler.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use schedlab_policy_api::Policy;
use schedlab_units::{CpuId, CpuSet};

use crate::command::{Ended, Running, Start, cpu_mask, set_scheduler};
use crate::ending::{Ending, words};
use crate::host::{Host, LiveObserver};
use crate::kernel::{Counters, Kernel};
use crate::message::Message;
use crate::transcript::Input;

/// Priority of the host's thread among real-time tasks.
const HOST_PRIORITY: i32 = 50;
/// Longest sleep of the host; at least as often it looks whether the run is over.
const LOOK: Duration = Duration::from_millis(20);
/// Instructions to pause between two looks of a polling host.
const PAUSES: u32 = 16;
/// After this long without a record `explain` is told once.
const QUIET: Duration = Duration::from_millis(100);

/// How the host's thread runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostMode {
    /// SCHED_FIFO, asleep between records.
    Sleeping,
    /// An ordinary thread of nice −20 that polls on this CPU, which the policy does not use.
    Polling(CpuId),
}

/// How to run.
#[derive(Clone, Debug)]
pub struct SessionOptions {
    /// How the host's thread runs.
    pub mode: HostMode,
    /// How long the host looks for further records before it sleeps.
    pub linger: Duration,
    /// What is run; none = until `stop`.
    pub start: Option<Start>,
    /// Whether silences are explained on standard error.
    pub explain: bool,
    /// Faults to be made on purpose, for tests of the safety nets.
    pub fault: Option<Fault>,
}

/// A fault made on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The host stops answering after this time.
    Hang(Duration),
    /// The policy panics after this time.
    Panic(Duration),
}

/// Why a live run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The command ended.
    Command,
    /// The user ended it.
    Stopped,
    /// The kernel threw the scheduler out.
    Kernel(Ending),
    /// The policy or the host panicked.
    Panic(String),
    /// Talking to the kernel failed.
    Failed(String),
}

impl Outcome {
    /// Whether the policy was in charge to the end, so that the figures mean something.
    pub fn is_valid(&self) -> bool {
        matches!(self, Self::Command | Self::Stopped)
    }
}

/// What a live run leaves behind.
pub struct Session {
    /// Why it ended.
    pub outcome: Outcome,
    /// How the command ended, or why it did not start.
    pub command: Option<io::Result<Ended>>,
    /// Totals of the relay.
    pub counters: Counters,
    /// What the host could not have as it wanted.
    pub remarks: Vec<String>,
    /// CLOCK_MONOTONIC in ns at the end.
    pub end_ns: u64,
}

/// CLOCK_MONOTONIC in ns.
pub fn clock_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// Readies the calling thread to be the host: memory stays, the class is set. What was refused is
/// told.
pub fn prepare_thread(mode: HostMode) -> Vec<String> {
    let mut remarks = Vec::new();
    // SAFETY: a system call without pointers.
    if unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } < 0 {
        let error = io::Error::last_os_error();
        remarks.push(format!("memory could not be locked ({error}): decisions may wait for pages"));
    }
    match mode {
        HostMode::Sleeping => {
            let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
            if let Err(error) = set_scheduler(policy, HOST_PRIORITY) {
                remarks.push(format!(
                    "SCHED_FIFO was refused ({error}): the host runs as an ordinary thread of nice \
                     -20 and other threads may delay decisions"
                ));
                let _ = rustix::process::setpriority_process(None, -20);
            }
        }
        HostMode::Polling(cpu) => {
            let mask = cpu_mask(&CpuSet::single(cpu));
            // SAFETY: the mask outlives the call and has the size given.
            let pinned = unsafe {
                libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const mask)
            };
            if pinned < 0 {
                let error = io::Error::last_os_error();
                remarks.push(format!("the host could not be bound to CPU {cpu} ({error})"));
            }
            let _ = rustix::process::setpriority_process(None, -20);
        }
    }
    remarks
}

/// Runs until the command ends, `stop` is set, or the kernel takes over.
///
/// `tap` is told what goes into the host, just before. `between` is called at least every 20 ms, for
/// whoever wants to look at the host or change it.
pub fn run<P: Policy, O: LiveObserver>(
    host: &mut Host<P, O>,
    kernel: &mut impl Kernel,
    options: &SessionOptions,
    stop: &AtomicBool,
    mut tap: impl FnMut(Input<'_>),
    mut between: impl FnMut(&mut Host<P, O>, &Counters),
) -> Session {
    let running = options.start.clone().map(Running::start);
    // A panic of the policy is told by the outcome. Until the loop has ended, nothing may take time:
    // a back trace takes seconds, in which every task would wait.
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let mut state = Loop {
        batch: Vec::with_capacity(8192),
        begun: Instant::now(),
        last_look: Instant::now(),
        last_record: Instant::now(),
        explained: false,
    };
    let outcome = loop {
        let step = AssertUnwindSafe(|| state.step(host, kernel, options, &mut tap));
        match catch_unwind(step) {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                // A relay that was thrown out also fails to answer: its reason tells more.
                break kernel.left().map_or(Outcome::Failed(error.to_string()), Outcome::Kernel);
            }
            Err(cause) => break Outcome::Panic(words(cause.as_ref())),
        }
        if state.last_look.elapsed() >= LOOK {
            state.last_look = Instant::now();
            if let Some(left) = kernel.left() {
                break Outcome::Kernel(left);
            }
            if running.as_ref().is_some_and(Running::is_over) {
                break Outcome::Command;
            }
            if stop.load(Ordering::Relaxed) {
                break Outcome::Stopped;
            }
            between(host, &kernel.counters());
        }
    };
    let end_ns = clock_ns();
    let counters = kernel.counters();
    // From here on the kernel's own scheduler runs everything; only then the command is waited for.
    kernel.detach();
    std::panic::set_hook(hook);
    let _ = set_scheduler(libc::SCHED_OTHER, 0);
    let command = running.map(Running::wait);
    Session { outcome, command, counters, remarks: Vec::new(), end_ns }
}

struct Loop {
    batch: Vec<Message>,
    begun: Instant,
    last_look: Instant,
    last_record: Instant,
    explained: bool,
}

impl Loop {
    fn step<P: Policy, O: LiveObserver>(
        &mut self,
        host: &mut Host<P, O>,
        kernel: &mut impl Kernel,
        options: &SessionOptions,
        tap: &mut impl FnMut(Input<'_>),
    ) -> io::Result<()> {
        kernel.drain(Duration::ZERO, &mut self.batch)?;
        if self.batch.is_empty() && matches!(options.mode, HostMode::Polling(_)) {
            // The thread's core may serve another CPU as well.
            (0..PAUSES).for_each(|_| std::hint::spin_loop());
            kernel.drain(Duration::ZERO, &mut self.batch)?;
        }
        let patience = if self.batch.is_empty() { host.patience(LOOK) } else { Duration::ZERO };
        if self.batch.is_empty() && !options.linger.is_zero() {
            let until = Instant::now() + options.linger.min(patience);
            while self.batch.is_empty() && Instant::now() < until {
                std::hint::spin_loop();
                kernel.drain(Duration::ZERO, &mut self.batch)?;
            }
        }
        if self.batch.is_empty() {
            kernel.drain(patience, &mut self.batch)?;
        }
        self.make_fault(options.fault);
        if self.batch.is_empty() {
            self.explain(host, kernel, options);
        } else {
            self.last_record = Instant::now();
            self.explained = false;
            tap(Input::Records(&self.batch));
            return host.handle(kernel, &self.batch);
        }
        let clock = clock_ns();
        tap(Input::Clock { clock, acts: host.acts_at(clock) });
        host.pass_time(kernel, clock)
    }

    fn make_fault(&self, fault: Option<Fault>) {
        match fault {
            Some(Fault::Hang(after)) if self.begun.elapsed() >= after => {
                std::thread::sleep(Duration::from_secs(3600));
            }
            Some(Fault::Panic(after)) if self.begun.elapsed() >= after => {
                panic!("the policy panics on purpose");
            }
            _ => {}
        }
    }

    fn explain<P: Policy, O: LiveObserver>(
        &mut self,
        host: &Host<P, O>,
        kernel: &mut impl Kernel,
        options: &SessionOptions,
    ) {
        if options.explain && !self.explained && self.last_record.elapsed() >= QUIET {
            self.explained = true;
            eprint!("quiet for {} ms\n{}", QUIET.as_millis(), host.explain(kernel));
        }
    }
}
