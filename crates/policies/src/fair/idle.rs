// SPDX-License-Identifier: GPL-2.0-only
//! The search for an idle CPU near a wake-up's target.
//!
//! Source: v6.12 `fair.c` `select_idle_sibling` and what it calls; spec cfs-eevdf §4E.

use schedlab_policy_api::Ctx;
use schedlab_units::{CpuId, CpuSet, TaskId};

use super::Fair;
use super::domains::Level;

impl Fair {
    /// An idle CPU that shares its cache with `target`, or `target`.
    ///
    /// Source: v6.12 `fair.c` `select_idle_sibling`.
    pub(super) fn select_idle_sibling(
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
    //! Rows of cfs-eevdf §9, and more.

    use super::*;
    use crate::csv::rows;

    #[test]
    fn vectors_64_nr_idle_scan() {
        for row in rows(include_str!("../eevdf/vectors/t12-idle-scan.csv")) {
            assert_eq!(
                nr_idle_scan(row.get("sum_util"), 20, 117),
                row.get("nr_idle_scan"),
                "Σutil {}",
                row.text("sum_util")
            );
        }
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
