// SPDX-License-Identifier: GPL-2.0-only
//! What must hold in every workload before a host may run it.
//!
//! Readers report these faults where they can point at the text; this check stands behind all of
//! them, and behind workloads that are built in code. Facts about the machine are checked in
//! [`crate::check_machine`].

use std::collections::BTreeSet;

use schedlab_units::{MAX_CPUS, Nanos};

use crate::ir::{
    Dist, ObjectId, Objects, Op, PeriodSpec, PeriodStep, ProcessSpec, Program, SchedSpec,
    SignalTarget, TaskSpec, Workload,
};

/// Longest single duration: 2^60 ns, about 36 years.
pub const MAX_DURATION_NS: u64 = 1 << 60;
/// Largest count or number of bytes: 2^60.
pub const MAX_AMOUNT: u64 = 1 << 60;
/// Most tasks that may exist at the start.
pub const MAX_TASKS: u64 = 1 << 20;

/// Where in a workload a fault lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The workload as a whole.
    Workload,
    /// A shared object or a mark.
    Object,
    /// The task template with this index.
    Task(usize),
    /// The affinity of the task template with this index.
    Affinity(usize),
    /// Operation `op` of program `program`.
    Op {
        /// Index of the program.
        program: usize,
        /// Index of the operation.
        op: usize,
    },
}

/// Why a workload cannot run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Invalid {
    /// Where.
    pub place: Place,
    /// What is wrong, a lower-case fragment.
    pub message: String,
}

fn fault<T>(place: Place, message: impl Into<String>) -> Result<T, Invalid> {
    Err(Invalid { place, message: message.into() })
}

/// Checks that indices are in range, values make sense, and no program loops without end at one
/// instant.
///
/// # Errors
/// The first fault found, in the order objects, tasks, programs.
///
/// *Complexity*: linear in the size of the workload.
pub fn validate(workload: &Workload) -> Result<(), Invalid> {
    check_objects(&workload.objects)?;
    unique("mark", workload.marks.iter().map(|m| &m.name))?;
    if let Some(table) = workload.table {
        let has = |name: &str| workload.marks.iter().any(|mark| mark.name == name);
        if let Some(lacking) = table.marks().iter().find(|name| !has(name)) {
            let message = format!("the table `{}` needs a mark `{lacking}`", table.name());
            return fault(Place::Workload, message);
        }
    }
    check_periods(workload)?;
    if workload.duration.is_some_and(|d| d.as_ns() > MAX_DURATION_NS) {
        return fault(Place::Workload, "the duration is longer than 36 years");
    }
    for (index, task) in workload.tasks.iter().enumerate() {
        check_task(workload, task).or_else(|message| fault(Place::Task(index), message))?;
    }
    unique("task", workload.tasks.iter().map(|t| &t.name))?;
    let n_tasks: u64 =
        workload.tasks.iter().filter(|t| t.at_start).map(|t| u64::from(t.count)).sum();
    if n_tasks > MAX_TASKS {
        let message = format!("{n_tasks} tasks exist at the start; at most {MAX_TASKS} may");
        return fault(Place::Workload, message);
    }
    for (index, program) in workload.programs.iter().enumerate() {
        check_program(workload, index, program)?;
    }
    Ok(())
}

fn unique<'a>(kind: &str, names: impl Iterator<Item = &'a String>) -> Result<(), Invalid> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return fault(
                Place::Object,
                format!("the name `{name}` is given to more than one {kind}"),
            );
        }
    }
    Ok(())
}

