// SPDX-License-Identifier: GPL-2.0-only
//! Several workloads at the same time, as `NAME+NAME`: their tasks side by side, sharing nothing.

use schedlab_units::{Located, Nanos};

use crate::digest::digest;
use crate::ir::{
    NamedSpec, ObjectId, Objects, Op, PeriodSpec, ProcessSpec, SignalTarget, Workload,
};
use crate::load::{LoadError, LoadErrorKind, LoadOptions, Loaded, resolve};
use crate::nearest::did_you_mean;
use crate::origins::Origins;
use crate::validate::validate;

/// Loads `parts` and puts them together; `name` is how the whole was asked for.
///
/// A parameter `PART.NAME` is set in that part, a plain `NAME` in every part that has it. The
/// length is that of the longest part.
pub(crate) fn combine(
    name: &str,
    parts: &[&str],
    overrides: &[(String, String)],
    options: &LoadOptions,
) -> Result<Loaded, LoadError> {
    let fail = |kind, message: String| {
        Err(LoadError { file: name.to_string(), fault: Located::whole(message), kind })
    };
    let mut plain = Vec::new();
    for part in parts {
        plain.push(resolve(part, &[], options)?);
    }
    let owns = |part: usize, key: &str| {
        let own = key.strip_prefix(parts[part]).and_then(|rest| rest.strip_prefix('.'));
        let own = own.unwrap_or(key);
        plain[part].workload.params.iter().any(|(name, _)| name == own).then(|| own.to_string())
    };
    if let Some((key, _)) =
        overrides.iter().find(|(key, _)| (0..parts.len()).all(|part| owns(part, key).is_none()))
    {
        let params = plain.iter().flat_map(|part| &part.workload.params);
        let near = did_you_mean(key, params.map(|(name, _)| name.as_str()));
        let message = format!("none of the parts has a parameter `{key}`{near}");
        return fail(LoadErrorKind::Usage, message);
    }
    let mut whole = Workload { name: name.to_string(), ..Workload::default() };
    let mut warnings = Vec::new();
    for (index, part) in parts.iter().enumerate() {
        let own = overrides.iter().filter_map(|(key, value)| {
            let key = owns(index, key)?;
            Some((key, value.clone()))
        });
        let loaded = resolve(part, &own.collect::<Vec<_>>(), options)?;
        warnings.extend(loaded.warnings);
        append(&mut whole, part, loaded.workload);
    }
    if let Err(invalid) = validate(&whole) {
        return fail(LoadErrorKind::Input, format!("the parts do not go together: {invalid}"));
    }
    Ok(Loaded {
        digest: digest(&whole),
        workload: whole,
        warnings,
        file: name.to_string(),
        source_text: String::new(),
        origins: Origins::default(),
        cells: Vec::new(),
    })
}

/// Numbers that the indices of a part grow by.
struct Shift {
    tasks: u32,
    programs: u32,
    marks: u32,
    objects: [u32; 9],
}

/// Adds the tasks of `part`, called `name`, to `whole`. Tasks and marks keep their names, which
/// results show; objects and processes get the name of the part before their own.
fn append(whole: &mut Workload, name: &str, mut part: Workload) {
    let shift = Shift {
        tasks: whole.tasks.len() as u32,
        programs: whole.programs.len() as u32,
        marks: whole.marks.len() as u32,
        objects: lengths(&whole.objects),
    };
    let joined = |a: &str, b: &str, between: &str| {
        if a.is_empty() { b.to_string() } else { format!("{a}{between}{b}") }
    };
    whole.about = joined(&whole.about, &part.about, " + ");
    whole.origin = joined(&whole.origin, &part.origin, "; ");
    whole.duration = whole.duration.max(part.duration.filter(|length| *length > Nanos::ZERO));
    let params = part.params.into_iter().map(|(key, value)| (format!("{name}.{key}"), value));
    whole.params.extend(params);
    whole.notes.extend(part.notes.into_iter().map(|note| format!("{name}: {note}")));
    whole.family_streams |= part.family_streams;
    whole.marks.append(&mut part.marks);
    for mut task in part.tasks {
        task.program.0 += shift.programs;
        if let ProcessSpec::Thread(process) = &mut task.process {
            *process = format!("{name}/{process}");
        }
        whole.tasks.push(task);
    }
    for mut program in part.programs {
        program.ops.iter_mut().for_each(|op| move_op(op, &shift));
        whole.programs.push(program);
    }
    for period in &mut part.objects.periods {
        let PeriodSpec { name: _, sample, achieved, missed_burns, met, missed } = period;
        for mark in [sample, achieved, missed_burns, met, missed].into_iter().flatten() {
            mark.0 += shift.marks;
        }
    }
    append_objects(&mut whole.objects, name, part.objects);
}

