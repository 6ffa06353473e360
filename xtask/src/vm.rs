// SPDX-License-Identifier: GPL-2.0-only
//! A command in a guest: start, output while it comes, result, and the end in every case.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::accel::{self, Accel, Host};
use crate::args::VmArgs;
use crate::exit::{Failure, HOST, INTERRUPTED, NO_CODE, USAGE, tell};
use crate::follow::{Follower, last_lines};
use crate::qemu::{self, Files, Guest};
use crate::run_dir::RunDir;
use crate::tools::{self, Missing};
use crate::{initramfs, locate};

/// The emulator.
const QEMU: &str = "qemu-system-x86_64";
/// How often output and state of the guest are looked at.
const LOOK: Duration = Duration::from_millis(10);
/// Lines of the console that a failure shows.
const CONSOLE_LINES: usize = 40;
/// What a shell says of a command whose reader went away (128 + SIGPIPE).
const READER_GONE: u8 = 141;

/// Runs the command; its exit code.
///
/// # Errors
/// When the host cannot run a guest, or the guest ends without a code.
pub(crate) fn vm(args: &VmArgs) -> Result<u8, Failure> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        let why = "guests run this host's programs on an x86-64 Linux kernel: this host is another";
        return Err(Failure::new(HOST, why));
    }
    let (qemu, busybox) = tools()?;
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let host = Host { kvm_opens: Host::kvm_opens(), cpuinfo: &cpuinfo };
    let (accel, note) = accel::choose(args.accel, host)?;
    let kernel = locate::prepare(&locate::find(args.kernel.as_deref())?)?;
    let interrupted = interrupt_flag()?;

    let dir = RunDir::create()?;
    let out = output_directory(args.out.as_deref(), &dir)?;
    let initramfs = dir.join("initramfs.cpio");
    let archive = initramfs::archive(&busybox, &args.command.join(" "), &initramfs::directory()?);
    fs::write(&initramfs, archive).map_err(|error| cannot_write(&initramfs, &error))?;
    let console =
        if args.out.is_some() { out.join("console.log") } else { dir.join("console.log") };
    let (stdout, stderr) = (dir.join("stdout"), dir.join("stderr"));
    let (result, qemu_log) = (dir.join("result"), dir.join("qemu.log"));
    let arguments = qemu::arguments(&Guest {
        accel,
        cpus: args.cpus,
        memory: args.memory,
        kernel: &kernel,
        initramfs: &initramfs,
        out: &out,
        files: Files { console: &console, stdout: &stdout, stderr: &stderr, result: &result },
        verbose: args.verbose,
        append: &args.append,
    });

    let follow = |path: &Path| Follower::create(path).map_err(|error| cannot_write(path, &error));
    let mut streams =
        Streams { stdout: follow(&stdout)?, stderr: follow(&stderr)?, console: follow(&console)? };
    let log = File::create(&qemu_log).map_err(|error| cannot_write(&qemu_log, &error))?;
    if let Some(note) = note {
        tell(note);
    }
    let mut running = Running::start(&qemu, &arguments, log)?;
    let limit = Duration::from_nanos(args.timeout.as_ns());
    let end = running.wait(limit, &interrupted, || streams.copy(args.verbose))?;
    drop(running);
    if matches!(end, End::ReaderGone) {
        return Ok(READER_GONE);
    }
    if matches!(end, End::Interrupted) {
        return Err(Failure::new(INTERRUPTED, "interrupted; the guest was ended"));
    }
    let read = |path: &Path| fs::read(path).unwrap_or_default();
    code_of(&read(&result)).ok_or_else(|| {
        let report = report(&end, accel, args, &read(&qemu_log), &read(&console));
        Failure::new(NO_CODE, report)
    })
}

/// QEMU's path and busybox itself.
fn tools() -> Result<(PathBuf, Vec<u8>), Failure> {
    let qemu = tools::program(QEMU).ok_or(Missing { what: QEMU, package: "qemu-system-x86" });
    match (qemu, initramfs::busybox()) {
        (Ok(qemu), Ok(busybox)) => Ok((qemu, busybox)),
        (qemu, busybox) => {
            let missing: Vec<Missing> = qemu.err().into_iter().chain(busybox.err()).collect();
            Err(tools::lacks(&missing))
        }
    }
}

fn interrupt_flag() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&flag);
    ctrlc::set_handler(move || seen.store(true, Ordering::Relaxed))
        .map_err(|error| Failure::new(HOST, format!("cannot handle signals: {error}")))?;
    Ok(flag)
}

/// The directory that the guest has on /mnt.
fn output_directory(asked: Option<&Path>, dir: &RunDir) -> Result<PathBuf, Failure> {
    let path = asked.map_or_else(|| dir.join("out"), Path::to_path_buf);
    fs::create_dir_all(&path).and_then(|()| path.canonicalize()).map_err(|error| {
        let code = if asked.is_some() { USAGE } else { HOST };
        Failure::new(code, format!("cannot make the directory {}: {error}", path.display()))
    })
}

