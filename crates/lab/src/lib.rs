// SPDX-License-Identifier: GPL-2.0-only
//! Experiments: policies on workloads, run and compared.
//!
//! Owns what a user may ask for (policy specs, machine specs) and what comes out ([`result`]).
#![forbid(unsafe_code)]

pub mod machine;
mod nearest;
pub mod result;
pub mod spec;

pub use nearest::nearest;
