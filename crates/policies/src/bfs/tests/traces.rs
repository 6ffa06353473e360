// SPDX-License-Identifier: GPL-2.0-only
//! Traces 37 to 44 of spec bfs §9.

use alloc::vec::Vec;

use schedlab_units::TaskId;

use super::rig::{DEPTH, Rig};
use crate::csv::rows;

/// The tasks of a cell such as `A/0/1 B/19/1`, fresh and queued in order.
fn tasks(rig: &mut Rig, cell: &str) -> Vec<TaskId> {
    let hogs = cell.split(' ').map(|spec| {
        let mut parts = spec.split('/').skip(1).map(|part| part.parse().expect("a number"));
        let (nice, depth) = (parts.next().expect("nice"), parts.next().expect("depth"));
        rig.fresh(nice, depth)
    });
    hogs.collect()
}

#[test]
fn vectors_37_to_42_traces() {
    for row in rows(include_str!("../vectors/traces.csv")) {
        let mut rig = Rig::new(row.get("cpus"), row.get("hz"), row.text("set"));
        let names: alloc::string::String =
            row.text("tasks").split(' ').map(|spec| &spec[..1]).collect();
        tasks(&mut rig, row.text("tasks"));
        rig.start();
        let expected: Vec<&str> = row.text("trace").split(' ').collect();
        rig.run_until_ms(700);
        let trace = rig.trace(&names);
        assert_eq!(trace[..expected.len()], expected, "row {}", row.text("id"));
    }
}

#[test]
fn vectors_41_shares_after_a_minute() {
    let mut rig = Rig::new(2, 1000, "");
    let tasks: Vec<TaskId> = (0..3).map(|_| rig.fresh(0, 1)).collect();
    rig.start();
    rig.run_until_ms(60_000);
    for (task, share) in tasks.iter().zip([8889, 5556, 5555]) {
        let found = rig.share(*task);
        assert!(found.abs_diff(share) <= 1, "{task} has {found}, not {share}");
    }
}

#[test]
fn vectors_43_44_traces_of_a_fork() {
    for (id, set, expected) in [
        ("43", "", "0:0:P 2.5:0:C 4:0:P 7:0:C 14:0:P 21:0:C"),
        ("44", DEPTH, "0:0:P 2.5:0:C 4:0:P 46:0:C 53:0:P 95:0:C 102:0:P"),
    ] {
        let mut rig = Rig::new(1, 1000, set);
        let parent = rig.fresh(0, 5);
        rig.start();
        rig.run_until_ms(2);
        rig.advance_to(2_500_000);
        let new = rig.process();
        let child = rig.core.fork(rig.now, schedlab_units::CpuId(0), Some(parent), &new);
        assert_eq!(rig.inspect(child, "time_slice"), 2096, "row {id}");
        assert_eq!(rig.inspect(parent, "time_slice"), 2096, "row {id}");
        rig.wake_new(child);
        rig.settle();
        rig.run_until_ms(110);
        let trace = rig.trace("PC");
        let expected: Vec<&str> = expected.split(' ').collect();
        assert_eq!(trace[..expected.len()], expected, "row {id}");
    }
}
