// SPDX-License-Identifier: GPL-2.0-only
//! The result as schema `schedlab.run/1`: plain structs whose fields stand in the schema's order.
//!
//! Times are integer ns. What the schema promises is never renamed or removed; keys are added at
//! the end of their object.

use schedlab_lab::result::{Comparison, MachineInfo, RunResult, Setting, WorkloadInfo};
use schedlab_metrics::{
    CpuFigures, DeadlineFigures, Figures, GroupFigures, MarkFigures, RunFigures, Summary,
    TaskFigures, Totals as TotalFigures,
};
use schedlab_policy_api::TunableUnit;
use schedlab_units::{Nanos, Time};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use crate::own_table::{OwnFigures, figures};

/// Name and version of the schema.
pub const SCHEMA: &str = "schedlab.run/1";

/// Name and version of the schema of a whole matrix.
pub const MATRIX_SCHEMA: &str = "schedlab.matrix/1";

/// Version of the program that made the report.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// An object whose keys keep their order.
#[derive(Clone, Debug)]
pub struct OrderedMap<'a, V>(pub Vec<(&'a str, V)>);

impl<V: Serialize> Serialize for OrderedMap<'_, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in &self.0 {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

/// The whole result.
#[derive(Clone, Debug, Serialize)]
pub struct Report<'a> {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// [`VERSION`].
    pub version: &'static str,
    /// What was run.
    pub workload: Workload<'a>,
    /// What it was run on.
    pub machine: Machine<'a>,
    /// All runs.
    pub runs: Vec<Run<'a>>,
    /// What it took; everything else is the same at every repetition.
    pub host: Host,
}

/// The results of a workload with a matrix: one report for each combination of its parameters.
#[derive(Clone, Debug, Serialize)]
pub struct MatrixReport<'a> {
    /// [`MATRIX_SCHEMA`].
    pub schema: &'static str,
    /// [`VERSION`].
    pub version: &'static str,
    /// The combinations in the order of the matrix, each after [`SCHEMA`].
    pub cells: Vec<Report<'a>>,
}

impl<'a> From<&'a [Comparison]> for MatrixReport<'a> {
    fn from(cells: &'a [Comparison]) -> Self {
        Self {
            schema: MATRIX_SCHEMA,
            version: VERSION,
            cells: cells.iter().map(Report::from).collect(),
        }
    }
}

/// What was run.
#[derive(Clone, Debug, Serialize)]
pub struct Workload<'a> {
    /// Name.
    pub name: &'a str,
    /// Hash of the workload in hexadecimal.
    pub digest: &'a str,
    /// Parameters as text.
    pub parameters: OrderedMap<'a, &'a str>,
    /// Facts a reader must know before trusting the figures.
    pub notes: &'a [String],
}

/// What it was run on.
#[derive(Clone, Debug, Serialize)]
pub struct Machine<'a> {
    /// Number of CPUs.
    pub cpus: u32,
    /// NUMA nodes.
    pub nodes: u32,
    /// Last-level caches per node.
    pub llcs_per_node: u32,
    /// Cores per last-level cache.
    pub cores_per_llc: u32,
    /// Hardware threads per core.
    pub threads_per_core: u32,
    /// Name of the cost model.
    pub cost: &'a str,
}

/// What the host needed.
#[derive(Clone, Debug, Serialize)]
pub struct Host {
    /// Wall-clock time in ns.
    pub wall_ns: u64,
    /// Simulated events per second of wall-clock time.
    pub events_per_s: u64,
}

/// One policy with one seed.
#[derive(Clone, Debug, Serialize)]
pub struct Run<'a> {
    /// Policy.
    pub policy: &'a str,
    /// Variant; empty for a policy without variants.
    pub variant: &'a str,
    /// All tunables.
    pub tunables: OrderedMap<'a, TunableJson>,
    /// Tick rate.
    pub hz: u32,
    /// Seed.
    pub seed: u64,
    /// Hash of the event stream, 16 hexadecimal digits.
    pub fingerprint: String,
    /// The measured time.
    pub elapsed_ns: u64,
    /// The time before it.
    pub warmup_ns: u64,
    /// Number of events, warm-up included.
    pub events: u64,
    /// By CPU.
    pub cpus: Vec<Cpu>,
    /// Counts over everything.
    pub totals: Totals,
    /// By task.
    pub tasks: Vec<Task<'a>>,
    /// By group.
    pub groups: Vec<Group<'a>>,
    /// What the workload counted and timed itself.
    pub marks: OrderedMap<'a, Mark<'a>>,
    /// Tasks that had deadlines.
    pub deadlines: Vec<Deadline<'a>>,
    /// Totals of the policy's own.
    pub policy_stats: OrderedMap<'a, i64>,
    /// False when the run was interrupted; the figures reach that far.
    pub complete: bool,
    /// What the modelled program would print itself, under the program's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<OwnFigures>,
}

