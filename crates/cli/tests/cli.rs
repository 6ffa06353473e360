// SPDX-License-Identifier: GPL-2.0-only
//! The program as its users meet it: help, listings, a run, and every kind of end.

mod support;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use support::schedlab_in;

fn schedlab() -> Command {
    schedlab_in(Path::new(env!("CARGO_TARGET_TMPDIR")))
}

fn run(args: &[&str]) -> Output {
    schedlab().args(args).output().expect("the program starts")
}

fn code(output: &Output) -> i32 {
    output.status.code().expect("the program was not killed")
}

/// Exit code, standard error and standard output, with what changes from host to host taken out.
fn shown(args: &[&str]) -> String {
    let output = run(args);
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    let text = format!("exit {}\n--- stderr\n{err}--- stdout\n{out}", code(&output));
    text.replace(env!("CARGO_PKG_VERSION"), "x.y.z")
}

/// A file with this content that belongs to this test alone.
fn file(name: &str, content: &[u8]) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, content).expect("the test may write");
    path
}

fn input_error(name: &str, content: &[u8]) -> String {
    file(name, content);
    let output = run(&["run", name, "-p", "rr"]);
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(code(&output), 3, "{err}");
    assert!(err.starts_with(&format!("error: {name}:")), "{err}");
    assert!(err.len() < 2000, "a message of {} bytes", err.len());
    assert!(output.stdout.is_empty());
    err
}

#[test]
fn help_of_program() {
    insta::assert_snapshot!(shown(&["--help"]));
}

#[test]
fn help_of_run() {
    insta::assert_snapshot!(shown(&["run", "--help"]));
}

#[test]
fn policies_one_in_full() {
    insta::assert_snapshot!(shown(&["policies", "rr"]));
}

#[test]
fn policies_and_variants_are_all_listed() {
    let text = shown(&["policies"]);
    for info in schedlab_policies::infos() {
        assert!(text.contains(info.name), "{text}");
        for variant in info.variants {
            assert!(text.contains(variant.name), "{text}");
            let args = ["policies", info.name];
            assert!(shown(&args).starts_with("exit 0\n"), "{}", info.name);
        }
    }
}

#[test]
fn workloads_one_in_full() {
    insta::assert_snapshot!(shown(&["workloads", "hogs"]));
}

#[test]
fn workloads_are_all_listed_and_shown() {
    let text = shown(&["workloads"]);
    for builtin in schedlab_workload::builtins() {
        assert!(text.contains(builtin.name), "{text}");
        let shown = shown(&["workloads", builtin.name]);
        assert!(shown.starts_with("exit 0\n"), "{shown}");
    }
}

#[test]
fn run_compares_two_policies() {
    insta::assert_snapshot!(shown(&["run", "hogs", "-p", "fifo", "-p", "rr", "--cost", "zero"]));
}

#[test]
fn run_wrong_arguments() {
    let cases: [&[&str]; 14] = [
        &["run", "hogs"],
        &["run", "hgos", "-p", "rr"],
        &["run", "hogs", "-p", "r"],
        &["run", "hogs", "-p", "rr:slcie=1ms"],
        &["run", "hogs", "-p", "rr:slice=5"],
        &["run", "hogs", "-p", "rr", "--duration", "-5ms"],
        &["run", "hogs", "-p", "rr", "--warmup", "10s"],
        &["run", "hogs", "-p", "rr", "--set", "hog=1"],
        &["run", "hogs", "-p", "rr", "--machine", "smp"],
        &["run", "hogs", "-p", "rr", "--cost", "free"],
        &["run", "hogs", "-p", "rr", "--seed", "8..1"],
        &["run", "hogs", "-p", "rr", "--trace", "x.doc"],
        &["run", "hogs", "-p", "rr", "--trace", "x.slt", "--seed", "1..2"],
        &["run", "hogs", "-p", "rr", "-o", "no/such/folder/x"],
    ];
    let mut all = String::new();
    for args in cases {
        let output = run(args);
        assert_eq!(code(&output), 2, "{args:?}");
        assert!(output.stdout.is_empty(), "{args:?}");
        let err = String::from_utf8_lossy(&output.stderr);
        all += &format!("$ schedlab {}\n{err}\n", args.join(" "));
    }
    insta::assert_snapshot!(all);
}

#[test]
fn input_fault_is_shown_in_its_line() {
    let text =
        "[workload]\nname = \"x\"\n[[task]]\nname = \"a\"\ndo = [\"run 1ms\", \"rnu 2ms\"]\n";
    insta::assert_snapshot!(input_error("fault.toml", text.as_bytes()));
}

#[test]
fn input_empty_file_is_refused() {
    assert!(input_error("empty.toml", b"").contains("the file is empty"));
}

#[test]
fn input_truncated_json_is_refused() {
    input_error("truncated.json", b"{ \"tasks\": { \"a\": { \"run\": 100");
}

