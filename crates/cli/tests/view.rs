// SPDX-License-Identifier: GPL-2.0-only
//! `schedlab view` as its users meet it.

mod support;

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use support::schedlab_in;

fn schedlab() -> Command {
    schedlab_in(Path::new(env!("CARGO_TARGET_TMPDIR")))
}

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace/tests/fixtures").join(name);
    path.to_str().expect("UTF-8").to_string()
}

fn view(trace: &str, args: &[&str]) -> Output {
    schedlab().args(["view", trace]).args(args).output().expect("the program starts")
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("the program was not killed")
}

fn out(output: &Output) -> String {
    assert_eq!(code(output), 0, "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A file with this content that belongs to this test alone.
fn file(name: &str, content: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, content).expect("the test may write");
    path
}

#[test]
fn help_of_each_view() {
    let help = |args: &[&str]| {
        let output = schedlab().arg("view").args(args).arg("--help").output();
        out(&output.expect("the program starts"))
    };
    let views = ["latency", "timehist", "map", "summary"];
    let texts: Vec<String> = views.iter().map(|view| help(&["--as", view])).collect();
    insta::assert_snapshot!(format!("{}\n{}", help(&[]), texts.join("\n")));
}

#[test]
fn every_view_reads_every_form() {
    for trace in ["host-timer.txt", "host-timer.data.zst", "jobs-v6.dat", "ftrace.txt"] {
        for kind in ["latency", "timehist", "map", "summary"] {
            let shown = out(&view(&fixture(trace), &["--as", kind]));
            assert!(shown.lines().count() > 5, "{trace} {kind}: {shown}");
        }
    }
}

#[test]
fn letters_of_perf_select_what_they_select_there() {
    let trace = fixture("vm-groups.txt");
    let shown = out(&view(&trace, &["--as", "timehist", "-p", "107", "-w", "-C", "2"]));
    assert!(shown.lines().skip(3).all(|line| line.contains("[107]") && line.contains("[0002]")));
    let shown = out(&view(&trace, &["--as", "latency", "-p", "-s", "switch"]));
    assert!(shown.lines().nth(4).is_some_and(|row| row.contains("load:107")), "{shown}");
    let shown = out(&view(&trace, &["--as=map", "--cpus", "1-2"]));
    assert!(shown.lines().any(|line| line.starts_with("  *B0 ")), "{shown}");
}

#[test]
fn wrong_words_are_refused_with_the_usage() {
    let trace = fixture("vm-groups.txt");
    for args in [
        &[][..],
        &["--as", "flamegraph"],
        &["--as", "map", "-w"],
        &["--as", "latency", "--sort", "pid"],
        &["--as", "timehist", "--time", "2,1"],
        &["--as", "timehist", "-C", "1-"],
        &["--as", "timehist", "-s", "-S"],
        &["--as", "map", "--fuzzy-name"],
    ] {
        let output = view(&trace, args);
        assert_eq!(code(&output), 2, "{args:?}");
        assert!(err(&output).starts_with("error: "), "{args:?}: {}", err(&output));
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn damaged_trace_ends_with_its_line() {
    let text = std::fs::read_to_string(fixture("host-timer.txt")).expect("the fixture is there");
    let cut = text.replacen("prev_pid=5238", "prev_pid=x", 1);
    file("damaged.txt", cut.as_bytes());
    for kind in ["latency", "timehist", "map", "summary"] {
        let output = view("damaged.txt", &["--as", kind]);
        assert_eq!(code(&output), 3, "{kind}");
        assert!(err(&output).starts_with("error: damaged.txt:"), "{}", err(&output));
    }
    assert_eq!(code(&view("no-such-file", &["--as", "map"])), 2);
}

#[test]
fn trace_from_a_pipe_is_viewed_but_for_what_needs_the_number_of_cpus() {
    let text = std::fs::File::open(fixture("host-timer.txt")).expect("the fixture is there");
    let output = schedlab().args(["view", "-", "--as", "map"]).stdin(text).output();
    let shown = out(&output.expect("the program starts"));
    assert!(shown.starts_with("  *A0    4541.271108 secs A0 => load:5238\n"), "{shown}");
    let output = view("-", &["--as", "timehist", "-V"]);
    assert_eq!(code(&output), 2);
    assert!(err(&output).contains("name a file"), "{}", err(&output));
}

#[test]
fn reader_that_goes_away_ends_the_view_quietly() {
    let trace = fixture("vm-jobs.txt.zst");
    let mut child = schedlab()
        .args(["view", &trace, "--as", "timehist", "-w", "-M", "-n"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut line = String::new();
    lines.read_line(&mut line).expect("a line");
    drop(lines);
    let mut told = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut told).expect("text");
    assert_eq!(child.wait().expect("it ends").code(), Some(0), "{told}");
    assert_eq!(told, "");
}

#[test]
fn output_file_holds_the_view_without_colours() {
    let trace = fixture("vm-groups.txt");
    let args = ["--as", "map", "--color-cpus", "0", "--color", "always"];
    let shown = out(&view(&trace, &args));
    assert!(shown.contains("\u{1b}["));
    let output = view(&trace, &[&args[..], &["-o", "view-map.txt"]].concat());
    assert_eq!(out(&output), "");
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("view-map.txt");
    let written = std::fs::read_to_string(path).expect("it was written");
    assert!(!written.contains('\u{1b}') && written.lines().count() == shown.lines().count());
}

fn json(args: &[&str]) -> Value {
    let output = schedlab().args(args).output().expect("the program starts");
    serde_json::from_str(&out(&output)).expect("JSON")
}

fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("{key} of {value}"))
}

/// The views of a simulated run know what its report knows, but for the time before the first and
/// after the last switch of each CPU, which a trace of switches does not hold.
#[test]
fn views_of_a_simulated_run_agree_with_its_report() {
    for (n, (workload, policy, machine)) in [
        ("pingpong", "eevdf", "1"),
        ("hackbench", "eevdf", "4"),
        ("schbench", "cfs", "2"),
        ("audio-vs-compile", "o1", "2"),
        ("browser", "bfs", "2"),
    ]
    .into_iter()
    .enumerate()
    {
        let trace = format!("view-{n}.slt");
        let run = json(&[
            "run", workload, "-p", policy, "-m", machine, "-d", "300ms", "--trace", &trace,
            "--format", "json",
        ]);
        let run = &run["runs"][0];
        let seen = json(&["view", &trace, "--as", "summary", "--format", "json"]);
        let tasks = |value: &Value| value["tasks"].as_array().expect("tasks").clone();
        let sum = |value: &Value, key| tasks(value).iter().map(|t| number(t, key)).sum::<u64>();
        let cpus = seen["cpus"].as_array().expect("cpus");
        let unknown: u64 = cpus.iter().map(|cpu| number(cpu, "unknown_ns")).sum();
        assert!(cpus.iter().all(|cpu| number(cpu, "contradictions") == 0), "{workload}");
        let tail = cpus.len() as u64
            * (number(run, "elapsed_ns") - number(&seen["trace"], "last_ns")
                + number(&seen["trace"], "first_ns"));
        let (told, shown) = (sum(run, "run_ns"), sum(&seen, "run_ns"));
        assert!(shown <= told && told - shown <= unknown + tail, "{workload}: {told} {shown}");
        let totals = &run["totals"];
        assert_eq!(sum(&seen, "voluntary"), number(totals, "voluntary"), "{workload}");
        assert_eq!(sum(&seen, "involuntary"), number(totals, "involuntary"), "{workload}");
        assert_eq!(sum(&seen, "wakeups"), number(totals, "wakeups"), "{workload}");
        // Latency shows the same CPU time in its last line.
        let table = out(&view(&trace, &["--as", "latency", "--quiet"]));
        let total = table.lines().find(|line| line.contains("TOTAL:")).expect("a total");
        let cpu_ms = format!("{:.3} ms", shown as f64 / 1e6);
        assert!(total.contains(&cpu_ms), "{workload}: {total}, not {cpu_ms}");
    }
}
