// SPDX-License-Identifier: GPL-2.0-only
//! The O(1) scheduler of Linux 2.6 by Ingo Molnar: its variants of July 2003, 2.6.0, 2.6.6 and
//! 2.6.17.
//!
//! Specs: linux-2.6-o1.md; linux-2.6-spa.md for 2.6.6. Each CPU has two arrays of lists by priority: tasks that have used up
//! their slice move from the active to the expired one, and when the active one is empty the two
//! change places. An estimate of how much a task sleeps shifts its priority by up to five levels
//! and lets interactive tasks rejoin the active array. What differs between the variants lies in
//! one file each: [`test1`], [`g3`] (all that the G3 patch changed), [`credit`] (2.6.0),
//! [`linux_2_6_6`], [`linux_2_6_17`] and [`gfc`] (Chazarain's list). The arrays of 2.6.6 without bonus (SPA) are another policy.

mod balance;
mod check;
mod credit;
mod g3;
mod gfc;
mod lifecycle;
mod linux_2_6_17;
mod linux_2_6_6;
mod policy;
mod prio;
mod prio_array;
mod schedule;
mod task;
mod test1;
mod tunables;

#[cfg(test)]
mod tests;

pub use policy::O1;
pub use tunables::O1Tunables;