#[test]
fn input_binary_is_refused() {
    input_error("binary.toml", &[0xff, 0xfe, 0, 1, 2, 3]);
}

#[test]
fn input_line_of_50_mb_is_refused_and_not_printed() {
    let mut text = b"[workload]\nname = ".to_vec();
    text.resize(50 << 20, b'z');
    let err = input_error("long.toml", &text);
    assert!(err.contains("long.toml:2:1: "), "{err}");
}

#[test]
fn input_cpu_beyond_machine_is_refused() {
    let text =
        "[workload]\nname = \"x\"\n[[task]]\nname = \"a\"\ncpus = \"3\"\ndo = [\"run 1ms\"]\n";
    file("cpus.toml", text.as_bytes());
    let output = run(&["run", "cpus.toml", "-p", "rr", "--machine", "4"]);
    assert_eq!(code(&output), 0, "{}", String::from_utf8_lossy(&output.stderr));
    let err = input_error("cpus.toml", text.as_bytes());
    assert!(err.contains("--machine"), "{err}");
}

#[test]
fn input_machine_file_is_read_and_its_fault_placed() {
    file("machine.toml", b"cores = 2\nthreads = 2\n");
    let output = run(&["run", "hogs", "-p", "rr", "-m", "machine.toml"]);
    assert!(String::from_utf8_lossy(&output.stdout).contains("4 CPUs"), "{output:?}");
    file("machine-wrong.toml", b"cores = 2\nthraeds = 2\n");
    let output = run(&["run", "hogs", "-p", "rr", "-m", "machine-wrong.toml"]);
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(code(&output), 3, "{err}");
    assert!(err.starts_with("error: machine-wrong.toml:2:1: "), "{err}");
}

