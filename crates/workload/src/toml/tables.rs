// SPDX-License-Identifier: GPL-2.0-only
//! The tables that declare objects, marks and tasks.

use schedlab_units::{Located, MAX_CPUS, Nanos, Nice};

use super::assemble::Shared;
use super::ops::{DEFAULT_UNIT, Kind, class_of};
use super::source::{Source, Table};
use crate::expr::Env;
use crate::ir::{
    BarrierSpec, MarkId, MarkSpec, NamedSpec, PeriodSpec, PipeSpec, ProcessSpec, ProgramId,
    SchedSpec, SemaphoreSpec, TaskSpec, TimerSpec,
};
use crate::validate::MAX_AMOUNT;

const AMOUNT: std::ops::Range<i64> = 0..MAX_AMOUNT as i64 + 1;
const COUNT32: std::ops::Range<i64> = 0..u32::MAX as i64 + 1;

/// The tables of objects, in the order in which they are read.
pub(super) const OBJECTS: [Kind; 10] = [
    Kind::Pipe,
    Kind::Semaphore,
    Kind::Mutex,
    Kind::Condition,
    Kind::Barrier,
    Kind::Futex,
    Kind::List,
    Kind::Timer,
    Kind::Mark,
    Kind::Period,
];

/// Legal keys of an object's table.
pub(super) const fn keys(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Pipe => &[
            "name",
            "for",
            "when",
            "kind",
            "capacity",
            "charge_per_write",
            "writer_wake_below",
            "sync",
            "wake_reader_always",
        ],
        Kind::Semaphore => &["name", "for", "when", "initial"],
        Kind::Barrier => &["name", "for", "when", "parties"],
        Kind::Timer => &["name", "for", "when", "per_task"],
        Kind::Mark => &["name", "for", "when", "unit"],
        Kind::Period => {
            &["name", "for", "when", "sample", "achieved", "missed_burns", "met", "missed"]
        }
        Kind::Program => &["name", "for", "when", "counters", "do", "loop"],
        Kind::Task => &[
            "name",
            "for",
            "when",
            "group",
            "count",
            "forked",
            "start",
            "start_cpu",
            "cpus",
            "class",
            "nice",
            "priority",
            "slice",
            "thread_of",
            "kernel",
            "program",
            "do",
            "loop",
        ],
        Kind::Mutex | Kind::Condition | Kind::Futex | Kind::List => &["name", "for", "when"],
    }
}

/// Declares one object.
pub(super) fn object(
    shared: &mut Shared<'_>,
    kind: Kind,
    table: Table<'_, '_>,
    env: &Env,
) -> Result<(), Located> {
    let src = shared.src;
    let name = name_of(src, kind, table, env)?;
    let objects = &mut shared.workload.objects;
    let index = match kind {
        Kind::Pipe => push(&mut objects.pipes, pipe(src, &name, table, env)?),
        Kind::Semaphore => {
            let initial = amount(src, table, "initial", 0, env)?;
            push(&mut objects.semaphores, SemaphoreSpec { name: name.clone(), initial })
        }
        Kind::Barrier => {
            let parties = table.need(src, "parties", "a barrier")?;
            let parties = src.int(parties, "`parties`", env, 1..COUNT32.end)? as u32;
            push(&mut objects.barriers, BarrierSpec { name: name.clone(), parties })
        }
        Kind::Timer => {
            let per_task = flag(src, table, "per_task", true, env)?;
            push(&mut objects.timers, TimerSpec { name: name.clone(), per_task })
        }
        Kind::Mark => {
            let unit = match table.get("unit") {
                Some(item) => src.text(item, "`unit`", env)?,
                None => DEFAULT_UNIT.to_string(),
            };
            push(&mut shared.workload.marks, MarkSpec { name: name.clone(), unit })
        }
        Kind::Period => {
            let spec = period(shared, &name, table, env)?;
            push(&mut shared.workload.objects.periods, spec)
        }
        Kind::Mutex => push(&mut objects.mutexes, NamedSpec { name: name.clone() }),
        Kind::Condition => push(&mut objects.conditions, NamedSpec { name: name.clone() }),
        Kind::Futex => push(&mut objects.futexes, NamedSpec { name: name.clone() }),
        Kind::List => push(&mut objects.lists, NamedSpec { name: name.clone() }),
        Kind::Task | Kind::Program => unreachable!("tasks and programs are no objects"),
    };
    declare(shared, kind, &name, index, table)
}

