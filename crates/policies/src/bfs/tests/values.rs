// SPDX-License-Identifier: GPL-2.0-only
//! Rows 1 to 20 of spec bfs §9: formulas and single steps.

use schedlab_policy_api::{SchedClass, TaskState};
use schedlab_units::{CpuId, Hz, Nice, TaskId, Time};

use super::rig::{DEPTH, Rig};
use crate::bfs::arith;
use crate::csv::rows;

/// A queued task at rr 9 on one CPU, whose clock is at 1 s.
fn queued(nice: i32, depth: i32, set: &str) -> (Rig, TaskId) {
    let mut rig = Rig::new(1, 1000, &alloc::format!("rr_interval=9;{set}"));
    rig.now = Time::from_ns(1_000_000_000);
    let task = rig.hog(nice, SchedClass::Normal, depth);
    (rig, task)
}

fn set_deadline(rig: &mut Rig, task: TaskId, deadline: u64, set_at: u64) {
    let p = &mut rig.policy().tasks[task.index()];
    p.deadline = deadline;
    p.deadline_set = set_at;
}

/// Takes `task` off the queue and puts it back.
fn requeue(rig: &mut Rig, task: TaskId) -> u64 {
    rig.policy().queue.remove(task);
    rig.policy().enqueue_task(task, true);
    rig.policy().tasks[task.index()].deadline
}

fn renice(rig: &mut Rig, task: TaskId, nice: i32) -> u64 {
    rig.core.set_nice(rig.now, CpuId(0), task, Nice::new(nice).expect("legal"));
    rig.policy().tasks[task.index()].deadline
}

#[test]
fn vectors_1_ratios() {
    for row in rows(include_str!("../vectors/ratios.csv")) {
        let user = (row.get::<i32>("nice") + 20) as usize;
        assert_eq!(arith::PRIO_RATIOS[user], row.get::<i32>("ratio"), "nice {}", user as i32 - 20);
    }
}

#[test]
fn vectors_2_3_interval_and_quota() {
    let cpus = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 64, 128];
    let rr = [6, 9, 10, 12, 14, 15, 17, 18, 20, 20, 22, 23];
    for (n, rr) in cpus.into_iter().zip(rr) {
        assert_eq!(arith::scaled_rr_interval(n), rr, "{n} CPUs");
    }
    for (rr, quota) in [(6, 6144), (9, 9216), (15, 15360)] {
        assert_eq!(arith::quota(rr), quota);
    }
    assert_eq!(Rig::new(2, 1000, "").policy().knobs.rr, 9);
    assert_eq!(Rig::new(2, 1000, "rr_interval=6").policy().knobs.rr, 6, "a given value is kept");
}

#[test]
fn vectors_4_to_9_offsets() {
    for row in rows(include_str!("../vectors/offsets.csv")) {
        let set = alloc::format!("{DEPTH};rr_interval={}", row.text("rr"));
        let mut rig = Rig::new(1, 1000, &set);
        let task = rig.fresh(row.get("nice"), row.get("depth"));
        let offset = rig.policy().own_offset(task) as i64;
        assert_eq!(offset, row.get::<i64>("offset"), "row {}", row.text("id"));
    }
}

#[test]
fn offsets_do_not_wrap_when_wide() {
    let offset = |rr: i32| arith::deadline_offset(20, rr, true);
    assert_eq!(offset(314), 836 * 314 * 8192);
    assert_eq!(arith::deadline_offset(39, 1000, true), 5089 * 1000 * 8192);
    let rig = Rig::new(1, 1000, "rr_interval=1000;wide_offset=1");
    assert_eq!(rig.core.policy().knobs.offset[20], 836 * 1000 * 8192);
}

#[test]
fn vectors_10_19_weights() {
    for (user, rr, weight) in [(20, 6, 39), (20, 9, 58), (20, 12, 78), (39, 9, 357)] {
        assert_eq!(arith::locality_weight(user, rr), weight);
    }
    assert_eq!(3 * arith::locality_weight(20, 12), 234);
    for (user, rr, ns) in [(20, 6, 40_894_464), (20, 9, 60_817_408), (39, 9, 374_341_632)] {
        assert_eq!(arith::shown_interval(user, rr), ns);
    }
}

