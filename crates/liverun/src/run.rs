// SPDX-License-Identifier: GPL-2.0-only
//! A live run as a result: the core's stream of events, and the kernel's account of CPU time.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use schedlab_kcore::{Core, CoreConfig};
use schedlab_live::control::{Control, StatusReply};
use schedlab_live::ending::LoadError;
use schedlab_live::host::{Habits, Host, LiveObserver, Oddities, Thread, Totals};
use schedlab_live::kernel::Counters;
use schedlab_live::relay::{Relay, RelayOptions, Store};
use schedlab_live::session::{
    HostMode, Outcome, Session, SessionOptions, clock_ns, prepare_thread, run,
};
use schedlab_live::transcript::{Keeper, Kept, Recorded};
use schedlab_metrics::{Config, Metrics, RowId, RowLabel, RunFigures};
use schedlab_policy_api::{
    Inspect, Observer, Policy as _, SchedClass, SchedEvent, Topology, Tunable, TunableValue,
};
use schedlab_trace::transcript::{End, Header};
use schedlab_units::{CpuSet, Hz, Nanos, Nice, TaskId, Time};

use schedlab_lab::result::{RunResult, Setting};
use schedlab_lab::spec::PolicySpec;

use crate::control::Answers;
use crate::policy::build;
use crate::transcript::conditions;

/// Rows of a live report; tasks of further names share one.
const ROWS: usize = 200;
/// The kernel's own limit of a task's wait before it ends a scheduler.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Tasks to make room for.
const TASKS: usize = 4096;

/// Everything that decides how a live run goes.
#[derive(Clone, Debug)]
pub struct LiveJob {
    /// The policy.
    pub policy: PolicySpec,
    /// The machine as the policy is to see it.
    pub topo: Topology,
    /// CPUs that the policy uses.
    pub cpus: CpuSet,
    /// Tick rate of this kernel.
    pub kernel_hz: Hz,
    /// Seed of the policy's random stream.
    pub seed: u64,
    /// Whether every normal task is the policy's, instead of SCHED_EXT ones only.
    pub whole_system: bool,
    /// Whether idle CPUs take woken tasks without asking, if the policy agrees.
    pub direct: bool,
    /// After how long a silence of the host the kernel's own scheduler takes over.
    pub silence: Duration,
    /// Where the verifier's log goes when it refuses the relay.
    pub log: PathBuf,
    /// How the host works.
    pub session: SessionOptions,
    /// Whether invariants are checked after every input of the core.
    pub check: bool,
}

/// What a live run yields.
pub struct LiveOutput {
    /// The figures.
    pub result: RunResult,
    /// How it ended, and how the command did.
    pub session: Session,
    /// Totals of the host.
    pub totals: Totals,
    /// What became of the transcript.
    pub transcript: Option<Kept>,
}

/// Runs `job` until its command ends or `stop` is set. With `transcript` the run is kept; of the
/// header the caller fills in what is not in the job.
///
/// # Errors
/// [`LoadError`] when the relay cannot be loaded or attached; nothing was started then.
pub fn live(
    job: &LiveJob,
    control: Option<&Control>,
    status: StatusReply,
    transcript: Option<(Keeper, Header)>,
    stop: &AtomicBool,
) -> Result<LiveOutput, LoadError> {
    let (policy, hz) = build(&job.policy, &job.topo, TASKS);
    let habits = policy.live_habits();
    let config =
        CoreConfig { topo: job.topo.clone(), hz, seed: job.seed, n_tasks: TASKS, check: job.check };
    let observer = LiveMetrics::new(job.topo.n_cpus());
    let core = Core::new(policy, observer, config);
    let mut remarks = prepare_thread(job.session.mode);
    let rates = Habits { hz, kernel_hz: job.kernel_hz, ticks: habits.ticks };
    let options = RelayOptions {
        whole_system: job.whole_system,
        polling: matches!(job.session.mode, HostMode::Polling(_)),
        quiet_enqueue: !habits.wakeups_preempt,
        idle_dispatch: habits.woken_takes_idle_cpu && job.direct,
        direct_ticks: habits.ticks,
        report_runs: transcript.is_some(),
        cpus: job.cpus,
        silence: job.silence,
        log: job.log.clone(),
        timeout: TIMEOUT,
    };
    let mut store = Store::default();
    let mut relay = Relay::attach(&mut store, &options)?;
    let epoch = clock_ns();
    let mut host = Host::new(core, rates, job.cpus, epoch);
    let keeper = transcript.map(|(keeper, header)| {
        let machine = (&job.topo, &job.cpus);
        keeper.head(&conditions(header, &job.policy, machine, rates, job.seed, TASKS, epoch));
        keeper
    });
    let mut kernel = Recorded::new(&mut relay, keeper.clone());
    host.start(&mut kernel).map_err(|error| LoadError::Attach(error.to_string()))?;
    let mut answers = Answers::new(control, &job.policy, status, keeper.clone());
    let mut session = run(
        &mut host,
        &mut kernel,
        &job.session,
        stop,
        |input| keeper.iter().for_each(|keeper| keeper.input(input)),
        |host, counters| answers.answer(host, counters),
    );
    let transcript = keeper.as_ref().map(|keeper| keeper.finish(end_of(&session)));
    remarks.append(&mut session.remarks);
    session.remarks = remarks;
    let (core, end, totals) = host.finish(session.end_ns);
    let (policy, observer) = core.into_parts();
    let mut stats = Inspect::new();
    if session.outcome.is_valid() {
        policy.stats(&mut stats);
    }
    let counts = stats.into_iter().map(|(name, n)| (name.to_string(), n));
    let result = RunResult {
        column: 0,
        policy: job.policy.info().name.to_string(),
        variant: job.policy.variant().name.to_string(),
        settings: settings(&job.policy, answers.values()),
        hz,
        seed: job.seed,
        fingerprint: 0,
        events: totals.records.iter().sum(),
        complete: session.outcome == Outcome::Command,
        figures: observer.finish(end),
        policy_stats: counts.chain(live_counts(&session.counters, &totals)).collect(),
    };
    Ok(LiveOutput { result, session, totals, transcript })
}

