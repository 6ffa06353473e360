// SPDX-License-Identifier: GPL-2.0-only
//! The deterministic multi-CPU simulator.
//!
//! [`Sim`] is a host: it executes the programs of a workload on simulated CPUs, one event at a time
//! in one total order, and calls a policy through `kcore`. It owns time, costs and the objects that
//! tasks share; it knows no policy and computes no figures (observers do).
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

mod config;
mod cost;
mod cpu;
mod engine;
mod error;
mod interrupt;
mod life;
mod objects;
mod ops;
mod period;
mod proc;
mod queue;
mod serve;
mod signal;
mod sleep;
mod sync;
mod ticks;
mod wait_queue;

pub use config::{EventOrder, HostObserver, SimConfig};
pub use cost::{Cost, CostError, CostModel, IdleState};
pub use engine::{Sim, Status};
pub use error::SimError;
pub use queue::{Event, EventQueue, Rank};
