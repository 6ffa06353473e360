// SPDX-License-Identifier: GPL-2.0-only
//! Round robin: `fifo` with a timeslice, counted in whole ticks.
//!
//! Classes, nice and priorities are ignored. The slice is the real-time classes' of Linux.

use alloc::string::String;
use alloc::vec::Vec;

use schedlab_policy_api::{
    Build, Company, Ctx, Dequeue, Enqueue, Idle, Inspect, LiveHabits, Policy, PolicyDef,
    PolicyInfo, PutPrev, Starvation, Timekeeping, TunableValue, Tunables, Variant, View, Wake,
    WorkConservation,
};
use schedlab_units::{CpuId, Nanos, TaskId};

use crate::lists::Lists;

schedlab_policy_api::tunables! {
    /// Knobs of [`Rr`].
    pub struct RrTunables {
        /// Time a task may run before the next one's turn; rounded up to whole ticks.
        slice: ns = 100_000_000 => 100_000..=10_000_000_000, "v6.12 rt.h RR_TIMESLICE";
    }
}

/// One list of waiting tasks per CPU; a task runs for a slice, then goes to the end.
pub struct Rr {
    lists: Lists,
    slice_ticks: u32,
    tick: Nanos,
    /// Ticks left to the current task, per CPU.
    left: Vec<u32>,
}

impl PolicyDef for Rr {
    type Tunables = RrTunables;
    const INFO: PolicyInfo = PolicyInfo {
        name: "rr",
        about: "round robin with a fixed timeslice (for tests and teaching)",
        variants: &[Variant { name: "", about: "the only one", set: &[] }],
        tunables: RrTunables::SPECS,
        time: Timekeeping::MODERN,
        work_conserving: WorkConservation::Always,
        starvation: Starvation {
            bound: Some("everybody who is before it in the list runs for one slice at most"),
            except: None,
        },
    };
    fn build(tunables: &RrTunables, build: Build<'_>) -> Self {
        let slice_ticks = slice_ticks(tunables.slice, build.hz.tick());
        Self {
            lists: Lists::new(build),
            slice_ticks,
            tick: build.hz.tick(),
            left: build.topo.cpus().map(|_| slice_ticks).collect(),
        }
    }
}

/// `slice` in whole ticks.
fn slice_ticks(slice: Nanos, tick: Nanos) -> u32 {
    let ticks = slice.as_ns().div_ceil(tick.as_ns());
    u32::try_from(ticks).expect("10 s at 100 kHz fit 32 bits")
}

impl Policy for Rr {
    fn enqueue(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId, _: Enqueue) {
        self.lists.enqueue(cx, cpu, task);
    }
    fn dequeue(&mut self, _: &mut Ctx<'_>, cpu: CpuId, task: TaskId, _: Dequeue) {
        self.lists.remove(cpu, task);
    }
    fn pick_next(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) -> Option<TaskId> {
        let next = self.lists.keep_or_first(cx, cpu);
        if next == cx.curr(cpu) && self.left[cpu.index()] == 0 {
            self.left[cpu.index()] = self.slice_ticks;
        }
        next
    }
    fn set_next(&mut self, _: &mut Ctx<'_>, cpu: CpuId, task: TaskId) {
        self.lists.remove(cpu, task);
        self.left[cpu.index()] = self.slice_ticks;
    }
    fn put_prev(&mut self, _: &mut Ctx<'_>, cpu: CpuId, task: TaskId, why: PutPrev) {
        self.lists.put_prev(cpu, task, why);
    }
    fn select_cpu(&mut self, cx: &mut Ctx<'_>, task: TaskId, _: Wake) -> CpuId {
        self.lists.idle_or_shortest(cx, task)
    }
    fn tick(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) {
        if cx.curr(cpu).is_none() {
            return;
        }
        let left = &mut self.left[cpu.index()];
        *left = left.saturating_sub(1);
        if *left == 0 && self.lists.give_way(cpu) {
            cx.resched(cpu);
        }
    }
    fn yield_task(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, _: TaskId) {
        if self.lists.give_way(cpu) {
            cx.resched(cpu);
        }
    }
    fn balance(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, _: Idle) {
        self.lists.pull(cx, cpu);
    }
    /// Everybody before it runs a slice, which begins anywhere within a tick; who sleeps comes back
    /// to the end of the list.
    fn wait_bound(&self, company: Company<'_>) -> Option<Nanos> {
        Some(self.tick * u64::from(self.slice_ticks + 1) * company.others.len() as u64)
    }
    fn inspect(&self, view: &View<'_>, task: TaskId, out: &mut Inspect) {
        let cpu = view.tasks.cpu(task);
        if view.curr[cpu.index()] == Some(task) {
            out.push(("ticks_left", i64::from(self.left[cpu.index()])));
        }
        out.push(("waiting", self.lists.waiting(cpu) as i64));
    }
    fn live_habits(&self) -> LiveHabits {
        LiveHabits { ticks: true, wakeups_preempt: false, woken_takes_idle_cpu: true }
    }
    fn live_tunables(&self) -> &'static [&'static str] {
        &["slice"]
    }
    /// The current tasks keep what they got.
    fn set_tunable(&mut self, name: &str, value: TunableValue) {
        let mut tunables = RrTunables::default();
        tunables.set(name, value).expect("a live tunable and a legal value");
        self.slice_ticks = slice_ticks(tunables.slice, self.tick);
    }
    fn invariants(&self, view: &View<'_>) -> Result<(), String> {
        self.lists.check(view)
    }
}
