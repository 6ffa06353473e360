// SPDX-License-Identifier: GPL-2.0-only
//! What stands before an event's body: task, CPU, flags, time, event name.
//!
//! A task name may look like the rest of a prefix and a body may hold a whole trace line, so every
//! `[cpu]` of the line is tried; the rightmost one that fits wins as long as the name before it is
//! no longer than the kernel's 15 bytes.
//! Source: spec formats-and-ecosystem §2.3, §2.4 rule 1.

use schedlab_policy_api::RecordContext;
use schedlab_units::{CpuId, Time};

use super::body::cpu_id;
use super::scan::{Fault, n_digits, take_pid, take_unsigned, time, trim};

/// Longest task name the kernel keeps (`TASK_COMM_LEN` without the NUL).
const COMM_MAX: usize = 15;
/// Width of the column of names in ftrace texts.
const COMM_COLUMN: usize = 16;

/// Which tool's prefix a line has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// `perf script`: `comm pid/tid [cpu] time: system:event: body`.
    Perf,
    /// tracefs and `trace-cmd report`: `comm-pid (tgid) [cpu] flags time: event: body`.
    Ftrace,
}

/// A parsed prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefix<'a> {
    /// Name of the context.
    pub(crate) comm: &'a [u8],
    /// Thread of the context; `None` where the tool wrote −1.
    pub(crate) pid: Option<u32>,
    /// Its process, where the tool says so.
    pub(crate) tgid: Option<u32>,
    pub(crate) cpu: CpuId,
    pub(crate) time: Time,
    pub(crate) context: RecordContext,
    /// Event name without its system.
    pub(crate) event: &'a [u8],
    /// Whether a colon ended the event name; a name without one may have been cut.
    pub(crate) event_ended: bool,
    /// Offset of the body in the line.
    pub(crate) body_at: usize,
}

/// Parses the prefix of `line`.
///
/// # Errors
/// The fault of the most promising reading; its offset counts from the start of the line.
pub(crate) fn parse(line: &[u8], layout: Layout) -> Result<Prefix<'_>, Fault> {
    let mut best: Option<Prefix<'_>> = None;
    let mut fault: Option<Fault> = None;
    for open in (0..line.len()).filter(|i| line[*i] == b'[') {
        let Some((cpu, rest)) = take_unsigned(&line[open + 1..]) else { continue };
        let Some(rest) = rest.strip_prefix(b"]") else { continue };
        let Some(task) = task(&line[..open], layout) else { continue };
        match stamp(rest, layout).and_then(|stamp| Ok((stamp, cpu_id(cpu)?))) {
            Ok((stamp, cpu)) => {
                if best.is_some() && task.comm.len() > COMM_MAX {
                    break;
                }
                best = Some(Prefix {
                    comm: task.comm,
                    pid: task.pid,
                    tgid: task.tgid,
                    cpu,
                    time: stamp.time,
                    context: stamp.context,
                    event: stamp.event,
                    event_ended: stamp.event_ended,
                    body_at: line.len() - stamp.body.len(),
                });
            }
            Err(why) => {
                fault = fault.or_else(|| Some(why.shifted(line.len() - rest.len())));
            }
        }
    }
    best.ok_or_else(|| fault.unwrap_or_else(|| not_a_record(layout)))
}

/// The fault of a line without any sign of being a record.
pub(super) const NOT_PERF: &str = "not a line of `perf script`: no `comm tid [cpu] time: event:`";
/// As [`NOT_PERF`].
pub(super) const NOT_FTRACE: &str =
    "not a line of an ftrace text: no `comm-pid [cpu] time: event:`";

fn not_a_record(layout: Layout) -> Fault {
    match layout {
        Layout::Perf => Fault::new(0, NOT_PERF).hint(
            "write the trace with `perf script --ns -F comm,pid,tid,cpu,time,event,trace`, \
             standard error kept apart",
        ),
        Layout::Ftrace => Fault::new(0, NOT_FTRACE)
            .hint("copy the `trace` file of tracefs, or write one with `trace-cmd report`"),
    }
}

struct Task<'a> {
    comm: &'a [u8],
    pid: Option<u32>,
    tgid: Option<u32>,
}

/// Reads the part before `[cpu]`.
fn task(before: &[u8], layout: Layout) -> Option<Task<'_>> {
    let before = before.trim_ascii_end();
    match layout {
        Layout::Perf => {
            let at = before.iter().rposition(u8::is_ascii_whitespace).map_or(0, |at| at + 1);
            let comm = trim(&before[..at]);
            let ids = &before[at..];
            let (process, thread) = match ids.iter().position(|b| *b == b'/') {
                Some(slash) => (whole_pid(&ids[..slash])?, whole_pid(&ids[slash + 1..])?),
                None => (None, whole_pid(ids)?),
            };
            Some(Task { comm, pid: thread, tgid: process })
        }
        Layout::Ftrace => {
            let (before, tgid) = tgid(before);
            let digits = before.iter().rev().take_while(|b| b.is_ascii_digit()).count();
            let (head, pid) = before.split_at(before.len() - digits);
            let head = head.strip_suffix(b"-")?;
            // The name's column is 16 wide, and a name no longer than 15: what stands further left
            // is the name of a buffer, which `trace-cmd report` prints when there are several.
            let comm = trim(&head[head.len().saturating_sub(COMM_COLUMN)..]);
            Some(Task { comm, pid: Some(take_pid(pid)?.0), tgid })
        }
    }
}

