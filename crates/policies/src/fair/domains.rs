// SPDX-License-Identifier: GPL-2.0-only
//! Scheduling domains: the levels at which CPUs are balanced, built from a topology.
//!
//! Levels that would add nothing (one CPU, or the same CPUs as the level below) are left out.
//! Source: v6.12 `topology.c` `sd_init`, `cpu_attach_domain`, `build_sched_domains`; spec
//! cfs-eevdf §4E.

use alloc::vec::Vec;
use core::ops::Range;

use schedlab_policy_api::Topology;
use schedlab_units::{CpuId, CpuSet, Jiffies};

/// Full capacity of a CPU.
pub(crate) const CAPACITY_SCALE: u64 = 1024;

/// What the CPUs of a level share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LevelKind {
    /// A core.
    Smt,
    /// A last-level cache.
    Mc,
    /// A node with several caches.
    Pkg,
    /// The machine.
    Numa,
}

/// CPUs that are compared with the other groups of their domain.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// Its CPUs.
    pub(crate) span: CpuSet,
    /// Number of its CPUs.
    pub(crate) weight: u64,
    /// Number of its cores.
    pub(crate) cores: i64,
    /// Sum of the capacities of its CPUs, as last computed.
    pub(crate) capacity: u64,
    /// When the capacity is to be computed again by a newly idle CPU.
    pub(crate) next_update: Jiffies,
    /// The level below could not balance because of affinities.
    pub(crate) imbalance: bool,
    /// The CPUs are hardware threads of one core.
    pub(crate) is_smt: bool,
    /// Tasks are to be spread over such groups (the level below has SD_PREFER_SIBLING).
    pub(crate) prefer_sibling: bool,
}

/// The domains of one level.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    /// What its CPUs share.
    pub(crate) kind: LevelKind,
    /// Imbalance below this percentage is accepted.
    pub(crate) imbalance_pct: u64,
    /// Failures after which cache-hot tasks are moved too.
    pub(crate) cache_nice_tries: u32,
    /// Number of CPUs of a domain.
    pub(crate) span_weight: u64,
    /// Tasks that may stay on one node before an imbalance between nodes counts.
    pub(crate) imb_numa_nr: i64,
    /// Groups of all domains, ordered by their first core.
    pub(crate) groups: Vec<Group>,
    spans: Vec<CpuSet>,
    group_of: Vec<u32>,
    groups_per_domain: usize,
}

impl Level {
    /// The CPUs of `cpu`'s domain.
    pub(crate) fn span(&self, cpu: CpuId) -> &CpuSet {
        &self.spans[self.local(cpu) / self.groups_per_domain]
    }
    /// The group of `cpu`.
    pub(crate) fn local(&self, cpu: CpuId) -> usize {
        self.group_of[cpu.index()] as usize
    }
    /// Groups of `cpu`'s domain in the order in which the kernel's ring visits them: its own first.
    pub(crate) fn ring(&self, cpu: CpuId) -> impl Iterator<Item = usize> + use<> {
        let local = self.local(cpu);
        let Range { start, end } = self.domain_groups(local);
        (local..end).chain(start..local)
    }
    fn domain_groups(&self, local: usize) -> Range<usize> {
        let start = local - local % self.groups_per_domain;
        start..start + self.groups_per_domain
    }
    /// The CPUs share one core.
    pub(crate) fn shares_capacity(&self) -> bool {
        self.kind == LevelKind::Smt
    }
    /// The CPUs share their last-level cache.
    pub(crate) fn shares_llc(&self) -> bool {
        matches!(self.kind, LevelKind::Smt | LevelKind::Mc)
    }
    /// The domain spans nodes.
    pub(crate) fn is_numa(&self) -> bool {
        self.kind == LevelKind::Numa
    }

    fn build(topo: &Topology, kind: LevelKind, child: Option<&Level>) -> Self {
        let n_cpus = topo.n_cpus();
        let mut spans: Vec<CpuSet> = Vec::new();
        let mut groups: Vec<Group> = Vec::new();
        let mut group_of = alloc::vec![0u32; n_cpus];
        // CPUs are numbered by core first, so ascending first CPUs are ascending cores.
        for cpu in topo.cpus() {
            let span = level_span(topo, kind, cpu);
            if span.first() == Some(cpu) {
                spans.push(*span);
            }
        }
        for span in &spans {
            let mut left = *span;
            while let Some(cpu) = left.first() {
                let members = child.map_or(CpuSet::single(cpu), |child| *child.span(cpu));
                for member in members.iter() {
                    group_of[member.index()] = groups.len() as u32;
                }
                groups.push(Group::new(topo, &members, child.map(|child| child.kind)));
                left = left.difference(&members);
            }
        }
        let span_weight = spans.first().map_or(0, |span| span.len() as u64);
        let (imbalance_pct, cache_nice_tries) = match kind {
            LevelKind::Smt => (110, 0),
            LevelKind::Mc | LevelKind::Pkg => (117, 1),
            LevelKind::Numa => (117, 2),
        };
        Self {
            kind,
            imbalance_pct,
            cache_nice_tries,
            span_weight,
            imb_numa_nr: imb_numa_nr(topo),
            groups_per_domain: groups.len() / spans.len(),
            groups,
            spans,
            group_of,
        }
    }
}

