// SPDX-License-Identifier: GPL-2.0-only
//! `reschedule_idle`: on which queue a task that wants a CPU is to wait, and who hears of it.

use schedlab_policy_api::Ctx;
use schedlab_units::{CpuId, Nanos, TaskId};

use super::maximum::na;
use super::policy::Mq;

/// Who is disturbed for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// Nobody: the task waits.
    Nobody,
    /// An idle CPU.
    Idle,
    /// The CPU of a worse task.
    Preempt,
}

/// Where a task goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) cpu: CpuId,
    pub(super) call: Call,
}

/// How little an idle CPU would lose by taking a task, as a value to compare with goodness: the
/// longer it has been idle, the less. Clipped to an int of the kernel.
fn idle_value(idle_for: Nanos) -> i32 {
    i64::try_from(idle_for.as_ns()).map_or(i32::MIN, |ns| i32::try_from(-ns).unwrap_or(i32::MIN))
}

impl Mq {
    /// The place for `p`, which wants a CPU and is not running.
    ///
    /// A CPU that turns out not to be worth while is passed over by going on after it in the order
    /// of (value, number), which visits the CPUs as the patch does without a table of values.
    ///
    /// Source: M. Kravetz, patch against 2.4.7, `reschedule_idle`; spec §5.3.
    pub(super) fn find_place(&self, cx: &Ctx<'_>, p: TaskId) -> Choice {
        let value = &self.tasks[p.index()];
        let home = value.processor;
        let can = |cpu: CpuId| self.can_use(cx, p, cpu);
        if can(home) && self.cpus.is_idle(home) {
            return Choice { cpu: home, call: Call::Idle };
        }
        let limit = na(value) - self.knobs.threshold;
        let loss = |cpu: CpuId| {
            if self.cpus.is_idle(cpu) {
                idle_value(cx.now - self.cpus.last_schedule(cpu))
            } else {
                self.curr_na[cpu.index()] + if cpu == home { 0 } else { self.knobs.pcp }
            }
        };
        let mut tried = None;
        loop {
            let rows = cx.topo.cpus().filter(|cpu| can(*cpu)).map(|cpu| (loss(cpu), cpu));
            let open = rows.filter(|row| row.0 < limit && tried.is_none_or(|last| *row > last));
            let Some(row) = open.min() else {
                return Choice { cpu: self.waiting_room(cx, p), call: Call::Nobody };
            };
            let cpu = row.1;
            if self.cpus.is_idle(cpu) {
                return Choice { cpu, call: Call::Idle };
            }
            if self.cpus.delta(value.entry(), cpu, self.knobs.pcp) > self.knobs.threshold {
                return Choice { cpu, call: Call::Preempt };
            }
            tried = Some(row);
        }
    }

    /// The queue where `p` waits when nobody is to hear of it: its own, unless it may no longer use
    /// that CPU.
    pub(super) fn waiting_room(&self, cx: &Ctx<'_>, p: TaskId) -> CpuId {
        let (home, allowed) = (self.tasks[p.index()].processor, &cx.tasks.get(p).affinity);
        if allowed.contains(home) { home } else { allowed.first().unwrap_or(home) }
    }

    /// Whether `task` may be taken by `cpu`; with one CPU it always may.
    ///
    /// Source: 2.4.5 `sched.c` `can_schedule`; spec §4.3.
    #[inline]
    pub(super) fn can_use(&self, cx: &Ctx<'_>, task: TaskId, cpu: CpuId) -> bool {
        let has_cpu = self.tasks[task.index()].has_cpu;
        !self.knobs.smp || (!has_cpu && cx.tasks.get(task).affinity.contains(cpu))
    }

    /// Tells the CPU of `choice` what was decided.
    pub(super) fn announce(&mut self, cx: &mut Ctx<'_>, choice: Choice) {
        match choice.call {
            Call::Nobody => return,
            Call::Idle => self.stats.idle_kicks += 1,
            Call::Preempt => self.stats.preempt_decisions += 1,
        }
        cx.resched(choice.cpu);
    }

    /// Carries out `choice` for `p`, which is queued already: announces it, or asks for the move
    /// first.
    pub(super) fn settle_queued(&mut self, cx: &mut Ctx<'_>, p: TaskId, choice: Choice) {
        if choice.call == Call::Nobody || choice.cpu == self.tasks[p.index()].processor {
            self.announce(cx, choice);
        } else {
            self.placed = Some((p, choice));
            cx.migrate(p, choice.cpu);
        }
    }
}
