// SPDX-License-Identifier: GPL-2.0-only
//! What a user sees, from hand-made results.

mod sample;

use sample::Sample;
use schedlab_lab::result::{Comparison, OwnTable};
use schedlab_metrics::{Distribution, MarkFigures, SchbenchHistogram};
use schedlab_report::{OUTPUTS, Options, output_by_name};

fn render(format: &str, sample: &Sample, width: usize) -> String {
    let mut out = Vec::new();
    let output = output_by_name(format).expect("there");
    let options = Options { width, color: false };
    output.write(&sample.comparison(), options, &mut out).expect("a vector takes everything");
    let text = String::from_utf8(out).expect("text");
    // Snapshots outlive versions.
    text.replace(schedlab_report::model::VERSION, "x.y.z")
}

#[test]
fn text_two_policies() {
    insta::assert_snapshot!(render("text", &Sample::new(2), 100));
}

#[test]
fn text_one_policy() {
    insta::assert_snapshot!(render("text", &Sample::new(1), 100));
}

#[test]
fn text_seeds_show_confidence() {
    insta::assert_snapshot!(render("text", &Sample::new(2).seeds(5), 120));
}

#[test]
fn text_three_policies_that_do_not_fit_are_split() {
    let text = render("text", &Sample::new(3), 80);
    let widest = text.lines().map(|line| line.chars().count()).max();
    assert!(widest <= Some(80), "{widest:?}\n{text}");
    assert_eq!(text.matches("Share of a CPU by group").count(), 2);
}

#[test]
fn text_many_tasks_are_cut_to_the_interesting() {
    let text = render("text", &Sample::new(2).tasks(40), 100);
    assert!(text.contains("by task, 8 of 40"), "{text}");
}

#[test]
fn text_color_changes_nothing_but_colors() {
    let comparison = Sample::new(2).comparison();
    let mut out = Vec::new();
    let options = Options { width: 100, color: true };
    output_by_name("text").expect("there").write(&comparison, options, &mut out).expect("written");
    let colored = String::from_utf8(out).expect("text");
    assert!(colored.contains("\x1b[32m✓\x1b[0m") && colored.contains("\x1b[31m✗\x1b[0m"));
    let mut plain = colored.replace(schedlab_report::model::VERSION, "x.y.z");
    for code in ["0", "1", "2", "31", "32"] {
        plain = plain.replace(&format!("\x1b[{code}m"), "");
    }
    assert_eq!(plain, render("text", &Sample::new(2), 100));
}

#[test]
fn text_interrupted_run_says_so() {
    let mut comparison = Sample::new(2).comparison();
    comparison.runs[1].complete = false;
    let mut out = Vec::new();
    let options = Options { width: 100, color: false };
    output_by_name("text").expect("there").write(&comparison, options, &mut out).expect("written");
    assert!(String::from_utf8(out).expect("text").contains("interrupted: the figures reach only"));
}

#[test]
fn text_without_any_run_is_still_a_report() {
    let mut comparison = Sample::new(1).comparison();
    comparison.runs.clear();
    for output in OUTPUTS {
        let mut out = Vec::new();
        let options = Options { width: 100, color: false };
        output.write(&comparison, options, &mut out).expect("written");
        assert!(!out.is_empty(), "{}", output.name());
    }
}

#[test]
fn json_follows_the_schema() {
    insta::assert_snapshot!(render("json", &Sample::new(1), 100));
}

#[test]
fn json_is_the_same_bytes_twice() {
    let sample = Sample::new(2).seeds(2);
    assert_eq!(render("json", &sample, 100), render("json", &sample, 40));
}

#[test]
fn json_conserves_time() {
    let json: serde_json::Value =
        serde_json::from_str(&render("json", &Sample::new(2), 100)).expect("JSON");
    let ns = |object: &serde_json::Value, key: &str| object[key].as_u64().expect("a number");
    for run in json["runs"].as_array().expect("runs") {
        for cpu in run["cpus"].as_array().expect("cpus") {
            let sum = ns(cpu, "busy_ns") + ns(cpu, "idle_ns") + ns(cpu, "overhead_ns");
            assert_eq!(sum, ns(run, "elapsed_ns"));
        }
        for task in run["tasks"].as_array().expect("tasks") {
            let sum = ns(task, "run_ns") + ns(task, "wait_ns") + ns(task, "sleep_ns");
            assert_eq!(sum, ns(task, "life_ns"));
        }
    }
}

#[test]
fn csv_has_one_row_per_policy_seed_and_task() {
    let text = render("csv", &Sample::new(2).seeds(2), 100);
    // Two policies, two seeds, three tasks, one header.
    assert_eq!(text.lines().count(), 13);
    insta::assert_snapshot!(text);
}

fn mark(name: &str, sum: u64, latencies_us: &[u64]) -> MarkFigures {
    MarkFigures {
        name: name.to_string(),
        unit: "events".to_string(),
        count: sum,
        sum,
        latency: Distribution::of(latencies_us.iter().map(|us| us * 1000)).summary(),
        schbench: None,
    }
}

