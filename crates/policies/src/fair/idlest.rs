// SPDX-License-Identifier: GPL-2.0-only
//! The idlest CPU for a task that forks or execs.
//!
//! Source: v6.12 `fair.c` `sched_balance_find_dst_cpu`; spec cfs-eevdf §4E.

use schedlab_policy_api::Ctx;
use schedlab_units::{CpuId, TaskId};

use super::Fair;
use super::domains::Level;
use super::groups::{GroupStats, GroupType};

impl Fair {
    /// The idlest CPU that `task` may use, from the top level down.
    ///
    /// Source: v6.12 `fair.c` `sched_balance_find_dst_cpu`.
    pub(crate) fn find_idlest_cpu(&mut self, cx: &mut Ctx<'_>, task: TaskId) -> CpuId {
        let mut cpu = cx.this_cpu;
        let mut new_cpu = cpu;
        for level in (0..self.domains.levels.len()).rev() {
            let Some(group) = self.find_idlest_group(cx, task, cpu, level) else { continue };
            new_cpu = self.find_idlest_in_group(cx, task, cpu, level, group);
            // A choice in another group goes on below with that group's domains, which are those
            // of the lower levels, as all CPUs have the same levels.
            cpu = new_cpu;
        }
        new_cpu
    }

    /// The group of `cpu`'s domain to send `task` to; none to stay in its own.
    ///
    /// Source: v6.12 `fair.c` `sched_balance_find_dst_group`.
    fn find_idlest_group(
        &self,
        cx: &mut Ctx<'_>,
        task: TaskId,
        cpu: CpuId,
        level: usize,
    ) -> Option<usize> {
        let affinity = &cx.tasks.get(task).affinity;
        let level = &self.domains.levels[level];
        let own = level.local(cpu);
        let (mut idlest, mut local): (Option<(usize, GroupStats)>, _) = (None, None);
        for group in level.ring(cpu) {
            if !level.groups[group].span.intersects(affinity) {
                continue;
            }
            let stats = self.wakeup_stats(cx, task, level, group);
            if group == own {
                local = Some(stats);
            } else if is_idler(&stats, idlest.as_ref().map(|(_, best)| best)) {
                idlest = Some((group, stats));
            }
        }
        let (group, idlest) = idlest?;
        let Some(local) = local else { return Some(group) };
        let stay = match local.kind.cmp(&idlest.kind) {
            core::cmp::Ordering::Less => true,
            core::cmp::Ordering::Greater => false,
            core::cmp::Ordering::Equal => self.prefers_local(cx, task, level, own, &local, &idlest),
        };
        (!stay).then_some(group)
    }

    /// Whether a group of the same kind as the idlest other one is better left alone.
    fn prefers_local(
        &self,
        cx: &Ctx<'_>,
        task: TaskId,
        level: &Level,
        own: usize,
        local: &GroupStats,
        idlest: &GroupStats,
    ) -> bool {
        match local.kind {
            GroupType::Overloaded | GroupType::FullyBusy => {
                let imbalance = 1024 * (level.imbalance_pct - 100) / 100;
                (level.is_numa() && idlest.avg_load + imbalance >= local.avg_load)
                    || idlest.avg_load >= local.avg_load + imbalance
                    || 100 * local.avg_load <= level.imbalance_pct * idlest.avg_load
            }
            GroupType::HasSpare => {
                if level.is_numa() {
                    let here = level.groups[own].span.intersection(&cx.tasks.get(task).affinity);
                    let allowed = level.imb_numa_nr.min(here.len() as i64);
                    let imbalance = local.idle_cpus.abs_diff(idlest.idle_cpus) as i64;
                    let running = local.nr_running as i64 + 1;
                    if adjust_numa_imbalance(imbalance, running, allowed) == 0 {
                        return true;
                    }
                }
                local.idle_cpus >= idlest.idle_cpus
            }
            GroupType::Misfit | GroupType::SmtBalance | GroupType::Imbalanced => true,
        }
    }

