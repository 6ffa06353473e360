// SPDX-License-Identifier: GPL-2.0-only
//! Periodic duties: the steps that [`Period`] computes, carried out and recorded.

use schedlab_policy_api::{Policy, SchedEvent};
use schedlab_units::TaskId;
use schedlab_workload::Verdict;
use schedlab_workload::ir::{MarkId, ObjectId, Op, PeriodStep};

use crate::ops::Flow;
use crate::{HostObserver, Sim};

impl<'w, P: Policy, O: HostObserver> Sim<'w, P, O> {
    /// A step that only reads the clock.
    pub(crate) fn period_step(&mut self, task: TaskId, id: ObjectId, step: PeriodStep) {
        let now = self.now;
        let period = &mut self.objects.periods[id.0 as usize];
        let spec = &self.workload.objects.periods[id.0 as usize];
        let ((verdict, counts), target) = match step {
            PeriodStep::Begin { interval, on_missed } => (period.begin(now, interval), on_missed),
            PeriodStep::End { interval, on_late } => (period.end(now, interval), on_late),
            PeriodStep::Reset => return period.reset(now),
            PeriodStep::Shift(by) => return period.shift(by),
            PeriodStep::Sample => {
                let ns = period.sample_us().saturating_mul(1000);
                if let Some(MarkId(mark)) = spec.sample {
                    self.core.emit(now, &SchedEvent::MarkLatency { task, mark, ns });
                }
                return;
            }
            PeriodStep::Sleep => unreachable!("a sleep is a system call"),
        };
        for (mark, n) in [
            (spec.achieved, counts.achieved),
            (spec.missed_burns, counts.missed_burns),
            (spec.met, counts.met),
            (spec.missed, counts.missed),
        ] {
            if let Some(MarkId(mark)) = mark
                && n > 0
            {
                self.core.emit(now, &SchedEvent::MarkCount { task, mark, n });
            }
        }
        if let (Verdict::Jump, Some(target)) = (verdict, target) {
            self.procs[task.index()].vm.jump(target);
        }
    }

    /// Sleeps for what was left of the period.
    pub(crate) fn period_sleep(&mut self, task: TaskId, op: &'w Op, id: ObjectId) -> Flow<'w> {
        let span = self.objects.periods[id.0 as usize].sleep(self.now);
        self.sleep_for(task, op, span)
    }
}
