// SPDX-License-Identifier: GPL-2.0-only
//! The vectors of spec cfs-eevdf §9 that concern the arithmetic.

use alloc::vec::Vec;
use core::fmt::Debug;
use core::str::FromStr;

use schedlab_policy_api::{SchedClass, Tunables};
use schedlab_units::{Nice, VTime};

use crate::eevdf::EevdfTunables;
use crate::eevdf::arith::{custom_slice, entity_lag, placed_lag, reweight_lag, reweight_queued};
use crate::fair::{Fluid, Load, Scaling, calc_delta_fair, scale_load_down};

/// One line of a vector file.
pub(crate) struct Row<'a> {
    cells: Vec<&'a str>,
}

impl<'a> Row<'a> {
    pub(crate) fn text(&self, at: usize) -> &'a str {
        self.cells[at]
    }
    pub(crate) fn get<T: FromStr<Err: Debug>>(&self, at: usize) -> T {
        self.cells[at].parse().expect("a number")
    }
    /// None for an empty cell.
    pub(crate) fn try_get<T: FromStr<Err: Debug>>(&self, at: usize) -> Option<T> {
        (!self.cells[at].is_empty()).then(|| self.get(at))
    }
    pub(crate) fn flag(&self, at: usize) -> bool {
        self.get::<u8>(at) == 1
    }
    /// Number of the row in the spec, for messages.
    pub(crate) fn name(&self) -> &'a str {
        self.cells[0]
    }
}

/// The rows of a vector file after its comment and its heading.
pub(crate) fn rows(text: &str) -> impl Iterator<Item = Row<'_>> {
    let lines = text.lines().filter(|line| !line.starts_with('#')).skip(1);
    lines.map(|line| Row { cells: line.split(',').collect() })
}

fn load(nice: &str) -> Load {
    match nice {
        "idle" => Load::of_task(SchedClass::Idle, Nice::ZERO),
        nice => {
            let nice = nice.parse().ok().and_then(Nice::new).expect("a nice value");
            Load::of_task(SchedClass::Normal, nice)
        }
    }
}

#[test]
fn vectors_calc_delta_fair() {
    for row in rows(include_str!("../vectors/t01-calc-delta-fair.csv")) {
        let got = calc_delta_fair(row.get(2), &load(row.text(1)));
        assert_eq!(got, row.get::<u64>(3), "row {}: nice {}", row.name(), row.text(1));
    }
}

#[test]
fn vectors_computed_inverse() {
    for row in rows(include_str!("../vectors/t02-inverse.csv")) {
        let load = Load::of_sum(row.get(1));
        assert_eq!(scale_load_down(load.weight), row.get::<u64>(2), "row {}", row.name());
        if let Some(inverse) = row.try_get::<u32>(3) {
            assert_eq!(load.inv_weight(), inverse, "row {}", row.name());
        }
        if let Some(delta) = row.try_get(4) {
            assert_eq!(calc_delta_fair(delta, &load), row.get::<u64>(5), "row {}", row.name());
        }
    }
}

#[test]
fn vectors_tunables() {
    for row in rows(include_str!("../vectors/t03-tunables.csv")) {
        let cpus = row.get(1);
        assert_eq!(Scaling::Log.factor(cpus), row.get::<u64>(2), "row {}", row.name());
        let slice = EevdfTunables::default().effective_base_slice(cpus);
        assert_eq!(slice, row.get::<u64>(3), "row {}", row.name());
    }
}

#[test]
fn tunables_scaling_has_three_forms() {
    assert_eq!([Scaling::None.factor(40), Scaling::Linear.factor(40)], [1, 8]);
    let mut knobs = EevdfTunables::default();
    knobs.set_text("tunable_scaling", "none").expect("legal");
    assert_eq!(knobs.effective_base_slice(40), 700_000);
    knobs.set_text("base_slice", "3ms").expect("legal");
    assert_eq!(knobs.effective_base_slice(1), 3_000_000);
}

