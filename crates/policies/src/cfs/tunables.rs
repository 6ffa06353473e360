// SPDX-License-Identifier: GPL-2.0-only
//! The knobs of CFS and its variants.

use schedlab_policy_api::Variant;
use schedlab_units::{Nanos, Nice};

use super::arith::{Spans, latency_request};
use crate::fair::Scaling;

/// Index of `placement` of CFS itself.
pub(super) const PLACE_MIN_VRUNTIME: usize = 0;
/// Index of `placement` of 6 March 2023.
pub(super) const PLACE_LAG_LAST: usize = 1;
/// Index of `deadline` of 11 March 2023.
pub(super) const DEADLINE_KEEP: usize = 1;

schedlab_policy_api::tunables! {
    /// Knobs of [`super::Cfs`]; features have the kernel's names in lower case.
    pub struct CfsTunables {
        /// Time in which every task of a short queue runs once, as written to debugfs
        /// `latency_ns`. 0 takes `normalized_latency`, scaled by the number of CPUs.
        latency: ns = 0 => 0..=1_000_000_000, "v6.1 fair.c sysctl_sched_latency";
        /// Latency before scaling, used while `latency` is 0.
        normalized_latency: ns = 6_000_000 => 100_000..=1_000_000_000,
            "v6.1 fair.c normalized_sysctl_sched_latency";
        /// Least slice, as written to debugfs `min_granularity_ns`. 0 takes
        /// `normalized_min_granularity`, scaled by the number of CPUs.
        min_granularity: ns = 0 => 0..=1_000_000_000, "v6.1 fair.c sysctl_sched_min_granularity";
        /// Least slice before scaling, used while `min_granularity` is 0.
        normalized_min_granularity: ns = 750_000 => 100_000..=1_000_000_000,
            "v6.1 fair.c normalized_sysctl_sched_min_granularity";
        /// Least slice of a SCHED_IDLE task beside others; it does not grow with the machine.
        idle_min_granularity: ns = 750_000 => 100_000..=1_000_000_000,
            "v6.1 fair.c sysctl_sched_idle_min_granularity";
        /// How far behind a woken task must be to preempt, as written to debugfs
        /// `wakeup_granularity_ns`. 0 takes `normalized_wakeup_granularity`, scaled by the number
        /// of CPUs.
        wakeup_granularity: ns = 0 => 0..=1_000_000_000,
            "v6.1 fair.c sysctl_sched_wakeup_granularity";
        /// The same before scaling, used while `wakeup_granularity` is 0.
        normalized_wakeup_granularity: ns = 1_000_000 => 0..=1_000_000_000,
            "v6.1 fair.c normalized_sysctl_sched_wakeup_granularity";
        /// How these spans grow with the number of CPUs, of which at most eight count.
        tunable_scaling: choice["none", "log", "linear"] = 1,
            "v6.1 fair.c sysctl_sched_tunable_scaling";
        /// Let a forked task run before its parent.
        child_runs_first: flag = false, "v6.1 fair.c sysctl_sched_child_runs_first";
        /// Cap the slice that the tick enforces at the latency (6.3); off in 6.1.170.
        slice_cap: flag = true, "v6.3 fair.c check_preempt_tick";
        /// After which sleep a task starts anew at the front of the queue: when virtual times can
        /// no longer be compared (6.1.170, 6.3), or after a minute (6.3-rc1).
        long_sleep: choice["overflow", "minute"] = 0, "v6.1.170 fair.c entity_is_long_sleeper";
        /// Place new tasks one slice late.
        start_debit: flag = true, "v6.1 features.h START_DEBIT";
        /// Give sleepers half of the credit only.
        gentle_fair_sleepers: flag = true, "v6.1 features.h GENTLE_FAIR_SLEEPERS";
        /// Give every task at least the granularity.
        base_slice: flag = true, "v6.1 features.h BASE_SLICE";
        /// Prefer the task that was woken last, even if it does not preempt.
        next_buddy: flag = false, "v6.1 features.h NEXT_BUDDY";
        /// Return to a task that was preempted by a wake-up.
        last_buddy: flag = true, "v6.1 features.h LAST_BUDDY";
        /// Count preferred tasks as cache-hot.
        cache_hot_buddy: flag = true, "v6.1 features.h CACHE_HOT_BUDDY";
        /// Test for preemption when a task wakes.
        wakeup_preemption: flag = true, "v6.1 features.h WAKEUP_PREEMPTION";
        /// Pick the earliest virtual deadline among those who have not had their share.
        eevdf: flag = false, "6 March 2023, 10/10 features.h EEVDF";
        /// Where woken and forked tasks are placed: by `min_vruntime` (CFS), at the mean V with the
        /// lag taken off after the bonus for sleepers (6 March 2023) or before it (9 March).
        placement: choice["min_vruntime", "lag_last", "lag_first"] = 0,
            "6 March 2023, 8/10 fair.c place_entity; mail of 9 March 2023 17:42";
        /// Give sleepers a bonus when they are placed at the mean. CFS always does.
        fair_sleepers: flag = false, "6 March 2023, 8/10 features.h FAIR_SLEEPERS";
        /// This bonus in ns, after halving, for tasks of weight 1024; −1 takes half a tick (9 March)
        /// or the latency (6 March).
        sleeper_bonus: int = -1 => -1..=1_000_000_000,
            "model; to vary the threshold of the mail of 9 March 2023 17:42";
        /// Keep a task's lag over sleep when it is placed at the mean.
        preserve_lag: flag = true, "6 March 2023, 8/10 features.h PRESERVE_LAG";
        /// Make up for what the placement itself costs of the lag.
        preserve_lag_scale: flag = false, "queue of 11 March 2023 features.h PRESERVE_LAG_SCALE";
        /// Whether a woken task gets a new virtual deadline or keeps one that is not over.
        deadline: choice["renew", "keep"] = 0, "queue of 11 March 2023 fair.c update_deadline";
        /// Latency nice value of all tasks: how urgent their virtual deadlines are.
        latency_nice: int = 0 => -20..=19, "6 March 2023, 5/10 sched.h latency_nice";
        /// Take the slice that a task asks for as its latency offset, so that tasks of different
        /// latency nice values meet: 19 stands for 1024/15 times `min_granularity`.
        slice_requests: flag = false, "model; 6 March 2023, 5/10 fair.c set_latency_offset";
        /// Leave the enqueueing of far or idle CPUs' wake-ups to those CPUs.
        ttwu_queue: flag = true, "v6.1 features.h TTWU_QUEUE";
        /// Look at fewer CPUs for a wake-up, the busier the last-level cache.
        sis_util: flag = true, "v6.1 features.h SIS_UTIL";
        /// Consider who is idle when a waker's CPU competes with the wakee's.
        wa_idle: flag = true, "v6.1 features.h WA_IDLE";
        /// Consider loads when a waker's CPU competes with the wakee's.
        wa_weight: flag = true, "v6.1 features.h WA_WEIGHT";
        /// Lean towards the waker's CPU.
        wa_bias: flag = true, "v6.1 features.h WA_BIAS";
        /// Estimate utilization from past activations.
        util_est: flag = true, "v6.1 features.h UTIL_EST";
        /// Let the tracked load of a task decay for its time in another class.
        attach_age_load: flag = true, "v6.1 features.h ATTACH_AGE_LOAD";
        /// Leave tiny loads where they are.
        lb_min: flag = false, "v6.1 features.h LB_MIN";
        /// Run newly idle balancing with the probability of its success. On in 6.1.170, off here
        /// so that results do not depend on the seed by default.
        ni_random: flag = false, "v6.1.170 features.h NI_RANDOM";
        /// Time after its last run during which a task counts as cache-hot.
        migration_cost: ns = 500_000 => 0..=1_000_000_000,
            "v6.1 fair.c sysctl_sched_migration_cost";
        /// Tasks looked at in one balancing attempt.
        nr_migrate: int = 32 => 1..=10_000, "v6.1 core.c sysctl_sched_nr_migrate";
        /// Time that newly idle balancing is taken to need for each CPU it looks at. The kernel
        /// measures it; it decides against which idle periods a search is worth its while.
        newidle_cost_per_cpu: ns = 250 => 0..=1_000_000, "model; v6.1 fair.c max_newidle_lb_cost";
        /// Slice of SCHED_RR, rounded up to whole ticks.
        rr_timeslice: ns = 100_000_000 => 100_000..=10_000_000_000, "v6.1 rt.h RR_TIMESLICE";
        /// Time in each `rt_period` that real-time tasks get at most; the period or more = no
        /// limit.
        rt_runtime: ns = 950_000_000 => 1_000..=10_000_000_000,
            "v6.1 rt.c sysctl_sched_rt_runtime";
        /// See `rt_runtime`.
        rt_period: ns = 1_000_000_000 => 100_000..=10_000_000_000,
            "v6.1 rt.c sysctl_sched_rt_period";
    }
}

