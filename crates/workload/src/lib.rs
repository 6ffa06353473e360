// SPDX-License-Identifier: GPL-2.0-only
//! Workloads as data: task programs, where they come from, and the machine that steps through them.
//!
//! A workload is plain data ([`Workload`]): it can be saved, hashed, generated, shrunk, replayed and
//! played on real threads. Readers turn our TOML, rt-app's JSON and recordings into it; the library
//! holds the built-in ones. [`Vm`] steps through a task's program without knowing who executes the
//! steps. Nothing here schedules, and nothing reads a clock.
#![forbid(unsafe_code)]

mod dist;
pub mod ir;
mod validate;
mod vm;

pub use ir::Workload;
pub use validate::{Invalid, MAX_DURATION_NS, MAX_TASKS, Place, validate};
pub use vm::{Step, Vm};
