// SPDX-License-Identifier: GPL-2.0-only
//! Knobs and variants of the policy, and their resolved form for one machine.

use schedlab_policy_api::Variant;
use schedlab_units::{Hz, Nanos};

use crate::linux_2_6::sleep_avg::{Scale, Word};

schedlab_policy_api::tunables! {
    /// Knobs of [`crate::O1`]; the defaults are 2.6.0-test1.
    pub struct O1Tunables {
        /// How sleeping and running are measured: in ticks; in ns; or in ns with the rules of
        /// 2.6.0 (interactive credit, sleep multiplied, granularity by bonus).
        clock: choice["tick", "ns", "ns_credit"] = 0, "2.6.0-test1 sched.c activate_task; \
             sched-2.6.0-test1-G3, I. Molnar, 25 Jul 2003; 2.6.0 sched.c recalc_task_prio";
        /// A sleep measured in ticks is credited one tick short.
        sleep_minus_one: flag = true, "2.6.0-test1 sched.c activate_task; \
             off: G. Chazarain, 26 Jul 2003";
        /// Sleep that buys the whole bonus.
        max_sleep_avg: ns = 10_000_000_000 => 10_000_000..=1_000_000_000_000,
            "2.6.0-test1 sched.c MAX_SLEEP_AVG; G3: 2 s; G6: 1 s; 2.6.0: 1020 ms";
        /// Time after which interactive tasks no longer rejoin the active array while others wait;
        /// 0 = never.
        starvation_limit: ns = 10_000_000_000 => 0..=1_000_000_000_000,
            "2.6.0-test1 sched.c STARVATION_LIMIT; F. Alfaro Solana, 26 Jul 2003: 1 s";
        /// Multiply that time by the number of runnable tasks.
        starvation_scale: flag = true, "2.6.0-test1 sched.c EXPIRED_STARVING; off: G6, G7";
        /// What starts that time: a task that joins the expired array, or any end of a slice.
        expired_ts_rule: choice["expired", "slice_end"] = 0,
            "2.6.0-test1 sched.c scheduler_tick; slice_end: G6, 2.6.0";
        /// Span after which a task goes behind its equals within a slice; 0 = not before its end.
        /// 2.6.0 (`ns_credit`) has a span by bonus instead.
        granularity: ns = 0 => 0..=1_000_000_000, "G3 sched.c TIMESLICE_GRANULARITY: HZ/20; \
             G6: HZ/40";
        /// Whether those spans are counted from the end of the slice or from its start.
        granularity_phase: choice["remaining", "elapsed"] = 0, "G3 sched.c scheduler_tick; \
             elapsed: C. Kolivas, 26 Jul 2003, G6";
        /// How much of the wait from a wake-up to the first run counts as sleep; `weighted` is
        /// 30 % unless an interrupt woke the task.
        rq_wait_credit: choice["none", "full", "weighted"] = 0, "G3 sched.c schedule; \
             weighted: G7 ON_RUNQUEUE_WEIGHT";
        /// A woken task of equal priority preempts if it has more than twice the ticks left.
        equal_preempt: flag = false, "G3 sched.h TASK_PREEMPTS_CURR";
        /// Share of the parent's sleep average that a child gets, in percent.
        child_penalty: int = 50 => 0..=100, "2.6.0-test1 sched.c CHILD_PENALTY; \
             80: C. Kolivas, O3int; 95: G7, 2.6.0";
        /// Share of the 40 priorities that the bonus spans, in percent.
        prio_bonus_ratio: int = 25 => 0..=50, "2.6.0-test1 sched.c PRIO_BONUS_RATIO; \
             45 to 49: G. Chazarain, 8 Jul 2003";
        /// List tasks by how long they wait and punish who runs while the first waits too long;
        /// replaces the rule of the expired array.
        starvation_list: flag = false, "G. Chazarain, 26 Jul 2003";
        /// Sleeps in the uninterruptible state earn nothing.
        interruptible_only_credit: flag = false, "G. Chazarain, 8 Jul 2003";
        /// Sleep average of a task that starts the workload, in percent of the maximum.
        start_sleep_avg: int = 0 => 0..=100, "spec linux-2.6-o1 §6.16, a modelling knob";
        /// Sums of 2.6.0 and 2.6.6 that exceed 32 bits wrap, as on a 32-bit machine; under
        /// `smp_rules=2.6.6` the time of the last tick too.
        wrap_32_bit: flag = false, "specs linux-2.6-o1 §6.13, linux-2.6-spa §6 Q5, Q6; on: i386";
        /// Time since a task ran during which it counts as cache-hot: in ticks; in 1.024 µs
        /// under `clock=ns`, where the units do not match.
        cache_decay_ticks: int = 1 => 0..=1000, "2.6.0-test1 i386 smpboot.c cache_decay_ticks; \
             specs linux-2.6-o1 §4.10, §5.2, linux-2.6-spa §5";
        /// An interactive task also expires while a task of better static priority waits in the
        /// expired array.
        best_expired_prio: flag = false, "2.6.6 sched.c EXPIRED_STARVING; C. Kolivas, \
             18 Jan 2004 (O21)";
        /// The wait of a real-time task is credited too when it is picked, which puts it to the
        /// tail of its list.
        rt_wait_credit: flag = true, "2.6.0 sched.c schedule; off: 2.6.6, changed on 28 Mar 2004";
        /// A change of class disturbs a CPU that should run another task after it.
        setscheduler_preempts: flag = false, "2.6.6 sched.c setscheduler";
        /// Slices and interactivity code under `clock=ns_credit`. 2.6.17 has longer slices for
        /// negative nice values and no credit, multiplies no sleep, and charges all tasks by bonus.
        interactivity: choice["2.6.0", "2.6.17"] = 0, "2.6.17 sched.c recalc_task_prio; \
             spec linux-2.6-o1 §5.8";
        /// Rules of moves between CPUs. 2.6.6 dates by the last tick of the CPU that a task leaves,
        /// activates in full a task that affinity moves, weighs nodes by tasks in a tenth of a CPU,
        /// and balances at exec.
        smp_rules: choice["2.6.0", "2.6.6"] = 0, "2.6.0-test1 and 2.6.6 sched.c pull_task, \
             move_task_away, find_busiest_node, sched_best_cpu; spec linux-2.6-spa §4.1";
        /// Habits of the kernel around the scheduler. 2.6.0: sleeps of whole milliseconds, each
        /// CPU's tick, timers and `schedule` after those of the one before. 2.6.6: sleeps counted
        /// in TICK_NSEC of i386; all ticks of an instant, then timers, then every `schedule`.
        timekeeping: choice["2.6.0", "2.6.6"] = 0, "specs linux-2.6-o1 §4.0, \
             linux-2.6-spa §4, §6 Q12";
    }
}

