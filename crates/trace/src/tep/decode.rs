// SPDX-License-Identifier: GPL-2.0-only
//! From a payload to a record, by the places that its format names.

use schedlab_policy_api::{CommId, Pid, RecordContext, RecordEvent, RecordedState};
use schedlab_units::CpuId;

use super::format::{EventFormat, Place};
use crate::bytes::Endian;
use crate::comms::Comms;
use crate::text::{cpu_id, printk_state};

/// Letters of `prev_state` where the format prints none: kernels from 4.14 on.
const LETTERS: [(u64, u8); 8] = [
    (0x01, b'S'),
    (0x02, b'D'),
    (0x04, b'T'),
    (0x08, b't'),
    (0x10, b'X'),
    (0x20, b'Z'),
    (0x40, b'P'),
    (0x80, b'I'),
];

/// `common_flags`: in a hard interrupt, or in one that cannot be masked.
const FLAGS_INTERRUPT: i64 = 0x08 | 0x40;
/// `common_flags`: in a soft interrupt, which may be the thread's own work.
const FLAGS_SOFT: i64 = 0x10;

/// What a payload holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hit {
    pub(crate) event: RecordEvent,
    pub(crate) context: RecordContext,
    /// Thread that was running, by `common_pid`; 0 where the event does not tell.
    pub(crate) pid: u32,
}

/// A thread as an event names it.
#[derive(Clone, Copy, Debug)]
struct Who {
    comm: Place,
    pid: Place,
}

/// Events that are kept, with the places of their fields.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Switch {
        prev: Who,
        prev_prio: Place,
        prev_state: Place,
        next: Who,
        next_prio: Place,
    },
    Waking {
        who: Who,
        prio: Place,
        target_cpu: Place,
    },
    Wakeup {
        who: Who,
        prio: Place,
        target_cpu: Place,
    },
    WakeupNew {
        who: Who,
        prio: Place,
        target_cpu: Place,
    },
    Migrate {
        who: Who,
        prio: Place,
        orig_cpu: Place,
        dest_cpu: Place,
    },
    Fork {
        parent: Who,
        child: Who,
    },
    Exec {
        pid: Place,
    },
    Exit {
        who: Who,
        prio: Place,
    },
    StatRuntime {
        pid: Place,
        runtime: Place,
    },
    /// Any other.
    Other,
    /// One whose format lacks this field.
    Lacks(&'static str),
}

/// A tracepoint of the recorded kernel.
#[derive(Clone, Debug)]
pub(crate) struct Tracepoint {
    pub(crate) name: String,
    kind: Kind,
    flags: Option<Place>,
    pid: Option<Place>,
    letters: Vec<(u64, u8)>,
}

impl Tracepoint {
    /// The scheduler's tracepoint of this format.
    fn new(format: &EventFormat) -> Self {
        let kind = Self::kind(format).unwrap_or_else(Kind::Lacks);
        let letters =
            if format.letters.is_empty() { LETTERS.to_vec() } else { format.letters.clone() };
        Self { kind, letters, ..Self::other(format) }
    }

    /// Any tracepoint, not to be kept.
    fn other(format: &EventFormat) -> Self {
        Self {
            name: format.name.clone(),
            kind: Kind::Other,
            flags: format.field("common_flags"),
            pid: format.field("common_pid"),
            letters: Vec::new(),
        }
    }

