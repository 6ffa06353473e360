// SPDX-License-Identifier: GPL-2.0-only
//! Knobs and variants of the policy, and their resolved form for one machine.

use schedlab_policy_api::Variant;
use schedlab_units::Hz;

use super::counter::ForkSplit;

schedlab_policy_api::tunables! {
    /// Knobs of [`crate::Goodness`]; the defaults are 2.4.5 on i386.
    pub struct GoodnessTunables {
        /// Preemption threshold on one CPU: a woken task preempts if its goodness exceeds the
        /// current task's by more than this.
        t_up: int = 1 => 0..=100, "2.4.5 sched.c reschedule_idle, UP branch; \
             0 from 2.4.3-ac12 and 2.4.10";
        /// Preemption threshold on two or more CPUs.
        t_smp: int = 1 => 0..=100, "2.4.5 sched.c reschedule_idle, SMP branch; \
             0 from 2.4.4-ac5 and 2.4.10";
        /// Factor of rt_priority in the goodness of FIFO and RR tasks.
        rt_scale: int = 1 => 1..=10, "2.4.5 sched.c goodness: 1; N. Gamble, 4 Jun 2001: 2";
        /// Subtracted from the difference of goodness when the woken task is no FIFO or RR task.
        other_margin: int = 0 => 0..=100, "spec linux-2.4-goodness §5.1, a modelling knob";
        /// Bonus for the CPU a task last ran on, with two or more CPUs (PROC_CHANGE_PENALTY).
        pcp: int = 15 => 0..=100, "2.4.5 asm-i386/smp.h, asm-sparc/smp.h: 15; \
             alpha, ia64, mips64, ppc, s390, s390x, sparc64: 20";
        /// How a fork divides the parent's ticks.
        fork_split: choice["half", "all_to_child"] = 0, "2.4.5 fork.c do_fork; all_to_child: 2.4.4";
        /// The current task keeps its CPU against others of equal goodness.
        prev_bias: flag = true, "2.4.5 sched.c schedule; off from 2.4.15";
        /// sched_yield also moves the caller to the tail of the list.
        yield_tail: flag = false, "2.4.15 sched.c sys_sched_yield";
        /// A yielder that is chosen again loses its yield mark at once, not when it is next
        /// switched out.
        clear_yield_same: flag = false, "2.4.7 sched.c schedule";
        /// The current task loses its head start on a CPU it may no longer use.
        still_allowed: flag = false, "2.4.7 sched.c schedule";
        /// The tick makes a FIFO task without ticks give way to schedule.
        fifo_tick_resched: flag = true, "2.4.5 timer.c update_process_times; \
             off: I. Molnar and B. Davda, Jun 2002";
        /// Where a woken task joins the list.
        add_at: choice["head", "tail", "tail_if_rt"] = 0, "2.4.5 sched.c \
             add_to_runqueue; tail: B. Davda, Jun 2002; tail_if_rt: I. Molnar, 23 Jun 2002";
        /// A change of class moves a runnable task to the head of the list.
        class_moves_first: flag = true, "2.4.5 sched.c setscheduler; off in a 2.4.27-based tree";
        /// Idle CPUs poll need_resched, so that nobody has to interrupt them.
        idle_poll: flag = false, "2.4.5 i386 process.c, boot option idle=poll";
        /// Ticks of a task that starts the workload; −1 = one quantum of its nice value.
        start_ticks: int = -1 => -1..=200, "spec linux-2.4-goodness §7.3, a modelling knob";
        /// Tasks that start the workload are as if they had been there for long: their ticks lie
        /// anywhere from one quantum to twice that less one, where sleepers' ticks converge, and
        /// the CPU they last ran on is any.
        aged_start: flag = false, "spec linux-2.4-goodness §7.1, a modelling knob";
    }
}

/// Presets, the default first.
pub(super) const VARIANTS: &[Variant] = &[
    Variant { name: "2.4.5", about: "mainline, May 2001: threshold 1", set: &[] },
    Variant {
        name: "2.4.5-ac",
        about: "A. Cox's series: threshold 0 on UP and SMP, otherwise 2.4.5",
        set: &[("t_up", 0), ("t_smp", 0)],
    },
    Variant {
        name: "2.4.10",
        about: "mainline, September 2001: threshold 0, yield mark cleared, affinity of the \
                current task honoured",
        set: &[("t_up", 0), ("t_smp", 0), ("clear_yield_same", 1), ("still_allowed", 1)],
    },
];

/// Where a woken task joins the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AddAt {
    Head,
    Tail,
    TailIfRt,
}

/// The knobs as the policy uses them on its machine.
#[derive(Clone, Debug)]
pub(super) struct Knobs {
    pub(super) hz: Hz,
    /// Whether the rules for two or more CPUs hold.
    pub(super) smp: bool,
    pub(super) threshold: i32,
    pub(super) rt_scale: i32,
    pub(super) other_margin: i32,
    /// 0 on one CPU.
    pub(super) pcp: i32,
    pub(super) fork_split: ForkSplit,
    pub(super) prev_bias: bool,
    pub(super) yield_tail: bool,
    pub(super) clear_yield_same: bool,
    pub(super) still_allowed: bool,
    pub(super) fifo_tick_resched: bool,
    pub(super) add_at: AddAt,
    pub(super) class_moves_first: bool,
    pub(super) idle_poll: bool,
    /// None = one quantum.
    pub(super) start_ticks: Option<i32>,
    pub(super) aged_start: bool,
}

impl Knobs {
    /// Resolves `t` for a machine of `n_cpus` at `hz`.
    pub(super) fn new(t: &GoodnessTunables, n_cpus: usize, hz: Hz) -> Self {
        let small = |value: i64| i32::try_from(value).expect("ranges are declared above");
        let smp = n_cpus > 1;
        Self {
            hz,
            smp,
            threshold: small(if smp { t.t_smp } else { t.t_up }),
            rt_scale: small(t.rt_scale),
            other_margin: small(t.other_margin),
            pcp: if smp { small(t.pcp) } else { 0 },
            fork_split: if t.fork_split == 0 { ForkSplit::Half } else { ForkSplit::AllToChild },
            prev_bias: t.prev_bias,
            yield_tail: t.yield_tail,
            clear_yield_same: t.clear_yield_same,
            still_allowed: t.still_allowed,
            fifo_tick_resched: t.fifo_tick_resched,
            add_at: match t.add_at {
                0 => AddAt::Head,
                1 => AddAt::Tail,
                _ => AddAt::TailIfRt,
            },
            class_moves_first: t.class_moves_first,
            idle_poll: t.idle_poll,
            start_ticks: (t.start_ticks >= 0).then(|| small(t.start_ticks)),
            aged_start: t.aged_start,
        }
    }
}
