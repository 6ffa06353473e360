// SPDX-License-Identifier: GPL-2.0-only
//! The conformance suite: what every policy of the registry must keep, whatever it schedules.
//!
//! This library generates random legal workloads and machines and runs them; the tests beside it
//! state the invariants. A new policy is tested here before its author writes a test.
#![forbid(unsafe_code)]

mod company;
mod generate;
pub mod live;
mod retune;
mod run;
pub mod vectors;
mod watch;

pub use company::{Mixed, company};
pub use generate::{Habits, MACHINES, machine, workload};
pub use retune::{Retune, random_value, run_retuned};
pub use run::{Case, Outcome, all_policies, run_boxed, run_case, run_unchecked};
pub use watch::{CurrentOnce, IdleBesideWaiting, LongestWait};