/// The settings of `spec`, those that were changed while it ran with their last value.
fn settings(spec: &PolicySpec, values: &[(&'static Tunable, TunableValue)]) -> Vec<Setting> {
    let now = |mut setting: Setting| {
        let value = values.iter().find(|(tunable, _)| tunable.name == setting.tunable.name);
        if let Some((_, value)) = value.filter(|(_, value)| *value != setting.value) {
            (setting.value, setting.chosen) = (*value, true);
        }
        setting
    };
    spec.settings().into_iter().map(now).collect()
}

/// The last frame of a transcript.
fn end_of(session: &Session) -> End {
    End {
        clock: session.end_ns,
        is_complete: true,
        is_valid: session.outcome.is_valid(),
        ring_full: session.counters.ring_full,
        why: match &session.outcome {
            Outcome::Command => "the command ended".to_string(),
            Outcome::Stopped => "the user ended it".to_string(),
            Outcome::Kernel(ending) => ending.to_string(),
            Outcome::Panic(text) => format!("the policy panicked: {text}"),
            Outcome::Failed(text) => format!("the relay did not answer: {text}"),
        },
    }
}

/// Totals of relay and host as figures of the result.
fn live_counts(counters: &Counters, totals: &Totals) -> Vec<(String, i64)> {
    let Oddities { strangers, unseen_runs, lost_tasks, after_exit } = totals.odd;
    let host = [
        ("batches", totals.batches),
        ("decisions", totals.decisions),
        ("stops", totals.stops),
        ("policy_ticks", totals.ticks),
        ("cpus_taken", totals.taken),
        ("disagreed", totals.disagreed),
        ("nudges", totals.nudges),
        ("odd", strangers + unseen_runs + lost_tasks + after_exit),
        ("odd_strangers", strangers),
        ("odd_unseen_runs", unseen_runs),
        ("odd_lost_tasks", lost_tasks),
        ("odd_after_exit", after_exit),
    ];
    let all = host.into_iter().chain(counters.named());
    all.map(|(name, n)| (format!("live_{name}"), i64::try_from(n).unwrap_or(i64::MAX))).collect()
}

/// Figures of threads that nobody knew of before: a row for each name.
struct LiveMetrics {
    metrics: Metrics,
    rows: HashMap<String, RowId>,
    /// Row and CPU time by the kernel's account.
    row_of: Vec<Option<RowId>>,
    exact: Vec<Nanos>,
    now: Time,
}

impl LiveMetrics {
    fn new(n_cpus: usize) -> Self {
        let config = Config {
            n_cpus,
            n_tasks: TASKS,
            rows: Vec::new(),
            marks: Vec::new(),
            warmup: Time::ZERO,
        };
        Self {
            metrics: Metrics::new(config),
            rows: HashMap::new(),
            row_of: Vec::new(),
            exact: Vec::new(),
            now: Time::ZERO,
        }
    }

    fn row(&mut self, name: &str, nice: i8) -> RowId {
        let name = if self.rows.len() < ROWS || self.rows.contains_key(name) {
            name
        } else {
            "(further names)"
        };
        let metrics = &mut self.metrics;
        *self.rows.entry(name.to_string()).or_insert_with(|| {
            metrics.add_row(RowLabel {
                name: name.to_string(),
                group: name.to_string(),
                nice: Nice::new(i32::from(nice)).unwrap_or(Nice::ZERO),
                class: SchedClass::Normal,
            })
        })
    }

    fn set_row(&mut self, task: TaskId, row: RowId) {
        if self.row_of.len() <= task.index() {
            self.row_of.resize(task.index() + 1, None);
        }
        self.row_of[task.index()] = Some(row);
    }

    /// The figures at `end`. A task counts as running from the decision on; what the kernel did not
    /// account as CPU time of that was waiting for the decision to take effect.
    fn finish(self, end: Time) -> RunFigures {
        let mut figures = self.metrics.finish(end);
        for task in &mut figures.tasks {
            let exact = self.exact.get(task.id as usize).copied().unwrap_or(Nanos::ZERO);
            let sums = &mut task.figures;
            sums.wait += sums.run.saturating_sub(exact);
            sums.run = exact;
            let group = figures.groups.iter_mut().find(|group| group.name == task.group);
            if let Some(group) = group {
                (group.figures.run, group.figures.wait) = (sums.run, sums.wait);
            }
        }
        figures
    }
}

impl Observer for LiveMetrics {
    fn event(&mut self, now: Time, event: &SchedEvent) {
        self.now = now;
        self.metrics.event(now, event);
    }
}

impl LiveObserver for LiveMetrics {
    fn joined(&mut self, task: TaskId, thread: &Thread) {
        let row = self.row(&thread.comm, thread.nice);
        self.metrics.bind(task, row);
        self.set_row(task, row);
    }

    fn renamed(&mut self, task: TaskId, name: &str) {
        let row = self.row(name, 0);
        self.metrics.rebind(self.now, task, row);
        self.set_row(task, row);
    }

    fn ran(&mut self, task: TaskId, span: Nanos) {
        if let Some(row) = self.row_of.get(task.index()).copied().flatten() {
            let row = row.0 as usize;
            if self.exact.len() <= row {
                self.exact.resize(row + 1, Nanos::ZERO);
            }
            self.exact[row] += span;
        }
    }
}