    /// The kind of event; the name of a field that it should have and has not.
    fn kind(format: &EventFormat) -> Result<Kind, &'static str> {
        let field = |name: &'static str| format.field(name).ok_or(name);
        let who = |comm, pid| Ok::<_, &'static str>(Who { comm: field(comm)?, pid: field(pid)? });
        Ok(match format.name.as_str() {
            "sched_switch" => Kind::Switch {
                prev: who("prev_comm", "prev_pid")?,
                prev_prio: field("prev_prio")?,
                prev_state: field("prev_state")?,
                next: who("next_comm", "next_pid")?,
                next_prio: field("next_prio")?,
            },
            name @ ("sched_waking" | "sched_wakeup" | "sched_wakeup_new") => {
                let (who, prio) = (who("comm", "pid")?, field("prio")?);
                let target_cpu = field("target_cpu")?;
                match name {
                    "sched_waking" => Kind::Waking { who, prio, target_cpu },
                    "sched_wakeup" => Kind::Wakeup { who, prio, target_cpu },
                    _ => Kind::WakeupNew { who, prio, target_cpu },
                }
            }
            "sched_migrate_task" => Kind::Migrate {
                who: who("comm", "pid")?,
                prio: field("prio")?,
                orig_cpu: field("orig_cpu")?,
                dest_cpu: field("dest_cpu")?,
            },
            "sched_process_fork" => Kind::Fork {
                parent: who("parent_comm", "parent_pid")?,
                child: who("child_comm", "child_pid")?,
            },
            "sched_process_exec" => Kind::Exec { pid: field("pid")? },
            "sched_process_exit" => Kind::Exit { who: who("comm", "pid")?, prio: field("prio")? },
            "sched_stat_runtime" => {
                Kind::StatRuntime { pid: field("pid")?, runtime: field("runtime")? }
            }
            _ => Kind::Other,
        })
    }

    /// Whether its payload becomes a record.
    pub(crate) fn is_kept(&self) -> bool {
        !matches!(self.kind, Kind::Other)
    }

    /// The record in `raw`; none for an event that is not kept.
    ///
    /// # Errors
    /// A payload too short for a field, a CPU or a state out of range.
    pub(crate) fn decode(
        &self,
        raw: &[u8],
        endian: Endian,
        comms: &mut Comms,
    ) -> Result<Option<Hit>, String> {
        let mut fields = Fields { tracepoint: self, raw, endian, comms };
        let Some(event) = fields.event()? else { return Ok(None) };
        let flags = self.flags.map_or(Ok(0), |place| fields.number(place))?;
        let context = match flags {
            _ if self.flags.is_none() => RecordContext::Unknown,
            flags if flags & FLAGS_INTERRUPT != 0 => RecordContext::Interrupt,
            flags if flags & FLAGS_SOFT != 0 => RecordContext::Unknown,
            _ => RecordContext::Task,
        };
        Ok(Some(Hit { event, context, pid: self.running(raw, endian).unwrap_or(0) }))
    }

    /// The thread in whose context the event was hit.
    pub(crate) fn running(&self, raw: &[u8], endian: Endian) -> Option<u32> {
        let pid = self.pid.and_then(|place| place.number(raw, endian))?;
        u32::try_from(pid).ok()
    }

    /// A task's state as this kernel would print it, reduced.
    fn state(&self, bits: u64) -> Result<RecordedState, String> {
        let mut text: Vec<u8> = Vec::with_capacity(16);
        let mut above = 1;
        for (bit, letter) in &self.letters {
            above = above.max(bit << 1);
            if bits & bit != 0 {
                if !text.is_empty() {
                    text.push(b'|');
                }
                text.push(*letter);
            }
        }
        if text.is_empty() {
            text.push(b'R');
        }
        // The bit after the last letter marks a preempted task (4.14: 0x100; 3.10: TASK_STATE_MAX).
        if bits & above.wrapping_sub(1) != bits {
            text.push(b'+');
        }
        printk_state(&text).map_err(|fault| fault.message)
    }
}

struct Fields<'a> {
    tracepoint: &'a Tracepoint,
    raw: &'a [u8],
    endian: Endian,
    comms: &'a mut Comms,
}

