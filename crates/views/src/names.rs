// SPDX-License-Identifier: GPL-2.0-only
//! What records say of threads: names, parents, processes.

use std::collections::BTreeMap;

use schedlab_policy_api::{CommId, Pid, RecordEvent, TraceRecord};
use schedlab_trace::{Comms, UNKNOWN_PID};

/// The thread of every CPU that runs when no other does.
pub(crate) const IDLE: Pid = Pid(0);

/// A name without characters that would move the cursor.
pub(crate) fn printable(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '\u{b7}' } else { c }).collect()
}

#[derive(Clone, Copy, Debug, Default)]
struct Known {
    comm: Option<CommId>,
    process: Option<Pid>,
    parent: Option<Pid>,
    exited: bool,
}

/// The latest that is known of each thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    threads: BTreeMap<Pid, Known>,
}

impl Names {
    /// Learns what `record` tells.
    pub(crate) fn learn(&mut self, record: &TraceRecord, comms: &Comms) {
        // The event's own fields come second: they are the kernel's, and never out of date.
        if record.pid != UNKNOWN_PID && record.pid != IDLE {
            self.name(record.pid, record.comm, comms);
        }
        match record.event {
            RecordEvent::Switch { prev, prev_comm, prev_state, next, next_comm, .. } => {
                self.name(prev, prev_comm, comms);
                self.name(next, next_comm, comms);
                if prev_state == schedlab_policy_api::RecordedState::Exited {
                    self.known(prev).exited = true;
                }
            }
            RecordEvent::Waking { pid, comm, .. }
            | RecordEvent::Wakeup { pid, comm, .. }
            | RecordEvent::WakeupNew { pid, comm, .. }
            | RecordEvent::Migrate { pid, comm, .. } => self.name(pid, comm, comms),
            RecordEvent::Exit { pid, comm, .. } => {
                self.name(pid, comm, comms);
                self.known(pid).exited = true;
            }
            RecordEvent::Fork { parent, parent_comm, child, child_comm } => {
                self.name(parent, parent_comm, comms);
                // The process may have been told already: readers look ahead.
                let process = self.known(child).process;
                let parent = Some(parent);
                *self.known(child) = Known { process, parent, ..Known::default() };
                self.name(child, child_comm, comms);
            }
            RecordEvent::Exec { .. }
            | RecordEvent::StatRuntime { .. }
            | RecordEvent::Lost { .. } => {}
        }
    }

    /// `thread` belongs to `process`.
    pub(crate) fn process(&mut self, thread: Pid, process: Pid) {
        self.known(thread).process = Some(process);
    }

    fn known(&mut self, pid: Pid) -> &mut Known {
        self.threads.entry(pid).or_default()
    }

    fn name(&mut self, pid: Pid, comm: CommId, comms: &Comms) {
        let known = self.known(pid);
        if known.comm != Some(comm) && comms.name(comm) != "<...>" {
            known.comm = Some(comm);
        }
    }

    /// The latest name, `swapper` for the idle thread, `:PID` for one never named.
    pub(crate) fn of(&self, pid: Pid, comms: &Comms) -> String {
        if pid == IDLE {
            return "swapper".to_string();
        }
        match self.comm(pid) {
            Some(comm) => printable(comms.name(comm)),
            None if pid == UNKNOWN_PID => ":-1".to_string(),
            None => format!(":{}", pid.0),
        }
    }

    /// The id of the latest name.
    pub(crate) fn comm(&self, pid: Pid) -> Option<CommId> {
        self.threads.get(&pid).and_then(|known| known.comm)
    }

    /// `NAME[THREAD]`, `NAME[THREAD/PROCESS]` for a thread that leads no process, or `swapper`.
    pub(crate) fn with_ids(&self, pid: Pid, comms: &Comms) -> String {
        let name = self.of(pid, comms);
        if pid == IDLE {
            return name;
        }
        match self.process_of(pid) {
            Some(process) if process != pid => format!("{name}[{}/{}]", pid.0, process.0),
            _ if pid == UNKNOWN_PID => format!("{name}[-1]"),
            _ => format!("{name}[{}]", pid.0),
        }
    }

    /// The process of a thread, where the trace tells it.
    pub(crate) fn process_of(&self, pid: Pid) -> Option<Pid> {
        self.threads.get(&pid).and_then(|known| known.process)
    }

    /// Who forked a thread, where the trace saw it.
    pub(crate) fn parent_of(&self, pid: Pid) -> Option<Pid> {
        self.threads.get(&pid).and_then(|known| known.parent)
    }

    /// Whether the trace saw a thread exit.
    pub(crate) fn exited(&self, pid: Pid) -> bool {
        self.threads.get(&pid).is_some_and(|known| known.exited)
    }
}
