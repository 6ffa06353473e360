// SPDX-License-Identifier: GPL-2.0-only
//! How a policy declares itself to the registry.

use schedlab_units::{Hz, Nanos};

use crate::{Policy, SchedClass, Topology, Tunable, TunableValue};

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

impl TimerBase {
    /// Jiffies that a sleep of `span` takes under [`TimerBase::Jiffies`]: it ends in the global
    /// timer interrupt that many after the last one; 0 = in the next.
    ///
    /// ⌈span · HZ / 10⁹⌉ + 1 for any span but zero: the current jiffy has begun already, so a whole
    /// one is added. Bound: 2^64 ns at 100 kHz are below 2^51 jiffies.
    ///
    /// Source: 2.4.5 `timer.c` `sys_nanosleep`; spec linux-2.4-goodness §4.14.
    pub fn sleep_jiffies(span: Nanos, hz: Hz) -> u64 {
        if span.is_zero() {
            return 0;
        }
        let jiffies = (u128::from(span.as_ns()) * u128::from(hz.get())).div_ceil(1_000_000_000);
        jiffies as u64 + 1
    }

    /// How long a task of `class` that asks to sleep for `span` busy-waits instead under
    /// [`TimerBase::Jiffies`]: FIFO and RR tasks do so up to 2 ms, in whole microseconds. None = it
    /// sleeps.
    ///
    /// Source: 2.4.5 `timer.c` `sys_nanosleep`; spec linux-2.4-goodness §4.14.
    pub fn busy_wait(class: SchedClass, span: Nanos) -> Option<Nanos> {
        (class.is_rt() && span <= Nanos::from_ms(2))
            .then(|| Nanos::from_us(span.as_ns().div_ceil(1_000)))
    }
}

/// Habits of the kernel that a policy comes from which are not the policy's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timekeeping {
    /// Default tick rate.
    pub hz: Hz,
    /// When CPUs tick.
    pub phase: TickPhase,
    /// How sleeps are served.
    pub timers: TimerBase,
    /// Which wake-ups carry the SYNC hint.
    pub sync: SyncWakes,
}

/// Which wake-ups of the kernel that a policy comes from carry the SYNC hint, the waker's promise
/// to sleep at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncWakes {
    /// Only those in the middle of a pipe operation whose caller is about to block: 2.4 and early
    /// 2.6 (specs linux-2.4-goodness §4.6, linux-2.6-o1 §4.3, linux-2.6-spa §4).
    MidOperation,
    /// Those of pipes, sockets and exiting children, whatever follows (spec cfs-eevdf §7.2).
    Usual,
}

impl Timekeeping {
    /// A present-day kernel with high-resolution timers and 1000 aligned ticks a second.
    pub const MODERN: Self = Self {
        hz: Hz::new(1000),
        phase: TickPhase::Aligned,
        timers: TimerBase::HighRes,
        sync: SyncWakes::Usual,
    };
}

/// How long a CPU may idle while one and the same task that it may run waits (I6). A machine without
/// costs is meant; on a real one interrupts and locks come on top.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkConservation {
    /// Not for an instant.
    Always,
    /// For this number of ticks at most; the sentence, without capital and full stop, says why.
    Ticks(u32, &'static str),
    /// Nothing is promised; the sentence names the cases with their sources.
    Unbounded(&'static str),
}

/// How long a task that always wants a CPU may wait for it, in words (I7). The number is
/// [`Policy::wait_bound`]. Sentences have no capital and no full stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Starvation {
    /// Why there is a bound; none = there never is one.
    pub bound: Option<&'static str>,
    /// When there is no bound, and why; none = there always is one.
    pub except: Option<&'static str>,
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
    /// What it promises about idle CPUs (I6).
    pub work_conserving: WorkConservation,
    /// What it promises to tasks that wait (I7).
    pub starvation: Starvation,
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows L1 to L6 of spec linux-2.4-goodness §9, HZ 100.
    #[test]
    fn vectors_sleep_jiffies() {
        let rows = [(1, 2), (2_000_000, 2), (10_000_000, 2), (11_000_000, 3), (1_000_000_000, 101)];
        for (ns, jiffies) in rows {
            let span = Nanos::from_ns(ns);
            assert_eq!(TimerBase::sleep_jiffies(span, Hz::new(100)), jiffies, "{span}");
            assert_eq!(TimerBase::busy_wait(SchedClass::Normal, span), None, "{span}");
        }
        assert_eq!(TimerBase::sleep_jiffies(Nanos::ZERO, Hz::new(100)), 0);
        assert_eq!(TimerBase::sleep_jiffies(Nanos::MAX, Hz::new(100_000)), 1_844_674_407_370_957);
    }

    /// Rows L7 and L8, and where the rule ends.
    #[test]
    fn vectors_busy_wait() {
        for (class, ns, us) in [
            (SchedClass::Fifo, 2_000_000, Some(2_000)),
            (SchedClass::Fifo, 1_500, Some(2)),
            (SchedClass::Rr, 1, Some(1)),
            (SchedClass::Rr, 2_000_001, None),
            (SchedClass::Fifo, 0, Some(0)),
        ] {
            let expected = us.map(Nanos::from_us);
            assert_eq!(TimerBase::busy_wait(class, Nanos::from_ns(ns)), expected, "{ns} ns");
        }
    }
}
