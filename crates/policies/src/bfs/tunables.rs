// SPDX-License-Identifier: GPL-2.0-only
//! Knobs and variants of the policy, and their resolved form for one machine.

use schedlab_policy_api::{Build, Variant};
use schedlab_units::{CpuId, Hz};

use super::arith::{self, N_USER_PRIO};

schedlab_policy_api::tunables! {
    /// Knobs of [`crate::Bfs`]; the defaults are plain 0.357.
    pub struct BfsTunables {
        /// Quota in ms of 2^20 ns; all deadlines grow with it. 0 = the kernel's own value, 6
        /// scaled by the number of CPUs; any other value is used as it is.
        rr_interval: int = 0 => 0..=1000, "0.357 sched_bfs.c rr_interval, sched_init_smp";
        /// Share of time in percent that ISO tasks may take before they lose their priority;
        /// 0 = never any priority, 100 = always.
        iso_cpu: int = 70 => 0..=100, "0.357 sched_bfs.c iso_cpu";
        /// A new deadline is multiplied by the depth of the process in the tree of forks.
        fork_depth_penalty: flag = false, "C. Kolivas, 8 Oct 2010, sysctl fork_depth_penalty \
             (1 there)";
        /// A new deadline grows with the number of running threads of the process.
        group_thread_accounting: flag = false, "C. Kolivas, 8 Oct 2010, sysctl \
             group_thread_accounting";
        /// A task that is queued has its deadline no later than a new one would have been when the
        /// deadline was set.
        deadline_cap: flag = false, "C. Kolivas, 8 Oct 2010, enqueue_task; absent in plain 0.357";
        /// A new thread counts as one level of depth, like a new process.
        threads_inc_depth: flag = false, "spec bfs §5, a trial told of in the last post of Oct 2010";
        /// Before the fork-depth patch: a counter of running threads that forks inherit, so that
        /// branches are punished. Switches fork_depth_penalty, group_thread_accounting and
        /// deadline_cap off.
        branch_penalty: flag = false, "C. Kolivas, patch of 4 Oct 2010 as reconstructed in spec \
             bfs §5";
        /// Time is charged from the dispatch on, not from when the task last left a CPU.
        charge_from_dispatch: flag = false, "BFS 0.404; repairs quirk Q1 of spec bfs §6";
        /// A task that is chosen again gets its new quota and deadline into the CPU's copy.
        reload_on_rerun: flag = false, "BFS 0.428 in part; repairs quirk Q2 of spec bfs §6";
        /// A CPU that finds nothing it may run among queued tasks counts as idle.
        keep_idle_bit: flag = false, "sticky-task tree of 2.6.35; repairs quirk Q6 of spec bfs §6";
        /// Deadline offsets are computed in 64 bits and do not wrap.
        wide_offset: flag = false, "spec bfs §5; repairs quirk Q9 of §6";
        /// Depth in the tree of forks of the tasks that start the workload; 1 is a child of the
        /// boot task.
        start_depth: int = 1 => 0..=1000, "spec bfs §3, where the tree begins";
    }
}

/// Presets, the default first.
pub(super) const VARIANTS: &[Variant] = &[
    Variant { name: "0.357", about: "for Linux 2.6.35, August 2010, without patches", set: &[] },
    Variant {
        name: "0.357-depth",
        about: "with the hierarchical tree-based penalty of 8 October 2010",
        set: &[("fork_depth_penalty", 1), ("deadline_cap", 1)],
    },
    Variant {
        name: "0.357-branch",
        about: "with \"group as entities\" of 4 October 2010 and its inherited counter (inferred)",
        set: &[("branch_penalty", 1)],
    },
];

/// Those with a file in /proc/sys/kernel.
///
/// Source: 0.357 with the patch of 8 Oct 2010, `sysctl.c`; spec §5.
pub(super) const LIVE: &[&str] =
    &["rr_interval", "iso_cpu", "fork_depth_penalty", "group_thread_accounting"];

/// The knobs as the policy uses them on its machine.
#[derive(Clone, Debug)]
pub(super) struct Knobs {
    n_cpus: usize,
    hz: Hz,
    /// Whether the kernel is one for several CPUs.
    pub(super) smp: bool,
    /// Whether all CPUs share a cache, so that none is farther than another.
    pub(super) one_cache: bool,
    pub(super) tick_ns: u64,
    pub(super) rr: i32,
    /// In 1024-ns units.
    pub(super) quota: i32,
    /// Half a tick in 1024-ns units by name (HALF_JIFFY_US); the kernel divides by 1000.
    pub(super) half_jiffy_us: i32,
    pub(super) half_jiffy_ns: u64,
    /// Deadline offset by user priority, ns.
    pub(super) offset: [u64; N_USER_PRIO],
    /// Weight of distances by user priority, ns.
    pub(super) locality_weight: [u64; N_USER_PRIO],
    pub(super) fork_depth: bool,
    pub(super) group_accounting: bool,
    pub(super) cap: bool,
    pub(super) threads_inc_depth: bool,
    pub(super) branch: bool,
    pub(super) charge_from_dispatch: bool,
    pub(super) reload_on_rerun: bool,
    pub(super) keep_idle_bit: bool,
    pub(super) start_depth: i32,
}

impl Knobs {
    /// Resolves `t` for the machine of `build`.
    pub(super) fn new(t: &BfsTunables, build: Build<'_>) -> Self {
        let n_cpus = build.topo.n_cpus();
        let one_cache = build.topo.llc_cpus(CpuId(0)).len() == n_cpus;
        Self::on(t, n_cpus, one_cache, build.hz)
    }

    /// The same with the tunables `t`. Deadlines and quotas that were handed out stay.
    pub(super) fn retuned(&self, t: &BfsTunables) -> Self {
        Self::on(t, self.n_cpus, self.one_cache, self.hz)
    }

    fn on(t: &BfsTunables, n_cpus: usize, one_cache: bool, hz: Hz) -> Self {
        let small = |value: i64| i32::try_from(value).expect("ranges are declared above");
        let rr = match t.rr_interval {
            0 => arith::scaled_rr_interval(n_cpus),
            given => small(given),
        };
        Self {
            n_cpus,
            hz,
            smp: n_cpus > 1,
            one_cache,
            tick_ns: hz.tick().as_ns(),
            rr,
            quota: arith::quota(rr),
            half_jiffy_us: (1_000_000 / hz.get() / 2) as i32,
            half_jiffy_ns: u64::from(1_000_000_000 / hz.get() / 2),
            offset: core::array::from_fn(|u| arith::deadline_offset(u, rr, t.wide_offset)),
            locality_weight: core::array::from_fn(|u| arith::locality_weight(u, rr)),
            fork_depth: t.fork_depth_penalty && !t.branch_penalty,
            group_accounting: t.group_thread_accounting && !t.branch_penalty,
            cap: t.deadline_cap && !t.branch_penalty,
            threads_inc_depth: t.threads_inc_depth,
            branch: t.branch_penalty,
            charge_from_dispatch: t.charge_from_dispatch,
            reload_on_rerun: t.reload_on_rerun,
            keep_idle_bit: t.keep_idle_bit,
            start_depth: small(t.start_depth),
        }
    }
}