fn check_objects(objects: &Objects) -> Result<(), Invalid> {
    if objects.semaphores.iter().any(|s| s.initial > MAX_AMOUNT)
        || objects.pipes.iter().any(|p| p.capacity > MAX_AMOUNT)
    {
        return fault(Place::Object, "the capacity or count of an object is above 2^60");
    }
    for pipe in &objects.pipes {
        if pipe.capacity == 0 || pipe.charge_per_write.is_some_and(|c| c > pipe.capacity) {
            let message = format!("pipe `{}` cannot hold a single write", pipe.name);
            return fault(Place::Object, message);
        }
        if pipe.writer_wake_below >= pipe.capacity {
            let message = format!(
                "pipe `{}` wakes its writers when full: `writer_wake_below` must be below {}",
                pipe.name, pipe.capacity
            );
            return fault(Place::Object, message);
        }
    }
    for barrier in &objects.barriers {
        if barrier.parties == 0 {
            let message = format!("barrier `{}` has no parties", barrier.name);
            return fault(Place::Object, message);
        }
    }
    unique("pipe", objects.pipes.iter().map(|o| &o.name))?;
    unique("semaphore", objects.semaphores.iter().map(|o| &o.name))?;
    unique("mutex", objects.mutexes.iter().map(|o| &o.name))?;
    unique("condition", objects.conditions.iter().map(|o| &o.name))?;
    unique("barrier", objects.barriers.iter().map(|o| &o.name))?;
    unique("futex", objects.futexes.iter().map(|o| &o.name))?;
    unique("list", objects.lists.iter().map(|o| &o.name))?;
    unique("timer", objects.timers.iter().map(|o| &o.name))
}

fn check_periods(workload: &Workload) -> Result<(), Invalid> {
    let periods = &workload.objects.periods;
    for period in periods {
        let PeriodSpec { name, sample, achieved, missed_burns, met, missed } = period;
        let marks = [sample, achieved, missed_burns, met, missed].into_iter().flatten();
        if marks.into_iter().any(|mark| mark.0 as usize >= workload.marks.len()) {
            return fault(Place::Object, format!("period `{name}` has a mark that is not there"));
        }
    }
    unique("period", periods.iter().map(|o| &o.name))
}

fn check_task(workload: &Workload, task: &TaskSpec) -> Result<(), String> {
    let name = &task.name;
    if task.program.0 as usize >= workload.programs.len() {
        return Err(format!("task `{name}` has no program"));
    }
    if let Some(sched) = &task.sched {
        check_sched(sched).map_err(|why| format!("task `{name}`: {why}"))?;
    }
    if task.affinity.is_some_and(|set| set.is_empty()) {
        return Err(format!("task `{name}` may use no CPU"));
    }
    if let Some(cpu) = task.start_cpu {
        if cpu as usize >= MAX_CPUS {
            return Err(format!("task `{name}` starts on CPU {cpu}; the last is {}", MAX_CPUS - 1));
        }
        if task.affinity.is_some_and(|set| !set.contains(schedlab_units::CpuId(cpu))) {
            return Err(format!("task `{name}` starts on CPU {cpu}, which it may not use"));
        }
    }
    if task.start.as_ns() > MAX_DURATION_NS {
        return Err(format!("task `{name}` starts after more than 36 years"));
    }
    if matches!(&task.process, ProcessSpec::Thread(process) if process.is_empty()) {
        return Err(format!("task `{name}` is a thread of a process without a name"));
    }
    Ok(())
}

fn check_sched(sched: &SchedSpec) -> Result<(), String> {
    let class = sched.class.name();
    match (sched.class.is_rt(), sched.rt_priority) {
        (true, 1..=99) | (false, 0) => {}
        (true, other) => {
            return Err(format!("class {class} needs a priority of 1 to 99, not {other}"));
        }
        (false, _) => return Err(format!("class {class} has no real-time priority")),
    }
    if sched.slice.as_ns() > MAX_DURATION_NS {
        return Err("the requested slice is longer than 36 years".to_string());
    }
    Ok(())
}

