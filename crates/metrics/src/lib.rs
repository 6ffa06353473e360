// SPDX-License-Identifier: GPL-2.0-only
//! Figures computed from the event stream alone.
//!
//! [`Metrics`] observes a run and ends as [`RunFigures`]: exact times per task, group and CPU,
//! counts, and distributions of delays. The crate owns the meaning of every figure; it knows no
//! policy, prints nothing and calculates with integers only.
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

mod cpu;
mod distribution;
mod figures;
mod histogram;
mod interbench;
mod metrics;
mod schbench;
mod spans;
mod tasks;

pub use cpu::CpuFigures;
pub use distribution::{Distribution, Summary};
pub use figures::{
    DeadlineFigures, EndState, Figures, GroupFigures, MarkFigures, RunFigures, TaskFigures, Totals,
};
pub use interbench::InterbenchSamples;
pub use metrics::{Config, MarkLabel, Metrics, RowId, RowLabel};
pub use schbench::{SCHBENCH_PERCENTILES, SchbenchHistogram, schbench_bucket, schbench_printed};
pub use spans::Spans;
