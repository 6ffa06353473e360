// SPDX-License-Identifier: GPL-2.0-only
//! `schedlab diff`: equal runs, runs that part, recordings, transcripts, damaged files.

mod support;

use std::path::{Path, PathBuf};
use std::process::Output as Ended;

use schedlab_trace::transcript::{Block, Frame, MAGIC, Output, open};
use support::schedlab_in;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../trace/tests/fixtures");
const LIVE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../liverun/tests/fixtures");

/// A folder of this test alone.
fn folder(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("diff").join(name);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("the test may write");
    path
}

fn schedlab(folder: &Path, args: &[&str]) -> Ended {
    schedlab_in(folder).args(args).output().expect("the program starts")
}

/// Records a run of `workload` under `policy` on two CPUs.
fn record(folder: &Path, workload: &str, policy: &str, trace: &str) {
    let args = ["run", workload, "-p", policy, "-m", "2", "-d", "60ms", "-q", "--trace", trace];
    let output = schedlab(folder, &args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn diff(folder: &Path, args: &[&str], code: i32) -> String {
    let output = schedlab(folder, &[&["diff"], args].concat());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{err}");
    format!("{text}{err}").replace(FIXTURES, "FIXTURES").replace(LIVE, "LIVE")
}

#[test]
fn same_run_twice_has_no_difference() {
    let dir = folder("same");
    record(&dir, "audio-vs-compile", "eevdf", "a.slt");
    record(&dir, "audio-vs-compile", "eevdf", "b.slt");
    let text = diff(&dir, &["a.slt", "b.slt"], 0);
    assert!(text.contains("\nno difference\n"), "{text}");
}

#[test]
fn run_that_was_to_end_sooner_is_no_difference() {
    let dir = folder("shorter");
    record(&dir, "audio-vs-compile", "eevdf", "a.slt");
    let args = ["run", "audio-vs-compile", "-p", "eevdf", "-m", "2", "-q", "--trace", "b.slt"];
    let output = schedlab(&dir, &[&args[..], &["-d", "90ms"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for pair in [["a.slt", "b.slt"], ["b.slt", "a.slt"]] {
        let text = diff(&dir, &pair, 0);
        assert!(text.contains("up to the end of the shorter one at 0.06"), "{text}");
    }
}

#[test]
fn longer_slice_is_seen_with_both_sides_values() {
    let dir = folder("slice");
    record(&dir, "audio-vs-compile", "eevdf", "a.slt");
    record(&dir, "audio-vs-compile", "eevdf:base_slice=3ms", "b.slt");
    insta::assert_snapshot!(diff(&dir, &["a.slt", "b.slt"], 1));
}

#[test]
fn two_policies_show_their_own_values() {
    let dir = folder("policies");
    record(&dir, "audio-vs-compile", "goodness", "a.slt");
    record(&dir, "audio-vs-compile", "o1@g3", "b.slt");
    insta::assert_snapshot!(diff(&dir, &["a.slt", "b.slt"], 1));
}

#[test]
fn json_form_has_candidates_with_values() {
    let dir = folder("json");
    record(&dir, "audio-vs-compile", "eevdf", "a.slt");
    record(&dir, "audio-vs-compile", "cfs", "b.slt");
    let text = diff(&dir, &["a.slt", "b.slt", "--format", "json", "-o", "out.json"], 1);
    assert_eq!(text, "error: the runs differ\n");
    let text = std::fs::read_to_string(dir.join("out.json")).expect("written");
    let json: serde_json::Value = serde_json::from_str(&text).expect("valid JSON");
    assert_eq!(json["schema"], "schedlab.diff/1");
    for side in ["a", "b"] {
        let candidates = json["divergence"][side]["candidates"].as_array().expect("a list");
        assert!(candidates.iter().any(|c| c["values"]["vruntime"].is_i64()), "{side}");
    }
}

#[test]
fn run_under_a_cost_model_of_its_own_is_compared_without_values() {
    let dir = folder("cost");
    std::fs::write(dir.join("mine.toml"), "").expect("the test may write");
    for (policy, trace) in [("goodness", "a.slt"), ("eevdf", "b.slt")] {
        let args = ["run", "audio-vs-compile", "-p", policy, "-d", "60ms", "-q", "--trace", trace];
        let output = schedlab(&dir, &[&args[..], &["--cost", "mine.toml"]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    let text = diff(&dir, &["a.slt", "b.slt"], 1);
    assert!(
        text.contains("the cost model `mine.toml` is a file that the recording lacks"),
        "{text}"
    );
}

#[test]
fn recording_and_its_text_have_no_difference() {
    let dir = folder("forms");
    let (a, b) = (format!("{FIXTURES}/vm-groups.data.zst"), format!("{FIXTURES}/vm-groups.txt"));
    let text = diff(&dir, &[&a, &b], 0);
    assert!(text.contains("by the order in which names come to each CPU"), "{text}");
    assert!(text.contains("\nno difference\n"), "{text}");
}

#[test]
fn recording_and_its_replay_part_with_those_who_wait() {
    let dir = folder("replay");
    let capture = format!("{FIXTURES}/vm-groups.data.zst");
    let import = schedlab(&dir, &["import", &capture, "-o", "w.toml", "-q"]);
    assert!(import.status.success(), "{}", String::from_utf8_lossy(&import.stderr));
    let run = ["run", "w.toml", "-p", "eevdf", "-m", "4", "-q", "--trace", "r.slt"];
    assert!(schedlab(&dir, &run).status.success());
    let text = diff(&dir, &[&capture, "r.slt"], 1);
    assert!(text.contains("woken and waiting: "), "{text}");
}

#[test]
fn damaged_or_newer_file_is_refused_with_its_place() {
    let dir = folder("damaged");
    record(&dir, "pingpong", "eevdf", "a.slt");
    let whole = std::fs::read(dir.join("a.slt")).expect("written");
    std::fs::write(dir.join("cut.slt"), &whole[..whole.len() / 2]).expect("the test may write");
    let mut newer = whole.clone();
    newer[8] = 9;
    std::fs::write(dir.join("newer.slt"), newer).expect("the test may write");
    let text = diff(&dir, &["a.slt", "cut.slt"], 3);
    assert!(text.starts_with("error: cut.slt: byte "), "{text}");
    let text = diff(&dir, &["newer.slt", "a.slt"], 3);
    assert!(text.contains("version 9"), "{text}");
    diff(&dir, &["a.slt", "no-such-file"], 2);
}

#[test]
fn transcript_alone_is_compared_with_its_replay() {
    let dir = folder("transcript");
    insta::assert_snapshot!(diff(&dir, &[&format!("{LIVE}/bfs.live.zst")], 0));
}

#[test]
fn transcript_with_another_decision_shows_what_the_policy_knew() {
    let dir = folder("altered");
    let file = std::fs::read(format!("{LIVE}/bfs.live.zst")).expect("a fixture");
    let mut transcript = open(&file[..]).expect("a transcript");
    let mut bytes = [&MAGIC, transcript.header().to_line().as_bytes()].concat();
    let mut block = Block::new();
    let mut n = 0;
    while let Some(mut frame) = transcript.next_frame().expect("whole") {
        if let Frame::Output(Output::Give(cpu, _)) = &mut frame {
            n += 1;
            if n == 300 {
                *cpu = schedlab_units::CpuId(1 - cpu.0);
            }
        }
        block.push(&frame);
        if block.is_full() {
            bytes.extend(std::mem::take(&mut block).seal());
        }
    }
    bytes.extend(block.seal());
    std::fs::write(dir.join("altered.live"), bytes).expect("the test may write");
    insta::assert_snapshot!(diff(&dir, &["altered.live"], 1));
}

#[test]
fn two_transcripts_are_compared_by_the_order_of_names() {
    let dir = folder("transcripts");
    let (a, b) = (format!("{LIVE}/bfs.live.zst"), format!("{LIVE}/eevdf.live.zst"));
    let text = diff(&dir, &[&a, &b], 1);
    assert!(text.contains("by the order in which names come to each CPU"), "{text}");
    let text = diff(&dir, &[&a, &a], 0);
    assert!(text.contains("\nno difference\n"), "{text}");
}

#[test]
fn single_file_that_is_no_transcript_is_refused() {
    let dir = folder("single");
    let text = diff(&dir, &[&format!("{FIXTURES}/vm-groups.txt")], 3);
    assert!(text.contains("this is no transcript of a live run"), "{text}");
    diff(&dir, &["no-such-file"], 2);
}
