// SPDX-License-Identifier: GPL-2.0-only
//! The conformance suite: what every policy of the registry must keep, whatever it schedules.
//!
//! This library generates random legal workloads and machines and runs them; the tests beside it
//! state the invariants. A new policy is tested here before its author writes a test.
#![forbid(unsafe_code)]

mod generate;
mod run;
pub mod vectors;

pub use generate::{machine, workload, workload_without_affinity};
pub use run::{Case, Watch, all_policies, run_case};
