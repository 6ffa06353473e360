// SPDX-License-Identifier: GPL-2.0-only
//! Small cases of the simulator that can be checked by hand.

use schedlab_kcore::TaskAccount;
use schedlab_policies::{Fifo, FifoTunables, Rr, RrTunables};
use schedlab_policy_api::{
    Build, Fingerprint, Observer, PolicyDef, SchedEvent, Topology, Tunables,
};
use schedlab_sim::{Cost, CostModel, EventOrder, HostObserver, Sim, SimConfig, SimError, Status};
use schedlab_units::{Nanos, TaskId, Time};
use schedlab_workload::Workload;
use schedlab_workload::ir::{
    Dist, MarkSpec, NamedSpec, ObjectId, Objects, Op, PipeSpec, Program, ProgramId, SemaphoreSpec,
    TaskSpec, TemplateId,
};

/// Keeps events as text, one a line, and the fingerprint.
#[derive(Default)]
struct Log {
    lines: Vec<String>,
    fingerprint: Fingerprint,
}

impl Observer for Log {
    fn event(&mut self, now: Time, event: &SchedEvent) {
        self.lines.push(format!("{} {event:?}", now.as_ns()));
        self.fingerprint.event(now, event);
    }
}
impl HostObserver for Log {}

fn workload(programs: Vec<Vec<Op>>) -> Workload {
    let tasks =
        (0..programs.len()).map(|i| TaskSpec::new(&format!("t{i}"), ProgramId(i as u32))).collect();
    let programs = programs.into_iter().map(|ops| Program { ops, n_counters: 1 }).collect();
    Workload { name: "test".to_string(), tasks, programs, ..Workload::default() }
}

fn build<'w, P: PolicyDef>(
    workload: &'w Workload,
    cpus: u32,
    cost: CostModel,
    tunables: &P::Tunables,
) -> Sim<'w, P, Log> {
    let topo = Topology::flat(cpus).expect("legal");
    let time = P::INFO.time;
    let policy = P::build(tunables, Build { topo: &topo, hz: time.hz, n_tasks: 8 });
    let config = SimConfig { cost, check: true, ..SimConfig::new(topo, time) };
    Sim::new(workload, policy, Log::default(), config)
}

fn accounts<P: PolicyDef>(sim: &Sim<'_, P, Log>, n: u32) -> Vec<TaskAccount> {
    (0..n).map(|id| sim.core().task_account(sim.now(), TaskId(id))).collect()
}

const MS: u64 = 1_000_000;

#[test]
fn hogs_under_rr_share_in_whole_slices() {
    let workload = workload(vec![vec![Op::RunForever], vec![Op::RunForever]]);
    let mut tunables = RrTunables::default();
    tunables.set_text("slice", "20ms").expect("legal");
    let mut sim = build::<Rr>(&workload, 1, CostModel::zero(), &tunables);
    assert_eq!(sim.run_until(Time::from_ns(100 * MS + 1)), Ok(Status::Running));
    let accounts = accounts(&sim, 2);
    assert_eq!(accounts[0].run, Nanos::from_ms(60));
    assert_eq!(accounts[1].run, Nanos::from_ms(40));
    sim.core().check_conservation(sim.now()).expect("adds up");
}

#[test]
fn sleeper_beside_hog_waits_under_fifo() {
    let sleeper =
        vec![Op::Run(Dist::Const(MS)), Op::Sleep(Dist::Const(5 * MS)), Op::Run(Dist::Const(MS))];
    let workload = workload(vec![sleeper, vec![Op::Run(Dist::Const(20 * MS))]]);
    let mut sim = build::<Fifo>(&workload, 1, CostModel::zero(), &FifoTunables::default());
    assert_eq!(sim.run_until(Time::MAX), Ok(Status::Finished));
    // 1 ms + 20 ms of the hog + 1 ms: the sleeper's wake-up at 6 ms does not preempt.
    assert_eq!(sim.now(), Time::from_ns(22 * MS));
}

#[test]
fn pipe_ping_pong_alternates_and_ends() {
    let pipe = |name: &str| PipeSpec {
        name: name.to_string(),
        capacity: 64_000,
        charge_per_write: None,
        writer_wake_below: 63_999,
        sync: true,
        wake_reader_always: false,
    };
    let side = |first: Op, second: Op| {
        vec![
            Op::SetCounter { counter: 0, value: Dist::Const(100) },
            first,
            Op::Run(Dist::Const(1000)),
            second,
            Op::DecJump { counter: 0, target: 1 },
        ]
    };
    let write = |pipe| Op::Write { pipe: ObjectId(pipe), bytes: 4 };
    let read = |pipe| Op::Read { pipe: ObjectId(pipe), bytes: 4 };
    let mut workload = workload(vec![side(write(0), read(1)), side(read(0), write(1))]);
    workload.objects = Objects { pipes: vec![pipe("a"), pipe("b")], ..Objects::default() };
    for cpus in [1, 2] {
        let cost = CostModel::built_in("default").expect("there");
        let mut sim = build::<Fifo>(&workload, cpus, cost, &FifoTunables::default());
        assert_eq!(sim.run_until(Time::MAX), Ok(Status::Finished));
        sim.core().check_conservation(sim.now()).expect("adds up");
    }
}

