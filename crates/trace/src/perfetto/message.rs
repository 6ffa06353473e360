// SPDX-License-Identifier: GPL-2.0-only
//! A record as a message of ftrace, both ways.

use schedlab_policy_api::{CommId, Pid, RecordContext, RecordEvent, RecordedState, TraceRecord};
use schedlab_units::{CpuId, Time};

use super::fields::{FLAGS_HARD, FLAGS_SOFT, event, state};
use super::wire::{Fields, Message, Value};
use crate::comms::Comms;
use crate::text::cpu_id;

/// Writes what `record` says of its moment, then its own message. `comm` is the name of the context
/// if it has to be told.
pub(super) fn write_event(
    out: &mut Message,
    record: &TraceRecord,
    comms: &Comms,
    comm: Option<&str>,
) {
    out.varint(event::TIMESTAMP, record.time.as_ns());
    out.varint(event::PID, u64::from(record.pid.0));
    match record.context {
        RecordContext::Interrupt => out.varint(event::COMMON_FLAGS, 0x08),
        RecordContext::Unknown => out.varint(event::CONTEXT_UNKNOWN, 1),
        RecordContext::Task => {}
    }
    if let Some(comm) = comm {
        out.blob(event::CONTEXT_COMM, comm.as_bytes());
    }
    let mut message = Message::default();
    let name = |id: CommId| comms.name(id).as_bytes();
    let field = match record.event {
        RecordEvent::Switch {
            prev,
            prev_comm,
            prev_prio,
            prev_state,
            next,
            next_comm,
            next_prio,
        } => {
            message.blob(1, name(prev_comm));
            message.varint(2, u64::from(prev.0));
            message.signed(3, i64::from(prev_prio));
            message.varint(4, bits(prev_state));
            message.blob(5, name(next_comm));
            message.varint(6, u64::from(next.0));
            message.signed(7, i64::from(next_prio));
            event::SWITCH
        }
        RecordEvent::Waking { pid, comm, prio, target_cpu } => {
            wakeup(&mut message, pid, name(comm), prio, target_cpu);
            event::WAKING
        }
        RecordEvent::Wakeup { pid, comm, prio, target_cpu } => {
            wakeup(&mut message, pid, name(comm), prio, target_cpu);
            event::WAKEUP
        }
        RecordEvent::WakeupNew { pid, comm, prio, target_cpu } => {
            wakeup(&mut message, pid, name(comm), prio, target_cpu);
            event::WAKEUP_NEW
        }
        RecordEvent::Migrate { pid, comm, prio, orig_cpu, dest_cpu } => {
            message.blob(1, name(comm));
            message.varint(2, u64::from(pid.0));
            message.signed(3, i64::from(prio));
            message.varint(4, u64::from(orig_cpu.0));
            message.varint(5, u64::from(dest_cpu.0));
            event::MIGRATE
        }
        RecordEvent::Fork { parent, parent_comm, child, child_comm } => {
            message.blob(1, name(parent_comm));
            message.varint(2, u64::from(parent.0));
            message.blob(3, name(child_comm));
            message.varint(4, u64::from(child.0));
            event::FORK
        }
        RecordEvent::Exec { pid } => {
            message.blob(1, name(record.comm));
            message.varint(2, u64::from(pid.0));
            message.varint(3, u64::from(pid.0));
            event::EXEC
        }
        RecordEvent::Exit { pid, comm, prio } => {
            message.blob(1, name(comm));
            message.varint(2, u64::from(pid.0));
            message.signed(4, i64::from(prio));
            event::EXIT
        }
        RecordEvent::StatRuntime { pid, runtime_ns } => {
            message.varint(1, u64::from(pid.0));
            message.varint(2, runtime_ns);
            event::STAT_RUNTIME
        }
        RecordEvent::Lost { count } => {
            out.varint(event::LOST, count);
            return;
        }
    };
    out.message(field, &message);
}

fn wakeup(out: &mut Message, pid: Pid, comm: &[u8], prio: i32, target: CpuId) {
    out.blob(1, comm);
    out.varint(2, u64::from(pid.0));
    out.signed(3, i64::from(prio));
    out.varint(4, 1);
    out.varint(5, u64::from(target.0));
}

const fn bits(prev_state: RecordedState) -> u64 {
    match prev_state {
        RecordedState::Runnable => 0,
        RecordedState::Preempted => state::PREEMPTED,
        RecordedState::Sleeping => state::SLEEPING,
        RecordedState::Uninterruptible => state::UNINTERRUPTIBLE,
        RecordedState::Exited => state::ZOMBIE,
    }
}

/// A state by its bits, as kernels from 4.14 on have them.
pub(super) const fn prev_state(bits: u64) -> RecordedState {
    // A task preempted on its way to sleep stays on the run queue.
    if bits & state::PREEMPTED != 0 {
        RecordedState::Preempted
    } else if bits & (state::ZOMBIE | state::DEAD) != 0 {
        RecordedState::Exited
    } else if bits & state::UNINTERRUPTIBLE != 0 && bits & state::IDLE == 0 {
        RecordedState::Uninterruptible
    } else if bits == 0 {
        RecordedState::Runnable
    } else {
        RecordedState::Sleeping
    }
}

