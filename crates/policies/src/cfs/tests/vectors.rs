// SPDX-License-Identifier: GPL-2.0-only
//! Rows of cfs-eevdf §9: the arithmetic of CFS and of the first EEVDF patches.

use schedlab_kcore::NewTask;
use schedlab_policy_api::{SchedClass, Topology};
use schedlab_units::{CpuId, Hz, Nice, VTime};

use super::{EIGHT_CPUS, Rig, single};
use crate::cfs::CfsTunables;
use crate::cfs::arith::{
    LONG_SLEEP, Lead, inflated_lag, latency_request, place_lag_first, place_lag_last,
    place_sleeper, share_of_period, truncated_mean, wakeup_lead,
};
use crate::csv::rows;
use crate::eevdf::tests::harness::knobs;
use crate::fair::Fluid;
use crate::fair::{Load, Scaling};

fn load(nice: i32) -> Load {
    Load::of_task(SchedClass::Normal, Nice::new(nice).expect("a nice value"))
}

#[test]
fn vectors_15_spans() {
    for row in rows(include_str!("../vectors/t03-spans.csv")) {
        let cpus = row.get("cpus");
        assert_eq!(Scaling::Log.factor(cpus), row.get::<u64>("factor"), "row {}", row.text("row"));
        let spans = CfsTunables::default().spans(cpus);
        let scaled = [spans.latency, spans.min_granularity, spans.wakeup_granularity];
        assert_eq!(
            scaled,
            [row.get("latency"), row.get("min_granularity"), row.get("wakeup_granularity")],
            "row {}",
            row.text("row")
        );
        assert_eq!((spans.idle_min_granularity, spans.nr_latency()), (750_000, 8));
    }
}

#[test]
fn vectors_16_tick() {
    for row in rows(include_str!("../vectors/t03-tick.csv")) {
        let tick = Hz::new(row.get("hz")).tick().as_ns();
        assert_eq!(
            (tick, tick >> 1),
            (row.get("tick"), row.get("half")),
            "row {}",
            row.text("row")
        );
    }
}

#[test]
fn vectors_17_to_24_slice() {
    for row in rows(include_str!("../vectors/t04-slice.csv")) {
        let mut rig = single(1000, &[]);
        let queue =
            row.text("queue").split(' ').map(|nice| nice.parse::<i32>().expect("a nice value"));
        let mut tasks = alloc::vec::Vec::new();
        for nice in queue {
            tasks.push((nice, rig.spawn_nice(nice)));
        }
        let nice: i32 = row.get("nice");
        let weights: u64 = tasks.iter().map(|(nice, _)| load(*nice).weight).sum();
        let own = load(nice).weight;
        if row.flag("queued") {
            let (_, task) = tasks.iter().find(|(of, _)| *of == nice).expect("it is queued");
            assert_eq!(
                rig.figure(*task, "slice"),
                row.get::<i64>("slice"),
                "row {}",
                row.text("row")
            );
        }
        let (nr, sum) = if row.flag("queued") {
            (tasks.len() as u64, weights)
        } else {
            (tasks.len() as u64 + 1, weights + own)
        };
        let spans = knobs::<CfsTunables>(&EIGHT_CPUS).spans(1);
        let raw = share_of_period(spans.period(nr), own, sum);
        assert_eq!(raw, row.get::<u64>("raw"), "row {}", row.text("row"));
        assert_eq!(
            raw.max(spans.min_granularity),
            row.get::<u64>("slice"),
            "row {}",
            row.text("row")
        );
    }
}

#[test]
fn vectors_23_24_debit() {
    for row in rows(include_str!("../vectors/t04-debit.csv")) {
        let mut rig = single(1000, &[("start_debit", "on")]);
        let parent = rig.spawn_nice(0);
        rig.schedule(0);
        let nice = Nice::new(row.get("nice")).expect("a nice value");
        let new = NewTask { nice, ..rig.normal() };
        // Beyond the start, where the queue's clock is behind its only task.
        rig.run_until(100_000_000);
        let child = rig.core.fork(rig.time(), CpuId(0), Some(parent), &new);
        rig.core.wake_up_new(rig.time(), CpuId(0), child, None);
        assert_eq!(rig.figure(child, "ahead"), row.get::<i64>("debit"), "row {}", row.text("row"));
        assert_eq!(rig.figure(parent, "ahead"), 0, "row {}", row.text("row"));
    }
}

#[test]
fn vectors_25_to_28_place() {
    let spans = knobs::<CfsTunables>(&EIGHT_CPUS).spans(1);
    for row in rows(include_str!("../vectors/t05-place.csv")) {
        let is_idle = row.text("class") == "idle";
        let credit = if is_idle { spans.min_granularity } else { spans.latency } >> 1;
        let min_vruntime = VTime(100_000_000);
        let placed = place_sleeper(VTime(row.get("own")), min_vruntime, credit, false);
        assert_eq!(placed, VTime(row.get("placed")), "row {}", row.text("row"));
    }
}

