// SPDX-License-Identifier: GPL-2.0-only
//! Your first policy: last come, first served. One list for the machine, newest task first.
use schedlab_policy_api::{
    Ctx, Dequeue, Enqueue, NoObserver, Policy, PutPrev, Timekeeping, Topology,
};
use schedlab_sim::{Sim, SimConfig, Status};
use schedlab_units::{CpuId, Nanos, TaskId, Time};
use schedlab_workload::ir::{Dist, Op, Program, ProgramId, TaskSpec, Workload};

/// A task is on the stack while it waits; the current task is not.
#[derive(Default)]
struct Lifo {
    stack: Vec<TaskId>,
}

impl Policy for Lifo {
    fn enqueue(&mut self, _: &mut Ctx<'_>, _: CpuId, task: TaskId, _: Enqueue) {
        self.stack.push(task);
    }
    fn dequeue(&mut self, _: &mut Ctx<'_>, _: CpuId, task: TaskId, _: Dequeue) {
        self.stack.retain(|t| *t != task);
    }
    fn pick_next(&mut self, _: &mut Ctx<'_>, _: CpuId) -> Option<TaskId> {
        self.stack.last().copied()
    }
    fn set_next(&mut self, _: &mut Ctx<'_>, _: CpuId, task: TaskId) {
        self.stack.retain(|t| *t != task);
    }
    fn put_prev(&mut self, _: &mut Ctx<'_>, _: CpuId, task: TaskId, why: PutPrev) {
        if matches!(why, PutPrev::Preempted | PutPrev::Yielded) {
            self.stack.push(task);
        }
    }
}

fn main() {
    // Three tasks that compute 2 ms each, on one CPU.
    let mut workload = Workload::default();
    workload.programs.push(Program { ops: vec![Op::Run(Dist::Const(2_000_000))], n_counters: 0 });
    workload.tasks.push(TaskSpec { count: 3, ..TaskSpec::new("task", ProgramId(0)) });
    let topo = Topology::flat(1).expect("one CPU is legal");
    let config = SimConfig { check: true, ..SimConfig::new(topo, Timekeeping::MODERN) };
    let mut sim = Sim::new(&workload, Lifo::default(), NoObserver, config);
    assert_eq!(sim.run_until(Time::MAX), Ok(Status::Finished));
    assert_eq!(sim.now() - Time::ZERO, Nanos::from_ms(6));
    println!("three tasks of 2 ms were done after {}", sim.now() - Time::ZERO);
}

#[test]
fn first_policy_runs() {
    main();
}
