// SPDX-License-Identifier: GPL-2.0-only
//! What a host says of itself, read from its `/proc`, `/sys` and `/etc`.

use std::fs;
use std::path::Path;

/// Facts that decide whether policies can be run live here.
///
/// A fact that the host does not tell is `None` or empty; [`super::judge`] decides what that means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Operating system in Rust's spelling, such as `linux`.
    pub os: String,
    /// Processor architecture in Rust's spelling, such as `x86_64`.
    pub arch: String,
    /// Effective user id of this process.
    pub euid: Option<u32>,
    /// Effective capabilities of this process, bit by number as in `CapEff` of `/proc/PID/status`.
    pub caps: u64,
    /// Release of the kernel, such as `6.12.117`.
    pub release: String,
    /// Id of the distribution from `/etc/os-release`, such as `debian`.
    pub distribution: String,
    /// Text of `/sys/kernel/sched_ext/state`.
    pub sched_ext: Option<String>,
    /// Name of the loaded scheduler, from `/sys/kernel/sched_ext/root/ops`.
    pub ops: Option<String>,
    /// Whether the kernel's type information, `/sys/kernel/btf/vmlinux`, is there.
    pub btf: bool,
    /// Text of `/sys/kernel/security/lockdown`.
    pub lockdown: Option<String>,
    /// Inode number of the pid namespace of this process.
    pub pid_namespace: Option<u64>,
    /// Text of `/sys/kernel/realtime`, which kernels with PREEMPT_RT have.
    pub realtime: Option<String>,
    /// One more than the highest number of a CPU that is online; 0 = unknown.
    pub cpus: usize,
    /// Highest priority that `RLIMIT_RTPRIO` lets this process ask for.
    pub rt_priority: u64,
}

impl Findings {
    /// Those of this host.
    pub fn here() -> Self {
        Self::read(Path::new("/"))
    }

    /// Those told by the `/proc`, `/sys` and `/etc` below `root`; system and architecture are those
    /// this program was built for.
    pub fn read(root: &Path) -> Self {
        let text = |path: &str| {
            let text = fs::read_to_string(root.join(path)).ok()?;
            Some(text.trim().to_string())
        };
        let status = text("proc/self/status").unwrap_or_default();
        let os_release = text("etc/os-release").unwrap_or_default();
        let limits = text("proc/self/limits").unwrap_or_default();
        Self {
            os: std::env::consts::OS.to_string(),
            arch: std::env::consts::ARCH.to_string(),
            euid: word_after(&status, "Uid:", 1).and_then(|word| word.parse().ok()),
            caps: word_after(&status, "CapEff:", 0)
                .and_then(|word| u64::from_str_radix(word, 16).ok())
                .unwrap_or(0),
            release: text("proc/sys/kernel/osrelease").unwrap_or_default(),
            distribution: os_release
                .lines()
                .find_map(|line| line.strip_prefix("ID="))
                .map(|id| id.trim_matches(['"', '\'']).to_string())
                .unwrap_or_default(),
            sched_ext: text("sys/kernel/sched_ext/state"),
            ops: text("sys/kernel/sched_ext/root/ops").filter(|name| !name.is_empty()),
            btf: root.join("sys/kernel/btf/vmlinux").exists(),
            lockdown: text("sys/kernel/security/lockdown"),
            pid_namespace: namespace(&root.join("proc/self/ns/pid")),
            realtime: text("sys/kernel/realtime"),
            cpus: text("sys/devices/system/cpu/online").map_or(0, |list| cpus_of(&list)),
            rt_priority: word_after(&limits, "Max realtime priority", 0)
                .map_or(0, |word| word.parse().unwrap_or(u64::MAX)),
        }
    }
}

/// The word number `index` after `head` at the beginning of a line.
fn word_after<'a>(text: &'a str, head: &str, index: usize) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(head)?.split_whitespace().nth(index))
}

/// The number in the target `pid:[NUMBER]` of a link of `/proc/PID/ns`.
fn namespace(link: &Path) -> Option<u64> {
    let target = fs::read_link(link).ok()?;
    target.to_str()?.strip_prefix("pid:[")?.strip_suffix(']')?.parse().ok()
}

/// One more than the highest number of a list such as `0-3,8`; 0 when there is no number.
fn cpus_of(list: &str) -> usize {
    let numbers = list.split([',', '-']).filter_map(|number| number.trim().parse::<usize>().ok());
    numbers.max().map_or(0, |highest| highest.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_give_one_more_than_the_highest() {
        assert_eq!(cpus_of("0"), 1);
        assert_eq!(cpus_of("0-3,8"), 9);
        assert_eq!(cpus_of("8,0-3"), 9);
        assert_eq!(cpus_of(""), 0);
        assert_eq!(cpus_of("none"), 0);
        assert_eq!(cpus_of("18446744073709551615"), usize::MAX);
    }

    #[test]
    fn words_are_found_after_their_head_only() {
        let text = "Name:\tUid: 7\nUid:\t1\t2\t3\t4\n";
        assert_eq!(word_after(text, "Uid:", 1), Some("2"));
        assert_eq!(word_after(text, "Uid:", 9), None);
        assert_eq!(word_after(text, "CapEff:", 0), None);
    }
}
