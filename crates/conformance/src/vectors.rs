// SPDX-License-Identifier: GPL-2.0-only
//! Which numbered row of a spec is tested where, read from the names of the tests.
//!
//! A test of rows is called `vectors_ROWS_SUBJECT`, such as `vectors_8_to_12_activate` or
//! `vectors_h10_h11_smp_traces`; its file names the spec as `Rows of SPEC §9` or `spec SPEC §9`.
//! What rows there are is listed in `vectors.txt` of this crate.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::path::Path;

/// Rows of one subject.
struct Subject<'a> {
    spec: &'a str,
    /// As listed, such as `60 62 to 65`.
    shown: &'a str,
    rows: Vec<Row>,
    about: &'a str,
    /// Why no test names some of them; empty = all are named.
    untested: &'a str,
}

/// A row's number with the letter before it and, for a trace, the one behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    letter: Option<char>,
    number: u32,
    is_trace: bool,
}

impl Row {
    /// `12`, `h10`, `H10` or `67t`; none if it is something else.
    fn parse(word: &str) -> Option<Self> {
        let letter = word.chars().next().filter(char::is_ascii_alphabetic);
        let rest = if letter.is_some() { &word[1..] } else { word };
        let (digits, is_trace) = match rest.strip_suffix('t') {
            Some(digits) => (digits, true),
            None => (rest, false),
        };
        let number = digits.parse().ok().filter(|_| !digits.starts_with('+'))?;
        Some(Self { letter: letter.map(|c| c.to_ascii_lowercase()), number, is_trace })
    }

    /// Rows at the head of `words`, where `to` between two of them means all between.
    fn parse_all<'a>(words: impl Iterator<Item = &'a str>) -> Vec<Self> {
        let mut rows: Vec<Self> = Vec::new();
        let mut is_range = false;
        for word in words {
            let Some(row) = Self::parse(word) else {
                if word != "to" {
                    break;
                }
                is_range = true;
                continue;
            };
            if let Some(first) = rows.last().copied().filter(|_| is_range) {
                let between = first.number + 1..row.number;
                rows.extend(between.map(|number| Self { number, ..row }));
            }
            is_range = false;
            rows.push(row);
        }
        rows
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(letter) = self.letter {
            write!(f, "{}", letter.to_ascii_uppercase())?;
        }
        write!(f, "{}{}", self.number, if self.is_trace { "t" } else { "" })
    }
}

/// A test and the rows that its name claims.
struct Test {
    /// Policy or crate, such as `bfs` or `sim`.
    owner: String,
    name: String,
    rows: Vec<(String, Row)>,
}

fn subjects(list: &str) -> Vec<Subject<'_>> {
    let lines = list.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let [spec, shown, about, untested] = cells[..] else {
                panic!("four cells expected: {line}")
            };
            let rows = Row::parse_all(shown.split(' '));
            Subject { spec, shown, rows, about, untested }
        })
        .collect()
}

/// The policy whose folder holds `path`, else the crate.
fn owner(path: &Path) -> String {
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    match parts[..] {
        ["policies", "src", "fair", ..] => "cfs, eevdf".to_string(),
        ["policies", "src", folder, _, ..] => folder.to_string(),
        [name, ..] => name.to_string(),
        [] => String::new(),
    }
}

/// The tests of rows in one file; `path` starts at the folder of the crates.
fn tests_of(path: &Path, text: &str) -> Vec<Test> {
    let mut specs = BTreeSet::new();
    for (before, _) in text.match_indices(" §9").map(|(at, _)| text.split_at(at)) {
        let mut words = before.rsplit([' ', '\n']);
        let (name, mark) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
        if matches!(mark, "spec" | "Spec" | "of") {
            specs.insert(name);
        }
    }
    let tests = text.split("#[test]").skip(1).filter_map(|rest| rest.split_once("fn "));
    tests
        .filter_map(|(_, rest)| rest.split_once('(')?.0.strip_prefix("vectors_"))
        .map(|name| {
            let one = specs.first().filter(|_| specs.len() == 1);
            let spec = one.unwrap_or_else(|| panic!("{}: one spec, not {specs:?}", path.display()));
            let rows = Row::parse_all(name.split('_'));
            assert!(!rows.is_empty(), "{}: vectors_{name} names no row", path.display());
            Test {
                owner: owner(path),
                name: format!("vectors_{name}"),
                rows: rows.into_iter().map(|row| (spec.to_string(), row)).collect(),
            }
        })
        .collect()
}

fn collect(folder: &Path, root: &Path, tests: &mut Vec<Test>) {
    let mut entries: Vec<_> = std::fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("readable").path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            collect(&path, root, tests);
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            let text = std::fs::read_to_string(&path).expect("readable");
            tests.extend(tests_of(path.strip_prefix(root).expect("below"), &text));
        }
    }
}

