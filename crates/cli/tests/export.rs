// SPDX-License-Identifier: GPL-2.0-only
//! `schedlab export` and `run --trace`: every form in, every form out, nothing half done.

mod support;

use std::path::{Path, PathBuf};
use std::process::Output;

use support::schedlab_in;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../trace/tests/fixtures");

/// A folder of this test alone.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("export").join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("the test may write");
    path
}

fn schedlab(folder: &Path, args: &[&str]) -> Output {
    schedlab_in(folder).args(args).output().expect("the program starts")
}

fn ok(folder: &Path, args: &[&str]) -> String {
    let output = schedlab(folder, args);
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{args:?}: {err}");
    err
}

fn fails(folder: &Path, args: &[&str], code: i32) -> String {
    let output = schedlab(folder, args);
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {err}");
    err
}

fn files(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("readable").file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn capture_goes_through_every_form_and_comes_back_the_same() {
    let dir = folder("chain");
    let capture = format!("{FIXTURES}/vm-jobs.data.zst");
    let found = ok(&dir, &["export", &capture, "-o", "a.txt"]);
    insta::assert_snapshot!(found.replace(FIXTURES, "FIXTURES"));
    ok(&dir, &["export", "a.txt", "-o", "b.pftrace", "-q"]);
    ok(&dir, &["export", "b.pftrace", "-o", "c.json", "-q"]);
    ok(&dir, &["export", "c.json", "-o", "d.txt", "-q"]);
    let text = |name: &str| std::fs::read_to_string(dir.join(name)).expect("written");
    assert!(text("a.txt") == text("d.txt"), "the texts before and after differ");
    ok(&dir, &["export", "b.pftrace", "-o", "e.csv", "-q"]);
    assert_eq!(text("e.csv").lines().count(), 4787 + 1);
    assert_eq!(files(&dir), ["a.txt", "b.pftrace", "c.json", "d.txt", "e.csv"]);
}

#[test]
fn run_is_traced_in_every_form_alike() {
    let dir = folder("run");
    let run = ["run", "pingpong", "-p", "eevdf", "-d", "3ms", "-q", "--trace"];
    for name in ["a.txt", "a.pftrace", "a.json", "a.csv", "a.slt"] {
        ok(&dir, &[&run[..], &[name]].concat());
    }
    let text = |name: &str| std::fs::read(dir.join(name)).expect("written");
    for form in ["pftrace", "json", "slt"] {
        let (from, to) = (format!("a.{form}"), format!("from-{form}.txt"));
        ok(&dir, &["export", &from, "-o", &to, "-q"]);
        assert!(text("a.txt") == text(&to), "{form} holds something else");
    }
    let json = String::from_utf8(text("a.json")).expect("UTF-8");
    assert!(json.contains("vruntime") && json.contains("nr_running"));
    // The same run twice is the same bytes.
    let first = text("a.pftrace");
    ok(&dir, &[&run[..], &["a.pftrace"]].concat());
    assert!(first == text("a.pftrace"));
}

#[test]
fn several_runs_and_traces_go_into_one_perfetto_trace() {
    let dir = folder("together");
    let run = ["run", "pingpong", "-p", "rr", "-p", "eevdf", "-d", "3ms", "-q", "--trace"];
    ok(&dir, &[&run[..], &["two.pftrace"]].concat());
    let first = std::fs::read(dir.join("two.pftrace")).expect("written");
    ok(&dir, &[&run[..], &["two.pftrace"]].concat());
    assert!(first == std::fs::read(dir.join("two.pftrace")).expect("written"));
    for mark in ["rr with seed 1", "eevdf@6.12 with seed 1", "vruntime", "nr_running"] {
        let mark = mark.as_bytes();
        assert!(first.windows(mark.len()).any(|window| window == mark), "{mark:?}");
    }
    let err = fails(&dir, &["export", "two.pftrace", "-o", "x.txt"], 3);
    assert!(err.contains("shows several runs and holds no records"), "{err}");
    let (a, b) = (format!("{FIXTURES}/jobs-v6.dat"), format!("{FIXTURES}/vm-groups.txt"));
    ok(&dir, &["export", &a, &b, "-o", "both.pftrace", "-q"]);
    let err = fails(&dir, &["export", &a, &b, "-o", "both.txt"], 2);
    assert!(err.contains("several traces go into one .pftrace only"), "{err}");
    let err = fails(&dir, &[&run[..], &["x.txt"]].concat(), 2);
    assert!(err.contains("a single run, but for .pftrace"), "{err}");
    assert_eq!(files(&dir), ["both.pftrace", "two.pftrace"]);
}

#[test]
fn damaged_trace_leaves_no_file() {
    let dir = folder("damaged");
    let whole = std::fs::read(format!("{FIXTURES}/jobs-v6.dat")).expect("a fixture");
    std::fs::write(dir.join("cut.dat"), &whole[..whole.len() - 100]).expect("the test may write");
    let err = fails(&dir, &["export", "cut.dat", "-o", "out.txt"], 3);
    assert!(err.starts_with("error: cut.dat: byte "), "{err}");
    assert_eq!(files(&dir), ["cut.dat"]);
}

#[test]
fn output_of_unknown_form_or_place_is_a_usage_error() {
    let dir = folder("usage");
    let capture = format!("{FIXTURES}/jobs-v6.dat");
    let err = fails(&dir, &["export", &capture, "-o", "out.xyz"], 2);
    assert!(err.contains(".pftrace (Perfetto)"), "{err}");
    fails(&dir, &["export", &capture, "-o", "no/such/folder.txt"], 2);
    fails(&dir, &["export", "no-such-file", "-o", "out.txt"], 2);
    fails(&dir, &["run", "pingpong", "-p", "rr", "-d", "1ms", "--trace", "out.xyz"], 2);
    assert_eq!(files(&dir), [""; 0]);
}
