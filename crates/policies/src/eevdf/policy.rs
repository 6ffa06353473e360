// SPDX-License-Identifier: GPL-2.0-only
//! EEVDF as a policy: what it says about itself and what it is built from.

use alloc::vec::Vec;

use schedlab_policy_api::{
    Build, PolicyDef, PolicyInfo, Starvation, Timekeeping, Tunables, WorkConservation,
};
use schedlab_units::TaskId;

use super::entity::Entity;
use super::server::Server;
use super::tunables::{EevdfTunables, VARIANTS};
use crate::fair::{FairPolicy, Tree, parts_of};

/// What EEVDF keeps beside the entities.
pub struct EevdfState {
    pub(super) knobs: EevdfTunables,
    pub(super) base_slice: u64,
    /// The base of a queue's keys moves to V.
    pub(super) moves_base: bool,
    /// `sched_yield` gives up the rest of the slice.
    pub(super) yield_forfeits: bool,
    pub(super) servers: Vec<Server>,
    /// A delayed task that was woken before it had been switched from, so that no preemption test
    /// follows.
    pub(super) woken_in_switch: Option<TaskId>,
    /// Number of dequeues that were delayed.
    pub(super) n_delayed: u64,
    /// How many of them ended by a wake-up.
    pub(super) n_requeued: u64,
}

/// Earliest eligible virtual deadline first, with real-time classes above.
pub type Eevdf = FairPolicy<EevdfState, Entity>;

impl PolicyDef for Eevdf {
    type Tunables = EevdfTunables;
    const INFO: PolicyInfo = PolicyInfo {
        name: "eevdf",
        about: "earliest eligible virtual deadline first, the fair class of Linux 6.12",
        variants: VARIANTS,
        tunables: EevdfTunables::SPECS,
        time: Timekeeping::MODERN,
        work_conserving: WorkConservation::Unbounded(
            "an idle CPU pulls waiting tasks only when it balances: newly idle, if it idles for \
             longer on average than the search takes, else at intervals of some ticks; tasks that \
             ran a moment ago stay where they are, and so does one that wakes up delayed; two \
             nodes bear a small imbalance (spec cfs-eevdf §4D, §4E)",
        ),
        starvation: Starvation {
            bound: Some(
                "the lag of a hog stays within its longest turn (Stoica and Abdel-Wahab 1995, \
                 theorem 1)",
            ),
            except: Some(
                "beside tasks that sleep, since placing them moves the mean by a lag that is \
                 clamped (spec cfs-eevdf §4D)",
            ),
        },
    };

    fn build(tunables: &EevdfTunables, build: Build<'_>) -> Self {
        let n_cpus = build.topo.n_cpus();
        let tree = match tunables.equal_deadlines {
            0 => Tree::new(),
            _ => Tree::in_order_of_vruntime(),
        };
        // Slices of CPUs and their servers.
        let n_timers = 2 * n_cpus as u32;
        let parts = parts_of!(tunables, tree, n_timers);
        let own = EevdfState {
            base_slice: tunables.effective_base_slice(n_cpus),
            moves_base: tunables.vruntime_base == 0,
            yield_forfeits: tunables.yield_mode == 0,
            servers: alloc::vec![Server::STOPPED; n_cpus],
            woken_in_switch: None,
            n_delayed: 0,
            n_requeued: 0,
            knobs: tunables.clone(),
        };
        Self::new(parts, own, build)
    }
}
