// SPDX-License-Identifier: GPL-2.0-only
//! First come, first served: the smallest policy, one list per CPU, run to block.
//!
//! Classes, nice and priorities are ignored. It is the tutorial and the baseline of the tests.

use alloc::string::String;

use schedlab_policy_api::{
    Build, Ctx, Dequeue, Enqueue, Idle, LiveHabits, Policy, PolicyDef, PolicyInfo, PutPrev,
    Starvation, Timekeeping, Tunables, Variant, View, Wake, WorkConservation,
};
use schedlab_units::{CpuId, TaskId};

use crate::lists::Lists;

schedlab_policy_api::tunables! {
    /// Knobs of [`Fifo`]: none.
    pub struct FifoTunables {}
}

/// One FIFO list of waiting tasks per CPU; a task keeps its CPU until it blocks or yields.
pub struct Fifo {
    lists: Lists,
}

impl PolicyDef for Fifo {
    type Tunables = FifoTunables;
    const INFO: PolicyInfo = PolicyInfo {
        name: "fifo",
        about: "first come, first served; a task runs until it blocks (for tests and teaching)",
        variants: &[Variant { name: "", about: "the only one", set: &[] }],
        tunables: FifoTunables::SPECS,
        time: Timekeeping::MODERN,
        work_conserving: WorkConservation::Always,
        starvation: Starvation {
            bound: None,
            except: Some("a task runs until it blocks or yields, beside a hog nobody else runs"),
        },
    };
    fn build(_: &FifoTunables, build: Build<'_>) -> Self {
        Self { lists: Lists::new(build) }
    }
}

impl Policy for Fifo {
    fn enqueue(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId, _: Enqueue) {
        self.lists.enqueue(cx, cpu, task);
    }
    fn dequeue(&mut self, _: &mut Ctx<'_>, cpu: CpuId, task: TaskId, _: Dequeue) {
        self.lists.remove(cpu, task);
    }
    fn pick_next(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) -> Option<TaskId> {
        self.lists.keep_or_first(cx, cpu)
    }
    fn set_next(&mut self, _: &mut Ctx<'_>, cpu: CpuId, task: TaskId) {
        self.lists.remove(cpu, task);
    }
    fn put_prev(&mut self, _: &mut Ctx<'_>, cpu: CpuId, task: TaskId, why: PutPrev) {
        self.lists.put_prev(cpu, task, why);
    }
    fn select_cpu(&mut self, cx: &mut Ctx<'_>, task: TaskId, _: Wake) -> CpuId {
        self.lists.idle_or_shortest(cx, task)
    }
    fn yield_task(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, _: TaskId) {
        if self.lists.give_way(cpu) {
            cx.resched(cpu);
        }
    }
    fn balance(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, _: Idle) {
        self.lists.pull(cx, cpu);
    }
    fn live_habits(&self) -> LiveHabits {
        LiveHabits { ticks: false, wakeups_preempt: false, woken_takes_idle_cpu: true }
    }
    fn invariants(&self, view: &View<'_>) -> Result<(), String> {
        self.lists.check(view)
    }
}
