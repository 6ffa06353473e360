// SPDX-License-Identifier: GPL-2.0-only
//! `schedlab top` against a live run that is made up.
#![cfg(target_os = "linux")]

mod support;

use std::path::Path;
use std::process::Output;
use std::thread;

use schedlab_live::control::{Answer, Ask, Control, StatusReply, TaskReply, TasksReply};
use support::schedlab_in;

fn run(args: &[&str]) -> Output {
    let mut command = schedlab_in(Path::new(env!("CARGO_TARGET_TMPDIR")));
    command.args(args).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Output of `top` with these arguments while a live run answers.
fn top(name: &str, args: &[&str]) -> Output {
    // Names of sockets must be short, so it is not in the build's folder.
    let folder = std::env::temp_dir().join(format!("slt-{}-{name}", std::process::id()));
    let socket = folder.join("live.sock");
    let control = Control::open(&socket).expect("a socket");
    let path = socket.to_str().expect("UTF-8").to_string();
    let output = thread::scope(|scope| {
        let asking = scope.spawn(|| run(&[&["top", "--socket", &path], args].concat()));
        while !asking.is_finished() {
            match control.poll() {
                None => thread::yield_now(),
                Some((Ask::Status, reply)) => reply.send(Answer::Status(status())),
                Some((Ask::Tasks, reply)) => reply.send(Answer::Tasks(tasks())),
                Some((Ask::Set { .. }, _)) => panic!("top sets nothing"),
            }
        }
        asking.join().expect("no panic")
    });
    drop(control);
    std::fs::remove_dir(&folder).expect("the socket is gone");
    output
}

fn status() -> StatusReply {
    StatusReply {
        policy: "o1@g3".to_string(),
        scope: "system".to_string(),
        kernel: "6.12.117".to_string(),
        hz: 1000,
        cpus: "0-3".to_string(),
        since_s: 10,
        ..StatusReply::default()
    }
}

fn tasks() -> TasksReply {
    let task = |pid: u32, comm: &str, prio: i64, run_ns: u64| TaskReply {
        pid,
        tgid: 7,
        comm: comm.to_string(),
        class: "normal".to_string(),
        state: "waiting".to_string(),
        prio: Some(prio),
        run_ns,
        wait_ns: 2_500_000_000 - run_ns,
        values: vec![("sleep_avg".to_string(), i64::from(pid))],
        ..TaskReply::default()
    };
    let tasks = vec![task(7, "hog", 125, 2_000_000_000), task(8, "xmms", 115, 1_000)];
    TasksReply { now_ns: 10_000_000_000, tasks }
}

#[test]
fn single_table_is_printed() {
    let output = top("once", &["--once"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    insta::assert_snapshot!(text(&output.stdout));
}

#[test]
fn order_of_the_table_is_as_asked() {
    let first = |sort: &str| {
        let out = text(&top(sort, &["--once", "--sort", sort]).stdout);
        let comms = ["hog", "xmms"].map(|comm| out.find(comm).expect("in the table"));
        if comms[0] < comms[1] { "hog" } else { "xmms" }
    };
    assert_eq!(first("cpu"), "hog");
    assert_eq!(first("prio"), "xmms");
    assert_eq!(first("wait"), "xmms");
}

#[test]
fn without_a_live_run_it_is_told_where_one_was_looked_for() {
    let output = run(&["top", "--once", "--socket", "/no/such/live.sock"]);
    assert_eq!(output.status.code(), Some(4));
    let expected = "error: no schedlab live runs here: nothing answers at /no/such/live.sock\n";
    assert!(text(&output.stderr).starts_with(expected), "{}", text(&output.stderr));
}

#[test]
fn interval_that_is_too_short_is_refused() {
    let output = run(&["top", "--interval", "1us"]);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("at least 50ms"), "{}", text(&output.stderr));
}
