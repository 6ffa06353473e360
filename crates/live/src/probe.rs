// SPDX-License-Identifier: GPL-2.0-only
//! Whether policies can be run live on this host, and what is missing otherwise.
//!
//! [`Findings`] are the facts, [`judge`] is the opinion, so that every host can be judged by a test.
//! What only shows when the relay is loaded is in [`crate::ending`].

mod findings;

use thiserror::Error;

pub use findings::Findings;

/// CPUs that the relay's masks hold.
pub const MAX_CPUS: usize = crate::message::MAX_CPUS;
/// SCHED_FIFO priority of the host thread.
pub const HOST_PRIORITY: u64 = 50;
/// Whether this build has the relay, which the feature `bpf` brings.
pub const BUILT_IN: bool = cfg!(feature = "bpf");

/// The first release with sched_ext.
const FIRST_RELEASE: (u32, u32) = (6, 12);
/// Inode number of the initial pid namespace (`PROC_PID_INIT_INO`).
const INITIAL_PIDS: u64 = 4_026_531_836;
/// Capabilities that together stand for root, by number.
const CAPABILITIES: [(&str, u32); 4] =
    [("CAP_BPF", 39), ("CAP_PERFMON", 38), ("CAP_SYS_NICE", 23), ("CAP_SYS_ADMIN", 21)];

/// Verdict on one requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It is met.
    Ok,
    /// It is not met: nothing can be run live.
    Missing,
    /// Live scheduling works, but less well or less tested.
    Warning,
}

impl Status {
    /// As reports spell it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Missing => "missing",
            Self::Warning => "warning",
        }
    }
}

/// One requirement and how this host meets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Name of the requirement, the same in every report.
    pub name: &'static str,
    /// Verdict.
    pub status: Status,
    /// What was found; of something missing the message for the user.
    pub found: String,
    /// How to mend it; empty when there is nothing to mend.
    pub remedy: String,
}

impl Check {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, status: Status::Ok, found: found.into(), remedy: String::new() }
    }

    fn missing(name: &'static str, found: impl Into<String>, remedy: &str) -> Self {
        let remedy = remedy.to_string();
        Self { name, status: Status::Missing, found: found.into(), remedy }
    }

    fn warning(name: &'static str, found: impl Into<String>, remedy: &str) -> Self {
        Self { status: Status::Warning, ..Self::missing(name, found, remedy) }
    }
}

/// The first thing that keeps policies from being run live here.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct Unsupported {
    /// What is missing, the text after `error: `.
    pub message: String,
    /// How to mend it.
    pub remedy: String,
}

/// The warnings of `checks`.
///
/// # Errors
/// The first check that is missing something.
pub fn require(checks: &[Check]) -> Result<Vec<&Check>, Unsupported> {
    match checks.iter().find(|check| check.status == Status::Missing) {
        Some(check) => {
            Err(Unsupported { message: check.found.clone(), remedy: check.remedy.clone() })
        }
        None => Ok(checks.iter().filter(|check| check.status == Status::Warning).collect()),
    }
}

/// All requirements in the order in which they are told; what is told of the build comes last.
///
/// On another system than Linux nothing but the system and the build can be judged.
pub fn judge(findings: &Findings) -> Vec<Check> {
    let mut checks = vec![system(findings)];
    if findings.os == "linux" {
        checks.extend([
            rights(findings),
            release(findings),
            sched_ext(findings),
            btf(findings),
            other_scheduler(findings),
            lockdown(findings),
            pids(findings),
            real_time(findings),
            cpus(findings),
            preempt_rt(findings),
        ]);
    }
    checks.push(build(BUILT_IN));
    checks
}

fn system(findings: &Findings) -> Check {
    const NAME: &str = "system";
    let Findings { os, arch, .. } = findings;
    if os != "linux" {
        let message = "live scheduling needs Linux; simulation works everywhere";
        return Check::missing(NAME, message, "use a Linux machine with an x86-64 or arm64 CPU");
    }
    match arch.as_str() {
        "x86_64" => Check::ok(NAME, "Linux on x86-64"),
        "aarch64" => Check::ok(NAME, "Linux on arm64"),
        other => Check::missing(
            NAME,
            format!(
                "live scheduling needs Linux on x86-64 or arm64, this is {other}; simulation \
                 works everywhere"
            ),
            "use a Linux machine with an x86-64 or arm64 CPU",
        ),
    }
}

