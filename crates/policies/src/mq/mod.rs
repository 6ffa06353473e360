// SPDX-License-Identifier: GPL-2.0-only
//! Mike Kravetz's multi-queue scheduler for Linux 2.4.7: goodness with one queue per CPU.
//!
//! Spec: linux-2.4-goodness.md §5.3. There is no load balancer: a CPU that schedules also looks
//! at the best waiting task of every other queue, which each queue keeps at hand, and a task that
//! wakes is put where it would win. Ticks, goodness, fork, exit and time are those of
//! [`crate::Goodness`].

mod maximum;
mod policy;
mod queues;
mod reschedule_idle;
mod schedule;
mod tunables;

#[cfg(test)]
mod tests;

pub use policy::Mq;
pub use tunables::MqTunables;
