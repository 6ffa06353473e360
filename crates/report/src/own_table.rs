// SPDX-License-Identifier: GPL-2.0-only
//! What the modelled program would print itself, where the workload says which program it is.

use schedlab_lab::result::{Comparison, OwnTable, RunResult, WorkloadInfo};
use serde::Serialize;

use crate::interbench::{self, InterbenchFigures};
use crate::schbench::{self, SchbenchFigures};

/// The program's figures, under its name.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OwnFigures {
    /// interbench.
    Interbench(InterbenchFigures),
    /// schbench.
    Schbench(SchbenchFigures),
}

/// The program's figures of one run.
pub(crate) fn figures(workload: &WorkloadInfo, run: &RunResult) -> Option<OwnFigures> {
    match workload.table? {
        OwnTable::Interbench => Some(OwnFigures::Interbench(interbench::figures(workload, run))),
        OwnTable::Schbench => schbench::figures(run).map(OwnFigures::Schbench),
    }
}

/// The program's tables of one comparison.
pub(crate) fn tables(comparison: &Comparison) -> Vec<String> {
    match comparison.workload.table {
        Some(OwnTable::Interbench) => interbench::tables(&[comparison]),
        Some(OwnTable::Schbench) => schbench::table(comparison).into_iter().collect(),
        None => Vec::new(),
    }
}

/// The tables of a whole matrix, if the program has one for it.
pub(crate) fn matrix_tables(cells: &[Comparison]) -> Option<Vec<String>> {
    let all: Vec<&Comparison> = cells.iter().collect();
    match cells.first()?.workload.table? {
        OwnTable::Interbench => Some(interbench::tables(&all)),
        OwnTable::Schbench => None,
    }
}
