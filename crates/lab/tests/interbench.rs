// SPDX-License-Identifier: GPL-2.0-only
//! interbench where its answers are known beforehand, and what schbench's table rests on.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use schedlab_lab::machine::parse_machine;
use schedlab_lab::run::{Job, Silent, run};
use schedlab_lab::spec::PolicySpec;
use schedlab_metrics::{MarkFigures, RunFigures};
use schedlab_sim::{CostModel, EventOrder};
use schedlab_units::Nanos;
use schedlab_workload::{LoadOptions, resolve};

/// Figures under `rr` on one CPU without costs.
fn figures(workload: &str, set: &[(&str, &str)], duration: Option<Nanos>) -> RunFigures {
    let set: Vec<(String, String)> =
        set.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let loaded = resolve(workload, &set, &LoadOptions::default()).expect("a built-in");
    let job = Job {
        workload: Arc::new(loaded.workload),
        policy: PolicySpec::parse("rr:slice=10ms").expect("legal"),
        column: 0,
        topo: parse_machine("1").expect("legal"),
        cost: CostModel::zero(),
        hz: None,
        seed: 1,
        duration,
        warmup: Nanos::ZERO,
        check: true,
        transcript: false,
        samples: Vec::new(),
        order: EventOrder::Kind,
    };
    run(&job, &AtomicBool::new(false), &Silent, None).expect("runs").result.figures
}

fn mark<'a>(figures: &'a RunFigures, name: &str) -> &'a MarkFigures {
    figures.marks.iter().find(|m| m.name == name).unwrap_or_else(|| panic!("no mark {name}"))
}

fn sum(figures: &RunFigures, name: &str) -> u64 {
    mark(figures, name).sum
}

#[test]
fn audio_alone_meets_every_deadline() {
    let figures = figures("interbench-audio-none", &[("seconds", "10")], None);
    // 200 periods of 50 ms in 10 s; the stop comes as the last one is over, in either order.
    let bursts = sum(&figures, "bursts");
    assert!(bursts == 200 || bursts == 201, "{bursts}");
    assert_eq!(sum(&figures, "met"), bursts);
    assert_eq!((sum(&figures, "missed"), sum(&figures, "missed-bursts")), (0, 0));
    let latency = mark(&figures, "latency").latency.expect("samples");
    assert_eq!((latency.count, latency.max), (bursts, 0));
}

#[test]
fn gaming_beside_one_hog_is_late_by_its_own_length() {
    let set = [("seconds", "10"), ("loads", "1")];
    let figures = figures("interbench-gaming-burn", &set, None);
    // Slices of 10 ms in turn: each burst of 100 ms takes 200 ms, give or take the slice it began in.
    let latency = mark(&figures, "latency").latency.expect("samples");
    assert_eq!(latency.count, sum(&figures, "bursts"));
    assert!(latency.min >= 90_000_000 && latency.max <= 110_000_000, "{latency:?}");
    assert_eq!(sum(&figures, "met") + sum(&figures, "missed"), 0);
}

#[test]
fn video_beside_hogs_leaves_out_what_is_too_late() {
    let figures = figures("interbench-video-burn", &[("seconds", "10")], None);
    let (met, missed) = (sum(&figures, "met"), sum(&figures, "missed"));
    let (done, left_out) = (sum(&figures, "bursts"), sum(&figures, "missed-bursts"));
    // Four hogs with 10 ms each pass before it runs: two periods and more, once they have queued.
    assert!(met <= 1, "{met}");
    assert!(left_out > 0 && missed >= left_out, "{missed} {left_out}");
    // A late period moves the deadline by k + 1 intervals and counts k of them, here 2 of 3.
    let periods = 10_000_000 / 16_666;
    assert!((periods * 2 / 3..periods).contains(&missed), "{missed}");
    assert!(done + left_out < periods, "{done} {left_out}");
}

#[test]
fn samples_are_whole_microseconds() {
    let figures = figures("interbench-x-video", &[("seconds", "10")], None);
    let latency = mark(&figures, "latency").latency.expect("samples");
    assert!(latency.max > 0);
    assert_eq!((latency.sum % 1000, latency.max % 1000), (0, 0));
}

#[test]
fn schbench_has_its_own_histogram() {
    let figures = figures("schbench", &[("threads", "4")], Some(Nanos::from_s(2)));
    let wakeup = mark(&figures, "wakeup");
    let histogram = wakeup.schbench.as_ref().expect("kept");
    assert!(histogram.count() > 0 && histogram.count() <= wakeup.count);
    let max = wakeup.latency.expect("spans").max / 1000;
    assert!(histogram.max_us().abs_diff(max) <= 1);
    let others = self::figures("hogs", &[], Some(Nanos::from_ms(10)));
    assert!(others.marks.iter().all(|mark| mark.schbench.is_none()));
}