/// Presets, the default first.
pub(super) const VARIANTS: &[Variant] = &[
    Variant {
        name: "2.6.0-test1",
        about: "mainline, July 2003: ticks, ten seconds of sleep buy the bonus",
        set: &[],
    },
    Variant {
        name: "test1n",
        about: "G. Chazarain, 26 Jul 2003: 2.6.0-test1 without the tick taken off each sleep",
        set: &[("sleep_minus_one", 0)],
    },
    Variant {
        name: "g3",
        about: "I. Molnar, 25 Jul 2003: ns clock, round robin within slices, credit for waiting",
        set: &[
            ("clock", 1),
            ("max_sleep_avg", 2_000_000_000),
            ("granularity", 50_000_000),
            ("rq_wait_credit", 1),
            ("equal_preempt", 1),
            ("cache_decay_ticks", 2),
        ],
    },
    Variant {
        name: "2.6.0",
        about: "mainline, December 2003: ns clock with C. Kolivas' interactive credit",
        set: &[
            ("clock", 2),
            ("max_sleep_avg", 1_020_000_000),
            ("starvation_limit", 1_020_000_000),
            ("expired_ts_rule", 1),
            ("rq_wait_credit", 2),
            ("child_penalty", 95),
        ],
    },
    Variant {
        name: "2.6.6",
        about: "mainline, May 2004, on i386: the last before scheduler domains",
        set: &[
            ("clock", 2),
            ("max_sleep_avg", 1_020_000_000),
            ("starvation_limit", 1_020_000_000),
            ("expired_ts_rule", 1),
            ("rq_wait_credit", 2),
            ("child_penalty", 95),
            ("wrap_32_bit", 1),
            ("cache_decay_ticks", 3),
            ("best_expired_prio", 1),
            ("rt_wait_credit", 0),
            ("setscheduler_preempts", 1),
            ("smp_rules", 1),
            ("timekeeping", 1),
        ],
    },
    Variant {
        name: "2.6.17",
        about: "mainline, June 2006 to CFS: no interactive credit; balancing as in 2.6.0",
        set: &[
            ("clock", 2),
            ("max_sleep_avg", 1_000_000_000),
            ("starvation_limit", 1_000_000_000),
            ("expired_ts_rule", 1),
            ("rq_wait_credit", 2),
            ("child_penalty", 95),
            ("best_expired_prio", 1),
            ("rt_wait_credit", 0),
            ("setscheduler_preempts", 1),
            ("interactivity", 1),
        ],
    },
    Variant {
        name: "g6",
        about: "I. Molnar, 27 Jul 2003: G3 with 1 s of sleep, 25 ms spans from the slice's start; \
                inferred where the mail is silent",
        set: &[
            ("clock", 1),
            ("max_sleep_avg", 1_000_000_000),
            ("starvation_limit", 1_000_000_000),
            ("starvation_scale", 0),
            ("expired_ts_rule", 1),
            ("granularity", 25_000_000),
            ("granularity_phase", 1),
            ("rq_wait_credit", 1),
            ("equal_preempt", 1),
            ("child_penalty", 95),
            ("cache_decay_ticks", 2),
        ],
    },
    Variant {
        name: "g7",
        about: "I. Molnar, 28 Jul 2003, as A3 in 2.6.0-test2-mm3: G6 with weighted credit",
        set: &[
            ("clock", 1),
            ("max_sleep_avg", 1_000_000_000),
            ("starvation_limit", 1_000_000_000),
            ("starvation_scale", 0),
            ("expired_ts_rule", 1),
            ("granularity", 25_000_000),
            ("granularity_phase", 1),
            ("rq_wait_credit", 2),
            ("equal_preempt", 1),
            ("child_penalty", 95),
            ("cache_decay_ticks", 2),
        ],
    },
    Variant {
        name: "felipe",
        about: "F. Alfaro Solana, 26 Jul 2003: G3 with 1 s of sleep and a starvation limit of 1 s",
        set: &[
            ("clock", 1),
            ("max_sleep_avg", 1_000_000_000),
            ("starvation_limit", 1_000_000_000),
            ("granularity", 50_000_000),
            ("rq_wait_credit", 1),
            ("equal_preempt", 1),
            ("cache_decay_ticks", 2),
        ],
    },
    Variant {
        name: "gfc",
        about: "G. Chazarain, 26 Jul 2003: 2.6.0-test1 with a list of waiting tasks",
        set: &[("starvation_list", 1), ("starvation_limit", 200_000_000)],
    },
    Variant {
        name: "g3-gfc",
        about: "G3 with G. Chazarain's list of waiting tasks",
        set: &[
            ("clock", 1),
            ("max_sleep_avg", 2_000_000_000),
            ("starvation_list", 1),
            ("starvation_limit", 200_000_000),
            ("granularity", 50_000_000),
            ("rq_wait_credit", 1),
            ("equal_preempt", 1),
            ("cache_decay_ticks", 2),
        ],
    },
];