/// Variants, the default first.
pub(crate) const VARIANTS: &[Variant] = &[
    Variant { name: "6.3", about: "Linux 6.3, the last CFS before the EEVDF patches", set: &[] },
    Variant {
        name: "6.1",
        about: "Linux 6.1.170 (stable): the tick does not cap slices at the latency",
        set: &[("slice_cap", 0)],
    },
    Variant {
        name: "eevdf-v1",
        about: "6.3-rc1 with the EEVDF patches of 6 March 2023",
        set: &[("eevdf", 1), ("placement", 1)],
    },
    Variant {
        name: "eevdf-v1-fs",
        about: "the same with the follow-up of 9 March 2023: bonus of half a tick for sleepers",
        set: &[("eevdf", 1), ("placement", 2), ("fair_sleepers", 1)],
    },
    Variant {
        name: "eevdf-v1.1",
        about: "the queue of 11 March 2023: inflated lag, deadlines kept over sleep",
        set: &[("eevdf", 1), ("placement", 2), ("preserve_lag_scale", 1), ("deadline", 1)],
    },
];

/// Those with a file in debugfs (`/sys/kernel/debug/sched`), a feature there, or a sysctl; `eevdf`
/// is a feature, too, but the order of the queues depends on it.
///
/// Source: v6.1 `debug.c`, `features.h`, `sysctl.c`, `rt.c`; 6 and 11 March 2023 `features.h`.
pub(super) const LIVE: &[&str] = &[
    "latency",
    "min_granularity",
    "idle_min_granularity",
    "wakeup_granularity",
    "tunable_scaling",
    "child_runs_first",
    "start_debit",
    "gentle_fair_sleepers",
    "base_slice",
    "next_buddy",
    "last_buddy",
    "cache_hot_buddy",
    "wakeup_preemption",
    "fair_sleepers",
    "preserve_lag",
    "preserve_lag_scale",
    "ttwu_queue",
    "sis_util",
    "wa_idle",
    "wa_weight",
    "wa_bias",
    "util_est",
    "attach_age_load",
    "lb_min",
    "ni_random",
    "migration_cost",
    "nr_migrate",
    "rr_timeslice",
    "rt_runtime",
    "rt_period",
];

impl CfsTunables {
    /// The spans on a machine of `n_cpus`.
    pub(super) fn spans(&self, n_cpus: usize) -> Spans {
        let factor = Scaling::from_index(self.tunable_scaling).factor(n_cpus);
        let scaled = |written: Nanos, normalized: Nanos| {
            if written.is_zero() { normalized.as_ns() * factor } else { written.as_ns() }
        };
        Spans {
            latency: scaled(self.latency, self.normalized_latency),
            min_granularity: scaled(self.min_granularity, self.normalized_min_granularity),
            idle_min_granularity: self.idle_min_granularity.as_ns(),
            wakeup_granularity: scaled(self.wakeup_granularity, self.normalized_wakeup_granularity),
        }
    }

    /// Wall time per virtual deadline, ns.
    pub(super) fn request(&self, n_cpus: usize) -> u64 {
        let latency_nice = Nice::clamped(self.latency_nice as i32);
        latency_request(self.spans(n_cpus).min_granularity, latency_nice)
    }
}
