// SPDX-License-Identifier: GPL-2.0-only
//! The example files of Debian's package `rt-app` must load; its fragments must be refused.
//!
//! The files are not ours to copy: the test needs the package, or a directory with its unpacked
//! `usr/share/doc/rt-app` in the environment variable `SCHEDLAB_RTAPP_EXAMPLES`.

use std::path::{Path, PathBuf};

use schedlab_workload::{LoadErrorKind, LoadOptions, Loaded, RtAppOptions, resolve, validate};

const INSTALLED: &str = "/usr/share/doc/rt-app";
const VARIABLE: &str = "SCHEDLAB_RTAPP_EXAMPLES";

fn root() -> PathBuf {
    let named = std::env::var_os(VARIABLE).map(PathBuf::from);
    let root = named.unwrap_or_else(|| PathBuf::from(INSTALLED));
    assert!(
        root.join("examples").is_dir(),
        "{} has no directory `examples`: install Debian's package rt-app (with its documentation), \
         or set {VARIABLE} to an unpacked usr/share/doc/rt-app",
        root.display()
    );
    root
}

/// All `.json` files below `folder`, in a fixed order.
fn json_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut pending = vec![folder.to_path_buf()];
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(&folder).expect("a readable folder") {
            let path = entry.expect("a readable entry").path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == "json") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

fn is_fragment(path: &Path) -> bool {
    path.parent().is_some_and(|folder| folder.ends_with("merge"))
}

fn load(path: &Path, strict: bool) -> Result<Loaded, schedlab_workload::LoadError> {
    let options = LoadOptions { rtapp: RtAppOptions { strict } };
    resolve(&path.to_string_lossy(), &[], &options)
}

#[test]
fn examples_of_the_package_load() {
    let root = root();
    let mut files = json_files(&root.join("examples"));
    files.push(root.join("taskset.json"));
    let whole: Vec<&PathBuf> = files.iter().filter(|path| !is_fragment(path)).collect();
    assert!(whole.len() >= 18, "only {} files: is the package complete?", whole.len());
    for path in whole {
        let loaded = load(path, false).unwrap_or_else(|error| panic!("{error}"));
        assert!(!loaded.workload.tasks.is_empty(), "{} has no task", path.display());
        assert_eq!(validate(&loaded.workload), Ok(()), "{}", path.display());
        loaded.check_machine(4).unwrap_or_else(|error| panic!("{error}"));
        let needs_workgen = path.file_name().is_some_and(|n| n.to_string_lossy().contains("video"));
        assert_eq!(load(path, true).is_err(), needs_workgen, "{} read strictly", path.display());
    }
}

#[test]
fn fragments_of_the_package_are_refused_with_the_reason() {
    let fragments: Vec<PathBuf> =
        json_files(&root().join("examples")).into_iter().filter(|path| is_fragment(path)).collect();
    assert!(!fragments.is_empty());
    for path in fragments {
        let error = load(&path, false).expect_err("a fragment");
        assert_eq!(error.kind, LoadErrorKind::Input, "{error}");
        assert!(error.fault.at.is_some(), "{error}");
        assert!(error.to_string().contains("fragment"), "{error}");
    }
}
