// SPDX-License-Identifier: GPL-2.0-only
//! The reference model of `starve` (spec cfs-eevdf §7.1, §8): a parent that sleeps for a signal,
//! and a child that sends signals as fast as it can, on one CPU.
//!
//! Order at one instant as the spec has it: tick, end of a step, reschedule.

use schedlab_kcore::{Core, CoreConfig, NewTask};
use schedlab_policy_api::{Build, NoObserver, PolicyDef, TaskState, Topology};
use schedlab_units::{CpuId, Hz, TaskId, Time};

use super::harness::knobs;
use crate::eevdf::Eevdf;

const KILL: u64 = 1_300;
const HANDLER: u64 = 1_600;
const SWITCH: u64 = 725;
const CPU: CpuId = CpuId(0);

struct Model<P> {
    core: Core<P, NoObserver>,
    now: u64,
    parent: TaskId,
    child: TaskId,
    /// Rest of each one's step, ns.
    parent_left: u64,
    child_left: u64,
    waits_since: u64,
    longest_wait: u64,
    delivered: u64,
}

impl<P: PolicyDef> Model<P> {
    fn new(hz: u32, set: &[(&str, &str)]) -> Self {
        let topo = Topology::flat(1).expect("a machine");
        let hz = Hz::new(hz);
        let build = Build { topo: &topo, hz, n_tasks: 2 };
        let policy = P::build(&knobs(set), build);
        let config = CoreConfig { topo, hz, seed: 1, n_tasks: 2, check: false };
        let mut core = Core::new(policy, NoObserver, config);
        let parent = Self::start(&mut core);
        core.block(Time::ZERO, CPU, TaskState::Sleeping);
        core.finish_switch(Time::ZERO, CPU);
        let child = Self::start(&mut core);
        Self {
            core,
            now: 0,
            parent,
            child,
            parent_left: 0,
            child_left: KILL,
            waits_since: 0,
            longest_wait: 0,
            delivered: 0,
        }
    }

    /// A task that runs from the start.
    fn start(core: &mut Core<P, NoObserver>) -> TaskId {
        let new = NewTask::normal(core.topo().all(), 1);
        let task = core.fork(Time::ZERO, CPU, None, &new);
        core.wake_up_new(Time::ZERO, CPU, task, None);
        core.schedule(Time::ZERO, CPU);
        core.finish_switch(Time::ZERO, CPU);
        task
    }

    /// After a switch the step of the task that runs now takes the switch's time longer.
    fn switched(&mut self) {
        if self.core.is_switching(CPU) {
            let now = Time::from_ns(self.now);
            self.core.finish_switch(now, CPU);
            if self.core.curr(CPU) == Some(self.parent) {
                self.longest_wait = self.longest_wait.max(self.now - self.waits_since);
                self.parent_left += SWITCH;
            } else {
                self.child_left += SWITCH;
            }
        }
    }

    fn reschedule(&mut self) {
        while self.core.need_resched(CPU) {
            let was_parent = self.core.curr(CPU) == Some(self.parent);
            self.core.schedule(Time::from_ns(self.now), CPU);
            if was_parent && self.core.is_switching(CPU) {
                self.waits_since = self.now;
            }
            self.switched();
        }
    }

    /// The running task's step is over.
    fn step_over(&mut self) {
        let now = Time::from_ns(self.now);
        if self.core.curr(CPU) == Some(self.parent) {
            self.delivered += 1;
            self.core.block(now, CPU, TaskState::Sleeping);
            self.switched();
        } else {
            self.child_left = KILL;
            if self.core.tasks().get(self.parent).state.is_asleep() {
                self.core.wake(now, CPU, self.parent, Some(self.child), false);
                self.waits_since = self.now;
                self.parent_left = HANDLER;
            }
        }
    }

    fn run(&mut self, until: u64, tick: u64) {
        let mut next_tick = tick;
        while self.now < until {
            let parent_runs = self.core.curr(CPU) == Some(self.parent);
            let left = if parent_runs { &mut self.parent_left } else { &mut self.child_left };
            let end = self.now + *left;
            let next = end.min(next_tick);
            *left -= next - self.now;
            self.now = next;
            if next == next_tick {
                next_tick += tick;
                self.core.tick(Time::from_ns(next), CPU);
            }
            if next == end {
                self.step_over();
            }
            self.reschedule();
        }
    }
}

/// What the model yields for 4 s: ms for a million signals, share of the parent in per mille, its
/// longest wait in us.
pub(crate) fn starve<P: PolicyDef>(hz: u32, set: &[(&str, &str)]) -> (u64, u64, u64) {
    let span = 4_000_000_000;
    let mut model = Model::<P>::new(hz, set);
    model.run(span, Hz::new(hz).tick().as_ns());
    let run = model.core.task_account(Time::from_ns(model.now), model.parent).run.as_ns();
    // ms for a million: span / delivered · 10⁶ / 10⁶.
    (span / model.delivered, run * 1000 / span, model.longest_wait / 1000)
}

#[test]
fn starve_matches_the_reference_model() {
    for (hz, wait_us) in [(1000, 2_800), (250, 6_000)] {
        let (ms_per_million, per_mille, longest_us) =
            starve::<Eevdf>(hz, &[("base_slice", "2.8ms")]);
        assert!(ms_per_million.abs_diff(6_680) <= 334, "HZ {hz}: {ms_per_million}");
        assert!(per_mille.abs_diff(348) <= 10, "HZ {hz}: share {per_mille}");
        assert!(longest_us.abs_diff(wait_us) <= 300, "HZ {hz}: waits {longest_us} us");
    }
}
