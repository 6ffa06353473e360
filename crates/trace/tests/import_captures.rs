// SPDX-License-Identifier: GPL-2.0-only
//! Recordings of real kernels as workloads: nothing is lost, nothing invented.

#[path = "../../workload/tests/support/executor.rs"]
mod executor;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use executor::execute;
use schedlab_policy_api::{Pid, RecordContext, RecordEvent, RecordedState, Recording};
use schedlab_trace::read;
use schedlab_units::{Nanos, Rng, Time};
use schedlab_workload::ir::Op;
use schedlab_workload::replay::{ImportOptions, Imported, import};
use schedlab_workload::{LoadOptions, load_text, to_toml, validate};

const ALL: [&str; 10] = [
    "ftrace.txt",
    "ftrace-tgid.txt",
    "host-pingpong.txt",
    "host-timer.txt",
    "perf-callchain.txt",
    "trace-cmd-ns.txt",
    "trace-cmd-plugin.txt",
    "vm-groups.txt",
    "vm-jobs-head.txt",
    "vm-jobs-tail.txt",
];

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

fn load(name: &str) -> Recording {
    let bytes = std::fs::read(fixture(name)).expect("fixture");
    read(&bytes[..]).unwrap_or_else(|e| panic!("{name}: {e}")).recording
}

fn imported(name: &str) -> Imported {
    let options = ImportOptions { name: name.to_string(), ..ImportOptions::default() };
    import(&load(name), &options).unwrap_or_else(|e| panic!("{name}: {e}"))
}

#[test]
fn summaries() {
    for name in ALL {
        insta::assert_snapshot!(name, imported(name).summary.to_string());
    }
}

/// The sum of `sched_stat_runtime` by pid, taken from the text without the reader.
fn stat_sums(name: &str) -> BTreeMap<u32, u64> {
    let text = std::fs::read_to_string(fixture(name)).expect("fixture");
    let mut sums = BTreeMap::new();
    for line in text.lines().filter(|line| line.contains("sched_stat_runtime:")) {
        let (head, runtime) = line.split_once(" runtime=").expect("a runtime");
        let pid = head.rsplit_once("pid=").expect("a pid").1.parse().expect("a number");
        let runtime: u64 = runtime.split(' ').next().and_then(|n| n.parse().ok()).expect("ns");
        *sums.entry(pid).or_default() += runtime;
    }
    sums
}

/// Time from coming to leaving by pid, for stretches with both ends on one CPU.
fn spans(recording: &Recording) -> BTreeMap<u32, u64> {
    let mut current: Vec<Option<(Pid, Time)>> = vec![None; recording.n_cpus as usize];
    let mut sums = BTreeMap::new();
    for record in &recording.records {
        if let RecordEvent::Switch { prev, next, .. } = record.event {
            match current[record.cpu.index()] {
                Some((pid, since)) if pid == prev => {
                    *sums.entry(prev.0).or_default() += (record.time - since).as_ns();
                }
                _ => {}
            }
            current[record.cpu.index()] = Some((next, record.time));
        }
    }
    sums
}

#[test]
fn cpu_time_is_that_of_the_records_to_the_nanosecond() {
    for name in ALL {
        let (stats, spans) = (stat_sums(name), spans(&load(name)));
        for thread in imported(name).summary.threads {
            let (by_stat, all) = (thread.by_stat.as_ns(), thread.cpu_time.as_ns());
            assert_eq!(stats.get(&thread.pid).copied().unwrap_or(0), by_stat, "{name} {thread}");
            if by_stat == 0 {
                // Only switches are left; a stretch with one end gives a lower bound.
                let at_least = thread.at_least.as_ns();
                let both_ends = spans.get(&thread.pid).copied().unwrap_or(0);
                assert_eq!(both_ends, all - at_least, "{name} {thread}");
            } else {
                assert_eq!(thread.by_span, Nanos::ZERO, "{name} {thread}");
            }
        }
    }
}

