// SPDX-License-Identifier: GPL-2.0-only
//! The readers on recordings of real kernels.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use schedlab_policy_api::{Pid, RecordContext, RecordEvent, RecordedState, Recording};
use schedlab_trace::{Read, read};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn load(name: &str) -> Read {
    let bytes = std::fs::read(fixture(name)).expect("fixture");
    read(&bytes[..]).unwrap_or_else(|e| panic!("{name}: {e}"))
}

#[test]
fn captures_summaries() {
    let mut all = String::new();
    for name in [
        "ftrace.txt",
        "ftrace-tgid.txt",
        "host-pingpong.txt",
        "host-timer.txt",
        "perf-callchain.txt",
        "trace-cmd-ns.txt",
        "trace-cmd-plugin.txt",
        "vm-groups.txt",
        "vm-jobs-head.txt",
        "vm-jobs-tail.txt",
    ] {
        let read = load(name);
        let n_names = read.recording.comms.len();
        let n_cpus = read.recording.n_cpus;
        let n_processes = read.recording.tgids.len();
        write!(
            all,
            "== {name}\n{}{n_cpus} CPUs, {n_names} names, {n_processes} threads of known process\n",
            read.summary
        )
        .expect("a String takes any write");
    }
    insta::assert_snapshot!(all);
}

/// Number of lines that name an event, counted without the reader.
fn lines_with(name: &str, event: &str) -> usize {
    let text = std::fs::read_to_string(fixture(name)).expect("fixture");
    text.lines().filter(|line| line.contains(&format!("{event}: "))).count()
}

#[test]
fn captures_hold_as_many_events_as_lines() {
    for name in ["host-timer.txt", "ftrace.txt", "trace-cmd-plugin.txt", "vm-groups.txt"] {
        let read = load(name);
        for (event, n) in &read.summary.events {
            assert_eq!(lines_with(name, event) as u64, *n, "{name} {event}");
        }
    }
}

/// The three ways of printing one run say the same, but for what each leaves out.
#[test]
fn trace_cmd_plugin_and_printk_bodies_agree() {
    let plugin = load("trace-cmd-plugin.txt").recording;
    let printk = load("trace-cmd-ns.txt").recording;
    let tracefs = load("ftrace-tgid.txt").recording;
    assert_eq!(plugin.records.len(), printk.records.len());
    assert_eq!(plugin.records.len(), tracefs.records.len());
    let comm = |recording: &Recording, id: schedlab_policy_api::CommId| {
        recording.comms[id.0 as usize].clone()
    };
    for ((a, b), c) in plugin.records.iter().zip(&printk.records).zip(&tracefs.records) {
        // Two of them show microseconds, rounded.
        let rounded = (b.time.as_ns() + 500) / 1000 * 1000;
        assert_eq!((a.time.as_ns(), c.time.as_ns()), (rounded, rounded));
        assert_eq!((a.cpu, a.pid, b.cpu, b.pid), (c.cpu, c.pid, c.cpu, c.pid));
        assert_eq!(comm(&plugin, a.comm), comm(&tracefs, c.comm));
        assert_eq!(comm(&printk, b.comm), comm(&tracefs, c.comm));
        assert_eq!(without_names(a.event), without_names(b.event));
        if let RecordEvent::Switch { prev_state: plugin, .. } = a.event {
            let RecordEvent::Switch { prev_state: printk, .. } = c.event else { panic!("{c:?}") };
            // The plugin form has no sign for "preempted in the kernel".
            let same = plugin == printk
                || (plugin, printk) == (RecordedState::Runnable, RecordedState::Preempted);
            assert!(same, "{a:?} {c:?}");
        }
    }
    assert!(tracefs.records.iter().any(|r| r.context == RecordContext::Interrupt));
    assert!(tracefs.tgids.iter().any(|(tid, tgid)| tid == tgid && *tid != Pid(0)));
}

/// Names are interned in another order by another form; states differ as said above.
fn without_names(event: RecordEvent) -> String {
    let text = format!("{event:?}");
    let mut out = String::new();
    for part in text.split(", ") {
        if !part.contains("CommId(") && !part.starts_with("prev_state") {
            out.push_str(part);
            out.push(' ');
        }
    }
    out
}

#[test]
fn captures_have_consistent_contexts() {
    // In an unfiltered recording the context of a switch is the thread that leaves.
    for name in ["vm-groups.txt", "vm-jobs-head.txt", "ftrace.txt", "perf-callchain.txt"] {
        for record in load(name).recording.records {
            if let RecordEvent::Switch { prev, .. } = record.event {
                assert_eq!(record.pid, prev, "{name} {record:?}");
            }
        }
    }
}
