// SPDX-License-Identifier: GPL-2.0-only
//! The views beside a real `perf sched`, number by number.
//!
//! Needs the program perf 6.1, whose path the variable SCHEDLAB_PERF holds; `.ci/run` gets it.
//! Names are compared where perf knows them: it learns them from records of its own that the
//! fixtures hold only for threads that began or changed their name while being recorded, while we
//! also take them from the scheduler's events. `docs/views.md` lists every other difference.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use schedlab_trace::{Comms, ReadSummary, RecordSink, read_into};
use schedlab_units::Time;
use schedlab_views::{
    Latency, LatencyOptions, Map, MapOptions, Perf, SortKey, SummaryMode, Timehist, TimehistOptions,
};

const CAPTURES: [&str; 4] = ["host-pingpong", "host-timer", "vm-groups", "vm-jobs"];

/// The recording as a file that perf can read; with `as_wakeup` its `sched_waking` is called
/// `sched_wakeup`, which is the only wake-up that `perf sched latency` of 6.1 counts.
fn recording(name: &str, as_wakeup: bool) -> PathBuf {
    let packed = format!("../trace/tests/fixtures/{name}.data.zst");
    let packed = fs::File::open(Path::new(env!("CARGO_MANIFEST_DIR")).join(packed));
    let mut bytes = Vec::new();
    ruzstd::decoding::StreamingDecoder::new(packed.expect("the fixture is there"))
        .expect("a zstd frame")
        .read_to_end(&mut bytes)
        .expect("a whole frame");
    let mut file = format!("{name}-{}.data", std::process::id());
    if as_wakeup {
        let (old, new) = (b"sched_waking", b"sched_wakeup");
        let mut at = 0;
        while let Some(found) = bytes[at..].windows(old.len()).position(|w| w == old) {
            at += found;
            bytes[at..at + new.len()].copy_from_slice(new);
        }
        file = format!("wakeup-{file}");
    }
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(file);
    // Tests run side by side: a file appears complete or not at all.
    let thread = format!("{:?}", std::thread::current().id());
    let half = path.with_extension(thread.replace(['(', ')'], ""));
    fs::write(&half, bytes).expect("the test may write");
    fs::rename(&half, &path).expect("the test may rename");
    path
}

fn perf(file: &Path, command: &str, args: &str) -> String {
    let program = std::env::var("SCHEDLAB_PERF").expect("SCHEDLAB_PERF names the program perf");
    let output = Command::new(program)
        .args(["sched", command, "-f", "-i"])
        .arg(file)
        .args(args.split_whitespace())
        .env("PERF_CONFIG", "/dev/null")
        .output()
        .expect("perf starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn feed(file: &Path, sink: &mut dyn RecordSink) -> (ReadSummary, Comms) {
    let input = std::io::BufReader::new(fs::File::open(file).expect("it was written"));
    read_into(input, sink).expect("the recording reads")
}

fn timehist(file: &Path, options: TimehistOptions) -> String {
    let mut view = Timehist::new(options, Vec::new());
    let (found, comms) = feed(file, &mut view);
    String::from_utf8(view.finish(&comms, found.n_cpus).expect("memory")).expect("text")
}

fn latency(file: &Path, options: LatencyOptions) -> String {
    let mut view = Latency::new(options);
    let (_, comms) = feed(file, &mut view);
    String::from_utf8(view.finish(&comms, Vec::new()).expect("memory")).expect("text")
}

fn map(file: &Path, options: MapOptions) -> String {
    let mut view = Map::new(options, Vec::new());
    feed(file, &mut view);
    String::from_utf8(view.finish().expect("memory")).expect("text")
}

/// Thread id of a name: `:17`, `name[17]`, `name[17/16]`, `name:17`.
fn id(name: &str) -> Option<&str> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let bare = name.strip_suffix(']').and_then(|rest| rest.rsplit_once('[')).map(|(_, ids)| ids);
    let id = bare.or_else(|| name.rsplit_once(':').map(|(_, id)| id))?;
    let id = id.split('/').next()?;
    digits(id).then_some(id)
}