#[test]
fn vectors_fluid() {
    let pairs = |text: &str| -> Vec<(u64, u64)> {
        let pair = |word: &str| {
            let (a, b) = word.split_once(':').expect("two numbers");
            (a.parse().expect("a number"), b.parse().expect("a number"))
        };
        text.split_whitespace().map(pair).collect()
    };
    for row in rows(include_str!("../vectors/t07-fluid.csv")) {
        let mut fluid = Fluid { base: VTime(row.get(1)), sum: 0, weight: 0 };
        for (vruntime, weight) in pairs(row.text(2)) {
            fluid.add(VTime(vruntime), weight);
        }
        assert_eq!((fluid.sum, fluid.weight), (row.get(3), row.get(4)), "row {}", row.name());
        let avg_vruntime = fluid.base.offset(fluid.mean());
        assert_eq!(avg_vruntime, VTime(row.get(5)), "row {}", row.name());
        assert!(fluid.eligible(avg_vruntime), "row {}: V is eligible", row.name());
        for (vruntime, eligible) in pairs(row.text(6)) {
            assert_eq!(fluid.eligible(VTime(vruntime)), eligible == 1, "row {}", row.name());
        }
        let mut moved = fluid;
        moved.rebase(777);
        assert_eq!(moved.base.offset(moved.mean()), avg_vruntime, "row {}", row.name());
    }
}

#[test]
fn vectors_lag() {
    for row in rows(include_str!("../vectors/t08-lag.csv")) {
        let wall = (2 * row.get::<u64>(2)).max(row.get(3));
        let limit = calc_delta_fair(wall, &load(row.text(1)));
        assert_eq!(limit, row.get::<u64>(4), "row {}", row.name());
        let vlag = entity_lag(VTime(10_000_000), VTime(row.get(5)), limit);
        assert_eq!(vlag, row.get::<i64>(6), "row {}", row.name());
    }
}

#[test]
fn vectors_placed_lag() {
    for row in rows(include_str!("../vectors/t09-placed-lag.csv")) {
        let (vlag, load, weight) = (row.get(1), row.get(2), row.get(3));
        assert_eq!(placed_lag(vlag, load, weight), row.get::<i64>(4), "row {}", row.name());
    }
}

#[test]
fn placed_entity_has_its_lag_once_it_counts() {
    let mut fluid = Fluid { base: VTime(0), sum: 0, weight: 0 };
    fluid.add(VTime(50_000_000), 1024);
    let placed = fluid.base.offset(fluid.mean()).offset(-placed_lag(1_000_000, 1024, 1024));
    assert_eq!(placed, VTime(48_000_000));
    fluid.add(placed, 1024);
    assert_eq!(fluid.base.offset(fluid.mean()).delta(placed), 1_000_000);
}

#[test]
fn vectors_deadline() {
    for row in rows(include_str!("../vectors/t09-deadline.csv")) {
        let vslice = calc_delta_fair(2_800_000, &load(row.text(1)));
        let distance = if row.flag(2) { vslice / 2 } else { vslice };
        assert_eq!(distance, row.get::<u64>(3), "row {}: nice {}", row.name(), row.text(1));
    }
}

#[test]
fn vectors_reweight_queued() {
    let nice_0 = load("0");
    let limit = calc_delta_fair(5_600_000, &nice_0);
    for row in rows(include_str!("../vectors/t11-reweight-queued.csv")) {
        let new = load(row.text(1)).weight;
        let avg_vruntime = VTime(10_000_000);
        let (vruntime, deadline) = (VTime(row.get(2)), VTime(row.get(3)));
        let got = reweight_queued(avg_vruntime, vruntime, deadline, limit, nice_0.weight, new);
        assert_eq!(got, (VTime(row.get(4)), VTime(row.get(5))), "row {}", row.name());
    }
}

#[test]
fn vectors_reweight_lag() {
    for row in rows(include_str!("../vectors/t11-reweight-lag.csv")) {
        let new = load(row.text(1)).weight;
        let got = reweight_lag(row.get(2), load("0").weight, new);
        assert_eq!(got, row.get::<i64>(3), "row {}", row.name());
    }
}

#[test]
fn vectors_slice_hint() {
    for row in rows(include_str!("../vectors/t12-slice-hint.csv")) {
        assert_eq!(custom_slice(row.get(1)), Some(row.get(2)), "row {}", row.name());
    }
    assert_eq!(custom_slice(0), None);
}
