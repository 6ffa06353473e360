// SPDX-License-Identifier: GPL-2.0-only
//! Shares that spec bfs §6 and §8 give for CPU-bound tasks, in hundredths of a percent of a CPU.

use alloc::format;
use alloc::vec::Vec;

use schedlab_policy_api::{SchedClass, TaskState};
use schedlab_units::{CpuId, TaskId};

use super::rig::{DEPTH, Rig};
use crate::csv::rows;

fn near(found: u64, expected: u64, tolerance: u64, what: &str) {
    assert!(found.abs_diff(expected) <= tolerance, "{what}: {found}, not {expected}");
}

/// One task of depth 6 beside `n` of depth 6 + `delta` on two CPUs, for 30 s.
fn browser_share(hz: u32, set: &str, delta: i32, n: usize) -> u64 {
    let mut rig = Rig::unchecked(2, hz, set);
    let browser = rig.hog(0, SchedClass::Normal, 6);
    rig.settle();
    for _ in 0..n {
        rig.hog(0, SchedClass::Normal, 6 + delta);
        rig.settle();
    }
    rig.run_until_ms(30_000);
    rig.share(browser)
}

/// The table under the claims: what C05 to C07 hang on.
#[test]
fn shares_by_depth_match_the_spec() {
    for row in rows(include_str!("../vectors/sensitivity.csv")) {
        for n in [2, 24, 42] {
            let found = browser_share(row.get("hz"), DEPTH, row.get("delta"), n);
            let what = format!("{} levels, {n} loads, HZ {}", row.text("delta"), row.text("hz"));
            near(found, 100 * row.get::<u64>(&format!("n{n}")), 200, &what);
        }
    }
}

/// C10: a depth of 6 is like nice 19 (quirk Q12).
#[test]
fn claim_c10_depth_is_like_nice() {
    for (n, depth6, nice19) in [(36, 8720, 8890), (42, 6970, 7260), (64, 2070, 2290)] {
        for (nice, depth, expected) in [(0, 6, depth6), (19, 1, nice19)] {
            let mut rig = Rig::unchecked(2, 1000, DEPTH);
            let browser = rig.hog(0, SchedClass::Normal, 1);
            rig.settle();
            for _ in 0..n {
                rig.hog(nice, SchedClass::Normal, depth);
                rig.settle();
            }
            rig.run_until_ms(30_000);
            near(rig.share(browser), expected, 200, &format!("{n} loads, nice {nice}"));
        }
    }
}

/// Shares of two hogs on one CPU after 60 s.
fn two_hogs(set: &str, a: (i32, i32), b: (i32, i32)) -> [u64; 2] {
    let mut rig = Rig::new(1, 1000, set);
    let tasks = [a, b].map(|(nice, depth)| rig.fresh(nice, depth));
    rig.start();
    rig.run_until_ms(60_000);
    tasks.map(|task| rig.share(task))
}

/// C20: the shallower of two login trees wins.
#[test]
fn claim_c20_depths_5_and_6() {
    let [a, b] = two_hogs(DEPTH, (0, 5), (0, 6));
    near(a, 8570, 30, "depth 5");
    near(b, 1430, 30, "depth 6");
}

/// C22: the ratio of nice levels.
#[test]
fn claim_c22_nice() {
    for (nice, ratio) in [(19, 333), (10, 1060), (5, 2800), (1, 10000)] {
        let [a, b] = two_hogs("", (0, 1), (nice, 1));
        near(10_000 * b / a, ratio, 20, &format!("nice {nice}"));
    }
}

/// C18 and quirk Q13: threads of one group beside a single task.
#[test]
fn claim_c18_thread_groups() {
    for (k, group_share) in [(2, 1550), (4, 1620), (8, 1660), (16, 1680)] {
        let mut rig = Rig::new(1, 1000, "group_thread_accounting=1;deadline_cap=1");
        let single = rig.fresh(0, 1);
        let leader = rig.process();
        let threads: Vec<TaskId> = (0..k)
            .map(|_| {
                let thread = rig.create(&leader, 1);
                rig.wake_new(thread);
                thread
            })
            .collect();
        rig.start();
        rig.run_until_ms(60_000);
        assert_eq!(rig.inspect(threads[0], "threads_running"), k);
        let share: u64 = threads.iter().map(|thread| rig.share(*thread)).sum();
        near(share, group_share, 40, &format!("{k} threads"));
        near(rig.share(single), 10_000 - group_share, 40, &format!("beside {k} threads"));
    }
}

/// C15: each process is one level deeper, threads are not.
#[test]
fn claim_c15_depth_of_forks() {
    for (set, thread_depth) in [("", 3), ("threads_inc_depth=1", 4)] {
        let mut rig = Rig::new(1, 1000, set);
        let mut parent = rig.fresh(0, 1);
        rig.start();
        for depth in 2..4 {
            let new = rig.process();
            let child = rig.core.fork(rig.now, CpuId(0), Some(parent), &new);
            assert_eq!(rig.inspect(child, "fork_depth"), depth);
            rig.wake_new(child);
            rig.block(0, TaskState::Sleeping);
            assert_eq!(rig.curr(0), Some(child));
            parent = child;
        }
        let mut new = rig.process();
        new.tgid = rig.core.tasks().get(parent).tgid;
        let thread = rig.core.fork(rig.now, CpuId(0), Some(parent), &new);
        assert_eq!(rig.inspect(thread, "fork_depth"), thread_depth);
    }
}

/// C17: threads add the plain offset, processes multiply it.
#[test]
fn claim_c17_plain_offset_for_threads() {
    let mut rig = Rig::new(1, 1000, "fork_depth_penalty=1;group_thread_accounting=1");
    let task = rig.hog(0, SchedClass::Normal, 4);
    let group = rig.policy().tasks[task.index()].group;
    rig.policy().groups.get_mut(group).threads_running = 3;
    rig.policy().time_slice_expired(task);
    let base = rig.policy().knobs.offset[20];
    assert_eq!(rig.policy().tasks[task.index()].deadline, 7 * base);
}

/// C19: the offset of generation g is at least g plain ones, finished siblings or not.
#[test]
fn claim_c19_branch_penalty() {
    let mut rig = Rig::new(1, 1000, "branch_penalty=1");
    let mut parent = rig.fresh(0, 1);
    rig.start();
    let base = rig.policy().knobs.offset[20];
    for generation in 1..5 {
        rig.policy().time_slice_expired(parent);
        let p = rig.policy().tasks[parent.index()];
        assert_eq!(p.deadline - p.deadline_set, generation * base, "generation {generation}");
        // The first child runs and exits, the second is the next generation.
        for exits in [true, false] {
            let new = rig.process();
            let child = rig.core.fork(rig.now, CpuId(0), Some(parent), &new);
            rig.wake_new(child);
            rig.block(0, TaskState::Sleeping);
            assert_eq!(rig.curr(0), Some(child));
            assert_eq!(rig.inspect(child, "threads_running"), generation as i64 + 1);
            if exits {
                rig.exit(0, parent);
            } else {
                parent = child;
            }
        }
    }
}

/// C19: the penalty works on the same load in the same direction; without it shares are equal.
#[test]
fn claim_c19_branch_penalty_on_loads() {
    for (n, on, off) in [(2, 10000, 6800), (24, 10000, 810), (42, 7100, 480)] {
        near(browser_share(1000, "branch_penalty=1", 5, n), on, 200, &format!("{n} loads, on"));
        let found = browser_share(1000, "", 5, n);
        near(found, off, off / 4, &format!("{n} loads, off"));
    }
}
