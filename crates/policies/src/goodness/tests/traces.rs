// SPDX-License-Identifier: GPL-2.0-only
//! Rows of linux-2.4-goodness §9, H: whom each tick charges, on one and two CPUs.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use schedlab_units::{CpuId, Nanos, TaskId};

use super::rig::{Figures, Machine, Ticks, mm};
use crate::csv::{Row, rows};
use crate::goodness::Goodness;

/// Runs of equal letters, as `A6 B12`.
fn run_lengths(letters: &[char]) -> String {
    let runs = letters.chunk_by(|a, b| a == b);
    let runs: Vec<String> = runs.map(|run| format!("{}{}", run[0], run.len())).collect();
    runs.join(" ")
}

/// Number of ticks in a trace such as `A6 B12`.
fn n_ticks(trace: &str) -> u32 {
    trace.split(' ').map(|run| run[1..].parse::<u32>().expect("a count")).sum()
}

struct Charges<P> {
    rig: Machine<P>,
    tasks: Vec<TaskId>,
    letters: [Vec<char>; 2],
}

impl<P: Ticks> Charges<P> {
    /// A tick of `cpu`, noted for whom it charges.
    fn tick(&mut self, cpu: CpuId, first_letter: char) {
        let curr = self.rig.core.curr(cpu).expect("somebody runs");
        let index = self.tasks.iter().position(|task| *task == curr).expect("known");
        let letter = char::from_u32(u32::from(first_letter) + index as u32).expect("a letter");
        self.letters[cpu.index()].push(letter);
        self.rig.tick(cpu);
        self.rig.settle(cpu);
    }
}

fn check<P: Ticks>(row: &Row<'_>, n_cpus: u32, first_letter: char) {
    let mut rig = Machine::<P>::new(n_cpus, row.text("set"));
    let tasks: Vec<TaskId> = rig_tasks(&mut rig, row);
    for task in &tasks {
        rig.wake_new(CpuId(0), *task);
        if n_cpus > 1 {
            rig.settle(CpuId(0));
        }
    }
    rig.settle(CpuId(0));
    let mut charges = Charges { rig, tasks, letters: Default::default() };
    for _ in 0..n_ticks(row.text("cpu0")) {
        charges.rig.advance(Nanos::from_ms(10));
        for cpu in (0..n_cpus).map(CpuId) {
            charges.tick(cpu, first_letter);
        }
    }
    let id = row.text("id");
    assert_eq!(run_lengths(&charges.letters[0]), row.text("cpu0"), "{id} {}", row.text("set"));
    assert_eq!(run_lengths(&charges.letters[1]), row.text("cpu1"), "{id} {}", row.text("set"));
    if !row.text("epochs").is_empty() {
        assert_eq!(charges.rig.stat("epochs"), row.get::<i64>("epochs"), "{id}");
    }
}

fn rig_tasks<P: Ticks>(rig: &mut Machine<P>, row: &Row<'_>) -> Vec<TaskId> {
    let specs = row.text("tasks").replace("rr ", "rr_").replace("fifo ", "fifo_");
    let tasks = specs.split(' ').map(|spec| {
        let figures = Figures::parse(&spec.replace('_', " "));
        let mut new = rig.process(figures);
        if row.text("mm") == "common" {
            new.mm = mm(1);
        }
        rig.create(&new, figures.counter)
    });
    tasks.collect()
}

/// The traces of one CPU under `P`.
pub(crate) fn check_up_traces<P: Ticks>() {
    let rows = rows(include_str!("../vectors/traces.csv"));
    for row in rows.iter().filter(|row| row.text("cpu1").is_empty()) {
        let first_letter = if row.text("cpu0").contains('Y') { 'X' } else { 'A' };
        check::<P>(row, 1, first_letter);
    }
}

#[test]
fn vectors_h1_to_h9_up_traces() {
    check_up_traces::<Goodness>();
}

#[test]
fn vectors_h10_h11_smp_traces() {
    let rows = rows(include_str!("../vectors/traces.csv"));
    let mut n = 0;
    for row in rows.iter().filter(|row| !row.text("cpu1").is_empty()) {
        check::<Goodness>(row, 2, 'A');
        n += 1;
    }
    assert_eq!(n, 4);
}
