// SPDX-License-Identifier: GPL-2.0-only
//! Our own workload files: reader and writer.
//!
//! The format is described in `docs/workload-format.md`. Reading happens in two passes: the first
//! declares everything that has a name, the second translates programs, which may use any of them.

mod assemble;
mod document;
mod matrix;
mod ops;
mod source;
mod tables;
mod words;
mod writer;

pub use document::ParamDoc;
pub(crate) use document::{axes_of, params_of, read};
pub use matrix::Axis;
pub(crate) use matrix::Cell;
pub use writer::to_toml;