impl Group {
    fn new(topo: &Topology, span: &CpuSet, child: Option<LevelKind>) -> Self {
        let weight = span.len() as u64;
        let mut cores: Vec<usize> = span.iter().map(|cpu| topo.core(cpu)).collect();
        cores.sort_unstable();
        cores.dedup();
        Self {
            span: *span,
            weight,
            cores: cores.len() as i64,
            capacity: CAPACITY_SCALE * weight,
            next_update: Jiffies(0),
            imbalance: false,
            is_smt: child == Some(LevelKind::Smt),
            prefer_sibling: child.is_some_and(|kind| kind != LevelKind::Numa),
        }
    }
}

/// CPUs of `cpu`'s domain at the level of `kind`.
fn level_span(topo: &Topology, kind: LevelKind, cpu: CpuId) -> &CpuSet {
    match kind {
        LevelKind::Smt => topo.siblings(cpu),
        LevelKind::Mc => topo.llc_cpus(cpu),
        LevelKind::Pkg => topo.node_cpus(cpu),
        LevelKind::Numa => topo.all(),
    }
}

/// Imbalance that is allowed between nodes: an eighth of a node with one cache, else one task for
/// each cache.
///
/// Source: v6.12 `topology.c` `build_sched_domains`.
fn imb_numa_nr(topo: &Topology) -> i64 {
    let node_weight = topo.node_cpus(CpuId(0)).len() as i64;
    let imb = match topo.llcs_per_node() {
        1 => node_weight >> 3,
        n => i64::from(n),
    };
    imb.max(1)
}

/// Balancing state of one CPU at one level (the changing part of `struct sched_domain`).
#[derive(Clone, Debug)]
pub(crate) struct Domain {
    /// Distance of periodic balancing in ms, before the busy factor.
    pub(crate) balance_interval: u64,
    /// When it was last balanced.
    pub(crate) last_balance: Jiffies,
    /// Periodic attempts in a row that moved nothing.
    pub(crate) nr_balance_failed: u32,
    /// Largest cost of a newly idle attempt, ns; decays by about 1 % a second.
    pub(crate) max_newidle_lb_cost: u64,
    /// When that cost was last set or decayed.
    pub(crate) last_decay: Jiffies,
    newidle_call: u32,
    newidle_success: u32,
    /// Successful newly idle attempts of 1024.
    pub(crate) newidle_ratio: u32,
}

impl Domain {
    fn new(span_weight: u64) -> Self {
        Self {
            balance_interval: span_weight,
            last_balance: Jiffies(0),
            nr_balance_failed: 0,
            max_newidle_lb_cost: 0,
            last_decay: Jiffies(0),
            newidle_call: 512,
            newidle_success: 256,
            newidle_ratio: 512,
        }
    }
    /// Counts a newly idle attempt with its weighted success.
    ///
    /// Source: v6.12.117 `fair.c` `update_newidle_stats`.
    pub(crate) fn count_newidle(&mut self, success: u32) {
        self.newidle_call += 1;
        self.newidle_success += success;
        if self.newidle_call >= 1024 {
            self.newidle_ratio = self.newidle_success;
            self.newidle_call /= 2;
            self.newidle_success /= 2;
        }
    }
    /// Records a cost in ns, 0 = none, and lets the largest decay once a second; true when it did.
    ///
    /// Source: v6.12 `fair.c` `update_newidle_cost`.
    pub(crate) fn note_cost(&mut self, now: Jiffies, hz: u64, cost: u64) -> bool {
        if cost > self.max_newidle_lb_cost {
            self.max_newidle_lb_cost = cost;
            self.last_decay = now;
            return false;
        }
        if now.after(self.last_decay.wrapping_add(hz)) {
            self.max_newidle_lb_cost = self.max_newidle_lb_cost * 253 / 256;
            self.last_decay = now;
            return true;
        }
        false
    }
}

/// What the CPUs of a last-level cache share (`struct sched_domain_shared`).
#[derive(Clone, Debug)]
pub(crate) struct LlcShared {
    /// Some core may be wholly idle.
    pub(crate) has_idle_cores: bool,
    /// Number of CPUs a wake-up looks at.
    pub(crate) nr_idle_scan: i64,
}

/// All domains of a machine.
#[derive(Clone, Debug)]
pub(crate) struct Domains {
    /// Levels bottom-up.
    pub(crate) levels: Vec<Level>,
    /// Per last-level cache.
    pub(crate) llcs: Vec<LlcShared>,
    /// CPUs per last-level cache.
    pub(crate) llc_size: u64,
    /// Cores have several hardware threads.
    pub(crate) has_smt: bool,
    domains: Vec<Domain>,
}

