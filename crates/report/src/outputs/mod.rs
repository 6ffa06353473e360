// SPDX-License-Identifier: GPL-2.0-only
//! The forms of output. A new one is one file here and one line in [`OUTPUTS`].

use std::io::{self, Write};

use schedlab_lab::result::Comparison;

mod csv;
mod json;
mod text;

/// All forms of output, the default first.
pub const OUTPUTS: &[&dyn Output] = &[&text::Text, &json::Json, &csv::Csv];

/// How a report is to look; only the text form cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Columns of the terminal or page.
    pub width: usize,
    /// Whether ANSI colours are allowed.
    pub color: bool,
}

/// A form of output.
pub trait Output: Sync {
    /// Name in `--format`.
    fn name(&self) -> &'static str;
    /// One line for help texts.
    fn about(&self) -> &'static str;
    /// Writes the report.
    ///
    /// # Errors
    /// Those of `out`.
    fn write(
        &self,
        comparison: &Comparison,
        options: Options,
        out: &mut dyn Write,
    ) -> io::Result<()>;
    /// Writes the reports of a workload with a matrix, one comparison for each combination.
    ///
    /// # Errors
    /// Those of `out`.
    fn write_matrix(
        &self,
        cells: &[Comparison],
        options: Options,
        out: &mut dyn Write,
    ) -> io::Result<()>;
}

/// The form of output called `name`.
pub fn output_by_name(name: &str) -> Option<&'static dyn Output> {
    OUTPUTS.iter().copied().find(|output| output.name() == name)
}
