// SPDX-License-Identifier: GPL-2.0-only
//! JSON after schema `schedlab.run/1`, or `schedlab.matrix/1` for a whole matrix.

use std::io::{self, Write};

use schedlab_lab::result::Comparison;

use super::{Options, Output};
use crate::model::{MatrixReport, Report};

/// The whole result, byte-identical for identical inputs except for `host`.
pub(super) struct Json;

impl Output for Json {
    fn name(&self) -> &'static str {
        "json"
    }
    fn about(&self) -> &'static str {
        "everything, after schema schedlab.run/1"
    }
    fn write(&self, comparison: &Comparison, _: Options, out: &mut dyn Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut *out, &Report::from(comparison))?;
        out.write_all(b"\n")
    }
    fn write_matrix(
        &self,
        cells: &[Comparison],
        _: Options,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut *out, &MatrixReport::from(cells))?;
        out.write_all(b"\n")
    }
}
