// SPDX-License-Identifier: GPL-2.0-only
//! Recording this machine, or a command and all it starts.

use std::fmt;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use schedlab_trace::{ReadSummary, RecordSink};
use schedlab_units::Nanos;
use thiserror::Error;

use crate::calls;
use crate::tracefs::{Instance, Wanted};

/// How often the buffers are emptied.
const PERIOD: Duration = Duration::from_millis(50);

/// So many periods a command has to end when it is asked to.
const GRACE: u32 = 100;

/// What to record.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// Command with its arguments; empty = the whole machine until the end.
    pub command: Vec<String>,
    /// Whether the whole machine is recorded while the command runs.
    pub whole_system: bool,
    /// Size of each CPU's buffer in KiB.
    pub buffer_kib: u32,
    /// When to end at the latest.
    pub length: Option<Nanos>,
}

/// Why there is no recording.
#[derive(Debug, Error)]
pub enum RecordError {
    /// All that is missing and how to mend it, a sentence each.
    #[error("this host lacks: {}", .0.join("; "))]
    Lacks(Vec<String>),
    /// The command cannot be run.
    #[error("{0}")]
    Command(String),
    /// It failed on the way.
    #[error("the recording failed: {0}")]
    Failed(String),
}

/// How a recording ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Its time was over, or the user ended it.
    Itself,
    /// The command ended with this code; 128 and the number of a signal that killed it.
    Command(u8),
}

/// What was recorded.
#[derive(Debug)]
pub struct Recorded {
    /// Numbers of what was found.
    pub summary: ReadSummary,
    /// Events that the kernel's buffers lost.
    pub lost: u64,
    /// How it ended.
    pub ended: Ended,
}

impl fmt::Display for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let span = self.summary.span.map_or(Nanos::ZERO, |(first, last)| last - first);
        write!(f, "recorded {} events in {span}", self.summary.records)?;
        for (name, count) in &self.summary.events {
            write!(f, "\n  {name}: {count}")?;
        }
        Ok(())
    }
}

/// Records into `sink` until the command ends, the time is over, or `stop` is set.
///
/// # Errors
/// [`RecordError`]; the instance in tracefs is removed and the command not left waiting in any case.
pub fn record(
    options: &RecordOptions,
    sink: &mut dyn RecordSink,
    stop: &AtomicBool,
) -> Result<Recorded, RecordError> {
    let mut held = match options.command.as_slice() {
        [] => None,
        [program, arguments @ ..] => Some(Held::new(program, arguments)?),
    };
    let tree_of = held.as_ref().filter(|_| !options.whole_system).map(|held| held.child.id());
    let wanted = Wanted { buffer_kib: options.buffer_kib, tree_of };
    let mut instance = Instance::new(&wanted).map_err(RecordError::Lacks)?;
    let mut live = instance.reader(sink).map_err(RecordError::Failed)?;
    instance.start().map_err(RecordError::Failed)?;
    if let Some(held) = &mut held {
        held.release()?;
    }
    let end = options.length.map(|length| calls::now().saturating_add(length));
    let ended = loop {
        if let Some(code) = held.as_mut().and_then(Held::ended) {
            break Ended::Command(code);
        }
        if stop.load(Ordering::Relaxed) || end.is_some_and(|end| calls::now() >= end) {
            break Ended::Itself;
        }
        instance.drain(&mut live).map_err(RecordError::Failed)?;
        std::thread::sleep(PERIOD);
    };
    let finished = instance.finish(live).map_err(RecordError::Failed)?;
    Ok(Recorded { summary: finished.summary, lost: finished.overrun, ended })
}

/// A command that waits for leave to begin, so that nothing of it is missed.
struct Held {
    child: Child,
    /// The command begins when a byte comes; it ends when this is closed first.
    gate: Option<UnixStream>,
    name: String,
    done: bool,
}

impl Held {
    fn new(program: &str, arguments: &[String]) -> Result<Self, RecordError> {
        let failed = |error: io::Error| RecordError::Command(format!("{program}: {error}"));
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        // A spawn returns only when the exec has taken place, so the shell of POSIX waits instead
        // of the command: it reads a line and then becomes the command.
        let mut command = Command::new("/bin/sh");
        command
            .arg("-c")
            .arg("read -r _ <&3 && exec 3<&- && exec \"$@\"")
            .arg(program)
            .arg(program)
            .args(arguments);
        let gate = std::os::fd::OwnedFd::from(theirs);
        // SAFETY: between fork and exec only `dup2` and `fcntl` are called, which are
        // async-signal-safe; `gate` is owned by the closure and so still open there.
        unsafe {
            command.pre_exec(move || {
                use std::os::fd::AsRawFd;
                let outcome = match gate.as_raw_fd() {
                    3 => libc::fcntl(3, libc::F_SETFD, 0),
                    other => libc::dup2(other, 3),
                };
                if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
            });
        }
        let child = command.spawn().map_err(failed)?;
        // The closure's copy of the other end goes with the command.
        drop(command);
        Ok(Self { child, gate: Some(ours), name: program.to_string(), done: false })
    }

    fn release(&mut self) -> Result<(), RecordError> {
        let Some(mut gate) = self.gate.take() else { return Ok(()) };
        let written = gate.write_all(b"\n");
        written.map_err(|error| RecordError::Command(format!("{}: {error}", self.name)))?;
        // The other end is closed just before the command itself begins.
        let mut rest = [0];
        let _ = gate.read(&mut rest);
        Ok(())
    }

    /// The code of the command, once it has ended.
    fn ended(&mut self) -> Option<u8> {
        let status = self.child.try_wait().ok().flatten()?;
        self.done = true;
        let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
        Some(u8::try_from(code.unwrap_or(255)).unwrap_or(255))
    }
}

impl Drop for Held {
    /// A command that is still there is asked to end, as ^C does.
    fn drop(&mut self) {
        self.gate = None;
        if !self.done {
            // SAFETY: signals a child that has not been waited for, so its number is still its own.
            unsafe { libc::kill(self.child.id() as libc::pid_t, libc::SIGTERM) };
            for _ in 0..GRACE {
                if !matches!(self.child.try_wait(), Ok(None)) {
                    return;
                }
                std::thread::sleep(PERIOD);
            }
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
