// SPDX-License-Identifier: GPL-2.0-only
//! How busy a group of CPUs is.
//!
//! Source: v6.12 `fair.c` `update_sg_lb_stats`, `group_classify`; spec cfs-eevdf §4E.

use schedlab_policy_api::Ctx;
use schedlab_units::{CpuId, CpuSet};

use super::Fair;
use super::domains::{CAPACITY_SCALE, Group};

/// What kind of help a group needs, the idlest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum GroupType {
    /// It can take more.
    HasSpare,
    /// It has just enough to do.
    FullyBusy,
    /// A task runs on a CPU whose capacity other classes have taken.
    Misfit,
    /// Hardware threads of one core are both busy.
    SmtBalance,
    /// Affinities kept the level below from balancing.
    Imbalanced,
    /// It has more than it can do.
    Overloaded,
}

/// Sums over the CPUs of a group (kernel `struct sg_lb_stats`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupStats {
    pub(crate) load: u64,
    pub(crate) util: u64,
    pub(crate) runnable: u64,
    /// Queued tasks of all classes.
    pub(crate) nr_running: u64,
    /// Queued fair tasks, delayed ones included.
    pub(crate) nr_fair: u64,
    pub(crate) idle_cpus: u64,
    pub(crate) capacity: u64,
    pub(crate) weight: u64,
    /// Load × 1024 / capacity; 0 where the kernel does not compute it.
    pub(crate) avg_load: u64,
    /// Largest load of a CPU whose capacity is reduced while it runs one fair task.
    pub(crate) misfit_load: u64,
    pub(crate) kind: GroupType,
}

impl GroupStats {
    /// The sums of no CPUs in a group of the size of `group`.
    pub(crate) fn empty(group: &Group) -> Self {
        Self {
            load: 0,
            util: 0,
            runnable: 0,
            nr_running: 0,
            nr_fair: 0,
            idle_cpus: 0,
            capacity: group.capacity,
            weight: group.weight,
            avg_load: 0,
            misfit_load: 0,
            kind: GroupType::HasSpare,
        }
    }
    /// Computes the load relative to the capacity.
    pub(crate) fn set_avg_load(&mut self) {
        self.avg_load = self.load * CAPACITY_SCALE / self.capacity;
    }
    /// More tasks than CPUs, and they use or want more than there is.
    ///
    /// Source: v6.12 `fair.c` `group_is_overloaded`.
    pub(crate) fn is_overloaded(&self, imbalance_pct: u64) -> bool {
        self.nr_running > self.weight
            && (self.capacity * 100 < self.util * imbalance_pct
                || self.capacity * imbalance_pct < self.runnable * 100)
    }
    /// Fewer tasks than CPUs, or they use and want less than there is.
    ///
    /// Source: v6.12 `fair.c` `group_has_capacity`.
    pub(crate) fn has_capacity(&self, imbalance_pct: u64) -> bool {
        self.nr_running < self.weight
            || (self.capacity * imbalance_pct >= self.runnable * 100
                && self.capacity * 100 > self.util * imbalance_pct)
    }
    /// Sets the kind from the sums.
    ///
    /// Source: v6.12 `fair.c` `group_classify`.
    pub(crate) fn classify(&mut self, imbalance_pct: u64, imbalanced: bool, smt_balance: bool) {
        self.kind = if self.is_overloaded(imbalance_pct) {
            GroupType::Overloaded
        } else if imbalanced {
            GroupType::Imbalanced
        } else if smt_balance {
            GroupType::SmtBalance
        } else if self.misfit_load > 0 {
            GroupType::Misfit
        } else if !self.has_capacity(imbalance_pct) {
            GroupType::FullyBusy
        } else {
            GroupType::HasSpare
        };
    }
}

/// Who looks at a group, and why.
pub(crate) struct Looker<'a> {
    /// CPUs that take part.
    pub(crate) cpus: &'a CpuSet,
    /// Level of the domain.
    pub(crate) level: usize,
    /// The looking CPU is idle.
    pub(crate) idle: bool,
}

