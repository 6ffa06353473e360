// SPDX-License-Identifier: GPL-2.0-only
//! Rows of linux-2.6-o1 §9 about sleep averages: what sleeping, running, forking and dying do to
//! them.

use schedlab_units::{Hz, Nice};

use super::rig::{MS, knobs, nice, tunables};
use super::values::data;
use crate::csv::rows;
use crate::linux_2_6::sleep_avg::Activated;
use crate::o1::credit::Sleeper;
use crate::o1::prio::{effective_prio, timeslice};
use crate::o1::task::TaskData;
use crate::o1::tunables::{Clock, Knobs};
use crate::o1::{credit, g3, test1};

const USER: Sleeper = Sleeper { is_user: true, is_batch: false };

#[test]
fn vectors_8_to_12_activate() {
    for row in rows(include_str!("../vectors/activate.csv")) {
        let mut task = data(Nice::ZERO);
        (task.avg.sleep_avg, task.prio) = (row.get("before"), 117);
        test1::activate(&mut task, row.get("jiffies"), &knobs(row.text("variant")));
        let expected = (row.get::<u64>("after"), row.get::<u8>("prio"));
        assert_eq!((task.avg.sleep_avg, task.prio), expected, "row {}", row.text("row"));
    }
}

#[test]
fn vectors_14_15_16_40_fork_sleep_avg() {
    for row in rows(include_str!("../vectors/fork_sleep_avg.csv")) {
        let tunables = tunables(row.text("variant"), row.text("set"));
        let knobs = Knobs::new(&tunables, 1, Hz::new(1000));
        let before = row.get("before");
        let (parent, child) = match knobs.clock {
            Clock::Tick => (before, test1::fork_sleep_avg(before, &knobs)),
            Clock::Ns => g3::fork_sleep_avg(before, &knobs),
            Clock::NsCredit => knobs.scale.fork(before),
        };
        assert_eq!(child, row.get::<u64>("child"), "row {} {before}", row.text("row"));
        assert_eq!(parent, row.get_or("parent", parent), "row {} {before}", row.text("row"));
    }
}

#[test]
fn vectors_17_18_exit_sleep_avg() {
    for row in rows(include_str!("../vectors/exit_sleep_avg.csv")) {
        let (parent, child) = (row.get("parent"), row.get("child"));
        let after = match knobs(row.text("variant")).clock {
            Clock::Tick => test1::exit_sleep_avg(parent, child),
            Clock::Ns | Clock::NsCredit => g3::exit_sleep_avg(parent, child),
        };
        assert_eq!(after, row.get::<u64>("after"), "row {} {parent}", row.text("row"));
    }
}

#[test]
fn vectors_28_recalc_g3() {
    let g3 = knobs("g3");
    for (before, wait, after, prio) in [
        (0, 5_000 * MS, 2_000 * MS, 115),
        (1_990 * MS, 20 * MS, 2_000 * MS, 115),
        (2_000 * MS, MS, 2_000 * MS, 117),
    ] {
        let mut task = data(Nice::ZERO);
        (task.avg.sleep_avg, task.prio) = (before, 117);
        g3::recalc_task_prio(&mut task, wait, &g3);
        assert_eq!((task.avg.sleep_avg, task.prio), (after, prio), "{before} + {wait}");
    }
}

#[test]
fn vectors_29_charge_g3() {
    for (before, run, after) in [(100 * MS, 300 * MS, 0), (2_000 * MS, 5_000 * MS, 0)] {
        let mut task = data(Nice::ZERO);
        task.avg.sleep_avg = before;
        g3::charge(&mut task, run, &knobs("g3"));
        assert_eq!((task.avg.sleep_avg, task.avg.timestamp), (after, run));
    }
}

#[test]
fn vectors_30_31_requeue_points() {
    for row in rows(include_str!("../vectors/requeue.csv")) {
        let knobs = knobs(row.text("variant"));
        let slice = timeslice(nice(row.get("nice")).prio().0, &knobs);
        let points = (1..slice).filter(|elapsed| g3::requeues_now(slice - elapsed, slice, &knobs));
        let expected = row.text("elapsed").split_whitespace();
        let expected = expected.map(|n| n.parse::<u32>().expect("a number"));
        assert!(points.eq(expected), "row {} nice {}", row.text("row"), row.text("nice"));
    }
}

