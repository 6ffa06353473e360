// SPDX-License-Identifier: GPL-2.0-only
//! Hogs beside hogs, and hogs beside tasks that sleep: what [`Company`] of the interface means.

use proptest::collection::vec;
use proptest::prelude::*;
use schedlab_policy_api::Company;
use schedlab_units::Nice;
use schedlab_workload::Workload;
use schedlab_workload::ir::{Op, Program, ProgramId, SchedSpec, TaskSpec};

use crate::generate::{joined, objects, shared, span, timed};

/// A workload of SCHED_NORMAL tasks in processes of their own.
#[derive(Clone, Debug)]
pub struct Mixed {
    /// The hogs are its first templates, one task each.
    pub workload: Workload,
    /// Number of hogs, at least one.
    pub n_hogs: usize,
    /// Nice value of each task, hogs first.
    pub nice: Vec<Nice>,
}

impl Mixed {
    fn new(hogs: Vec<Nice>, sleepers: Vec<(Nice, Program)>) -> Self {
        let n_hogs = hogs.len();
        let hog = Program { ops: vec![Op::RunForever], n_counters: 0 };
        let all = hogs.into_iter().map(|nice| (nice, hog.clone())).chain(sleepers);
        let mut workload = Workload { name: "company".to_string(), ..Workload::default() };
        let mut values = Vec::new();
        for (index, (nice, program)) in all.enumerate() {
            let program_id = ProgramId(index as u32);
            workload.tasks.push(TaskSpec {
                sched: Some(SchedSpec { nice, ..SchedSpec::default() }),
                ..TaskSpec::new(&format!("t{index}"), program_id)
            });
            workload.programs.push(program);
            values.push(nice);
        }
        workload.objects = objects();
        Self { workload, n_hogs, nice: values }
    }

    /// Nice values of all tasks but `hog`.
    pub fn others(&self, hog: usize) -> Vec<Nice> {
        let all = self.nice.iter().enumerate();
        all.filter(|(index, _)| *index != hog).map(|(_, nice)| *nice).collect()
    }

    /// The company of hog `hog`, `others` being [`Mixed::others`].
    pub fn company<'a>(&self, hog: usize, others: &'a [Nice]) -> Company<'a> {
        Company { nice: self.nice[hog], others, sleepers: self.n_hogs < self.nice.len() }
    }
}

/// A nice value, often 0, mostly a small one.
fn nice() -> impl Strategy<Value = Nice> {
    prop_oneof![2 => Just(0), 2 => -4i32..5, 1 => -20i32..20].prop_map(Nice::clamped)
}

/// A program that runs, sleeps, waits for others and yields, over and over.
fn sleeper() -> impl Strategy<Value = Program> {
    // Work in the kernel cannot be preempted, and signals have no template to go to.
    let fragment = prop_oneof![6 => timed().boxed(), 2 => shared().boxed(), 1 => Just(Op::Yield)]
        .prop_filter("no kernel work, no signals", |op| {
            !matches!(op, Op::Kernel(_) | Op::Signal(_) | Op::ListJoin { .. })
        });
    (vec(fragment, 1..8), span()).prop_map(|(fragments, pause)| {
        let mut ops = joined(fragments.into_iter().map(|op| vec![op]).collect());
        ops.push(Op::Run(schedlab_workload::ir::Dist::Const(pause)));
        ops.push(Op::Jump { target: 0 });
        Program { ops, n_counters: 0 }
    })
}

/// Two to eight hogs, or one to four hogs beside one to four tasks that sleep.
pub fn company(sleepers: bool) -> BoxedStrategy<Mixed> {
    if sleepers {
        (vec(nice(), 1..5), vec((nice(), sleeper()), 1..5))
            .prop_map(|(hogs, sleepers)| Mixed::new(hogs, sleepers))
            .boxed()
    } else {
        vec(nice(), 2..9).prop_map(|hogs| Mixed::new(hogs, Vec::new())).boxed()
    }
}
