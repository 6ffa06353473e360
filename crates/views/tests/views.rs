// SPDX-License-Identifier: GPL-2.0-only
//! What users see: the views of recordings of real kernels.

use std::fmt::Write as _;

use schedlab_trace::{Comms, ReadSummary, RecordSink, read_into};
use schedlab_units::Time;
use schedlab_views::{
    Latency, LatencyOptions, Map, MapOptions, Summary, SummaryMode, Timehist, TimehistOptions,
};

const GROUPS: &[u8] = include_bytes!("../../trace/tests/fixtures/vm-groups.txt");
const TIMER: &[u8] = include_bytes!("../../trace/tests/fixtures/host-timer.txt");

fn feed(trace: &[u8], sink: &mut dyn RecordSink) -> (ReadSummary, Comms) {
    read_into(trace, sink).expect("the trace reads")
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("text")
}

fn timehist(trace: &[u8], options: TimehistOptions) -> String {
    let mut view = Timehist::new(options, Vec::new());
    let (found, comms) = feed(trace, &mut view);
    text(view.finish(&comms, found.n_cpus).expect("memory"))
}

fn latency(trace: &[u8], options: LatencyOptions) -> String {
    let mut view = Latency::new(options);
    let (_, comms) = feed(trace, &mut view);
    text(view.finish(&comms, Vec::new()).expect("memory"))
}

fn map(trace: &[u8], options: MapOptions) -> String {
    let mut view = Map::new(options, Vec::new());
    feed(trace, &mut view);
    text(view.finish().expect("memory"))
}

/// The first lines of a view.
fn head(text: &str, n: usize) -> String {
    text.lines().take(n).fold(String::new(), |mut shown, line| {
        let _ = writeln!(shown, "{line}");
        shown
    })
}

#[test]
fn latency_of_recording_by_name() {
    insta::assert_snapshot!(latency(TIMER, LatencyOptions::default()));
}

#[test]
fn latency_of_recording_by_thread() {
    let options = LatencyOptions { pids: true, ..LatencyOptions::default() };
    insta::assert_snapshot!(latency(GROUPS, options));
}

#[test]
fn timehist_with_everything() {
    let options = TimehistOptions {
        wakeups: true,
        migrations: true,
        next: true,
        visual_cpus: Some(4),
        state: true,
        prio: true,
        ..TimehistOptions::default()
    };
    insta::assert_snapshot!(head(&timehist(GROUPS, options), 40));
}

#[test]
fn timehist_of_a_window_with_sums() {
    let at = |ms: u64| Some(Time::from_ns(ms * 1_000_000));
    let options = TimehistOptions {
        start: at(5_650),
        stop: at(5_660),
        summary: SummaryMode::Both,
        ..TimehistOptions::default()
    };
    insta::assert_snapshot!(timehist(GROUPS, options));
}

#[test]
fn timehist_sums_of_waiting() {
    let options =
        TimehistOptions { state: true, summary: SummaryMode::Only, ..TimehistOptions::default() };
    insta::assert_snapshot!(timehist(TIMER, options));
}

#[test]
fn map_of_recording() {
    let all = map(GROUPS, MapOptions { n_cpus: 4, ..MapOptions::default() });
    insta::assert_snapshot!(head(&all, 40));
}

#[test]
fn map_of_named_tasks_shows_others_as_dashes() {
    let options = MapOptions {
        compact: true,
        task_names: vec!["rcu".to_string()],
        fuzzy: true,
        color_pids: vec![17],
        ..MapOptions::default()
    };
    insta::assert_snapshot!(head(&map(GROUPS, options), 12));
}

#[test]
fn summary_of_filtered_recording_tells_what_is_unknown() {
    let mut view = Summary::new();
    let (found, comms) = feed(TIMER, &mut view);
    insta::assert_snapshot!(text(view.text(&found, &comms, Vec::new()).expect("memory")));
}

#[test]
fn summary_as_json() {
    let mut view = Summary::new();
    let (found, comms) = feed(TIMER, &mut view);
    insta::assert_snapshot!(text(view.json(&found, &comms, Vec::new()).expect("memory")));
}

const SWITCHES: &str = "\
a-10 [000] d.... 1.000000: sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=R ==> next_comm=b next_pid=11 next_prio=120
b-11 [000] d.... 1.000100: sched_waking: comm=a pid=10 prio=120 target_cpu=000
b-11 [000] d.... 1.001000: sched_switch: prev_comm=b prev_pid=11 prev_prio=110 prev_state=S ==> next_comm=a next_pid=10 next_prio=120
a-10 [000] d.... 1.001500: sched_waking: comm=b pid=11 prio=120 target_cpu=000
a-10 [000] d.... 1.001600: sched_waking: comm=b pid=11 prio=120 target_cpu=000
a-10 [000] d.... 1.003000: sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=S ==> next_comm=b next_pid=11 next_prio=110
";

