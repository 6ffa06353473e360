// SPDX-License-Identifier: GPL-2.0-only
//! `schedlab record` as its users meet it. Where tracefs is not permitted only its absence is seen.
#![cfg(target_os = "linux")]

mod support;

use std::path::Path;
use std::process::Output;

use support::schedlab_in;

fn run(args: &[&str]) -> Output {
    let mut command = schedlab_in(Path::new(env!("CARGO_TARGET_TMPDIR")));
    command.args(args).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whether this host lets us record; if not, that must be what the program says.
fn may_record(output: &Output) -> bool {
    let err = text(&output.stderr);
    if output.status.code() == Some(4) {
        assert!(err.starts_with("error: this host lacks: "), "{err}");
        println!("skipped: {err}");
        return false;
    }
    true
}

#[test]
fn code_of_the_command_is_passed_through_and_its_tree_recorded() {
    let output = run(&["record", "-o", "tree.txt", "--", "sh", "-c", "true; (exit 5); exit 7"]);
    if !may_record(&output) {
        return;
    }
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "{err}");
    assert!(err.contains("sched_process_exec: "), "{err}");
    assert!(err.contains("sched_process_fork: "), "{err}");
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tree.txt");
    let trace = std::fs::read_to_string(path).expect("the recording");
    assert!(trace.contains("sched_switch: "), "{trace}");
    let imported = run(&["import", "tree.txt", "-o", "tree.toml"]);
    assert_eq!(imported.status.code(), Some(0), "{}", text(&imported.stderr));
}

#[test]
fn command_that_is_killed_gives_128_and_the_signal() {
    let output = run(&["record", "-q", "-o", "killed.txt", "--", "sh", "-c", "kill -9 $$"]);
    if may_record(&output) {
        assert_eq!(output.status.code(), Some(137), "{}", text(&output.stderr));
    }
}

#[test]
fn whole_machine_is_recorded_for_a_time() {
    let output = run(&["record", "-o", "machine.txt", "--duration", "1ms"]);
    if may_record(&output) {
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("recorded "), "{}", text(&output.stderr));
    }
}

#[test]
fn unknown_extension_is_refused_before_anything_runs() {
    let output = run(&["record", "-o", "trace.xyz", "--", "touch", "must-not-exist"]);
    if may_record(&output) {
        assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    }
    assert!(!Path::new(env!("CARGO_TARGET_TMPDIR")).join("must-not-exist").exists());
}
