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
    /// jiffies, and a short one of a real-time task is spent waiting (2.4 `sys_nanosleep`).
    Jiffies,
    /// In the timer interrupt of the CPU that armed the timer, after its tick, in the order of
    /// arming; a sleep of d ns takes ⌈d / unit⌉ + 1 jiffies (2.6 before 2.6.16; spec linux-2.6-spa
    /// §6 Q12).
    Local(SleepUnit),
    /// At the requested nanosecond, on the CPU that armed the timer.
    HighRes,
}

/// What the length of a sleep is divided by to get jiffies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SleepUnit {
    /// A tick of 10⁹/HZ ns (spec linux-2.6-o1 §4.0, inferred there).
    Tick,
    /// [`tick_nsec`]: at HZ 1000 a whole millisecond is more than one jiffy.
    TickNsec,
}

/// Length in ns of a jiffy as the 2.6 kernel on i386 believes it to be: the interval timer divides
/// its 1 193 182 Hz by a whole number.
///
/// Source: 2.6.6 `include/linux/jiffies.h` `TICK_NSEC`, `ACTHZ`, `LATCH`, `SH_DIV`; spec
/// linux-2.6-spa §2.1.
pub const fn tick_nsec(hz: Hz) -> u64 {
    const CLOCK_TICK_RATE: u64 = 1_193_182;
    // SH_DIV(n, d, 8) is n · 256 / d, rounded to the nearest.
    const fn sh_div(n: u64, d: u64) -> u64 {
        (n / d * 256) + (n % d * 256 + d / 2) / d
    }
    let latch = (CLOCK_TICK_RATE + hz.get() as u64 / 2) / hz.get() as u64;
    sh_div(1_000_000_000, sh_div(CLOCK_TICK_RATE, latch))
}

impl TimerBase {
    /// Jiffies that a sleep of `span` takes: it ends in the timer interrupt that many after the
    /// last one; 0 = in the next. None = sleeps do not end on ticks.
    ///
    /// ⌈span / unit⌉ + 1 for any span but zero: the current jiffy has begun already, so a whole one
    /// is added. Bound: 2^64 ns at 100 kHz are below 2^51 jiffies.
    ///
    /// Source: 2.4.5 `timer.c` `sys_nanosleep`, spec linux-2.4-goodness §4.14; 2.6.6 `timer.c`
    /// `sys_nanosleep`, `timespec_to_jiffies`, spec linux-2.6-spa §6 Q12.
    pub fn sleep_jiffies(self, span: Nanos, hz: Hz) -> Option<u64> {
        let ns = u128::from(span.as_ns());
        let jiffies = match self {
            Self::HighRes => return None,
            Self::Jiffies | Self::Local(SleepUnit::Tick) => {
                (ns * u128::from(hz.get())).div_ceil(1_000_000_000)
            }
            Self::Local(SleepUnit::TickNsec) => ns.div_ceil(u128::from(tick_nsec(hz))),
        };
        Some(if ns == 0 { 0 } else { jiffies as u64 + 1 })
    }

    /// How long a task of `class` that asks to sleep for `span` busy-waits instead: under
    /// [`TimerBase::Jiffies`] FIFO and RR tasks do so up to 2 ms, in whole microseconds. None = it
    /// sleeps.
    ///
    /// Source: 2.4.5 `timer.c` `sys_nanosleep`; spec linux-2.4-goodness §4.14.
    pub fn busy_wait(self, class: SchedClass, span: Nanos) -> Option<Nanos> {
        (self == Self::Jiffies && class.is_rt() && span <= Nanos::from_ms(2))
            .then(|| Nanos::from_us(span.as_ns().div_ceil(1_000)))
    }
}