/// The document `docs/vectors.md`, from the tests below the folder `crates` and the list of rows.
///
/// # Errors
/// A row that no test names and the list does not excuse, an excuse that is not needed, or a test
/// of a row that is not listed.
///
/// # Panics
/// If a source file cannot be read, the list is malformed, or the file of a test of rows does not
/// name its spec.
pub fn rows_page(crates: &Path, list: &str) -> Result<String, Vec<String>> {
    let subjects = subjects(list);
    let mut tests = Vec::new();
    collect(crates, crates, &mut tests);
    let mut by_row: BTreeMap<(String, Row), Vec<&Test>> = BTreeMap::new();
    for test in &tests {
        for row in &test.rows {
            by_row.entry(row.clone()).or_default().push(test);
        }
    }
    let mut errors = Vec::new();
    let mut listed = BTreeSet::new();
    for subject in &subjects {
        let key = |row: &Row| (subject.spec.to_string(), *row);
        listed.extend(subject.rows.iter().map(key));
        let is_bare = |row: &&Row| !by_row.contains_key(&key(row));
        let bare: Vec<&Row> = subject.rows.iter().filter(is_bare).collect();
        if subject.untested.is_empty() != bare.is_empty() {
            let Subject { spec, shown, untested, .. } = subject;
            let bare: Vec<String> = bare.iter().map(ToString::to_string).collect();
            let bare = bare.join(" ");
            errors.push(format!("{spec} {shown}: no test of `{bare}`, listed reason `{untested}`"));
        }
    }
    for (row, tests) in by_row.iter().filter(|(row, _)| !listed.contains(*row)) {
        errors.push(format!("{}: row {} of {} is not listed", tests[0].name, row.1, row.0));
    }
    if errors.is_empty() { Ok(page(&subjects, &by_row)) } else { Err(errors) }
}

fn page(subjects: &[Subject<'_>], by_row: &BTreeMap<(String, Row), Vec<&Test>>) -> String {
    let mut out = String::from(
        "# Rows of the specs and their tests\n\n\
         Each spec numbers its test vectors and golden traces. Here is which test of which policy \
         checks which row, read from the tests' names by a test that fails when this page is \
         stale. Several owners mean that several policies have the rule.\n\n",
    );
    let mut specs: Vec<&str> = subjects.iter().map(|subject| subject.spec).collect();
    specs.dedup();
    write_totals(&mut out, &specs, subjects, by_row);
    for spec in specs {
        let _ = writeln!(out, "\n## {spec}\n\n| rows | about | tests |\n|---|---|---|");
        for subject in subjects.iter().filter(|subject| subject.spec == spec) {
            let mut names: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
            let of = |row: &Row| by_row.get(&(spec.to_string(), *row)).into_iter().flatten();
            for test in subject.rows.iter().flat_map(of) {
                names.entry(&test.owner).or_default().insert(&test.name);
            }
            let mut cells: Vec<String> = names
                .into_iter()
                .map(|(owner, names)| {
                    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
                    format!("{owner}: {}", names.join(", "))
                })
                .collect();
            if !subject.untested.is_empty() {
                cells.push(format!("not all tested: {}", subject.untested));
            }
            let Subject { shown, about, .. } = subject;
            let _ = writeln!(out, "| {shown} | {about} | {} |", cells.join("; "));
        }
    }
    out
}

/// Table policy × spec: number of rows that the owner's tests check, and the rows of each spec.
fn write_totals(
    out: &mut String,
    specs: &[&str],
    subjects: &[Subject<'_>],
    by_row: &BTreeMap<(String, Row), Vec<&Test>>,
) {
    let mut counts: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    for ((spec, _), tests) in by_row {
        let owners: BTreeSet<&str> = tests.iter().map(|test| test.owner.as_str()).collect();
        for owner in owners {
            *counts.entry(owner).or_default().entry(spec).or_default() += 1;
        }
    }
    let _ = writeln!(out, "| rows tested by | {} |", specs.join(" | "));
    let _ = writeln!(out, "|---|{}", "---|".repeat(specs.len()));
    for (owner, of_spec) in counts {
        let cell = |spec: &&str| of_spec.get(*spec).map(ToString::to_string).unwrap_or_default();
        let cells: Vec<String> = specs.iter().map(cell).collect();
        let _ = writeln!(out, "| {owner} | {} |", cells.join(" | "));
    }
    let n_rows = |spec: &&str| {
        let rows = subjects.iter().filter(|s| s.spec == *spec).flat_map(|s| &s.rows);
        let (all, tested) = rows.fold((0, 0), |(all, tested), row| {
            (all + 1, tested + usize::from(by_row.contains_key(&(spec.to_string(), *row))))
        });
        format!("{tested} of {all}")
    };
    let cells: Vec<String> = specs.iter().map(n_rows).collect();
    let _ = writeln!(out, "| **together** | {} |", cells.join(" | "));
}