/// How sleeping and running are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    /// [`super::test1`].
    Tick,
    /// [`super::g3`].
    Ns,
    /// [`super::credit`].
    NsCredit,
}

/// How much of the wait from a wake-up to the first run counts as sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RqWait {
    None,
    Full,
    Weighted,
}

/// The knobs as the policy uses them on its machine.
#[derive(Clone, Debug)]
pub(super) struct Knobs {
    pub(super) hz: Hz,
    pub(super) n_cpus: u32,
    pub(super) clock: Clock,
    pub(super) sleep_minus_one: bool,
    /// Largest sleep average, in ticks or ns as `clock` says.
    pub(super) max_sleep_avg: u64,
    /// The sums of [`Clock::NsCredit`].
    pub(super) scale: Scale,
    /// In ticks, 0 = off.
    pub(super) starvation_limit: u64,
    pub(super) starvation_scale: bool,
    /// Every end of a slice sets `expired_timestamp`.
    pub(super) any_end_stamps: bool,
    /// In ticks, 0 = off.
    pub(super) granularity: u32,
    pub(super) elapsed_phase: bool,
    pub(super) rq_wait_credit: RqWait,
    pub(super) equal_preempt: bool,
    pub(super) child_penalty: u64,
    /// Number of priorities the bonus spans, times 100.
    pub(super) bonus_span: i64,
    pub(super) starvation_list: bool,
    pub(super) interruptible_only_credit: bool,
    /// Sleep average of a task that starts the workload, in the unit of `max_sleep_avg`.
    pub(super) start_sleep_avg: u64,
    pub(super) cache_decay_ticks: u64,
    pub(super) best_expired_prio: bool,
    pub(super) rt_wait_credit: bool,
    pub(super) setscheduler_preempts: bool,
    /// [`super::linux_2_6_17`] rules slices and sleep averages.
    pub(super) linux_2_6_17: bool,
    /// [`super::linux_2_6_6`] rules moves between CPUs.
    pub(super) smp_2_6_6: bool,
}

