// SPDX-License-Identifier: GPL-2.0-only
//! `schedlab probe` as its users meet it, on whatever host the test runs.

mod support;

use std::path::Path;
use std::process::Output;

use serde_json::Value;
use support::schedlab_in;

fn run(args: &[&str]) -> Output {
    let mut command = schedlab_in(Path::new(env!("CARGO_TARGET_TMPDIR")));
    command.args(args).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn exit_code_message_and_verdict_agree() {
    let output = run(&["probe"]);
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    let verdict = out.lines().last().expect("a verdict");
    let first = out.lines().find(|line| line.starts_with("  missing  "));
    let record = out.lines().position(|line| line == "schedlab record").expect("its part");
    let live = out.lines().take(record).any(|line| line.starts_with("  missing  "));
    match output.status.code() {
        Some(0) => {
            assert!(verdict.starts_with("verdict: live works"), "{out}");
            assert!(!live, "{out}");
            assert!(err.is_empty(), "{err}");
        }
        Some(4) => {
            assert!(verdict.starts_with("verdict: live does not work: "), "{out}");
            let message = err.lines().next().and_then(|line| line.strip_prefix("error: "));
            assert!(first.expect("told").ends_with(message.expect("told")), "{out}{err}");
            assert!(err.lines().nth(1).is_some_and(|line| line.starts_with("  = hint: ")), "{err}");
        }
        code => panic!("{code:?}: {out}{err}"),
    }
}

#[test]
fn host_without_sched_ext_is_unsuitable() {
    if !Path::new("/sys/kernel/sched_ext/state").exists() {
        assert_eq!(run(&["probe"]).status.code(), Some(4));
    }
}

#[test]
fn json_agrees_with_the_exit_code() {
    let output = run(&["probe", "--format", "json"]);
    let json: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["schema"], "schedlab.probe/1");
    let possible = json["live"]["possible"].as_bool().expect("a verdict");
    assert_eq!(output.status.code(), Some(if possible { 0 } else { 4 }));
    for part in ["live", "record", "play"] {
        let checks = json[part]["checks"].as_array().expect("checks");
        assert!(!checks.is_empty(), "{part}");
        for check in checks {
            let mend = check["remedy"].as_str().expect("a text");
            assert_eq!(check["status"] == "ok", mend.is_empty(), "{check}");
        }
    }
}
