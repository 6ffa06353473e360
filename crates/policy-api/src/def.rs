// SPDX-License-Identifier: GPL-2.0-only
//! How a policy declares itself to the registry.

use schedlab_units::Hz;

use crate::{Policy, Topology, Tunable, TunableValue};

/// A named preset of a policy's tunables.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// Name after the `@`, such as `2.4.5-ac`; empty for a policy without variants.
    pub name: &'static str,
    /// One line: what it is and where it comes from.
    pub about: &'static str,
    /// Tunables that differ from their declared defaults.
    pub set: &'static [(&'static str, TunableValue)],
}

/// When the CPUs of a machine tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TickPhase {
    /// All at whole multiples of the tick.
    Aligned,
    /// CPU k of n at `(k + 1) / (n + 1)` of a tick after the global interrupt; a single CPU ticks
    /// with it (2.4 on i386, spec linux-2.4-goodness §4.9).
    Skewed,
}

/// How the kernel that a policy comes from serves sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimerBase {
    /// In the global timer interrupt, handled by CPU 0; a sleep of d ns takes ⌈d·HZ/10⁹⌉ + 1
    /// jiffies (2.4 `sys_nanosleep`).
    Jiffies,
    /// At the requested nanosecond, on the CPU that armed the timer.
    HighRes,
}

/// Time keeping of the kernel that a policy comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timekeeping {
    /// Default tick rate.
    pub hz: Hz,
    /// When CPUs tick.
    pub phase: TickPhase,
    /// How sleeps are served.
    pub timers: TimerBase,
}

/// What a policy says about itself.
#[derive(Clone, Copy, Debug)]
pub struct PolicyInfo {
    /// Name in a policy spec.
    pub name: &'static str,
    /// One line for lists.
    pub about: &'static str,
    /// Variants, the default first; never empty.
    pub variants: &'static [Variant],
    /// Declared knobs, in order of declaration.
    pub tunables: &'static [Tunable],
    /// Time keeping of its kernel.
    pub time: Timekeeping,
    /// Whether no CPU is ever idle while a task it may run waits for longer than an interrupt
    /// (I6); a sentence names the exceptions.
    pub work_conserving: Option<&'static str>,
}

/// What a policy is built from.
#[derive(Clone, Copy, Debug)]
pub struct Build<'a> {
    /// The machine it will run on.
    pub topo: &'a Topology,
    /// Tick rate of the run.
    pub hz: Hz,
    /// Number of tasks to make room for; more may come.
    pub n_tasks: usize,
}

/// A policy that the registry can build.
pub trait PolicyDef: Policy + Sized + 'static {
    /// Its declared knobs with their values.
    type Tunables: crate::Tunables;
    /// What it says about itself.
    const INFO: PolicyInfo;
    /// A fresh instance.
    fn build(tunables: &Self::Tunables, build: Build<'_>) -> Self;
}

/// Code that is generic over the policy, to be called with one found by name.
pub trait PolicyVisitor {
    /// What the visit yields.
    type Out;
    /// Called with the policy's type.
    fn visit<P: PolicyDef>(self) -> Self::Out;
}