fn lengths(objects: &Objects) -> [u32; 9] {
    [
        objects.pipes.len(),
        objects.semaphores.len(),
        objects.mutexes.len(),
        objects.conditions.len(),
        objects.barriers.len(),
        objects.futexes.len(),
        objects.lists.len(),
        objects.timers.len(),
        objects.periods.len(),
    ]
    .map(|n| n as u32)
}

fn append_objects(whole: &mut Objects, part: &str, mut new: Objects) {
    let rename = |name: &mut String| *name = format!("{part}/{name}");
    let named = |list: &mut Vec<NamedSpec>| list.iter_mut().for_each(|o| rename(&mut o.name));
    new.pipes.iter_mut().for_each(|o| rename(&mut o.name));
    new.semaphores.iter_mut().for_each(|o| rename(&mut o.name));
    new.barriers.iter_mut().for_each(|o| rename(&mut o.name));
    new.timers.iter_mut().for_each(|o| rename(&mut o.name));
    new.periods.iter_mut().for_each(|o| rename(&mut o.name));
    named(&mut new.mutexes);
    named(&mut new.conditions);
    named(&mut new.futexes);
    named(&mut new.lists);
    whole.pipes.append(&mut new.pipes);
    whole.semaphores.append(&mut new.semaphores);
    whole.mutexes.append(&mut new.mutexes);
    whole.conditions.append(&mut new.conditions);
    whole.barriers.append(&mut new.barriers);
    whole.futexes.append(&mut new.futexes);
    whole.lists.append(&mut new.lists);
    whole.timers.append(&mut new.timers);
    whole.periods.append(&mut new.periods);
}

/// Lets an operation refer to the same things in the whole.
fn move_op(op: &mut Op, shift: &Shift) {
    let [pipes, semaphores, mutexes, conditions, barriers, futexes, lists, timers, periods] =
        shift.objects;
    let add = |id: &mut ObjectId, by: u32| id.0 += by;
    match op {
        Op::Timer { timer, .. } | Op::Advance { timer, .. } | Op::Before { timer, .. } => {
            add(timer, timers);
        }
        Op::Read { pipe, .. } | Op::Write { pipe, .. } => add(pipe, pipes),
        Op::SemWait(id) | Op::SemPost(id) | Op::SemTry { semaphore: id, .. } => {
            add(id, semaphores);
        }
        Op::Period { period, .. } => add(period, periods),
        Op::Lock(id) | Op::Unlock(id) => add(id, mutexes),
        Op::CondWait { condition, mutex } => {
            add(condition, conditions);
            add(mutex, mutexes);
        }
        Op::CondSignal(id) | Op::CondBroadcast(id) => add(id, conditions),
        Op::Barrier(id) => add(id, barriers),
        Op::FutexArm(id) | Op::FutexWait(id) | Op::FutexWake { futex: id, .. } => add(id, futexes),
        Op::ListJoin { list, wake, mark } => {
            add(list, lists);
            add(wake, futexes);
            if let Some(mark) = mark {
                mark.0 += shift.marks;
            }
        }
        Op::ListServe(id) => add(id, lists),
        Op::Signal(SignalTarget::Template(task))
        | Op::SignalTaking { target: SignalTarget::Template(task), .. }
        | Op::Kill(task)
        | Op::Fork { template: task, .. } => task.0 += shift.tasks,
        Op::Mark { mark, .. } | Op::MarkStart(mark) | Op::MarkStop(mark) => mark.0 += shift.marks,
        Op::Run(_)
        | Op::RunForever
        | Op::Draw(_)
        | Op::RunPart(_)
        | Op::Kernel(_)
        | Op::Spin(_)
        | Op::SpinLooking { .. }
        | Op::Sleep(_)
        | Op::Interrupt { .. }
        | Op::Disk(_)
        | Op::Signal(SignalTarget::Parent)
        | Op::SignalTaking { .. }
        | Op::SigWait { .. }
        | Op::WaitChildren
        | Op::WaitChild
        | Op::Exec
        | Op::Exit
        | Op::Yield
        | Op::SetSched(_)
        | Op::SetNice(_)
        | Op::SetAffinity(_)
        | Op::Deadline { .. }
        | Op::SetCounter { .. }
        | Op::DecJump { .. }
        | Op::Jump { .. }
        | Op::JumpRandom { .. } => {}
    }
}
