// SPDX-License-Identifier: GPL-2.0-only
//! EEVDF, the fair class of Linux since 6.6: earliest eligible virtual deadline first.
//!
//! Variants are 6.12.117 (`6.12`), 6.12.0 and 6.6. It owns the order of tasks on a queue, their lag
//! and their placement; CPU choice, balancing and load tracking are `crate::fair`, real-time tasks
//! are `crate::rt`. There are no task groups (decision 0216). SCHED_ISO counts as SCHED_NORMAL.

pub mod arith;
mod class;
mod delayed;
mod entity;
mod hrtick;
mod inspect;
mod pick;
mod policy;
mod server;
pub mod shares;
mod tunables;

#[cfg(test)]
pub(crate) mod tests;

pub use policy::Eevdf;
pub use tunables::EevdfTunables;