fn check_program(workload: &Workload, index: usize, program: &Program) -> Result<(), Invalid> {
    if u32::try_from(program.ops.len()).is_err() {
        return fault(Place::Workload, "a program has more than 2^32 operations");
    }
    for (at, op) in program.ops.iter().enumerate() {
        check_op(workload, program, op)
            .or_else(|message| fault(Place::Op { program: index, op: at }, message))?;
    }
    if let Some(at) = find_loop(program, is_control, true) {
        let message = "the program loops without doing anything";
        return fault(Place::Op { program: index, op: at }, message);
    }
    if let Some(at) = find_loop(program, |op| is_control(op) || is_instant(op), false) {
        let message = "the program loops for ever at one instant: nothing in the loop takes time \
                       or waits";
        return fault(Place::Op { program: index, op: at }, message);
    }
    Ok(())
}

fn check_op(workload: &Workload, program: &Program, op: &Op) -> Result<(), String> {
    let objects = &workload.objects;
    let known = |id: ObjectId, len: usize, kind: &str| {
        if (id.0 as usize) < len { Ok(()) } else { Err(format!("there is no {kind} {}", id.0)) }
    };
    let target_known = |target: u32| {
        if target as usize <= program.ops.len() {
            Ok(())
        } else {
            Err(format!("a jump goes to operation {target}, past the end"))
        }
    };
    let template_known = |id: u32| {
        if (id as usize) < workload.tasks.len() { Ok(()) } else { Err(format!("no task {id}")) }
    };
    let mark_known = |id: u32| {
        if (id as usize) < workload.marks.len() { Ok(()) } else { Err(format!("no mark {id}")) }
    };
    let counter_known = |id: u32| {
        if id < program.n_counters { Ok(()) } else { Err(format!("no counter {id}")) }
    };
    match op {
        Op::Run(d) | Op::Draw(d) | Op::Kernel(d) | Op::Spin(d) | Op::Sleep(d) | Op::Disk(d) => {
            check_span(*d)
        }
        Op::RunPart(0) => Err("a length is cut into 0 parts".to_string()),
        Op::SpinLooking { length, every } => {
            check_period(*every)?;
            check_span(*length)
        }
        Op::Timer { timer, period, .. } | Op::Advance { timer, period } => {
            known(*timer, objects.timers.len(), "timer")?;
            check_span(*period)
        }
        Op::Before { timer, target } => {
            known(*timer, objects.timers.len(), "timer")?;
            target_known(*target)
        }
        Op::Interrupt { period, .. } => check_period(*period),
        Op::Read { pipe, bytes } | Op::Write { pipe, bytes } => {
            known(*pipe, objects.pipes.len(), "pipe")?;
            check_transfer(objects, *pipe, *bytes)
        }
        Op::SemWait(id) | Op::SemPost(id) => known(*id, objects.semaphores.len(), "semaphore"),
        Op::SemTry { semaphore, on_zero } => {
            known(*semaphore, objects.semaphores.len(), "semaphore")?;
            target_known(*on_zero)
        }
        Op::Period { period, step } => {
            known(*period, objects.periods.len(), "period")?;
            match *step {
                PeriodStep::Begin { interval, on_missed: target }
                | PeriodStep::End { interval, on_late: target } => {
                    check_span(Dist::Const(interval.as_ns()))?;
                    target.map_or(Ok(()), target_known)
                }
                PeriodStep::Shift(span) => check_span(Dist::Const(span.as_ns())),
                PeriodStep::Reset | PeriodStep::Sleep | PeriodStep::Sample => Ok(()),
            }
        }
        Op::Lock(id) | Op::Unlock(id) => known(*id, objects.mutexes.len(), "mutex"),
        Op::CondWait { condition, mutex } => {
            known(*condition, objects.conditions.len(), "condition")?;
            known(*mutex, objects.mutexes.len(), "mutex")
        }
        Op::CondSignal(id) | Op::CondBroadcast(id) => {
            known(*id, objects.conditions.len(), "condition")
        }
        Op::Barrier(id) => known(*id, objects.barriers.len(), "barrier"),
        Op::FutexArm(id) | Op::FutexWait(id) | Op::FutexWake { futex: id, .. } => {
            known(*id, objects.futexes.len(), "futex")
        }
        Op::ListJoin { list, wake, mark } => {
            known(*list, objects.lists.len(), "list")?;
            known(*wake, objects.futexes.len(), "futex")?;
            mark.map_or(Ok(()), |mark| mark_known(mark.0))
        }
        Op::ListServe(id) => known(*id, objects.lists.len(), "list"),
        Op::Signal(SignalTarget::Template(id)) | Op::Kill(id) => template_known(id.0),
        Op::SignalTaking { target, awake, asleep } => {
            check_span(Dist::Const(awake.as_ns().max(asleep.as_ns())))?;
            match target {
                SignalTarget::Template(id) => template_known(id.0),
                SignalTarget::Parent => Ok(()),
            }
        }
        Op::SigWait { timeout, on_timeout } => {
            timeout.map_or(Ok(()), check_span)?;
            on_timeout.map_or(Ok(()), target_known)
        }
        Op::Fork { template, .. } => template_known(template.0),
        Op::SetSched(sched) => check_sched(sched),
        Op::SetAffinity(set) if set.is_empty() => Err("the affinity has no CPU".to_string()),
        Op::Mark { mark, n } => {
            check_amount(*n)?;
            mark_known(mark.0)
        }
        Op::MarkStart(mark) | Op::MarkStop(mark) => mark_known(mark.0),
        Op::Deadline { within } if within.as_ns() > MAX_DURATION_NS => {
            Err("the deadline is longer than 36 years".to_string())
        }
        Op::SetCounter { counter, value } => {
            check_dist(*value)?;
            counter_known(*counter)
        }
        Op::DecJump { counter, target } => {
            counter_known(*counter)?;
            target_known(*target)
        }
        Op::Jump { target } => target_known(*target),
        Op::JumpRandom { numerator, denominator, target } => {
            if *denominator == 0 || numerator > denominator {
                return Err(format!("{numerator}/{denominator} is not a probability"));
            }
            check_amount(*denominator)?;
            target_known(*target)
        }
        Op::RunForever
        | Op::RunPart(_)
        | Op::Signal(SignalTarget::Parent)
        | Op::WaitChildren
        | Op::WaitChild
        | Op::Exec
        | Op::Exit
        | Op::Yield
        | Op::SetNice(_)
        | Op::SetAffinity(_)
        | Op::Deadline { .. } => Ok(()),
    }
}

