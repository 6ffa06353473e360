// SPDX-License-Identifier: GPL-2.0-only
//! Rows of cfs-eevdf §9: traces of always-runnable tasks on one CPU, without any cost.
//!
//! The start is the spec's convention, set up by tunables alone: the spans of a machine of eight or
//! more CPUs, and `start_debit` off. A new queue's clock is behind 0, so that all tasks start at 0.

use alloc::string::String;
use alloc::vec::Vec;

use schedlab_units::TaskId;

use super::{Rig, set_of, single};

/// Picks of the tasks with these nice values up to the number given, and the tasks.
fn picks(variant: &str, hz: u32, nice: &[i32], n: usize) -> (Vec<String>, Rig, Vec<TaskId>) {
    let mut rig = single(hz, &set_of(variant));
    let tasks: Vec<TaskId> = nice.iter().map(|nice| rig.spawn_nice(*nice)).collect();
    let picks = rig.picks(n);
    (picks, rig, tasks)
}

#[test]
fn vectors_74_to_77_82_traces() {
    let text = include_str!("../vectors/t13-picks.txt");
    let mut lines = text.lines().filter(|line| !line.starts_with('#')).peekable();
    while let Some(head) = lines.next() {
        let words: Vec<&str> = head.split_whitespace().collect();
        let hz = words[3].parse().expect("a rate");
        let nice: Vec<i32> = words[5..].iter().map(|w| w.parse().expect("a nice")).collect();
        let expected: Vec<&str> = lines.next().expect("picks").split_whitespace().collect();
        let (picks, rig, tasks) = picks(words[1], hz, &nice, expected.len());
        assert_eq!(picks, expected, "row {}", words[0]);
        if let Some(values) = lines.next_if(|line| line.starts_with("v ")) {
            let got: Vec<i64> = tasks.iter().map(|t| rig.figure(*t, "vruntime")).collect();
            let words = values.split_whitespace().skip(1);
            let want: Vec<i64> = words.map(|v| v.parse().expect("a number")).collect();
            assert_eq!(got, want, "row {head}");
        }
    }
}
