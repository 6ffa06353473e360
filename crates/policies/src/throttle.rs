// SPDX-License-Identifier: GPL-2.0-only
//! Real-time throttling of kernels up to 6.11: real-time tasks of a CPU get 950 ms of each second
//! at most.
//!
//! While a CPU is throttled its real-time tasks are not picked and do not count as running, even
//! if it idles therefore. One timer ends the period of all CPUs; it runs while there is real-time
//! work. Runtime is not shared between CPUs (feature RT_RUNTIME_SHARE, off since 5.10).
//! Source: v6.1 `rt.c` `update_curr_rt`, `sched_rt_runtime_exceeded`, `do_sched_rt_period_timer`.

use alloc::vec::Vec;

use schedlab_policy_api::Ctx;
use schedlab_units::{CpuId, CpuSet, Nanos, TaskId, Time};

use crate::fair::Fair;
use crate::rt::Rt;

/// What real-time tasks have used of the period.
#[derive(Clone, Debug)]
pub(crate) struct Throttle {
    /// What they may use of it on each CPU, ns.
    runtime: u64,
    /// Its length, ns.
    period: u64,
    /// The policy's name for the timer that ends it.
    timer: u32,
    /// Per CPU, ns (kernel `rt_time`).
    used: Vec<u64>,
    /// CPUs whose real-time tasks have to wait.
    throttled: CpuSet,
    /// End of the period; none = there is no real-time work.
    ends: Option<u64>,
}

impl Throttle {
    /// Nothing used. A `runtime` not below `period` is no limit.
    pub(crate) fn new(n_cpus: usize, runtime: Nanos, period: Nanos, timer: u32) -> Self {
        Self {
            runtime: runtime.as_ns(),
            period: period.as_ns(),
            timer,
            used: alloc::vec![0; n_cpus],
            throttled: CpuSet::EMPTY,
            ends: None,
        }
    }

    /// Changes the limit; the period under way ends when it would have ended.
    pub(crate) fn set_limit(&mut self, runtime: Nanos, period: Nanos) {
        (self.runtime, self.period) = (runtime.as_ns(), period.as_ns());
    }

    /// The policy's name for its timer.
    pub(crate) fn timer(&self) -> u32 {
        self.timer
    }
    /// Whether there is a limit.
    fn limits(&self) -> bool {
        self.runtime < self.period
    }
    /// Whether the real-time tasks of `cpu` have to wait.
    pub(crate) fn holds(&self, cpu: CpuId) -> bool {
        self.throttled.contains(cpu)
    }

    /// One more real-time task is queued on `cpu`.
    ///
    /// Source: v6.1 `rt.c` `inc_rt_group`, `start_rt_bandwidth`, `enqueue_top_rt_rq`.
    pub(crate) fn inc(&mut self, cx: &mut Ctx<'_>, fair: &mut Fair, cpu: CpuId) {
        if !self.holds(cpu) {
            fair.add_nr_running(cpu);
        }
        if self.limits() && self.ends.is_none() {
            self.start_period(cx, cx.now.as_ns() + self.period);
        }
    }
    /// One real-time task less is queued on `cpu`.
    pub(crate) fn dec(&mut self, fair: &mut Fair, cpu: CpuId) {
        if !self.holds(cpu) {
            fair.sub_nr_running(cpu);
        }
    }

    fn start_period(&mut self, cx: &mut Ctx<'_>, ends: u64) {
        self.ends = Some(ends);
        cx.arm(self.timer, Time::from_ns(ends));
    }

    /// Books the run time of real-time task `task`, current on `cpu`, up to now; true when the
    /// CPU's are throttled.
    ///
    /// Source: v6.1 `rt.c` `update_curr_rt`, `sched_rt_runtime_exceeded`.
    pub(crate) fn account(
        &mut self,
        fair: &mut Fair,
        rt: &Rt,
        now: u64,
        cpu: CpuId,
        task: TaskId,
    ) -> bool {
        let delta = fair.book_run(now, task);
        // A limit set while real-time tasks are queued waits for the period that the next begins.
        if !self.limits() || self.ends.is_none() || delta == 0 {
            return false;
        }
        let used = &mut self.used[cpu.index()];
        *used += delta;
        if *used > self.runtime && self.throttled.insert(cpu) {
            for _ in 0..rt.nr(cpu) {
                fair.sub_nr_running(cpu);
            }
        }
        self.holds(cpu)
    }

    /// The timer expired: if the period is over, every CPU is given another runtime.
    ///
    /// Source: v6.1 `rt.c` `sched_rt_period_timer`, `do_sched_rt_period_timer`,
    /// `sched_rt_rq_enqueue`.
    pub(crate) fn end_period(&mut self, cx: &mut Ctx<'_>, fair: &mut Fair, rt: &Rt) {
        let Some(ends) = self.ends else { return };
        let Some(late) = cx.now.as_ns().checked_sub(ends) else {
            self.start_period(cx, ends);
            return;
        };
        let n_periods = late / self.period + 1;
        let mut idle = true;
        for cpu in cx.topo.cpus() {
            let used = &mut self.used[cpu.index()];
            *used = used.saturating_sub(n_periods * self.runtime);
            idle &= *used == 0 && rt.nr(cpu) == 0;
            if *used < self.runtime && self.throttled.remove(cpu) {
                resume(cx, fair, rt, cpu);
            }
        }
        self.ends = None;
        if !idle {
            self.start_period(cx, ends + n_periods * self.period);
        }
    }
}

/// The real-time tasks of `cpu` count again.
fn resume(cx: &mut Ctx<'_>, fair: &mut Fair, rt: &Rt, cpu: CpuId) {
    for _ in 0..rt.nr(cpu) {
        fair.add_nr_running(cpu);
    }
    let Some(first) = rt.pick(cpu) else { return };
    let first_prio = cx.tasks.get(first).static_prio().0;
    let curr_prio = cx.curr(cpu).map_or(u8::MAX, |curr| cx.tasks.get(curr).static_prio().0);
    if first_prio < curr_prio {
        cx.resched(cpu);
    }
}
