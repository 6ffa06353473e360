// SPDX-License-Identifier: GPL-2.0-only
//! The policy against the literal reference: the same inputs, the same machine after each.

use proptest::prelude::*;
use schedlab_units::Nanos;

use super::reference::MultiQueue;
use crate::goodness::tests::twin::{Pair, op};
use crate::mq::Mq;

/// Settings that reach every branch, alone and together.
const SETTINGS: &[&str] =
    &["", "t=0", "prev_bias=off", "t=0;prev_bias=off;pcp=20", "rt_scale=2;pcp=0", "t=3;pcp=1"];

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]
    #[test]
    fn policy_behaves_like_literal_reference(
        n_cpus in 1u32..=5,
        hz in prop_oneof![3 => Just(100u32), 1 => Just(1024)],
        set in prop::sample::select(SETTINGS),
        step in prop_oneof![3 => Just(1u64), 1 => Just(900_000)],
        ops in prop::collection::vec(op(), 1..400),
    ) {
        let mut pair = Pair::<Mq, MultiQueue>::new(n_cpus, hz, set);
        for op in &ops {
            pair.now = pair.now + Nanos::from_us(step);
            pair.apply(op);
            pair.compare(op);
        }
    }
}