/// Value of a tunable: durations in ns, flags as booleans, choices by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunableJson {
    /// A duration or a plain number.
    Number(i64),
    /// A flag.
    Flag(bool),
    /// One of several names.
    Choice(&'static str),
}

impl Serialize for TunableJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Number(number) => serializer.serialize_i64(*number),
            Self::Flag(flag) => serializer.serialize_bool(*flag),
            Self::Choice(name) => serializer.serialize_str(name),
        }
    }
}

/// Time of a CPU; busy, idle and overhead add up to the elapsed time.
#[derive(Clone, Debug, Serialize)]
pub struct Cpu {
    /// Its number.
    pub cpu: usize,
    /// Work of tasks.
    pub busy_ns: u64,
    /// Nothing to do.
    pub idle_ns: u64,
    /// Work of the scheduler, the sum of the parts below.
    pub overhead_ns: u64,
    /// Context switches.
    pub switch_ns: u64,
    /// Ticks.
    pub tick_ns: u64,
    /// Other interrupts.
    pub interrupt_ns: u64,
    /// Waking tasks.
    pub wakeup_ns: u64,
    /// Leaving idle states.
    pub idle_exit_ns: u64,
}

/// Counts over everything.
#[derive(Clone, Debug, Serialize)]
pub struct Totals {
    /// Changes of a CPU's current task.
    pub context_switches: u64,
    /// Those in which a task slept or exited.
    pub voluntary: u64,
    /// Those in which a willing task left.
    pub involuntary: u64,
    /// Those in which it had not yielded.
    pub preemptions: u64,
    /// Changes of a task's CPU.
    pub migrations: u64,
    /// Wake-ups out of a sleep.
    pub wakeups: u64,
    /// Tasks forked by tasks.
    pub forks: u64,
    /// Tasks that exited.
    pub exits: u64,
}

/// A task, or all tasks forked from one template.
#[derive(Clone, Debug, Serialize)]
pub struct Task<'a> {
    /// Index of the row.
    pub id: u32,
    /// Name.
    pub name: &'a str,
    /// Group.
    pub group: &'a str,
    /// Nice value.
    pub nice: i32,
    /// Class.
    pub class: &'static str,
    /// What it did at the end.
    pub state: &'static str,
    /// Time as current task.
    pub run_ns: u64,
    /// Time runnable without being current.
    pub wait_ns: u64,
    /// All other time of its life.
    pub sleep_ns: u64,
    /// `run_ns / elapsed_ns`.
    pub share: f64,
    /// Wake-ups out of a sleep.
    pub wakeups: u64,
    /// Switches in which it slept or exited.
    pub voluntary: u64,
    /// Switches in which it was willing.
    pub involuntary: u64,
    /// Changes of its CPU.
    pub migrations: u64,
    /// Longest stay on a queue, an open one included.
    pub longest_wait_ns: u64,
    /// When it exited, since the start of the run.
    pub exit_ns: Option<u64>,
    /// Wake-up to running.
    pub wakeup_latency_ns: Option<Histogram>,
    /// Every finished stay on a queue.
    pub run_delay_ns: Option<Histogram>,
    /// Those of `involuntary` in which it had not yielded.
    pub preemptions: u64,
    /// Its life within the measured time: exactly run + wait + sleep.
    pub life_ns: u64,
    /// Number of tasks in this row.
    pub lives: u64,
}

/// All tasks of a group.
#[derive(Clone, Debug, Serialize)]
pub struct Group<'a> {
    /// Name.
    pub name: &'a str,
    /// Number of tasks.
    pub tasks: u64,
    /// Sum of the tasks' time as current task.
    pub run_ns: u64,
    /// Sum of the time runnable without being current.
    pub wait_ns: u64,
    /// Sum of all other time of their lives.
    pub sleep_ns: u64,
    /// `run_ns / elapsed_ns`; 1 = one whole CPU.
    pub share: f64,
    /// Wake-ups out of a sleep.
    pub wakeups: u64,
    /// Switches in which a task slept or exited.
    pub voluntary: u64,
    /// Switches in which a task was willing.
    pub involuntary: u64,
    /// Changes of a task's CPU.
    pub migrations: u64,
    /// Longest stay on a queue of any of them.
    pub longest_wait_ns: u64,
    /// Wake-up to running.
    pub wakeup_latency_ns: Option<Histogram>,
    /// Every finished stay on a queue.
    pub run_delay_ns: Option<Histogram>,
    /// Those of `involuntary` in which the task had not yielded.
    pub preemptions: u64,
    /// Sum of their lives.
    pub life_ns: u64,
}

