// SPDX-License-Identifier: GPL-2.0-only
//! The probe on hosts that are laid out as trees of files: each requirement alone, and all at once.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use schedlab_live::probe::{BUILT_IN, Check, Findings, Status, judge, require};

/// The root of a made-up host, removed at the end.
struct Host(PathBuf);

impl Host {
    /// A host on which everything is as it should be.
    fn suitable(name: &str) -> Self {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("probe-{name}"));
        let _ = fs::remove_dir_all(&root);
        let host = Self(root);
        host.set(
            "proc/self/status",
            "Name:\tschedlab\nUid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n",
        );
        host.set("proc/self/limits", "Max realtime priority     0        0       \n");
        host.set("proc/sys/kernel/osrelease", "6.12.117\n");
        host.set("etc/os-release", "NAME=\"Some Linux\"\nID=some\n");
        host.set("sys/kernel/sched_ext/state", "disabled\n");
        host.set("sys/kernel/btf/vmlinux", "BTF");
        host.set("sys/kernel/security/lockdown", "[none] integrity confidentiality\n");
        host.set("sys/devices/system/cpu/online", "0-3\n");
        fs::create_dir_all(host.0.join("proc/self/ns")).expect("ours");
        host.pids("pid:[4026531836]");
        host
    }

    fn set(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().expect("below the root")).expect("ours");
        fs::write(path, text).expect("ours");
    }

    fn unset(&self, path: &str) {
        fs::remove_file(self.0.join(path)).expect("it was there");
    }

    fn pids(&self, target: &str) {
        let link = self.0.join("proc/self/ns/pid");
        let _ = fs::remove_file(&link);
        symlink(target, link).expect("ours");
    }

    /// The checks on an x86-64 Linux, without that of the build.
    fn checks(&self) -> Vec<Check> {
        let read = Findings::read(&self.0);
        let findings = Findings { os: "linux".into(), arch: "x86_64".into(), ..read };
        let mut checks = judge(&findings);
        assert_eq!(checks.pop().map(|check| check.name), Some("build"));
        checks
    }

    /// Found and remedy of the only check that is not ok, which has this status.
    fn only(&self, status: Status) -> (String, String) {
        let checks = self.checks();
        let bad: Vec<&Check> = checks.iter().filter(|check| check.status != Status::Ok).collect();
        assert_eq!(bad.len(), 1, "{bad:#?}");
        assert_eq!(bad[0].status, status, "{bad:#?}");
        assert!(!bad[0].remedy.is_empty(), "{bad:#?}");
        (bad[0].found.clone(), bad[0].remedy.clone())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn suitable_host_has_nothing_missing() {
    let host = Host::suitable("suitable");
    let checks = host.checks();
    assert!(checks.iter().all(|check| check.status == Status::Ok), "{checks:#?}");
    assert_eq!(require(&checks), Ok(Vec::new()));
    let names: Vec<&str> = checks.iter().map(|check| check.name).collect();
    assert_eq!(
        names,
        [
            "system",
            "rights",
            "release",
            "sched_ext",
            "btf",
            "other scheduler",
            "lockdown",
            "pids",
            "SCHED_FIFO",
            "CPUs",
            "PREEMPT_RT",
        ]
    );
}

#[test]
fn processor_of_another_kind_is_refused() {
    let read = Findings::read(Path::new("/no/such/root"));
    let findings = Findings { os: "linux".into(), arch: "riscv64".into(), ..read };
    let first = &judge(&findings)[0];
    assert_eq!(first.status, Status::Missing);
    assert!(first.found.contains("riscv64"), "{}", first.found);
}

#[test]
fn user_without_rights_is_told_to_use_sudo() {
    let host = Host::suitable("user");
    host.set("proc/self/status", "Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000800000\n");
    let (found, _) = host.only(Status::Missing);
    assert_eq!(found, "live scheduling needs root: run it with sudo");
}

#[test]
fn effective_user_counts_and_not_the_real_one() {
    let host = Host::suitable("setuid");
    host.set("proc/self/status", "Uid:\t1000\t0\t0\t0\nCapEff:\t000001ffffffffff\n");
    assert!(require(&host.checks()).is_ok());
}

#[test]
fn capabilities_without_root_are_enough_with_a_warning() {
    let host = Host::suitable("capable");
    host.set("proc/self/status", "Uid:\t1000\t1000\t1000\t1000\nCapEff:\t000000c000a00000\n");
    let (found, _) = host.only(Status::Warning);
    assert!(found.contains("not root"), "{found}");
}

#[test]
fn root_without_capabilities_is_warned_of() {
    let host = Host::suitable("weak-root");
    host.set("proc/self/status", "Uid:\t0\t0\t0\t0\nCapEff:\t0000000000800000\n");
    let (found, _) = host.only(Status::Warning);
    assert_eq!(found, "root, but without CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN");
}

#[test]
fn old_kernel_is_refused_with_its_release() {
    let host = Host::suitable("old");
    host.set("proc/sys/kernel/osrelease", "6.1.0\n");
    let (found, _) = host.only(Status::Missing);
    assert_eq!(found, "kernel 6.1.0 is too old for sched_ext, which came with 6.12");
}

#[test]
fn release_that_is_no_number_is_warned_of() {
    let host = Host::suitable("strange");
    host.set("proc/sys/kernel/osrelease", "custom\n");
    let (found, _) = host.only(Status::Warning);
    assert_eq!(found, "kernel custom: the release is not understood");
}

#[test]
fn kernel_without_sched_ext_is_refused() {
    let host = Host::suitable("without");
    host.unset("sys/kernel/sched_ext/state");
    let (found, _) = host.only(Status::Missing);
    assert_eq!(found, "kernel 6.12.117 was built without CONFIG_SCHED_CLASS_EXT");
}

#[test]
fn debian_is_named_where_it_is_debian() {
    let host = Host::suitable("debian");
    host.unset("sys/kernel/sched_ext/state");
    for id in ["debian", "\"debian\""] {
        host.set("etc/os-release", &format!("VERSION_ID=12\nID={id}\n"));
        let (found, _) = host.only(Status::Missing);
        assert_eq!(
            found,
            "kernel 6.12.117 was built without CONFIG_SCHED_CLASS_EXT (Debian's kernels are)"
        );
    }
}

#[test]
fn kernel_without_btf_is_refused() {
    let host = Host::suitable("no-btf");
    host.unset("sys/kernel/btf/vmlinux");
    let (found, _) = host.only(Status::Missing);
    assert_eq!(found, "kernel 6.12.117 has no BTF (CONFIG_DEBUG_INFO_BTF)");
}

#[test]
fn other_scheduler_is_named() {
    let host = Host::suitable("other");
    host.set("sys/kernel/sched_ext/state", "enabled\n");
    host.set("sys/kernel/sched_ext/root/ops", "scx_simple\n");
    let (found, _) = host.only(Status::Missing);
    assert_eq!(found, "another sched_ext scheduler is loaded: scx_simple; stop it first");
}

#[test]
fn other_scheduler_that_is_just_starting_is_refused_too() {
    let host = Host::suitable("starting");
    host.set("sys/kernel/sched_ext/state", "enabling\n");
    let (found, _) = host.only(Status::Missing);
    assert!(found.starts_with("another sched_ext scheduler is loaded: "), "{found}");
    assert!(found.contains("`enabling`"), "{found}");
}

#[test]
fn lockdown_for_confidentiality_is_refused_and_for_integrity_not() {
    let host = Host::suitable("lockdown");
    host.set("sys/kernel/security/lockdown", "none [integrity] confidentiality\n");
    assert!(host.checks().iter().all(|check| check.status == Status::Ok));
    host.set("sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
    let (found, _) = host.only(Status::Missing);
    assert_eq!(found, "kernel lockdown forbids loading BPF programs");
    host.unset("sys/kernel/security/lockdown");
    assert!(host.checks().iter().all(|check| check.status == Status::Ok));
}

#[test]
fn container_is_refused() {
    let host = Host::suitable("container");
    host.pids("pid:[4026532201]");
    let (found, _) = host.only(Status::Missing);
    assert_eq!(
        found,
        "pids seen here are not the kernel's: run it on the host, not in a container"
    );
    host.pids("nonsense");
    host.only(Status::Warning);
}

#[test]
fn refused_real_time_class_is_a_warning() {
    let host = Host::suitable("fifo");
    // All of the kernel's capabilities for BPF, but not CAP_SYS_NICE.
    host.set("proc/self/status", "Uid:\t0\t0\t0\t0\nCapEff:\t000001ffff7fffff\n");
    let warnings = host.checks();
    let fifo = warnings.iter().find(|check| check.name == "SCHED_FIFO").expect("checked");
    assert_eq!(fifo.status, Status::Warning);
    for (limit, status) in [("49", Status::Warning), ("50", Status::Ok), ("unlimited", Status::Ok)]
    {
        host.set("proc/self/limits", &format!("Max realtime priority     {limit}   {limit}\n"));
        let checks = host.checks();
        let fifo = checks.iter().find(|check| check.name == "SCHED_FIFO").expect("checked");
        assert_eq!(fifo.status, status, "{limit}");
    }
}

#[test]
fn more_cpus_than_the_masks_hold_are_refused() {
    let host = Host::suitable("cpus");
    host.set("sys/devices/system/cpu/online", "0-63\n");
    assert!(require(&host.checks()).is_ok());
    host.set("sys/devices/system/cpu/online", "0-31,1024\n");
    let (found, _) = host.only(Status::Missing);
    assert_eq!(found, "live scheduling takes at most 1024 CPUs, this machine has 1025");
}

#[test]
fn kernel_with_preempt_rt_is_refused() {
    let host = Host::suitable("rt");
    host.set("sys/kernel/realtime", "0\n");
    assert!(require(&host.checks()).is_ok());
    host.set("sys/kernel/realtime", "1\n");
    let (found, _) = host.only(Status::Missing);
    assert_eq!(found, "kernel is PREEMPT_RT");
}

#[test]
fn everything_that_is_missing_is_told_and_the_first_is_the_error() {
    let host = Host::suitable("all");
    host.set("proc/self/status", "Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0\n");
    host.set("proc/sys/kernel/osrelease", "6.1.0-28-amd64\n");
    host.unset("sys/kernel/sched_ext/state");
    host.unset("sys/kernel/btf/vmlinux");
    host.pids("pid:[1]");
    let checks = host.checks();
    let missing = checks.iter().filter(|check| check.status == Status::Missing);
    let names: Vec<&str> = missing.map(|check| check.name).collect();
    assert_eq!(names, ["rights", "release", "sched_ext", "btf", "pids"]);
    let error = require(&checks).unwrap_err();
    assert_eq!(error.to_string(), "live scheduling needs root: run it with sudo");
    assert!(!error.remedy.is_empty());
}

#[test]
fn empty_root_is_judged_without_a_panic() {
    let read = Findings::read(Path::new("/no/such/root"));
    let checks = judge(&Findings { os: "linux".into(), arch: "aarch64".into(), ..read });
    assert!(require(&checks).is_err());
}

#[test]
fn build_without_the_relay_is_told_last() {
    let build = judge(&Findings::here()).pop().expect("checks");
    assert_eq!(build.name, "build");
    assert_eq!(build.status == Status::Ok, BUILT_IN);
}
