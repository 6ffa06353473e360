// SPDX-License-Identifier: GPL-2.0-only
//! The rules of ARCHITECTURE.md that a compiler does not check: arrows between crates, the `no_std`
//! wall, licence lines.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Level of every crate of the product; a dependency must lead to a lower one.
const LEVELS: &[(&str, u32)] = &[
    ("units", 0),
    ("policy-api", 1),
    ("policies", 2),
    ("kcore", 2),
    ("workload", 2),
    ("trace", 2),
    ("metrics", 2),
    ("sim", 3),
    ("views", 3),
    ("host", 3),
    ("live", 3),
    ("lab", 4),
    ("liverun", 5),
    ("report", 5),
    ("claims", 6),
    ("cli", 7),
];

/// Crates that are not part of the product: they may use everything.
const TEST_ONLY: &[&str] = &["conformance"];

/// The crates with unsafe code, each block of which must say why it is sound.
const UNSAFE: &[&str] = &["host", "live"];

/// Crates below the host line: no clock, no files, no floats, no unsafe code.
const PURE: &[&str] = &["units", "policy-api", "policies", "kcore"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn crates() -> Vec<String> {
    let entries = fs::read_dir(root().join("crates")).expect("crates are there");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("readable").file_name().into_string().expect("ASCII"))
        .collect();
    names.sort();
    names
}

fn sources(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).expect("readable") {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn arrows_between_crates_lead_downwards() {
    let levels: BTreeMap<&str, u32> = LEVELS.iter().copied().collect();
    for name in crates().iter().filter(|name| !TEST_ONLY.contains(&name.as_str())) {
        let level = *levels.get(name.as_str()).unwrap_or_else(|| panic!("`{name}` has no level"));
        let path = root().join("crates").join(name).join("Cargo.toml");
        let text = fs::read_to_string(&path).expect("a manifest");
        let manifest: toml::Table = text.parse().expect("valid TOML");
        for (dependency, _) in manifest["dependencies"].as_table().expect("a table") {
            let Some(dependency) = dependency.strip_prefix("schedlab-") else { continue };
            let below = levels[dependency];
            assert!(below < level, "`{name}` must not depend on `{dependency}`");
        }
    }
}

#[test]
fn pure_crates_stand_behind_the_no_std_wall() {
    for name in PURE {
        let path = root().join("crates").join(name).join("src/lib.rs");
        let text = fs::read_to_string(&path).expect("a library");
        for attribute in
            ["#![no_std]", "#![forbid(unsafe_code)]", "#![deny(clippy::float_arithmetic)]"]
        {
            assert!(text.contains(attribute), "`{name}` lacks {attribute}");
        }
        let mut files = Vec::new();
        sources(&root().join("crates").join(name).join("src"), &mut files);
        for file in files {
            let text = fs::read_to_string(&file).expect("readable");
            for (number, line) in text.lines().enumerate() {
                let code = line.split("//").next().unwrap_or("");
                let words = code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
                let float = words.clone().find(|word| matches!(*word, "f32" | "f64" | "HashMap"));
                assert_eq!(float, None, "{}:{}: {line}", file.display(), number + 1);
            }
        }
    }
}

#[test]
fn other_crates_forbid_unsafe_code() {
    for (name, _) in LEVELS.iter().filter(|(name, _)| !UNSAFE.contains(name)) {
        let src = root().join("crates").join(name).join("src");
        let main = [src.join("lib.rs"), src.join("main.rs")];
        let text = main.iter().find_map(|path| fs::read_to_string(path).ok()).expect("a root");
        assert!(text.contains("#![forbid(unsafe_code)]"), "`{name}` does not forbid unsafe code");
    }
}

#[test]
fn unsafe_blocks_say_why_they_are_sound() {
    for name in UNSAFE {
        let root = root().join("crates").join(name);
        let text = fs::read_to_string(root.join("src/lib.rs")).expect("a root");
        assert!(text.contains("clippy::undocumented_unsafe_blocks"), "`{name}` has no lint for it");
        let mut files = Vec::new();
        sources(&root, &mut files);
        for file in files {
            let text = fs::read_to_string(&file).expect("readable");
            let lines: Vec<&str> = text.lines().collect();
            for (number, line) in lines.iter().enumerate() {
                if line.split("//").next().is_some_and(|code| code.contains("unsafe {")) {
                    let before = &lines[number.saturating_sub(5)..number];
                    let said = before.iter().any(|line| line.trim().starts_with("// SAFETY:"));
                    assert!(said, "{}:{}: no SAFETY line", file.display(), number + 1);
                }
            }
        }
    }
}

#[test]
fn source_files_carry_the_licence_and_stay_small() {
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    sources(&root().join("examples"), &mut files);
    assert!(files.len() > 50, "the walk finds the sources");
    for file in files {
        let text = fs::read_to_string(&file).expect("readable");
        let first = text.lines().next().unwrap_or("");
        assert_eq!(first, "// SPDX-License-Identifier: GPL-2.0-only", "{}", file.display());
        let n_lines = text.lines().count();
        assert!(n_lines <= 800, "{} has {n_lines} lines; split it by subject", file.display());
    }
}