/// What the workload counted or timed under one name.
#[derive(Clone, Debug, Serialize)]
pub struct Mark<'a> {
    /// Number of events.
    pub count: u64,
    /// What they counted.
    pub sum: u64,
    /// Unit of `sum`.
    pub unit: &'a str,
    /// Spans.
    pub latency_ns: Option<Histogram>,
}

/// How a task kept its deadlines.
#[derive(Clone, Debug, Serialize)]
pub struct Deadline<'a> {
    /// Name of the task.
    pub task: &'a str,
    /// In time.
    pub met: u64,
    /// Late.
    pub missed: u64,
    /// How late.
    pub late_ns: Option<Histogram>,
}

/// A distribution of spans in ns; `null` instead when there is none.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Histogram {
    /// Number of spans.
    pub count: u64,
    /// Smallest.
    pub min: u64,
    /// Mean, rounded.
    pub mean: u64,
    /// Standard deviation, rounded.
    pub sd: u64,
    /// Nearest-rank percentiles, off by less than 0.8 %.
    pub p50: u64,
    /// 75th.
    pub p75: u64,
    /// 90th.
    pub p90: u64,
    /// 95th.
    pub p95: u64,
    /// 99th.
    pub p99: u64,
    /// 99.5th.
    pub p99_5: u64,
    /// 99.9th.
    pub p99_9: u64,
    /// Largest.
    pub max: u64,
}

impl<'a> From<&'a Comparison> for Report<'a> {
    fn from(comparison: &'a Comparison) -> Self {
        Self {
            schema: SCHEMA,
            version: VERSION,
            workload: (&comparison.workload).into(),
            machine: (&comparison.machine).into(),
            runs: comparison
                .runs
                .iter()
                .map(|run| Run { program: figures(&comparison.workload, run), ..Run::from(run) })
                .collect(),
            host: Host {
                wall_ns: comparison.host.wall_ns,
                events_per_s: comparison.host.events_per_s,
            },
        }
    }
}

impl<'a> From<&'a WorkloadInfo> for Workload<'a> {
    fn from(workload: &'a WorkloadInfo) -> Self {
        let parameters = workload.parameters.iter();
        Self {
            name: &workload.name,
            digest: &workload.digest,
            parameters: OrderedMap(parameters.map(|(k, v)| (k.as_str(), v.as_str())).collect()),
            notes: &workload.notes,
        }
    }
}

impl<'a> From<&'a MachineInfo> for Machine<'a> {
    fn from(machine: &'a MachineInfo) -> Self {
        Self {
            cpus: machine.cpus,
            nodes: machine.nodes,
            llcs_per_node: machine.llcs_per_node,
            cores_per_llc: machine.cores_per_llc,
            threads_per_core: machine.threads_per_core,
            cost: &machine.cost,
        }
    }
}

impl<'a> From<&'a RunResult> for Run<'a> {
    fn from(run: &'a RunResult) -> Self {
        let figures = &run.figures;
        let marks = figures.marks.iter().map(|mark| (mark.name.as_str(), Mark::from(mark)));
        let stats = run.policy_stats.iter().map(|(name, value)| (name.as_str(), *value));
        Self {
            policy: &run.policy,
            variant: &run.variant,
            tunables: OrderedMap(run.settings.iter().map(tunable).collect()),
            hz: run.hz.get(),
            seed: run.seed,
            fingerprint: format!("{:016x}", run.fingerprint),
            elapsed_ns: figures.elapsed.as_ns(),
            warmup_ns: figures.warmup.as_ns(),
            events: run.events,
            cpus: figures.cpus.iter().enumerate().map(cpu).collect(),
            totals: (&figures.totals).into(),
            tasks: figures.tasks.iter().map(|t| task(figures, t)).collect(),
            groups: figures.groups.iter().map(|g| group(figures, g)).collect(),
            marks: OrderedMap(marks.collect()),
            deadlines: figures.deadlines.iter().map(Deadline::from).collect(),
            policy_stats: OrderedMap(stats.collect()),
            complete: run.complete,
            program: None,
        }
    }
}

