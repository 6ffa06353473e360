// SPDX-License-Identifier: GPL-2.0-only
//! CFS, the fair class of Linux before 6.6: the task with the smallest virtual run time is next.
//!
//! Variants are 6.3 and 6.1.170, and 6.3 with the EEVDF patches of March 2023, which turn it into
//! the forerunner of `crate::eevdf`. It owns the order of tasks on a queue, their placement and
//! their slices; CPU choice, balancing and load tracking are `crate::fair`, real-time tasks are
//! `crate::rt`. There are no task groups (decision 0216). SCHED_ISO counts as SCHED_NORMAL.

mod arith;
mod class;
mod early_eevdf;
mod entity;
mod inspect;
mod pick;
mod policy;
mod tunables;

#[cfg(test)]
mod tests;

pub use policy::Cfs;
pub use tunables::CfsTunables;
