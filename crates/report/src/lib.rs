// SPDX-License-Identifier: GPL-2.0-only
//! Results for people and programs: text, JSON, CSV; and the pages of the policies.
//!
//! Everything is made from a [`schedlab_lab::result::Comparison`]; a new form of output is one file
//! in `outputs` and one line in [`OUTPUTS`]. The crate runs nothing and knows no terminal: width
//! and colour are arguments.
#![forbid(unsafe_code)]

mod columns;
pub mod diff;
mod format;
mod headline;
mod interbench;
pub mod model;
mod outputs;
mod own_table;
mod policy_page;
mod schbench;
mod sections;
mod stats;
mod table;

pub use format::wrap;
pub use interbench::InterbenchFigures;
pub use outputs::{OUTPUTS, Options, Output, output_by_name};
pub use own_table::OwnFigures;
pub use policy_page::{policy_page, promises};
pub use schbench::SchbenchFigures;