fn tunable(setting: &Setting) -> (&'static str, TunableJson) {
    let value = match setting.tunable.unit {
        TunableUnit::Flag => TunableJson::Flag(setting.value != 0),
        TunableUnit::Choice(names) => {
            let index = usize::try_from(setting.value).unwrap_or(usize::MAX);
            names.get(index).map_or(TunableJson::Number(setting.value), |n| TunableJson::Choice(n))
        }
        TunableUnit::Ns | TunableUnit::Int => TunableJson::Number(setting.value),
    };
    (setting.tunable.name, value)
}

fn cpu((cpu, figures): (usize, &CpuFigures)) -> Cpu {
    Cpu {
        cpu,
        busy_ns: figures.busy.as_ns(),
        idle_ns: figures.idle.as_ns(),
        overhead_ns: figures.overhead().as_ns(),
        switch_ns: figures.switch.as_ns(),
        tick_ns: figures.tick.as_ns(),
        interrupt_ns: figures.interrupt.as_ns(),
        wakeup_ns: figures.wakeup.as_ns(),
        idle_exit_ns: figures.idle_exit.as_ns(),
    }
}

impl From<&TotalFigures> for Totals {
    fn from(totals: &TotalFigures) -> Self {
        Self {
            context_switches: totals.context_switches,
            voluntary: totals.voluntary,
            involuntary: totals.involuntary,
            preemptions: totals.preemptions,
            migrations: totals.migrations,
            wakeups: totals.wakeups,
            forks: totals.forks,
            exits: totals.exits,
        }
    }
}

/// Time as current task over elapsed time; 0 when no time has passed.
pub(crate) fn share(run: &RunFigures, figures: &Figures) -> f64 {
    if run.elapsed == Nanos::ZERO {
        return 0.0;
    }
    figures.run.as_ns() as f64 / run.elapsed.as_ns() as f64
}

fn task<'a>(run: &RunFigures, task: &'a TaskFigures) -> Task<'a> {
    let figures = &task.figures;
    Task {
        id: task.id,
        name: &task.name,
        group: &task.group,
        nice: task.nice.get(),
        class: task.class.name(),
        state: task.state.name(),
        run_ns: figures.run.as_ns(),
        wait_ns: figures.wait.as_ns(),
        sleep_ns: figures.sleep.as_ns(),
        share: share(run, figures),
        wakeups: figures.wakeups,
        voluntary: figures.voluntary,
        involuntary: figures.involuntary,
        migrations: figures.migrations,
        longest_wait_ns: figures.longest_wait.as_ns(),
        exit_ns: task.exit.map(Time::as_ns),
        wakeup_latency_ns: figures.wakeup_latency.map(Histogram::from),
        run_delay_ns: figures.run_delay.map(Histogram::from),
        preemptions: figures.preemptions,
        life_ns: figures.life.as_ns(),
        lives: figures.lives,
    }
}

fn group<'a>(run: &RunFigures, group: &'a GroupFigures) -> Group<'a> {
    let figures = &group.figures;
    Group {
        name: &group.name,
        tasks: figures.lives,
        run_ns: figures.run.as_ns(),
        wait_ns: figures.wait.as_ns(),
        sleep_ns: figures.sleep.as_ns(),
        share: share(run, figures),
        wakeups: figures.wakeups,
        voluntary: figures.voluntary,
        involuntary: figures.involuntary,
        migrations: figures.migrations,
        longest_wait_ns: figures.longest_wait.as_ns(),
        wakeup_latency_ns: figures.wakeup_latency.map(Histogram::from),
        run_delay_ns: figures.run_delay.map(Histogram::from),
        preemptions: figures.preemptions,
        life_ns: figures.life.as_ns(),
    }
}

impl<'a> From<&'a MarkFigures> for Mark<'a> {
    fn from(mark: &'a MarkFigures) -> Self {
        Self {
            count: mark.count,
            sum: mark.sum,
            unit: &mark.unit,
            latency_ns: mark.latency.map(Histogram::from),
        }
    }
}

impl<'a> From<&'a DeadlineFigures> for Deadline<'a> {
    fn from(deadline: &'a DeadlineFigures) -> Self {
        Self {
            task: &deadline.task,
            met: deadline.met,
            missed: deadline.missed,
            late_ns: deadline.late.map(Histogram::from),
        }
    }
}

impl From<Summary> for Histogram {
    fn from(summary: Summary) -> Self {
        Self {
            count: summary.count,
            min: summary.min,
            mean: summary.mean,
            sd: summary.sd,
            p50: summary.p50,
            p75: summary.p75,
            p90: summary.p90,
            p95: summary.p95,
            p99: summary.p99,
            p99_5: summary.p99_5,
            p99_9: summary.p99_9,
            max: summary.max,
        }
    }
}
