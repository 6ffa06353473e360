// SPDX-License-Identifier: GPL-2.0-only
//! `schedlab play` as its users meet it: only what does not depend on how fast this host is.
#![cfg(target_os = "linux")]

mod support;

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use support::schedlab_in;

fn schedlab() -> Command {
    schedlab_in(Path::new(env!("CARGO_TARGET_TMPDIR")))
}

fn run(args: &[&str]) -> Output {
    schedlab().args(args).output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A workload file that belongs to this test alone.
fn file(name: &str, content: &str) {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(path, content).expect("the test may write");
}

/// Plays and returns the parsed report.
fn played(args: &[&str]) -> Value {
    let output = run(&[&["play", "--quiet", "--format", "json"], args].concat());
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Time is conserved in every task and on every CPU.
fn check_conservation(report: &Value) {
    for run in report["runs"].as_array().expect("runs") {
        for task in run["tasks"].as_array().expect("tasks") {
            let ns = |key: &str| task[key].as_u64().expect("a time");
            assert_eq!(ns("run_ns") + ns("wait_ns") + ns("sleep_ns"), ns("life_ns"), "{task}");
        }
        for cpu in run["cpus"].as_array().expect("CPUs") {
            let ns = |key: &str| cpu[key].as_u64().expect("a time");
            let sum = ns("busy_ns") + ns("idle_ns") + ns("overhead_ns");
            assert_eq!(sum, run["elapsed_ns"].as_u64().expect("a time"), "{cpu}");
        }
    }
}

/// Every operation at least once; `first` counts a mark after each group, and all tasks end.
const ALL_OPS: &str = r#"
[workload]
name = "all"
about = "every operation"

[[pipe]]
name = "p"

[[pipe]]
name = "s"
kind = "socket"

[[semaphore]]
name = "sem"
initial = 1

[[mutex]]
name = "m"

[[condition]]
name = "c"

[[barrier]]
name = "b"
parties = 2

[[futex]]
name = "f"

[[futex]]
name = "server"

[[list]]
name = "l"

[[timer]]
name = "shared"
per_task = false

[[period]]
name = "frame"
sample = "latency"
met = "met"

[[task]]
name = "child"
forked = true
do = ["exec", "run 10us", "signal parent", "sleep 10s"]

[[task]]
name = "short"
forked = true
do = ["mark short"]

[[task]]
name = "first"
do = [
  "draw uniform(10us, 20us)", "run drawn/2", "run 10us", "kernel 5us", "spin 5us", "sleep 20us",
  "disk 20us", "spin 5us every 1us", "interrupt 100us", "interrupt 100us kept", "mark group",
  "timer 1ms", "timer shared 1ms absolute", "advance shared 1ms", "before shared late", "late:",
  "mark group",
  "write p 100", "read p 100", "write s 100", "read s 100", "mark group",
  "sem-wait sem", "sem-post sem", "sem-try sem else none", "none:", "mark group",
  "period frame reset", "period frame begin 10ms else over", "run 5us",
  "period frame end 10ms else over", "over:", "period frame sleep", "period frame sample",
  "period frame shift 1ms", "mark group",
  "barrier b", "lock m", "cond-broadcast c", "unlock m", "mark group",
  "futex-arm f", "futex-wake f", "futex-wake f 2", "futex-wake f all", "futex-wait f",
  "mark group",
  "fork child", "sig-wait", "signal task child taking 1us 2us", "kill child", "wait-children",
  "fork short", "wait-child", "fork short thread", "wait-child", "sig-wait 10us else none2",
  "none2:", "mark group",
  "sched batch nice 1", "nice 2", "affinity 0", "yield", "mark group",
  "mark-start span", "mark bytes 100", "mark-stop span", "deadline 1s", "mark group",
  { repeat = 3, do = ["run 1us", { chance = "1/2", do = ["yield"], else = ["mark-start x"] }] },
  "exit",
]

[[task]]
name = "second"
do = [
  "lock m", "barrier b", "cond-wait c m", "cond-signal c", "unlock m",
  "list-join l wake server mark waited", "mark second",
]

[[task]]
name = "server"
do = [
  "futex-arm server", "sleep 1ms", { repeat = 40, do = ["list-serve l", "sleep 1ms"] },
  "kill second",
]
"#;

/// A task of a class that only some patches had.
const ISO: &str = "
[workload]
name = \"iso\"

[[task]]
name = \"t\"
class = \"iso\"
do = [\"run 1ms\"]
";

#[test]
fn every_operation_is_played_and_every_mark_counted() {
    file("play-all.toml", ALL_OPS);
    let report = played(&["play-all.toml", "--duration", "20s"]);
    check_conservation(&report);
    let run = &report["runs"][0];
    let count = |mark: &str| run["marks"][mark]["sum"].as_u64();
    assert_eq!(count("group"), Some(10), "{report}");
    assert_eq!((count("short"), count("bytes"), count("span")), (Some(2), Some(100), Some(1)));
    let deadlines = run["deadlines"].as_array().expect("deadlines");
    assert_eq!(deadlines.len(), 1);
    let notes = report["workload"]["notes"].to_string();
    for stand_in in ["exec is balanced", "disks are played", "work in the kernel is played"] {
        assert!(notes.contains(stand_in), "{stand_in}: {notes}");
    }
}

#[test]
fn report_of_a_play_has_the_schema_of_runs() {
    let report = played(&["hackbench", "--set", "groups=1", "--set", "loops=3"]);
    check_conservation(&report);
    assert_eq!(report["schema"], "schedlab.run/1");
    let run = &report["runs"][0];
    assert_eq!(run["policy"], "host");
    assert!(run["hz"].as_u64().expect("a rate") > 0);
    assert_eq!(run["complete"], true);
    for task in run["tasks"].as_array().expect("tasks") {
        assert!(task["state"] == "exited" || task["lives"] == 0, "{task}");
    }
}

#[test]
fn play_without_tracepoints_says_what_is_not_known() {
    let report = played(&["hogs", "--duration", "20ms", "--no-trace"]);
    for task in report["runs"][0]["tasks"].as_array().expect("tasks") {
        let ns = |key: &str| task[key].as_u64().expect("a time");
        assert_eq!(ns("run_ns") + ns("wait_ns") + ns("sleep_ns"), ns("life_ns"), "{task}");
        assert!(task["wakeup_latency_ns"].is_null());
    }
    let notes = report["workload"]["notes"].to_string();
    assert!(notes.contains("no tracepoints"), "{notes}");
}

#[test]
fn simulations_stand_beside_plays_with_the_same_seeds() {
    let args = ["hogs", "--duration", "10ms", "--beside", "eevdf@6.12", "--repeat", "2"];
    let report = played(&args);
    let runs = report["runs"].as_array().expect("runs");
    let columns: Vec<(&str, u64)> = runs
        .iter()
        .map(|run| (run["policy"].as_str().expect("a name"), run["seed"].as_u64().expect("a seed")))
        .collect();
    assert_eq!(columns, [("host", 1), ("host", 2), ("eevdf", 1), ("eevdf", 2)]);
    assert_eq!(runs[0]["hz"], runs[2]["hz"]);
}

#[test]
fn class_of_another_kernel_is_refused_with_its_place() {
    file("play-iso.toml", ISO);
    let output = run(&["play", "play-iso.toml"]);
    let err = text(&output.stderr);
    assert_eq!(output.status.code(), Some(3), "{err}");
    assert!(err.starts_with("error: play-iso.toml:"), "{err}");
    assert!(err.contains("SCHED_ISO"), "{err}");
}

#[test]
fn open_matrix_and_foreign_cpus_are_refused() {
    let output = run(&["play", "interbench"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("--set bench="), "{}", text(&output.stderr));
    let output = run(&["play", "hogs", "--cpus", "1000"]);
    assert_eq!(output.status.code(), Some(4));
    assert!(text(&output.stderr).contains("may use"), "{}", text(&output.stderr));
}

#[test]
fn length_of_nothing_is_refused_by_play_and_run() {
    for args in [&["play", "hogs", "-d", "0s"][..], &["run", "hogs", "-p", "fifo", "-d", "0ms"]] {
        let output = run(args);
        let err = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{err}");
        assert!(err.contains("give a length above zero"), "{err}");
    }
}

#[test]
fn no_thread_and_no_instance_is_left_behind() {
    played(&["hogs", "--duration", "5ms"]);
    for root in ["/sys/kernel/tracing/instances", "/sys/kernel/debug/tracing/instances"] {
        let Ok(entries) = std::fs::read_dir(root) else {
            println!("skipped: {root} cannot be read");
            continue;
        };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let gone = |name: &str| {
            let pid = name.strip_prefix("schedlab-").and_then(|rest| rest.split('-').next());
            pid.is_some_and(|pid| !Path::new("/proc").join(pid).exists())
        };
        // Instances of other runs at the same time are theirs.
        assert_eq!(names.filter(|name| gone(name)).collect::<Vec<_>>(), Vec::<String>::new());
    }
}
