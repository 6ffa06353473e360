// SPDX-License-Identifier: GPL-2.0-only
//! Peter Williams' single priority array for Linux 2.6.6: one array of 151 slots per CPU.
//!
//! Spec: linux-2.6-spa.md. A running task stays in its list; FIFO and RR tasks have slots 0 to 99
//! of the same array. The text of the patch is lost: what its author did not publish follows the
//! reconstruction in §4.2 of the spec.

mod array;
mod balance;
mod hooks;
mod policy;
mod requeue;
mod tunables;

#[cfg(test)]
mod tests;

pub use policy::Spa;
pub use tunables::SpaTunables;
