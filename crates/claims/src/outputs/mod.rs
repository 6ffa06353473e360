// SPDX-License-Identifier: GPL-2.0-only
//! What came out of claims, for people and programs. A new form of output is one file here.

mod explain;
mod json;
mod number;
mod page;
mod plot;
mod text;

pub use explain::explain;
pub use json::{SCHEMA, json, outcomes};
pub use page::{index, page};
pub use plot::svg;
pub use text::{list, table};

use crate::experiment::Verdict;
use crate::judge::Outcome;
use crate::library::Entry;

/// A claim with what came out of it.
#[derive(Clone, Copy, Debug)]
pub struct Judged<'a> {
    /// The claim.
    pub entry: &'a Entry,
    /// What came out.
    pub outcome: &'a Outcome,
}

impl Judged<'_> {
    /// Whether the verdict is another than expected.
    pub fn is_unexpected(&self) -> bool {
        self.outcome.verdict != self.entry.experiment.claim.expected
    }
}

/// Counts over verdicts: reproduced, not reproduced, report-only, unexpected.
pub fn summary(judged: &[Judged<'_>]) -> [usize; 4] {
    let count = |verdict| judged.iter().filter(|j| j.outcome.verdict == verdict).count();
    let unexpected = judged.iter().filter(|j| j.is_unexpected()).count();
    [
        count(Verdict::Reproduced),
        count(Verdict::NotReproduced),
        count(Verdict::ReportOnly),
        unexpected,
    ]
}