fn check_transfer(objects: &Objects, pipe: ObjectId, bytes: u64) -> Result<(), String> {
    let pipe = &objects.pipes[pipe.0 as usize];
    if bytes == 0 {
        return Err(format!("no bytes are moved through pipe `{}`", pipe.name));
    }
    check_amount(bytes)
}

fn check_dist(dist: Dist) -> Result<(), String> {
    match dist {
        Dist::Uniform(low, high) if low > high => {
            Err(format!("the distribution from {low} to {high} runs backwards"))
        }
        _ => check_amount(dist.max()),
    }
}

fn check_amount(n: u64) -> Result<(), String> {
    if n > MAX_AMOUNT { Err(format!("{n} is above 2^60")) } else { Ok(()) }
}

fn check_span(dist: Dist) -> Result<(), String> {
    if dist.max() > MAX_DURATION_NS {
        return Err("a duration is longer than 36 years".to_string());
    }
    check_dist(dist)
}

/// A period of zero would never end.
fn check_period(period: Nanos) -> Result<(), String> {
    if period.is_zero() {
        return Err("a period is longer than zero".to_string());
    }
    check_span(Dist::Const(period.as_ns()))
}

fn is_control(op: &Op) -> bool {
    matches!(
        op,
        Op::SetCounter { .. } | Op::DecJump { .. } | Op::Jump { .. } | Op::JumpRandom { .. }
    )
}

