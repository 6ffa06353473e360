// SPDX-License-Identifier: GPL-2.0-only
//! Plays become figures: made recordings of which every figure is known.

use proptest::prelude::*;
use schedlab_host::played::{Counts, Note, Noted, Played, PlayedTask};
use schedlab_lab::played::{PlayedAs, result_of};
use schedlab_lab::result::RunResult;
use schedlab_policy_api::{
    CommId, Pid, RecordContext, RecordEvent, RecordedState, Recording, TraceRecord,
};
use schedlab_units::{CpuId, Hz, Nanos, Time};
use schedlab_workload::ir::{
    Dist, MarkSpec, Op, Program, ProgramId, TaskSpec, TemplateId, Workload,
};

const START: u64 = 1_000_000;
const OTHER: u32 = 99;

fn at(ns: u64) -> Time {
    Time::from_ns(START + ns)
}

fn record(ns: u64, cpu: u32, pid: u32, event: RecordEvent) -> TraceRecord {
    let context = RecordContext::Task;
    TraceRecord { time: at(ns), cpu: CpuId(cpu), pid: Pid(pid), comm: CommId(0), context, event }
}

fn switch(ns: u64, cpu: u32, prev: u32, prev_state: RecordedState, next: u32) -> TraceRecord {
    let event = RecordEvent::Switch {
        prev: Pid(prev),
        prev_comm: CommId(0),
        prev_prio: 120,
        prev_state,
        next: Pid(next),
        next_comm: CommId(0),
        next_prio: 120,
    };
    record(ns, cpu, prev, event)
}

fn waking(ns: u64, cpu: u32, by: u32, pid: u32, target: u32) -> TraceRecord {
    let (pid, comm, prio, target_cpu) = (Pid(pid), CommId(0), 120, CpuId(target));
    record(ns, cpu, by, RecordEvent::Waking { pid, comm, prio, target_cpu })
}

fn task(pid: u32, template: u32, parent: Option<usize>, born: u64) -> PlayedTask {
    PlayedTask {
        pid: Pid(pid),
        process: Pid(pid),
        template: TemplateId(template),
        instance: 0,
        parent,
        born: at(born),
        exit: None,
        counts: Counts::default(),
    }
}

/// Two tasks of the start and one that the first forks.
fn workload() -> Workload {
    let fork = Op::Fork { template: TemplateId(2), thread: true };
    let program = Program { ops: vec![Op::Run(Dist::Const(1)), fork], n_counters: 0 };
    let forked = TaskSpec { at_start: false, ..TaskSpec::new("child", ProgramId(0)) };
    Workload {
        tasks: vec![TaskSpec::new("a", ProgramId(0)), TaskSpec::new("b", ProgramId(0)), forked],
        programs: vec![program],
        marks: vec![MarkSpec { name: "m".to_string(), unit: "x".to_string() }],
        ..Workload::default()
    }
}

fn played(records: Vec<TraceRecord>, end: u64) -> Played {
    Played {
        start: at(0),
        end: at(end),
        n_cpus: 2,
        cpus: vec![0, 1],
        tasks: vec![task(10, 0, None, 0), task(11, 1, None, 0), task(12, 2, Some(0), 0)],
        recording: Some(Recording { records, n_cpus: 2, ..Recording::default() }),
        complete: true,
        ..Played::default()
    }
}

fn result(played: &Played) -> (RunResult, Vec<String>) {
    let id =
        PlayedAs { column: 0, live: None, kernel: "6.18".to_string(), hz: Hz::new(250), seed: 1 };
    result_of(&workload(), played, &id)
}

use RecordedState::{Exited, Preempted, Runnable, Sleeping};

#[test]
fn every_figure_of_a_small_play_is_known() {
    let records = vec![
        // Before the start: both sleep.
        switch(0, 0, 10, Sleeping, 0),
        switch(0, 1, 11, Sleeping, OTHER),
    ];
    let mut records: Vec<TraceRecord> =
        records.into_iter().map(|r| TraceRecord { time: Time::from_ns(START - 10), ..r }).collect();
    let fork = RecordEvent::Fork {
        parent: Pid(10),
        parent_comm: CommId(0),
        child: Pid(12),
        child_comm: CommId(0),
    };
    let new =
        RecordEvent::WakeupNew { pid: Pid(12), comm: CommId(0), prio: 120, target_cpu: CpuId(0) };
    let exit = RecordEvent::Exit { pid: Pid(12), comm: CommId(0), prio: 120 };
    records.extend([
        waking(100, 0, 0, 10, 0),
        switch(120, 0, 0, Runnable, 10),
        waking(150, 1, OTHER, 11, 1),
        switch(200, 1, OTHER, Preempted, 11),
        record(220, 0, 10, fork),
        record(230, 0, 10, new),
        switch(300, 0, 10, Preempted, 12),
        switch(400, 1, 11, Sleeping, OTHER),
        record(450, 0, 12, exit),
        switch(460, 0, 12, Exited, 10),
        waking(500, 0, 10, 11, 1),
        switch(510, 1, OTHER, Preempted, 11),
        switch(700, 0, 10, Sleeping, 0),
    ]);
    let mut play = played(records, 1000);
    play.notes = vec![Note { time: at(600), task: 0, what: Noted::Latency { mark: 0, ns: 42 } }];
    let (result, _) = result(&play);
    let row = |name: &str| {
        let task = result.figures.tasks.iter().find(|task| task.name == name).expect("a row");
        let f = task.figures;
        (f.run.as_ns(), f.wait.as_ns(), f.sleep.as_ns(), f.life.as_ns(), f.wakeups)
    };
    // a: asleep to 100, waits 20, runs to 300, waits to 460, runs to 700, sleeps.
    assert_eq!(row("a"), (180 + 240, 20 + 160, 100 + 300, 1000, 0));
    // b: first woken at 150, runs 200 to 400, woken at 500, runs from 510 on.
    assert_eq!(row("b"), (200 + 490, 50 + 10, 150 + 100, 1000, 1));
    // child: forked at 220, woken at 230, runs 300 to 450.
    assert_eq!(row("child"), (150, 70, 10, 230, 0));
    let b = result.figures.tasks.iter().find(|task| task.name == "b").expect("a row");
    assert_eq!(b.figures.wakeup_latency.expect("one wake-up").max, 10);
    let cpus: Vec<(u64, u64)> =
        result.figures.cpus.iter().map(|cpu| (cpu.busy.as_ns(), cpu.idle.as_ns())).collect();
    assert_eq!(cpus, [(580, 420), (1000, 0)]);
    assert_eq!(result.figures.marks[0].latency.expect("a span").max, 42);
    assert_eq!(result.policy_stats[1], ("other_ns".to_string(), 200 + 110));
    assert_eq!(result.spec(), "host@6.18");
}

