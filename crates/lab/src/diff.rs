// SPDX-License-Identifier: GPL-2.0-only
//! Two recorded runs compared: the first decision that differs, then the figures.

use std::collections::BTreeMap;
use std::io::BufRead;

use schedlab_policy_api::{Pid, RecordEvent, Recording, SchedEvent, TraceRecord};
use schedlab_trace::slt::{SltHeader, SltReader, SltRecord};
use schedlab_trace::{Comms, RecordFigures, RecordSink as _, ThreadFigures};
use schedlab_units::{CpuId, Located, TaskId, Time};

use crate::moment::{Moment, look};
use crate::recipe::job_of;

/// A decision of one side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// When.
    pub time: Time,
    /// What was decided, in words.
    pub what: String,
}

/// One side at the first difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Side {
    /// What it decided; none when it had ended.
    pub decision: Option<Decision>,
    /// Who wanted a CPU and what the policy shows of them, or why that is not known.
    pub moment: Result<Moment, String>,
}

/// The first difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// Number of decisions that both made alike before.
    pub common: u64,
    /// Both sides.
    pub sides: [Side; 2],
}

/// A run in a `.slt` file.
pub struct SltRun<R> {
    reader: SltReader<R>,
    names: BTreeMap<TaskId, String>,
    n_events: u64,
}

/// A decision with the place of its event.
struct Found {
    time: Time,
    event: SchedEvent,
    n_events: u64,
    fingerprint: u64,
}

impl<R: BufRead> SltRun<R> {
    /// Opens a file.
    ///
    /// # Errors
    /// As [`SltReader::open`].
    pub fn open(input: R) -> Result<Self, Located> {
        Ok(Self { reader: SltReader::open(input)?, names: BTreeMap::new(), n_events: 0 })
    }
    /// What the file says of its run.
    pub fn header(&self) -> &SltHeader {
        self.reader.header()
    }

    fn next_decision(&mut self) -> Result<Option<Found>, Located> {
        while let Some(record) = self.reader.next_record()? {
            match record {
                SltRecord::Label { task, name, .. } => {
                    self.names.insert(task, name);
                }
                SltRecord::Event(time, event) => {
                    self.n_events += 1;
                    if let SchedEvent::Switch { .. }
                    | SchedEvent::Waking { .. }
                    | SchedEvent::WakeupNew { .. }
                    | SchedEvent::MigrateTask { .. } = event
                    {
                        let (n_events, fingerprint) =
                            (self.n_events, self.reader.fingerprint().value());
                        return Ok(Some(Found { time, event, n_events, fingerprint }));
                    }
                }
            }
        }
        Ok(None)
    }

    fn name(&self, task: Option<TaskId>) -> String {
        let Some(task) = task else { return "the idle task".to_string() };
        self.names
            .get(&task)
            .map_or_else(|| format!("task {task}"), |name| format!("{name} ({task})"))
    }

    fn words(&self, event: &SchedEvent) -> String {
        match *event {
            SchedEvent::Switch { cpu, prev, next, .. } => {
                format!("CPU {cpu} switches from {} to {}", self.name(prev), self.name(next))
            }
            SchedEvent::Waking { task, target, .. } => {
                format!("{} is woken for CPU {target}", self.name(Some(task)))
            }
            SchedEvent::WakeupNew { task, cpu } => {
                format!("the new task {} joins CPU {cpu}", self.name(Some(task)))
            }
            SchedEvent::MigrateTask { task, from, to } => {
                format!("{} moves from CPU {from} to CPU {to}", self.name(Some(task)))
            }
            _ => String::new(),
        }
    }

    fn side(&self, found: Option<&Found>) -> Side {
        let Some(found) = found else {
            return Side { decision: None, moment: Err("the run had ended".to_string()) };
        };
        let decision = Decision { time: found.time, what: self.words(&found.event) };
        let moment = job_of(self.header());
        let moment = moment.and_then(|job| look(&job, found.n_events, found.fingerprint));
        Side { decision: Some(decision), moment }
    }
}

/// The first decision in which two simulated runs of the same workload differ; none when they agree
/// to the end. Who is switched in, where a task wakes up, and who moves where are decisions.
///
/// # Errors
/// A damaged file: 0 or 1 tells which, with the place.
pub fn first_difference<A: BufRead, B: BufRead>(
    a: &mut SltRun<A>,
    b: &mut SltRun<B>,
) -> Result<Option<Divergence>, (usize, Located)> {
    let mut common = 0;
    loop {
        let left = a.next_decision().map_err(|fault| (0, fault))?;
        let right = b.next_decision().map_err(|fault| (1, fault))?;
        let same = match (&left, &right) {
            (None, None) => return Ok(None),
            (Some(left), Some(right)) => (left.time, left.event) == (right.time, right.event),
            _ => false,
        };
        if !same {
            let sides = [a.side(left.as_ref()), b.side(right.as_ref())];
            return Ok(Some(Divergence { common, sides }));
        }
        common += 1;
    }
}