/// A pair of interbench's matrix with these latencies under its two policies.
fn pair(bench: &str, load: &str, latencies_us: [&[u64]; 2]) -> Comparison {
    let mut comparison = Sample::new(2).comparison();
    let workload = &mut comparison.workload;
    workload.name = format!("interbench-{bench}-{load}");
    workload.table = Some(OwnTable::Interbench);
    let parameter = |(name, value): (&str, &str)| (name.to_string(), value.to_string());
    let parameters = [("bench", bench), ("load", load), ("seconds", "30"), ("real_time", "false")];
    workload.parameters = parameters.map(parameter).to_vec();
    for (run, latencies_us) in comparison.runs.iter_mut().zip(latencies_us) {
        run.figures.marks = vec![
            mark("latency", latencies_us.len() as u64, latencies_us),
            mark("bursts", latencies_us.len() as u64, &[]),
            mark("missed-bursts", 1, &[]),
            mark("met", 2, &[]),
            mark("missed", 1, &[]),
        ];
    }
    comparison
}

fn render_matrix(format: &str, cells: &[Comparison]) -> String {
    let mut out = Vec::new();
    let output = output_by_name(format).expect("there");
    let options = Options { width: 100, color: false };
    output.write_matrix(cells, options, &mut out).expect("a vector takes everything");
    let text = String::from_utf8(out).expect("text");
    text.replace(schedlab_report::model::VERSION, "x.y.z")
}

#[test]
fn text_matrix_of_interbench_is_its_own_table() {
    let cells = [
        pair("audio", "none", [&[0, 0, 2000, 4000], &[500; 4]]),
        pair("audio", "burn", [&[0, 12_345_678], &[1]]),
        pair("gaming", "burn", [&[100_000, 300_000], &[]]),
    ];
    insta::assert_snapshot!(render_matrix("text", &cells));
}

#[test]
fn text_of_interbench_adds_seeds_up() {
    let mut cell = pair("audio", "none", [&[1000, 3000], &[1]]);
    let second = pair("audio", "none", [&[8000], &[1]]).runs.swap_remove(0);
    cell.runs.push(schedlab_lab::result::RunResult { seed: 2, ..second });
    let text = render_matrix("text", &[cell]);
    assert!(text.contains("under goodness@2.4.5, samples of 2 seeds together"), "{text}");
    let row = text.lines().find(|line| line.starts_with("None")).expect("there");
    let words: Vec<&str> = row.split_whitespace().collect();
    // (1 + 3 + 8) / 3 ms; 3 bursts of 5; 4 deadlines of 6.
    assert_eq!((words[1], words[4], words[5], words[6]), ("4.0", "8.0", "60", "66.7"), "{row}");
}

#[test]
fn json_matrix_holds_a_report_for_each_pair() {
    let cells = [pair("audio", "none", [&[0, 2], &[1]]), pair("x", "none", [&[5], &[6]])];
    let json: serde_json::Value =
        serde_json::from_str(&render_matrix("json", &cells)).expect("JSON");
    assert_eq!(json["schema"], "schedlab.matrix/1");
    assert_eq!(json["cells"][1]["workload"]["name"], "interbench-x-none");
    let figures = &json["cells"][0]["runs"][0]["program"]["interbench"];
    assert_eq!((&figures["samples"], &figures["average_ns"]), (&2.into(), &1000.into()));
    let met = figures["deadlines_met_percent"].as_f64().expect("a number");
    assert!((met - 66.667).abs() < 0.001);
}

#[test]
fn csv_matrix_names_the_workload_first() {
    let text = render_matrix("csv", &[pair("audio", "none", [&[0], &[1]])]);
    let mut lines = text.lines();
    assert!(lines.next().is_some_and(|line| line.starts_with("workload,spec,policy")));
    assert!(lines.all(|line| line.starts_with("interbench-audio-none,")));
}

#[test]
fn matrix_without_a_table_of_its_own_is_one_report_after_the_other() {
    let text = render_matrix("text", &[Sample::new(1).comparison(), Sample::new(1).comparison()]);
    assert_eq!(text.matches("Share of a CPU by group").count(), 2);
}

#[test]
fn text_of_schbench_shows_its_percentiles() {
    let mut comparison = Sample::new(2).comparison();
    comparison.workload.table = Some(OwnTable::Schbench);
    for (run, step) in comparison.runs.iter_mut().zip([1, 7]) {
        let mut histogram = SchbenchHistogram::default();
        (1..=1000).for_each(|n| histogram.record(n * step));
        run.figures.marks =
            vec![MarkFigures { schbench: Some(histogram), ..mark("wakeup", 1000, &[]) }];
    }
    let mut out = Vec::new();
    let options = Options { width: 100, color: false };
    output_by_name("text").expect("there").write(&comparison, options, &mut out).expect("written");
    let text = String::from_utf8(out).expect("text");
    let table = text.split("\n\n").find(|block| block.starts_with("schbench:")).expect("there");
    insta::assert_snapshot!(table);
}
