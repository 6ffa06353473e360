// SPDX-License-Identifier: GPL-2.0-only
//! Rows of linux-2.6-spa §9: the rules of 2.6.6 one by one. Balancing: `linux_2_6_6_smp`; golden
//! runs and shares: `golden`.

use alloc::format;

use schedlab_policy_api::{PolicyDef, SchedClass, TaskState};
use schedlab_units::{Hz, Nanos, Nice, TaskId};

use super::rig::tunables;
use super::values::data;
use crate::csv::rows;
use crate::linux_2_6::rig;
use crate::linux_2_6::rig::CPU;
use crate::linux_2_6::sleep_avg::Activated;
use crate::o1::credit::{self, Sleeper};
use crate::o1::policy::O1;
use crate::o1::tunables::Knobs;

const MS: u64 = 1_000_000;

pub(super) type Rig = rig::Rig<O1>;

fn knobs(word: &str, n_cpus: usize) -> Knobs {
    let set = if word == "32" { "wrap_32_bit=on" } else { "wrap_32_bit=off" };
    Knobs::new(&tunables("2.6.6", set), n_cpus, Hz::new(1000))
}

/// 2.6.6 with all invariants on.
pub(super) fn machine(n_cpus: u32, set: &str) -> Rig {
    Rig::new(n_cpus, &format!("@2.6.6;{set}"), true)
}

/// A machine for one with one nice 0 task, which runs.
fn alone(sleep_avg_ms: u64) -> (Rig, TaskId) {
    let mut rig = machine(1, "");
    let task = rig.start(&rig.process(0), sleep_avg_ms);
    rig.settle();
    (rig, task)
}

#[test]
fn vectors_1_to_27_recalc() {
    for row in rows(include_str!("../../spa/vectors/recalc.csv")) {
        let knobs = knobs(row.text("word"), 1);
        let mut task = data(Nice::new(row.get("nice")).expect("a nice value"));
        task.avg.sleep_avg = row.get("sleep_avg");
        task.avg.interactive_credit = row.get("credit");
        task.avg.timestamp = 5 * MS;
        if row.text("activated") == "-1" {
            task.avg.activated = Activated::Uninterruptible;
        }
        let until = task.avg.timestamp + row.get::<u64>("sleep");
        let who = Sleeper { is_user: row.text("has_mm") == "y", is_batch: false };
        credit::recalc_task_prio(&mut task, until, who, &knobs);
        let bonus = credit::current_bonus(task.avg.sleep_avg, &knobs);
        let found = (task.avg.sleep_avg, bonus, task.prio, task.avg.interactive_credit);
        let expected =
            (row.get("new_sleep_avg"), row.get("bonus"), row.get("prio"), row.get("new_credit"));
        assert_eq!(found, expected, "row {} on {} bits", row.text("id"), row.text("word"));
    }
}

#[test]
fn vectors_28_bonus() {
    let (knobs32, knobs64) = (knobs("32", 1), knobs("64", 1));
    for (sleep_avg, bonus) in [
        (101_999_999, 0),
        (102 * MS, 1),
        (509 * MS, 4),
        (510 * MS, 5),
        (1019 * MS, 9),
        (1020 * MS, 10),
    ] {
        for knobs in [&knobs32, &knobs64] {
            assert_eq!(credit::current_bonus(sleep_avg, knobs), bonus, "{sleep_avg} ns");
        }
    }
}

#[test]
fn vectors_29_granularity() {
    for (n_cpus, bonus, jiffies) in [
        (1, 0, 5120),
        (1, 6, 80),
        (1, 7, 40),
        (1, 8, 20),
        (1, 9, 10),
        (1, 10, 10),
        (4, 7, 160),
        (4, 9, 40),
    ] {
        let found = credit::granularity(bonus * 102 * MS, &knobs("32", n_cpus));
        assert_eq!(found, jiffies, "bonus {bonus} on {n_cpus} CPUs");
    }
}

#[test]
fn vectors_34_35_36_fork_sleep_avg() {
    for (before, parent_ms, child_ms) in [
        (1020, 1020, 918),
        (917, 816, 714),
        (510, 510, 408),
        (250, 204, 102),
        (102, 102, 0),
        (50, 0, 0),
    ] {
        let (mut rig, parent) = alone(before);
        let child = rig.fork(parent);
        let found = [parent, child].map(|task| rig.inspect(task, "sleep_avg"));
        assert_eq!(found, [parent_ms, child_ms].map(|ms| (ms * MS) as i64), "{before} ms");
        assert_eq!(rig.inspect(child, "interactive_credit"), 0);
    }
}