/// Equal, or a thread that perf cannot name.
fn same_word(perf: &str, ours: &str) -> bool {
    perf == ours || (perf.starts_with(':') && id(perf).is_some() && id(perf) == id(ours))
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

fn same_line(perf: &str, ours: &str) -> bool {
    let (perf, ours) = (words(perf), words(ours));
    perf.len() == ours.len() && perf.iter().zip(&ours).all(|(p, o)| same_word(p, o))
}

/// Asserts that all lines are the same; shows the first ones that are not.
fn assert_same(what: &str, perf: &str, ours: &str) {
    let (perf, ours): (Vec<&str>, Vec<&str>) = (perf.lines().collect(), ours.lines().collect());
    let pairs = perf.iter().zip(&ours).enumerate();
    let wrong: Vec<String> = pairs
        .filter(|(_, (perf, ours))| !same_line(perf, ours))
        .take(8)
        .map(|(n, (perf, ours))| format!("{}\nperf {perf}\nours {ours}\n", n + 1))
        .collect();
    assert!(wrong.is_empty(), "{what}, line\n{}", wrong.join(""));
    assert_eq!(perf.len(), ours.len(), "{what}: lines");
}

fn v6_1() -> TimehistOptions {
    TimehistOptions { perf: Perf::V6_1, ..TimehistOptions::default() }
}

#[test]
fn timehist_rows_equal_those_of_perf() {
    for name in CAPTURES {
        let file = recording(name, false);
        assert_same(name, &perf(&file, "timehist", ""), &timehist(&file, v6_1()));
        let options = TimehistOptions { wakeups: true, migrations: true, next: true, ..v6_1() };
        assert_same(name, &perf(&file, "timehist", "-w -M -n"), &timehist(&file, options));
        let options = TimehistOptions { cpus: vec![1], ..v6_1() };
        assert_same(name, &perf(&file, "timehist", "-C 1"), &timehist(&file, options));
    }
}

#[test]
fn timehist_of_chosen_threads_equals_that_of_perf() {
    let file = recording("vm-groups", false);
    let options = TimehistOptions { threads: vec![101, 107], wakeups: true, ..v6_1() };
    assert_same("-t", &perf(&file, "timehist", "-t 101,107 -w"), &timehist(&file, options));
    let summary = SummaryMode::Both;
    let options = TimehistOptions { processes: vec![107], summary, ..v6_1() };
    assert_same("-p", &perf(&file, "timehist", "-p 107 -S"), &timehist(&file, options));
}

#[test]
fn timehist_states_equal_those_of_perf() {
    for name in CAPTURES {
        let file = recording(name, false);
        // Idle kernel threads are `K` there, with the letters of old kernels, and sleep here.
        let perf = perf(&file, "timehist", "--state -n").replace("   K  next", "   S  next");
        let options = TimehistOptions { state: true, next: true, ..v6_1() };
        assert_same(name, &perf, &timehist(&file, options));
    }
}

#[test]
fn timehist_columns_of_cpus_equal_those_of_perf() {
    let file = recording("vm-groups", false);
    let body = |text: &str| text.lines().skip(3).collect::<Vec<_>>().join("\n");
    let options =
        TimehistOptions { visual_cpus: Some(4), wakeups: true, migrations: true, ..v6_1() };
    let perf = perf(&file, "timehist", "-V -w -M");
    assert_same("-V", &body(&perf), &body(&timehist(&file, options)));
}

#[test]
fn timehist_sums_equal_those_of_perf() {
    for name in CAPTURES {
        let file = recording(name, false);
        let only = TimehistOptions { summary: SummaryMode::Only, ..v6_1() };
        // perf counts migrations under -M only.
        assert_same(name, &perf(&file, "timehist", "-s -M"), &timehist(&file, only.clone()));
        let options = TimehistOptions { state: true, ..only.clone() };
        assert_same(name, &perf(&file, "timehist", "-s --state"), &timehist(&file, options));
        let options = TimehistOptions { cpus: vec![1], ..only };
        assert_same(name, &perf(&file, "timehist", "-s -M -C 1"), &timehist(&file, options));
    }
}

#[test]
fn timehist_of_idle_time_equals_that_of_perf() {
    for name in CAPTURES {
        let file = recording(name, false);
        let options = TimehistOptions { idle: true, summary: SummaryMode::Both, ..v6_1() };
        assert_same(name, &perf(&file, "timehist", "-I -S -M"), &timehist(&file, options));
    }
}

#[test]
fn timehist_of_a_window_equals_that_of_perf() {
    let file = recording("vm-groups", false);
    let at = |us: u64| Some(Time::from_ns(us * 1000));
    for (time, start, stop) in [
        ("5.65,5.66", at(5_650_000), at(5_660_000)),
        ("5.65,", at(5_650_000), None),
        (",5.657", None, at(5_657_000)),
        ("5.6465,5.647", at(5_646_500), at(5_647_000)),
    ] {
        let options = TimehistOptions {
            start,
            stop,
            wakeups: true,
            state: true,
            summary: SummaryMode::Both,
            ..v6_1()
        };
        let perf = perf(&file, "timehist", &format!("-w -S --state --time {time}"));
        let perf = perf.replace("      K  ", "      S  ");
        assert_same(time, &perf, &timehist(&file, options));
    }
}

#[test]
fn latency_by_thread_equals_that_of_perf() {
    for name in CAPTURES {
        for as_wakeup in [false, true] {
            let file = recording(name, as_wakeup);
            let options =
                LatencyOptions { pids: true, perf: Perf::V6_1, ..LatencyOptions::default() };
            let what = format!("{name}, renamed {as_wakeup}");
            let mine = latency(&file, options.clone());
            assert_same(&what, &perf(&file, "latency", "-p"), &mine);
            let one = LatencyOptions { one_cpu: true, ..options.clone() };
            assert_same(&what, &perf(&file, "latency", "-p -C 0"), &latency(&file, one));
            let sort = vec![SortKey::Runtime, SortKey::Switch];
            let sorted = LatencyOptions { sort, ..options };
            let perf = perf(&file, "latency", "-p -s runtime,switch");
            assert_same(&what, &perf, &latency(&file, sorted));
        }
    }
}

/// Rows of names that perf knows, and the lines below the table.
fn known_rows(text: &str) -> Vec<&str> {
    text.lines().filter(|l| l.contains(":(") || l.contains("TOTAL") || l.contains("INFO")).collect()
}

#[test]
fn latency_by_name_equals_that_of_perf() {
    for name in CAPTURES {
        let file = recording(name, true);
        let options = LatencyOptions { perf: Perf::V6_1, ..LatencyOptions::default() };
        let ours = latency(&file, options);
        let ours: Vec<_> = known_rows(&ours);
        for row in known_rows(&perf(&file, "latency", "")) {
            assert!(ours.iter().any(|o| o.trim_end() == row.trim_end()), "{row}\n{ours:#?}");
        }
    }
}

#[test]
fn latency_counts_waking_as_perf_counts_wakeup() {
    for name in CAPTURES {
        let table = |as_wakeup| {
            let options = LatencyOptions { pids: true, ..LatencyOptions::default() };
            latency(&recording(name, as_wakeup), options)
        };
        assert_eq!(table(false), table(true), "{name}");
    }
}

#[test]
fn map_equals_that_of_perf() {
    for name in CAPTURES {
        let file = recording(name, false);
        let options = MapOptions { compact: true, ..MapOptions::default() };
        let (perf, ours) = (perf(&file, "map", "--compact"), map(&file, options));
        assert_same(name, &perf, &ours);
    }
    let file = recording("vm-groups", false);
    let options = MapOptions { cpus: vec![0, 1], n_cpus: 4, ..MapOptions::default() };
    // perf tells a name in the row of its thread's first switch, even where that row is not shown.
    let cells = |text: &str| {
        let lines = text.lines().map(|line| line.split_once("secs").map_or(line, |(row, _)| row));
        lines.collect::<Vec<_>>().join("\n")
    };
    let (perf, ours) = (perf(&file, "map", "--cpus 0,1"), map(&file, options));
    assert_same("--cpus", &cells(&perf), &cells(&ours));
}
