// SPDX-License-Identifier: GPL-2.0-only
//! One CPU: there is nothing to steal, and the two lists are scanned like goodness' one.

use proptest::prelude::*;
use schedlab_kcore::NewTask;
use schedlab_units::{CpuId, TaskId};

use super::rig::CPU0;
use crate::goodness::Goodness;
use crate::goodness::tests::rig::{Figures, Machine, Ticks, mm};
use crate::goodness::tests::traces::check_up_traces;
use crate::mq::Mq;

#[test]
fn traces_of_one_cpu_are_those_of_goodness() {
    check_up_traces::<Mq>();
}

/// An input that leaves `curr_na` true, or after which `schedule` is due anyway.
#[derive(Clone, Debug)]
enum Op {
    Start { figures: &'static str, space: u32 },
    Wake { task: u8, sync: bool },
    Schedule,
    Block,
    Tick,
    Yield,
}

const FIGURES: &[&str] =
    &["6", "7", "0", "11", "6/19", "11/-20", "6:fifo 10", "6:rr 10", "0:rr 11"];

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        2 => (prop::sample::select(FIGURES), 0u32..4)
            .prop_map(|(figures, space)| Op::Start { figures, space }),
        4 => (any::<u8>(), any::<bool>()).prop_map(|(task, sync)| Op::Wake { task, sync }),
        4 => Just(Op::Schedule),
        3 => Just(Op::Block),
        6 => Just(Op::Tick),
        1 => Just(Op::Yield),
    ]
}

fn apply<P: Ticks>(rig: &mut Machine<P>, op: &Op) {
    let curr = rig.core.curr(CPU0);
    match *op {
        Op::Start { figures, space } => {
            let figures = Figures::parse(figures);
            let mut new = rig.process(figures);
            // Space 0 stands for a kernel thread.
            new.mm = if space == 0 { None } else { mm(space) };
            let task = rig.create(&new, figures.counter);
            rig.wake_new(CPU0, task);
        }
        Op::Wake { task, sync } => {
            let n_tasks = rig.core.tasks().n_slots();
            if n_tasks > 0 {
                let task = TaskId::from_index(usize::from(task) % n_tasks);
                rig.core.wake(rig.now, CPU0, task, curr, sync);
            }
        }
        Op::Schedule => rig.schedule(CPU0),
        Op::Block if curr.is_some() => rig.block(CPU0),
        Op::Tick => rig.tick(CPU0),
        Op::Yield if curr.is_some() => rig.core.yield_task(rig.now, CPU0),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn one_cpu_decides_like_goodness(
        t in 0..2,
        prev_bias in any::<bool>(),
        ops in prop::collection::vec(op(), 1..200),
    ) {
        let prev_bias = if prev_bias { "on" } else { "off" };
        let set = alloc::format!("prev_bias={prev_bias};clear_yield_same=on;t_up={t}");
        let mut goodness = Machine::<Goodness>::new(1, &set);
        let mut mq = Machine::<Mq>::new(1, &alloc::format!("prev_bias={prev_bias};t={t}"));
        for op in &ops {
            apply(&mut goodness, op);
            apply(&mut mq, op);
            prop_assert_eq!(goodness.core.curr(CPU0), mq.core.curr(CPU0), "{:?}", op);
            let flags = (goodness.core.need_resched(CPU0), mq.core.need_resched(CPU0));
            prop_assert_eq!(flags.0, flags.1, "{:?}", op);
            prop_assert_eq!(goodness.stat("epochs"), mq.stat("epochs"));
            for (task, _) in mq.core.tasks().iter() {
                let ticks = (goodness.inspect(task, "counter"), mq.inspect(task, "counter"));
                prop_assert_eq!(ticks.0, ticks.1, "task {} after {:?}", task, op);
            }
        }
    }
}

/// Whether a task of na 25 preempts its sister, which had 26 and has just forked.
fn preempts_after_fork<P: Ticks>() -> bool {
    let mut rig = Machine::<P>::new(1, "");
    let [parent, waker] = [6, 5].map(|counter| {
        let new = NewTask::normal(rig.core.topo().all(), 1);
        rig.create(&new, counter)
    });
    rig.wake_new(CPU0, parent);
    rig.settle(CPU0);
    let new = NewTask::normal(rig.core.topo().all(), 1);
    rig.core.fork(rig.now, CpuId(0), Some(parent), &new);
    rig.wake_new(CPU0, waker);
    rig.core.need_resched(CPU0)
}

#[test]
fn stale_curr_na_hides_a_preemption_that_goodness_sees() {
    assert!(preempts_after_fork::<Goodness>());
    assert!(!preempts_after_fork::<Mq>());
}
