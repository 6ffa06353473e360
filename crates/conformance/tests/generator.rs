// SPDX-License-Identifier: GPL-2.0-only
//! What the random workloads and machines of the suite reach, so that nothing drops out unseen.

use std::collections::BTreeSet;

use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use schedlab_conformance::{Habits, MACHINES, machine, workload};
use schedlab_policy_api::SchedClass;
use schedlab_workload::ir::{Op, ProcessSpec};
use schedlab_workload::{Workload, validate};

/// `n` values of a strategy, the same in every run.
fn draw<S: Strategy>(strategy: S, n: usize) -> Vec<S::Value> {
    let mut runner = TestRunner::deterministic();
    (0..n).map(|_| strategy.new_tree(&mut runner).expect("legal").current()).collect()
}

/// The operation's name in the intermediate form.
fn name(op: &Op) -> String {
    let text = format!("{op:?}");
    text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_string()
}

fn ops(workloads: &[Workload]) -> impl Iterator<Item = &Op> {
    workloads.iter().flat_map(|w| &w.programs).flat_map(|program| &program.ops)
}

#[test]
fn generated_workloads_are_legal_and_hold_their_operations() {
    let workloads = draw(workload(Habits::ALL), 600);
    for workload in &workloads {
        validate(workload).expect("legal");
    }
    let found: BTreeSet<String> = ops(&workloads).map(name).collect();
    // Not drawn: Period, whose steps compute, sleep and take marks.
    let expected = "Advance Barrier Before CondBroadcast CondSignal CondWait Deadline DecJump Disk \
                    Draw Exec Exit Fork FutexArm FutexWait FutexWake Interrupt Jump JumpRandom \
                    Kernel Kill ListJoin ListServe Lock Mark MarkStart MarkStop Read Run \
                    RunForever RunPart SemPost SemTry SemWait SetAffinity SetCounter SetNice \
                    SetSched SigWait Signal SignalTaking Sleep Spin SpinLooking Timer Unlock \
                    WaitChild WaitChildren Write Yield";
    assert_eq!(found.into_iter().collect::<Vec<_>>().join(" "), expected);
}

#[test]
fn generated_tasks_have_every_class_and_kind() {
    let workloads = draw(workload(Habits::ALL), 600);
    let specs: Vec<_> = workloads.iter().flat_map(|w| &w.tasks).collect();
    let started = specs.iter().filter_map(|task| task.sched).map(|sched| sched.class);
    let set = ops(&workloads).filter_map(|op| match op {
        Op::SetSched(sched) => Some(sched.class),
        _ => None,
    });
    use SchedClass::{Batch, Fifo, Idle, Iso, Normal, Rr};
    let all = BTreeSet::from([Fifo, Rr, Normal, Batch, Idle, Iso]);
    assert_eq!(started.collect::<BTreeSet<_>>(), all);
    assert_eq!(set.collect::<BTreeSet<_>>(), all);
    assert!(specs.iter().any(|task| task.affinity.is_some()));
    assert!(specs.iter().any(|task| task.start_cpu.is_some()));
    assert!(specs.iter().any(|task| task.process == ProcessSpec::Kernel));
    assert!(specs.iter().any(|task| matches!(task.process, ProcessSpec::Thread(_))));
    // A tree of forks three levels deep: the third template forks the second, that the first.
    let forks = |index: usize, child: u32| {
        workloads.iter().any(|workload| {
            let mut ops = workload.programs[index].ops.iter();
            ops.any(|op| matches!(op, Op::Fork { template, .. } if template.0 == child))
        })
    };
    assert!(forks(2, 1) && forks(1, 0) && !forks(0, 0) && !forks(0, 1) && !forks(1, 1));
}

#[test]
fn generated_workloads_keep_to_their_habits() {
    let habits = Habits { affinity: false, real_time: false, other_classes: false };
    let workloads = draw(workload(habits), 200);
    let specs = workloads.iter().flat_map(|w| &w.tasks);
    assert!(specs.clone().all(|task| task.affinity.is_none() && task.start_cpu.is_none()));
    let started = specs.filter_map(|task| task.sched).map(|sched| sched.class);
    assert!(started.into_iter().all(|class| class == SchedClass::Normal));
    assert!(ops(&workloads).all(|op| match op {
        Op::SetSched(sched) => sched.class == SchedClass::Normal,
        op => !matches!(op, Op::SetAffinity(_)),
    }));
}

#[test]
fn every_machine_is_drawn() {
    let found: BTreeSet<_> =
        draw(machine(), 100).iter().map(|topo| (topo.n_cpus(), topo.nodes())).collect();
    assert_eq!(found, BTreeSet::from([(1, 1), (2, 1), (8, 1), (8, 2), (40, 2)]));
    assert_eq!(found.len(), MACHINES.len());
}
