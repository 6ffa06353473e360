// SPDX-License-Identifier: GPL-2.0-only
//! Lengths of run queues, followed from records.

use std::collections::BTreeMap;

use schedlab_policy_api::{Pid, RecordEvent, RecordedState, TraceRecord};
use schedlab_units::CpuId;

/// Who waits where, as far as the records tell.
///
/// A thread waits from its wake-up, or from being switched out runnable, until it is switched in.
/// Threads that had been waiting when the recording began are not known until then.
#[derive(Clone, Debug, Default)]
pub(crate) struct Runqueues {
    waiting: BTreeMap<Pid, CpuId>,
    /// By CPU: threads that wait, and whether one runs.
    cpus: Vec<(u32, bool)>,
}

impl Runqueues {
    /// Takes a record; the CPUs whose length it may have changed.
    pub(crate) fn take(&mut self, record: &TraceRecord) -> [Option<CpuId>; 2] {
        let [left, joined] = self.follow(record);
        [left.filter(|cpu| Some(*cpu) != joined), joined]
    }

    fn follow(&mut self, record: &TraceRecord) -> [Option<CpuId>; 2] {
        match record.event {
            RecordEvent::Waking { pid, target_cpu, .. }
            | RecordEvent::Wakeup { pid, target_cpu, .. }
            | RecordEvent::WakeupNew { pid, target_cpu, .. } => self.wait(pid, target_cpu),
            RecordEvent::Migrate { pid, dest_cpu, .. } if self.waiting.contains_key(&pid) => {
                self.wait(pid, dest_cpu)
            }
            RecordEvent::Switch { prev, prev_state, next, .. } => {
                let left = self.leave(next);
                self.cpu(record.cpu).1 = next != Pid(0);
                let runnable =
                    matches!(prev_state, RecordedState::Runnable | RecordedState::Preempted);
                if runnable && prev != Pid(0) {
                    self.wait(prev, record.cpu);
                }
                [left, Some(record.cpu)]
            }
            _ => [None, None],
        }
    }

    /// Threads that want `cpu`: those that wait and the one that runs (kernel `nr_running`).
    pub(crate) fn nr_running(&self, cpu: CpuId) -> u32 {
        self.cpus.get(cpu.index()).map_or(0, |(waiting, runs)| waiting + u32::from(*runs))
    }

    fn cpu(&mut self, cpu: CpuId) -> &mut (u32, bool) {
        if self.cpus.len() <= cpu.index() {
            self.cpus.resize(cpu.index() + 1, (0, false));
        }
        &mut self.cpus[cpu.index()]
    }
    fn wait(&mut self, pid: Pid, cpu: CpuId) -> [Option<CpuId>; 2] {
        let left = self.leave(pid);
        self.waiting.insert(pid, cpu);
        self.cpu(cpu).0 += 1;
        [left, Some(cpu)]
    }
    fn leave(&mut self, pid: Pid) -> Option<CpuId> {
        let cpu = self.waiting.remove(&pid)?;
        self.cpu(cpu).0 -= 1;
        Some(cpu)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use schedlab_policy_api::{CommId, RecordContext};
    use schedlab_units::Time;

    fn record(cpu: u32, event: RecordEvent) -> TraceRecord {
        TraceRecord {
            time: Time::ZERO,
            cpu: CpuId(cpu),
            pid: Pid(0),
            comm: CommId(0),
            context: RecordContext::Unknown,
            event,
        }
    }
    fn switch(prev: u32, prev_state: RecordedState, next: u32) -> RecordEvent {
        let comm = CommId(0);
        RecordEvent::Switch {
            prev: Pid(prev),
            prev_comm: comm,
            prev_prio: 120,
            prev_state,
            next: Pid(next),
            next_comm: comm,
            next_prio: 120,
        }
    }

    #[test]
    fn nr_running_counts_the_one_that_runs_and_those_that_wait() {
        let mut queues = Runqueues::default();
        let waking = |pid| RecordEvent::Waking {
            pid: Pid(pid),
            comm: CommId(0),
            prio: 120,
            target_cpu: CpuId(1),
        };
        let n = |queues: &Runqueues| (queues.nr_running(CpuId(0)), queues.nr_running(CpuId(1)));
        queues.take(&record(0, waking(5)));
        queues.take(&record(0, waking(6)));
        assert_eq!(n(&queues), (0, 2));
        queues.take(&record(1, switch(0, RecordedState::Runnable, 5)));
        assert_eq!(n(&queues), (0, 2));
        queues.take(&record(1, switch(5, RecordedState::Preempted, 6)));
        assert_eq!(n(&queues), (0, 2));
        let (pid, comm, prio) = (Pid(5), CommId(0), 120);
        let (orig_cpu, dest_cpu) = (CpuId(1), CpuId(0));
        let changed =
            queues.take(&record(0, RecordEvent::Migrate { pid, comm, prio, orig_cpu, dest_cpu }));
        assert_eq!((n(&queues), changed), ((1, 1), [Some(CpuId(1)), Some(CpuId(0))]));
        queues.take(&record(1, switch(6, RecordedState::Sleeping, 0)));
        assert_eq!(n(&queues), (1, 0));
    }
}
