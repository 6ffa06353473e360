// SPDX-License-Identifier: GPL-2.0-only
//! Claims from file to verdict, on small runs.

use std::sync::atomic::AtomicBool;

use schedlab_claims::experiment::Verdict;
use schedlab_claims::judge::Outcome;
use schedlab_claims::library::{Entry, all, select};
use schedlab_claims::outputs::{Judged, explain, json, page, table};
use schedlab_claims::plan::Plan;
use schedlab_claims::run::{Config, Watch, run_claims};
use schedlab_lab::run::{Progress, Silent};

const CLAIM: &str = r#"
[claim]
id = "test/T1"
thread = "002"
says = "Two hogs share a CPU."
who = "nobody, never"
numbers = "1/2"
argument = "Two hogs run on one CPU. They get half of it each. Nothing is at stake."
expected = "reproduced"
bound = "within 1 %"

[[run]]
name = "rr{n}"
for = { n = [2, 3] }
workload = "hogs"
set = { hogs = "{n}" }
policy = "rr"
duration = "1200ms"
cost = "zero"
seeds = "1..2"

[observe]
first = 'rr2.tasks."hog-0".share'
third = 'mean(rr3.tasks."hog-2".share)'
wait_ns = 'over(max, rr3.tasks.*.longest_wait_ns)'

[check]
require = ["first in 0.49..0.51", "third in 0.32..0.35"]

[theirs]
first = 0.5

[[plot]]
title = "Share of a hog"
labels = ["2 hogs", "3 hogs"]
series = [{ name = "ours", values = ["first", "third"] }, { name = "theirs", values = [0.5, 0.33] }]

[quick]
seeds = "1"
"#;

struct Deaf;

impl Watch for Deaf {
    fn planned(&self, _: usize) {}
    fn job(&self, _: usize) -> Box<dyn Progress> {
        Box::new(Silent)
    }
    fn judged(&self, _: &Entry, _: &Outcome) {}
}

fn entry(text: &str) -> Entry {
    Entry::parse("test.toml", text).expect("well formed")
}

fn outcome(text: &str, quick: bool, threads: usize) -> Result<Outcome, String> {
    let (entries, stop) = ([entry(text)], AtomicBool::new(false));
    let config = Config { quick, threads };
    let outcomes = run_claims(&entries, &|_| None, config, &stop, &Deaf);
    outcomes.map_err(|e| e.to_string()).map(|list| list.into_iter().flatten().next().expect("one"))
}

#[test]
fn claim_whose_conditions_hold_is_reproduced() {
    let found = outcome(CLAIM, false, 2).expect("runs");
    assert_eq!(found.verdict, Verdict::Reproduced);
    assert_eq!(found.seeds, 2);
    assert_eq!(found.simulated_ns, 4 * 1_200_000_000);
    assert_eq!(outcome(CLAIM, false, 1), Ok(found), "the number of threads changes nothing");
    assert_eq!(outcome(CLAIM, true, 1).expect("runs").seeds, 1);
}

#[test]
fn claim_with_a_failing_condition_is_not_reproduced_whatever_is_expected() {
    let wrong = CLAIM.replace("0.49..0.51", "0.6..0.7");
    let found = outcome(&wrong, false, 1).expect("runs");
    assert_eq!(found.verdict, Verdict::NotReproduced);
    let entry = entry(&wrong);
    let judged = Judged { entry: &entry, outcome: &found };
    assert!(judged.is_unexpected());
    assert!(table(&[judged], 100).contains("fails: first in 0.6..0.7"));
    assert!(json(&[judged], false, 7).contains("\"unexpected\": 1"));
}

#[test]
fn claim_shows_everything_in_every_form() {
    let found = outcome(CLAIM, true, 1).expect("runs");
    let entry = entry(CLAIM);
    let judged = Judged { entry: &entry, outcome: &found };
    let (page, pictures) = page("002", &[judged]);
    let picture = pictures.iter().map(|(name, text)| format!("{name}\n{text}")).collect::<String>();
    let all = [
        table(&[judged], 100),
        explain(&judged, true, 90),
        json(&[judged], true, 0),
        page,
        picture,
    ];
    insta::assert_snapshot!(all.join("\n=====\n"));
}

#[test]
fn interrupted_claims_have_no_outcome_and_known_ones_are_kept() {
    let (entries, stop) = ([entry(CLAIM)], AtomicBool::new(true));
    let config = Config { quick: false, threads: 1 };
    let outcomes = run_claims(&entries, &|_| None, config, &stop, &Deaf).expect("plans");
    assert_eq!(outcomes, [None]);
    let known = outcome(CLAIM, true, 1).expect("runs");
    let outcomes = run_claims(&entries, &|_| Some(known.clone()), config, &stop, &Deaf);
    assert_eq!(outcomes.expect("plans"), [Some(known.clone())]);
}

#[test]
fn faulty_files_are_refused_with_their_place() {
    let fault = |from: &str, to: &str| {
        let text = CLAIM.replace(from, to);
        assert_ne!(text, CLAIM);
        Entry::parse("x", &text).expect_err("a fault").to_string()
    };
    assert!(fault("seeds = \"1..2\"", "seed = 1").contains("unknown field `seed`"));
    assert_eq!(fault("0.49..0.51", "0.49"), "28:26: `..` is expected");
    assert!(fault("third = '", "Third = '").contains("cannot be used in expressions"));
    assert!(fault("\"reproduced\"", "\"report-only\"").contains("has no `require`"));
    assert!(fault("test/T1", "T1").contains("FAMILY/ID"));
}

#[test]
fn impossible_runs_are_refused_before_anything_runs() {
    let fault = |from: &str, to: &str| outcome(&CLAIM.replace(from, to), false, 1).expect_err(to);
    assert!(fault("\"rr\"", "\"rrr\"").contains("run `rr2`"));
    assert!(fault("\"hogs\"", "\"hugs\"").contains("hugs"));
    assert!(fault("cost = \"zero\"", "cost = \"nil\"").contains("no cost model `nil`"));
    assert!(fault("rr{n}", "rr").contains("two runs called `rr`"));
    assert!(fault("rr2.tasks.\"hog-0\"", "rr4.tasks.x").contains("neither a run"));
}

/// Every claim of the program plans in both modes, has a unique id, and its file is named after it.
#[test]
fn claims_of_the_program_are_well_formed() {
    let entries = all();
    for quick in [false, true] {
        let mut plan = Plan::default();
        for entry in &entries {
            plan.add(&entry.experiment, quick)
                .unwrap_or_else(|why| panic!("{}: {why}", entry.file));
        }
    }
    let mut ids: Vec<String> = entries.iter().map(|entry| entry.id().to_string()).collect();
    for entry in &entries {
        assert_eq!(entry.file, format!("{}.toml", entry.id().replace('/', "-")));
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), entries.len());
    assert_eq!(
        select(&["002".to_string()]).expect("there").len(),
        select(&["bfs".to_string()]).expect("there").len()
    );
    assert!(select(&["bfs/C99".to_string()]).expect_err("none").contains("bfs/C99"));
}
