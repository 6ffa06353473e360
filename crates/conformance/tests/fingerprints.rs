// SPDX-License-Identifier: GPL-2.0-only
//! I8: the same fingerprints everywhere. The file beside this test holds them; it is compared in
//! debug and in release builds, and on whatever machine runs the tests.
//!
//! Built-in workloads run with all checks on. Longer runs without them tell the variants of each
//! policy apart. A change that moves a fingerprint is made known: run once with `SCHEDLAB_BLESS=1`,
//! and write a line under Behaviour in CHANGELOG.md.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

use schedlab_conformance::{Case, all_policies, run_case, run_unchecked};
use schedlab_policy_api::{NoObserver, Topology};
use schedlab_sim::CostModel;
use schedlab_units::Nanos;
use schedlab_workload::{LoadOptions, Workload, builtins, load_text, resolve};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fingerprints.txt");

/// Who computes for longer than any slice beside many others, by nice: CFS 6.1 has no cap.
const ONE_AND_MANY: &[(&str, &str)] = &[("nice_a", "-15"), ("hogs_b", "20"), ("nice_b", "5")];

/// Yields, and affinities that leave the CPU a task runs on: what 2.4.10 changed.
const YIELDS: &str = r#"
[workload]
name = "yields"
[[task]]
name = "yielder"
count = 3
loop = ["run 700us", "yield", "run 300us"]
[[task]]
name = "walker"
loop = ["run 2ms", "affinity 0", "run 3ms", "affinity 1", "sleep 1ms"]
[[task]]
name = "hog"
do = ["run forever"]
"#;

/// A hog that earned its bonus by a long sleep, and tasks that earn theirs bit by bit: the
/// variants of the O(1) scheduler differ in what sleep buys and in how they end starvation.
const LATE_RISER: &str = r#"
[workload]
name = "late-riser"
[[task]]
name = "hog"
do = ["run forever"]
[[task]]
name = "late"
do = ["sleep 9s", "run forever"]
[[task]]
name = "player"
loop = ["sleep 4ms", "run 4ms"]
[[task]]
name = "blinker"
loop = ["sleep 20ms", "run 1ms"]
"#;

/// Variants of one policy that no run tells apart, with the reason.
const ALIKE: &[(&str, &str, &str)] = &[];

fn from_text(name: &str, text: &str) -> Workload {
    let options = LoadOptions::default();
    load_text(&format!("{name}.toml"), text.to_string(), &[], &options).expect("legal").workload
}

/// Longer runs: name, workload, number of CPUs, seconds.
fn long_runs() -> Vec<(&'static str, Workload, u32, u64)> {
    let set: Vec<_> =
        ONE_AND_MANY.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let many = resolve("nice-hogs", &set, &LoadOptions::default()).expect("a built-in").workload;
    vec![
        ("one-and-many", many, 1, 3),
        ("yields", from_text("yields", YIELDS), 2, 1),
        ("late-riser", from_text("late-riser", LATE_RISER), 1, 12),
    ]
}

#[test]
fn fingerprints_of_built_in_workloads_are_as_recorded() {
    let topo = Topology::new(1, 2, 1, 1).expect("legal");
    let cost = CostModel::built_in("default").expect("there");
    let mut found = String::new();
    let mut add = |name: &str, policy: &str, fingerprint: &str| {
        writeln!(found, "{name:<18} {policy} {fingerprint}").expect("a string");
    };
    for builtin in builtins() {
        let loaded = resolve(builtin.name, &[], &LoadOptions::default()).expect("a built-in");
        let length = Nanos::from_ms(200);
        let case = Case { workload: &loaded.workload, topo: &topo, cost: &cost, seed: 1, length };
        for policy in all_policies() {
            let (fingerprint, NoObserver) = run_case(&policy, case, NoObserver);
            add(builtin.name, &policy.to_string(), &fingerprint.to_string());
        }
    }
    for (name, workload, n_cpus, seconds) in long_runs() {
        let topo = Topology::flat(n_cpus).expect("legal");
        let length = Nanos::from_s(seconds);
        let case = Case { workload: &workload, topo: &topo, cost: &cost, seed: 1, length };
        for policy in all_policies() {
            let fingerprint = run_unchecked(&policy, case, NoObserver, &[]).fingerprint;
            add(name, &policy.to_string(), &fingerprint.to_string());
        }
    }
    if std::env::var_os("SCHEDLAB_BLESS").is_some() {
        fs::write(FILE, &found).expect("the file can be written");
    }
    let recorded = fs::read_to_string(FILE).expect("the file is there");
    assert_eq!(found, recorded, "see the head of this test");
}

#[test]
fn variants_of_a_policy_differ_in_a_recorded_fingerprint() {
    let recorded = fs::read_to_string(FILE).expect("the file is there");
    let mut of: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in recorded.lines() {
        let [_, policy, fingerprint] = line.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("`{line}` is not a workload, a policy and a fingerprint");
        };
        of.entry(policy).or_default().push(fingerprint);
    }
    let name = |policy: &str| policy.split('@').next().unwrap_or_default().to_string();
    let all: Vec<&str> = of.keys().copied().collect();
    let pairs = all.iter().enumerate().flat_map(|(i, a)| all[..i].iter().map(move |b| (*b, *a)));
    let alike: Vec<(&str, &str)> =
        pairs.filter(|(a, b)| name(a) == name(b) && of[a] == of[b]).collect();
    let expected: Vec<(&str, &str)> = ALIKE.iter().map(|(a, b, _)| (*a, *b)).collect();
    assert_eq!(alike, expected, "variants that no recorded run tells apart");
}
