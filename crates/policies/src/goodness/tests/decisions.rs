// SPDX-License-Identifier: GPL-2.0-only
//! Rows of linux-2.4-goodness §9, G: whom a wake-up disturbs on four CPUs.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use schedlab_units::{CpuId, CpuSet, Nanos, TaskId, Time};

use super::rig::{Figures, Rig, mm, only};
use crate::csv::{Row, rows};

/// What a CPU does, as the rows write it.
struct CpuState<'a> {
    kind: &'a str,
    figure: Option<&'a str>,
    last_schedule: Time,
}

impl<'a> CpuState<'a> {
    fn parse(text: &'a str) -> Self {
        let (what, stamp) = text.split_once('@').expect("a stamp");
        let (kind, figure) =
            what.split_once(':').map_or((what, None), |(kind, figure)| (kind, Some(figure)));
        let last_schedule = Time::ZERO + Nanos::from_ms(stamp.parse().expect("ms"));
        Self { kind, figure, last_schedule }
    }

    fn figures(&self) -> Figures {
        match self.kind {
            "fifo" => Figures::parse(&format!("6:fifo {}", self.figure.expect("a priority"))),
            _ => Figures::parse("6"),
        }
    }
}

/// Brings the machine into the state of the row: each CPU switched for the last time at its stamp.
fn set_up(row: &Row<'_>, set: &str) -> Rig {
    let mut rig = Rig::new(4, &format!("idle_poll={};{set}", row.text("idle_poll")));
    let cpus: Vec<CpuState<'_>> = row.text("cpus").split(' ').map(CpuState::parse).collect();
    let mut steps: Vec<(Time, usize, bool)> = Vec::new();
    for (i, cpu) in cpus.iter().enumerate() {
        let starts = match cpu.kind {
            "idle" => Time::ZERO + (cpu.last_schedule - Time::from_ns(5_000_000)),
            _ => cpu.last_schedule,
        };
        steps.push((starts, i, true));
        if cpu.kind == "idle" {
            steps.push((cpu.last_schedule, i, false));
        }
    }
    steps.sort();
    let mut tasks: Vec<Option<TaskId>> = alloc::vec![None; 4];
    for (time, i, starts) in steps {
        rig.now = time;
        let cpu = CpuId::from_index(i);
        if starts {
            let mut new = rig.process(cpus[i].figures());
            new.mm = mm(1);
            new.affinity = only(cpu.0);
            new.cpu = cpu;
            let task = rig.create(&new, 6);
            rig.wake_new(cpu, task);
            rig.settle(cpu);
            assert_eq!(rig.core.curr(cpu), Some(task));
            tasks[i] = Some(task);
        } else {
            rig.block(cpu);
        }
    }
    rig.now = Time::from_ns(90_000_000);
    for (i, cpu) in cpus.iter().enumerate() {
        let (cpu_id, task) = (CpuId::from_index(i), tasks[i].expect("created"));
        match (cpu.kind, cpu.figure) {
            ("yield", _) => yield_and_stay(&mut rig, cpu_id),
            ("run", Some(counter)) => {
                let counter = counter.parse().expect("a counter");
                rig.core.policy_mut().set_counter(task, counter);
            }
            _ => {}
        }
    }
    rig
}

/// The current task of `cpu` yields to one that may not run there, and is chosen again with its
/// yield mark (Q4).
fn yield_and_stay(rig: &mut Rig, cpu: CpuId) {
    let mut new = rig.process(Figures::parse("0"));
    new.affinity = only(0);
    let bystander = rig.create(&new, 0);
    rig.wake_new(CpuId(0), bystander);
    let task = rig.core.curr(cpu).expect("it runs");
    rig.core.yield_task(rig.now, cpu);
    rig.settle(cpu);
    assert_eq!((rig.core.curr(cpu), rig.inspect(task, "yielded")), (Some(task), 1));
}

/// Wakes p and tells whom that disturbs.
fn wake_p(rig: &mut Rig, row: &Row<'_>) -> String {
    rig.now = Time::from_ns(100_000_000);
    let p = match row.text("p").split_once(' ') {
        Some((class, prio)) => Figures::parse(&format!("6:{class} {prio}")),
        None => Figures::parse(row.text("p")),
    };
    let mut new = rig.process(p);
    new.mm = mm(1);
    new.cpu = CpuId(row.get("p_last"));
    new.affinity = CpuSet::parse(row.text("allowed")).expect("a CPU list");
    let task = rig.create(&new, p.counter);
    rig.take_resched();
    let kinds = rig.stat("idle_kicks");
    let preemptions = rig.stat("preempt_decisions");
    rig.wake_new(CpuId(row.get("here")), task);
    let requests = rig.take_resched();
    let [request] = requests[..] else {
        assert!(requests.is_empty(), "one wake-up disturbs one CPU: {requests:?}");
        return "none".to_string();
    };
    let idle = i64::from(rig.core.curr(request.cpu).is_none());
    assert_eq!(rig.stat("idle_kicks") - kinds, idle);
    assert_eq!(rig.stat("preempt_decisions") - preemptions, 1 - idle);
    format!("{}{}", request.cpu, if request.ipi { " ipi" } else { "" })
}

#[test]
fn vectors_g1_to_g11_reschedule_idle() {
    for row in rows(include_str!("../vectors/reschedule_idle.csv")) {
        for (column, set) in [("t1", ""), ("t0", "t_smp=0"), ("r2t1", "rt_scale=2")] {
            let mut rig = set_up(&row, set);
            let disturbed = wake_p(&mut rig, &row);
            assert_eq!(disturbed, row.text(column), "{} {column}", row.text("id"));
        }
    }
}
