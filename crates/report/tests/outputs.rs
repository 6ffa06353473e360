// SPDX-License-Identifier: GPL-2.0-only
//! What a user sees, from hand-made results.

mod sample;

use sample::Sample;
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
