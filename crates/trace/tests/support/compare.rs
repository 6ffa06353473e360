// SPDX-License-Identifier: GPL-2.0-only
//! Recordings as lines, to compare what two forms hold.

use schedlab_policy_api::{CommId, RecordEvent, Recording, TraceRecord};

/// Records with names in place of ids, and without what the text does not tell.
pub(crate) fn comparable(recording: &Recording) -> Vec<String> {
    let name = |id: CommId| recording.comms[id.0 as usize].as_str();
    let line = |r: &TraceRecord| {
        let names = match r.event {
            RecordEvent::Switch { prev_comm, next_comm, .. } => {
                format!("{} {}", name(prev_comm), name(next_comm))
            }
            RecordEvent::Waking { comm, .. }
            | RecordEvent::Wakeup { comm, .. }
            | RecordEvent::WakeupNew { comm, .. }
            | RecordEvent::Migrate { comm, .. }
            | RecordEvent::Exit { comm, .. } => name(comm).to_string(),
            RecordEvent::Fork { parent_comm, child_comm, .. } => {
                format!("{} {}", name(parent_comm), name(child_comm))
            }
            _ => String::new(),
        };
        let event = format!("{:?}", r.event);
        let event: Vec<&str> = event.split(", ").filter(|p| !p.contains("CommId")).collect();
        let (time, cpu, pid, comm) = (r.time, r.cpu, r.pid, name(r.comm));
        format!("{time} {cpu} {pid:?} {comm} {} {names}", event.join(" "))
    };
    recording.records.iter().map(line).collect()
}