/// The first place where the order of threads on the CPUs differs between two recordings, whatever
/// their times; threads are compared by name, because numbers differ from run to run.
pub fn first_difference_by_name(a: &Recording, b: &Recording) -> Option<Divergence> {
    let mut left = switches(a);
    let mut right = switches(b);
    let mut common = 0;
    loop {
        let (l, r) = (left.next(), right.next());
        match (&l, &r) {
            (None, None) => return None,
            (Some((_, cpu, name)), Some((_, other_cpu, other)))
                if (cpu, name) == (other_cpu, other) => {}
            _ => {
                let side = |recording: &Recording, at: Option<(usize, CpuId, &str)>| Side {
                    decision: at.map(|(at, cpu, name)| Decision {
                        time: recording.records[at].time,
                        what: format!("CPU {cpu} switches to {name}"),
                    }),
                    moment: Err(waiting(recording, at.map(|(at, _, _)| at))),
                };
                return Some(Divergence { common, sides: [side(a, l), side(b, r)] });
            }
        }
        common += 1;
    }
}

/// Place of each switch to a thread, its CPU and its name.
fn switches(recording: &Recording) -> impl Iterator<Item = (usize, CpuId, &str)> {
    recording.records.iter().enumerate().filter_map(|(at, record)| match record.event {
        RecordEvent::Switch { next, next_comm, .. } if next != Pid(0) => {
            Some((at, record.cpu, recording.comms[next_comm.0 as usize].as_str()))
        }
        _ => None,
    })
}

/// Who was woken and had not run before the record at `at`, in words.
fn waiting(recording: &Recording, at: Option<usize>) -> String {
    let Some(at) = at else { return "the recording had ended".to_string() };
    let mut waiting: BTreeMap<Pid, u32> = BTreeMap::new();
    for TraceRecord { event, .. } in &recording.records[..at] {
        match *event {
            RecordEvent::Waking { pid, comm, .. } | RecordEvent::WakeupNew { pid, comm, .. } => {
                waiting.insert(pid, comm.0);
            }
            RecordEvent::Switch { next, .. } => {
                waiting.remove(&next);
            }
            _ => {}
        }
    }
    let names = waiting
        .iter()
        .map(|(pid, comm)| format!("{} ({})", recording.comms[*comm as usize], pid.0));
    let names: Vec<String> = names.collect();
    let who = if names.is_empty() { "nobody".to_string() } else { names.join(", ") };
    format!("the records show no values; woken and waiting: {who}")
}

/// Figures of threads of one name, of both sides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The name.
    pub name: String,
    /// Threads of that name and their figures together, on each side.
    pub sides: [(usize, ThreadFigures); 2],
}

/// The figures of both sides by name of the threads, largest difference of run time first.
pub fn figures(a: &Recording, b: &Recording) -> Vec<Row> {
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    for (side, recording) in [a, b].into_iter().enumerate() {
        for (_, thread) in figures_of(recording) {
            let row = rows
                .entry(thread.name.clone())
                .or_insert_with(|| Row { name: thread.name.clone(), sides: Default::default() });
            let (n, sum) = &mut row.sides[side];
            *n += 1;
            add(sum, &thread);
        }
    }
    let mut rows: Vec<Row> = rows.into_values().collect();
    for row in &mut rows {
        row.sides.iter_mut().for_each(|(_, figures)| figures.latencies.sort_unstable());
    }
    let difference = |row: &Row| row.sides[0].1.run.abs_diff(row.sides[1].1.run);
    rows.sort_by_key(|row| std::cmp::Reverse(difference(row)));
    rows
}

/// The figures of every thread.
pub fn figures_of(recording: &Recording) -> BTreeMap<Pid, ThreadFigures> {
    let comms = Comms::from_names(recording.comms.clone());
    let mut figures = RecordFigures::new();
    for record in &recording.records {
        figures.record(record, &comms);
    }
    figures.finish()
}

fn add(sum: &mut ThreadFigures, one: &ThreadFigures) {
    let ThreadFigures { name, run, stat_runtime, wait, voluntary, involuntary, wakeups, latencies } =
        one;
    sum.name.clone_from(name);
    sum.run += run;
    sum.stat_runtime += stat_runtime;
    sum.wait += wait;
    sum.voluntary += voluntary;
    sum.involuntary += involuntary;
    sum.wakeups += wakeups;
    sum.latencies.extend(latencies);
}
