// SPDX-License-Identifier: GPL-2.0-only
//! Whom to pull from: the busiest group of a domain and the busiest CPU in it, and how much.
//!
//! Source: v6.12 `fair.c` `sched_balance_find_src_group`, `calculate_imbalance`; spec cfs-eevdf
//! §4E.

use schedlab_policy_api::Ctx;
use schedlab_units::CpuId;

use super::Fair;
use super::balance::IdleType;
use super::detach::{Env, Migration};
use super::domains::{CAPACITY_SCALE, Group, Level};
use super::groups::{GroupStats, GroupType, Looker};
use super::idlest::adjust_numa_imbalance;

/// The two groups of an attempt, and the domain's sums.
struct Sides {
    group: usize,
    busiest: GroupStats,
    local: GroupStats,
    total_load: u64,
    total_capacity: u64,
    busiest_cores: i64,
    local_cores: i64,
    prefer_sibling: bool,
}

impl Sides {
    /// Load of the whole domain relative to its capacity.
    fn avg_load(&self) -> u64 {
        self.total_load * CAPACITY_SCALE / self.total_capacity
    }

    /// By how many tasks the groups differ, for equal numbers per core.
    ///
    /// Source: v6.12 `fair.c` `sibling_imbalance`.
    fn sibling_imbalance(&self, idle: IdleType) -> i64 {
        let (busiest, local) = (self.busiest.nr_running as i64, self.local.nr_running as i64);
        if !idle.is_idle() || busiest == 0 {
            return 0;
        }
        let (there, here) = (self.busiest_cores, self.local_cores);
        if there == here {
            return (busiest - local).max(0);
        }
        let imbalance = (here * busiest - there * local).max(0);
        let imbalance = (2 * imbalance + here + there) / (here + there);
        if imbalance <= 1 && local == 0 && busiest > 1 { 2 } else { imbalance }
    }
}

impl Fair {
    /// The group to pull from; sets what and how much is to be moved.
    ///
    /// Source: v6.12 `fair.c` `sched_balance_find_src_group`.
    pub(crate) fn find_src_group(&mut self, cx: &mut Ctx<'_>, env: &mut Env) -> Option<usize> {
        let mut sides = self.sides(cx, env)?;
        let Level { imbalance_pct, .. } = self.domains.levels[env.level];
        let forced = matches!(sides.busiest.kind, GroupType::Misfit | GroupType::Imbalanced);
        if !forced && self.is_balanced(env, &sides, imbalance_pct) {
            return None;
        }
        self.calculate_imbalance(env, &mut sides);
        (env.imbalance != 0).then_some(sides.group)
    }

    /// The states of the local and of the busiest other group, with the domain's sums.
    ///
    /// Source: v6.12 `fair.c` `update_sd_lb_stats`.
    fn sides(&mut self, cx: &mut Ctx<'_>, env: &Env) -> Option<Sides> {
        let own = self.domains.levels[env.level].local(env.dst_cpu);
        let next_update = self.domains.levels[env.level].groups[own].next_update;
        if env.idle != IdleType::NewlyIdle || !next_update.after(cx.jiffies) {
            self.update_group_capacity(cx, env.dst_cpu, env.level);
        }
        let looker = Looker { cpus: &env.cpus, level: env.level, idle: env.idle.is_idle() };
        let (mut busiest, mut local): (Option<(usize, GroupStats)>, _) = (None, None);
        let (mut total_load, mut total_capacity, mut sum_util) = (0, 0, 0);
        let mut overloaded = false;
        for group in self.domains.levels[env.level].ring(env.dst_cpu) {
            let (stats, any) = self.group_stats(cx, &looker, group, group == own);
            overloaded |= any;
            total_load += stats.load;
            total_capacity += stats.capacity;
            sum_util += stats.util;
            let groups = &self.domains.levels[env.level].groups;
            if group == own {
                local = Some(stats);
            } else if is_busier(&stats, busiest.as_ref().map(|(at, best)| (&groups[*at], best))) {
                busiest = Some((group, stats));
            }
        }
        if env.level + 1 == self.domains.levels.len() {
            self.overloaded = overloaded;
        }
        if env.idle != IdleType::NewlyIdle {
            self.update_idle_cpu_scan(cx.topo.llc(env.dst_cpu), env.level, sum_util);
        }
        let (group, busiest) = busiest?;
        let groups = &self.domains.levels[env.level].groups;
        Some(Sides {
            group,
            busiest,
            local: local?,
            total_load,
            total_capacity,
            busiest_cores: groups[group].cores,
            local_cores: groups[own].cores,
            prefer_sibling: groups[group].prefer_sibling,
        })
    }

    /// Whether the busiest group is not busy enough to be helped.
    fn is_balanced(&self, env: &Env, sides: &Sides, imbalance_pct: u64) -> bool {
        let (local, busiest) = (&sides.local, &sides.busiest);
        if local.kind > busiest.kind {
            return true;
        }
        if local.kind == GroupType::Overloaded
            && (local.avg_load >= busiest.avg_load
                || local.avg_load >= sides.avg_load()
                || 100 * busiest.avg_load <= imbalance_pct * local.avg_load)
        {
            return true;
        }
        if sides.prefer_sibling
            && local.kind == GroupType::HasSpare
            && sides.sibling_imbalance(env.idle) > 1
        {
            return false;
        }
        busiest.kind != GroupType::Overloaded
            && (!env.idle.is_idle()
                || (busiest.weight > 1 && local.idle_cpus <= busiest.idle_cpus + 1)
                || busiest.nr_fair == 1)
    }

