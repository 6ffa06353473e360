// SPDX-License-Identifier: GPL-2.0-only
//! Two recorded runs compared: the first decision that differs, then the figures.

use std::collections::{BTreeMap, BTreeSet};
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

    /// When the run was to end, if that was asked for.
    fn asked_end(&self) -> Option<Time> {
        self.header().get("duration_ns")?.parse().ok().map(Time::from_ns)
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

/// What a comparison of two simulated runs found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compared {
    /// The first difference; none when they agree.
    pub divergence: Option<Divergence>,
    /// The end of the shorter run, if the longer one goes on behind it.
    pub until: Option<Time>,
}

/// Compares two simulated runs of the same workload. Who is switched in, where a task wakes up, and
/// who moves where are decisions. That one run was asked to end sooner is no difference.
///
/// # Errors
/// A damaged file: 0 or 1 tells which, with the place.
pub fn first_difference<A: BufRead, B: BufRead>(
    a: &mut SltRun<A>,
    b: &mut SltRun<B>,
) -> Result<Compared, (usize, Located)> {
    let mut common = 0;
    loop {
        let left = a.next_decision().map_err(|fault| (0, fault))?;
        let right = b.next_decision().map_err(|fault| (1, fault))?;
        let end = match (&left, &right) {
            (None, None) => return Ok(Compared { divergence: None, until: None }),
            (Some(left), Some(right)) if (left.time, left.event) == (right.time, right.event) => {
                common += 1;
                continue;
            }
            (None, Some(found)) => a.asked_end().filter(|end| found.time >= *end),
            (Some(found), None) => b.asked_end().filter(|end| found.time >= *end),
            (Some(_), Some(_)) => None,
        };
        if end.is_some() {
            return Ok(Compared { divergence: None, until: end });
        }
        let sides = [a.side(left.as_ref()), b.side(right.as_ref())];
        return Ok(Compared { divergence: Some(Divergence { common, sides }), until: None });
    }
}

/// The first place where the order of threads on a CPU differs between two recordings, whatever
/// their times; threads are compared by name, because numbers differ from run to run. Of several
/// CPUs the one that differs first counts.
pub fn first_difference_by_name(a: &Recording, b: &Recording) -> Option<Divergence> {
    let (left, right) = (switches(a), switches(b));
    let cpus: BTreeSet<CpuId> = left.keys().chain(right.keys()).copied().collect();
    let first = |cpu: CpuId| {
        let none = Vec::new();
        let (l, r) = (left.get(&cpu).unwrap_or(&none), right.get(&cpu).unwrap_or(&none));
        let same = l.iter().zip(r).take_while(|((_, l), (_, r))| l == r).count();
        let (l, r) = (l.get(same), r.get(same));
        let since = |recording: &Recording, at: Option<&(usize, &str)>| {
            at.map(|(at, _)| recording.records[*at].time - recording.records[0].time)
        };
        let when = since(a, l).into_iter().chain(since(b, r)).min()?;
        Some((when, cpu, same as u64, l.copied(), r.copied()))
    };
    let (_, cpu, common, l, r) = cpus.into_iter().filter_map(first).min()?;
    let side = |recording: &Recording, at: Option<(usize, &str)>| Side {
        decision: at.map(|(at, name)| Decision {
            time: recording.records[at].time,
            what: format!("CPU {cpu} switches to {name}"),
        }),
        moment: Err(waiting(recording, at.map(|(at, _)| at))),
    };
    Some(Divergence { common, sides: [side(a, l), side(b, r)] })
}

/// Switches to threads by CPU: the place of each and the name.
fn switches(recording: &Recording) -> BTreeMap<CpuId, Vec<(usize, &str)>> {
    let mut switches: BTreeMap<CpuId, Vec<(usize, &str)>> = BTreeMap::new();
    for (at, record) in recording.records.iter().enumerate() {
        if let RecordEvent::Switch { next, next_comm, .. } = record.event
            && next != Pid(0)
        {
            let name = recording.comms[next_comm.0 as usize].as_str();
            switches.entry(record.cpu).or_default().push((at, name));
        }
    }
    switches
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
    for (sum, ns) in
        [(&mut sum.run, run), (&mut sum.stat_runtime, stat_runtime), (&mut sum.wait, wait)]
    {
        *sum = sum.saturating_add(*ns);
    }
    sum.voluntary += voluntary;
    sum.involuntary += involuntary;
    sum.wakeups += wakeups;
    sum.latencies.extend(latencies);
}
