// SPDX-License-Identifier: GPL-2.0-only
//! The largest differences, for the top of the report: who is ahead in what, and by how much.

use crate::columns::Columns;
use crate::format;
use crate::sections::{Better, Row, Section};
use crate::stats::{Change, Estimate};

/// At most this many differences are named.
const HEADLINES_MAX: usize = 6;
/// Smaller differences are no headlines.
const RATIO_MIN: f64 = 1.1;

/// One difference between two policies.
pub(crate) struct Headline {
    /// Heading of the policy that is ahead.
    pub(crate) ahead: String,
    /// What it is about.
    pub(crate) what: String,
    /// Its figure, with the unit.
    pub(crate) figure: String,
    /// The other's figure, with its heading where there are more than two.
    pub(crate) against: String,
    /// The larger over the smaller; infinite when the smaller is zero.
    ratio: f64,
}

impl Headline {
    /// How many times less the better figure is; empty when it is zero.
    pub(crate) fn factor(&self) -> String {
        if self.ratio.is_infinite() {
            return String::new();
        }
        format!("{}× less", format::factor(self.ratio))
    }
}

/// The largest significant differences of figures that have a better direction.
pub(crate) fn headlines(columns: &Columns<'_>, sections: &[Section]) -> Vec<Headline> {
    let mut all = Vec::new();
    for section in sections {
        for row in section.rows.iter().filter(|row| row.better == Better::Lower) {
            let others = 1..row.values.len();
            all.extend(others.filter_map(|column| headline(columns, section, row, column)));
        }
    }
    // Stable: equal ratios stay in the order of the report.
    all.sort_by(|a: &Headline, b: &Headline| b.ratio.total_cmp(&a.ratio));
    all.retain(|headline| headline.ratio >= RATIO_MIN);
    all.truncate(HEADLINES_MAX);
    all
}

fn headline(
    columns: &Columns<'_>,
    section: &Section,
    row: &Row,
    column: usize,
) -> Option<Headline> {
    let what = row.headline.clone()?;
    let (first, second) = (&row.values[0], &row.values[column]);
    let change = Change::between(first, second)?;
    if !change.significant {
        return None;
    }
    let show = |values: &[Option<f64>]| {
        let known: Vec<f64> = values.iter().flatten().copied().collect();
        let mean = Estimate::of(&known)?.mean;
        let text = section.unit.show(Estimate { mean, half_width: None });
        Some(match section.unit {
            format::Unit::Count => text,
            unit => format!("{text} {}", unit.name()),
        })
    };
    let (first, second) = (show(first)?, show(second)?);
    let (base, other) = (&columns.columns[0].heading, &columns.columns[column].heading);
    let improved = change.ratio < 1.0;
    let ratio = if improved { 1.0 / change.ratio } else { change.ratio };
    let (ahead, figure, behind, against) =
        if improved { (other, second, base, first) } else { (base, first, other, second) };
    // Between two policies it is clear whose figure the other one is.
    let against =
        if columns.columns.len() == 2 { against } else { format!("{against} ({behind})") };
    Some(Headline { ahead: ahead.clone(), what, figure, against, ratio })
}