impl Fields<'_> {
    fn event(&mut self) -> Result<Option<RecordEvent>, String> {
        Ok(Some(match self.tracepoint.kind {
            Kind::Switch { prev, prev_prio, prev_state, next, next_prio } => {
                let (prev, prev_comm) = self.who(prev)?;
                let state = self.number(prev_state)? as u64;
                let (next, next_comm) = self.who(next)?;
                RecordEvent::Switch {
                    prev,
                    prev_comm,
                    prev_prio: self.prio(prev_prio)?,
                    prev_state: self.tracepoint.state(state)?,
                    next,
                    next_comm,
                    next_prio: self.prio(next_prio)?,
                }
            }
            Kind::Waking { who, prio, target_cpu } => {
                let ((pid, comm), prio) = (self.who(who)?, self.prio(prio)?);
                RecordEvent::Waking { pid, comm, prio, target_cpu: self.cpu(target_cpu)? }
            }
            Kind::Wakeup { who, prio, target_cpu } => {
                let ((pid, comm), prio) = (self.who(who)?, self.prio(prio)?);
                RecordEvent::Wakeup { pid, comm, prio, target_cpu: self.cpu(target_cpu)? }
            }
            Kind::WakeupNew { who, prio, target_cpu } => {
                let ((pid, comm), prio) = (self.who(who)?, self.prio(prio)?);
                RecordEvent::WakeupNew { pid, comm, prio, target_cpu: self.cpu(target_cpu)? }
            }
            Kind::Migrate { who, prio, orig_cpu, dest_cpu } => {
                let ((pid, comm), prio) = (self.who(who)?, self.prio(prio)?);
                let (orig_cpu, dest_cpu) = (self.cpu(orig_cpu)?, self.cpu(dest_cpu)?);
                RecordEvent::Migrate { pid, comm, prio, orig_cpu, dest_cpu }
            }
            Kind::Fork { parent, child } => {
                let ((parent, parent_comm), (child, child_comm)) =
                    (self.who(parent)?, self.who(child)?);
                RecordEvent::Fork { parent, parent_comm, child, child_comm }
            }
            Kind::Exec { pid } => RecordEvent::Exec { pid: self.pid(pid)? },
            Kind::Exit { who, prio } => {
                let (pid, comm) = self.who(who)?;
                RecordEvent::Exit { pid, comm, prio: self.prio(prio)? }
            }
            Kind::StatRuntime { pid, runtime } => RecordEvent::StatRuntime {
                pid: self.pid(pid)?,
                runtime_ns: self.number(runtime)? as u64,
            },
            Kind::Other => return Ok(None),
            Kind::Lacks(field) => {
                let name = &self.tracepoint.name;
                return Err(format!("the format of {name} has no field `{field}`"));
            }
        }))
    }

    fn number(&self, place: Place) -> Result<i64, String> {
        place.number(self.raw, self.endian).ok_or_else(|| self.too_short())
    }
    fn too_short(&self) -> String {
        let (name, n) = (&self.tracepoint.name, self.raw.len());
        format!("{name} has a payload of {n} bytes, too short for its format")
    }
    fn pid(&self, place: Place) -> Result<Pid, String> {
        Ok(Pid(self.number(place)? as u32))
    }
    fn prio(&self, place: Place) -> Result<i32, String> {
        Ok(self.number(place)? as i32)
    }
    fn cpu(&self, place: Place) -> Result<CpuId, String> {
        cpu_id(self.number(place)? as u64).map_err(|fault| fault.message)
    }
    fn who(&mut self, who: Who) -> Result<(Pid, CommId), String> {
        let name = who.comm.name(self.raw, self.endian).ok_or_else(|| self.too_short())?;
        let comm = self.comms.intern(name);
        Ok((self.pid(who.pid)?, comm))
    }
}

/// The tracepoints of a recording, by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tracepoints {
    /// Sorted by number.
    by_id: Vec<(u16, Tracepoint)>,
}

impl Tracepoints {
    /// Adds the scheduler's tracepoint that a format text of tracefs describes.
    ///
    /// # Errors
    /// A malformed text.
    pub(crate) fn add_text(&mut self, text: &str) -> Result<(), String> {
        self.add(text, Tracepoint::new)
    }
    /// Adds a tracepoint of something else, which is only counted, whatever its name is.
    ///
    /// # Errors
    /// A malformed text.
    pub(crate) fn add_other(&mut self, text: &str) -> Result<(), String> {
        self.add(text, Tracepoint::other)
    }

    fn add(&mut self, text: &str, make: fn(&EventFormat) -> Tracepoint) -> Result<(), String> {
        let format =
            EventFormat::parse(text).ok_or_else(|| "an event format is malformed".to_string())?;
        let tracepoint = make(&format);
        match self.by_id.binary_search_by_key(&format.id, |(id, _)| *id) {
            Ok(at) => self.by_id[at].1 = tracepoint,
            Err(at) => self.by_id.insert(at, (format.id, tracepoint)),
        }
        Ok(())
    }
    /// The tracepoint with this number.
    pub(crate) fn get(&self, id: u16) -> Option<&Tracepoint> {
        let at = self.by_id.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some(&self.by_id[at].1)
    }
}
