// SPDX-License-Identifier: GPL-2.0-only
//! CFS as a policy: what it says about itself and what it is built from.

use schedlab_policy_api::{
    Build, PolicyDef, PolicyInfo, Starvation, Timekeeping, Tunables, WorkConservation,
};

use super::arith::Spans;
use super::entity::Entity;
use super::tunables::{CfsTunables, VARIANTS};
use crate::fair::{FairPolicy, Tree, parts_of};

/// What CFS keeps beside the entities.
pub struct CfsState {
    pub(super) knobs: CfsTunables,
    pub(super) spans: Spans,
    /// Wall time per virtual deadline with the EEVDF patches, ns.
    pub(super) request: u64,
}

/// The completely fair scheduler, with real-time classes above.
pub type Cfs = FairPolicy<CfsState, Entity>;

impl PolicyDef for Cfs {
    type Tunables = CfsTunables;
    const INFO: PolicyInfo = PolicyInfo {
        name: "cfs",
        about: "completely fair scheduler, the fair class of Linux 2.6.23 to 6.5, as of 6.3",
        variants: VARIANTS,
        tunables: CfsTunables::SPECS,
        time: Timekeeping::MODERN,
        work_conserving: WorkConservation::Unbounded(
            "an idle CPU pulls waiting tasks only when it balances: newly idle, if it idles for \
             longer on average than the search takes, else at intervals of some ticks; tasks that \
             ran a moment ago stay where they are, and two nodes bear a small imbalance \
             (spec cfs-eevdf §4E); and a CPU idles rather than let real-time tasks run for more \
             than `rt_runtime` in a period",
        ),
        starvation: Starvation {
            bound: Some(
                "while it waits everybody catches up with its virtual time, sleepers from at most \
                 their credit behind (spec cfs-eevdf §4A)",
            ),
            except: Some(
                "under the EEVDF patches beside tasks that sleep, since placing them moves the \
                 mean away from a lag they keep, or lose (spec cfs-eevdf §4B, Q2, Q7)",
            ),
        },
    };

    fn build(tunables: &CfsTunables, build: Build<'_>) -> Self {
        let n_cpus = build.topo.n_cpus();
        let parts = parts_of!(tunables, Tree::in_order_of_vruntime(), 0);
        let own = CfsState {
            spans: tunables.spans(n_cpus),
            request: tunables.request(n_cpus),
            knobs: tunables.clone(),
        };
        Self::new(parts, own, build)
    }
}
