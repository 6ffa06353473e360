// SPDX-License-Identifier: GPL-2.0-only
//! `schedlab import`: a recording beside its replay, a transcript of a live run as a workload.

mod support;

use std::path::{Path, PathBuf};
use std::process::Output;

use support::schedlab_in;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../trace/tests/fixtures");

fn folder() -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("import");
    std::fs::create_dir_all(&path).expect("the test may write");
    path
}

fn import(args: &[&str]) -> Output {
    schedlab_in(&folder()).arg("import").args(args).output().expect("the program starts")
}

fn ok(args: &[&str]) -> String {
    let output = import(args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

#[test]
fn recording_is_shown_beside_its_replay() {
    let capture = format!("{FIXTURES}/vm-groups.data.zst");
    let text = ok(&[&capture, "-o", "groups.toml", "--replay", "--hz", "1000", "-q"]);
    insta::assert_snapshot!(text);
}

#[test]
fn replay_under_another_policy_is_said_so() {
    let capture = format!("{FIXTURES}/host-timer.txt");
    let text = ok(&[&capture, "-o", "t.toml", "--replay", "-p", "rr", "-m", "4", "-q"]);
    assert!(text.starts_with("replayed under rr (as asked for) on 4 CPUs"), "{text}");
    let text = ok(&[&capture, "-o", "t.toml", "--replay", "-q"]);
    assert!(text.starts_with("replayed under eevdf@6.12 (the trace does not tell its kernel)"));
}

#[test]
fn json_form_has_both_sides_of_every_thread() {
    let capture = format!("{FIXTURES}/vm-jobs.data.zst");
    let text = ok(&[&capture, "-o", "jobs.toml", "--replay", "--format", "json", "-q"]);
    let json: serde_json::Value = serde_json::from_str(&text).expect("valid JSON");
    assert_eq!(json["schema"], "schedlab.fidelity/1");
    let threads = json["threads"].as_array().expect("threads");
    assert!(threads.len() > 20);
    for thread in threads {
        assert_eq!(thread["replayed"]["threads"], 1, "{thread}");
    }
}

#[test]
fn replay_needs_its_flag_and_a_file_for_the_workload() {
    let capture = format!("{FIXTURES}/vm-groups.txt");
    for args in [
        &[&capture, "-o", "-", "--replay"][..],
        &[&capture, "-o", "x.toml", "-p", "rr"],
        &[&capture, "-o", "x.toml", "--replay", "-p", "nonesuch"],
    ] {
        assert_eq!(import(args).status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn transcript_of_a_live_run_becomes_a_workload_that_runs() {
    let live = concat!(env!("CARGO_MANIFEST_DIR"), "/../liverun/tests/fixtures/eevdf.live.zst");
    let output = import(&[live, "-o", "live.toml"]);
    let told = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(output.status.success(), "{told}");
    insta::assert_snapshot!(told);
    let mut run = schedlab_in(&folder());
    let ran = run.args(["run", "live.toml", "-p", "eevdf", "-m", "2", "-q"]).output();
    assert!(ran.expect("the program starts").status.success());
}
