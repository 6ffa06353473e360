// SPDX-License-Identifier: GPL-2.0-only
//! Runs sorted into columns (policies) and seeds.

use schedlab_lab::result::{Comparison, RunResult};

/// All runs of one of the compared policies.
pub(crate) struct Column<'a> {
    /// Shortest name that no other column has.
    pub(crate) heading: String,
    /// Policy spec in full.
    pub(crate) spec: String,
    /// By seed, in the order of [`Columns::seeds`]; none = not run.
    pub(crate) runs: Vec<Option<&'a RunResult>>,
}

impl<'a> Column<'a> {
    /// The run with the lowest seed.
    pub(crate) fn first_run(&self) -> Option<&'a RunResult> {
        self.runs.iter().flatten().next().copied()
    }
}

/// The compared policies.
pub(crate) struct Columns<'a> {
    /// In the order in which the user named them.
    pub(crate) columns: Vec<Column<'a>>,
    /// Seeds of all runs, ascending.
    pub(crate) seeds: Vec<u64>,
}

/// One value per column and seed.
pub(crate) type Values = Vec<Vec<Option<f64>>>;

impl<'a> Columns<'a> {
    pub(crate) fn of(comparison: &'a Comparison) -> Self {
        let mut seeds: Vec<u64> = comparison.runs.iter().map(|run| run.seed).collect();
        seeds.sort_unstable();
        seeds.dedup();
        let n_columns = comparison.runs.iter().map(|run| run.column + 1).max().unwrap_or(0);
        let runs_of = |column: usize| -> Vec<Option<&'a RunResult>> {
            let run_of = |seed: &u64| {
                comparison.runs.iter().find(|run| run.column == column && run.seed == *seed)
            };
            seeds.iter().map(run_of).collect()
        };
        let all: Vec<_> = (0..n_columns).map(runs_of).collect();
        // A column whose runs were all interrupted before they began is not shown.
        let all: Vec<_> = all.into_iter().filter(|runs| runs.iter().any(Option::is_some)).collect();
        let firsts: Vec<&RunResult> =
            all.iter().filter_map(|runs| runs.iter().flatten().next().copied()).collect();
        let headings = headings(&firsts);
        let columns = all.into_iter().zip(headings).zip(&firsts);
        let columns = columns
            .map(|((runs, heading), first)| Column { heading, spec: first.spec(), runs })
            .collect();
        Self { columns, seeds }
    }

    /// Applies `f` to every run.
    pub(crate) fn values(&self, f: impl Fn(&RunResult) -> Option<f64>) -> Values {
        let of_column = |column: &Column<'_>| {
            column.runs.iter().map(|run| run.and_then(&f)).collect::<Vec<_>>()
        };
        self.columns.iter().map(of_column).collect()
    }

    /// All runs, by column and seed.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &'a RunResult> + '_ {
        self.columns.iter().flat_map(|column| column.runs.iter().flatten().copied())
    }

    /// The first run of all, if there is any.
    pub(crate) fn first_run(&self) -> Option<&'a RunResult> {
        self.columns.first().and_then(Column::first_run)
    }
}

/// The policy's name where that is unique, else with the variant, else with a letter.
fn headings(firsts: &[&RunResult]) -> Vec<String> {
    let with_variant = |run: &RunResult| match run.variant.as_str() {
        "" => run.policy.clone(),
        variant => format!("{}@{variant}", run.policy),
    };
    let unique =
        |names: &[String]| (1..names.len()).all(|index| !names[..index].contains(&names[index]));
    let names: Vec<String> = firsts.iter().map(|run| run.policy.clone()).collect();
    if unique(&names) {
        return names;
    }
    let names: Vec<String> = firsts.iter().map(|run| with_variant(run)).collect();
    if unique(&names) {
        return names;
    }
    let lettered = |(index, name): (usize, &String)| match u8::try_from(index) {
        Ok(index) if index < 26 => format!("{} {name}", char::from(b'A' + index)),
        _ => format!("#{} {name}", index + 1),
    };
    names.iter().enumerate().map(lettered).collect()
}