#[test]
fn vectors_37_38_fork_slice() {
    for (before, child_gets, parent_keeps) in
        [(102, 51, 51), (101, 51, 50), (51, 26, 25), (3, 2, 1), (2, 1, 1), (1, 1, 102)]
    {
        let (mut rig, parent) = alone(0);
        rig.core.policy_mut().tasks[parent.index()].time_slice = before;
        let child = rig.fork(parent);
        let found = [child, parent].map(|task| rig.inspect(task, "time_slice"));
        assert_eq!(found, [child_gets, parent_keeps], "{before}");
        assert_eq!(rig.inspect(parent, "array"), i64::from(before > 1), "{before}: it expires");
        assert!(rig.core.need_resched(CPU));
    }
}

/// A parent and its child, which runs, with these sleep averages; then the child exits and is
/// collected.
fn bury(averages: [u64; 2], slices: [u32; 2]) -> (Rig, TaskId) {
    let (mut rig, parent) = alone(0);
    let child = rig.fork(parent);
    rig.settle();
    assert_eq!(rig.core.curr(CPU), Some(child));
    for ((task, sleep_avg), slice) in [parent, child].into_iter().zip(averages).zip(slices) {
        rig.core.policy_mut().set_sleep_avg(task, sleep_avg);
        rig.core.policy_mut().tasks[task.index()].time_slice = slice;
    }
    rig.core.exit(rig.now, CPU);
    rig.core.finish_switch(rig.now, CPU);
    rig.core.reap(rig.now, CPU, child);
    (rig, parent)
}

#[test]
fn vectors_39_40_exit_mix() {
    for (parent, child, after) in
        [(1_020_000_000, 300_000_001, 840_000_000), (510_000_003, 102_000_002, 408_000_000)]
    {
        let (rig, parent) = bury([parent, child], [50, 1]);
        assert_eq!(rig.inspect(parent, "sleep_avg"), after);
    }
}

#[test]
fn vectors_41_exit_slice() {
    let (rig, parent) = bury([0, 0], [150, 80]);
    assert_eq!(rig.inspect(parent, "time_slice"), 200);
}

/// Whether a nice 0 task of this bonus goes behind its equals at the tick that leaves `left` of its
/// slice.
fn requeues(bonus: u64, left: u32) -> bool {
    let (mut rig, task) = alone(102 * bonus);
    assert_eq!(rig.inspect(task, "prio"), 125 - bonus as i64);
    rig.core.policy_mut().tasks[task.index()].time_slice = left + 1;
    rig.core.tick(rig.now, CPU);
    assert_eq!(rig.inspect(task, "time_slice"), i64::from(left), "it keeps its slice");
    let requeues = rig.stat("granularity_requeues") == 1;
    assert_eq!(rig.core.need_resched(CPU), requeues);
    requeues
}

#[test]
fn vectors_42_43_44_requeue_within_the_slice() {
    for (bonus, left, expected) in [
        (9, 92, true),
        (9, 93, false),
        (9, 12, true),
        (9, 2, false),
        (7, 62, true),
        (7, 22, false),
        // Above the nominal slice: (102 − 150) mod 2^32 mod 10 = 8.
        (9, 150, false),
    ] {
        assert_eq!(requeues(bonus, left), expected, "bonus {bonus}, {left} left");
    }
}

#[test]
fn vectors_45_expired_starving() {
    let (mut rig, _) = alone(0);
    rig.start(&rig.process(0), 0);
    let policy = rig.core.policy_mut();
    policy.rqs[0].expired_timestamp = 1000;
    assert_eq!(policy.rqs[0].nr_running, 2);
    assert!(!policy.is_starving(CPU, 3040));
    assert!(policy.is_starving(CPU, 3041));
}

/// An interactive task of static priority 120 ends its slice; 115 or 120 has expired before.
#[test]
fn vectors_46_best_expired_prio() {
    for (set, best, expires) in
        [("", 115, true), ("", 120, false), ("best_expired_prio=off", 115, false)]
    {
        let mut rig = machine(1, set);
        let task = rig.start(&rig.process(0), 1020);
        rig.settle();
        let policy = rig.core.policy_mut();
        policy.rqs[0].best_expired_prio = best;
        policy.tasks[task.index()].time_slice = 1;
        rig.core.tick(rig.now, CPU);
        assert_eq!(rig.inspect(task, "array"), i64::from(!expires), "{best} {set}");
    }
}