fn rights(findings: &Findings) -> Check {
    const NAME: &str = "rights";
    let lacking: Vec<&str> = CAPABILITIES
        .iter()
        .filter(|(_, number)| findings.caps & (1 << number) == 0)
        .map(|(name, _)| *name)
        .collect();
    match (findings.euid, lacking.as_slice()) {
        (Some(0), []) => Check::ok(NAME, "root"),
        (Some(0), lacking) => Check::warning(
            NAME,
            format!("root, but without {}", lacking.join(", ")),
            "the kernel may refuse the relay; start it where root has all capabilities",
        ),
        (_, []) => Check::warning(
            NAME,
            "all capabilities that are needed, but not root, which alone was tested",
            "should it fail, run it with sudo",
        ),
        _ => Check::missing(
            NAME,
            "live scheduling needs root: run it with sudo",
            "`sudo schedlab …`, or give it CAP_BPF, CAP_PERFMON, CAP_SYS_NICE and CAP_SYS_ADMIN",
        ),
    }
}

fn release(findings: &Findings) -> Check {
    const NAME: &str = "release";
    let text = kernel(findings);
    match version(&findings.release) {
        Some(version) if version >= FIRST_RELEASE => Check::ok(NAME, text),
        Some(_) => Check::missing(
            NAME,
            format!("{text} is too old for sched_ext, which came with 6.12"),
            "boot a kernel of release 6.12 or later",
        ),
        None => Check::warning(
            NAME,
            format!("{text}: the release is not understood"),
            "make sure that it is 6.12 or later",
        ),
    }
}

/// What the kernel calls itself, in messages.
fn kernel(findings: &Findings) -> String {
    match findings.release.as_str() {
        "" => "kernel of unknown release".to_string(),
        release => format!("kernel {release}"),
    }
}

/// The first two numbers of a release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn sched_ext(findings: &Findings) -> Check {
    const NAME: &str = "sched_ext";
    if findings.sched_ext.is_some() {
        return Check::ok(NAME, "the kernel has it");
    }
    let debian = if findings.distribution == "debian" { " (Debian's kernels are)" } else { "" };
    Check::missing(
        NAME,
        format!("{} was built without CONFIG_SCHED_CLASS_EXT{debian}", kernel(findings)),
        "boot a kernel built with CONFIG_SCHED_CLASS_EXT=y and CONFIG_DEBUG_INFO_BTF=y",
    )
}

fn btf(findings: &Findings) -> Check {
    const NAME: &str = "btf";
    if findings.btf {
        return Check::ok(NAME, "the kernel describes its types");
    }
    Check::missing(
        NAME,
        format!("{} has no BTF (CONFIG_DEBUG_INFO_BTF)", kernel(findings)),
        "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y",
    )
}

fn other_scheduler(findings: &Findings) -> Check {
    const NAME: &str = "other scheduler";
    match (findings.sched_ext.as_deref(), &findings.ops) {
        (None | Some("disabled"), _) => Check::ok(NAME, "none is loaded"),
        (Some(_), Some(name)) => {
            Check::missing(NAME, another(name), "stop the program or service that loaded it")
        }
        (Some(state), None) => Check::missing(
            NAME,
            another(&format!("one without a name, in state `{state}`")),
            "wait a moment if it is just starting or ending; else stop the program that loaded it",
        ),
    }
}

/// The message when the place of the one sched_ext scheduler is taken.
pub(crate) fn another(name: &str) -> String {
    format!("another sched_ext scheduler is loaded: {name}; stop it first")
}