#[test]
fn every_task_has_a_valid_program() {
    for name in ALL {
        let Imported { workload, summary } = imported(name);
        assert_eq!(validate(&workload), Ok(()), "{name}");
        assert_eq!(workload.tasks.len(), summary.threads.len());
        for task in &workload.tasks {
            let ops = &workload.programs[task.program.0 as usize].ops;
            assert!(ops.iter().any(|op| matches!(op, Op::Run(_))), "{name} {}", task.name);
        }
    }
}

/// Threads that the recording shows coming to a CPU.
fn n_coming(recording: &Recording) -> usize {
    let mut pids: Vec<Pid> = Vec::new();
    for record in &recording.records {
        pids.push(record.pid);
        if let RecordEvent::Switch { next, .. } = record.event {
            pids.push(next);
        }
    }
    pids.sort_unstable();
    pids.dedup();
    pids.iter().filter(|pid| **pid != Pid(0)).count()
}

#[test]
fn unfiltered_recordings_keep_every_thread_that_ran() {
    for name in ["vm-groups.txt", "vm-jobs-head.txt", "vm-jobs-tail.txt"] {
        let got = imported(name);
        assert!(!got.summary.filtered, "{name}");
        assert_eq!(got.summary.threads.len(), n_coming(&load(name)), "{name}");
    }
}

/// Sleeps by state that were followed by a waking in the records, and all wakings.
fn sleeps_and_wakings(recording: &Recording) -> (u64, u64) {
    let mut asleep: BTreeMap<Pid, bool> = BTreeMap::new();
    let (mut ended, mut wakings) = (0, 0);
    for record in &recording.records {
        match record.event {
            RecordEvent::Switch { prev, prev_state, next, .. } => {
                let sleeps =
                    matches!(prev_state, RecordedState::Sleeping | RecordedState::Uninterruptible);
                asleep.insert(prev, sleeps);
                asleep.insert(next, false);
            }
            RecordEvent::Waking { pid, .. } => {
                wakings += 1;
                ended += u64::from(asleep.insert(pid, false) == Some(true));
            }
            _ => {}
        }
    }
    (ended, wakings)
}

#[test]
fn every_recorded_sleep_ends_as_recorded() {
    for name in ALL {
        let got = imported(name).summary;
        let (ended, wakings) = sleeps_and_wakings(&load(name));
        let wakes = got.wakes;
        let replayed = wakes.by_task
            + wakes.by_interrupt
            + wakes.by_timer
            + wakes.housekeeping
            + wakes.by_device
            + wakes.by_dropped;
        // The rest: first wake-ups of threads that slept before the recording began.
        let first = replayed - ended;
        assert!(replayed >= ended && replayed + wakes.early <= wakings, "{name}: {got}");
        assert!(first <= got.threads.len() as u64, "{name}: {got}");
        if !got.filtered && name.starts_with("vm") {
            assert_eq!(wakes.unseen, 0, "{name}: {got}");
        }
    }
}

#[test]
fn pingpong_hands_the_byte_back_and_forth() {
    let got = imported("host-pingpong.txt");
    let semaphores = &got.workload.objects.semaphores;
    let count = |pid: u32, wanted: fn(&Op) -> Option<u32>, name: &str| {
        let task = got.workload.tasks.iter().find(|t| t.name == format!("load:{pid}"));
        let program = task.expect("a task").program.0 as usize;
        got.workload.programs[program]
            .ops
            .iter()
            .filter_map(wanted)
            .filter(|id| semaphores[*id as usize].name == name)
            .count()
    };
    let posts = |op: &Op| if let Op::SemPost(id) = op { Some(id.0) } else { None };
    let waits = |op: &Op| if let Op::SemWait(id) = op { Some(id.0) } else { None };
    for (from, to, n) in [(5215, 5219, 183), (5219, 5215, 279), (5217, 5215, 1), (5218, 5215, 1)] {
        let name = format!("load:{from}>load:{to}");
        assert_eq!((count(from, posts, &name), count(to, waits, &name)), (n, n), "{name}");
    }
    assert_eq!(semaphores.len(), 4);
}