#[test]
fn run_reads_standard_input() {
    let text = b"[workload]\nname = \"piped\"\n[[task]]\nname = \"a\"\ndo = [\"run 1ms\"]\n";
    let mut child = schedlab()
        .args(["run", "-", "-p", "rr"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    child.stdin.take().expect("piped").write_all(text).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(String::from_utf8_lossy(&output.stdout).contains("piped"));
}

#[test]
fn run_json_is_reproducible_but_for_the_host() {
    let json = || {
        let output =
            run(&["run", "hogs", "-p", "rr", "--seed", "1..3", "--format", "json", "--twice"]);
        assert_eq!(code(&output), 0);
        let mut json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let host = json.as_object_mut().expect("an object").remove("host").expect("there");
        assert!(host["wall_ns"].as_u64() > Some(0));
        json
    };
    let first = json();
    assert_eq!(first["schema"], "schedlab.run/1");
    let seeds: Vec<_> =
        first["runs"].as_array().expect("runs").iter().map(|run| run["seed"].as_u64()).collect();
    assert_eq!(seeds, [Some(1), Some(2), Some(3)]);
    assert_eq!(first, json());
}

#[test]
fn run_results_go_to_the_file_and_nothing_to_standard_output() {
    let path = file("results.csv", b"what was there before, and longer than the result is");
    let output = run(&["run", "hogs", "-p", "rr", "--format", "csv", "-o", "results.csv"]);
    assert_eq!(code(&output), 0);
    assert!(output.stdout.is_empty() && output.stderr.is_empty());
    let text = std::fs::read_to_string(path).expect("written");
    assert!(text.starts_with("spec,policy,") && text.ends_with("\r\n"));
}

#[test]
fn run_traces_are_written_in_both_forms() {
    for name in ["trace.txt", "trace.slt"] {
        let output = run(&["run", "hogs", "-p", "rr", "--duration", "1s", "--trace", name]);
        assert_eq!(code(&output), 0, "{}", String::from_utf8_lossy(&output.stderr));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        assert!(std::fs::metadata(path).expect("written").len() > 1000);
    }
}

#[test]
fn import_of_own_traces_runs_again() {
    for name in ["import.txt", "import.slt"] {
        let record = ["run", "audio-vs-compile", "-p", "eevdf", "--duration", "200ms", "-q"];
        assert_eq!(code(&run(&[&record[..], &["--trace", name]].concat())), 0);
        let workload = format!("{name}.toml");
        let output = run(&["import", name, "-o", &workload]);
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(code(&output), 0, "{err}");
        assert!(output.stdout.is_empty() && err.contains("CPU time"), "{err}");
        let output = run(&["run", &workload, "-p", "goodness", "-p", "eevdf"]);
        assert_eq!(code(&output), 0, "{}", String::from_utf8_lossy(&output.stderr));
        assert!(String::from_utf8_lossy(&output.stdout).contains("audio"));
    }
}

#[test]
fn import_of_trace_cut_in_the_middle_is_refused_with_its_place() {
    let record = ["run", "hogs", "-p", "rr", "--duration", "1s", "-q", "--trace", "whole.txt"];
    assert_eq!(code(&run(&record)), 0);
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("whole.txt");
    let whole = std::fs::read(path).expect("written");
    let cut = whole.iter().rposition(|b| *b == b'=').expect("a field");
    file("cut.txt", &whole[..cut]);
    let _ = std::fs::remove_file(Path::new(env!("CARGO_TARGET_TMPDIR")).join("cut.toml"));
    let output = run(&["import", "cut.txt", "-o", "cut.toml"]);
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(code(&output), 3, "{err}");
    let line = whole[..cut].iter().filter(|b| **b == b'\n').count() + 1;
    assert!(err.starts_with(&format!("error: cut.txt:{line}:")), "{err}");
    assert!(!Path::new(env!("CARGO_TARGET_TMPDIR")).join("cut.toml").exists());
}

#[test]
fn import_of_garbage_is_refused() {
    for (name, content) in [
        ("garbage.txt", vec![b'z'; 50 << 20]),
        ("nothing.txt", Vec::new()),
        ("bytes.txt", vec![0xff; 4096]),
        ("data.txt", b"PERFILE2 and more".to_vec()),
    ] {
        file(name, &content);
        let output = run(&["import", name, "-o", "-"]);
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(code(&output), 3, "{err}");
        assert!(err.starts_with(&format!("error: {name}:")) && err.len() < 2000, "{err}");
        assert!(output.stdout.is_empty());
    }
}

#[test]
fn run_with_checks_passes() {
    let output = run(&["run", "hogs", "-p", "rr", "--duration", "1s", "--check"]);
    assert_eq!(code(&output), 0, "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn color_is_for_terminals_unless_asked_for() {
    let has_color = |args: &[&str]| run(args).stdout.contains(&0x1b);
    let base = ["run", "hogs", "-p", "rr", "--duration", "1s"];
    assert!(!has_color(&base));
    assert!(has_color(&[&base[..], &["--color", "always"]].concat()));
    assert!(!has_color(&[&base[..], &["--color", "never"]].concat()));
}

#[test]
fn reader_that_goes_away_is_no_error() {
    let mut child = schedlab()
        .args(["run", "hogs", "-p", "rr", "--format", "json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(code(&output), 0);
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[cfg(unix)]
#[test]
fn interrupted_run_keeps_partial_results() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("interrupted.json");
    let _ = std::fs::remove_file(&path);
    let child = schedlab()
        .args(["run", "hogs", "-p", "rr", "--duration", "1000h", "--format", "json"])
        .args(["-o", "interrupted.json"])
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // The file appears once ^C is handled.
    while !path.exists() {
        std::thread::yield_now();
    }
    let kill = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().expect("a shell").success());
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(code(&output), 130);
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(err.starts_with("error: interrupted"), "{err}");
    let text = std::fs::read(path).expect("written");
    let json: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
    let runs = json["runs"].as_array().expect("runs");
    assert!(runs.iter().all(|run| run["complete"] == false), "{json}");
}

#[test]
fn matrix_runs_every_combination_that_is_left_open() {
    let short = ["-p", "rr", "--duration", "2s", "--set", "bench=audio", "--format"];
    let args = |form| [&["run", "interbench"], &short[..], &[form]].concat();
    let text = run(&args("text"));
    let out = String::from_utf8_lossy(&text.stdout).into_owned();
    assert_eq!(code(&text), 0, "{}", String::from_utf8_lossy(&text.stderr));
    assert!(out.contains("combinations  9") && out.contains("interbench: Audio under rr"), "{out}");
    let rows = ["None", "Video", "X", "Burn", "Write", "Read", "Ring", "Compile", "Memload"];
    for row in rows {
        assert!(out.lines().any(|line| line.starts_with(&format!("{row} "))), "{row}: {out}");
    }
    let json: serde_json::Value = serde_json::from_slice(&run(&args("json")).stdout).expect("JSON");
    assert_eq!(json["schema"], "schedlab.matrix/1");
    let names: Vec<&str> = json["cells"]
        .as_array()
        .expect("cells")
        .iter()
        .filter_map(|cell| cell["workload"]["name"].as_str())
        .collect();
    assert_eq!((names.len(), names[3]), (9, "interbench-audio-burn"));
}

#[test]
fn matrix_is_no_single_run_to_trace() {
    let output = run(&["run", "interbench", "-p", "rr", "--trace", "matrix.txt"]);
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(code(&output), 2, "{err}");
    assert!(err.contains("a single combination of the matrix"), "{err}");
}

#[test]
fn workload_with_a_matrix_shows_it() {
    let out = shown(&["workloads", "interbench"]);
    assert!(out.contains("run interbench-BENCH-LOAD"), "{out}");
    assert!(out.contains("bench: audio, video, x, gaming; when asked for: custom"), "{out}");
}
