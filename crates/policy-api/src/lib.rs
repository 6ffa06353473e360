// SPDX-License-Identifier: GPL-2.0-only
//! The interface between a scheduling policy and whatever drives it.
//!
//! A policy is a state machine: a hook of [`Policy`] tells it what happened and when, it changes its
//! own queues and asks for things through [`Ctx`].
//! This crate owns the vocabulary both sides share: facts about tasks and CPUs, requests, tunables,
//! scheduling events. It contains no algorithm, no clock and no I/O.
#![no_std]
#![forbid(unsafe_code)]
#![deny(clippy::float_arithmetic)]

extern crate alloc;

mod boxed;
mod ctx;
mod def;
mod effects;
mod event;
mod fingerprint;
mod policy;
mod record;
mod tasks;
mod topology;
mod tunables;

pub use ctx::Ctx;
pub use def::{
    Build, PolicyDef, PolicyInfo, PolicyVisitor, SleepUnit, Starvation, SyncWakes, TickOrder,
    TickPhase, Timekeeping, TimerBase, Variant, WorkConservation, tick_nsec,
};
pub use effects::{Effects, Move, Resched, TimerRequest};
pub use event::{CpuMode, NoObserver, Observer, Overhead, PrevState, SchedEvent};
pub use fingerprint::Fingerprint;
pub use policy::{
    Change, Company, Dequeue, Enqueue, Idle, Inspect, LiveHabits, Locking, Policy, PutPrev, View,
    Wake,
};
pub use record::{CommId, Pid, RecordContext, RecordEvent, RecordedState, Recording, TraceRecord};
pub use tasks::{Mm, SchedClass, Task, TaskState, TaskTable, Tgid};
pub use topology::{Distance, Topology, TopologyError};
pub use tunables::{Tunable, TunableError, TunableUnit, TunableValue, Tunables};

/// Names that [`tunables!`] expands to.
#[doc(hidden)]
pub mod __private {
    pub use schedlab_units::Nanos;
}
