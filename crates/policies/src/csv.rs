// SPDX-License-Identifier: GPL-2.0-only
//! Just enough of CSV for the vectors: `#` comments, a header, cells without quotes.

use alloc::vec::Vec;
use core::fmt::Debug;
use core::str::FromStr;

/// A line with its header.
pub(crate) struct Row<'a> {
    header: Vec<&'a str>,
    cells: Vec<&'a str>,
}

impl<'a> Row<'a> {
    /// The cell of `column`, trimmed.
    pub(crate) fn text(&self, column: &str) -> &'a str {
        let at = self.header.iter().position(|name| *name == column);
        self.cells[at.unwrap_or_else(|| panic!("no column `{column}` in {:?}", self.header))]
    }
    /// The cell of `column` as a number or whatever else it is.
    pub(crate) fn get<T: FromStr<Err: Debug>>(&self, column: &str) -> T {
        let text = self.text(column);
        text.parse().unwrap_or_else(|e| panic!("`{text}` in column `{column}`: {e:?}"))
    }
    /// The cell of `column`, or `default` where it is empty.
    pub(crate) fn get_or<T: FromStr<Err: Debug>>(&self, column: &str, default: T) -> T {
        if self.text(column).is_empty() { default } else { self.get(column) }
    }
    /// The cell of `column`; none where it is empty.
    pub(crate) fn try_get<T: FromStr<Err: Debug>>(&self, column: &str) -> Option<T> {
        (!self.text(column).is_empty()).then(|| self.get(column))
    }
    /// Whether the cell of `column` is 1 rather than 0.
    pub(crate) fn flag(&self, column: &str) -> bool {
        self.get::<u8>(column) == 1
    }
}

fn cells(line: &str) -> Vec<&str> {
    line.split(',').map(str::trim).collect()
}

/// The rows of `text`; there is at least one.
pub(crate) fn rows(text: &str) -> Vec<Row<'_>> {
    let mut lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let header = cells(lines.next().expect("a header"));
    let rows: Vec<Row<'_>> = lines
        .map(|line| {
            let cells = cells(line);
            assert_eq!(cells.len(), header.len(), "{line}");
            Row { header: header.clone(), cells }
        })
        .collect();
    assert!(!rows.is_empty(), "the vectors are not empty");
    rows
}
