// SPDX-License-Identifier: GPL-2.0-only
//! Knobs and variants of the policy, and their resolved form for one machine.

use schedlab_policy_api::Variant;
use schedlab_units::{Hz, Nanos};

use crate::linux_2_6::sleep_avg::{Scale, Word};

schedlab_policy_api::tunables! {
    /// Knobs of [`crate::Spa`]; the defaults are the patch for 2.6.6 on i386.
    pub struct SpaTunables {
        /// The slice of every task whatever its nice value, in whole ticks, at least one.
        time_slice: ns = 102_000_000 => 1_000..=10_000_000_000, "P. Williams, 28 and 30 May 2004: \
             the mean of the old slices; 102 ms inferred, spec linux-2.6-spa §2.3";
        /// Promotion interval for each runnable task of the CPU, in whole ticks, at least one.
        base_promotion_interval: ns = 55_000_000 => 1_000..=1_000_000_000_000, "P. Williams, \
             13 Jun 2004 (2.6.7-rc3); inferred for 2.6.6";
        /// What multiplies base_promotion_interval.
        promotion_multiplier: choice["nr_running", "nr_running_minus_1"] = 0, "P. Williams, \
             28 May 2004; nr_running_minus_1: HYDRA v2.1, 20 Jul 2004";
        /// A CPU that gets its second runnable task starts a full promotion interval.
        reset_due_when_idle: flag = false, "P. Williams, 4 Aug 2004";
        /// Interactive tasks go round robin within their slice, by TIMESLICE_GRANULARITY.
        granularity_rr: flag = false, "2.6.6 sched.c scheduler_tick; off inferred, \
             spec linux-2.6-spa §4.2";
        /// A task that gives up its CPU without sleeping gets a new slice.
        renew_on_preempt: flag = false, "P. Williams, 8 Jun 2004 (2.6.7-rc2)";
        /// The first wait after a wake-up counts as sleep when the task is picked.
        onrq_credit: flag = true, "2.6.6 sched.c schedule; off: P. Williams, 29 May 2004";
        /// The slot depends on the interactivity bonus.
        bonus: flag = true, "2.6.6 sched.c effective_prio; off: spec linux-2.6-spa §5";
        /// The slice of a new task: a full one, or half of its parent's.
        fork_slice: choice["full", "share"] = 0, "P. Williams, 28 May 2004; \
             share: 2.6.6 sched.c sched_fork";
        /// Width of unsigned long.
        word_bits: choice["32", "64"] = 0, "2.6.6 on i386; 64-bit machines";
        /// A busy CPU pulls no task that ran within this many ticks.
        cache_decay_ticks: int = 3 => 0..=1_000, "2.6.6 i386 smpboot.c smp_tune_scheduling, \
             1 MB of cache";
        /// sleep_avg of a task that starts the workload.
        initial_sleep_avg: ns = 816_000_000 => 0..=1_020_000_000, "spec linux-2.6-spa §7 W1: \
             inherited from an interactive shell";
    }
}

/// Presets, the default first.
pub(super) const VARIANTS: &[Variant] = &[
    Variant {
        name: "2.6.6",
        about: "P. Williams, 28 May 2004: active and expired replaced by a single array",
        set: &[],
    },
    Variant {
        name: "2.6.7-rc3",
        about: "P. Williams, 13 Jun 2004, as far as published in numbers: slices of 100 ms",
        set: &[("time_slice", 100_000_000)],
    },
];

/// The knobs as the policy uses them on its machine.
#[derive(Clone, Debug)]
pub(super) struct Knobs {
    pub(super) scale: Scale,
    /// Whether the rules for two or more CPUs hold.
    pub(super) smp: bool,
    pub(super) n_cpus: u64,
    /// In jiffies.
    pub(super) time_slice: u32,
    /// In jiffies.
    pub(super) base_promotion_interval: u64,
    /// Subtracted from `nr_running` before the multiplication.
    pub(super) promotion_less: u64,
    pub(super) reset_due_when_idle: bool,
    pub(super) granularity_rr: bool,
    pub(super) renew_on_preempt: bool,
    pub(super) onrq_credit: bool,
    pub(super) bonus: bool,
    pub(super) fork_shares: bool,
    pub(super) cache_decay_ns: u64,
    pub(super) initial_sleep_avg: u64,
    /// `IDLE_REBALANCE_TICK` in jiffies.
    pub(super) idle_rebalance: u64,
    /// `BUSY_REBALANCE_TICK` in jiffies.
    pub(super) busy_rebalance: u64,
}

impl Knobs {
    /// Resolves `t` for a machine of `n_cpus` at `hz`.
    pub(super) fn new(t: &SpaTunables, n_cpus: usize, hz: Hz) -> Self {
        let word = if t.word_bits == 0 { Word::Bits32 } else { Word::Bits64 };
        let scale = Scale::new(hz, word);
        let rate = u64::from(hz.get());
        // At most 10^12 ns at 100 kHz: 10^17 before the division.
        let jiffies = |span: Nanos| (span.as_ns() * rate / 1_000_000_000).max(1);
        Self {
            scale,
            smp: n_cpus > 1,
            n_cpus: n_cpus as u64,
            time_slice: u32::try_from(jiffies(t.time_slice)).expect("at most 10 s at 100 kHz"),
            base_promotion_interval: jiffies(t.base_promotion_interval),
            promotion_less: t.promotion_multiplier as u64,
            reset_due_when_idle: t.reset_due_when_idle,
            granularity_rr: t.granularity_rr,
            renew_on_preempt: t.renew_on_preempt,
            onrq_credit: t.onrq_credit,
            bonus: t.bonus,
            fork_shares: t.fork_slice == 1,
            cache_decay_ns: t.cache_decay_ticks.unsigned_abs() * scale.jiffy_ns,
            initial_sleep_avg: t.initial_sleep_avg.as_ns().min(scale.ns_max_sleep_avg()),
            idle_rebalance: (rate / 1000).max(1),
            busy_rebalance: (rate / 5).max(1),
        }
    }
    /// Jiffies from a promotion to the next with `nr_running` tasks; it happens from two tasks on.
    ///
    /// Source: P. Williams, 28 May 2004; spec §2.3.
    pub(super) fn promotion_interval(&self, nr_running: u32) -> u64 {
        let factor = u64::from(nr_running).saturating_sub(self.promotion_less);
        self.base_promotion_interval * factor
    }
}
