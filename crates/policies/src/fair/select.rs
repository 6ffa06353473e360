// SPDX-License-Identifier: GPL-2.0-only
//! The choice of a CPU for a task that wakes up.
//!
//! Source: v6.12 `fair.c` `select_task_rq_fair` and what it calls; spec cfs-eevdf §4E.

use schedlab_policy_api::{Ctx, TaskState, Wake};
use schedlab_units::{CpuId, Jiffies, TaskId};

use super::Fair;
use super::state::Wakee;

impl Wakee {
    /// Notes that `woken` was woken.
    ///
    /// Source: v6.12 `fair.c` `record_wakee`.
    fn record(&mut self, woken: TaskId, now: Jiffies, hz: u64) {
        if now.after(self.decay_ts.wrapping_add(hz)) {
            self.flips >>= 1;
            self.decay_ts = now;
        }
        if self.last != Some(woken) {
            self.last = Some(woken);
            self.flips += 1;
        }
    }
}

/// Whether waker and wakee have so many partners that they are better spread than kept together.
///
/// Source: v6.12 `fair.c` `wake_wide`.
fn wake_wide(waker_flips: u32, wakee_flips: u32, llc_size: u64) -> bool {
    let (low, high) = (waker_flips.min(wakee_flips), waker_flips.max(wakee_flips));
    u64::from(low) >= llc_size && u64::from(high) >= u64::from(low) * llc_size
}

/// Loads that decide whether a wakee moves to its waker's CPU.
struct AffineLoads {
    this_load: u64,
    prev_load: u64,
    this_capacity: u64,
    prev_capacity: u64,
    task_load: u64,
    /// Load of the waker, if it is about to sleep.
    sync_load: Option<u64>,
}

/// Whether the waker's CPU would be the less loaded one, `imbalance_pct` leaning towards it.
///
/// Source: v6.12 `fair.c` `wake_affine_weight`.
fn wake_affine_weight(loads: &AffineLoads, bias: bool, imbalance_pct: u64) -> bool {
    let mut this = loads.this_load as i64;
    if let Some(waker) = loads.sync_load {
        if waker > loads.this_load {
            return true;
        }
        this -= waker as i64;
    }
    this += loads.task_load as i64;
    let mut prev = loads.prev_load as i64 - loads.task_load as i64;
    if bias {
        this *= 100;
        prev *= 100 + (imbalance_pct as i64 - 100) / 2;
    }
    this *= loads.prev_capacity as i64;
    prev *= loads.this_capacity as i64;
    if loads.sync_load.is_some() {
        prev += 1;
    }
    this < prev
}

impl Fair {
    /// The CPU for `task`, which may use more than one.
    ///
    /// The answer may be a CPU that `task` may not use, when its last CPU is such a one.
    pub(crate) fn select_task_rq(&mut self, cx: &mut Ctx<'_>, task: TaskId, wake: Wake) -> CpuId {
        let prev = self.task(task).cpu;
        match wake {
            Wake::Wakeup { waker, sync } => {
                let wide = self.record_wakee(cx, task, waker);
                let sync =
                    sync && waker.is_some_and(|w| cx.tasks.get(w).state != TaskState::Zombie);
                let want_affine = !wide && cx.tasks.get(task).affinity.contains(cx.this_cpu);
                let mut target = prev;
                if want_affine && cx.this_cpu != prev {
                    target = self.wake_affine(cx, task, prev, waker.filter(|_| sync));
                }
                self.select_idle_sibling(cx, task, prev, target)
            }
            Wake::Fork | Wake::Exec => self.find_idlest_cpu(cx, task),
            Wake::Migrate => self.any_allowed(cx, task),
        }
    }

    /// Some CPU that `task` may use, the same node's first, in turn.
    ///
    /// Source: v6.12 `core.c` `select_fallback_rq`, `cpumask_any_and_distribute`.
    pub(crate) fn any_allowed(&mut self, cx: &Ctx<'_>, task: TaskId) -> CpuId {
        let affinity = &cx.tasks.get(task).affinity;
        let near = affinity.intersection(cx.topo.node_cpus(self.task(task).cpu));
        let choice = if near.is_empty() { affinity } else { &near };
        let cpu = choice.iter_after(self.distributed).next();
        self.distributed = cpu.expect("the core keeps affinity masks from being empty");
        self.distributed
    }

