// SPDX-License-Identifier: GPL-2.0-only
//! Rows of cfs-eevdf §9: traces of always-runnable tasks on one CPU, without any cost.
//!
//! The start is the spec's convention, set up by tunables alone: a slice of 2.8 ms, as on a machine
//! of eight or more CPUs, and `place_deadline_initial` off, so that the first deadlines are a whole
//! slice away. All tasks wait before the first pick at 0. Virtual times count from the start of the
//! queue's clock.

use alloc::string::String;
use alloc::vec::Vec;

use schedlab_units::TaskId;

use super::harness::Rig;

/// Picks of the tasks with these nice values up to the number given, and the tasks.
pub(super) fn picks(
    hz: u32,
    set: &[(&str, &str)],
    nice: &[i32],
    n: usize,
) -> (Vec<String>, Rig, Vec<TaskId>) {
    let mut rig = Rig::single(hz, set);
    let tasks: Vec<TaskId> = nice.iter().map(|nice| rig.spawn_nice(*nice)).collect();
    let picks = rig.picks(n);
    (picks, rig, tasks)
}

#[test]
fn vectors_79_to_81_traces() {
    let text = include_str!("../vectors/t13-picks.txt");
    let mut lines = text.lines().filter(|line| !line.starts_with('#')).peekable();
    while let Some(head) = lines.next() {
        let words: Vec<&str> = head.split_whitespace().collect();
        let hz = words[2].parse().expect("a rate");
        let nice: Vec<i32> = words[4..].iter().map(|w| w.parse().expect("a nice")).collect();
        let expected: Vec<&str> = lines.next().expect("picks").split_whitespace().collect();
        let (picks, rig, tasks) = picks(hz, &[], &nice, expected.len());
        assert_eq!(picks, expected, "row {}", words[0]);
        while let Some(line) = lines.next_if(|line| line.starts_with(['v', 'd'])) {
            let (name, values) = line.split_once(' ').expect("a name and values");
            let figure = if name == "v" { "vruntime" } else { "deadline" };
            let start = -(1i64 << 20);
            let got: Vec<i64> = tasks.iter().map(|t| rig.figure(*t, figure) - start).collect();
            let want: Vec<i64> =
                values.split_whitespace().map(|v| v.parse().expect("a number")).collect();
            assert_eq!(got, want, "row {}: {figure}", words[0]);
        }
    }
}