#[test]
fn timers_are_recognised_beside_busy_loops() {
    let got = imported("host-timer.txt");
    assert_eq!((got.summary.wakes.by_timer, got.summary.wakes.by_task), (150, 3));
    let sleeps = got.workload.programs[0].ops.iter().filter(|op| matches!(op, Op::Sleep(_)));
    assert_eq!(sleeps.count(), 150);
}

/// One run of a program, told with and without interrupt flags: what the flags know, regularity
/// finds out.
#[test]
fn guessed_timers_are_those_that_flags_show() {
    let known = imported("ftrace-tgid.txt");
    let guessed = imported("trace-cmd-ns.txt");
    let (known, guessed) = (known.summary.wakes, guessed.summary.wakes);
    assert_eq!((known.by_interrupt, known.by_timer), (20, 0));
    assert_eq!((guessed.by_interrupt, guessed.by_timer), (2, 18));
    assert_eq!(known.by_task, guessed.by_task);
}

#[test]
fn replay_never_waits_for_ever() {
    for name in ALL {
        let got = imported(name);
        for seed in 0..5 {
            let mut rng = Rng::stream(seed, "order", 0);
            let done = execute(&got.workload, |n| rng.below(n as u64) as usize)
                .unwrap_or_else(|e| panic!("{name}: {e}"));
            assert_eq!(done.n_ended, got.workload.tasks.len(), "{name}");
            for thread in &got.summary.threads {
                let ran = done.run_ns.get(&thread.name).copied().unwrap_or(0);
                assert_eq!(ran, thread.cpu_time.as_ns(), "{name} {thread}");
            }
        }
    }
}

#[test]
fn load_alone_can_be_imported() {
    let options = ImportOptions { only: Some("load".to_string()), ..ImportOptions::default() };
    let got = import(&load("vm-groups.txt"), &options).expect("importable");
    // One parent, two groups of three senders and three receivers.
    assert_eq!(got.workload.tasks.len(), 13);
    assert_eq!((got.summary.n_forks, got.summary.n_exits), (12, 13));
    let quiet =
        ImportOptions { kernel_threads: false, recorder: false, ..ImportOptions::default() };
    let got = import(&load("vm-groups.txt"), &quiet).expect("importable");
    assert_eq!(got.workload.tasks.len(), 13);
    assert_eq!((got.summary.dropped.kernel, got.summary.dropped.recorder), (9, 1));
}

#[test]
fn workload_survives_being_saved() {
    for name in ALL {
        let got = imported(name).workload;
        let loaded = load_text("a.toml", to_toml(&got), &[], &LoadOptions::default());
        let loaded = loaded.unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(loaded.workload, got, "{name}");
    }
}

/// A perf.data file tells whether an interrupt had taken over a context, its text does not. But for
/// that, both become the same workload.
#[test]
fn perf_data_becomes_the_workload_of_its_text_but_for_contexts() {
    for (data, text) in [
        ("host-pingpong.data.zst", "host-pingpong.txt"),
        ("host-timer.data.zst", "host-timer.txt"),
        ("vm-groups.data.zst", "vm-groups.txt"),
        ("vm-jobs.data.zst", "vm-jobs.txt.zst"),
    ] {
        let options = ImportOptions { name: "x".to_string(), ..ImportOptions::default() };
        let of = |recording: &Recording| import(recording, &options).expect("importable");
        let (known, text) = (load(data), load(text));
        let mut unknown = known.clone();
        unknown.records.iter_mut().for_each(|r| r.context = RecordContext::Unknown);
        let (ours, theirs) = (of(&unknown), of(&text));
        assert_eq!(to_toml(&ours.workload), to_toml(&theirs.workload), "{data}");
        assert_eq!(ours.summary.to_string(), theirs.summary.to_string(), "{data}");
        // Contexts change who woke whom, not who there was.
        let with = of(&known);
        assert_eq!(with.workload.tasks.len(), ours.workload.tasks.len(), "{data}");
    }
}
