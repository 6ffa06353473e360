// SPDX-License-Identifier: GPL-2.0-only
//! The code of one record: a kind, then its fields as numbers.

use std::io::BufRead;

use schedlab_policy_api::{CpuMode, Overhead, PrevState, SchedClass, SchedEvent};
use schedlab_units::{CpuId, MAX_CPUS, Nice, TaskId, Time};

use super::input::{Input, Stop};

/// Kind of the record that ends a file.
pub(super) const END: u8 = 0;
/// Kind of the record that names a task.
pub(super) const LABEL: u8 = 32;

const PROCESS_FORK: u8 = 1;
const WAKEUP_NEW: u8 = 2;
const WAKING: u8 = 3;
const WAKEUP: u8 = 4;
const SWITCH: u8 = 5;
const MIGRATE_TASK: u8 = 6;
const NEED_RESCHED: u8 = 7;
const YIELD: u8 = 8;
const PROCESS_EXEC: u8 = 9;
const PROCESS_EXIT: u8 = 10;
const PROCESS_FREE: u8 = 11;
const PRIO_CHANGE: u8 = 12;
const CPU_MODE: u8 = 13;
const MARK_COUNT: u8 = 14;
const MARK_LATENCY: u8 = 15;
const DEADLINE: u8 = 16;

const STATES: [PrevState; 5] = [
    PrevState::Preempted,
    PrevState::Yielded,
    PrevState::Sleeping,
    PrevState::Uninterruptible,
    PrevState::Zombie,
];
const CLASSES: [SchedClass; 6] = [
    SchedClass::Normal,
    SchedClass::Fifo,
    SchedClass::Rr,
    SchedClass::Batch,
    SchedClass::Idle,
    SchedClass::Iso,
];
const MODES: [CpuMode; 7] = [
    CpuMode::Idle,
    CpuMode::Busy,
    CpuMode::Overhead(Overhead::Switch),
    CpuMode::Overhead(Overhead::Tick),
    CpuMode::Overhead(Overhead::Interrupt),
    CpuMode::Overhead(Overhead::Wakeup),
    CpuMode::Overhead(Overhead::IdleExit),
];

/// Appends `value` in LEB128.
pub(super) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends the scheduling parameters of a task.
pub(super) fn put_sched(out: &mut Vec<u8>, nice: Nice, class: SchedClass, rt_priority: u8) {
    // Nice −20 … 19 is written as 0 … 39.
    put_varint(out, (nice.get() + 20) as u64);
    put_varint(out, place(&CLASSES, &class));
    put_varint(out, u64::from(rt_priority));
}

/// Appends an event: kind, time since the record before, fields.
pub(super) fn put_event(out: &mut Vec<u8>, since: u64, event: &SchedEvent) {
    let mut put = |kind: u8, fields: &[u64]| {
        out.push(kind);
        put_varint(out, since);
        for field in fields {
            put_varint(out, *field);
        }
    };
    let id = |task: TaskId| u64::from(task.0);
    let on = |cpu: CpuId| u64::from(cpu.0);
    // No task is 0, task n is n + 1.
    let or_none = |task: Option<TaskId>| task.map_or(0, |t| u64::from(t.0) + 1);
    match *event {
        SchedEvent::ProcessFork { task, parent } => {
            put(PROCESS_FORK, &[id(task), or_none(parent)]);
        }
        SchedEvent::WakeupNew { task, cpu } => put(WAKEUP_NEW, &[id(task), on(cpu)]),
        SchedEvent::Waking { task, waker, this_cpu, target } => {
            put(WAKING, &[id(task), or_none(waker), on(this_cpu), on(target)]);
        }
        SchedEvent::Wakeup { task, cpu } => put(WAKEUP, &[id(task), on(cpu)]),
        SchedEvent::Switch { cpu, prev, prev_state, next } => {
            let state = place(&STATES, &prev_state);
            put(SWITCH, &[on(cpu), or_none(prev), state, or_none(next)]);
        }
        SchedEvent::MigrateTask { task, from, to } => {
            put(MIGRATE_TASK, &[id(task), on(from), on(to)]);
        }
        SchedEvent::NeedResched { cpu, by } => put(NEED_RESCHED, &[on(cpu), on(by)]),
        SchedEvent::Yield { task } => put(YIELD, &[id(task)]),
        SchedEvent::ProcessExec { task } => put(PROCESS_EXEC, &[id(task)]),
        SchedEvent::ProcessExit { task, cpu } => put(PROCESS_EXIT, &[id(task), on(cpu)]),
        SchedEvent::ProcessFree { task } => put(PROCESS_FREE, &[id(task)]),
        SchedEvent::PrioChange { task, nice, class, rt_priority } => {
            put(PRIO_CHANGE, &[id(task)]);
            put_sched(out, nice, class, rt_priority);
        }
        SchedEvent::CpuMode { cpu, mode } => put(CPU_MODE, &[on(cpu), place(&MODES, &mode)]),
        SchedEvent::MarkCount { task, mark, n } => {
            put(MARK_COUNT, &[id(task), u64::from(mark), n]);
        }
        SchedEvent::MarkLatency { task, mark, ns } => {
            put(MARK_LATENCY, &[id(task), u64::from(mark), ns]);
        }
        SchedEvent::Deadline { task, due } => put(DEADLINE, &[id(task), due.as_ns()]),
    }
}

