// SPDX-License-Identifier: GPL-2.0-only
//! The pages in `docs/policies/` say what the policies declare. `SCHEDLAB_BLESS=1` writes them anew.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use schedlab_policies::infos;
use schedlab_report::policy_page;

#[test]
fn policy_pages_are_up_to_date() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/policies");
    if std::env::var_os("SCHEDLAB_BLESS").is_some() {
        fs::create_dir_all(&folder).expect("the folder can be made");
        for info in infos() {
            let path = folder.join(format!("{}.md", info.name));
            fs::write(path, policy_page(info)).expect("the page can be written");
        }
    }
    let mut expected = BTreeSet::new();
    for info in infos() {
        let name = format!("{}.md", info.name);
        let found = fs::read_to_string(folder.join(&name)).unwrap_or_default();
        assert_eq!(found, policy_page(info), "docs/policies/{name} is stale: see this test's head");
        expected.insert(name);
    }
    let entries = fs::read_dir(&folder).expect("the folder is there");
    let found: BTreeSet<String> = entries
        .map(|entry| entry.expect("readable").file_name().into_string().expect("ASCII"))
        .collect();
    assert_eq!(found, expected, "a page without a policy");
}
