// SPDX-License-Identifier: GPL-2.0-only
//! The schedulers themselves, one file or folder each, and the registry that finds them by name.
//!
//! Policies hold no clock, no I/O and no floats; they never call their host and never see `kcore`.
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

extern crate alloc;

mod bfs;
mod cfs;
#[cfg(test)]
mod csv;
pub mod eevdf;
mod fair;
mod fifo;
mod goodness;
mod linux_2_6;
mod lists;
pub mod mq;
mod o1;
mod registry;
mod rr;
mod rt;
mod spa;

pub use bfs::{Bfs, BfsTunables};
mod throttle;

pub use cfs::{Cfs, CfsTunables};
pub use eevdf::{Eevdf, EevdfTunables};
pub use fifo::{Fifo, FifoTunables};
pub use goodness::{Goodness, GoodnessTunables};
pub use o1::{O1, O1Tunables};
pub use registry::{ALIASES, NAMES, infos, with_policy};
pub use rr::{Rr, RrTunables};
pub use spa::{Spa, SpaTunables};
