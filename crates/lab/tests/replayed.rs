// SPDX-License-Identifier: GPL-2.0-only
//! Imported recordings replayed: what must come out the same does.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use schedlab_lab::diff::Row;
use schedlab_lab::replayed::compare;
use schedlab_lab::run::Job;
use schedlab_lab::spec::PolicySpec;
use schedlab_policy_api::Topology;
use schedlab_sim::{CostModel, EventOrder};
use schedlab_trace::read;
use schedlab_units::{Hz, Nanos};
use schedlab_workload::replay::{ImportOptions, import};

/// Recorded and replayed figures of a capture, replayed at no cost.
fn replay(capture: &str, n_cpus: u32, hz: u32) -> Vec<Row> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../trace/tests/fixtures");
    let bytes = std::fs::read(folder.join(capture)).expect("a fixture");
    let recording = read(&bytes[..]).expect("readable").recording;
    let imported = import(&recording, &ImportOptions::default()).expect("importable");
    let job = Job {
        workload: Arc::new(imported.workload),
        policy: PolicySpec::parse("eevdf@6.12").expect("a policy"),
        column: 0,
        topo: Topology::flat(n_cpus).expect("a machine"),
        cost: CostModel::zero(),
        hz: Some(Hz::new(hz)),
        seed: 1,
        duration: None,
        warmup: Nanos::ZERO,
        check: true,
        transcript: false,
        order: EventOrder::Kind,
        samples: Vec::new(),
    };
    compare(&recording, &imported.summary, &job, &AtomicBool::new(false)).expect("replayable")
}

#[test]
fn threads_use_the_recorded_cpu_time_to_the_nanosecond() {
    for (capture, n_cpus, hz) in [
        ("host-pingpong.data.zst", 2, 250),
        ("host-timer.data.zst", 2, 250),
        ("vm-groups.data.zst", 4, 1000),
        ("vm-jobs.data.zst", 4, 1000),
    ] {
        let rows = replay(capture, n_cpus, hz);
        assert!(rows.len() > 4, "{capture}");
        for Row { name, sides: [(_, recorded), (present, replayed)] } in &rows {
            assert_eq!(*present, 1, "{capture}: {name} does not appear in the replay");
            assert_eq!(recorded.cpu_time(), replayed.cpu_time(), "{capture}: {name}");
        }
    }
}

#[test]
fn threads_that_only_sleep_by_timer_are_woken_as_often() {
    let rows = replay("host-timer.data.zst", 2, 250);
    let timer = rows.iter().find(|row| row.sides[0].1.wakeups > 100).expect("the timer thread");
    let [(_, recorded), (_, replayed)] = &timer.sides;
    // The recording has one wake-up that came before its sleep.
    assert!(recorded.wakeups.abs_diff(replayed.wakeups) <= 1, "{recorded:?} {replayed:?}");
}