/// Whether an operation can neither take time nor wait, so that a loop of such never advances.
fn is_instant(op: &Op) -> bool {
    match op {
        Op::Run(d) | Op::Kernel(d) | Op::Spin(d) | Op::Sleep(d) | Op::Disk(d) => d.max() == 0,
        Op::SpinLooking { length, .. } => length.max() == 0,
        Op::Timer { period, .. } => period.max() == 0,
        Op::SignalTaking { awake, asleep, .. } => awake.is_zero() && asleep.is_zero(),
        Op::Draw(_)
        | Op::Advance { .. }
        | Op::Before { .. }
        | Op::SemPost(_)
        | Op::Lock(_)
        | Op::Unlock(_)
        | Op::CondSignal(_)
        | Op::CondBroadcast(_)
        | Op::FutexArm(_)
        | Op::FutexWake { .. }
        | Op::ListServe(_)
        | Op::Signal(_)
        | Op::Kill(_)
        | Op::Fork { .. }
        | Op::Exec
        | Op::SetSched(_)
        | Op::SetNice(_)
        | Op::SetAffinity(_)
        | Op::Mark { .. }
        | Op::MarkStart(_)
        | Op::MarkStop(_)
        | Op::Deadline { .. }
        | Op::SemTry { .. }
        // A period's sleep may be over already, so that a loop around it need not advance.
        | Op::Period { .. } => true,
        _ => false,
    }
}

