// SPDX-License-Identifier: GPL-2.0-only
//! I8: the same fingerprints everywhere. The file beside this test holds them; it is compared in
//! debug and in release builds, and on whatever machine runs the tests.
//!
//! A change that moves a fingerprint is made known: run once with `SCHEDLAB_BLESS=1`, and write a
//! line under Behaviour in CHANGELOG.md.

use std::fmt::Write as _;
use std::fs;

use schedlab_conformance::{Case, all_policies, run_case};
use schedlab_policy_api::{NoObserver, Topology};
use schedlab_sim::CostModel;
use schedlab_units::Nanos;
use schedlab_workload::{LoadOptions, builtins, resolve};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fingerprints.txt");

#[test]
fn fingerprints_of_built_in_workloads_are_as_recorded() {
    let topo = Topology::new(1, 2, 1, 1).expect("legal");
    let cost = CostModel::built_in("default").expect("there");
    let mut found = String::new();
    for builtin in builtins() {
        let loaded = resolve(builtin.name, &[], &LoadOptions::default()).expect("a built-in");
        for policy in all_policies() {
            let case = Case {
                workload: &loaded.workload,
                topo: &topo,
                cost: &cost,
                seed: 1,
                length: Nanos::from_ms(200),
            };
            let (fingerprint, NoObserver) = run_case::<NoObserver>(&policy, case);
            writeln!(found, "{:<18} {policy:<18} {fingerprint}", builtin.name).expect("a string");
        }
    }
    if std::env::var_os("SCHEDLAB_BLESS").is_some() {
        fs::write(FILE, &found).expect("the file can be written");
    }
    let recorded = fs::read_to_string(FILE).expect("the file is there");
    assert_eq!(found, recorded, "see the head of this test");
}
