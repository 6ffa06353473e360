// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler of Linux 2.4: one list, one lock, and a score called goodness.
//!
//! Spec: linux-2.4-goodness.md. A running task stays on the list; FIFO and RR are part of the
//! score. The multi-queue scheduler of 2001 (`mq`) is another policy, which keeps the score, the
//! ticks and the time of this one.

pub(crate) mod counter;
mod policy;
pub(crate) mod resched_idle;
mod run_list;
mod schedule;
mod tunables;
pub(crate) mod value;

#[cfg(test)]
pub(crate) mod tests;

pub use policy::Goodness;
pub(crate) use policy::TIME;
pub use tunables::GoodnessTunables;