fn cannot_write(path: &Path, error: &io::Error) -> Failure {
    Failure::new(HOST, format!("cannot write {}: {error}", path.display()))
}

/// What comes out of the guest.
struct Streams {
    stdout: Follower,
    stderr: Follower,
    console: Follower,
}

impl Streams {
    /// Passes on what is new; says whether that was all.
    fn copy(&mut self, verbose: bool) -> io::Result<bool> {
        let console = !verbose || self.console.copy(&mut io::stderr().lock())?;
        let stdout = self.stdout.copy(&mut io::stdout().lock())?;
        let stderr = self.stderr.copy(&mut io::stderr().lock())?;
        Ok(console && stdout && stderr)
    }
}

/// Why there is no guest any more.
#[derive(Debug)]
enum End {
    /// QEMU ended.
    Itself(ExitStatus),
    /// The time limit was over.
    TimeLimit,
    /// ^C.
    Interrupted,
    /// Nobody reads our output any more.
    ReaderGone,
}

/// QEMU at work; dropping it ends it.
struct Running {
    child: Child,
}

impl Running {
    /// Starts QEMU in a process group of its own, so that ^C reaches only us.
    fn start(qemu: &Path, arguments: &[std::ffi::OsString], log: File) -> Result<Self, Failure> {
        // With setpriv the kernel ends QEMU should we be killed.
        let mut command = match tools::program("setpriv") {
            Some(setpriv) => {
                let mut command = Command::new(setpriv);
                command.args(["--pdeathsig", "KILL"]).arg(qemu);
                command
            }
            None => Command::new(qemu),
        };
        let also = log.try_clone();
        let started = also.and_then(|also| {
            command
                .args(arguments)
                .stdin(Stdio::null())
                .stdout(also)
                .stderr(log)
                .process_group(0)
                .spawn()
        });
        let child =
            started.map_err(|error| Failure::new(HOST, format!("cannot start {QEMU}: {error}")))?;
        Ok(Self { child })
    }

    /// Waits for the end, and calls `copy` again and again, until after the end that was all.
    fn wait(
        &mut self,
        limit: Duration,
        interrupted: &AtomicBool,
        mut copy: impl FnMut() -> io::Result<bool>,
    ) -> Result<End, Failure> {
        let start = Instant::now();
        loop {
            let status = self
                .child
                .try_wait()
                .map_err(|error| Failure::new(HOST, format!("cannot wait for {QEMU}: {error}")))?;
            let all = match copy() {
                Ok(all) => all,
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(End::ReaderGone),
                Err(error) => {
                    let why = format!("cannot pass on the guest's output: {error}");
                    return Err(Failure::new(HOST, why));
                }
            };
            match status {
                _ if interrupted.load(Ordering::Relaxed) => return Ok(End::Interrupted),
                Some(status) if all => return Ok(End::Itself(status)),
                None if start.elapsed() >= limit => return Ok(End::TimeLimit),
                _ if all => thread::sleep(LOOK),
                _ => {}
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Once it has been waited for, its number may be another process's.
        if let Ok(None) = self.child.try_wait() {
            let group = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
            if let Some(group) = group {
                let _ = kill_process_group(group, Signal::KILL);
            }
            let _ = self.child.wait();
        }
    }
}

/// The code in the guest's last words, such as `exit 3`.
fn code_of(result: &[u8]) -> Option<u8> {
    std::str::from_utf8(result).ok()?.strip_prefix("exit ")?.strip_suffix('\n')?.parse().ok()
}

/// Tells about a guest that gave no code.
fn report(end: &End, accel: Accel, args: &VmArgs, qemu_log: &[u8], console: &[u8]) -> String {
    let why = match end {
        End::Itself(status) => format!("QEMU ended by itself ({status})"),
        _ => format!("the time limit of {} (--timeout) is over", args.timeout),
    };
    let mut report = format!("the guest gave no exit code: {why}; accelerator {accel}");
    for (title, log) in [("QEMU says", qemu_log), ("last lines of its console", console)] {
        let lines = last_lines(log, CONSOLE_LINES);
        if !lines.is_empty() {
            report.push_str(&format!("\n{title}:\n{lines}"));
        }
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_read_from_whole_last_words_only() {
        assert_eq!(code_of(b"exit 0\n"), Some(0));
        assert_eq!(code_of(b"exit 255\n"), Some(255));
        for broken in [&b""[..], b"exit", b"exit 1", b"exit 256\n", b"exit -1\n", b"\xff\n"] {
            assert_eq!(code_of(broken), None);
        }
    }
}