impl Fair {
    /// The state of group `group` for a balancing CPU; `local` if it is that CPU's own.
    ///
    /// Source: v6.12 `fair.c` `update_sg_lb_stats`.
    pub(crate) fn group_stats(
        &self,
        cx: &mut Ctx<'_>,
        looker: &Looker<'_>,
        group: usize,
        local: bool,
    ) -> (GroupStats, bool) {
        let level = &self.domains.levels[looker.level];
        let group = &level.groups[group];
        let imbalance_pct = level.imbalance_pct;
        let mut stats = GroupStats::empty(group);
        let mut overloaded = false;
        let members = group.span.intersection(looker.cpus);
        for cpu in members.iter() {
            let this = self.cpu(cpu);
            stats.load += this.avg.load_avg;
            stats.util += self.cpu_util(cpu, None);
            stats.runnable += this.avg.runnable_avg;
            stats.nr_fair += u64::from(this.nr);
            stats.nr_running += u64::from(this.nr_running);
            overloaded |= this.nr_running > 1;
            if this.nr_running == 0 && self.idle_cpu(cx, cpu) {
                stats.idle_cpus += 1;
            } else if !local && looker.idle && this.nr == 1 && self.is_reduced(cpu, imbalance_pct) {
                stats.misfit_load = stats.misfit_load.max(this.avg.load_avg);
            }
        }
        cx.scanned(members.len());
        let smt_balance = !local && looker.idle && group.is_smt && stats.nr_fair > 1;
        stats.classify(imbalance_pct, group.imbalance, smt_balance);
        if stats.kind == GroupType::Overloaded {
            stats.set_avg_load();
        }
        (stats, overloaded)
    }

    /// Whether other classes have taken a noticeable part of `cpu`.
    ///
    /// Source: v6.12 `fair.c` `check_cpu_capacity`.
    pub(crate) fn is_reduced(&self, cpu: CpuId, imbalance_pct: u64) -> bool {
        self.cpu(cpu).capacity * imbalance_pct < CAPACITY_SCALE * 100
    }

    /// Computes again what real-time tasks leave of `cpu`, and from that the capacity of its group
    /// at `level`.
    ///
    /// Source: v6.12 `fair.c` `update_group_capacity`, `scale_rt_capacity`.
    pub(crate) fn update_group_capacity(&mut self, cx: &Ctx<'_>, cpu: CpuId, level: usize) {
        let interval_ms = self.domains.domain(cpu, level).balance_interval;
        let longest = (self.hz * self.cpus.len() as u64 / 10).max(1);
        let interval = (interval_ms * self.hz).div_ceil(1000).clamp(1, longest);
        let capacity = if level == 0 {
            let used = self.cpu(cpu).avg_rt.util_avg;
            let capacity = CAPACITY_SCALE.saturating_sub(used).max(1);
            self.cpu_mut(cpu).capacity = capacity;
            capacity
        } else {
            let child = &self.domains.levels[level - 1];
            child.ring(cpu).map(|group| child.groups[group].capacity).sum()
        };
        let level = &mut self.domains.levels[level];
        let local = level.local(cpu);
        let group = &mut level.groups[local];
        group.capacity = capacity;
        group.next_update = cx.jiffies.wrapping_add(interval);
    }
}

#[cfg(test)]
mod tests {
    //! Rows of cfs-eevdf §9, and more.

    use super::*;
    use crate::csv::rows;

    /// 20 CPUs, 21 tasks.
    #[test]
    fn vectors_68_group_overloaded() {
        for row in rows(include_str!("../eevdf/vectors/t12-overloaded.csv")) {
            let stats = GroupStats {
                load: 0,
                util: row.get("util"),
                runnable: row.get("runnable"),
                nr_running: 21,
                nr_fair: 21,
                idle_cpus: 0,
                capacity: 20_480,
                weight: 20,
                avg_load: 0,
                misfit_load: 0,
                kind: GroupType::HasSpare,
            };
            let got = stats.is_overloaded(117);
            assert_eq!(
                got,
                row.flag("overloaded"),
                "util {} runnable {}",
                row.text("util"),
                row.text("runnable")
            );
        }
    }
}