#[test]
fn vectors_11_group_accounting() {
    for (depth, penalty, ahead) in [(1, "off", 246_546_432), (4, "on", 431_456_256)] {
        let set = alloc::format!("group_thread_accounting=1;fork_depth_penalty={penalty}");
        let (mut rig, task) = queued(0, depth, &set);
        let group = rig.core.policy().tasks[task.index()].group;
        rig.policy().groups.get_mut(group).threads_running = 3;
        rig.policy().time_slice_expired(task);
        let p = rig.core.policy().tasks[task.index()];
        assert_eq!(p.deadline - 1_000_000_000, ahead, "depth {depth}");
        assert_eq!((p.time_slice, p.deadline_set), (9216, 1_000_000_000));
    }
}

#[test]
fn vectors_12_enqueue_cap() {
    let (mut rig, task) = queued(0, 6, DEPTH);
    for (deadline, capped) in [
        (1_200_000_000, 1_200_000_000),
        (1_900_000_000, 1_369_819_648),
        (1_000_000_000 - 5, 1_369_819_648),
    ] {
        set_deadline(&mut rig, task, deadline, 1_000_000_000);
        assert_eq!(requeue(&mut rig, task), capped);
    }
    // Plain 0.357 has no cap.
    let (mut rig, task) = queued(0, 6, "");
    set_deadline(&mut rig, task, 1_900_000_000, 1_000_000_000);
    assert_eq!(requeue(&mut rig, task), 1_900_000_000);
}

#[test]
fn vectors_13_to_15_nice() {
    for (id, depth, before, nice, after) in [
        ("13", 6, 1_369_819_648, 5, 1_099_090_432),
        ("14", 6, 1_061_636_608, 5, 1_594_542_592),
        ("15", 1, 1_061_636_608, -5, 1_038_338_560),
    ] {
        let (mut rig, task) = queued(0, depth, DEPTH);
        set_deadline(&mut rig, task, before, 1_000_000_000);
        assert_eq!(renice(&mut rig, task, nice), after, "row {id}");
    }
    // Before the cap, row 14.
    let (mut rig, task) = queued(0, 6, "fork_depth_penalty=1");
    set_deadline(&mut rig, task, 1_061_636_608, 1_000_000_000);
    assert_eq!(renice(&mut rig, task, 5), 790_907_392);
}

#[test]
fn vectors_16_to_18_pri() {
    for row in rows(include_str!("../vectors/pri.csv")) {
        let set = alloc::format!("rr_interval=9;fork_depth_penalty={}", row.text("penalty"));
        let mut rig = Rig::new(1, 1000, &set);
        let mut new = rig.process();
        new.nice = Nice::new(row.get("nice")).expect("legal");
        new.class = SchedClass::from_name(row.text("class")).expect("a class");
        new.rt_priority = if new.class.is_rt() { 50 } else { 0 };
        rig.now = Time::from_ns(1_000_000_000);
        let task = rig.create(&new, row.get("depth"));
        rig.wake_new(task);
        rig.policy().time_slice_expired(task);
        if row.text("ahead") != "fresh" {
            let past = rig.policy().niffies.wrapping_add_signed(row.get("ahead"));
            rig.policy().tasks[task.index()].deadline = past;
        }
        assert_eq!(rig.inspect(task, "pri"), row.get::<i64>("pri"), "row {}", row.text("id"));
    }
}

#[test]
fn vectors_20_charges() {
    let tick = Hz::new(1000).tick().as_ns();
    for (ns, units) in [
        (0, 0),
        (1023, 0),
        (1024, 1),
        (500_000, 488),
        (1_000_000, 976),
        (2_000_000, 1953),
        (2_000_001, 0),
    ] {
        assert_eq!(arith::charge(5_000_000 + ns, 5_000_000, tick), units, "{ns} ns");
    }
    assert_eq!(arith::charge(4_999_999, 5_000_000, tick), 0, "a clock that runs backwards");
}

#[test]
fn uninterruptible_sleep_costs_idleprio_its_rank_once() {
    let mut rig = Rig::new(1, 1000, "");
    let task = rig.hog(0, SchedClass::Idle, 1);
    rig.start();
    rig.block(0, TaskState::Uninterruptible);
    rig.wake(0, task, false);
    assert_eq!(rig.inspect(task, "prio"), 101);
    rig.schedule(0);
    rig.block(0, TaskState::Sleeping);
    rig.wake(0, task, false);
    assert_eq!(rig.inspect(task, "prio"), 102);
}
