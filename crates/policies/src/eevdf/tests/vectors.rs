// SPDX-License-Identifier: GPL-2.0-only
//! Rows of cfs-eevdf §9: the arithmetic of EEVDF.

use alloc::vec::Vec;

use schedlab_policy_api::{SchedClass, Tunables};
use schedlab_units::{Nice, VTime};

use crate::csv::rows;
use crate::eevdf::EevdfTunables;
use crate::eevdf::arith::{
    custom_slice, entity_lag, placed_lag, reweight_deadline, reweight_lag, reweight_queued,
};
use crate::fair::{Fluid, Load, Scaling, calc_delta_fair, scale_load_down};

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
fn vectors_1_to_10_calc_delta_fair() {
    for row in rows(include_str!("../vectors/t01-calc-delta-fair.csv")) {
        let got = calc_delta_fair(row.get("delta"), &load(row.text("nice")));
        assert_eq!(
            got,
            row.get::<u64>("virtual"),
            "row {}: nice {}",
            row.text("row"),
            row.text("nice")
        );
    }
}

#[test]
fn vectors_11_to_14_computed_inverse() {
    for row in rows(include_str!("../vectors/t02-inverse.csv")) {
        let load = Load::of_sum(row.get("weight"));
        assert_eq!(
            scale_load_down(load.weight),
            row.get::<u64>("scaled_down"),
            "row {}",
            row.text("row")
        );
        if let Some(inverse) = row.try_get::<u32>("inverse") {
            assert_eq!(load.inv_weight(), inverse, "row {}", row.text("row"));
        }
        if let Some(delta) = row.try_get("delta") {
            assert_eq!(
                calc_delta_fair(delta, &load),
                row.get::<u64>("virtual"),
                "row {}",
                row.text("row")
            );
        }
    }
}

#[test]
fn vectors_15_base_slice() {
    for row in rows(include_str!("../vectors/t03-tunables.csv")) {
        let cpus = row.get("cpus");
        assert_eq!(Scaling::Log.factor(cpus), row.get::<u64>("factor"), "row {}", row.text("row"));
        let slice = EevdfTunables::default().effective_base_slice(cpus);
        assert_eq!(slice, row.get::<u64>("base_slice"), "row {}", row.text("row"));
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
fn vectors_36_to_39_fluid() {
    let pairs = |text: &str| -> Vec<(u64, u64)> {
        let pair = |word: &str| {
            let (a, b) = word.split_once(':').expect("two numbers");
            (a.parse().expect("a number"), b.parse().expect("a number"))
        };
        text.split_whitespace().map(pair).collect()
    };
    for row in rows(include_str!("../vectors/t07-fluid.csv")) {
        let mut fluid = Fluid { base: VTime(row.get("base")), sum: 0, weight: 0 };
        for (vruntime, weight) in pairs(row.text("entities")) {
            fluid.add(VTime(vruntime), weight);
        }
        assert_eq!(
            (fluid.sum, fluid.weight),
            (row.get("sum"), row.get("weight")),
            "row {}",
            row.text("row")
        );
        let avg_vruntime = fluid.base.offset(fluid.mean());
        assert_eq!(avg_vruntime, VTime(row.get("avg_vruntime")), "row {}", row.text("row"));
        assert!(fluid.eligible(avg_vruntime), "row {}: V is eligible", row.text("row"));
        for (vruntime, eligible) in pairs(row.text("eligible")) {
            assert_eq!(fluid.eligible(VTime(vruntime)), eligible == 1, "row {}", row.text("row"));
        }
        let mut moved = fluid;
        moved.rebase(777);
        assert_eq!(moved.base.offset(moved.mean()), avg_vruntime, "row {}", row.text("row"));
    }
}

#[test]
fn vectors_40_to_43_lag() {
    for row in rows(include_str!("../vectors/t08-lag.csv")) {
        let wall = (2 * row.get::<u64>("slice")).max(row.get("tick"));
        let limit = calc_delta_fair(wall, &load(row.text("nice")));
        assert_eq!(limit, row.get::<u64>("limit"), "row {}", row.text("row"));
        let vlag = entity_lag(VTime(10_000_000), VTime(row.get("vruntime")), limit);
        assert_eq!(vlag, row.get::<i64>("vlag"), "row {}", row.text("row"));
    }
}

#[test]
fn vectors_44_to_48_placed_lag() {
    for row in rows(include_str!("../vectors/t09-placed-lag.csv")) {
        let (vlag, load, weight) = (row.get("vlag"), row.get("load"), row.get("weight"));
        assert_eq!(
            placed_lag(vlag, load, weight),
            row.get::<i64>("placed_lag"),
            "row {}",
            row.text("row")
        );
    }
}

#[test]
fn vectors_44_lag_once_it_counts() {
    let mut fluid = Fluid { base: VTime(0), sum: 0, weight: 0 };
    fluid.add(VTime(50_000_000), 1024);
    let placed = fluid.base.offset(fluid.mean()).offset(-placed_lag(1_000_000, 1024, 1024));
    assert_eq!(placed, VTime(48_000_000));
    fluid.add(placed, 1024);
    assert_eq!(fluid.base.offset(fluid.mean()).delta(placed), 1_000_000);
    let mut naive = Fluid { base: VTime(0), sum: 0, weight: 0 };
    for vruntime in [50_000_000, 49_000_000] {
        naive.add(VTime(vruntime), 1024);
    }
    assert_eq!(naive.mean() - 49_000_000, 500_000, "half of it without inflation");
}

#[test]
fn vectors_49_deadline() {
    for row in rows(include_str!("../vectors/t09-deadline.csv")) {
        let vslice = calc_delta_fair(2_800_000, &load(row.text("nice")));
        let distance = if row.flag("initial") { vslice / 2 } else { vslice };
        assert_eq!(
            distance,
            row.get::<u64>("distance"),
            "row {}: nice {}",
            row.text("row"),
            row.text("nice")
        );
    }
}

#[test]
fn vectors_57_58_reweight_queued() {
    let nice_0 = load("0");
    let limit = calc_delta_fair(5_600_000, &nice_0);
    for row in rows(include_str!("../vectors/t11-reweight-queued.csv")) {
        let new = load(row.text("nice")).weight;
        let avg_vruntime = VTime(10_000_000);
        let (vruntime, deadline) = (VTime(row.get("vruntime")), VTime(row.get("deadline")));
        let got = reweight_queued(avg_vruntime, vruntime, deadline, limit, nice_0.weight, new);
        assert_eq!(
            got,
            (VTime(row.get("new_vruntime")), VTime(row.get("new_deadline"))),
            "row {}",
            row.text("row")
        );
    }
}

#[test]
fn vectors_59_reweight_deadline() {
    let (old, new) = (load("0").weight, load("5").weight);
    let deadline = reweight_deadline(VTime(9_200_000), VTime(12_000_000), old, new);
    assert_eq!(deadline, VTime(17_758_805));
}

#[test]
fn vectors_57_58_60_reweight_lag() {
    for row in rows(include_str!("../vectors/t11-reweight-lag.csv")) {
        let new = load(row.text("nice")).weight;
        let got = reweight_lag(row.get("vlag"), load("0").weight, new);
        assert_eq!(got, row.get::<i64>("new_vlag"), "row {}", row.text("row"));
    }
}

#[test]
fn vectors_61_slice_hint() {
    for row in rows(include_str!("../vectors/t12-slice-hint.csv")) {
        assert_eq!(
            custom_slice(row.get("request")),
            Some(row.get("slice")),
            "row {}",
            row.text("row")
        );
    }
    assert_eq!(custom_slice(0), None);
}
