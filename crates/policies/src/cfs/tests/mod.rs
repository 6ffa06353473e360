// SPDX-License-Identifier: GPL-2.0-only
//! Tests of CFS: the spec's vectors and traces, single behaviours, random runs.

mod behaviour;
mod random;
mod starve;
mod traces;
mod vectors;

use alloc::vec::Vec;

use schedlab_policy_api::Topology;

use crate::cfs::tunables::VARIANTS;
use crate::cfs::{Cfs, CfsTunables};
use crate::eevdf::tests::harness::{self, Bench};

/// A bench with CFS on it.
type Rig = Bench<Cfs>;

/// The spans of a machine of eight or more CPUs, on any number; no debit at the start.
const EIGHT_CPUS: [(&str, &str); 4] = [
    ("latency", "24ms"),
    ("min_granularity", "3ms"),
    ("wakeup_granularity", "4ms"),
    ("start_debit", "off"),
];

/// One CPU with the spans of a machine of eight, no debit at the start.
fn single(hz: u32, set: &[(&str, &str)]) -> Rig {
    let mut all = EIGHT_CPUS.to_vec();
    all.extend_from_slice(set);
    Rig::new(Topology::flat(1).expect("a machine"), hz, &all)
}

/// The knobs that `variant` sets, as a user writes them.
fn set_of(variant: &str) -> Vec<(&'static str, &'static str)> {
    harness::set_of::<CfsTunables>(VARIANTS, variant)
}
