// SPDX-License-Identifier: GPL-2.0-only
//! BFS 0.357 by Con Kolivas, with and without the fork-depth patch of October 2010.
//!
//! Spec: bfs.md. One queue for the machine, virtual deadlines, no sleep estimator, no balancer.
//! While a task runs, its slice and deadline live in a copy of its CPU's (`cpu`); most of the
//! quirks of this version are differences between the copy and the task.

mod arith;
mod change;
mod cpu;
mod fork;
mod groups;
mod idle_cpu;
mod inspect;
mod iso;
mod policy;
mod preempt;
mod queue;
mod schedule;
mod task;
mod tunables;

#[cfg(test)]
mod tests;

pub use policy::Bfs;
pub use tunables::BfsTunables;