#[test]
fn delay_of_waiting_thread_is_not_restarted_by_a_wake_up() {
    let options = LatencyOptions { pids: true, ..LatencyOptions::default() };
    let shown = latency(SWITCHES.as_bytes(), options);
    // The new thread b waits from its switch-in: a delay of 0. Then 1.5 ms from its first wake-up;
    // a waits from being switched out, 1 ms.
    let row = |name| shown.lines().find(|line| line.contains(name)).expect("a row").to_string();
    assert!(row("b:11").contains("|        2 | avg:   0.750 ms | max:   1.500 ms"), "{shown}");
    assert!(row("a:10").contains("|        1 | avg:   1.000 ms | max:   1.000 ms"), "{shown}");
    assert!(row("INFO").contains("no sched_stat_runtime"), "{shown}");
}

#[test]
fn timehist_tells_a_priority_that_changed_on_the_cpu() {
    let options = TimehistOptions { prio: true, ..TimehistOptions::default() };
    let shown = timehist(SWITCHES.as_bytes(), options);
    assert!(shown.lines().any(|line| line.contains("b[11]") && line.contains("120->110")));
}

#[test]
fn names_with_control_characters_do_not_reach_the_terminal() {
    let trace = SWITCHES.replace("comm=b", "comm=b\u{1b}[2J");
    for shown in [
        timehist(trace.as_bytes(), TimehistOptions { next: true, ..TimehistOptions::default() }),
        latency(trace.as_bytes(), LatencyOptions::default()),
        map(trace.as_bytes(), MapOptions::default()),
    ] {
        assert!(!shown.contains('\u{1b}') && shown.contains("b\u{b7}[2J"), "{shown}");
    }
}

#[test]
fn views_of_nothing_have_headings_only() {
    let options = TimehistOptions { summary: SummaryMode::Both, ..TimehistOptions::default() };
    let view = Timehist::new(options, Vec::new());
    let shown = text(view.finish(&Comms::default(), 0).expect("memory"));
    assert!(shown.contains("<no still running tasks>") && shown.contains("<no terminated tasks>"));
    let view = Latency::new(LatencyOptions::default());
    let shown = text(view.finish(&Comms::default(), Vec::new()).expect("memory"));
    assert!(shown.contains("TOTAL:                |      0.000 ms |        0 |"));
}

#[test]
fn views_of_text_and_perf_data_are_the_same() {
    let data = include_bytes!("../../trace/tests/fixtures/host-timer.data.zst");
    let options = TimehistOptions { summary: SummaryMode::Both, ..TimehistOptions::default() };
    assert_eq!(timehist(TIMER, options.clone()), timehist(data, options));
    let by_thread = LatencyOptions { pids: true, ..LatencyOptions::default() };
    assert_eq!(latency(TIMER, by_thread.clone()), latency(data, by_thread));
}

#[test]
fn lost_events_are_told_where_they_are_missing() {
    let first = SWITCHES.lines().next().expect("a line");
    let trace = SWITCHES.replacen(first, &format!("{first}\nCPU:0 [LOST 3 EVENTS]"), 1);
    let shown = timehist(trace.as_bytes(), TimehistOptions::default());
    assert!(shown.contains("       1.000100 lost 3 events on cpu 0\n"), "{shown}");
    let shown = latency(trace.as_bytes(), LatencyOptions::default());
    assert!(shown.contains("INFO: 33.333% lost events (3 out of 9, in 1 chunks)"), "{shown}");
    let mut view = Summary::new();
    let (found, comms) = feed(trace.as_bytes(), &mut view);
    let shown = text(view.text(&found, &comms, Vec::new()).expect("memory"));
    assert!(shown.contains("1 stretches contradict"), "{shown}");
}

#[test]
fn process_of_a_thread_is_known_at_its_first_switch() {
    let trace = "\
a 10/10 [000] 1.000000: sched:sched_process_fork: comm=a pid=10 child_comm=a child_pid=11
a 10/10 [000] 1.000100: sched:sched_switch: prev_comm=a prev_pid=10 prev_prio=120 prev_state=S ==> next_comm=a next_pid=11 next_prio=120
a 10/11 [000] 1.000200: sched:sched_switch: prev_comm=a prev_pid=11 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
";
    let shown = timehist(trace.as_bytes(), TimehistOptions::default());
    assert!(shown.contains("a[11/10] "), "{shown}");
}