/// In which order what falls on one instant is taken, where a specification of the policy's kernel
/// asks for an order. The end of work that a CPU does for its task comes last in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TickOrder {
    /// The ticks of the CPUs in order, each with its `schedule`; then the timers of each CPU with
    /// its `schedule`; then device interrupts. On a single CPU whose sleeps end on ticks the tick
    /// and all timers due share one interrupt.
    TicksFirst,
    /// The CPUs in order: tick, timers, one `schedule` (spec linux-2.6-o1 §4.0). A device interrupt
    /// that is next in line for the same CPU comes before the `schedule`.
    CpuByCpu,
    /// The ticks of all CPUs, all timers, all device interrupts, and only then, CPU by CPU,
    /// `schedule` (spec linux-2.6-spa §4).
    Together,
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
    /// Order of what falls on one instant.
    pub order: TickOrder,
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
        order: TickOrder::TicksFirst,
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
    /// Time keeping of its kernel; [`PolicyDef::time`] where tunables have a say.
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
    /// Time keeping of the kernel that `tunables` stand for, at the tick rate of
    /// [`PolicyDef::INFO`].
    fn time(_tunables: &Self::Tunables) -> Timekeeping {
        Self::INFO.time
    }
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
    fn vectors_l1_to_l6_sleep_jiffies() {
        let rows = [(1, 2), (2_000_000, 2), (10_000_000, 2), (11_000_000, 3), (1_000_000_000, 101)];
        for (ns, jiffies) in rows {
            let span = Nanos::from_ns(ns);
            let found = TimerBase::Jiffies.sleep_jiffies(span, Hz::new(100));
            assert_eq!(found, Some(jiffies), "{span}");
            assert_eq!(TimerBase::Jiffies.busy_wait(SchedClass::Normal, span), None, "{span}");
        }
        let longest = TimerBase::Jiffies.sleep_jiffies(Nanos::MAX, Hz::new(100_000));
        assert_eq!(longest, Some(1_844_674_407_370_957));
    }

    #[test]
    fn sleep_of_nothing_ends_in_the_next_interrupt() {
        let hz = Hz::new(1000);
        for unit in [SleepUnit::Tick, SleepUnit::TickNsec] {
            assert_eq!(TimerBase::Local(unit).sleep_jiffies(Nanos::ZERO, hz), Some(0));
        }
        assert_eq!(TimerBase::Jiffies.sleep_jiffies(Nanos::ZERO, hz), Some(0));
        assert_eq!(TimerBase::HighRes.sleep_jiffies(Nanos::ZERO, hz), None);
    }

    /// Spec linux-2.6-o1 §4.0: a second is 1001 ticks, a millisecond 2; linux-2.6-spa §6 Q12 counts
    /// in shorter units. A real-time task of 2.6 sleeps too.
    #[test]
    fn sleep_jiffies_of_2_6_depend_on_the_unit() {
        let jiffies = |unit, ms| {
            TimerBase::Local(unit).sleep_jiffies(Nanos::from_ms(ms), Hz::new(1000)).expect("ticks")
        };
        for (ms, tick, short) in [(1, 2, 3), (10, 11, 12), (1000, 1001, 1002)] {
            assert_eq!(jiffies(SleepUnit::Tick, ms), tick, "{ms} ms");
            assert_eq!(jiffies(SleepUnit::TickNsec, ms), short, "{ms} ms");
        }
        let waits = TimerBase::Local(SleepUnit::Tick).busy_wait(SchedClass::Fifo, Nanos::ZERO);
        assert_eq!(waits, None);
    }

    /// Spec linux-2.6-spa §2.1: 999 848 ns at HZ 1000. The other rates by hand from the macros.
    #[test]
    fn tick_nsec_of_i386() {
        for (hz, ns) in [(1000, 999_848), (100, 10_000_000)] {
            assert_eq!(tick_nsec(Hz::new(hz)), ns, "HZ {hz}");
        }
        for hz in [1, 250, 1024, 100_000] {
            let (real, nominal) = (tick_nsec(Hz::new(hz)), 1_000_000_000 / u64::from(hz));
            assert!(real.abs_diff(nominal) <= nominal / 25, "HZ {hz}: {real}");
        }
    }

    /// Rows L7 and L8, and where the rule ends.
    #[test]
    fn vectors_l7_l8_busy_wait() {
        for (class, ns, us) in [
            (SchedClass::Fifo, 2_000_000, Some(2_000)),
            (SchedClass::Fifo, 1_500, Some(2)),
            (SchedClass::Rr, 1, Some(1)),
            (SchedClass::Rr, 2_000_001, None),
            (SchedClass::Fifo, 0, Some(0)),
        ] {
            let expected = us.map(Nanos::from_us);
            let found = TimerBase::Jiffies.busy_wait(class, Nanos::from_ns(ns));
            assert_eq!(found, expected, "{ns} ns");
        }
    }
}
