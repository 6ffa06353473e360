// SPDX-License-Identifier: GPL-2.0-only
//! A record as the `args` of an event, both ways.

use schedlab_policy_api::{CommId, Pid, RecordContext, RecordEvent, RecordedState, TraceRecord};
use schedlab_units::{CpuId, Time};
use serde::{Deserialize, Serialize};

use crate::comms::Comms;
use crate::text::cpu_id;

/// A thread as an event names it: id, name, priority.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Who(u32, String, i32);

/// A thread of which no priority is told.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Named(u32, String);

/// What all records have.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Args {
    /// ns.
    time: u64,
    cpu: u32,
    /// The thread of the context.
    context: Named,
    /// `thread`, `interrupt` or `unknown`.
    by: By,
    #[serde(flatten)]
    what: What,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum By {
    Thread,
    Interrupt,
    Unknown,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum What {
    SchedSwitch { prev: Who, state: State, next: Who },
    SchedWaking { thread: Who, target_cpu: u32 },
    SchedWakeup { thread: Who, target_cpu: u32 },
    SchedWakeupNew { thread: Who, target_cpu: u32 },
    SchedMigrateTask { thread: Who, orig_cpu: u32, dest_cpu: u32 },
    SchedProcessFork { parent: Named, child: Named },
    SchedProcessExec { pid: u32 },
    SchedProcessExit { thread: Who },
    SchedStatRuntime { pid: u32, runtime_ns: u64 },
    Lost { count: u64 },
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
enum State {
    R,
    #[serde(rename = "R+")]
    Preempted,
    S,
    D,
    Z,
}

impl Args {
    pub(super) fn of(record: &TraceRecord, comms: &Comms) -> Self {
        let name = |id: CommId| comms.name(id).to_string();
        let who = |pid: Pid, comm: CommId, prio: i32| Who(pid.0, name(comm), prio);
        let what = match record.event {
            RecordEvent::Switch {
                prev,
                prev_comm,
                prev_prio,
                prev_state,
                next,
                next_comm,
                next_prio,
            } => What::SchedSwitch {
                prev: who(prev, prev_comm, prev_prio),
                state: match prev_state {
                    RecordedState::Runnable => State::R,
                    RecordedState::Preempted => State::Preempted,
                    RecordedState::Sleeping => State::S,
                    RecordedState::Uninterruptible => State::D,
                    RecordedState::Exited => State::Z,
                },
                next: who(next, next_comm, next_prio),
            },
            RecordEvent::Waking { pid, comm, prio, target_cpu } => {
                What::SchedWaking { thread: who(pid, comm, prio), target_cpu: target_cpu.0 }
            }
            RecordEvent::Wakeup { pid, comm, prio, target_cpu } => {
                What::SchedWakeup { thread: who(pid, comm, prio), target_cpu: target_cpu.0 }
            }
            RecordEvent::WakeupNew { pid, comm, prio, target_cpu } => {
                What::SchedWakeupNew { thread: who(pid, comm, prio), target_cpu: target_cpu.0 }
            }
            RecordEvent::Migrate { pid, comm, prio, orig_cpu, dest_cpu } => {
                What::SchedMigrateTask {
                    thread: who(pid, comm, prio),
                    orig_cpu: orig_cpu.0,
                    dest_cpu: dest_cpu.0,
                }
            }
            RecordEvent::Fork { parent, parent_comm, child, child_comm } => {
                What::SchedProcessFork {
                    parent: Named(parent.0, name(parent_comm)),
                    child: Named(child.0, name(child_comm)),
                }
            }
            RecordEvent::Exec { pid } => What::SchedProcessExec { pid: pid.0 },
            RecordEvent::Exit { pid, comm, prio } => {
                What::SchedProcessExit { thread: who(pid, comm, prio) }
            }
            RecordEvent::StatRuntime { pid, runtime_ns } => {
                What::SchedStatRuntime { pid: pid.0, runtime_ns }
            }
            RecordEvent::Lost { count } => What::Lost { count },
        };
        Self {
            time: record.time.as_ns(),
            cpu: record.cpu.0,
            context: Named(record.pid.0, name(record.comm)),
            by: match record.context {
                RecordContext::Task => By::Thread,
                RecordContext::Interrupt => By::Interrupt,
                RecordContext::Unknown => By::Unknown,
            },
            what,
        }
    }

    /// The record; what is wrong with it.
    pub(super) fn record(&self, comms: &mut Comms) -> Result<TraceRecord, String> {
        let cpu = |n: u32| cpu_id(u64::from(n)).map_err(|why| why.message);
        let mut intern = |name: &str| comms.intern(name.as_bytes());
        let event = match &self.what {
            What::SchedSwitch { prev, state, next } => RecordEvent::Switch {
                prev: Pid(prev.0),
                prev_comm: intern(&prev.1),
                prev_prio: prev.2,
                prev_state: match state {
                    State::R => RecordedState::Runnable,
                    State::Preempted => RecordedState::Preempted,
                    State::S => RecordedState::Sleeping,
                    State::D => RecordedState::Uninterruptible,
                    State::Z => RecordedState::Exited,
                },
                next: Pid(next.0),
                next_comm: intern(&next.1),
                next_prio: next.2,
            },
            What::SchedWaking { thread, target_cpu } => {
                let (pid, comm, prio) = (Pid(thread.0), intern(&thread.1), thread.2);
                RecordEvent::Waking { pid, comm, prio, target_cpu: cpu(*target_cpu)? }
            }
            What::SchedWakeup { thread, target_cpu } => {
                let (pid, comm, prio) = (Pid(thread.0), intern(&thread.1), thread.2);
                RecordEvent::Wakeup { pid, comm, prio, target_cpu: cpu(*target_cpu)? }
            }
            What::SchedWakeupNew { thread, target_cpu } => {
                let (pid, comm, prio) = (Pid(thread.0), intern(&thread.1), thread.2);
                RecordEvent::WakeupNew { pid, comm, prio, target_cpu: cpu(*target_cpu)? }
            }
            What::SchedMigrateTask { thread, orig_cpu, dest_cpu } => RecordEvent::Migrate {
                pid: Pid(thread.0),
                comm: intern(&thread.1),
                prio: thread.2,
                orig_cpu: cpu(*orig_cpu)?,
                dest_cpu: cpu(*dest_cpu)?,
            },
            What::SchedProcessFork { parent, child } => RecordEvent::Fork {
                parent: Pid(parent.0),
                parent_comm: intern(&parent.1),
                child: Pid(child.0),
                child_comm: intern(&child.1),
            },
            What::SchedProcessExec { pid } => RecordEvent::Exec { pid: Pid(*pid) },
            What::SchedProcessExit { thread } => {
                RecordEvent::Exit { pid: Pid(thread.0), comm: intern(&thread.1), prio: thread.2 }
            }
            What::SchedStatRuntime { pid, runtime_ns } => {
                RecordEvent::StatRuntime { pid: Pid(*pid), runtime_ns: *runtime_ns }
            }
            What::Lost { count } => RecordEvent::Lost { count: *count },
        };
        let context = match self.by {
            By::Thread => RecordContext::Task,
            By::Interrupt => RecordContext::Interrupt,
            By::Unknown => RecordContext::Unknown,
        };
        Ok(TraceRecord {
            time: Time::from_ns(self.time),
            cpu: CpuId(cpu(self.cpu)?.0),
            pid: Pid(self.context.0),
            comm: intern(&self.context.1),
            context,
            event,
        })
    }
}