#[test]
fn wait_for_one_another_is_a_stall() {
    let mut workload =
        workload(vec![vec![Op::SemWait(ObjectId(0))], vec![Op::SemWait(ObjectId(0))]]);
    workload.objects.semaphores = vec![SemaphoreSpec { name: "s".to_string(), initial: 1 }];
    let mut sim = build::<Fifo>(&workload, 2, CostModel::zero(), &FifoTunables::default());
    assert_eq!(sim.run_until(Time::MAX), Ok(Status::Stalled));
    assert_eq!(sim.live_tasks(), ["t1"]);
}

#[test]
fn unlock_without_lock_is_a_fault_of_the_workload() {
    let mut workload = workload(vec![vec![Op::Unlock(ObjectId(0))]]);
    workload.objects.mutexes = vec![schedlab_workload::ir::NamedSpec { name: "m".to_string() }];
    let mut sim = build::<Fifo>(&workload, 1, CostModel::zero(), &FifoTunables::default());
    assert!(matches!(sim.run_until(Time::MAX), Err(SimError::NotOwner { .. })));
}

#[test]
fn parent_waits_for_forked_children() {
    let parent = vec![
        Op::SetCounter { counter: 0, value: Dist::Const(3) },
        Op::Fork { template: TemplateId(1), thread: false },
        Op::DecJump { counter: 0, target: 1 },
        Op::WaitChildren,
        Op::Mark { mark: schedlab_workload::ir::MarkId(0), n: 1 },
    ];
    let child = vec![Op::Run(Dist::Const(2 * MS)), Op::Exec, Op::Run(Dist::Const(MS))];
    let mut workload = workload(vec![parent, child]);
    workload.tasks[1].at_start = false;
    workload.marks = vec![MarkSpec { name: "done".to_string(), unit: "times".to_string() }];
    for (cpus, cost) in [(1, "zero"), (4, "zero"), (4, "default"), (1, "default")] {
        let cost = CostModel::built_in(cost).expect("there");
        let mut sim = build::<Fifo>(&workload, cpus, cost, &FifoTunables::default());
        assert_eq!(sim.run_until(Time::MAX), Ok(Status::Finished));
        let (_, log) = sim.into_parts();
        let n = |what: &str| log.lines.iter().filter(|l| l.contains(what)).count();
        assert_eq!((n("ProcessFork"), n("ProcessExit"), n("MarkCount")), (4, 4, 1));
        let last = |what: &str| log.lines.iter().rposition(|l| l.contains(what));
        let before = &log.lines[..last("ProcessExit").expect("the parent exits last")];
        let n_collected = before.iter().filter(|l| l.contains("ProcessFree")).count();
        assert_eq!(n_collected, 3, "the parent collects its children before it exits");
    }
}