    /// Notes the wake-up with its waker and tells whether the two should be spread.
    ///
    /// In an interrupt the waker is whatever it interrupted, as in the kernel.
    fn record_wakee(&mut self, cx: &Ctx<'_>, task: TaskId, waker: Option<TaskId>) -> bool {
        let wakee = match waker.or(cx.curr(cx.this_cpu)) {
            Some(waker) => &mut self.tasks[waker.index()].wakee,
            None => &mut self.cpus[cx.this_cpu.index()].idle_wakee,
        };
        wakee.record(task, cx.jiffies, self.hz);
        let flips = wakee.flips;
        wake_wide(flips, self.task(task).wakee.flips, self.domains.llc_size)
    }

    /// The waker's CPU or the wakee's last one.
    ///
    /// `sync_waker` is the waker if it is about to sleep.
    ///
    /// Source: v6.12 `fair.c` `wake_affine`, `wake_affine_idle`.
    fn wake_affine(
        &mut self,
        cx: &Ctx<'_>,
        task: TaskId,
        prev: CpuId,
        sync_waker: Option<TaskId>,
    ) -> CpuId {
        let this_cpu = cx.this_cpu;
        let mut levels = self.domains.levels.iter();
        let shared = levels.find(|level| level.span(this_cpu).contains(prev));
        let Some(imbalance_pct) = shared.map(|level| level.imbalance_pct) else { return prev };
        if self.knobs.wa_idle {
            let prev_idle = self.idle_cpu(cx, prev);
            if self.idle_cpu(cx, this_cpu) && cx.topo.shares_llc(this_cpu, prev) {
                return if prev_idle { prev } else { this_cpu };
            }
            let this = self.cpu(this_cpu);
            if sync_waker.is_some() && this.nr_running - this.nr_delayed == 1 {
                return self.count_affine(this_cpu);
            }
            if prev_idle {
                return prev;
            }
        }
        if self.knobs.wa_weight {
            let loads = AffineLoads {
                this_load: self.cpu(this_cpu).avg.load_avg,
                prev_load: self.cpu(prev).avg.load_avg,
                this_capacity: self.cpu(this_cpu).capacity,
                prev_capacity: self.cpu(prev).capacity,
                task_load: self.task_load(task),
                sync_load: sync_waker.map(|waker| self.task_load(waker)),
            };
            if wake_affine_weight(&loads, self.knobs.wa_bias, imbalance_pct) {
                return self.count_affine(this_cpu);
            }
        }
        prev
    }

    fn count_affine(&mut self, this_cpu: CpuId) -> CpuId {
        self.stats.wake_affine += 1;
        this_cpu
    }

    /// Whether a wake-up towards `cpu` is left to that CPU: it is far away, or it has nothing to
    /// do.
    ///
    /// Source: v6.12 `core.c` `ttwu_queue_cond`.
    pub(crate) fn ttwu_queue(&self, cx: &Ctx<'_>, task: TaskId, cpu: CpuId) -> bool {
        self.knobs.ttwu_queue
            && cx.tasks.get(task).affinity.contains(cpu)
            && (!cx.topo.shares_llc(cx.this_cpu, cpu)
                || (cpu != cx.this_cpu && self.cpu(cpu).nr_running == 0))
    }
}

#[cfg(test)]
mod tests {
    //! Rows of cfs-eevdf §9, and more.

    use super::*;
    use crate::csv::rows;

    #[test]
    fn vectors_66_wake_wide() {
        for row in rows(include_str!("../eevdf/vectors/t12-wake-wide.csv")) {
            let (a, b) = (row.get("flips"), row.get("other_flips"));
            assert_eq!(wake_wide(a, b, 20), row.flag("wide"), "({a}, {b})");
            assert_eq!(wake_wide(b, a, 20), row.flag("wide"), "({b}, {a})");
        }
    }

    /// Pct 117, equal capacities.
    #[test]
    fn vectors_69_wake_affine() {
        for row in rows(include_str!("../eevdf/vectors/t12-wake-affine.csv")) {
            let loads = AffineLoads {
                this_load: row.get("this_load"),
                prev_load: row.get("prev_load"),
                this_capacity: 1024,
                prev_capacity: 1024,
                task_load: row.get("task_load"),
                sync_load: row.try_get("sync_load"),
            };
            let got = wake_affine_weight(&loads, true, 117);
            assert_eq!(
                got,
                row.flag("this"),
                "{} {}",
                row.text("this_load"),
                row.text("prev_load")
            );
        }
    }

    #[test]
    fn wakee_flips_count_changes_and_halve() {
        let mut wakee = Wakee::default();
        for (woken, flips) in [(1, 1), (1, 1), (2, 2), (1, 3)] {
            wakee.record(TaskId(woken), Jiffies(10), 1000);
            assert_eq!(wakee.flips, flips);
        }
        wakee.record(TaskId(1), Jiffies(1001), 1000);
        assert_eq!((wakee.flips, wakee.decay_ts), (1, Jiffies(1001)));
    }
}
