// SPDX-License-Identifier: GPL-2.0-only
//! The kernel's trace buffers: an instance of our own, its events, and its pages.
//!
//! An instance is a folder that the kernel makes and removes; it disturbs nobody else's tracing.
//! Ours are called `schedlab-PID`; those of processes that are gone are removed when a new one is
//! made.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use schedlab_trace::{Comms, Live, ReadSummary, RecordSink};
use schedlab_units::{CpuId, Time};

use crate::calls;

/// Where tracefs is usually mounted, the own place first.
const MOUNTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// Prefix of the names of our instances.
const PREFIX: &str = "schedlab-";
/// Events without which a recording says too little.
const NEEDED: [&str; 5] = [
    "sched_switch",
    "sched_waking",
    "sched_wakeup_new",
    "sched_process_fork",
    "sched_process_exit",
];
/// Events that are recorded where the kernel has them.
const WANTED: [&str; 3] = ["sched_process_exec", "sched_migrate_task", "sched_stat_runtime"];

/// What keeps this process from recording, and how to mend it: a sentence each.
pub fn obstacles() -> Vec<String> {
    match locate() {
        Ok(_) => Vec::new(),
        Err(obstacles) => obstacles,
    }
}

/// Finds tracefs; everything that is in the way otherwise.
fn locate() -> Result<PathBuf, Vec<String>> {
    let mut missing = Vec::new();
    if !rustix::process::geteuid().is_root() && !has_tracing_rights() {
        missing.push(
            "the right to trace: run as root (`sudo schedlab …`), or let an administrator give \
             you tracefs (`mount -o remount,gid=GROUP,mode=750 /sys/kernel/tracing`)"
                .to_string(),
        );
    }
    let found = MOUNTS.iter().map(Path::new).find(|path| path.join("events/sched").exists());
    let mounted = MOUNTS.iter().map(Path::new).find(|path| path.join("trace_clock").exists());
    let known = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    match (found, mounted) {
        (Some(path), _) => {
            if missing.is_empty() {
                return Ok(path.to_path_buf());
            }
        }
        (None, Some(path)) => missing.push(format!(
            "the scheduler's tracepoints: {} has no events/sched (kernel without \
             CONFIG_EVENT_TRACING?)",
            path.display()
        )),
        (None, None) if !known.contains("\ttracefs\n") => missing.push(
            "tracefs: this kernel was built without it (CONFIG_TRACING); another kernel has it"
                .to_string(),
        ),
        (None, None) => missing.push(
            "a readable tracefs: mount it with `mount -t tracefs tracefs /sys/kernel/tracing`"
                .to_string(),
        ),
    }
    let lockdown = fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    if lockdown.contains("[confidentiality]") {
        missing.push(
            "tracing: the kernel is locked down for confidentiality (Secure Boot?); boot with \
             `lockdown=none` or `lockdown=integrity`"
                .to_string(),
        );
    }
    Err(missing)
}

/// Whether tracefs was opened to this user.
fn has_tracing_rights() -> bool {
    MOUNTS
        .iter()
        .any(|path| OpenOptions::new().write(true).open(Path::new(path).join("tracing_on")).is_ok())
}

/// What to record.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// Size of the buffer of each CPU in KiB.
    pub buffer_kib: u32,
    /// The process whose tree alone is recorded; none = all of the machine.
    pub tree_of: Option<u32>,
}

/// An instance of our own; it is removed when this value is dropped.
pub struct Instance {
    path: PathBuf,
    pipes: Vec<(CpuId, File)>,
    formats: Vec<String>,
    page: Vec<u8>,
}

impl Instance {
    /// Makes an instance that is ready to record.
    ///
    /// # Errors
    /// All that is missing and how to mend it, a sentence each.
    pub fn new(wanted: &Wanted) -> Result<Self, Vec<String>> {
        let root = locate()?;
        remove_stale(&root);
        let path = free_name(&root).map_err(|error| {
            vec![format!("an instance of its own in {}/instances: {error}", root.display())]
        })?;
        // From here on dropping the value removes the folder.
        let mut instance = Self { path, pipes: Vec::new(), formats: Vec::new(), page: Vec::new() };
        instance.set_up(wanted).map_err(|error| vec![error])?;
        Ok(instance)
    }

    fn set_up(&mut self, wanted: &Wanted) -> Result<(), String> {
        self.write("tracing_on", "0")?;
        self.write("trace_clock", "mono")?;
        self.write("buffer_size_kb", &wanted.buffer_kib.max(64).to_string())?;
        if let Some(pid) = wanted.tree_of {
            self.write("options/event-fork", "1")?;
            self.write("set_event_pid", &pid.to_string())?;
        }
        for event in NEEDED.iter().chain(&WANTED) {
            let folder = format!("events/sched/{event}");
            let format = fs::read_to_string(self.path.join(&folder).join("format"));
            match format {
                Ok(format) => {
                    self.write(&format!("{folder}/enable"), "1")?;
                    self.formats.push(format);
                }
                Err(error) if NEEDED.contains(event) => {
                    return Err(format!("the tracepoint {event}: {error}"));
                }
                Err(_) => {}
            }
        }
        self.open_pipes().map_err(|error| format!("the pages of the buffers: {error}"))?;
        self.page = vec![0; self.page_size()];
        Ok(())
    }

