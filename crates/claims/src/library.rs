// SPDX-License-Identifier: GPL-2.0-only
//! The claims that come with the program: every file of `experiments/`.

use schedlab_units::Located;

use crate::experiment::Experiment;

/// File names and texts.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/experiments.rs"));

/// A claim with the text of its file.
#[derive(Clone, Debug)]
pub struct Entry {
    /// File name.
    pub file: String,
    /// The text.
    pub text: String,
    /// What it says.
    pub experiment: Experiment,
}

impl Entry {
    /// Reads the file of a claim.
    ///
    /// # Errors
    /// The place of the fault.
    pub fn parse(file: &str, text: &str) -> Result<Self, Located> {
        let experiment = Experiment::parse(text)?;
        Ok(Self { file: file.to_string(), text: text.to_string(), experiment })
    }

    /// `FAMILY/ID`.
    pub fn id(&self) -> &str {
        &self.experiment.claim.id
    }
}

/// Titles of the five threads by their numbers.
pub const THREADS: [(&str, &str); 5] = [
    ("000", "audio latency and interactivity, July 2003"),
    ("001", "the single priority array, May 2004"),
    ("002", "BFS and the hierarchical penalty, October 2010"),
    ("003", "the EEVDF patches, March 2023"),
    ("004", "reschedule_idle, June 2001"),
];

/// All claims, by thread and then by id.
///
/// # Panics
/// When a file is malformed; a test reads them all.
pub fn all() -> Vec<Entry> {
    let read = |(file, text): &(&str, &str)| {
        Entry::parse(file, text).unwrap_or_else(|fault| panic!("{file}: {fault}"))
    };
    let mut entries: Vec<Entry> = FILES.iter().map(read).collect();
    entries.sort_by_key(key);
    entries
}

/// Thread, then family, then the id with its numbers as numbers: CL2 before CL10.
fn key(entry: &Entry) -> (String, Vec<(String, u64)>) {
    let claim = &entry.experiment.claim;
    let mut parts = Vec::new();
    let mut rest = claim.id.as_str();
    while !rest.is_empty() {
        let word_end = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (word, tail) = rest.split_at(word_end);
        let number_end = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
        let (number, tail) = tail.split_at(number_end);
        parts.push((word.to_string(), number.parse().unwrap_or(0)));
        rest = tail;
    }
    (claim.thread.clone(), parts)
}

/// The claims that `filters` name: ids such as `bfs/C07`, families such as `bfs`, or threads such
/// as `002`; all without any.
///
/// # Errors
/// A filter that names nothing.
pub fn select(filters: &[String]) -> Result<Vec<Entry>, String> {
    let entries = all();
    let matches = |entry: &Entry, filter: &str| {
        let claim = &entry.experiment.claim;
        let family = claim.id.split('/').next().unwrap_or_default();
        claim.id.eq_ignore_ascii_case(filter) || family == filter || claim.thread == filter
    };
    for filter in filters {
        if !entries.iter().any(|entry| matches(entry, filter)) {
            let ids: Vec<&str> = entries.iter().map(Entry::id).collect();
            return Err(format!(
                "no claim, family or thread is called `{filter}`; there are {}",
                ids.join(", ")
            ));
        }
    }
    let chosen = |entry: &Entry| filters.is_empty() || filters.iter().any(|f| matches(entry, f));
    Ok(entries.into_iter().filter(chosen).collect())
}
