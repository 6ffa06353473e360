// SPDX-License-Identifier: GPL-2.0-only
//! What a hook may see and ask for.

use schedlab_units::{CpuId, Jiffies, Rng, TaskId, Time};

use crate::{Effects, Move, TaskTable, TimerRequest, Topology};

/// What a hook may see and ask for. Concrete on purpose: no generics, no host types, no I/O.
pub struct Ctx<'a> {
    /// Time of the event being handled, never "the current time".
    pub now: Time,
    /// Global timer interrupts since the start.
    pub jiffies: Jiffies,
    /// The CPU that executes this hook (`smp_processor_id`).
    pub this_cpu: CpuId,
    /// CPUs, SMT siblings, caches, nodes.
    pub topo: &'a Topology,
    /// Facts the core owns.
    pub tasks: &'a TaskTable,
    /// Current task of each CPU; none = its idle task.
    pub curr: &'a [Option<TaskId>],
    /// Wake-ups on their way to each CPU by inter-processor interrupt (`ttwu_pending`).
    pub wake_pending: &'a [u32],
    /// A random stream of the policy's own.
    pub rng: &'a mut Rng,
    /// Where requests go; hooks use the methods below.
    pub fx: &'a mut Effects,
}

impl Ctx<'_> {
    /// Asks `cpu` to call `schedule` soon, by interrupt if it is another CPU (`resched_curr`).
    #[inline]
    pub fn resched(&mut self, cpu: CpuId) {
        let ipi = cpu != self.this_cpu;
        self.fx.set_need_resched(cpu, self.this_cpu, ipi);
    }
    /// The same for an idle CPU that polls its flag: no interrupt is sent.
    pub fn resched_polling(&mut self, cpu: CpuId) {
        self.fx.set_need_resched(cpu, self.this_cpu, false);
    }
    /// Whether `cpu` has been asked to call `schedule`.
    #[inline]
    pub fn need_resched(&self, cpu: CpuId) -> bool {
        self.fx.need_resched(cpu)
    }
    /// Asks for `task` to be moved to the queue of `to`: `dequeue(Migrate)`, `enqueue(Migrate)`,
    /// `wakeup_preempt`, carried out by the core after the hook, in request order.
    ///
    /// A move of a task that is running, asleep or not allowed there is dropped.
    pub fn migrate(&mut self, task: TaskId, to: CpuId) {
        self.fx.moves.push(Move { task, to });
    }
    /// Asks for [`crate::Policy::timer`] at `at` on this CPU; replaces an earlier request.
    pub fn arm(&mut self, timer: u32, at: Time) {
        self.fx.timers.push(TimerRequest { timer, at, cpu: self.this_cpu });
    }
    /// Withdraws the request for `timer`.
    pub fn disarm(&mut self, timer: u32) {
        self.fx.timers.push(TimerRequest { timer, at: Time::MAX, cpu: self.this_cpu });
    }
    /// Notes that the hook looked at `n` candidates, for the per-candidate scan cost.
    #[inline]
    pub fn scanned(&mut self, n: usize) {
        self.fx.scanned += n as u64;
    }
    /// Notes one more section under the run-queue lock, of the length of a wake-up.
    pub fn lock_section(&mut self) {
        self.fx.extra_lock_sections += 1;
    }
    /// Current task of `cpu`; none = its idle task.
    #[inline]
    pub fn curr(&self, cpu: CpuId) -> Option<TaskId> {
        self.curr[cpu.index()]
    }
}
