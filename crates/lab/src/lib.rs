// SPDX-License-Identifier: GPL-2.0-only
//! Experiments: policies on workloads, run and compared.
//!
//! Owns what a user may ask for (policy specs, machine specs) what comes out ([`result`]), and how it is run
//! ([`run`], [`batch`]).
#![forbid(unsafe_code)]

pub mod batch;
pub mod diff;
pub mod machine;
pub mod metered;
pub mod moment;
mod nearest;
pub mod recipe;
pub mod result;
pub mod run;
pub mod samples;
pub mod sink;
pub mod spec;

pub use nearest::nearest;
