// SPDX-License-Identifier: GPL-2.0-only
//! How near CPUs are, and which idle one a task is offered.

use schedlab_policy_api::Topology;
use schedlab_units::{CpuId, CpuSet};

/// Nodes that one NODE-level scheduling domain spans (`SD_NODES_PER_DOMAIN`).
const NODES_PER_DOMAIN: usize = 16;

/// Cache distance from `from` to `to`: 0 within a shared cache, 1 within the node-level domain,
/// else 3.
///
/// The node-level domain holds the 16 nearest nodes; among nodes equally far these are the ones
/// that follow, as `find_next_best_node` takes them.
///
/// Source: 0.357 `sched_bfs.c` `sched_init_smp`; spec §2.
#[inline]
pub(super) fn locality(topo: &Topology, from: CpuId, to: CpuId) -> u64 {
    if topo.shares_llc(from, to) {
        return 0;
    }
    let nodes = topo.nodes() as usize;
    let steps = (topo.node(to) + nodes - topo.node(from)) % nodes;
    if steps < NODES_PER_DOMAIN { 1 } else { 3 }
}

/// The best of the idle CPUs `idle` for a task that last ran on `origin`; `foreign` says that the
/// last task which left `origin` is another one.
///
/// Source: 0.357 `sched_bfs.c` `resched_best_idle`; spec §4.5, quirk Q5.
pub(super) fn best_idle(
    topo: &Topology,
    candidates: &CpuSet,
    idle: &CpuSet,
    origin: CpuId,
    foreign: bool,
) -> Option<CpuId> {
    let mut best: Option<(u32, CpuId)> = None;
    let own = candidates.contains(origin).then_some(origin);
    let others = candidates.iter_after(origin).filter(|cpu| *cpu != origin);
    for cpu in own.into_iter().chain(others) {
        let rank = rank(topo, idle, origin, foreign, cpu);
        if best.is_none_or(|(lowest, _)| rank < lowest) {
            best = Some((rank, cpu));
        }
        if rank <= 1 {
            break;
        }
    }
    best.map(|(_, cpu)| cpu)
}

/// Demerits of a candidate.
fn rank(topo: &Topology, idle: &CpuSet, origin: CpuId, foreign: bool, cpu: CpuId) -> u32 {
    let mut rank = 0;
    let distance = locality(topo, origin, cpu);
    if distance != 0 && foreign {
        rank += 2;
        if distance > 1 {
            rank += 8;
        }
    }
    // A CPU of its own cache or core counts as idle there, even if its bit were clear.
    if topo.llc_cpus(cpu).len() > 1 && !topo.llc_cpus(cpu).is_subset(idle) {
        rank += 1;
    }
    if topo.siblings(cpu).len() > 1 && !topo.siblings(cpu).is_subset(idle) {
        rank += 4;
    }
    rank
}
