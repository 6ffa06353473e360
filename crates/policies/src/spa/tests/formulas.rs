// SPDX-License-Identifier: GPL-2.0-only
//! Rows of linux-2.6-spa §9 about the 2.6.6 interactivity code: recalc, bonus, granularity, charge,
//! wait, fork.

use schedlab_policy_api::PolicyDef;
use schedlab_units::{Hz, Nanos, Nice};

use crate::csv::rows;
use crate::linux_2_6::sleep_avg::{Activated, Facts, Scale, SleepAvg, Word};
use crate::spa::Spa;

const MS: u64 = 1_000_000;

fn scale() -> Scale {
    Scale::new(Hz::new(1000), Word::Bits32)
}

fn with(sleep_avg: u64, interactive_credit: i64) -> SleepAvg {
    SleepAvg { sleep_avg, interactive_credit, timestamp: 5 * MS, activated: Activated::No }
}

#[test]
fn vectors_1_to_27_recalc() {
    for row in rows(include_str!("../vectors/recalc.csv")) {
        let word = if row.text("word") == "32" { Word::Bits32 } else { Word::Bits64 };
        let scale = Scale::new(Hz::new(1000), word);
        let nice = Nice::new(row.get("nice")).expect("a nice value");
        let mut avg = with(row.get("sleep_avg"), row.get("credit"));
        if row.text("activated") == "-1" {
            avg.activated = Activated::Uninterruptible;
        }
        let facts = Facts { nice: nice.get(), has_mm: row.text("has_mm") == "y" };
        let until = avg.timestamp + row.get::<u64>("sleep");
        avg.recalc(&scale, facts, until);
        let id = row.text("id");
        assert_eq!(avg.sleep_avg, row.get("new_sleep_avg"), "row {id}");
        assert_eq!(avg.bonus(&scale), row.get("bonus"), "row {id}");
        assert_eq!(avg.interactive_credit, row.get("new_credit"), "row {id}");
        // The priority of the spec's rows from the slot: unclamped priority + 5.
        let slot = nice.prio().0 + 10 - avg.bonus(&scale) as u8;
        assert_eq!((slot - 5).clamp(100, 139), row.get("prio"), "row {id}");
    }
}

#[test]
fn vectors_28_bonus() {
    for (sleep_avg, bonus) in [
        (101_999_999, 0),
        (102 * MS, 1),
        (509 * MS, 4),
        (510 * MS, 5),
        (1019 * MS, 9),
        (1020 * MS, 10),
    ] {
        assert_eq!(with(sleep_avg, 0).bonus(&scale()), bonus, "{sleep_avg} ns");
    }
}

#[test]
fn vectors_29_granularity() {
    for (bonus, jiffies) in [(0, 5120), (6, 80), (7, 40), (8, 20), (9, 10), (10, 10)] {
        assert_eq!(scale().granularity(bonus, 1), jiffies, "bonus {bonus}");
    }
    assert_eq!((scale().granularity(7, 4), scale().granularity(9, 4)), (160, 40));
}

#[test]
fn vectors_30_to_32_charge() {
    let charged = |sleep_avg, credit, run| {
        let mut avg = with(sleep_avg, credit);
        avg.charge(&scale(), 5 * MS + run);
        assert_eq!(avg.timestamp, 5 * MS + run);
        (avg.sleep_avg, avg.interactive_credit)
    };
    assert_eq!(charged(918 * MS, 101, 102 * MS), (918 * MS - 11_333_333, 101), "row 30");
    assert_eq!(charged(90 * MS, 101, 50 * MS), (40 * MS, 101), "row 31");
    assert_eq!(charged(100 * MS, -100, 102 * MS), (0, -101), "row 32");
    assert_eq!(charged(100 * MS, -101, 102 * MS), (0, -101), "row 32");
}

/// Row 33 through a task of bonus 9, for which a nanosecond of waiting counts once.
#[test]
fn vectors_33_wait_on_the_queue() {
    let facts = Facts { nice: 0, has_mm: true };
    for (wait, counted) in [(100 * MS, 29_687_500), (33 * MS, 9_796_875)] {
        let mut avg = with(918 * MS, 0);
        avg.activated = Activated::ByTask;
        assert!(avg.credit_wait(&scale(), facts, 5 * MS + wait));
        assert_eq!(avg.sleep_avg, 918 * MS + counted, "{wait} ns");
        avg.activated = Activated::No;
        assert!(!avg.credit_wait(&scale(), facts, 5 * MS + wait));
    }
}