    /// Sets what and how much is to be moved.
    ///
    /// Source: v6.12 `fair.c` `calculate_imbalance`.
    fn calculate_imbalance(&self, env: &mut Env, sides: &mut Sides) {
        let (migration, imbalance) = match sides.busiest.kind {
            GroupType::Misfit => (Migration::Load, sides.busiest.misfit_load as i64),
            GroupType::SmtBalance | GroupType::Imbalanced => (Migration::Task, 1),
            _ if sides.local.kind == GroupType::HasSpare => self.spare_imbalance(env, sides),
            _ => (Migration::Load, load_imbalance(sides)),
        };
        env.migration = migration;
        env.imbalance = imbalance;
    }

    /// What a group with spare capacity can take.
    fn spare_imbalance(&self, env: &Env, sides: &Sides) -> (Migration, i64) {
        let level = &self.domains.levels[env.level];
        let (local, busiest) = (&sides.local, &sides.busiest);
        if busiest.kind > GroupType::FullyBusy && !level.shares_llc() {
            let room = local.capacity.saturating_sub(local.util) as i64;
            return if env.idle.is_idle() && room == 0 {
                (Migration::Task, 1)
            } else {
                (Migration::Util, room)
            };
        }
        let mut tasks = if busiest.weight == 1 || sides.prefer_sibling {
            sides.sibling_imbalance(env.idle)
        } else {
            (local.idle_cpus as i64 - busiest.idle_cpus as i64).max(0)
        };
        if level.is_numa() {
            let running = local.nr_running as i64 + 1;
            tasks = adjust_numa_imbalance(tasks, running, level.imb_numa_nr);
        }
        (Migration::Task, tasks >> 1)
    }

    /// The CPU of `group` with the most of what is to be moved.
    ///
    /// Source: v6.12 `fair.c` `sched_balance_find_src_rq`.
    pub(crate) fn find_src_cpu(&self, env: &Env, group: usize) -> Option<CpuId> {
        let level = &self.domains.levels[env.level];
        let mut busiest = None;
        let (mut most, mut most_capacity) = (0, 1);
        for cpu in level.groups[group].span.intersection(&env.cpus).iter() {
            let this = self.cpu(cpu);
            if this.nr == 0 {
                continue;
            }
            let (amount, capacity) = match env.migration {
                Migration::Load => {
                    let load = this.avg.load_avg;
                    let reduced = self.is_reduced(cpu, level.imbalance_pct);
                    if this.nr == 1 && load as i64 > env.imbalance && !reduced {
                        continue;
                    }
                    (load, this.capacity)
                }
                Migration::Util if this.nr <= 1 => continue,
                Migration::Util => (self.cpu_util_boost(cpu), 1),
                Migration::Task => (u64::from(this.nr), 1),
            };
            // amount / capacity > most / most_capacity
            if amount * most_capacity > most * capacity {
                (most, most_capacity) = (amount, capacity);
                busiest = Some(cpu);
            }
        }
        busiest
    }
}

/// Load that brings both groups nearer to the domain's average without overshooting it.
fn load_imbalance(sides: &mut Sides) -> i64 {
    if sides.local.kind < GroupType::Overloaded {
        sides.local.set_avg_load();
        let local = sides.local.avg_load;
        if local >= sides.busiest.avg_load || local >= sides.avg_load() {
            return 0;
        }
    }
    let avg_load = sides.avg_load();
    let (busiest, local) = (&sides.busiest, &sides.local);
    // A busiest group below the average makes the first term wrap and so lose against the second.
    let from_busiest = busiest.avg_load.wrapping_sub(avg_load).wrapping_mul(busiest.capacity);
    let to_local = avg_load.wrapping_sub(local.avg_load).wrapping_mul(local.capacity);
    (from_busiest.min(to_local) / CAPACITY_SCALE) as i64
}

/// Whether a group is busier than the busiest so far.
///
/// Source: v6.12 `fair.c` `update_sd_pick_busiest`.
fn is_busier(stats: &GroupStats, best: Option<(&Group, &GroupStats)>) -> bool {
    if stats.nr_fair == 0 {
        return false;
    }
    let Some((group, best)) = best else {
        // The kernel starts from a group with spare capacity, nothing running and no CPU busy.
        return stats.kind > GroupType::HasSpare || stats.idle_cpus < u64::from(u32::MAX);
    };
    if stats.kind != best.kind {
        return stats.kind > best.kind;
    }
    let fewer_idle = stats.idle_cpus < best.idle_cpus
        || (stats.idle_cpus == best.idle_cpus && stats.nr_running > best.nr_running);
    let fully_busy =
        stats.avg_load > best.avg_load || (stats.avg_load == best.avg_load && !group.is_smt);
    match stats.kind {
        GroupType::Overloaded => stats.avg_load > best.avg_load,
        GroupType::Imbalanced => false,
        GroupType::Misfit => stats.misfit_load > best.misfit_load,
        GroupType::SmtBalance if stats.idle_cpus != 0 || best.idle_cpus != 0 => fewer_idle,
        GroupType::SmtBalance | GroupType::FullyBusy => fully_busy,
        GroupType::HasSpare => fewer_idle,
    }
}
