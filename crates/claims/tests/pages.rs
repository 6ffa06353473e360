// SPDX-License-Identifier: GPL-2.0-only
//! The pages in `docs/claims/` say what the claims say and what their last full run gave.
//!
//! `schedlab claims --pages docs/claims` runs everything and writes them anew.

use std::path::Path;

use schedlab_claims::library::{THREADS, all};
use schedlab_claims::outputs::{Judged, index, json, outcomes, page};

#[test]
fn claim_pages_are_up_to_date() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/claims");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    let (entries, results) = (all(), read("results.json"));
    let outcomes = outcomes(&results).expect("results of a full run");
    let ids = |names: Vec<&str>| names.join(" ");
    let found = ids(outcomes.iter().map(|outcome| outcome.id.as_str()).collect());
    assert_eq!(found, ids(entries.iter().map(|entry| entry.id()).collect()), "other claims");
    let judged: Vec<Judged<'_>> =
        entries.iter().zip(&outcomes).map(|(entry, outcome)| Judged { entry, outcome }).collect();
    for judged in &judged {
        let conditions = judged.entry.experiment.conditions(&judged.entry.text, false);
        let conditions: Vec<String> =
            conditions.expect("well formed").into_iter().map(|c| c.text).collect();
        let tested: Vec<String> =
            judged.outcome.conditions.iter().map(|(text, _)| text.clone()).collect();
        assert_eq!(tested, conditions, "{}: run it again", judged.entry.id());
    }
    assert_eq!(results, json(&judged, false, 0), "results.json is stale");
    assert_eq!(read("README.md"), index(&judged), "README.md is stale");
    for (thread, _) in THREADS {
        let (text, pictures) = page(thread, &judged);
        assert_eq!(read(&format!("{thread}.md")), text, "{thread}.md is stale");
        for (name, picture) in pictures {
            assert_eq!(read(&name), picture, "{name} is stale");
        }
    }
}
