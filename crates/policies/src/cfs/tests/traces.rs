// SPDX-License-Identifier: GPL-2.0-only
//! The traces of spec cfs-eevdf §9 T13: always-runnable tasks on one CPU, without any cost.
//!
//! The start is the spec's convention, set up by tunables alone: the spans of a machine of eight or
//! more CPUs, and `start_debit` off. A new queue's clock is behind 0, so that all tasks start at 0.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use schedlab_units::{CpuId, TaskId};

use super::{Rig, set_of, single};

/// Picks of the tasks with these nice values up to the number given, and the tasks.
fn picks(variant: &str, hz: u32, nice: &[i32], n: usize) -> (Vec<String>, Rig, Vec<TaskId>) {
    let mut rig = single(hz, &set_of(variant));
    let tasks: Vec<TaskId> = nice.iter().map(|nice| rig.spawn_nice(*nice)).collect();
    let tick_ms = 1000 / u64::from(hz);
    let mut picks = Vec::new();
    let mut prev = None;
    for ms in (0..).step_by(tick_ms as usize) {
        rig.now = ms * 1_000_000;
        if ms > 0 {
            rig.core.tick(rig.time(), CpuId(0));
        }
        if rig.need_resched(0) {
            let next = rig.schedule(0).expect("somebody is runnable");
            let letter = char::from(b'A' + next.0 as u8);
            let again = if prev == Some(next) { "*" } else { "" };
            picks.push(format!("{ms}:{letter}{again}"));
            prev = Some(next);
            if picks.len() == n {
                break;
            }
        }
    }
    (picks, rig, tasks)
}

#[test]
fn vectors_74_to_77_82_picks() {
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
