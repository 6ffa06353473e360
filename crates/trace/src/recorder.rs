// SPDX-License-Identifier: GPL-2.0-only
//! A simulated run as records, the form that recordings of real kernels have.

use schedlab_policy_api::{
    CommId, Observer, Pid, RecordContext, RecordEvent, Recording, SchedEvent, TraceRecord,
};
use schedlab_units::{CpuId, TaskId, Time};

use crate::comms::Comms;
use crate::kernel_view::{Hit, KernelView, Point, TaskLabel};
use crate::sink::{Collect, PolicyValue, RecordSink, ValueOf};

/// An observer of a run that feeds a sink with what the tracepoints of a kernel would show.
#[derive(Debug, Default)]
pub struct Recorder<S> {
    view: KernelView,
    comms: Comms,
    sink: S,
    n_cpus: u32,
}

impl<S: RecordSink> Recorder<S> {
    /// Feeds `sink`.
    pub fn new(sink: S) -> Self {
        Self { view: KernelView::default(), comms: Comms::default(), sink, n_cpus: 0 }
    }
    /// Names `task`; to be called between its `ProcessFork` and the next event.
    pub fn name_task(&mut self, task: TaskId, label: TaskLabel<'_>) {
        self.view.label(task, label);
    }
    /// Passes on a value that the policy shows of `task`.
    pub fn value(&mut self, now: Time, task: TaskId, name: &str, value: i64) {
        let of = ValueOf::Thread(self.view.task(task).pid);
        self.sink.value(&PolicyValue { time: now, of, name, value });
    }
    /// The sink, the names, and the number of CPUs seen.
    pub fn finish(mut self) -> (S, Comms, u32) {
        if let Some(hit) = self.view.finish() {
            self.push(hit);
        }
        (self.sink, self.comms, self.n_cpus)
    }

    fn push(&mut self, hit: Hit) {
        self.n_cpus = self.n_cpus.max(hit.cpu.0 + 1);
        let (pid, comm, _) = self.who(hit.context, "<idle>");
        let event = self.event(&hit);
        let record = TraceRecord {
            time: hit.time,
            cpu: hit.cpu,
            pid,
            comm,
            context: if hit.interrupt { RecordContext::Interrupt } else { RecordContext::Task },
            event,
        };
        self.sink.record(&record, &self.comms);
    }

    fn event(&mut self, hit: &Hit) -> RecordEvent {
        let target = |cpu: CpuId, n_cpus: &mut u32| {
            *n_cpus = (*n_cpus).max(cpu.0 + 1);
            cpu
        };
        match hit.point {
            Point::Switch { prev, prev_state, next } => {
                let swapper = format!("swapper/{}", hit.cpu);
                let (prev, prev_comm, prev_prio) = self.who(prev, &swapper);
                let (next, next_comm, next_prio) = self.who(next, &swapper);
                RecordEvent::Switch {
                    prev,
                    prev_comm,
                    prev_prio,
                    prev_state,
                    next,
                    next_comm,
                    next_prio,
                }
            }
            Point::Waking { task, target: cpu } => {
                let (pid, comm, prio) = self.task(task);
                let target_cpu = target(cpu, &mut self.n_cpus);
                RecordEvent::Waking { pid, comm, prio, target_cpu }
            }
            Point::Wakeup { task, target: cpu } => {
                let (pid, comm, prio) = self.task(task);
                let target_cpu = target(cpu, &mut self.n_cpus);
                RecordEvent::Wakeup { pid, comm, prio, target_cpu }
            }
            Point::WakeupNew { task, target: cpu } => {
                let (pid, comm, prio) = self.task(task);
                let target_cpu = target(cpu, &mut self.n_cpus);
                RecordEvent::WakeupNew { pid, comm, prio, target_cpu }
            }
            Point::Migrate { task, from, to } => {
                let (pid, comm, prio) = self.task(task);
                let orig_cpu = target(from, &mut self.n_cpus);
                let dest_cpu = target(to, &mut self.n_cpus);
                RecordEvent::Migrate { pid, comm, prio, orig_cpu, dest_cpu }
            }
            Point::Fork { parent, child } => {
                let (parent, parent_comm, _) = self.task(parent);
                let (child, child_comm, _) = self.task(child);
                RecordEvent::Fork { parent, parent_comm, child, child_comm }
            }
            Point::Exec { task } => RecordEvent::Exec { pid: self.task(task).0 },
            Point::Exit { task } => {
                let (pid, comm, prio) = self.task(task);
                RecordEvent::Exit { pid, comm, prio }
            }
        }
    }

    fn task(&mut self, task: TaskId) -> (Pid, CommId, i32) {
        let shown = self.view.task(task);
        (shown.pid, self.comms.intern(shown.comm.as_bytes()), shown.prio)
    }
    fn who(&mut self, task: Option<TaskId>, idle: &str) -> (Pid, CommId, i32) {
        match task {
            Some(task) => self.task(task),
            None => (Pid(0), self.comms.intern(idle.as_bytes()), 120),
        }
    }
}

impl Recorder<Collect> {
    /// The whole run in memory.
    pub fn into_recording(self) -> Recording {
        let (sink, comms, n_cpus) = self.finish();
        sink.finish(comms, n_cpus)
    }
}

impl<S: RecordSink> Observer for Recorder<S> {
    fn event(&mut self, now: Time, event: &SchedEvent) {
        for hit in self.view.event(now, event).into_iter().flatten() {
            self.push(hit);
        }
    }
}