/// A thread id that is all of `text`; `Some(None)` for −1, perf's word for a thread that is gone.
fn whole_pid(text: &[u8]) -> Option<Option<u32>> {
    if text == b"-1" {
        return Some(None);
    }
    take_pid(text).filter(|(_, rest)| rest.is_empty()).map(|(pid, _)| Some(pid))
}

/// Cuts `(1234)` or `(-----)` off the end.
fn tgid(before: &[u8]) -> (&[u8], Option<u32>) {
    let cut = || {
        let inside = before.strip_suffix(b")")?;
        let open = inside.iter().rposition(|b| *b == b'(')?;
        let inner = trim(&inside[open + 1..]);
        let tgid = match take_pid(inner) {
            Some((tgid, b"")) => Some(tgid),
            _ if !inner.is_empty() && inner.iter().all(|b| *b == b'-') => None,
            _ => return None,
        };
        Some((inside[..open].trim_ascii_end(), tgid))
    };
    cut().unwrap_or((before, None))
}

struct Stamp<'a> {
    time: Time,
    context: RecordContext,
    event: &'a [u8],
    event_ended: bool,
    body: &'a [u8],
}

/// Reads the part after `[cpu]`.
fn stamp(after: &[u8], layout: Layout) -> Result<Stamp<'_>, Fault> {
    let offset = |rest: &[u8]| after.len() - rest.len();
    let (mut word, mut rest) = take_word(after);
    let mut context = RecordContext::Unknown;
    if layout == Layout::Ftrace && is_flags(word) {
        context = context_of(word);
        (word, rest) = take_word(rest);
    }
    let word_at = offset(rest) - word.len();
    let Some(clock) = word.strip_suffix(b":") else {
        return Err(Fault::new(word_at, "expected a time stamp such as `12.345678:`"));
    };
    let Some(time) = time(clock) else {
        return Err(bad_time(clock, word_at));
    };
    let (mut event, mut body) = take_word(rest);
    if layout == Layout::Perf && n_digits(event) == event.len() && !event.is_empty() {
        // A sampling period may stand before the event.
        (event, body) = take_word(body);
    }
    let event_at = offset(body) - event.len();
    if event.is_empty() {
        return Err(Fault::new(event_at, "the event name is missing"));
    }
    if event.starts_with(b"PERF_RECORD_") {
        // `--show-lost-events` and the like print these: `PERF_RECORD_FORK(1:2):(1:1)`.
        let end = event.iter().position(|b| !b.is_ascii_uppercase() && *b != b'_');
        let event = &event[..end.unwrap_or(event.len())];
        return Ok(Stamp {
            time,
            context,
            event,
            event_ended: true,
            body: body.trim_ascii_start(),
        });
    }
    let (mut event, ended) = match event.strip_suffix(b":") {
        Some(name) => (name, true),
        None => (event, false),
    };
    if layout == Layout::Perf {
        if !ended {
            return Err(Fault::new(
                event_at,
                "expected an event name such as `sched:sched_switch:`",
            ));
        }
        if let Some(colon) = event.iter().position(|b| *b == b':') {
            event = &event[colon + 1..];
        }
    }
    Ok(Stamp { time, context, event, event_ended: ended, body: body.trim_ascii_start() })
}

/// The next word and what follows it.
fn take_word(text: &[u8]) -> (&[u8], &[u8]) {
    let text = text.trim_ascii_start();
    let end = text.iter().position(u8::is_ascii_whitespace).unwrap_or(text.len());
    text.split_at(end)
}

fn bad_time(clock: &[u8], at: usize) -> Fault {
    let shown = String::from_utf8_lossy(clock);
    if n_digits(clock) == clock.len() && !clock.is_empty() {
        return Fault::new(at, format!("the time stamp `{shown}` has no fraction of seconds"))
            .hint(
                "the trace clock does not count seconds; record with `trace_clock` set to local, \
                 global or mono",
            );
    }
    Fault::new(at, format!("`{shown}` is not a time of seconds with one to nine decimals"))
}

/// Whether `word` is the column of interrupt and preemption flags, such as `d..2.` or `dNh4`.
fn is_flags(word: &[u8]) -> bool {
    (1..=8).contains(&word.len()) && word.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'.')
}

/// What the flags say about the context: their third column.
///
/// `s` is left open: work of a soft interrupt may belong to the thread under it, as when a sender's
/// own packets are delivered over the loopback device.
fn context_of(flags: &[u8]) -> RecordContext {
    if !(4..=5).contains(&flags.len()) {
        return RecordContext::Unknown;
    }
    match flags[2] {
        b'.' => RecordContext::Task,
        b'h' | b'H' | b'z' | b'Z' => RecordContext::Interrupt,
        _ => RecordContext::Unknown,
    }
}