/// An operation on a cycle of operations that all satisfy `inside`, if there is one.
///
/// `ending` says whether jumps that end by themselves, by a counter or by chance, close a cycle.
fn find_loop(program: &Program, inside: impl Fn(&Op) -> bool, ending: bool) -> Option<usize> {
    let ops = &program.ops;
    let successors = |at: usize| -> [Option<usize>; 2] {
        let next = Some(at + 1);
        match ops[at] {
            Op::Jump { target } => [Some(target as usize), None],
            // No time passes, so what is before the timer stays before it.
            Op::Before { target, .. } => [Some(target as usize), next],
            Op::JumpRandom { numerator, denominator, target } if numerator == denominator => {
                [Some(target as usize), None]
            }
            Op::DecJump { target, .. } | Op::JumpRandom { target, .. } if ending => {
                [Some(target as usize), next]
            }
            Op::SemTry { on_zero: target, .. }
            | Op::Period {
                step:
                    PeriodStep::Begin { on_missed: Some(target), .. }
                    | PeriodStep::End { on_late: Some(target), .. },
                ..
            } => [Some(target as usize), next],
            _ => [next, None],
        }
    };
    // Depth first without recursion: 0 unseen, 1 on the path, 2 done.
    let mut state = vec![0u8; ops.len()];
    let mut path: Vec<(usize, usize)> = Vec::new();
    for start in 0..ops.len() {
        if state[start] != 0 || !inside(&ops[start]) {
            continue;
        }
        state[start] = 1;
        path.push((start, 0));
        while let Some((at, branch)) = path.pop() {
            let Some(next) = successors(at).get(branch).copied().flatten() else {
                state[at] = 2;
                continue;
            };
            path.push((at, branch + 1));
            if next >= ops.len() || !inside(&ops[next]) {
                continue;
            }
            match state[next] {
                0 => {
                    state[next] = 1;
                    path.push((next, 0));
                }
                1 => return Some(next),
                _ => {}
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{NamedSpec, PipeSpec, ProgramId};

    fn workload(ops: Vec<Op>) -> Workload {
        Workload {
            tasks: vec![TaskSpec {
                name: "t".to_string(),
                group: "t".to_string(),
                count: 1,
                at_start: true,
                start: schedlab_units::Nanos::ZERO,
                sched: None,
                affinity: None,
                start_cpu: None,
                process: ProcessSpec::Own,
                program: ProgramId(0),
            }],
            programs: vec![Program { ops, n_counters: 1 }],
            ..Workload::default()
        }
    }

    fn check(ops: Vec<Op>, expected: Result<(), &str>) {
        let result = validate(&workload(ops.clone())).map_err(|e| e.message);
        match expected {
            Ok(()) => assert_eq!(result, Ok(()), "{ops:?}"),
            Err(part) => {
                let message = result.expect_err("faulty");
                assert!(message.contains(part), "{ops:?}: {message}");
            }
        }
    }

    const RUN: Op = Op::Run(Dist::Const(1));
    const BACK: Op = Op::Jump { target: 0 };

    #[test]
    fn loop_without_operations_is_refused() {
        check(vec![BACK], Err("without doing anything"));
        check(vec![Op::DecJump { counter: 0, target: 0 }], Err("without doing anything"));
        check(
            vec![RUN, Op::Jump { target: 3 }, RUN, Op::Jump { target: 1 }],
            Err("without doing anything"),
        );
    }

    #[test]
    fn loop_at_one_instant_is_refused() {
        check(vec![Op::Exec, BACK], Err("at one instant"));
        check(vec![Op::Run(Dist::Const(0)), BACK], Err("at one instant"));
        check(vec![RUN, Op::Exec, Op::Jump { target: 1 }], Err("at one instant"));
        let certain = Op::JumpRandom { numerator: 2, denominator: 2, target: 0 };
        check(vec![Op::Exec, certain], Err("at one instant"));
    }

    #[test]
    fn loop_that_advances_or_ends_is_allowed() {
        check(vec![RUN, BACK], Ok(()));
        check(vec![Op::Exec, Op::SigWait { timeout: None, on_timeout: None }, BACK], Ok(()));
        check(vec![Op::Exec, Op::DecJump { counter: 0, target: 0 }], Ok(()));
        let chance = Op::JumpRandom { numerator: 1, denominator: 2, target: 0 };
        check(vec![Op::Exec, chance], Ok(()));
        check(vec![Op::Exec, Op::Jump { target: 2 }], Ok(()));
    }

    #[test]
    fn index_out_of_range_is_refused() {
        check(vec![Op::Lock(ObjectId(0))], Err("no mutex 0"));
        check(vec![Op::Jump { target: 2 }], Err("past the end"));
        check(vec![Op::SetCounter { counter: 1, value: Dist::Const(1) }], Err("no counter 1"));
        check(vec![Op::Fork { template: crate::ir::TemplateId(1), thread: false }], Err("no task"));
        check(vec![Op::MarkStart(crate::ir::MarkId(0))], Err("no mark 0"));
    }

    #[test]
    fn value_without_sense_is_refused() {
        check(vec![Op::Run(Dist::Uniform(2, 1))], Err("runs backwards"));
        check(vec![Op::Sleep(Dist::Const(u64::MAX))], Err("36 years"));
        let rt = SchedSpec { class: schedlab_policy_api::SchedClass::Fifo, ..SchedSpec::default() };
        check(vec![Op::SetSched(rt)], Err("1 to 99"));
        let more_than_sure = Op::JumpRandom { numerator: 3, denominator: 2, target: 0 };
        check(vec![RUN, more_than_sure], Err("not a probability"));
    }

    #[test]
    fn pipe_that_cannot_work_is_refused() {
        let check = |bytes, charge, wake, says: &str| {
            let mut workload = workload(vec![Op::Read { pipe: ObjectId(0), bytes }]);
            workload.objects.pipes.push(PipeSpec {
                name: "p".to_string(),
                capacity: 100,
                charge_per_write: charge,
                writer_wake_below: wake,
                sync: true,
                wake_reader_always: false,
            });
            let error = validate(&workload).expect_err("faulty");
            assert!(error.message.contains(says), "{error}");
            error.place
        };
        assert_eq!(check(0, None, 99, "no bytes"), Place::Op { program: 0, op: 0 });
        assert_eq!(check(1, Some(101), 99, "cannot hold a single write"), Place::Object);
        assert_eq!(check(1, None, 100, "must be below 100"), Place::Object);
    }

    #[test]
    fn equal_names_are_refused() {
        let mut workload = workload(vec![RUN]);
        for _ in 0..2 {
            workload.objects.mutexes.push(NamedSpec { name: "m".to_string() });
        }
        let error = validate(&workload).expect_err("two of a name");
        assert_eq!(error.message, "the name `m` is given to more than one mutex");
    }
}
