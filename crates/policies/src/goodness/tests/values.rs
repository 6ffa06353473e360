// SPDX-License-Identifier: GPL-2.0-only
//! Rows of linux-2.4-goodness §9, E and F: goodness, and the difference that decides a preemption.

use alloc::format;

use schedlab_policy_api::{Mm, Task, TaskState, Tgid};
use schedlab_units::{CpuId, CpuSet, Hz, Time};

use super::rig::{Figures, mm, only, tunables};
use crate::csv::{Row, rows};
use crate::goodness::resched_idle::{Cpus, Target};
use crate::goodness::tunables::Knobs;
use crate::goodness::value::{ActiveMm, Asker, Entry, TaskValue};

const A: u32 = 1;

fn value(figures: Figures, last: u32, own_mm: Option<Mm>, rt_scale: i32) -> TaskValue {
    let task = Task {
        state: TaskState::Sleeping,
        class: figures.class,
        nice: figures.nice,
        rt_priority: figures.rt_priority,
        cpu: CpuId(last),
        on_cpu: false,
        affinity: CpuSet::first_n(1),
        parent: None,
        tgid: Tgid(0),
        mm: own_mm,
        slice_request_ns: 0,
        generation: 0,
    };
    let mut value = TaskValue::new(&task, figures.counter as i32, Hz::new(100), rt_scale);
    value.yielded = figures.yielded;
    value
}

/// CPU 0 with mm A loaded.
fn asker(pcp: i32) -> Asker {
    Asker { cpu: CpuId(0), active: ActiveMm::of(Mm(A)), pcp }
}

fn named_mm(name: &str) -> Option<Mm> {
    match name {
        "" | "A" => mm(A),
        "B" => mm(2),
        "none" => None,
        _ => panic!("no address space is called {name}"),
    }
}

#[test]
fn vectors_e1_to_e14_goodness() {
    for row in rows(include_str!("../vectors/goodness.csv")) {
        let pcp = if row.get_or("cpus", 2) == 1 { 0 } else { 15 };
        let goodness = if row.text("class") == "idle task" {
            Entry::idle_goodness(pcp)
        } else {
            let class = if row.text("class").is_empty() { "other" } else { row.text("class") };
            let figures = format!(
                "{}/{}:{class} {}{}",
                row.text("counter"),
                row.get_or("nice", 0),
                row.get_or("prio", 0),
                if row.get_or("yield", 0) == 1 { "!" } else { "" },
            );
            let rt_scale = row.get_or("rt_scale", 1);
            let own_mm = named_mm(row.text("mm"));
            let task = value(Figures::parse(&figures), row.get("last"), own_mm, rt_scale);
            task.entry().goodness(asker(pcp))
        };
        assert_eq!(goodness, row.get::<i32>("goodness"), "{}", row.text("id"));
    }
}

/// Δ of row's p against its prev, and whether p preempts when only prev's CPU is allowed to it.
fn decide(row: &Row<'_>, set: &str) -> (i32, bool) {
    let n_cpus: usize = row.get("cpus");
    let knobs = Knobs::new(&tunables(set), n_cpus, Hz::new(100));
    let on: u32 = row.get("on");
    let mut cpus = Cpus::new(n_cpus, knobs.pcp);
    cpus.load_mm(CpuId(on), ActiveMm::of(Mm(A)));
    if row.text("prev") != "idle" {
        let prev = value(Figures::parse(row.text("prev")), on, mm(A), knobs.rt_scale);
        cpus.leave_idle(CpuId(on), Time::ZERO);
        cpus.set_curr_entry(CpuId(on), prev.entry(), knobs.pcp);
    }
    let figures = Figures::parse(row.text("p"));
    let own_mm = named_mm(row.text("p_mm"));
    let p = value(figures, row.get_or("p_last", 0), own_mm, knobs.rt_scale);
    let delta = cpus.delta(p.entry(), CpuId(on), knobs.pcp);
    (delta, cpus.find_target(&p, &only(on), &knobs) != Target::None)
}

#[test]
fn vectors_f1_to_f16_delta_and_decision() {
    for row in rows(include_str!("../vectors/delta.csv")) {
        let id = row.text("id");
        for (column, set) in
            [("t1", "t_up=1;t_smp=1"), ("t0", "t_up=0;t_smp=0"), ("r2t1", "rt_scale=2")]
        {
            let (delta, preempts) = decide(&row, set);
            let expected: i32 = match column {
                "r2t1" => row.get_or("delta_r2", row.get("delta")),
                _ => row.get("delta"),
            };
            assert_eq!(delta, expected, "{id} {column}");
            assert_eq!(preempts, row.text(column) == "yes", "{id} {column}");
        }
    }
}

/// The thread's two requirements at once (CL10): both repairs decide alike everywhere.
#[test]
fn margin_for_other_decides_like_scaled_rt() {
    for row in rows(include_str!("../vectors/delta.csv")) {
        let (_, margin) = decide(&row, "t_up=0;t_smp=0;other_margin=1");
        let (_, scaled) = decide(&row, "rt_scale=2");
        assert_eq!(margin, scaled, "{}", row.text("id"));
    }
}

/// Under threshold 1 exactly a lead of 1 violates "a positive difference replaces" (CL11).
#[test]
fn threshold_one_hides_exactly_a_lead_of_one() {
    let (mut n_hidden, mut n_seen) = (0, 0);
    for a in 0..=20 {
        for b in 0..=20 {
            for p_mm in [mm(A), mm(2), None] {
                let knobs = |set| Knobs::new(&tunables(set), 2, Hz::new(100));
                let figures = |counter| Figures { counter, ..Figures::parse("0") };
                let prev = value(figures(a), 0, mm(A), 1);
                let mut cpus = Cpus::new(2, 15);
                cpus.load_mm(CpuId(0), ActiveMm::of(Mm(A)));
                cpus.leave_idle(CpuId(0), Time::ZERO);
                cpus.set_curr_entry(CpuId(0), prev.entry(), 15);
                let p = value(figures(b), 0, p_mm, 1);
                let delta = cpus.delta(p.entry(), CpuId(0), 15);
                let preempts = |set| cpus.find_target(&p, &only(0), &knobs(set)) != Target::None;
                assert_eq!(preempts("t_smp=0"), delta > 0);
                assert_eq!(preempts("t_smp=1"), delta > 0 && delta != 1);
                n_hidden += u32::from(delta == 1);
                n_seen += u32::from(delta > 1);
            }
        }
    }
    assert!(n_hidden > 0 && n_seen > 0);
}
