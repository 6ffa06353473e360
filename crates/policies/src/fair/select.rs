// SPDX-License-Identifier: GPL-2.0-only
//! The choice of a CPU for a task that wakes up.
//!
//! Source: v6.12 `fair.c` `select_task_rq_fair` and what it calls; spec cfs-eevdf §4E.

use schedlab_policy_api::{Ctx, TaskState, Wake};
use schedlab_units::{CpuId, CpuSet, Jiffies, TaskId};

use super::Fair;
use super::domains::Level;
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

    /// An idle CPU that shares its cache with `target`, or `target`.
    ///
    /// Source: v6.12 `fair.c` `select_idle_sibling`.
    fn select_idle_sibling(
        &mut self,
        cx: &mut Ctx<'_>,
        task: TaskId,
        prev: CpuId,
        target: CpuId,
    ) -> CpuId {
        if self.idle_or_sched_idle(cx, target) {
            return target;
        }
        let near_prev = cx.topo.shares_llc(prev, target);
        if prev != target && near_prev && self.idle_or_sched_idle(cx, prev) {
            return prev;
        }
        let recent = core::mem::replace(&mut self.task_mut(task).recent_used_cpu, prev);
        if recent != prev
            && recent != target
            && cx.topo.shares_llc(recent, target)
            && self.idle_or_sched_idle(cx, recent)
            && cx.tasks.get(task).affinity.contains(recent)
        {
            return recent;
        }
        if self.domains.llc_size == 1 {
            return target;
        }
        let llc = cx.topo.llc(target);
        let has_idle_core = self.domains.has_smt && self.domains.llcs[llc].has_idle_cores;
        if self.domains.has_smt
            && !has_idle_core
            && near_prev
            && let Some(cpu) = self.select_idle_smt(cx, task, prev)
        {
            return cpu;
        }
        let found = self.select_idle_cpu(cx, task, target, has_idle_core);
        found.unwrap_or(target)
    }

    /// An idle hardware thread of `target`'s core.
    fn select_idle_smt(&self, cx: &mut Ctx<'_>, task: TaskId, target: CpuId) -> Option<CpuId> {
        let siblings = cx.topo.siblings(target);
        cx.scanned(siblings.len());
        let allowed = siblings.intersection(&cx.tasks.get(task).affinity);
        allowed.iter().find(|cpu| *cpu != target && self.idle_or_sched_idle(cx, *cpu))
    }

    /// An idle CPU of `target`'s cache, of a wholly idle core if there may be one.
    ///
    /// Source: v6.12 `fair.c` `select_idle_cpu`.
    fn select_idle_cpu(
        &mut self,
        cx: &mut Ctx<'_>,
        task: TaskId,
        target: CpuId,
        has_idle_core: bool,
    ) -> Option<CpuId> {
        let llc = cx.topo.llc(target);
        let cpus = cx.topo.llc_cpus(target).intersection(&cx.tasks.get(task).affinity);
        let shared = &mut self.domains.llcs[llc];
        let limit = if self.knobs.sis_util { shared.nr_idle_scan } else { i64::MAX };
        if limit <= 0 {
            return None;
        }
        if !has_idle_core {
            return self.scan_idle_cpu(cx, &cpus, target, limit as usize);
        }
        let (core, cpu) = self.scan_idle_core(cx, &cpus, target);
        if core.is_none() {
            self.domains.llcs[llc].has_idle_cores = false;
        }
        core.or(cpu)
    }

    /// The first idle CPU of `cpus` after `target`, if it is among the first `limit`.
    ///
    /// Only CPUs without queued tasks are looked at; the others are counted as if they were.
    fn scan_idle_cpu(
        &self,
        cx: &mut Ctx<'_>,
        cpus: &CpuSet,
        target: CpuId,
        limit: usize,
    ) -> Option<CpuId> {
        let candidates = cpus.intersection(&self.empty.union(&self.only_idle));
        let found = candidates.iter_after(target).find(|cpu| self.idle_or_sched_idle(cx, *cpu));
        let visited = match found {
            Some(cpu) => visits(cpus, target, cpu),
            None => cpus.len(),
        };
        cx.scanned(visited.min(limit));
        found.filter(|_| visited <= limit)
    }

    /// The first wholly idle core of `cpus` after `target`, by the first of its CPUs; and the first
    /// idle CPU that was met on the way.
    ///
    /// Source: v6.12 `fair.c` `select_idle_core`.
    fn scan_idle_core(
        &self,
        cx: &mut Ctx<'_>,
        cpus: &CpuSet,
        target: CpuId,
    ) -> (Option<CpuId>, Option<CpuId>) {
        let mut left = *cpus;
        let mut idle_cpu = None;
        for cpu in cpus.iter_after(target) {
            if !left.contains(cpu) {
                continue;
            }
            let siblings = cx.topo.siblings(cpu);
            cx.scanned(siblings.len());
            let mut idle = true;
            for sibling in siblings.iter() {
                if self.idle_cpu(cx, sibling) {
                    if idle_cpu.is_none() && left.contains(sibling) {
                        idle_cpu = Some(sibling);
                    }
                    continue;
                }
                idle = false;
                if idle_cpu.is_some() {
                    break;
                }
                if self.only_idle.contains(sibling) && left.contains(sibling) {
                    idle_cpu = Some(sibling);
                    break;
                }
            }
            if idle {
                return (Some(cpu), idle_cpu);
            }
            left = left.difference(siblings);
        }
        (None, idle_cpu)
    }

    /// `cpu` goes idle: if the other threads of its core idle too, wake-ups may look for such
    /// cores.
    ///
    /// Source: v6.12 `fair.c` `__update_idle_core`.
    pub(crate) fn update_idle_core(&mut self, cx: &Ctx<'_>, cpu: CpuId) {
        let llc = cx.topo.llc(cpu);
        if self.domains.has_smt
            && !self.domains.llcs[llc].has_idle_cores
            && cx.topo.siblings(cpu).iter().all(|other| other == cpu || self.idle_cpu(cx, other))
        {
            self.domains.llcs[llc].has_idle_cores = true;
        }
    }

    /// Whether the other threads of `cpu`'s core idle.
    ///
    /// Source: v6.12 `fair.c` `is_core_idle`.
    pub(crate) fn is_core_idle(&self, cx: &Ctx<'_>, cpu: CpuId) -> bool {
        cx.topo.siblings(cpu).iter().all(|other| other == cpu || self.idle_cpu(cx, other))
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

    /// Renews the number of CPUs that wake-ups look at: fewer, the more the cache's CPUs are used.
    ///
    /// Source: v6.12 `fair.c` `update_idle_cpu_scan`.
    pub(crate) fn update_idle_cpu_scan(&mut self, llc: usize, level: usize, sum_util: u64) {
        let Level { span_weight, imbalance_pct, .. } = self.domains.levels[level];
        if self.knobs.sis_util && span_weight == self.domains.llc_size {
            let scan = nr_idle_scan(sum_util, span_weight, imbalance_pct);
            self.domains.llcs[llc].nr_idle_scan = scan as i64;
        }
    }
}

