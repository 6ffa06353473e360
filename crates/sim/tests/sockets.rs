// SPDX-License-Identifier: GPL-2.0-only
//! Rows of cfs-eevdf §9: a socket pair of hackbench, from the workload file to who is woken when.

use schedlab_policies::{Fifo, FifoTunables};
use schedlab_policy_api::{Build, Observer, PolicyDef, SchedEvent, Topology};
use schedlab_sim::{CostModel, HostObserver, Sim, SimConfig, Status};
use schedlab_units::{Nanos, TaskId, Time};
use schedlab_workload::ir::{
    Dist, MarkId, MarkSpec, ObjectId, Objects, Op, Program, ProgramId, TaskSpec,
};
use schedlab_workload::{LoadOptions, Workload, resolve};

const WRITER: TaskId = TaskId(0);
const READER: TaskId = TaskId(1);

/// Counts the messages that were written and read when the writer is woken.
#[derive(Default)]
struct Messages {
    written: u64,
    read: u64,
    at_wakeups: Vec<(u64, u64)>,
}

impl Observer for Messages {
    fn event(&mut self, _now: Time, event: &SchedEvent) {
        match event {
            SchedEvent::MarkCount { task: WRITER, .. } => self.written += 1,
            SchedEvent::MarkCount { task: READER, .. } => self.read += 1,
            SchedEvent::Waking { task: WRITER, waker: Some(READER), .. } => {
                self.at_wakeups.push((self.written, self.read));
            }
            _ => {}
        }
    }
}
impl HostObserver for Messages {}

/// Messages that pass: more than the socket holds.
const MESSAGES: u64 = 300;

/// One writer fills a socket of hackbench; a second later a reader empties it.
fn workload() -> Workload {
    let hackbench =
        resolve("hackbench", &[], &LoadOptions::default()).expect("a built-in").workload;
    let socket = hackbench.objects.pipes[0].clone();
    assert_eq!(socket.name, "fd-0-0");
    let (pipe, mark) = (ObjectId(0), MarkId(0));
    let moved = Op::Mark { mark, n: 1 };
    let count = Op::SetCounter { counter: 0, value: Dist::Const(MESSAGES) };
    let again = Op::DecJump { counter: 0, target: 2 };
    let pause = |ns| Op::Sleep(Dist::Const(ns));
    let writer =
        vec![count.clone(), pause(0), Op::Write { pipe, bytes: 100 }, moved.clone(), again.clone()];
    let second = Nanos::from_s(1).as_ns();
    let reader = vec![count, pause(second), Op::Read { pipe, bytes: 100 }, moved, again];
    let program = |ops| Program { ops, n_counters: 1 };
    Workload {
        name: "socket".to_string(),
        tasks: vec![TaskSpec::new("writer", ProgramId(0)), TaskSpec::new("reader", ProgramId(1))],
        programs: vec![program(writer), program(reader)],
        objects: Objects { pipes: vec![socket], ..Objects::default() },
        marks: vec![MarkSpec { name: "message".to_string(), unit: "messages".to_string() }],
        ..Workload::default()
    }
}

#[test]
fn vectors_71_writer_blocks_after_278_and_is_woken_at_69() {
    let workload = workload();
    let topo = Topology::flat(1).expect("legal");
    let time = Fifo::INFO.time;
    let policy =
        Fifo::build(&FifoTunables::default(), Build { topo: &topo, hz: time.hz, n_tasks: 2 });
    let config = SimConfig { cost: CostModel::zero(), check: true, ..SimConfig::new(topo, time) };
    let mut sim = Sim::new(&workload, policy, Messages::default(), config);
    assert_eq!(sim.run_until(Time::from_ns(999_999_999)), Ok(Status::Running));
    assert_eq!(sim.core().observer().written, 278);
    assert_eq!(sim.run_until(Time::MAX), Ok(Status::Finished));
    let messages = sim.core().observer();
    assert_eq!((messages.written, messages.read), (MESSAGES, MESSAGES));
    // The read that wakes is not counted yet: 278 − 209 = 69 messages are left.
    let (written, read) = messages.at_wakeups[0];
    assert_eq!((written, read + 1), (278, 278 - 69));
}
