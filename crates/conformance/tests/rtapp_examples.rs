// SPDX-License-Identifier: GPL-2.0-only
//! The example files of Debian's package `rt-app` run under every policy with all invariants on.
//!
//! The files are found like in the `workload` crate's test of the same name: in the installed
//! package, or below the directory named by `SCHEDLAB_RTAPP_EXAMPLES`.

use std::path::{Path, PathBuf};

use schedlab_conformance::{Case, all_policies, run_case};
use schedlab_policy_api::{NoObserver, Topology};
use schedlab_sim::CostModel;
use schedlab_units::Nanos;
use schedlab_workload::{LoadOptions, resolve};

fn json_files(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder)
        .unwrap_or_else(|e| panic!("{}: {e}; install the package rt-app", folder.display()));
    for entry in entries {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            json_files(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "json") {
            found.push(path);
        }
    }
}

#[test]
fn rtapp_examples_run_under_every_policy() {
    let named = std::env::var_os("SCHEDLAB_RTAPP_EXAMPLES");
    let root = named.map_or_else(|| PathBuf::from("/usr/share/doc/rt-app"), PathBuf::from);
    let mut files = Vec::new();
    json_files(&root.join("examples"), &mut files);
    files.retain(|path| path.parent().is_none_or(|folder| !folder.ends_with("merge")));
    files.sort();
    assert!(files.len() >= 16, "only {} examples are there", files.len());
    let topo = Topology::new(1, 2, 1, 2).expect("legal");
    let cost = CostModel::built_in("default").expect("there");
    for file in files {
        let name = file.to_str().expect("a text name");
        let loaded = resolve(name, &[], &LoadOptions::default())
            .unwrap_or_else(|error| panic!("{name}: {error:?}"));
        loaded.check_machine(topo.n_cpus()).unwrap_or_else(|error| panic!("{name}: {error:?}"));
        for policy in all_policies() {
            let case = Case {
                workload: &loaded.workload,
                topo: &topo,
                cost: &cost,
                seed: 1,
                length: Nanos::from_s(1),
            };
            run_case(&policy, case, NoObserver);
        }
    }
}
