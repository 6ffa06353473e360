// SPDX-License-Identifier: GPL-2.0-only
//! Policies on a running kernel through sched_ext.
//!
//! A small BPF program, the relay, reports what happens to tasks and runs what it is told; the
//! host here turns its messages into inputs of the core, as the simulator does with its events.
#![deny(unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

#[cfg(target_os = "linux")]
pub mod command;
pub mod control;
pub mod ending;
pub mod host;
pub mod kernel;
pub mod probe;
#[cfg(all(target_os = "linux", feature = "bpf"))]
pub mod relay;
#[cfg(target_os = "linux")]
pub mod session;
pub mod transcript;

pub use schedlab_trace::transcript::message;
