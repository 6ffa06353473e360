// SPDX-License-Identifier: GPL-2.0-only
//! Workloads as data: task programs, where they come from, and the machine that steps through them.
//!
//! A workload is plain data ([`Workload`]): it can be saved, hashed, generated, shrunk, replayed and
//! played on real threads. Readers turn our TOML, rt-app's JSON and recordings into it; the library
//! holds the built-in ones. [`Vm`] steps through a task's program without knowing who executes the
//! steps. Nothing here schedules, and nothing reads a clock.
#![forbid(unsafe_code)]

mod combine;
mod digest;
mod dist;
mod expr;
pub mod ir;
mod library;
mod load;
mod machine;
mod nearest;
mod origins;
mod period;
pub mod replay;
mod rtapp;
mod toml;
mod validate;
mod vm;

pub use digest::{Digest, digest};
pub use ir::Workload;
pub use library::{Builtin, builtins, find};
pub use load::{LoadError, LoadErrorKind, LoadOptions, Loaded, load_bytes, load_text, resolve};
pub use machine::check_machine;
pub use period::{Counts, Period, Verdict};
pub use rtapp::RtAppOptions;
pub use toml::{Axis, ParamDoc, to_toml};
pub use validate::{Invalid, MAX_AMOUNT, MAX_DURATION_NS, MAX_TASKS, Place, validate};
pub use vm::{Step, Vm};
