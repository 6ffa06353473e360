// SPDX-License-Identifier: GPL-2.0-only
//! The policy-independent part of the scheduler: what `kernel/sched/core.c` is to its classes.
//!
//! [`Core`] turns the inputs of a host (a wake-up, a tick, a block, …) into calls of the hooks of a
//! policy, in the kernel's order, keeps the runnable and the running bracket balanced, does all
//! accounting in one place, and emits the event stream. Both hosts reach policies only through it.
//! It owns no clock, no cost and no workload.
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

extern crate alloc;

mod account;
mod change;
mod core;
mod lifecycle;
mod schedule;
mod taken;
mod transcript;
mod wakeup;

pub use crate::account::{CpuAccount, TaskAccount};
pub use crate::core::{Core, CoreConfig};
pub use crate::lifecycle::NewTask;
pub use crate::schedule::Switch;
pub use crate::transcript::{Entry, Input, Mismatch, Outcome, replay};
pub use crate::wakeup::Wakeup;
