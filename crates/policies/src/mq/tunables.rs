// SPDX-License-Identifier: GPL-2.0-only
//! Knobs and the variant of the policy, and their resolved form for one machine.

use schedlab_policy_api::Variant;
use schedlab_units::Hz;

schedlab_policy_api::tunables! {
    /// Knobs of [`crate::mq::Mq`]; the defaults are the patch against 2.4.7 on i386.
    pub struct MqTunables {
        /// Preemption threshold: a woken task preempts if its goodness exceeds the current task's
        /// by more than this.
        t: int = 1 => 0..=100, "M. Kravetz, patch against 2.4.7, 8 Aug 2001: 1; \
             against 2.5.0, 7 Dec 2001: 0";
        /// Factor of rt_priority in the goodness of FIFO and RR tasks.
        rt_scale: int = 1 => 1..=10, "2.4.7 sched.c goodness: 1; N. Gamble, 4 Jun 2001: 2";
        /// Bonus for the CPU a task last ran on, with two or more CPUs (PROC_CHANGE_PENALTY).
        pcp: int = 15 => 0..=100, "2.4.7 asm-i386/smp.h, asm-sparc/smp.h: 15; \
             alpha, ia64, mips64, ppc, s390, s390x, sparc64: 20";
        /// The search for the next task begins with the current one, whose goodness includes the
        /// bonus for the CPU, which tasks of the queue do not get; off: it begins with nothing.
        prev_bias: flag = true, "M. Kravetz, patch against 2.4.7, 8 Aug 2001; \
             off in the one against 2.5.0, 7 Dec 2001";
        /// Tasks that start the workload are as if they had been there for long: their ticks lie
        /// anywhere from one quantum to twice that less one, where sleepers' ticks converge, and
        /// the CPU they last ran on is any.
        aged_start: flag = false, "spec linux-2.4-goodness §7.1, a modelling knob";
    }
}

/// Presets, the default first.
pub(super) const VARIANTS: &[Variant] = &[Variant {
    name: "2.4.7",
    about: "M. Kravetz's patch against 2.4.7, August 2001: threshold 1, a queue for FIFO and RR",
    set: &[],
}];

/// The knobs as the policy uses them on its machine.
#[derive(Clone, Debug)]
pub(super) struct Knobs {
    pub(super) hz: Hz,
    /// Whether the rules for two or more CPUs hold.
    pub(super) smp: bool,
    pub(super) threshold: i32,
    pub(super) rt_scale: i32,
    /// 0 on one CPU.
    pub(super) pcp: i32,
    pub(super) prev_bias: bool,
    pub(super) aged_start: bool,
}

impl Knobs {
    /// Resolves `t` for a machine of `n_cpus` at `hz`.
    pub(super) fn new(t: &MqTunables, n_cpus: usize, hz: Hz) -> Self {
        let small = |value: i64| i32::try_from(value).expect("ranges are declared above");
        let smp = n_cpus > 1;
        Self {
            hz,
            smp,
            threshold: small(t.t),
            rt_scale: small(t.rt_scale),
            pcp: if smp { small(t.pcp) } else { 0 },
            prev_bias: t.prev_bias,
            aged_start: t.aged_start,
        }
    }
}