/// Row 58, the balance of §6 Q2, by the code that credits and charges: beside one hog a task waits
/// whenever it does not run. While its average neither grows nor shrinks, a wait of w earns what a
/// run of (10 − b)·w costs, so that it has (10 − b)/(11 − b) of the CPU.
#[test]
fn vectors_58_share_by_balance_of_sleep_avg() {
    let facts = Facts { nice: 0, has_mm: true };
    let wait = MS;
    for (bonus, share) in [(0, 9091), (5, 8333), (6, 8000), (9, 5000)] {
        let start = scale().ns_max_sleep_avg() / 10 * bonus + 5 * MS;
        let mut avg = with(start, 0);
        assert_eq!(avg.bonus(&scale()), bonus);
        avg.activated = Activated::ByInterrupt;
        let picked = avg.timestamp + wait;
        assert!(avg.credit_wait(&scale(), facts, picked));
        avg.timestamp = picked;
        // The longest run that leaves the average no lower than before the wait.
        let left_by = |run: u64| {
            let mut avg = avg;
            avg.charge(&scale(), picked + run);
            avg.sleep_avg
        };
        let run = (0..=20 * wait / 1000).map(|us| us * 1000).rfind(|run| left_by(*run) >= start);
        let run = run.expect("a run of no length costs nothing");
        assert_eq!(left_by(run), start, "bonus {bonus}");
        let found = (10_000 * run + (run + wait) / 2) / (run + wait);
        assert_eq!(found, share, "bonus {bonus}, in 1/10 000 of the CPU");
    }
}

#[test]
fn vectors_34_to_36_fork() {
    for (before, parent, child) in [
        (1020, 1020, 918),
        (917, 816, 714),
        (510, 510, 408),
        (250, 204, 102),
        (102, 102, 0),
        (50, 0, 0),
    ] {
        let (mut from, mut to) = (with(before * MS, 7), with(before * MS, 7));
        SleepAvg::fork(&mut from, &mut to, &scale());
        let found = (from.sleep_avg, to.sleep_avg, from.interactive_credit, to.interactive_credit);
        assert_eq!(found, (parent * MS, child * MS, 7, 0), "{before} ms");
    }
}

/// Row 48, by the time keeping that the policy declares.
#[test]
fn vectors_48_nanosleep() {
    for (ms, jiffies) in [(1, 3), (2, 4), (5, 7), (10, 12), (15, 17), (20, 22), (100, 102)] {
        let timers = Spa::INFO.time.timers;
        let found = timers.sleep_jiffies(Nanos::from_ms(ms), Hz::new(1000));
        assert_eq!(found, Some(jiffies), "{ms} ms");
    }
}

#[test]
fn table_by_nice_matches_the_spec() {
    for row in rows(include_str!("../vectors/nice.csv")) {
        let nice = row.get("nice");
        let prio = Nice::new(nice).expect("a nice value").prio().0;
        assert_eq!(prio, row.get("static_prio"), "nice {nice}");
        assert_eq!(scale().delta(nice), row.get("delta"), "nice {nice}");
        let ms: u64 = row.get("interactive_sleep_ms");
        assert_eq!(scale().interactive_sleep(nice), ms * MS, "nice {nice}");
    }
}

/// All slices of spec §2.2 from nice −20 to 19.
#[test]
fn task_timeslice_matches_the_spec() {
    let slices = [
        200, 195, 190, 185, 180, 175, 170, 165, 161, 156, 151, 146, 141, 136, 131, 126, 122, 117,
        112, 107, 102, 97, 92, 87, 83, 78, 73, 68, 63, 58, 53, 48, 44, 39, 34, 29, 24, 19, 14, 10,
    ];
    for (nice, slice) in (-20..=19).zip(slices) {
        assert_eq!(scale().task_timeslice(nice), slice, "nice {nice}");
    }
}

/// The columns of the table of constants at HZ 1000 and 100.
#[test]
fn table_of_constants_matches_the_spec() {
    for (hz, avg_timeslice, ns_max) in [(1000, 102, 1_020_000_000), (100, 10, 1_000_000_000)] {
        let scale = Scale::new(Hz::new(hz), Word::Bits32);
        assert_eq!(scale.task_timeslice(0), avg_timeslice, "HZ {hz}");
        assert_eq!(scale.ns_max_sleep_avg(), ns_max, "HZ {hz}");
    }
}

#[test]
fn scale_survives_every_tick_rate() {
    for hz in [1, 5, 99, 1024, 100_000] {
        let scale = Scale::new(Hz::new(hz), Word::Bits64);
        let mut avg = with(0, 0);
        let facts = Facts { nice: -20, has_mm: true };
        avg.recalc(&scale, facts, u64::MAX / 2);
        assert!(avg.sleep_avg <= scale.ns_max_sleep_avg(), "HZ {hz}");
        assert!(avg.bonus(&scale) <= 10, "HZ {hz}");
    }
}
