// SPDX-License-Identifier: GPL-2.0-only
//! Rows of linux-2.6-spa §9: exact runs of a sleeper beside a hog under 2.6.6, and their shares.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use schedlab_units::{Nanos, TaskId};

use crate::csv::rows;
use crate::linux_2_6::rig::{CPU, GOLDEN, HasSleepAvg, Pair, check_shares};
use crate::o1::policy::O1;

impl HasSleepAvg for O1 {
    fn set_sleep_avg(&mut self, task: TaskId, sleep_avg: u64) {
        Self::set_sleep_avg(self, task, sleep_avg);
    }
}

/// Settings `set` on top of 2.6.6.
fn on_2_6_6(set: &str) -> String {
    format!("@2.6.6;{set}")
}

#[test]
fn vectors_66_to_71_golden_runs() {
    for row in rows(include_str!("../vectors/golden.csv")) {
        let set = on_2_6_6(row.text("set"));
        let mut pair = Pair::<O1>::new(&set, row.get("burst_us"), row.get("sleep_ms"), None);
        pair.run_until(Nanos::from_s(row.get("length_s")));
        for (column, found) in GOLDEN.into_iter().zip(pair.golden()) {
            assert_eq!(found, row.get::<i64>(column), "row {}, {column}", row.text("id"));
        }
    }
}

/// The figures of the trace that describe the present instant.
fn figures(pair: &Pair<O1>) -> Vec<(&'static str, i64)> {
    let of = |task, name| pair.rig.inspect(task, name);
    let (s, h) = (pair.sleeper, pair.hog);
    alloc::vec![
        ("us", (pair.elapsed().as_ns() / 1000) as i64),
        ("s_avg", of(s, "sleep_avg")),
        ("s_prio", of(s, "prio")),
        ("s_slice", of(s, "time_slice")),
        ("s_credit", of(s, "interactive_credit")),
        ("h_avg", of(h, "sleep_avg")),
        ("h_prio", of(h, "prio")),
        ("h_slice", of(h, "time_slice")),
    ]
}

#[test]
fn vectors_67t_trace() {
    let mut pair = Pair::<O1>::new(&on_2_6_6(""), 190_370, 10, None);
    for row in rows(include_str!("../vectors/trace67.csv")) {
        while !pair.step() {}
        for (column, value) in figures(&pair) {
            let cell = row.text(column);
            let at = row.text("us");
            assert!(cell.is_empty() || cell == format!("{value}"), "{column} at {at}: {value}");
        }
        let name = if pair.rig.core.curr(CPU) == Some(pair.sleeper) { "S" } else { "H" };
        assert_eq!(name, row.text("to"), "at {}", row.text("us"));
    }
}

#[test]
fn vectors_59_shares() {
    check_shares::<O1>(include_str!("../vectors/shares.csv"), "59", "@2.6.6;");
}

#[test]
fn vectors_61_shares_without_wait_credit() {
    check_shares::<O1>(include_str!("../vectors/shares.csv"), "61", "@2.6.6;");
}