fn place<T: PartialEq>(table: &[T], item: &T) -> u64 {
    table.iter().position(|t| t == item).expect("the table is complete") as u64
}

/// Reads fields, checking that they make sense.
pub(super) struct Fields<'a, R> {
    pub(super) input: &'a mut Input<R>,
    /// Task slots in use so far: every id is below, only a fork may name the next one.
    pub(super) n_slots: &'a mut u32,
}

impl<R: BufRead> Fields<'_, R> {
    /// The event of kind `kind`.
    pub(super) fn event(&mut self, kind: u8) -> Result<SchedEvent, Stop> {
        // Fields are read in the order in which they are written here.
        Ok(match kind {
            PROCESS_FORK => {
                let task = self.new_task()?;
                SchedEvent::ProcessFork { task, parent: self.task_or_none()? }
            }
            WAKEUP_NEW => SchedEvent::WakeupNew { task: self.task()?, cpu: self.cpu()? },
            WAKING => SchedEvent::Waking {
                task: self.task()?,
                waker: self.task_or_none()?,
                this_cpu: self.cpu()?,
                target: self.cpu()?,
            },
            WAKEUP => SchedEvent::Wakeup { task: self.task()?, cpu: self.cpu()? },
            SWITCH => SchedEvent::Switch {
                cpu: self.cpu()?,
                prev: self.task_or_none()?,
                prev_state: self.one_of(&STATES, "state")?,
                next: self.task_or_none()?,
            },
            MIGRATE_TASK => {
                SchedEvent::MigrateTask { task: self.task()?, from: self.cpu()?, to: self.cpu()? }
            }
            NEED_RESCHED => SchedEvent::NeedResched { cpu: self.cpu()?, by: self.cpu()? },
            YIELD => SchedEvent::Yield { task: self.task()? },
            PROCESS_EXEC => SchedEvent::ProcessExec { task: self.task()? },
            PROCESS_EXIT => SchedEvent::ProcessExit { task: self.task()?, cpu: self.cpu()? },
            PROCESS_FREE => SchedEvent::ProcessFree { task: self.task()? },
            PRIO_CHANGE => {
                let task = self.task()?;
                let (nice, class, rt_priority) = self.sched()?;
                SchedEvent::PrioChange { task, nice, class, rt_priority }
            }
            CPU_MODE => {
                SchedEvent::CpuMode { cpu: self.cpu()?, mode: self.one_of(&MODES, "mode")? }
            }
            MARK_COUNT => SchedEvent::MarkCount {
                task: self.task()?,
                mark: self.input.varint_u32()?,
                n: self.input.varint()?,
            },
            MARK_LATENCY => SchedEvent::MarkLatency {
                task: self.task()?,
                mark: self.input.varint_u32()?,
                ns: self.input.varint()?,
            },
            DEADLINE => SchedEvent::Deadline {
                task: self.task()?,
                due: Time::from_ns(self.input.varint()?),
            },
            _ => return Err(Stop::Fault(format!("there is no record of kind {kind}"))),
        })
    }

    pub(super) fn sched(&mut self) -> Result<(Nice, SchedClass, u8), Stop> {
        let nice = self.input.varint()?;
        let nice = i32::try_from(nice).ok().and_then(|n| Nice::new(n - 20));
        let nice = nice.ok_or_else(|| Stop::Fault("a nice value is out of range".to_string()))?;
        let class = self.one_of(&CLASSES, "class")?;
        let rt_priority = self.input.varint()?;
        match u8::try_from(rt_priority) {
            Ok(priority) if priority < 100 => Ok((nice, class, priority)),
            _ => Err(Stop::Fault(format!("{rt_priority} is not a real-time priority"))),
        }
    }

    pub(super) fn task(&mut self) -> Result<TaskId, Stop> {
        let task = self.input.varint_u32()?;
        self.check(task)
    }

    fn check(&self, task: u32) -> Result<TaskId, Stop> {
        if task >= *self.n_slots {
            return Err(Stop::Fault(format!("task {task} was never forked")));
        }
        Ok(TaskId(task))
    }

    fn new_task(&mut self) -> Result<TaskId, Stop> {
        let task = self.input.varint_u32()?;
        if task == *self.n_slots {
            *self.n_slots += 1;
        }
        if task >= *self.n_slots {
            return Err(Stop::Fault(format!("task {task} is forked before those below it")));
        }
        Ok(TaskId(task))
    }

    fn task_or_none(&mut self) -> Result<Option<TaskId>, Stop> {
        match self.input.varint_u32()? {
            0 => Ok(None),
            n => self.check(n - 1).map(Some),
        }
    }

    fn cpu(&mut self) -> Result<CpuId, Stop> {
        let cpu = self.input.varint_u32()?;
        if cpu as usize >= MAX_CPUS {
            return Err(Stop::Fault(format!("CPU {cpu} is beyond the {MAX_CPUS} CPUs we handle")));
        }
        Ok(CpuId(cpu))
    }

    fn one_of<T: Copy>(&mut self, table: &[T], what: &str) -> Result<T, Stop> {
        let index = self.input.varint()?;
        let item = usize::try_from(index).ok().and_then(|i| table.get(i)).copied();
        item.ok_or_else(|| Stop::Fault(format!("there is no {what} {index}")))
    }
}
