// SPDX-License-Identifier: GPL-2.0-only
//! Rows of linux-2.6-o1 §9 about formulas that all variants share: slices, bonus, priority,
//! balancing.

use schedlab_units::{Hz, Nice};

use super::rig::{knobs, nice, tunables};
use crate::csv::rows;
use crate::linux_2_6::sleep_avg::SleepAvg;
use crate::o1::balance::{busy_imbalance, still_busier};
use crate::o1::prio::{bonus, delta, effective_prio, is_interactive, timeslice};
use crate::o1::task::{Kind, TaskData};
use crate::o1::tunables::Knobs;

/// A task of the Normal class with this nice value and nothing else.
pub(super) fn data(nice: Nice) -> TaskData {
    TaskData {
        prio: nice.prio().0,
        static_prio: nice.prio().0,
        kind: Kind::Normal,
        avg: SleepAvg::default(),
        time_slice: 0,
        first_time_slice: false,
        last_run: 0,
        uninterruptible: false,
        pulled: false,
        node_is_set: false,
        activated_timestamp: 0,
        starved_expirations: 0,
    }
}

#[test]
fn vectors_1_2_timeslice() {
    for row in rows(include_str!("../vectors/timeslice.csv")) {
        let nice = nice(row.get("nice"));
        let knobs = Knobs::new(&tunables("2.6.0-test1", ""), 1, Hz::new(row.get("hz")));
        let ticks = timeslice(nice.prio().0, &knobs);
        assert_eq!(ticks, row.get::<u32>("ticks"), "nice {nice}");
    }
}

#[test]
fn vectors_3_delta() {
    let rows = rows(include_str!("../vectors/delta.csv"));
    assert_eq!(rows.len(), 40);
    for row in rows {
        let nice = nice(row.get("nice"));
        for variant in ["2.6.0-test1", "g3", "2.6.0"] {
            let delta = delta(nice.prio().0, &knobs(variant));
            assert_eq!(delta, row.get::<i32>("delta"), "nice {nice}");
        }
    }
}

#[test]
fn vectors_5_24_26_bonus() {
    for row in rows(include_str!("../vectors/bonus.csv")) {
        let sleep_avg = row.get("sleep_avg");
        let bonus = bonus(sleep_avg, &knobs(row.text("variant")));
        assert_eq!(bonus, row.get::<i32>("bonus"), "row {} {sleep_avg}", row.text("row"));
    }
}

#[test]
fn vectors_25_27_smallest_sleep_avg() {
    for row in rows(include_str!("../vectors/smallest_sleep_avg.csv")) {
        let (knobs, sleep_avg) = (knobs(row.text("variant")), row.get::<u64>("sleep_avg"));
        let expected: i32 = row.get("bonus");
        assert_eq!(bonus(sleep_avg, &knobs), expected, "row {} {sleep_avg}", row.text("row"));
        assert_eq!(bonus(sleep_avg - 1, &knobs), expected - 1, "one less than {sleep_avg}");
    }
}

#[test]
fn vectors_6_effective_prio() {
    for row in rows(include_str!("../vectors/effective_prio.csv")) {
        let mut task = data(nice(row.get("nice")));
        // 1000 ticks a level, from −5 up.
        task.avg.sleep_avg =
            u64::try_from(row.get::<i64>("bonus") + 5).expect("at least −5") * 1000;
        let prio = effective_prio(&task, &knobs("2.6.0-test1"));
        assert_eq!(
            prio,
            row.get::<u8>("prio"),
            "nice {} bonus {}",
            row.text("nice"),
            row.text("bonus")
        );
    }
}

#[test]
fn vectors_7_interactive() {
    for row in rows(include_str!("../vectors/interactive.csv")) {
        let mut task = data(nice(row.get("nice")));
        task.prio = row.get("prio");
        let interactive = is_interactive(&task, &knobs("2.6.0-test1"));
        assert_eq!(interactive, row.get::<bool>("interactive"), "{}", row.text("nice"));
    }
}

#[test]
fn vectors_34_35_imbalance() {
    for row in rows(include_str!("../vectors/imbalance.csv")) {
        let (max, nr) = (row.get("max"), row.get("nr"));
        let imbalance = busy_imbalance(max, nr, &knobs(row.text("variant")));
        let expected = (!row.text("imbalance").is_empty()).then(|| row.get::<u32>("imbalance"));
        assert_eq!(imbalance, expected, "row {} ({max}, {nr})", row.text("row"));
    }
}

#[test]
fn vectors_36_recheck() {
    let test1 = knobs("2.6.0-test1");
    assert!(!still_busier(2, 1, &test1));
    assert!(still_busier(2, 0, &test1));
    // 2.6.0 is content with one more (§5.7).
    assert!(still_busier(2, 1, &knobs("2.6.0")));
}

#[test]
fn vectors_45_nice_and_prio() {
    for (n, prio) in [(-20, 100), (0, 120), (19, 139)] {
        assert_eq!(nice(n).prio().0, prio);
    }
    // FIFO and RR: `hooks::rt_priority_99_is_prio_0`.
}
