// SPDX-License-Identifier: GPL-2.0-only
//! Rows of linux-2.4-goodness §9: M1 to M7.

use super::rig::{CPU0, CPU1, Rig, all_but, occupy, sleeper, told, woken};

#[test]
fn vectors_m1_to_m3_na() {
    let mut rig = Rig::new(2, "");
    for (figures, expected) in [("6", 26), ("6:rr 10", 1010), ("0:rr 10", 1010), ("0", 0)] {
        let task = sleeper(&mut rig, figures, 1, 1);
        assert_eq!(rig.inspect(task, "na"), expected, "{figures}");
    }
}

#[test]
fn vectors_m4_na_of_a_yielder() {
    let mut rig = Rig::new(2, "");
    let running = occupy(&mut rig, &["6", "6"]);
    woken(&mut rig, "6", 0, 1);
    rig.core.yield_task(rig.now, CPU0);
    let yielder = running[0].expect("it runs");
    assert_eq!((rig.inspect(yielder, "yielded"), rig.inspect(yielder, "na")), (1, -1));
}

/// Four CPUs that run tasks of address space 1 at curr_na 26.
fn machine(set: &str) -> Rig {
    let mut rig = Rig::new(4, set);
    for task in occupy(&mut rig, &["6", "6", "6", "6"]) {
        assert_eq!(rig.inspect(task.expect("it runs"), "curr_na"), 26);
    }
    rig
}

#[test]
fn vectors_m5_equal_after_threshold_waits_at_home() {
    let mut rig = machine("");
    let p = woken(&mut rig, "7", 1, 1);
    assert_eq!(rig.inspect(p, "na"), 27);
    assert_eq!(told(&mut rig), []);
    assert_eq!(rig.core.tasks().cpu(p), CPU1);
    assert_eq!((rig.inspect(p, "position"), rig.inspect(p, "is_max")), (0, 1));
    // The other CPUs stand at 41: na 42 is not enough there, 43 is.
    for (figures, na, expected) in [("17/-5", 42, None), ("18/-5", 43, Some((0, false)))] {
        let mut rig = machine("");
        let p = sleeper(&mut rig, figures, 1, 1);
        let others = all_but(&rig, &[CPU1]);
        rig.core.set_affinity(rig.now, CPU1, p, &others);
        rig.wake_new(CPU0, p);
        assert_eq!(rig.inspect(p, "na"), na);
        assert_eq!(told(&mut rig).first().copied(), expected, "na {na}");
    }
}

#[test]
fn vectors_m6_two_better_preempts_at_home() {
    let mut rig = machine("");
    let p = woken(&mut rig, "8", 1, 1);
    assert_eq!(rig.inspect(p, "na"), 28);
    assert_eq!(told(&mut rig), [(1, true)]);
    assert_eq!(rig.core.tasks().cpu(p), CPU1);
}

#[test]
fn vectors_m7_one_better_preempts_at_threshold_0() {
    let mut rig = machine("t=0");
    let p = woken(&mut rig, "7", 1, 1);
    assert_eq!(rig.inspect(p, "na"), 27);
    assert_eq!(told(&mut rig), [(1, true)]);
    assert_eq!(rig.core.tasks().cpu(p), CPU1);
}