/// Registers a name.
pub(super) fn declare(
    shared: &mut Shared<'_>,
    kind: Kind,
    name: &str,
    index: usize,
    table: Table<'_, '_>,
) -> Result<(), Located> {
    if shared.symbols.declare(kind, name, index) {
        return Ok(());
    }
    let at = table.get("name").map_or(table.at, |item| item.span().start);
    let message = format!("there is already a {} called `{name}`", kind.name());
    Err(shared.src.fault(at, message))
}

/// The name of a table's object.
pub(super) fn name_of(
    src: Source<'_>,
    kind: Kind,
    table: Table<'_, '_>,
    env: &Env,
) -> Result<String, Located> {
    let item = table.need(src, "name", &format!("a {}", kind.name()))?;
    src.text(item, "`name`", env)
}

fn push<T>(list: &mut Vec<T>, value: T) -> usize {
    list.push(value);
    list.len() - 1
}

fn amount(
    src: Source<'_>,
    table: Table<'_, '_>,
    key: &str,
    default: u64,
    env: &Env,
) -> Result<u64, Located> {
    match table.get(key) {
        Some(item) => Ok(src.int(item, &format!("`{key}`"), env, AMOUNT)? as u64),
        None => Ok(default),
    }
}

fn flag(
    src: Source<'_>,
    table: Table<'_, '_>,
    key: &str,
    default: bool,
    env: &Env,
) -> Result<bool, Located> {
    match table.get(key) {
        Some(item) => src.flag(item, &format!("`{key}`"), env),
        None => Ok(default),
    }
}

/// Bytes of a pipe: 16 pages. Source: `fs/pipe.c` `PIPE_DEF_BUFFERS`.
const PIPE_CAPACITY: u64 = 65_536;
/// A writer of a full pipe is woken when a page is free.
const PIPE_FREE: u64 = 4_096;
/// Bytes of a socket's send buffer. Source: spec cfs-eevdf §7.2.
const SOCKET_CAPACITY: u64 = 212_992;

/// A pipe with the habits of its kind unless told otherwise.
fn pipe(src: Source<'_>, name: &str, table: Table<'_, '_>, env: &Env) -> Result<PipeSpec, Located> {
    let socket = match table.get("kind") {
        None => false,
        Some(item) => match src.text(item, "`kind`", env)?.as_str() {
            "pipe" => false,
            "socket" => true,
            other => {
                let message = format!("`kind` is `{other}`; it must be `pipe` or `socket`");
                return Err(src.fault(item.span().start, message));
            }
        },
    };
    let default = if socket { SOCKET_CAPACITY } else { PIPE_CAPACITY };
    let capacity = amount(src, table, "capacity", default, env)?;
    let wake = if socket { capacity / 4 } else { capacity.saturating_sub(PIPE_FREE) };
    let charge = match table.get("charge_per_write") {
        Some(item) => Some(src.int(item, "`charge_per_write`", env, AMOUNT)? as u64),
        None => None,
    };
    Ok(PipeSpec {
        name: name.to_string(),
        capacity,
        charge_per_write: charge,
        writer_wake_below: amount(src, table, "writer_wake_below", wake, env)?,
        sync: flag(src, table, "sync", true, env)?,
        wake_reader_always: flag(src, table, "wake_reader_always", socket, env)?,
    })
}

