// SPDX-License-Identifier: GPL-2.0-only
//! Scheduling parameters, marks and periodic duties.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use schedlab_units::{CpuSet, Time};
use schedlab_workload::Verdict;
use schedlab_workload::ir::{MarkId, ObjectId, Op, PeriodStep, SchedSpec};

use super::{Cut, Flow, Player};
use crate::calls;
use crate::played::Noted;
use crate::task::lock;

impl Player {
    /// Sets its parameters; what the kernel refuses for want of rights is counted.
    pub(crate) fn set_sched(&mut self, sched: SchedSpec) -> Flow {
        let SchedSpec { class, nice, rt_priority, slice } = sched;
        let set = calls::set_sched(class, nice.get(), rt_priority, slice, self.shared.ext);
        match set {
            Ok(()) => {
                self.sched = sched;
                self.note(calls::now(), Noted::Sched { nice, class, rt_priority });
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                self.shared.refused.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            Err(error) => {
                let class = sched.class.name();
                Err(Cut::Fault(format!("the kernel does not set class {class}: {error}")))
            }
        }
    }

    /// Sets its CPUs, given as the workload counts them.
    pub(crate) fn set_affinity(&mut self, cpus: &CpuSet) -> Flow {
        self.shared.pin(cpus).map_err(|error| {
            Cut::Fault(format!("the kernel does not set the affinity {cpus}: {error}"))
        })
    }

    pub(super) fn mark(&mut self, op: &Op) {
        let now = calls::now();
        match *op {
            Op::Mark { mark, n } => self.note(now, Noted::Count { mark: mark.0, n }),
            Op::MarkStart(mark) => {
                self.watches.retain(|(id, _)| *id != mark);
                self.watches.push((mark, now));
            }
            Op::MarkStop(mark) => {
                let Some(at) = self.watches.iter().position(|(id, _)| *id == mark) else { return };
                let (_, since) = self.watches.swap_remove(at);
                let ns = now.saturating_since(since).as_ns();
                self.note(now, Noted::Latency { mark: mark.0, ns });
            }
            Op::Deadline { within } => {
                let release = self.release;
                self.note(now, Noted::Deadline { release, within });
            }
            _ => unreachable!("{op:?} notes nothing"),
        }
    }

    pub(super) fn period(&mut self, id: ObjectId, step: PeriodStep) -> Flow {
        let shared = Arc::clone(&self.shared);
        let spec = &shared.workload.objects.periods[id.0 as usize];
        let period = || lock(&shared.objects.periods[id.0 as usize]);
        let now = calls::now();
        // The program's clock counts from the start.
        let clock = |at: Time| Time::ZERO + at.saturating_since(shared.start());
        let ((verdict, counts), target) = match step {
            PeriodStep::Begin { interval, on_missed } => {
                (period().begin(clock(now), interval), on_missed)
            }
            PeriodStep::End { interval, on_late } => (period().end(clock(now), interval), on_late),
            PeriodStep::Reset => {
                period().reset(clock(now));
                return Ok(());
            }
            PeriodStep::Shift(by) => {
                period().shift(by);
                return Ok(());
            }
            PeriodStep::Sample => {
                let ns = period().sample_us().saturating_mul(1000);
                if let Some(MarkId(mark)) = spec.sample {
                    self.note(now, Noted::Latency { mark, ns });
                }
                return Ok(());
            }
            PeriodStep::Sleep => {
                let span = period().sleep(clock(now));
                self.sleep_until(now.saturating_add(span))?;
                period().slept(clock(calls::now()));
                return Ok(());
            }
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
                self.note(now, Noted::Count { mark, n });
            }
        }
        if let (Verdict::Jump, Some(target)) = (verdict, target) {
            self.vm.jump(target);
        }
        Ok(())
    }
}
