// SPDX-License-Identifier: GPL-2.0-only
//! What a fair class does its own way.

use alloc::string::String;

use schedlab_policy_api::{
    Change, Company, Ctx, Dequeue, Enqueue, Inspect, Task, TunableValue, View, Wake,
};
use schedlab_units::{CpuId, Nanos, TaskId};

use super::Load;
use super::tree::Keys;

/// The order of tasks on a queue, and who is next.
pub trait Order {
    /// Weight of `task` in the sums over a queue.
    fn weight(&self, task: TaskId) -> u64;
    /// What orders `task` in a tree.
    fn keys(&self, task: TaskId) -> Keys;

    /// The next task of `cpu`.
    fn pick_fair(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) -> Option<TaskId>;
    /// [`Dialect::pick_fair`] while `leaving` is about to be pushed to another CPU.
    fn pick_fair_without(
        &mut self,
        cx: &mut Ctx<'_>,
        cpu: CpuId,
        leaving: TaskId,
    ) -> Option<TaskId>;
    /// Whether `woken`, queued on `cpu`, preempts the task that runs there.
    fn check_preempt(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, woken: TaskId, wake: Wake);
}

/// What people and checks want to know.
pub trait Report {
    /// See `Policy::wait_bound`.
    fn longest_wait(&self, company: Company<'_>) -> Option<Nanos>;
    /// Why `task` stands where it does.
    fn explain(&self, view: &View<'_>, task: TaskId, out: &mut Inspect);
    /// Totals of a run that only this dialect has.
    fn own_totals(&self, out: &mut Inspect);
    /// What must hold for `task`, of any class.
    ///
    /// # Errors
    /// A sentence with the values that disagree.
    fn check_task(&self, task: TaskId, facts: &Task) -> Result<(), String> {
        let _ = (task, facts);
        Ok(())
    }
    /// What must hold for the queue of `cpu` beyond sums and order.
    ///
    /// # Errors
    /// A sentence with the values that disagree.
    fn check_clock(&self, cpu: CpuId) -> Result<(), String> {
        let _ = cpu;
        Ok(())
    }
}

/// How tasks come, take turns and go. Tasks are of the fair class unless said otherwise.
pub trait Dialect: Order + Report {
    /// Books the run time of `cpu`'s current task up to now.
    fn book_curr(&mut self, cx: &mut Ctx<'_>, cpu: CpuId);

    /// Prepares the entity of forked task `child`, of any class.
    fn fork_entity(&mut self, cx: &mut Ctx<'_>, child: TaskId);
    /// A task joins the queue of `cpu`.
    fn enqueue_fair(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId, why: Enqueue);
    /// A task leaves the queue of `cpu`, or stays there as a delayed one.
    fn dequeue_fair(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId, why: Dequeue);
    /// `task` has become current on `cpu`.
    fn turn_begins(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId);
    /// The tick of `cpu` while `task` runs.
    fn tick_fair(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId);
    /// `task`, current on `cpu`, calls `sched_yield`.
    fn yield_fair(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId);
    /// `task` has left the class.
    fn leave_fair(&mut self, now: u64, task: TaskId) {
        let _ = (now, task);
    }
    /// `task` has joined the class again; `asleep`, so that no `enqueue` follows.
    fn join_fair(&mut self, task: TaskId, asleep: bool) {
        let _ = (task, asleep);
    }
    /// The weight of `task`, which is off its queue, is about to change from `old` to `new`.
    fn rescale(&mut self, task: TaskId, old: &Load, new: &Load) {
        let _ = (task, old, new);
    }
    /// Whether tasks get the slice they ask for.
    fn grants_slices(&self) -> bool {
        false
    }
    /// `task` asks for another slice.
    fn slice_changed(&mut self, cx: &Ctx<'_>, task: TaskId) {
        let _ = (cx, task);
    }
    /// Sleeping task `task` is woken onto another CPU than the one it left.
    fn leave_by_wakeup(&mut self, task: TaskId) {
        let _ = task;
    }
    /// Whether the wake-up of `woken` disturbs nobody.
    fn wakes_in_silence(&mut self, woken: TaskId) -> bool {
        let _ = woken;
        false
    }

    /// `cpu` begins to pick.
    fn pick_begins(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) {
        let _ = (cx, cpu);
    }
    /// The task that goes ahead of real-time tasks on `cpu`, other than `leaving`.
    fn pick_ahead_of_rt(
        &mut self,
        cx: &mut Ctx<'_>,
        cpu: CpuId,
        leaving: Option<TaskId>,
    ) -> Option<TaskId> {
        let _ = (cx, cpu, leaving);
        None
    }
    /// A real-time task has come to `cpu`.
    fn rt_came(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) {
        let _ = (cx, cpu);
    }
    /// Timer number `timer` of the dialect's expired.
    fn fair_timer(&mut self, cx: &mut Ctx<'_>, timer: u32) {
        let _ = (cx, timer);
    }

    /// Tunables that may change while tasks run.
    const LIVE: &'static [&'static str];
    /// Changes one of them to a legal value.
    fn retune(&mut self, name: &str, value: TunableValue);

    /// Moves delayed task `task` to another queue. No dialect but those that delay is asked to.
    fn move_delayed(&mut self, cx: &mut Ctx<'_>, task: TaskId, to: CpuId) {
        let _ = (cx, to);
        unreachable!("task {task} is not delayed");
    }
    /// Delayed task `task` is gone without having been picked.
    fn end_delay(&mut self, cx: &mut Ctx<'_>, task: TaskId) {
        let _ = (cx, task);
    }
    /// First half of a change of delayed task `task`.
    fn delayed_changing(&mut self, cx: &mut Ctx<'_>, task: TaskId) {
        let _ = (cx, task);
    }
    /// Second half of change `what` of delayed task `task`.
    fn delayed_changed(&mut self, cx: &mut Ctx<'_>, task: TaskId, what: Change) {
        let _ = (cx, task, what);
    }
}