/// What the flags of an event say of its context.
pub(super) const fn context(flags: u64) -> RecordContext {
    if flags & FLAGS_HARD != 0 {
        RecordContext::Interrupt
    } else if flags & FLAGS_SOFT != 0 {
        RecordContext::Unknown
    } else {
        RecordContext::Task
    }
}

/// An event that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parsed<'a> {
    pub(super) time: Time,
    pub(super) pid: u32,
    pub(super) context: RecordContext,
    pub(super) comm: Option<&'a [u8]>,
    /// None for an event that is not kept, with its field.
    pub(super) event: Result<RecordEvent, u32>,
}

/// Reads an `FtraceEvent`.
///
/// # Errors
/// What is wrong, with the offset inside the message.
pub(super) fn parse_event<'a>(
    bytes: &'a [u8],
    comms: &mut Comms,
) -> Result<Parsed<'a>, (usize, String)> {
    let mut fields = Fields::new(bytes);
    let (mut time, mut pid, mut flags, mut comm) = (None, 0, 0, None);
    let mut is_unknown = false;
    let mut body: Option<(u32, Value<'a>)> = None;
    while let Some((field, value)) = fields.next().map_err(malformed)? {
        match field {
            event::TIMESTAMP => time = Some(Time::from_ns(value.number())),
            event::PID => pid = value.number() as u32,
            event::COMMON_FLAGS => flags = value.number(),
            event::CONTEXT_UNKNOWN => is_unknown = true,
            event::CONTEXT_COMM => comm = Some(value.blob()),
            _ => body = Some((field, value)),
        }
    }
    let time = time.ok_or_else(|| (0, "an event without a time".to_string()))?;
    let context = if is_unknown { RecordContext::Unknown } else { context(flags) };
    let event = match body {
        Some((event::LOST, value)) => Ok(RecordEvent::Lost { count: value.number() }),
        Some((field, value)) => parse_body(field, value.blob(), comms)?.ok_or(field),
        None => Err(0),
    };
    Ok(Parsed { time, pid, context, comm, event })
}

fn malformed(at: usize) -> (usize, String) {
    (at, "the message is malformed".to_string())
}

/// Numbers and names by field, as all messages of the scheduler have them.
fn parse_body(
    field: u32,
    bytes: &[u8],
    comms: &mut Comms,
) -> Result<Option<RecordEvent>, (usize, String)> {
    const KEPT: [u32; 9] = [
        event::SWITCH,
        event::WAKING,
        event::WAKEUP,
        event::WAKEUP_NEW,
        event::MIGRATE,
        event::FORK,
        event::EXEC,
        event::EXIT,
        event::STAT_RUNTIME,
    ];
    if !KEPT.contains(&field) {
        return Ok(None);
    }
    let mut numbers = [0u64; 8];
    let mut names: [&[u8]; 8] = [b""; 8];
    let mut fields = Fields::new(bytes);
    while let Some((field, value)) = fields.next().map_err(malformed)? {
        if let Some(number) = numbers.get_mut(field as usize) {
            *number = value.number();
            names[field as usize] = value.blob();
        }
    }
    let pid = |n: usize| Pid(numbers[n] as u32);
    let prio = |n: usize| numbers[n] as i32;
    let cpu = |n: usize| cpu_id(numbers[n]).map_err(|why| (0, why.message));
    let mut comm = |n: usize| comms.intern(names[n]);
    Ok(Some(match field {
        event::SWITCH => RecordEvent::Switch {
            prev: pid(2),
            prev_comm: comm(1),
            prev_prio: prio(3),
            prev_state: prev_state(numbers[4]),
            next: pid(6),
            next_comm: comm(5),
            next_prio: prio(7),
        },
        event::WAKING => {
            RecordEvent::Waking { pid: pid(2), comm: comm(1), prio: prio(3), target_cpu: cpu(5)? }
        }
        event::WAKEUP => {
            RecordEvent::Wakeup { pid: pid(2), comm: comm(1), prio: prio(3), target_cpu: cpu(5)? }
        }
        event::WAKEUP_NEW => RecordEvent::WakeupNew {
            pid: pid(2),
            comm: comm(1),
            prio: prio(3),
            target_cpu: cpu(5)?,
        },
        event::MIGRATE => RecordEvent::Migrate {
            pid: pid(2),
            comm: comm(1),
            prio: prio(3),
            orig_cpu: cpu(4)?,
            dest_cpu: cpu(5)?,
        },
        event::FORK => RecordEvent::Fork {
            parent: pid(2),
            parent_comm: comm(1),
            child: pid(4),
            child_comm: comm(3),
        },
        event::EXEC => RecordEvent::Exec { pid: pid(2) },
        event::EXIT => RecordEvent::Exit { pid: pid(2), comm: comm(1), prio: prio(4) },
        _ => RecordEvent::StatRuntime { pid: pid(1), runtime_ns: numbers[2] },
    }))
}
