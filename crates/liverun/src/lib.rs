// SPDX-License-Identifier: GPL-2.0-only
//! Live runs by policy specs: a run on this kernel with its figures, and the replay of its transcript.
#![forbid(unsafe_code)]

#[cfg(all(target_os = "linux", feature = "bpf"))]
mod control;
mod policy;
#[cfg(all(target_os = "linux", feature = "bpf"))]
mod run;
pub mod transcript;

#[cfg(all(target_os = "linux", feature = "bpf"))]
pub use run::{LiveJob, LiveOutput, live};