#[test]
fn same_inputs_give_the_same_fingerprint() {
    let ops = vec![
        Op::Run(Dist::Exponential(300_000)),
        Op::Sleep(Dist::Uniform(100_000, 2_000_000)),
        Op::Jump { target: 0 },
    ];
    let workload = workload(vec![ops.clone(), ops.clone(), ops]);
    let run = |seed: u64| {
        let cost = CostModel::built_in("default").expect("there");
        let topo = Topology::flat(2).expect("legal");
        let time = Rr::INFO.time;
        let tunables = RrTunables::default();
        let policy = Rr::build(&tunables, Build { topo: &topo, hz: time.hz, n_tasks: 3 });
        let config = SimConfig { cost, seed, check: true, ..SimConfig::new(topo, time) };
        let mut sim = Sim::new(&workload, policy, Log::default(), config);
        sim.run_until(Time::from_ns(500 * MS)).expect("runs");
        sim.into_parts().1.fingerprint.value()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

/// Lines of a run of 100 ms under `rr` with slices of 20 ms on one CPU.
fn lines_in_order(workload: &Workload, order: EventOrder) -> Vec<String> {
    let mut tunables = RrTunables::default();
    tunables.set_text("slice", "20ms").expect("legal");
    let topo = Topology::flat(1).expect("legal");
    let time = Rr::INFO.time;
    let policy = Rr::build(&tunables, Build { topo: &topo, hz: time.hz, n_tasks: 8 });
    let config = SimConfig { order, check: true, ..SimConfig::new(topo, time) };
    let mut sim = Sim::new(workload, policy, Log::default(), config);
    sim.run_until(Time::from_ns(100 * MS)).expect("runs");
    std::mem::take(&mut sim.core_mut().observer_mut().lines)
}

#[test]
fn work_that_ends_on_a_tick_comes_first_in_order_of_creation() {
    let workload = workload(vec![vec![Op::Run(Dist::Const(20 * MS))], vec![Op::RunForever]]);
    let exit = |order| {
        let lines = lines_in_order(&workload, order);
        let line = lines.iter().find(|line| line.contains("Exit")).expect("it exits");
        line.split(' ').next().expect("a time").to_string()
    };
    // The tick takes the CPU away, and the other task has it for a slice.
    assert_eq!(exit(EventOrder::Kind), "40000000");
    assert_eq!(exit(EventOrder::Creation), "20000000");
}

#[test]
fn waker_that_blocks_has_left_before_the_wake_up_in_order_of_creation() {
    let wakes =
        vec![Op::Run(Dist::Const(MS + 1)), Op::SemPost(ObjectId(0)), Op::SemWait(ObjectId(1))];
    let mut workload = workload(vec![vec![Op::SemWait(ObjectId(0))], wakes]);
    workload.objects.semaphores =
        ["a", "b"].map(|name| SemaphoreSpec { name: name.to_string(), initial: 0 }).to_vec();
    let first = |order| {
        let lines = lines_in_order(&workload, order);
        let here = lines.iter().filter(|line| line.starts_with("1000001 "));
        here.map(|line| line.split(' ').nth(1).expect("a kind").to_string())
            .find(|kind| kind == "Wakeup" || kind == "Switch")
            .expect("both happen")
    };
    assert_eq!(first(EventOrder::Kind), "Wakeup");
    assert_eq!(first(EventOrder::Creation), "Switch");
}

#[test]
fn family_streams_give_the_same_work_under_every_policy() {
    let fork = |template| Op::Fork { template: TemplateId(template), thread: false };
    let run = |mean| Op::Run(Dist::Exponential(mean));
    let first = vec![
        Op::SetCounter { counter: 0, value: Dist::Const(5) },
        fork(1),
        Op::DecJump { counter: 0, target: 1 },
    ];
    let child = vec![run(120 * MS), fork(2), run(120 * MS), fork(3)];
    let length = vec![
        Op::Draw(Dist::LogNormal { median: 40 * MS, sigma_percent: 60 }),
        Op::RunPart(2),
        Op::RunPart(2),
    ];
    let mut workload = workload(vec![first, child, vec![run(MS)], length]);
    for task in &mut workload.tasks[1..] {
        task.at_start = false;
    }
    // On one CPU without costs a run takes as long as its work.
    let ends = |workload: &Workload| {
        let cost = CostModel::zero();
        let mut fifo = build::<Fifo>(workload, 1, cost.clone(), &FifoTunables::default());
        assert_eq!(fifo.run_until(Time::MAX), Ok(Status::Finished));
        let mut tunables = RrTunables::default();
        tunables.set_text("slice", "3ms").expect("legal");
        let mut rr = build::<Rr>(workload, 1, cost, &tunables);
        assert_eq!(rr.run_until(Time::MAX), Ok(Status::Finished));
        (fifo.now(), rr.now())
    };
    let (fifo, rr) = ends(&workload);
    assert_ne!(fifo, rr);
    workload.family_streams = true;
    let (fifo, rr) = ends(&workload);
    assert_eq!(fifo, rr);
}

/// A task that wakes four others at once, 1 ms after it went to sleep.
fn broadcast() -> Workload {
    let mut programs = vec![vec![
        Op::FutexArm(ObjectId(0)),
        Op::Sleep(Dist::Const(MS)),
        Op::FutexWake { futex: ObjectId(0), n: u32::MAX },
    ]];
    programs.resize(5, vec![Op::FutexWait(ObjectId(0))]);
    let mut workload = workload(programs);
    workload.objects.futexes = vec![NamedSpec { name: "gate".to_string() }];
    workload
}

fn end_of<P: PolicyDef>(workload: &Workload, cost: CostModel) -> u64
where
    P::Tunables: Default,
{
    let mut sim = build::<P>(workload, 1, cost, &P::Tunables::default());
    assert_eq!(sim.run_until(Time::MAX), Ok(Status::Finished));
    sim.now().as_ns()
}

#[test]
fn wakeups_at_one_instant_hold_the_lock_one_after_the_other() {
    let figure = |ns| Cost { ns, source: String::new() };
    for lock_contention in [false, true] {
        let cost = CostModel { wakeup: figure(5000), lock_contention, ..CostModel::zero() };
        // The timer's wake-up and four more.
        assert_eq!(end_of::<Fifo>(&broadcast(), cost.clone()), MS + 25_000);
        let free = CostModel { free_interrupt_wakeups: true, ..cost };
        assert_eq!(end_of::<Fifo>(&broadcast(), free), MS + 20_000);
    }
}

#[test]
fn yield_takes_its_time_before_schedule() {
    let workload = workload(vec![vec![Op::Yield, Op::Run(Dist::Const(MS))], vec![Op::Yield]]);
    let figure = |ns| Cost { ns, source: String::new() };
    let cost = CostModel { sched_yield: figure(700), ..CostModel::zero() };
    assert_eq!(end_of::<Fifo>(&workload, cost), MS + 1400);
}