#[test]
fn thread_that_comes_back_unwoken_was_woken_as_it_left() {
    let records = vec![
        waking(0, 0, 0, 10, 0),
        switch(10, 0, 0, Runnable, 10),
        // The wake-up is written before the switch away.
        waking(45, 1, OTHER, 10, 0),
        switch(50, 0, 10, Sleeping, OTHER),
        switch(70, 0, OTHER, Preempted, 10),
    ];
    let (result, remarks) = result(&played(records, 100));
    let a = result.figures.tasks[0].figures;
    assert_eq!((a.run.as_ns(), a.wait.as_ns(), a.wakeups), (70, 10 + 20, 1));
    assert!(!remarks.iter().any(|remark| remark.contains("repaired")), "{remarks:?}");
}

#[test]
fn yield_is_told_from_preemption_by_the_thread_itself() {
    let records = vec![
        waking(0, 0, 0, 10, 0),
        switch(10, 0, 0, Runnable, 10),
        switch(25, 0, 10, Runnable, OTHER),
        switch(30, 0, OTHER, Runnable, 10),
        switch(40, 0, 10, Runnable, OTHER),
    ];
    let mut play = played(records, 100);
    play.notes = vec![Note { time: at(24), task: 0, what: Noted::Yield { until: at(31) } }];
    let (result, _) = result(&play);
    let a = result.figures.tasks[0].figures;
    assert_eq!((a.involuntary, a.preemptions), (2, 1));
}

#[test]
fn counts_of_the_kernel_give_times_without_tracepoints() {
    let mut play = played(vec![], 1000);
    play.recording = None;
    play.tasks[0].counts = Counts {
        run: Nanos::from_ns(300),
        wait: Some(Nanos::from_ns(100)),
        voluntary: 5,
        involuntary: 2,
    };
    play.tasks[1].counts.run = Nanos::from_ns(5000);
    play.tasks[2].exit = Some(at(400));
    let (result, remarks) = result(&play);
    let row = |index: usize| {
        let f = result.figures.tasks[index].figures;
        (f.run.as_ns(), f.wait.as_ns(), f.sleep.as_ns(), f.life.as_ns())
    };
    assert_eq!(row(0), (300, 100, 600, 1000));
    assert_eq!(row(1), (1000, 0, 0, 1000), "never more than its life");
    assert_eq!(row(2), (0, 0, 400, 400));
    assert_eq!(result.figures.groups[0].figures.voluntary, 5);
    assert!(remarks.iter().any(|remark| remark.contains("no tracepoints")), "{remarks:?}");
}

/// Any record of three of our threads and a foreign one on two CPUs.
fn any_record() -> impl Strategy<Value = (u64, TraceRecord)> {
    let pid = prop::sample::select(vec![0u32, 10, 11, 12, OTHER]);
    let state = prop::sample::select(vec![Runnable, Preempted, Sleeping, Exited]);
    (0u64..50, 0u32..3, pid.clone(), pid, state, 0u8..7).prop_map(
        |(step, cpu, p, q, state, kind)| {
            let (pid, comm, prio, target_cpu) = (Pid(q), CommId(0), 120, CpuId(cpu));
            let made = match kind {
                0..3 => switch(0, cpu, p, state, q),
                3 => waking(0, cpu, p, q, cpu),
                4 => record(0, cpu, p, RecordEvent::WakeupNew { pid, comm, prio, target_cpu }),
                5 => record(0, cpu, p, RecordEvent::Exit { pid, comm, prio }),
                _ => record(
                    0,
                    cpu,
                    p,
                    RecordEvent::Fork {
                        parent: Pid(p),
                        parent_comm: comm,
                        child: pid,
                        child_comm: comm,
                    },
                ),
            };
            (step, made)
        },
    )
}

proptest! {
    #[test]
    fn damaged_recordings_keep_time_conserved(steps in prop::collection::vec(any_record(), 0..80)) {
        let mut now = START - 100;
        let mut records = Vec::new();
        for (step, made) in steps {
            now += step;
            records.push(TraceRecord { time: Time::from_ns(now), ..made });
        }
        let play = played(records, 2000);
        let (result, _) = result(&play);
        for task in &result.figures.tasks {
            let f = task.figures;
            prop_assert_eq!(f.run + f.wait + f.sleep, f.life, "{}", task.name);
        }
        for cpu in &result.figures.cpus {
            prop_assert_eq!(cpu.busy + cpu.idle + cpu.overhead(), Nanos::from_ns(2000));
        }
    }
}