#[test]
fn vectors_32_equal_preempt() {
    for row in rows(include_str!("../vectors/equal_preempt.csv")) {
        let preempts = g3::equal_preempts(row.get("woken"), row.get("curr"));
        assert_eq!(preempts, row.get::<bool>("preempts"), "{}", row.text("woken"));
    }
}

#[test]
fn vectors_33_wait_weight() {
    for row in rows(include_str!("../vectors/wait_weight.csv")) {
        let mut task = data(Nice::ZERO);
        task.avg.timestamp = 7;
        task.avg.activated =
            if row.text("woken_by") == "task" { Activated::ByTask } else { Activated::ByInterrupt };
        let end = g3::end_of_credited_wait(&task, 7 + row.get::<u64>("wait"), &knobs("g7"));
        assert_eq!(end - 7, row.get::<u64>("credited"), "{}", row.text("wait"));
    }
}

#[test]
fn vectors_37_current_bonus() {
    for row in rows(include_str!("../vectors/current_bonus.csv")) {
        let bonus = credit::current_bonus(row.get("sleep_avg"), &knobs("2.6.0"));
        assert_eq!(bonus, row.get::<u64>("current_bonus"), "{}", row.text("sleep_avg"));
    }
}

#[test]
fn vectors_38_granularity() {
    for row in rows(include_str!("../vectors/granularity.csv")) {
        let sleep_avg = row.get::<u64>("current_bonus") * 102 * MS;
        for (n_cpus, column) in [(1, "up"), (2, "smp2")] {
            let knobs = Knobs::new(&tunables("2.6.0", ""), n_cpus, Hz::new(1000));
            let ticks = credit::granularity(sleep_avg, &knobs);
            assert_eq!(ticks, row.get::<u64>(column), "{}", row.text("current_bonus"));
        }
    }
}

#[test]
fn vectors_39_interactive_sleep() {
    for row in rows(include_str!("../vectors/interactive_sleep.csv")) {
        let nice = nice(row.get("nice"));
        let ns = knobs("2.6.0").scale.interactive_sleep(nice.get());
        assert_eq!(ns, row.get::<u64>("ms") * MS, "nice {nice}");
    }
}

/// A user task without sleep average after a sleep of `ms` under 2.6.0.
fn slept(ms: u64, activated: Activated, knobs: &Knobs) -> TaskData {
    let mut task = data(Nice::ZERO);
    task.avg.activated = activated;
    credit::recalc_task_prio(&mut task, ms * MS, USER, knobs);
    assert_eq!(task.prio, effective_prio(&task, knobs));
    task
}

#[test]
fn vectors_41_recalc_credit() {
    for (ms, sleep_avg, interactive_credit) in
        [(100, 1_000 * MS, 0), (816, 918 * MS, 1), (815, 1_020 * MS, 1)]
    {
        let task = slept(ms, Activated::No, &knobs("2.6.0"));
        let found = (task.avg.sleep_avg, task.avg.interactive_credit);
        assert_eq!(found, (sleep_avg, interactive_credit), "{ms} ms");
    }
}

#[test]
fn vectors_42_recalc_uninterruptible() {
    let task = slept(500, Activated::Uninterruptible, &knobs("2.6.0"));
    assert_eq!((task.avg.sleep_avg, task.avg.interactive_credit), (815 * MS, 0));
}

/// §6.13: 500 ms times ten leave 705 032 704 ns in 32 bits.
#[test]
fn wrap_32_bit_loses_what_exceeds_it() {
    let tunables = tunables("2.6.0", "wrap_32_bit=on");
    let knobs = Knobs::new(&tunables, 1, Hz::new(1000));
    let task = slept(500, Activated::No, &knobs);
    assert_eq!(task.avg.sleep_avg, 705_032_704);
}

/// §5.7: a task of high credit pays a share of its run, one that ran dry loses credit.
#[test]
fn charge_of_credit_depends_on_credit() {
    let knobs = knobs("2.6.0");
    let mut known = data(Nice::ZERO);
    (known.avg.sleep_avg, known.avg.interactive_credit) = (1_020 * MS, 101);
    known.avg.charge(&knobs.scale, 100 * MS);
    assert_eq!((known.avg.sleep_avg, known.avg.interactive_credit), (1_010 * MS, 101));
    let mut hog = data(Nice::ZERO);
    hog.avg.interactive_credit = -100;
    hog.avg.charge(&knobs.scale, MS);
    assert_eq!(hog.avg.interactive_credit, -101);
    hog.avg.charge(&knobs.scale, 2 * MS);
    assert_eq!(hog.avg.interactive_credit, -101, "the floor is reached");
}