fn lockdown(findings: &Findings) -> Check {
    const NAME: &str = "lockdown";
    match findings.lockdown.as_deref() {
        Some(text) if text.contains("[confidentiality]") => Check::missing(
            NAME,
            "kernel lockdown forbids loading BPF programs",
            "boot with `lockdown=integrity` or `lockdown=none`; Secure Boot may ask for lockdown",
        ),
        Some(text) if text.contains("[integrity]") => {
            Check::ok(NAME, "integrity, which permits BPF programs")
        }
        _ => Check::ok(NAME, "none"),
    }
}

fn pids(findings: &Findings) -> Check {
    const NAME: &str = "pids";
    match findings.pid_namespace {
        Some(INITIAL_PIDS) => Check::ok(NAME, "those of the kernel"),
        Some(_) => Check::missing(
            NAME,
            "pids seen here are not the kernel's: run it on the host, not in a container",
            "leave the container, or start it with the pids of the host (`--pid=host`)",
        ),
        None => Check::warning(
            NAME,
            "/proc/self/ns/pid cannot be read",
            "mount /proc, and make sure that this is not a container",
        ),
    }
}

fn real_time(findings: &Findings) -> Check {
    const NAME: &str = "SCHED_FIFO";
    let (_, nice) = CAPABILITIES[2];
    if findings.caps & (1 << nice) != 0 || findings.rt_priority >= HOST_PRIORITY {
        return Check::ok(NAME, format!("priority {HOST_PRIORITY} is permitted"));
    }
    Check::warning(
        NAME,
        format!(
            "priority {HOST_PRIORITY} is refused: the host thread goes on as a fair thread of nice \
             −20"
        ),
        &format!("run it as root, or raise RLIMIT_RTPRIO (`ulimit -r {HOST_PRIORITY}`)"),
    )
}

fn cpus(findings: &Findings) -> Check {
    const NAME: &str = "CPUs";
    match findings.cpus {
        0 => Check::warning(
            NAME,
            "/sys/devices/system/cpu/online cannot be read",
            "mount /sys, so that the number of CPUs is known",
        ),
        n @ 1..=MAX_CPUS => Check::ok(NAME, format!("{n} of at most {MAX_CPUS}")),
        n => Check::missing(
            NAME,
            format!("live scheduling takes at most {MAX_CPUS} CPUs, this machine has {n}"),
            &format!("boot with `maxcpus={MAX_CPUS}`"),
        ),
    }
}

fn preempt_rt(findings: &Findings) -> Check {
    const NAME: &str = "PREEMPT_RT";
    match findings.realtime.as_deref() {
        Some("1") => Check::missing(
            NAME,
            "kernel is PREEMPT_RT",
            "boot a kernel built without CONFIG_PREEMPT_RT",
        ),
        _ => Check::ok(NAME, "off"),
    }
}

fn build(built_in: bool) -> Check {
    const NAME: &str = "build";
    if built_in {
        return Check::ok(NAME, "schedlab was built with the feature `live`");
    }
    Check::missing(
        NAME,
        "this schedlab was built without the feature `live`",
        "build with `cargo build --release --features live`, which needs Debian's clang-19, \
         libelf-dev, zlib1g-dev, pkg-config",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_by_number() {
        assert_eq!(version("6.12.117"), Some((6, 12)));
        assert_eq!(version("6.1.0-28-amd64"), Some((6, 1)));
        assert_eq!(version("7.0-rc1"), Some((7, 0)));
        assert!(version("6.9").unwrap() < FIRST_RELEASE);
        for text in ["", "6", "six", "6.x", "99999999999.1"] {
            assert_eq!(version(text), None, "{text}");
        }
    }

    #[test]
    fn build_is_judged_either_way() {
        assert_eq!(build(true).status, Status::Ok);
        assert_eq!(build(false).status, Status::Missing);
        assert!(build(false).remedy.contains("--features live"));
    }

    #[test]
    fn another_system_than_linux_is_judged_by_its_name_alone() {
        let checks = judge(&Findings { os: "macos".to_string(), ..Findings::default() });
        let names: Vec<&str> = checks.iter().map(|check| check.name).collect();
        assert_eq!(names, ["system", "build"]);
        let error = require(&checks).unwrap_err();
        assert_eq!(error.to_string(), "live scheduling needs Linux; simulation works everywhere");
    }
}