impl Domains {
    /// The domains of `topo`, in the state of a machine that has been idle for long.
    pub(crate) fn new(topo: &Topology) -> Self {
        use LevelKind::{Mc, Numa, Pkg, Smt};
        let mut levels: Vec<Level> = Vec::new();
        for kind in [Smt, Mc, Pkg, Numa] {
            let weight = level_span(topo, kind, CpuId(0)).len() as u64;
            let below = levels.last();
            if weight > below.map_or(1, |level| level.span_weight) {
                levels.push(Level::build(topo, kind, below));
            }
        }
        let llc_size = topo.llc_cpus(CpuId(0)).len() as u64;
        let n_llcs = topo.n_cpus() / llc_size as usize;
        let shared = LlcShared { has_idle_cores: true, nr_idle_scan: llc_size as i64 };
        let per_cpu: Vec<Domain> =
            levels.iter().map(|level| Domain::new(level.span_weight)).collect();
        Self {
            domains: topo.cpus().flat_map(|_| per_cpu.iter().cloned()).collect(),
            llcs: alloc::vec![shared; n_llcs],
            llc_size,
            has_smt: topo.threads_per_core() > 1,
            levels,
        }
    }
    /// Balancing state of `cpu` at `level`.
    pub(crate) fn domain(&self, cpu: CpuId, level: usize) -> &Domain {
        &self.domains[cpu.index() * self.levels.len() + level]
    }
    /// Balancing state of `cpu` at `level`, to be changed.
    pub(crate) fn domain_mut(&mut self, cpu: CpuId, level: usize) -> &mut Domain {
        &mut self.domains[cpu.index() * self.levels.len() + level]
    }
    /// Number of jiffies between two periodic attempts of `cpu` at `level`.
    ///
    /// Busy CPUs wait 16 times as long, less one so that levels do not meet.
    ///
    /// Source: v6.12 `fair.c` `get_sd_balance_interval`.
    pub(crate) fn interval(&self, cpu: CpuId, level: usize, busy: bool, hz: u64) -> u64 {
        let n_cpus = (self.domains.len() / self.levels.len()) as u64;
        balance_interval(self.domain(cpu, level).balance_interval, busy, hz, n_cpus)
    }
}

/// [`Domains::interval`] of `interval_ms` on a machine of `n_cpus`.
pub(crate) fn balance_interval(interval_ms: u64, busy: bool, hz: u64, n_cpus: u64) -> u64 {
    let ms = if busy { interval_ms * 16 } else { interval_ms };
    let jiffies = (ms * hz).div_ceil(1000);
    let jiffies = if busy { jiffies.saturating_sub(1) } else { jiffies };
    jiffies.clamp(1, (hz * n_cpus / 10).max(1))
}

#[cfg(test)]
mod tests {
    //! Rows of cfs-eevdf §9, and more.

    use super::*;
    use crate::csv::rows;
    use LevelKind::{Mc, Numa, Pkg, Smt};

    fn kinds(domains: &Domains) -> Vec<(LevelKind, u64)> {
        domains.levels.iter().map(|level| (level.kind, level.span_weight)).collect()
    }

    #[test]
    fn domains_of_ivb_ep_are_those_of_the_spec() {
        let topo = Topology::new(2, 1, 10, 2).expect("legal");
        let domains = Domains::new(&topo);
        assert_eq!(kinds(&domains), [(Smt, 2), (Mc, 20), (Numa, 40)]);
        let numa = &domains.levels[2];
        assert_eq!((numa.imb_numa_nr, numa.imbalance_pct, numa.cache_nice_tries), (2, 117, 2));
        let mc = &domains.levels[1];
        assert_eq!(mc.ring(CpuId(25)).collect::<Vec<_>>(), [5, 6, 7, 8, 9, 0, 1, 2, 3, 4]);
        assert_eq!(mc.groups[mc.local(CpuId(25))].span, CpuSet::parse("5,25").expect("legal"));
        assert!(mc.groups[0].is_smt && mc.groups[0].prefer_sibling);
        assert_eq!(numa.groups[1].cores, 10);
    }

    #[test]
    fn domains_that_add_nothing_are_left_out() {
        let of = |n, l, c, t| kinds(&Domains::new(&Topology::new(n, l, c, t).expect("legal")));
        assert_eq!(of(1, 1, 1, 1), []);
        assert_eq!(of(1, 1, 4, 1), [(Mc, 4)]);
        assert_eq!(of(1, 1, 1, 2), [(Smt, 2)]);
        assert_eq!(of(2, 2, 4, 2), [(Smt, 2), (Mc, 8), (Pkg, 16), (Numa, 32)]);
        assert_eq!(of(1, 4, 1, 1), [(Pkg, 4)]);
    }

    #[test]
    fn vectors_65_balance_interval() {
        for row in rows(include_str!("../eevdf/vectors/t12-interval.csv")) {
            let (hz, span) = (row.get("hz"), row.get("span"));
            assert_eq!(
                balance_interval(span, false, hz, 40),
                row.get("idle"),
                "HZ {hz} span {span}"
            );
            assert_eq!(
                balance_interval(span, true, hz, 40),
                row.get("busy"),
                "HZ {hz} span {span}"
            );
        }
    }
}