    fn write(&self, file: &str, value: &str) -> Result<(), String> {
        let path = self.path.join(file);
        let written = OpenOptions::new()
            .write(true)
            .open(&path)
            .and_then(|mut file| file.write_all(value.as_bytes()));
        written.map_err(|error| format!("a setting: {value} into {}: {error}", path.display()))
    }

    fn open_pipes(&mut self) -> io::Result<()> {
        for entry in fs::read_dir(self.path.join("per_cpu"))? {
            let entry = entry?;
            let name = entry.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix("cpu"));
            let Some(cpu) = number.and_then(|number| number.parse().ok()) else { continue };
            let nonblocking = libc::O_NONBLOCK;
            let pipe = OpenOptions::new()
                .read(true)
                .custom_flags(nonblocking)
                .open(entry.path().join("trace_pipe_raw"))?;
            self.pipes.push((CpuId(cpu), pipe));
        }
        self.pipes.sort_by_key(|(cpu, _)| *cpu);
        Ok(())
    }

    /// Size of what one read yields: a page, or what the kernel was told to use instead.
    fn page_size(&self) -> usize {
        let text = fs::read_to_string(self.path.join("buffer_subbuf_size_kb"));
        let kib = text.ok().and_then(|text| text.trim().parse::<usize>().ok());
        kib.map_or(rustix::param::page_size(), |kib| kib << 10).max(4096)
    }

    /// Begins to record.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn start(&self) -> Result<(), String> {
        self.write("tracing_on", "1")
    }

    /// Stops; what was recorded can still be read.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn stop(&self) -> Result<(), String> {
        self.write("tracing_on", "0")
    }

    /// A way from the pages of this instance to `sink`.
    ///
    /// # Errors
    /// A format text that is not understood.
    pub fn reader<'s>(&self, sink: &'s mut dyn RecordSink) -> Result<Live<'s>, String> {
        Live::new(self.formats.iter().map(String::as_str), sink)
    }

    /// Takes all pages that are there.
    ///
    /// # Errors
    /// A page that cannot be read or understood.
    pub fn drain(&mut self, live: &mut Live<'_>) -> Result<(), String> {
        let before = calls::now();
        for (cpu, pipe) in &mut self.pipes {
            loop {
                match pipe.read(&mut self.page) {
                    Ok(0) => break,
                    Ok(n) => live
                        .page(*cpu, &self.page[..n])
                        .map_err(|why| format!("a page of CPU {cpu}: {why}"))?,
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(error) => return Err(format!("the pages of CPU {cpu}: {error}")),
                }
            }
        }
        live.settle(before)
    }

    /// Takes the rest and ends.
    ///
    /// # Errors
    /// As [`Instance::drain`].
    pub fn finish(mut self, mut live: Live<'_>) -> Result<Finished, String> {
        self.stop()?;
        self.drain(&mut live)?;
        let overrun = self.pipes.iter().map(|(cpu, _)| self.lost_on(*cpu)).sum();
        let (summary, comms) = live.finish()?;
        Ok(Finished { summary, comms, overrun })
    }

    /// Events that the buffer of a CPU lost: overwritten, dropped, or beyond a commit.
    fn lost_on(&self, cpu: CpuId) -> u64 {
        let stats = self.path.join(format!("per_cpu/cpu{cpu}/stats"));
        let text = fs::read_to_string(stats).unwrap_or_default();
        let field = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.trim().parse::<u64>().ok()).unwrap_or(0)
        };
        field("overrun:") + field("commit overrun:") + field("dropped events:")
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.pipes.clear();
        // Nothing can be done about a failure here; the next instance tries again.
        let _ = fs::remove_dir(&self.path);
    }
}

/// What a recording ends with.
#[derive(Debug)]
pub struct Finished {
    /// What was found.
    pub summary: ReadSummary,
    /// The names of threads.
    pub comms: Comms,
    /// Events that the kernel says were lost, by its statistics.
    pub overrun: u64,
}

/// Makes a folder that nobody has yet.
fn free_name(root: &Path) -> io::Result<PathBuf> {
    let pid = std::process::id();
    let mut last = io::Error::from(io::ErrorKind::AlreadyExists);
    for n in 0..100 {
        let path = root.join("instances").join(format!("{PREFIX}{pid}-{n}"));
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) => last = error,
        }
        if last.kind() != io::ErrorKind::AlreadyExists {
            break;
        }
    }
    Err(last)
}

/// Removes the instances of processes that are gone.
fn remove_stale(root: &Path) {
    let Ok(entries) = fs::read_dir(root.join("instances")) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(owner) else { continue };
        if !Path::new("/proc").join(pid.to_string()).exists() {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// The process that an instance of this name belongs to, if it is one of ours.
fn owner(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.split('-').next()?.parse().ok()
}

/// The instant at which everything before has been written to the buffers.
pub fn now() -> Time {
    calls::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instance_names_tell_their_owner() {
        assert_eq!(owner("schedlab-123-0"), Some(123));
        assert_eq!(owner("schedlab-x"), None);
        assert_eq!(owner("lab"), None);
    }
}