/// The best static priority among those that expire is kept until the arrays change places.
#[test]
fn best_expired_prio_follows_the_expired_array() {
    let mut rig = machine(1, "");
    let tasks = [5, -5].map(|nice| rig.start(&rig.process(nice), 0));
    rig.settle();
    let best = |rig: &Rig| rig.core.policy().rqs[0].best_expired_prio;
    assert_eq!((rig.core.curr(CPU), best(&rig)), (Some(tasks[1]), 140));
    rig.core.policy_mut().tasks[tasks[1].index()].time_slice = 1;
    rig.run_ms(1);
    assert_eq!((rig.core.curr(CPU), best(&rig)), (Some(tasks[0]), 115));
    rig.core.policy_mut().tasks[tasks[0].index()].time_slice = 1;
    rig.core.tick(rig.now, CPU);
    assert_eq!(best(&rig), 115, "125 is no better");
    rig.settle();
    assert_eq!((rig.core.curr(CPU), best(&rig)), (Some(tasks[1]), 140));
}

#[test]
fn vectors_47_renice() {
    for runs in [true, false] {
        let (mut rig, first) = alone(918);
        let second = rig.start(&rig.process(0), 918);
        let task = if runs { first } else { second };
        assert_eq!(rig.inspect(task, "prio"), 116);
        rig.core.set_nice(rig.now, CPU, task, Nice::new(5).expect("legal"));
        let found = ["static_prio", "prio"].map(|name| rig.inspect(task, name));
        assert_eq!(found, [125, 125]);
        assert_eq!(rig.core.need_resched(CPU), runs, "only if it runs");
    }
}

#[test]
fn vectors_48_nanosleep() {
    let timers = O1::time(&tunables("2.6.6", "")).timers;
    for (ms, jiffies) in [(1, 3), (2, 4), (5, 7), (10, 12), (15, 17), (20, 22), (100, 102)] {
        let found = timers.sleep_jiffies(Nanos::from_ms(ms), Hz::new(1000));
        assert_eq!(found, Some(jiffies), "{ms} ms");
    }
}

/// `setscheduler` looks whom it disturbs; 2.6.0 does not.
#[test]
fn setscheduler_preempts_under_2_6_6() {
    for (variant, preempts) in [("2.6.6", true), ("2.6.0", false)] {
        let mut rig = Rig::new(1, &format!("@{variant}"), true);
        let running = rig.start(&rig.process(0), 0);
        rig.settle();
        let waiting = rig.start(&rig.process(0), 0);
        rig.core.set_class(rig.now, CPU, waiting, SchedClass::Fifo, 1);
        assert_eq!(rig.core.need_resched(CPU), preempts, "{variant}: better than the current");
        rig.schedule(CPU);
        assert_eq!(rig.core.curr(CPU), Some(waiting));
        rig.core.set_class(rig.now, CPU, waiting, SchedClass::Normal, 0);
        assert_eq!(rig.core.need_resched(CPU), preempts, "{variant}: the current got worse");
        rig.schedule(CPU);
        rig.core.set_class(rig.now, CPU, running, SchedClass::Batch, 0);
        assert!(!rig.core.need_resched(CPU), "{variant}: nothing changed");
    }
}

/// A real-time task that woke keeps its place at the head of its list, and its sleep average.
#[test]
fn rt_task_is_not_credited_at_the_pick() {
    for (set, credited) in [("", false), ("rt_wait_credit=on", true)] {
        let mut rig = machine(1, set);
        let mut new = rig.process(0);
        (new.class, new.rt_priority) = (SchedClass::Rr, 5);
        let sleeper = rig.core.fork(rig.now, CPU, None, &new);
        rig.core.wake_up_new(rig.now, CPU, sleeper, None);
        rig.settle();
        rig.block(CPU, TaskState::Sleeping);
        new.rt_priority = 50;
        let hog = rig.core.fork(rig.now, CPU, None, &new);
        rig.core.wake_up_new(rig.now, CPU, hog, None);
        rig.settle();
        rig.core.wake(rig.now, CPU, sleeper, None, false);
        rig.run_ms(10);
        rig.block(CPU, TaskState::Sleeping);
        assert_eq!(rig.core.curr(CPU), Some(sleeper));
        assert_eq!(rig.inspect(sleeper, "sleep_avg") > 0, credited, "`{set}`");
    }
}
