// SPDX-License-Identifier: GPL-2.0-only
//! `docs/vectors.md` says which test checks which row. `SCHEDLAB_BLESS=1` writes it anew.

use std::fs;
use std::path::Path;

use schedlab_conformance::vectors::rows_page;

#[test]
fn every_row_of_the_specs_has_its_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = rows_page(&root.join("crates"), include_str!("../vectors.txt"))
        .unwrap_or_else(|errors| panic!("{}", errors.join("\n")));
    let path = root.join("docs/vectors.md");
    if std::env::var_os("SCHEDLAB_BLESS").is_some() {
        fs::write(&path, &page).expect("the page can be written");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(found, page, "docs/vectors.md is stale: see this test's head");
}