/// Members of `cpus` that a walk which begins after `target` visits, `cpu` included.
fn visits(cpus: &CpuSet, target: CpuId, cpu: CpuId) -> usize {
    let above = |cpu: CpuId| cpus.rank(cpu) + usize::from(cpus.contains(cpu));
    if cpu > target { above(cpu) - above(target) } else { cpus.len() - above(target) + above(cpu) }
}

/// CPUs to look at, of `n`, when their utilizations sum up to `sum_util`: n·(1 − (x·pct/100)²) with
/// x the mean utilization.
fn nr_idle_scan(sum_util: u64, n: u64, pct: u64) -> u64 {
    let x = sum_util / n;
    let used = x * x * pct * pct / (10_000 * 1024);
    (1024 - used.min(1024)) * n / 1024
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eevdf::tests::vectors::rows;

    /// Vectors 64 of spec cfs-eevdf §9 T12.
    #[test]
    fn vectors_64_nr_idle_scan() {
        for row in rows(include_str!("../eevdf/vectors/t12-idle-scan.csv")) {
            assert_eq!(nr_idle_scan(row.get(1), 20, 117), row.get(2), "Σutil {}", row.text(1));
        }
    }

    /// Vectors 66.
    #[test]
    fn vectors_66_wake_wide() {
        for row in rows(include_str!("../eevdf/vectors/t12-wake-wide.csv")) {
            let (a, b) = (row.get(1), row.get(2));
            assert_eq!(wake_wide(a, b, 20), row.flag(3), "({a}, {b})");
            assert_eq!(wake_wide(b, a, 20), row.flag(3), "({b}, {a})");
        }
    }

    /// Vectors 69: pct 117, equal capacities.
    #[test]
    fn vectors_69_wake_affine() {
        for row in rows(include_str!("../eevdf/vectors/t12-wake-affine.csv")) {
            let loads = AffineLoads {
                this_load: row.get(1),
                prev_load: row.get(2),
                this_capacity: 1024,
                prev_capacity: 1024,
                task_load: row.get(3),
                sync_load: row.try_get(4),
            };
            let got = wake_affine_weight(&loads, true, 117);
            assert_eq!(got, row.flag(5), "{} {}", row.text(1), row.text(2));
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

    #[test]
    fn visits_count_the_walk() {
        let cpus = CpuSet::parse("0-3,8-11").expect("legal");
        let walk: alloc::vec::Vec<CpuId> = cpus.iter_after(CpuId(9)).collect();
        for (at, cpu) in walk.iter().enumerate() {
            assert_eq!(visits(&cpus, CpuId(9), *cpu), at + 1);
        }
        assert_eq!(visits(&cpus, CpuId(5), CpuId(8)), 1);
        assert_eq!(visits(&cpus, CpuId(5), CpuId(3)), 8);
    }
}
