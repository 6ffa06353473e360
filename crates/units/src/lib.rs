// SPDX-License-Identifier: GPL-2.0-only
//! Units of measure, ids and kernel integer arithmetic.
//!
//! Every quantity of the workbench has a type of its own, so that ticks, nanoseconds and virtual
//! nanoseconds cannot be mixed.
//! The crate owns no policy, no clock and no I/O.
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

extern crate alloc;

mod cpuset;
mod ids;
pub mod kmath;
mod nice;
mod rng;
mod source;
mod time;
mod vtime;

pub use cpuset::{CpuListError, CpuSet, Iter as CpuIter, MAX_CPUS};
pub use ids::{CpuId, TaskId};
pub use nice::{NICE_0_LOAD, Nice, Prio, SCHED_IDLE_WEIGHT, SCHED_IDLE_WMULT, Weight};
pub use rng::Rng;
pub use source::{Located, Position};
pub use time::{DurationError, Hz, Jiffies, Nanos, Time};
pub use vtime::{Lag, VTime};
