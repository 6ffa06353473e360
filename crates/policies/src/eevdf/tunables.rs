// SPDX-License-Identifier: GPL-2.0-only
//! The knobs of EEVDF and its variants.

use schedlab_policy_api::Variant;
use schedlab_units::Nanos;

use crate::fair::Scaling;

schedlab_policy_api::tunables! {
    /// Knobs of [`super::Eevdf`]; features have the kernel's names in lower case.
    pub struct EevdfTunables {
        /// Slice handed out with each new virtual deadline, as written to debugfs `base_slice_ns`.
        /// 0 takes `normalized_base_slice`, scaled by the number of CPUs.
        base_slice: ns = 0 => 0..=1_000_000_000, "v6.12 fair.c sysctl_sched_base_slice";
        /// Slice before scaling, used while `base_slice` is 0.
        normalized_base_slice: ns = 700_000 => 100_000..=100_000_000,
            "v6.12.117 fair.c normalized_sysctl_sched_base_slice";
        /// How the slice grows with the number of CPUs, of which at most eight count.
        tunable_scaling: choice["none", "log", "linear"] = 1,
            "v6.12 fair.c sysctl_sched_tunable_scaling";
        /// Keep a task's lag over sleep and migration.
        place_lag: flag = true, "v6.12 features.h PLACE_LAG";
        /// Give new tasks half a slice.
        place_deadline_initial: flag = true, "v6.12 features.h PLACE_DEADLINE_INITIAL";
        /// Book the parent's run time when it forks, as the placement at fork did (6.6).
        place_at_fork: flag = false, "v6.6 fair.c task_fork_fair";
        /// Keep the distance of the deadline when a task moves or changes without sleeping.
        place_rel_deadline: flag = true, "v6.12 features.h PLACE_REL_DEADLINE";
        /// Protect the current task until its lag is used up or its slice is over.
        run_to_parity: flag = true, "v6.12 features.h RUN_TO_PARITY";
        /// Let a woken task with a shorter slice cancel that protection.
        preempt_short: flag = true, "v6.12 features.h PREEMPT_SHORT";
        /// Let a woken task end the protection of a SCHED_IDLE task, too.
        unprotect_idle: flag = true, "v6.12 fair.c check_preempt_wakeup_fair";
        /// Grant tasks the slice they ask for.
        custom_slice: flag = true, "v6.12 syscalls.c __setparam_fair";
        /// Which of two waiting tasks with equal deadlines is first: the one that came first, or
        /// the one with the smaller virtual time, as in trees keyed by that (6.6).
        equal_deadlines: choice["fifo", "vruntime"] = 0, "v6.6, v6.12 fair.c pick_eevdf";
        /// Prefer the task that was woken last.
        next_buddy: flag = false, "v6.12 features.h NEXT_BUDDY";
        /// Honour that preference when picking. 6.12.0 has no such switch and honours it always.
        pick_buddy: flag = true, "v6.12.117 features.h PICK_BUDDY";
        /// Count the preferred task as cache-hot.
        cache_hot_buddy: flag = true, "v6.12 features.h CACHE_HOT_BUDDY";
        /// Let a sleeping task that was overserved stay in the competition until its lag is gone.
        delay_dequeue: flag = true, "v6.12 features.h DELAY_DEQUEUE";
        /// Take positive lag from a task whose dequeue was delayed.
        delay_zero: flag = true, "v6.12 features.h DELAY_ZERO";
        /// Test for preemption when a task wakes.
        wakeup_preemption: flag = true, "v6.12 features.h WAKEUP_PREEMPTION";
        /// End slices by a timer instead of the next tick.
        hrtick: flag = false, "v6.12 features.h HRTICK";
        /// How `sched_yield` gives way: an eligible task moves on to its deadline and gets another
        /// (6.12.117), or the deadline moves on by a slice (6.12.0).
        yield_mode: choice["forfeit", "deadline"] = 0, "v6.12 fair.c yield_task_fair";
        /// Base of the keys in a queue's sum: the last mean of the virtual times (6.12.117) or
        /// their monotonic minimum (6.12.0).
        vruntime_base: choice["zero_vruntime", "min_vruntime"] = 0, "v6.12 fair.c avg_vruntime";
        /// Leave the enqueueing of far or idle CPUs' wake-ups to those CPUs.
        ttwu_queue: flag = true, "v6.12 features.h TTWU_QUEUE";
        /// Look at fewer CPUs for a wake-up, the busier the last-level cache.
        sis_util: flag = true, "v6.12 features.h SIS_UTIL";
        /// Consider who is idle when a waker's CPU competes with the wakee's.
        wa_idle: flag = true, "v6.12 features.h WA_IDLE";
        /// Consider loads when a waker's CPU competes with the wakee's.
        wa_weight: flag = true, "v6.12 features.h WA_WEIGHT";
        /// Lean towards the waker's CPU.
        wa_bias: flag = true, "v6.12 features.h WA_BIAS";
        /// Estimate utilization from past activations.
        util_est: flag = true, "v6.12 features.h UTIL_EST";
        /// Let the tracked load of a task decay for its time in another class.
        attach_age_load: flag = true, "v6.12 features.h ATTACH_AGE_LOAD";
        /// Leave tiny loads where they are.
        lb_min: flag = false, "v6.12 features.h LB_MIN";
        /// Run newly idle balancing with the probability of its success. On in 6.12.117, off here
        /// so that results do not depend on the seed by default.
        ni_random: flag = false, "v6.12.117 features.h NI_RANDOM";
        /// Time after its last run during which a task counts as cache-hot.
        migration_cost: ns = 500_000 => 0..=1_000_000_000,
            "v6.12 fair.c sysctl_sched_migration_cost";
        /// Tasks looked at in one balancing attempt.
        nr_migrate: int = 32 => 1..=10_000, "v6.12 core.c sysctl_sched_nr_migrate";
        /// Time that newly idle balancing is taken to need for each CPU it looks at. The kernel
        /// measures it; it decides against which idle periods a search is worth its while.
        newidle_cost_per_cpu: ns = 250 => 0..=1_000_000, "model; v6.12 fair.c max_newidle_lb_cost";
        /// Slice of SCHED_RR, rounded up to whole ticks.
        rr_timeslice: ns = 100_000_000 => 100_000..=10_000_000_000, "v6.12 rt.h RR_TIMESLICE";
        /// Time in each `fair_server_period` that fair tasks get beside real-time tasks; 0 = none.
        fair_server_runtime: ns = 50_000_000 => 0..=1_000_000_000,
            "v6.12 deadline.c dl_server_start";
        /// See `fair_server_runtime`, of which no more than this counts.
        fair_server_period: ns = 1_000_000_000 => 100_000..=4_000_000_000,
            "v6.12 deadline.c dl_server_start";
        /// Time in each `rt_period` that real-time tasks get at most; the period or more = no
        /// limit, as in 6.12, where the fair server has replaced this.
        rt_runtime: ns = 1_000_000_000 => 1_000..=10_000_000_000,
            "v6.6 rt.c sysctl_sched_rt_runtime";
        /// See `rt_runtime`.
        rt_period: ns = 1_000_000_000 => 100_000..=10_000_000_000,
            "v6.6 rt.c sysctl_sched_rt_period";
    }
}

