// SPDX-License-Identifier: GPL-2.0-only
//! Random legal runs with all invariants on, and a naive twin of the pick.

use alloc::vec::Vec;

use proptest::prelude::*;
use schedlab_units::{CpuId, TaskId};

use super::{Rig, single};
use crate::cfs::Cfs;
use crate::eevdf::tests::random::{Chaos, SHAPES, config, run_with_some_knobs};

const SETTINGS: [&[(&str, &str)]; 8] = [
    &[],
    &[("slice_cap", "off"), ("long_sleep", "minute"), ("child_runs_first", "on")],
    &[("next_buddy", "on"), ("ni_random", "on"), ("latency", "3ms"), ("min_granularity", "1ms")],
    &[
        ("start_debit", "off"),
        ("gentle_fair_sleepers", "off"),
        ("base_slice", "off"),
        ("last_buddy", "off"),
        ("util_est", "off"),
    ],
    &[
        ("migration_cost", "0"),
        ("newidle_cost_per_cpu", "0"),
        ("wakeup_granularity", "100us"),
        ("rr_timeslice", "2ms"),
        ("rt_period", "4ms"),
        ("rt_runtime", "1ms"),
        ("ttwu_queue", "off"),
    ],
    &[("eevdf", "on"), ("placement", "lag_last"), ("fair_sleepers", "on")],
    &[("eevdf", "on"), ("placement", "lag_first"), ("next_buddy", "on"), ("latency_nice", "-7")],
    &[
        ("eevdf", "on"),
        ("placement", "lag_first"),
        ("preserve_lag_scale", "on"),
        ("deadline", "keep"),
        ("migration_cost", "0"),
    ],
];

/// The naive twin of the tree: the smallest of all virtual times, the current task's included.
fn least(rig: &Rig, tasks: &[TaskId]) -> i64 {
    tasks.iter().map(|task| rig.figure(*task, "vruntime")).min().expect("a task")
}

proptest! {
    #![proptest_config(config())]
    #[test]
    fn random_runs_keep_all_invariants(
        shape in 0..SHAPES.len(),
        setting in 0..SETTINGS.len(),
        seed in any::<u64>(),
    ) {
        let run = || Chaos::<Cfs>::new(SHAPES[shape], seed, SETTINGS[setting]).run(600);
        prop_assert_eq!(run(), run());
    }

    #[test]
    fn random_runs_with_random_knobs_keep_all_invariants(
        shape in 0..SHAPES.len(),
        seed in any::<u64>(),
    ) {
        let (once, again) = run_with_some_knobs::<Cfs>(SHAPES[shape], seed, 600);
        prop_assert_eq!(once, again);
    }

    #[test]
    fn pick_without_buddies_is_the_least_virtual_time(
        nice in prop::collection::vec(-20i32..20, 1..8),
        steps in prop::collection::vec(1u64..5_000_000, 1..60),
    ) {
        let mut rig = single(1000, &[("last_buddy", "off"), ("start_debit", "on")]);
        let tasks: Vec<TaskId> = nice.iter().map(|nice| rig.spawn_nice(*nice)).collect();
        for step in steps {
            rig.now += step;
            let before = rig.core.curr(CpuId(0));
            let picked = rig.schedule(0).expect("all are runnable");
            let vruntime = rig.figure(picked, "vruntime");
            prop_assert_eq!(vruntime, least(&rig, &tasks));
            if before != Some(picked) {
                prop_assert_eq!(rig.figure(picked, "ran_since_pick"), 0);
            }
        }
    }
}
