// SPDX-License-Identifier: GPL-2.0-only
//! An imported recording replayed and compared with itself: how faithful the import is.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use schedlab_policy_api::{Observer, Pid, Recording, SchedEvent};
use schedlab_trace::{Collect, Recorder, TaskLabel, ThreadFigures};
use schedlab_units::{TaskId, Time};
use schedlab_workload::replay::ImportSummary;

use crate::diff::{Row, figures_of};
use crate::run::{Job, RunError, Silent, run};
use crate::sink::TraceSink;

/// The policy that stands for the kernel of a recording, with the reason; `origin` is what the
/// trace says of its origin.
///
/// Kernels of one line are near enough to each other: from 6.12 on `eevdf@6.12`, from 6.6
/// `eevdf@6.6`, from 2.6.23 `cfs`, from 2.6.0 `o1@2.6.0`, from 2.4 `goodness`.
pub fn policy_of(origin: &str) -> (&'static str, String) {
    let release = origin.strip_prefix("Linux ").map(|rest| rest.split([',', ' ']).next());
    let Some(release) = release.flatten() else {
        return ("eevdf@6.12", "the trace does not tell its kernel".to_string());
    };
    // Of `32+` the number counts.
    let number = |part: &str| {
        let digits = part.bytes().take_while(u8::is_ascii_digit).count();
        part[..digits].parse::<u32>().ok()
    };
    let mut numbers = release.split(['.', '-']).map_while(number);
    let mut next = || numbers.next().unwrap_or(0);
    let spec = match (next(), next(), next()) {
        (6, 6..=11, _) => "eevdf@6.6",
        (7.., _, _) | (6, 12.., _) => "eevdf@6.12",
        (3..=5, _, _) | (6, 0..=5, _) | (2, 6, 23..) => "cfs",
        (2, 6, _) => "o1@2.6.0",
        (2, _, _) => "goodness",
        _ => "eevdf@6.12",
    };
    (spec, format!("the kernel was {release}"))
}

/// Figures of the recording and of its replay, a row for each imported thread, the largest deviation
/// of CPU time and time on run queues first.
///
/// # Errors
/// A workload that proves to be faulty.
pub fn compare(
    recording: &Recording,
    summary: &ImportSummary,
    job: &Job,
    stop: &AtomicBool,
) -> Result<Vec<Row>, RunError> {
    let (replayed, names) = replay(job, stop)?;
    let mut simulated: BTreeMap<String, ThreadFigures> = BTreeMap::new();
    for (pid, figures) in figures_of(&replayed) {
        if let Some(name) = names.get(&pid) {
            simulated.insert(name.clone(), figures);
        }
    }
    let recorded = figures_of(recording);
    let mut rows: Vec<Row> = summary
        .threads
        .iter()
        .map(|thread| {
            let mut before = recorded.get(&Pid(thread.pid)).cloned().unwrap_or_default();
            // The import knows which stretches between two switches a filter makes doubtful.
            (before.run, before.stat_runtime) = (thread.cpu_time.as_ns(), 0);
            let after = simulated.remove(&thread.name);
            let present = usize::from(after.is_some());
            let sides = [(1, before), (present, after.unwrap_or_default())];
            Row { name: thread.name.clone(), sides }
        })
        .collect();
    let deviation = |row: &Row| {
        let [(_, before), (_, after)] = &row.sides;
        before.cpu_time().abs_diff(after.cpu_time()) + before.wait.abs_diff(after.wait)
    };
    rows.sort_by_key(|row| std::cmp::Reverse(deviation(row)));
    Ok(rows)
}

/// Runs `job`: its records, and the full names of the threads in them.
fn replay(job: &Job, stop: &AtomicBool) -> Result<(Recording, BTreeMap<Pid, String>), RunError> {
    let kept = Kept::default();
    let sink = Keep { recorder: Recorder::new(Collect::new()), names: BTreeMap::new(), kept };
    let kept = Arc::clone(&sink.kept);
    run(job, stop, &Silent, Some(Box::new(sink)))?;
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    Ok(std::mem::take(&mut *kept))
}

type Kept = Arc<Mutex<(Recording, BTreeMap<Pid, String>)>>;

/// Keeps a run in memory.
struct Keep {
    recorder: Recorder<Collect>,
    names: BTreeMap<Pid, String>,
    kept: Kept,
}

impl TraceSink for Keep {
    fn event(&mut self, now: Time, event: &SchedEvent) {
        self.recorder.event(now, event);
    }
    fn name_task(&mut self, task: TaskId, label: TaskLabel<'_>) {
        self.names.insert(self.recorder.pid_of(task), label.name.to_string());
        self.recorder.name_task(task, label);
    }
    fn finish(self: Box<Self>) -> io::Result<()> {
        let Self { recorder, names, kept } = *self;
        *kept.lock().unwrap_or_else(PoisonError::into_inner) = (recorder.into_recording(), names);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policy_stands_for_the_line_of_the_kernel() {
        for (origin, policy) in [
            ("Linux 6.18.44-x, 2 CPUs", "eevdf@6.12"),
            ("Linux 6.12.117, perf 6.1", "eevdf@6.12"),
            ("Linux 6.8.0-31-generic, 8 CPUs", "eevdf@6.6"),
            ("Linux 6.1.0", "cfs"),
            ("Linux 5.15.2", "cfs"),
            ("Linux 2.6.32-5", "cfs"),
            ("Linux 2.6.32+", "cfs"),
            ("Linux 6.12+", "eevdf@6.12"),
            ("Linux 2.6.17", "o1@2.6.0"),
            ("Linux 2.4.18", "goodness"),
            ("", "eevdf@6.12"),
            ("a simulated run of rr with seed 1", "eevdf@6.12"),
        ] {
            assert_eq!(policy_of(origin).0, policy, "{origin}");
        }
    }
}
