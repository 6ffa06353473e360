// SPDX-License-Identifier: GPL-2.0-only
//! The end of a play: when it is, how all tasks come to it, and what they leave.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::io::Errno;
use schedlab_policy_api::{Pid, RecordEvent, Recording, SchedClass};
use schedlab_units::{Nanos, Time};
use schedlab_workload::ir::{Op, TaskSpec};

use crate::calls;
use crate::life::THREADS_MAX;
use crate::play::PlayError;
use crate::played::{Played, PlayedTask};
use crate::shared::Shared;
use crate::task::lock;

/// How often the play looks at the user's wish to end it.
const LOOK: Duration = Duration::from_millis(20);
/// How long tasks may take to end.
const PATIENCE: Nanos = Nanos::from_s(30);

/// How a play ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Every task has exited, or a fault ended it.
    Over,
    /// It was cut at its length.
    Cut(Time),
    /// The user ended it.
    Interrupted(Time),
}

/// Waits for the end, and provides what forks need meanwhile.
pub(crate) fn watch(shared: &Shared, length: Nanos, stop: &AtomicBool) -> Ending {
    // A task of a real-time class must not keep the play from ending.
    let uses_rt = |spec: &TaskSpec| spec.sched.is_some_and(|sched| sched.class.is_rt());
    let sets_rt = |op: &Op| matches!(op, Op::SetSched(sched) if sched.class.is_rt());
    let mut ops = shared.workload.programs.iter().flat_map(|program| &program.ops);
    let real_time = shared.workload.tasks.iter().any(uses_rt) || ops.any(sets_rt);
    if real_time {
        let _ = calls::set_sched(SchedClass::Fifo, 0, 99, Nanos::ZERO, false);
    }
    let end = shared.start().saturating_add(length);
    let ending = loop {
        if shared.live.load(Ordering::Acquire) == 0 || shared.stop.load(Ordering::Acquire) {
            break Ending::Over;
        }
        let now = calls::now();
        if now >= end {
            break Ending::Cut(end);
        }
        if stop.load(Ordering::Relaxed) {
            break Ending::Interrupted(now);
        }
        shared.nudge(false);
        let left = Duration::from_nanos(end.saturating_since(now).as_ns());
        if let Err(error) = shared.processes.lenders.tend(left.min(LOOK)) {
            lock(&shared.results).lack.get_or_insert(format!("room for more processes: {error}"));
            break Ending::Over;
        }
    };
    shared.stop.store(true, Ordering::Release);
    if real_time {
        let _ = calls::set_sched(SchedClass::Normal, 0, 0, Nanos::ZERO, false);
    }
    ending
}

/// Ends all tasks and waits until the kernel has forgotten them.
pub(crate) fn end_all(shared: &Shared) -> Result<(), PlayError> {
    let patience = calls::now().saturating_add(PATIENCE);
    while shared.live.load(Ordering::Acquire) > 0 {
        shared.nudge(true);
        std::thread::sleep(Duration::from_millis(1));
        if calls::now() > patience {
            let n = shared.live.load(Ordering::Acquire);
            let message = format!("an end: {n} threads of tasks did not stop within {PATIENCE}");
            return Err(PlayError::Lacks(vec![message]));
        }
    }
    // What was killed may have left a lock that lenders need for their end.
    if lock(&shared.results).killed.is_none() {
        shared.processes.lenders.close();
    }
    // Processes have been waited for; threads of this one are there for a moment more.
    let results = lock(&shared.results);
    let there = |task: &PlayedTask| {
        task.pid != Pid(0) && Path::new(&format!("/proc/self/task/{}", task.pid.0)).exists()
    };
    while results.tasks.iter().rev().take(THREADS_MAX).any(there) && calls::now() < patience {
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// What the tasks have left, or what kept them from playing.
pub(crate) fn conclude(
    shared: &Shared,
    mut remarks: Vec<String>,
    ending: Ending,
) -> Result<Played, PlayError> {
    let results = std::mem::take(&mut *lock(&shared.results));
    if let Some((task, signal)) = results.killed {
        return Err(PlayError::Killed { task, signal });
    }
    if let Some(lack) = results.lack {
        return Err(PlayError::Lacks(vec![lack]));
    }
    if let Some(fault) = results.fault {
        return Err(PlayError::Fault(fault));
    }
    let start = shared.start();
    let last_exit = results.tasks.iter().filter_map(|task| task.exit).max();
    let end = match ending {
        Ending::Over => last_exit.unwrap_or(start),
        Ending::Cut(end) | Ending::Interrupted(end) => end,
    };
    let refused = shared.refused.load(Ordering::Relaxed);
    if refused > 0 {
        remarks.push(format!(
            "{refused} changes of class or nice value were refused by the kernel for want of \
             rights and left out, as asked"
        ));
    }
    let exec_error = shared.exec_error.load(Ordering::Relaxed);
    if exec_error != 0 {
        remarks.push(format!(
            "exec was refused by the kernel before it balanced anything ({}), and left out",
            Errno::from_raw_os_error(exec_error)
        ));
    }
    let mut tasks = results.tasks;
    for task in tasks.iter_mut().filter(|task| task.parent.is_none()) {
        task.born = start;
    }
    let mut notes = results.notes;
    notes.retain(|note| note.time <= end);
    notes.sort_by_key(|note| note.time);
    Ok(Played {
        start,
        end: end.max(start),
        n_cpus: shared.cpus.len(),
        cpus: shared.cpus.iter().map(|cpu| cpu.0).collect(),
        tasks,
        notes,
        recording: None,
        lost: 0,
        ops: results.ops,
        complete: !matches!(ending, Ending::Interrupted(_)),
        remarks,
    })
}

/// When the kernel let the last task go, which is a little after the end of its program.
pub(crate) fn last_exit(recording: &Recording, tasks: &[PlayedTask]) -> Time {
    let ours: BTreeSet<Pid> = tasks.iter().map(|task| task.pid).collect();
    let exits = recording.records.iter().filter(|record| match record.event {
        RecordEvent::Exit { pid, .. } => ours.contains(&pid),
        _ => false,
    });
    exits.map(|record| record.time).max().unwrap_or(Time::ZERO)
}