/// A periodic duty; its marks need not be declared.
fn period(
    shared: &mut Shared<'_>,
    name: &str,
    table: Table<'_, '_>,
    env: &Env,
) -> Result<PeriodSpec, Located> {
    let src = shared.src;
    let mut mark = |key: &str| -> Result<Option<MarkId>, Located> {
        let Some(item) = table.get(key) else { return Ok(None) };
        let name = src.text(item, &format!("`{key}`"), env)?;
        Ok(Some(shared.symbols.mark(&name, &mut shared.workload)))
    };
    Ok(PeriodSpec {
        sample: mark("sample")?,
        achieved: mark("achieved")?,
        missed_burns: mark("missed_burns")?,
        met: mark("met")?,
        missed: mark("missed")?,
        name: name.to_string(),
    })
}

/// A task template without its program.
pub(super) fn task(src: Source<'_>, table: Table<'_, '_>, env: &Env) -> Result<TaskSpec, Located> {
    let name = name_of(src, Kind::Task, table, env)?;
    let group = match table.get("group") {
        Some(item) => src.text(item, "`group`", env)?,
        None => name.clone(),
    };
    let count = match table.get("count") {
        Some(item) => src.int(item, "`count`", env, COUNT32)? as u32,
        None => 1,
    };
    let start = match table.get("start") {
        Some(item) => src.span(item, "`start`", env)?,
        None => Nanos::ZERO,
    };
    let start_cpu = match table.get("start_cpu") {
        Some(item) => Some(src.int(item, "`start_cpu`", env, 0..MAX_CPUS as i64)? as u32),
        None => None,
    };
    let affinity = match table.get("cpus") {
        Some(item) => Some(src.cpus(item, env)?),
        None => None,
    };
    Ok(TaskSpec {
        name,
        group,
        count,
        at_start: !flag(src, table, "forked", false, env)?,
        start,
        sched: sched(src, table, env)?,
        affinity,
        start_cpu,
        process: process(src, table, env)?,
        program: ProgramId(0),
    })
}

fn sched(src: Source<'_>, table: Table<'_, '_>, env: &Env) -> Result<Option<SchedSpec>, Located> {
    let mut spec = SchedSpec::default();
    let mut given = false;
    if let Some(item) = table.get("class") {
        given = true;
        let class = src.text(item, "`class`", env)?;
        spec.class = class_of(&class).map_err(|why| src.fault(item.span().start, why))?;
    }
    if let Some(item) = table.get("nice") {
        given = true;
        spec.nice = Nice::clamped(src.int(item, "`nice`", env, -20..20)? as i32);
    }
    if let Some(item) = table.get("slice") {
        given = true;
        spec.slice = src.span(item, "`slice`", env)?;
    }
    match table.get("priority") {
        Some(item) if spec.class.is_rt() => {
            spec.rt_priority = src.int(item, "`priority`", env, 1..100)? as u8;
        }
        Some(item) => {
            let message = format!("class {} has no `priority`", spec.class.name());
            return Err(src
                .fault(item.span().start, message)
                .hint("write `class = \"fifo\"` or `\"rr\"`, or use `nice`"));
        }
        None if spec.class.is_rt() => {
            let message = format!("class {} needs `priority`, 1 to 99", spec.class.name());
            let at = table.get("class").map_or(table.at, |item| item.span().start);
            return Err(src.fault(at, message));
        }
        None => {}
    }
    Ok(given.then_some(spec))
}

fn process(src: Source<'_>, table: Table<'_, '_>, env: &Env) -> Result<ProcessSpec, Located> {
    let kernel = flag(src, table, "kernel", false, env)?;
    match table.get("thread_of") {
        Some(item) if kernel => {
            let message = "a kernel thread is not a thread of a process";
            Err(src.fault(item.span().start, message))
        }
        Some(item) => Ok(ProcessSpec::Thread(src.text(item, "`thread_of`", env)?)),
        None if kernel => Ok(ProcessSpec::Kernel),
        None => Ok(ProcessSpec::Own),
    }
}
