// SPDX-License-Identifier: GPL-2.0-only
//! Real-time throttling: real-time tasks of a CPU get 950 ms of each second at most.
//!
//! While a CPU is throttled its real-time tasks are not picked and do not count as running, even
//! if it idles therefore. One timer ends the period of all CPUs; it runs while there is real-time
//! work. Runtime is not shared between CPUs (feature RT_RUNTIME_SHARE, off since 5.10).
//! Source: v6.1 `rt.c` `update_curr_rt`, `sched_rt_runtime_exceeded`, `do_sched_rt_period_timer`.

use alloc::vec::Vec;

use schedlab_policy_api::Ctx;
use schedlab_units::{CpuId, CpuSet, TaskId, Time};

use super::Cfs;

/// The policy's only timer.
const PERIOD_TIMER: u32 = 0;

/// What real-time tasks have used of the period.
#[derive(Clone, Debug)]
pub(super) struct Throttle {
    /// Per CPU, ns (kernel `rt_time`).
    used: Vec<u64>,
    /// CPUs whose real-time tasks have to wait.
    pub(super) throttled: CpuSet,
    /// End of the period; none = there is no real-time work.
    ends: Option<u64>,
}

impl Throttle {
    /// Nothing used.
    pub(super) fn new(n_cpus: usize) -> Self {
        Self { used: alloc::vec![0; n_cpus], throttled: CpuSet::EMPTY, ends: None }
    }
}

impl Cfs {
    /// One more real-time task is queued on `cpu`.
    ///
    /// Source: v6.1 `rt.c` `inc_rt_group`, `start_rt_bandwidth`, `enqueue_top_rt_rq`.
    pub(super) fn inc_rt(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) {
        if !self.throttle.throttled.contains(cpu) {
            self.fair.add_nr_running(cpu);
        }
        if self.limits_rt() && self.throttle.ends.is_none() {
            self.start_period(cx, cx.now.as_ns() + self.knobs.rt_period.as_ns());
        }
    }
    /// One real-time task less is queued on `cpu`.
    pub(super) fn dec_rt(&mut self, cpu: CpuId) {
        if !self.throttle.throttled.contains(cpu) {
            self.fair.sub_nr_running(cpu);
        }
    }

    fn limits_rt(&self) -> bool {
        self.knobs.rt_runtime < self.knobs.rt_period
    }
    fn start_period(&mut self, cx: &mut Ctx<'_>, ends: u64) {
        self.throttle.ends = Some(ends);
        cx.arm(PERIOD_TIMER, Time::from_ns(ends));
    }

    /// Books the run time of real-time task `task`, current on `cpu`, up to now; true when the
    /// CPU's are throttled.
    ///
    /// Source: v6.1 `rt.c` `update_curr_rt`, `sched_rt_runtime_exceeded`.
    pub(super) fn account_rt(&mut self, now: u64, cpu: CpuId, task: TaskId) -> bool {
        let start = self.fair.task_mut(task).exec_start.replace(now);
        let delta = start.map_or(0, |start| now.saturating_sub(start));
        if !self.limits_rt() || delta == 0 {
            return false;
        }
        let used = &mut self.throttle.used[cpu.index()];
        *used += delta;
        if *used > self.knobs.rt_runtime.as_ns() && self.throttle.throttled.insert(cpu) {
            for _ in 0..self.rt.nr(cpu) {
                self.fair.sub_nr_running(cpu);
            }
        }
        self.throttle.throttled.contains(cpu)
    }

    /// The period is over: every CPU is given another runtime.
    ///
    /// Source: v6.1 `rt.c` `sched_rt_period_timer`, `do_sched_rt_period_timer`,
    /// `sched_rt_rq_enqueue`.
    pub(super) fn end_rt_period(&mut self, cx: &mut Ctx<'_>) {
        let Some(ends) = self.throttle.ends else { return };
        let (now, period) = (cx.now.as_ns(), self.knobs.rt_period.as_ns());
        let Some(late) = now.checked_sub(ends) else {
            self.start_period(cx, ends);
            return;
        };
        let n_periods = late / period + 1;
        let runtime = self.knobs.rt_runtime.as_ns();
        let mut idle = true;
        for cpu in cx.topo.cpus() {
            let used = &mut self.throttle.used[cpu.index()];
            *used = used.saturating_sub(n_periods * runtime);
            idle &= *used == 0 && self.rt.nr(cpu) == 0;
            if *used < runtime && self.throttle.throttled.remove(cpu) {
                self.resume_rt(cx, cpu);
            }
        }
        self.throttle.ends = None;
        if !idle {
            self.start_period(cx, ends + n_periods * period);
        }
    }

    /// The real-time tasks of `cpu` count again.
    fn resume_rt(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) {
        for _ in 0..self.rt.nr(cpu) {
            self.fair.add_nr_running(cpu);
        }
        let Some(first) = self.rt.pick(cpu) else { return };
        let first_prio = cx.tasks.get(first).static_prio().0;
        let curr_prio = cx.curr(cpu).map_or(u8::MAX, |curr| cx.tasks.get(curr).static_prio().0);
        if first_prio < curr_prio {
            cx.resched(cpu);
        }
    }
}