#[test]
fn vectors_29_to_32_lead() {
    for row in rows(include_str!("../vectors/t05-lead.csv")) {
        let (woken, behind) = (VTime(1_000_000_000), row.get::<i64>("behind"));
        let lead = wakeup_lead(woken.offset(behind), woken, 4_000_000, &load(row.get("nice")));
        let answer = match lead {
            Lead::None => -1,
            Lead::Small => 0,
            Lead::Large => 1,
        };
        assert_eq!(answer, row.get::<i64>("answer"), "row {}", row.text("row"));
    }
}

#[test]
fn vectors_33_long_sleep() {
    assert_eq!(LONG_SLEEP, 9_007_199_254_740_992);
    let (own, min) = (VTime(200), VTime(1_000));
    assert_eq!(place_sleeper(own, min, 100, false), VTime(900));
    assert_eq!(place_sleeper(VTime(2_000), min, 100, true), VTime(900));
}

#[test]
fn vectors_34_35_request() {
    for row in rows(include_str!("../vectors/t06-request.csv")) {
        let latency_nice = Nice::new(row.get("latency_nice")).expect("a latency-nice value");
        let request = latency_request(row.get("min_granularity"), latency_nice);
        assert_eq!(request, row.get::<u64>("request"), "row {}: {latency_nice:?}", row.text("row"));
    }
    let knobs = knobs::<CfsTunables>(&[("latency_nice", "-5"), ("min_granularity", "3ms")]);
    assert_eq!(knobs.request(1), 984_299);
}

#[test]
fn vectors_36_38_39_truncated_mean() {
    for row in rows(include_str!("../vectors/t07-mean.csv")) {
        let mut fluid = Fluid { base: VTime(row.get("base")), sum: 0, weight: 0 };
        for pair in row.text("entities").split(' ') {
            let (vruntime, weight) = pair.split_once(':').expect("two numbers");
            fluid
                .add(VTime(vruntime.parse().expect("a number")), weight.parse().expect("a number"));
        }
        let mean = fluid.base.offset(truncated_mean(&fluid));
        assert_eq!(mean, VTime(row.get("mean")), "row {}", row.text("row"));
    }
}

/// The credit comes from the policy, the rest from the functions it uses.
#[test]
fn vectors_50_to_55_place_around_mean() {
    let topo = Topology::flat(8).expect("a machine");
    for row in rows(include_str!("../vectors/t10-place.csv")) {
        let set = [
            ("placement", row.text("placement")),
            ("eevdf", row.text("eevdf")),
            ("fair_sleepers", "on"),
        ];
        let mut rig = Rig::new(topo.clone(), row.get("hz"), &set);
        let nice = Nice::new(row.get("nice")).expect("a nice value");
        let task = rig.spawn(&NewTask { nice, ..rig.normal() }, Some(0));
        let credit = rig.core.policy().sleeper_credit(task, false, false);
        let (own, mean, lag) = (VTime(row.get("own")), VTime(50_000_000), 300_000);
        let placed = if row.text("placement") == "lag_last" {
            place_lag_last(own, mean, lag, credit, false)
        } else {
            place_lag_first(own, mean, lag, credit)
        };
        assert_eq!(placed, VTime(row.get("placed")), "row {}", row.text("row"));
    }
}

/// Of two equal tasks the one that runs `δ` between its wake-ups loses half of its
/// lag with each, without inflation.
#[test]
fn vectors_56_lag_evaporates() {
    let w = load(0).weight;
    let (mut lag, mut left) = (500_000i64, alloc::vec::Vec::new());
    for _ in 0..8 {
        // The other is at 0; the first is placed at V − lag = −lag and runs on.
        let mut fluid = Fluid { base: VTime(0), sum: 0, weight: 0 };
        fluid.add(VTime(0), w);
        let placed = place_lag_first(VTime(0), VTime(0), lag, None).advance(2_650);
        fluid.add(placed, w);
        lag = VTime(0).offset(truncated_mean(&fluid)).delta(placed);
        left.push(lag);
    }
    // The row has halves of ns where the policy's numbers are whole.
    let expected = [248_675, 123_012, 60_181, 28_765, 13_057, 5_203, 1_277, -686];
    for (got, want) in left.iter().zip(expected) {
        assert!(got.abs_diff(want) <= 2, "{left:?}");
    }
}

#[test]
fn inflation_keeps_the_lag() {
    let w = load(0).weight;
    let mut fluid = Fluid { base: VTime(0), sum: 0, weight: 0 };
    fluid.add(VTime(0), w);
    let lag = inflated_lag(500_000, fluid.weight, w);
    let placed = place_lag_first(VTime(0), VTime(0), lag, None);
    fluid.add(placed, w);
    assert_eq!(VTime(0).offset(truncated_mean(&fluid)).delta(placed), 500_000);
    assert_eq!(inflated_lag(500_000, 0, w), 0, "nobody is there to be ahead of");
}

/// Claim C10 of §8: after a sleep of a minute 6 March goes back in virtual time, 9 March does not.
#[test]
fn long_sleep_sets_virtual_time_back_only_on_6_march() {
    let (own, mean) = (VTime(51_000_000), VTime(50_000_000));
    assert_eq!(place_lag_last(own, mean, 0, Some(12_000_000), true), VTime(38_000_000));
    assert_eq!(place_lag_first(own, mean, 0, Some(12_000_000)), own);
}