/// Variants, the default first.
pub(crate) const VARIANTS: &[Variant] = &[
    Variant { name: "6.12", about: "Linux 6.12.117 (stable)", set: &[] },
    Variant {
        name: "6.12.0",
        about: "Linux 6.12.0: base slice 750 us, yield moves the deadline, base is min_vruntime",
        set: &[("normalized_base_slice", 750_000), ("yield_mode", 1), ("vruntime_base", 1)],
    },
    Variant {
        name: "6.6",
        about: "Linux 6.6, the first release: no delayed dequeue, no short slices, RT throttling",
        set: &[
            ("normalized_base_slice", 750_000),
            // A new task is placed twice, the second time with a whole slice.
            ("place_deadline_initial", 0),
            ("place_at_fork", 1),
            ("place_rel_deadline", 0),
            ("preempt_short", 0),
            ("unprotect_idle", 0),
            ("custom_slice", 0),
            ("equal_deadlines", 1),
            ("delay_dequeue", 0),
            ("delay_zero", 0),
            ("yield_mode", 1),
            ("vruntime_base", 1),
            ("fair_server_runtime", 0),
            ("rt_runtime", 950_000_000),
        ],
    },
];

/// Those with a file in debugfs (`/sys/kernel/debug/sched`), a feature there, or a sysctl.
///
/// Source: v6.12 `debug.c`, `features.h`, `rt.c`.
pub(super) const LIVE: &[&str] = &[
    "base_slice",
    "tunable_scaling",
    "place_lag",
    "place_deadline_initial",
    "place_rel_deadline",
    "run_to_parity",
    "preempt_short",
    "next_buddy",
    "pick_buddy",
    "cache_hot_buddy",
    "delay_dequeue",
    "delay_zero",
    "wakeup_preemption",
    "hrtick",
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
    "fair_server_runtime",
    "fair_server_period",
    "rt_runtime",
    "rt_period",
];

impl EevdfTunables {
    /// The slice in ns on a machine of `n_cpus`.
    pub(crate) fn effective_base_slice(&self, n_cpus: usize) -> u64 {
        if self.base_slice > Nanos::ZERO {
            return self.base_slice.as_ns();
        }
        let factor = Scaling::from_index(self.tunable_scaling).factor(n_cpus);
        self.normalized_base_slice.as_ns() * factor
    }
}