impl Knobs {
    /// Resolves `t` for a machine of `n_cpus` at `hz`.
    pub(super) fn new(t: &O1Tunables, n_cpus: usize, hz: Hz) -> Self {
        let small = |value: i64| u64::try_from(value).expect("ranges are declared above");
        let ticks =
            |span: Nanos| (u128::from(span.as_ns()) * u128::from(hz.get()) / 1_000_000_000) as u64;
        let at_least_one = |span: Nanos| if span.is_zero() { 0 } else { ticks(span).max(1) };
        let clock = [Clock::Tick, Clock::Ns, Clock::NsCredit][t.clock];
        let max_sleep_ticks = at_least_one(t.max_sleep_avg);
        let word = if t.wrap_32_bit { Word::Bits32 } else { Word::Bits64 };
        let scale = Scale {
            max_sleep_avg: max_sleep_ticks,
            max_bonus: small(t.prio_bonus_ratio) * 40 / 100,
            child_penalty: small(t.child_penalty),
            ..Scale::new(hz, word)
        };
        let max_sleep_avg = match clock {
            Clock::Tick => max_sleep_ticks,
            Clock::Ns => t.max_sleep_avg.as_ns(),
            Clock::NsCredit => scale.ns_max_sleep_avg(),
        };
        Self {
            hz,
            n_cpus: n_cpus as u32,
            clock,
            sleep_minus_one: t.sleep_minus_one,
            max_sleep_avg,
            scale,
            starvation_limit: at_least_one(t.starvation_limit),
            starvation_scale: t.starvation_scale,
            any_end_stamps: t.expired_ts_rule == 1,
            granularity: at_least_one(t.granularity) as u32,
            elapsed_phase: t.granularity_phase == 1,
            rq_wait_credit: [RqWait::None, RqWait::Full, RqWait::Weighted][t.rq_wait_credit],
            equal_preempt: t.equal_preempt,
            child_penalty: small(t.child_penalty),
            bonus_span: t.prio_bonus_ratio * 40,
            starvation_list: t.starvation_list,
            interruptible_only_credit: t.interruptible_only_credit,
            start_sleep_avg: max_sleep_avg * small(t.start_sleep_avg) / 100,
            cache_decay_ticks: small(t.cache_decay_ticks),
            best_expired_prio: t.best_expired_prio,
            rt_wait_credit: t.rt_wait_credit,
            setscheduler_preempts: t.setscheduler_preempts,
            linux_2_6_17: clock == Clock::NsCredit && t.interactivity == 1,
            smp_2_6_6: t.smp_rules == 1,
        }
    }
}
