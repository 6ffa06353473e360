// SPDX-License-Identifier: GPL-2.0-only
//! This machine: workloads played as real processes and threads, and recordings of what its
//! scheduler does.
//!
//! Owns what touches the running kernel but its extensible class (`live`). These two are the only
//! crates with `unsafe` code, each block of which says why it is sound. [`played`] is the data that a play yields; what it means in
//! figures is the affair of `lab`. Playing and recording exist on Linux only.
#![deny(unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

pub mod played;

#[cfg(target_os = "linux")]
mod burn;
#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod ending;
#[cfg(target_os = "linux")]
mod lender;
#[cfg(target_os = "linux")]
mod life;
#[cfg(target_os = "linux")]
mod objects;
#[cfg(target_os = "linux")]
mod ops;
#[cfg(target_os = "linux")]
pub mod play;
#[cfg(target_os = "linux")]
mod process;
#[cfg(target_os = "linux")]
pub mod record;
#[cfg(target_os = "linux")]
mod rights;
#[cfg(target_os = "linux")]
mod shared;
#[cfg(target_os = "linux")]
mod stack;
#[cfg(target_os = "linux")]
mod stand_ins;
#[cfg(target_os = "linux")]
mod start;
#[cfg(target_os = "linux")]
pub mod system;
#[cfg(target_os = "linux")]
mod task;
#[cfg(target_os = "linux")]
pub mod tracefs;
#[cfg(target_os = "linux")]
mod watcher;