    /// The state of a group without `task`.
    ///
    /// Source: v6.12 `fair.c` `update_sg_wakeup_stats`.
    fn wakeup_stats(
        &self,
        cx: &mut Ctx<'_>,
        task: TaskId,
        level: &Level,
        group: usize,
    ) -> GroupStats {
        let group = &level.groups[group];
        let mut stats = GroupStats::empty(group);
        let members = group.span.intersection(&cx.tasks.get(task).affinity);
        let this = self.task(task);
        for cpu in members.iter() {
            let rq = self.cpu(cpu);
            let here = this.cpu == cpu && this.attached;
            let own = if here { this.avg } else { super::SchedAvg::default() };
            let queued = u64::from(here && this.on_rq);
            stats.load += rq.avg.load_avg.saturating_sub(own.load_avg);
            stats.util += self.cpu_util(cpu, Some(task));
            stats.runnable += rq.avg.runnable_avg.saturating_sub(own.runnable_avg);
            stats.nr_fair += u64::from(rq.nr) - queued;
            let nr_running = u64::from(rq.nr_running) - queued;
            stats.nr_running += nr_running;
            let curr = cx.curr(cpu);
            let free = curr.is_none() || curr == Some(task);
            if nr_running == 0 && free && cx.wake_pending[cpu.index()] == 0 {
                stats.idle_cpus += 1;
            }
        }
        cx.scanned(members.len());
        stats.classify(level.imbalance_pct, group.imbalance, false);
        if matches!(stats.kind, GroupType::FullyBusy | GroupType::Overloaded) {
            stats.set_avg_load();
        }
        stats
    }

    /// In a group: the CPU that went idle last, else the least loaded.
    ///
    /// Source: v6.12 `fair.c` `sched_balance_find_dst_group_cpu`, with one idle state for all CPUs.
    fn find_idlest_in_group(
        &self,
        cx: &mut Ctx<'_>,
        task: TaskId,
        this_cpu: CpuId,
        level: usize,
        group: usize,
    ) -> CpuId {
        let group = &self.domains.levels[level].groups[group];
        if let (1, Some(only)) = (group.weight, group.span.first()) {
            return only;
        }
        let members = group.span.intersection(&cx.tasks.get(task).affinity);
        cx.scanned(members.len());
        let mut idle: Option<(u64, CpuId)> = None;
        let mut least = (u64::MAX, this_cpu);
        for cpu in members.iter() {
            if self.only_idle.contains(cpu) {
                return cpu;
            }
            if self.idle_cpu(cx, cpu) {
                let stamp = self.cpu(cpu).idle_stamp.unwrap_or(0);
                if idle.is_none_or(|(latest, _)| stamp > latest) {
                    idle = Some((stamp, cpu));
                }
            } else if idle.is_none() && self.cpu(cpu).avg.load_avg < least.0 {
                least = (self.cpu(cpu).avg.load_avg, cpu);
            }
        }
        idle.map_or(least.1, |(_, cpu)| cpu)
    }
}

/// Whether a group is idler than the idlest so far.
///
/// Source: v6.12 `fair.c` `update_pick_idlest`.
fn is_idler(stats: &GroupStats, best: Option<&GroupStats>) -> bool {
    let Some(best) = best else {
        // The kernel starts from an overloaded group with the largest load.
        return stats.kind < GroupType::Overloaded || stats.avg_load < u64::from(u32::MAX);
    };
    match stats.kind.cmp(&best.kind) {
        core::cmp::Ordering::Less => true,
        core::cmp::Ordering::Greater => false,
        core::cmp::Ordering::Equal => match stats.kind {
            GroupType::Overloaded | GroupType::FullyBusy => stats.avg_load < best.avg_load,
            GroupType::HasSpare => {
                stats.idle_cpus > best.idle_cpus
                    || (stats.idle_cpus == best.idle_cpus && stats.util < best.util)
            }
            GroupType::Misfit | GroupType::SmtBalance | GroupType::Imbalanced => false,
        },
    }
}

/// The part of an imbalance between nodes that counts: none while few tasks run there.
///
/// Source: v6.12 `fair.c` `adjust_numa_imbalance`.
pub(crate) fn adjust_numa_imbalance(imbalance: i64, dst_running: i64, imb_numa_nr: i64) -> i64 {
    const NUMA_IMBALANCE_MIN: i64 = 2;
    if dst_running <= imb_numa_nr && imbalance <= NUMA_IMBALANCE_MIN { 0 } else { imbalance }
}
