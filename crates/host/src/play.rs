// SPDX-License-Identifier: GPL-2.0-only
//! Playing a workload: the threads from their start to their end.

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rustix::thread::futex;
use schedlab_policy_api::{Pid, RecordEvent, Recording, SchedClass};
use schedlab_units::{CpuId, CpuSet, Nanos, Rng, Time};
use schedlab_workload::ir::{Op, Program, SchedSpec, SignalTarget, TaskSpec, TemplateId, Workload};
use schedlab_workload::{Invalid, Vm};
use thiserror::Error;

use crate::objects::Objects;
use crate::ops::{Cut, Player};
use crate::played::{Counts, Note, Played, PlayedThread};
use crate::rights::{Rights, missing};
use crate::stand_ins::{refusal, stand_ins};
use crate::task::{Task, lock};
use crate::watcher::Watcher;
use crate::{burn, calls};

/// Threads that may be alive at once.
pub const THREADS_MAX: usize = 8192;
/// Stack of a thread: room for the largest buffer of an operation, many times.
const STACK: usize = 192 << 10;
/// Time between the readiness of all threads and the start, and more for each.
const LEAD: Nanos = Nanos::from_ms(20);
const LEAD_PER_THREAD: Nanos = Nanos::from_us(20);
/// How often the play looks at the user's wish to end it.
const LOOK: Duration = Duration::from_millis(20);
/// How long threads may take to start or to end.
const PATIENCE: Nanos = Nanos::from_s(30);

/// How to play.
#[derive(Clone, Debug)]
pub struct PlayOptions {
    /// Seed of all random streams; tasks draw what they draw in a simulation with this seed.
    pub seed: u64,
    /// When the play is cut, counted from its start.
    pub length: Nanos,
    /// Which CPUs of this host the workload uses, in the order in which it counts them.
    pub cpus: CpuSet,
    /// Whether a change of class or nice value that is not allowed is left out and counted.
    pub ignore_rights: bool,
    /// Size of each CPU's trace buffer in KiB; none = no tracepoints.
    pub trace_kib: Option<u32>,
}

/// Why a workload was not played.
#[derive(Debug, Error)]
pub enum PlayError {
    /// It has something no kernel can play.
    #[error("{}", .0.message)]
    Refused(Invalid),
    /// This host or this user lacks something; all of it, a sentence each.
    #[error("this host lacks: {}", .0.join("; "))]
    Lacks(Vec<String>),
    /// A task did what makes no sense.
    #[error("{0}")]
    Fault(String),
}

/// What all threads of a play share.
pub(crate) struct Shared {
    pub(crate) workload: Arc<Workload>,
    pub(crate) objects: Objects,
    pub(crate) stop: AtomicBool,
    /// Changes of parameters that the kernel refused.
    pub(crate) refused: AtomicU64,
    panicked: AtomicBool,
    seed: u64,
    cpus: CpuSet,
    start: AtomicU64,
    /// 0 = not yet; the threads of the start sleep in it.
    go: AtomicU32,
    ready: AtomicU32,
    live: AtomicU32,
    spawned: AtomicU64,
    instances: Vec<AtomicU32>,
    /// Live tasks of the templates that some program sends signals to.
    targets: Vec<Option<Mutex<Vec<Arc<Task>>>>>,
    tasks: Mutex<Vec<Arc<Task>>>,
    results: Mutex<Results>,
}

#[derive(Default)]
struct Results {
    threads: Vec<PlayedThread>,
    notes: Vec<Note>,
    ops: u64,
    fault: Option<String>,
}

impl Shared {
    /// The instant that counts as zero.
    pub(crate) fn start(&self) -> Time {
        Time::from_ns(self.start.load(Ordering::Acquire))
    }

    pub(crate) fn program(&self, template: TemplateId) -> &Program {
        &self.workload.programs[self.template(template).program.0 as usize]
    }

    fn template(&self, template: TemplateId) -> &TaskSpec {
        &self.workload.tasks[template.0 as usize]
    }

    /// Name of a task, as in results.
    pub(crate) fn name(&self, template: TemplateId, instance: u32) -> String {
        let spec = self.template(template);
        if spec.count > 1 { format!("{}-{instance}", spec.name) } else { spec.name.clone() }
    }

    /// Whom a signal of `sender` goes to.
    pub(crate) fn targets(&self, target: SignalTarget, sender: &Task) -> Vec<Arc<Task>> {
        match target {
            SignalTarget::Parent => {
                let parent = sender.parent.as_ref().and_then(std::sync::Weak::upgrade);
                parent.into_iter().collect()
            }
            SignalTarget::Template(template) => {
                let targets = self.targets[template.0 as usize].as_ref();
                targets.map_or_else(Vec::new, |targets| lock(targets).clone())
            }
        }
    }

    /// Restricts the calling thread to CPUs as the workload counts them.
    pub(crate) fn pin(&self, cpus: &CpuSet) -> io::Result<()> {
        let mut set = rustix::thread::CpuSet::new();
        for (index, cpu) in self.cpus.iter().enumerate() {
            if cpus.contains(CpuId::from_index(index)) {
                set.set(cpu.index());
            }
        }
        Ok(rustix::thread::sched_setaffinity(None, &set)?)
    }

    fn all_cpus(&self) -> CpuSet {
        CpuSet::first_n(self.cpus.len())
    }

    /// Makes a thread for a task of the start.
    fn start_task(self: &Arc<Self>, template: TemplateId) -> Result<(), String> {
        let origin = self.spawned.fetch_add(1, Ordering::Relaxed) + 1;
        self.spawn(template, None, origin, Vec::new(), SchedSpec::default())
    }

    /// The fork operation.
    pub(crate) fn fork(
        self: &Arc<Self>,
        parent: &mut Player,
        template: TemplateId,
    ) -> Result<(), String> {
        let serial = self.spawned.fetch_add(1, Ordering::Relaxed) + 1;
        let origin = if self.workload.family_streams {
            let (origin, born) = &mut parent.lineage;
            *born += 1;
            Rng::stream(*origin, "child", *born).next_u64()
        } else {
            serial
        };
        lock(&parent.me.family).live += 1;
        let me = Arc::clone(&parent.me);
        self.spawn(template, Some(&me), origin, parent.watches.clone(), parent.sched)
    }

    fn spawn(
        self: &Arc<Self>,
        template: TemplateId,
        parent: Option<&Arc<Task>>,
        origin: u64,
        watches: Vec<(schedlab_workload::ir::MarkId, Time)>,
        sched: SchedSpec,
    ) -> Result<(), String> {
        let instance = self.instances[template.0 as usize].fetch_add(1, Ordering::Relaxed);
        let name = self.name(template, instance);
        if self.live.fetch_add(1, Ordering::AcqRel) as usize >= THREADS_MAX {
            self.live.fetch_sub(1, Ordering::AcqRel);
            return Err(format!("task `{name}`: more than {THREADS_MAX} threads at once"));
        }
        let program = self.program(template);
        let waits = program.ops.iter().any(|op| matches!(op, Op::WaitChild | Op::WaitChildren));
        let task = {
            let mut results = lock(&self.results);
            let index = results.threads.len();
            results.threads.push(PlayedThread {
                pid: Pid(0),
                template,
                instance,
                parent: parent.map(|parent| parent.index),
                born: calls::now(),
                exit: None,
                counts: Counts::default(),
            });
            let parent = parent.map(Arc::downgrade);
            Arc::new(Task::new(index, template, instance, parent, waits))
        };
        lock(&self.tasks).push(Arc::clone(&task));
        if let Some(targets) = &self.targets[template.0 as usize] {
            lock(targets).push(Arc::clone(&task));
        }
        let player = Player {
            shared: Arc::clone(self),
            me: task,
            vm: Vm::new(program),
            rng: Rng::stream(self.seed, "task", origin),
            lineage: (origin, 0),
            drawn: 0,
            sched,
            reference: Time::ZERO,
            release: None,
            interrupts_seen: Time::ZERO,
            timers: Vec::new(),
            watches,
            notes: Vec::with_capacity(1024),
            ops: 0,
        };
        let comm: String = name.chars().filter(|c| *c != '\0').take(15).collect();
        let thread = std::thread::Builder::new().name(comm).stack_size(STACK);
        thread.spawn(move || live(player)).map(drop).map_err(|error| {
            self.live.fetch_sub(1, Ordering::AcqRel);
            format!("task `{name}`: this host makes no more threads: {error}")
        })
    }

    /// Makes all threads that are still there look whether they must end.
    fn nudge(&self, all: bool) {
        let mut tasks = lock(&self.tasks);
        tasks.retain(|task| !task.gone.load(Ordering::Acquire));
        let tasks = tasks.iter().filter(|task| all || task.killed.load(Ordering::Acquire));
        tasks.filter_map(|task| task.tid()).for_each(calls::nudge);
    }
}

/// The life of a thread.
fn live(mut player: Player) {
    calls::block_signals();
    let shared = Arc::clone(&player.shared);
    let _alive = Alive(Arc::clone(&shared));
    let me = Arc::clone(&player.me);
    let tid = rustix::thread::gettid().as_raw_pid() as u32;
    me.tid.store(tid, Ordering::Release);
    lock(&shared.results).threads[me.index].pid = Pid(tid);
    let cut = match prepare(&mut player) {
        Ok(()) => player.run(),
        Err(cut) => cut,
    };
    let now = calls::now();
    let counts = counts_of(tid);
    me.gone.store(true, Ordering::Release);
    if let Some(targets) = &shared.targets[me.template.0 as usize] {
        lock(targets).retain(|task| !Arc::ptr_eq(task, &me));
    }
    {
        let mut results = lock(&shared.results);
        let thread = &mut results.threads[me.index];
        thread.counts = counts;
        let killed = me.killed.load(Ordering::Acquire) && !shared.stop.load(Ordering::Acquire);
        if matches!(cut, Cut::Exit) || killed {
            thread.exit = Some(now);
        }
        results.notes.append(&mut player.notes);
        results.ops += player.ops;
        if let Cut::Fault(fault) = cut {
            results.fault.get_or_insert(fault);
            shared.stop.store(true, Ordering::Release);
        }
    }
    if let Some(parent) = me.parent.as_ref().and_then(std::sync::Weak::upgrade) {
        parent.child_gone();
    }
}

/// Counts a thread out, in whatever way it ends.
struct Alive(Arc<Shared>);

impl Drop for Alive {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.panicked.store(true, Ordering::Release);
            self.0.stop.store(true, Ordering::Release);
        }
        self.0.live.fetch_sub(1, Ordering::AcqRel);
    }
}

/// What comes before the program: parameters, CPUs, and for a task of the start the wait for it.
fn prepare(player: &mut Player) -> Result<(), Cut> {
    let shared = Arc::clone(&player.shared);
    let me = Arc::clone(&player.me);
    let spec = shared.template(me.template);
    let forked = me.parent.is_some();
    if let Some(sched) = spec.sched {
        player.set_sched(sched)?;
    }
    let affinity = spec.affinity.map(|cpus| cpus.intersection(&shared.all_cpus()));
    let on = if forked { None } else { spec.start_cpu };
    match (on, affinity) {
        (Some(cpu), _) => player.set_affinity(&CpuSet::single(CpuId(cpu)))?,
        (None, Some(cpus)) => player.set_affinity(&cpus)?,
        (None, None) if !forked => player.set_affinity(&shared.all_cpus())?,
        (None, None) => {}
    }
    if !forked {
        shared.ready.fetch_add(1, Ordering::AcqRel);
        while shared.go.load(Ordering::Acquire) == 0 {
            let _ = futex::wait(&shared.go, futex::Flags::PRIVATE, 0, None);
        }
    }
    player.reference = shared.start().saturating_add(spec.start);
    player.interrupts_seen = player.reference;
    if !forked {
        let reference = player.reference;
        player.sleep_until(reference)?;
    }
    if on.is_some() {
        player.set_affinity(&affinity.unwrap_or_else(|| shared.all_cpus()))?;
    }
    Ok(())
}

/// What the kernel counted for a thread of this process.
fn counts_of(tid: u32) -> Counts {
    let read = |file: &str| std::fs::read_to_string(format!("/proc/self/task/{tid}/{file}"));
    let status = read("status").unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.trim().parse().ok()).unwrap_or(0)
    };
    let schedstat = read("schedstat").unwrap_or_default();
    let wait = schedstat.split_whitespace().nth(1).and_then(|word| word.parse().ok());
    Counts {
        run: calls::cpu_time(),
        wait: wait.map(Nanos::from_ns),
        voluntary: field("voluntary_ctxt_switches:"),
        involuntary: field("nonvoluntary_ctxt_switches:"),
    }
}

/// Plays `workload` as threads of this process; `stop` ends it early with what it has.
///
/// # Errors
/// [`PlayError`]; no thread is left behind in any case.
///
/// # Panics
/// When a thread that plays panicked.
pub fn play(
    workload: &Arc<Workload>,
    options: &PlayOptions,
    stop: &AtomicBool,
) -> Result<Played, PlayError> {
    if let Some(invalid) = refusal(workload) {
        return Err(PlayError::Refused(invalid));
    }
    let lacking = missing(workload, Rights::here());
    if !lacking.is_empty() && !options.ignore_rights {
        return Err(PlayError::Lacks(lacking));
    }
    let n_start: usize =
        workload.tasks.iter().filter(|t| t.at_start).map(|t| t.count as usize).sum();
    if n_start > THREADS_MAX {
        let message = format!("room for {n_start} threads: at most {THREADS_MAX} are played");
        return Err(PlayError::Lacks(vec![message]));
    }
    raise_file_limit();
    let mut remarks = stand_ins(workload);
    let objects = Objects::new(&workload.objects, &mut remarks).map_err(|(name, error)| {
        let hint = "`ulimit -n` bounds open files, /proc/sys/fs/pipe-max-size the size of pipes";
        PlayError::Lacks(vec![format!("a place for pipe `{name}`: {error} ({hint})")])
    })?;
    let failed = |error| PlayError::Lacks(vec![format!("signal handlers: {error}")]);
    calls::handle_nudges().map_err(failed)?;
    burn::calibrate();
    let shared = Arc::new(share(workload, objects, options));
    let watcher = options.trace_kib.and_then(|kib| Watcher::start(kib, &mut remarks));
    let made = start_threads(&shared, n_start, stop);
    let ending = made.is_ok().then(|| watch(&shared, options.length, stop));
    shared.stop.store(true, Ordering::Release);
    end_threads(&shared)?;
    let seen = watcher.and_then(|watcher| watcher.finish(&mut remarks));
    assert!(!shared.panicked.load(Ordering::Acquire), "a thread that plays a task panicked");
    made.map_err(|why| PlayError::Lacks(vec![why]))?;
    let ending = ending.unwrap_or(Ending::Cut(calls::now()));
    let mut played = conclude(&shared, remarks, ending)?;
    if let Some((recording, lost)) = seen {
        if ending == Ending::Over {
            played.end = played.end.max(last_exit(&recording, &played.threads));
        }
        (played.recording, played.lost) = (Some(recording), lost);
    }
    Ok(played)
}

/// When the kernel let the last thread go, which is a little after the end of its program.
fn last_exit(recording: &Recording, threads: &[PlayedThread]) -> Time {
    let ours: BTreeSet<Pid> = threads.iter().map(|thread| thread.pid).collect();
    let exits = recording.records.iter().filter(|record| match record.event {
        RecordEvent::Exit { pid, .. } => ours.contains(&pid),
        _ => false,
    });
    exits.map(|record| record.time).max().unwrap_or(Time::ZERO)
}

fn share(workload: &Arc<Workload>, objects: Objects, options: &PlayOptions) -> Shared {
    let mut targets: Vec<Option<Mutex<Vec<Arc<Task>>>>> = Vec::new();
    targets.resize_with(workload.tasks.len(), || None);
    for op in workload.programs.iter().flat_map(|program| &program.ops) {
        if let Op::Signal(SignalTarget::Template(template))
        | Op::SignalTaking { target: SignalTarget::Template(template), .. }
        | Op::Kill(template) = op
        {
            targets[template.0 as usize] = Some(Mutex::default());
        }
    }
    Shared {
        workload: Arc::clone(workload),
        objects,
        stop: AtomicBool::new(false),
        refused: AtomicU64::new(0),
        panicked: AtomicBool::new(false),
        seed: options.seed,
        cpus: options.cpus,
        start: AtomicU64::new(0),
        go: AtomicU32::new(0),
        ready: AtomicU32::new(0),
        live: AtomicU32::new(0),
        spawned: AtomicU64::new(0),
        instances: workload.tasks.iter().map(|_| AtomicU32::new(0)).collect(),
        targets,
        tasks: Mutex::default(),
        results: Mutex::default(),
    }
}

/// Makes the threads of the start and sets the instant at which they all begin.
fn start_threads(shared: &Arc<Shared>, n: usize, stop: &AtomicBool) -> Result<(), String> {
    let mut made = Ok(());
    'all: for (index, spec) in shared.workload.tasks.iter().enumerate().filter(|(_, t)| t.at_start)
    {
        for _ in 0..spec.count {
            made = shared.start_task(TemplateId(index as u32));
            if made.is_err() || stop.load(Ordering::Relaxed) {
                break 'all;
            }
        }
    }
    let patience = calls::now().saturating_add(PATIENCE);
    let waits = || {
        made.is_ok()
            && (shared.ready.load(Ordering::Acquire) as usize) < n
            && !shared.stop.load(Ordering::Acquire)
            && !stop.load(Ordering::Relaxed)
            && calls::now() < patience
    };
    while waits() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let lead = LEAD.saturating_add(LEAD_PER_THREAD.saturating_mul(n as u64));
    shared.start.store(calls::now().saturating_add(lead).as_ns(), Ordering::Release);
    if made.is_err() {
        shared.stop.store(true, Ordering::Release);
    }
    shared.go.store(1, Ordering::Release);
    let _ = futex::wake(&shared.go, futex::Flags::PRIVATE, u32::MAX >> 1);
    made
}

/// How a play ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    /// Every task has exited, or a fault ended it.
    Over,
    /// It was cut at its length.
    Cut(Time),
    /// The user ended it.
    Interrupted(Time),
}

/// Waits for the end.
fn watch(shared: &Shared, length: Nanos, stop: &AtomicBool) -> Ending {
    // A thread of a real-time class must not keep the play from ending.
    let uses_rt = |spec: &TaskSpec| spec.sched.is_some_and(|sched| sched.class.is_rt());
    let sets_rt = |op: &Op| matches!(op, Op::SetSched(sched) if sched.class.is_rt());
    let mut ops = shared.workload.programs.iter().flat_map(|program| &program.ops);
    let real_time = shared.workload.tasks.iter().any(uses_rt) || ops.any(sets_rt);
    if real_time {
        let _ = calls::set_sched(SchedClass::Fifo, 0, 99, Nanos::ZERO);
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
        std::thread::sleep(left.min(LOOK));
    };
    shared.stop.store(true, Ordering::Release);
    if real_time {
        let _ = calls::set_sched(SchedClass::Normal, 0, 0, Nanos::ZERO);
    }
    ending
}

/// Ends all threads and waits until the kernel has forgotten them.
fn end_threads(shared: &Shared) -> Result<(), PlayError> {
    let patience = calls::now().saturating_add(PATIENCE);
    while shared.live.load(Ordering::Acquire) > 0 {
        shared.nudge(true);
        std::thread::sleep(Duration::from_millis(1));
        if calls::now() > patience {
            let n = shared.live.load(Ordering::Acquire);
            let message = format!("an end: {n} threads did not stop within {PATIENCE}");
            return Err(PlayError::Lacks(vec![message]));
        }
    }
    let results = lock(&shared.results);
    let there = |thread: &PlayedThread| {
        thread.pid != Pid(0)
            && std::path::Path::new(&format!("/proc/self/task/{}", thread.pid.0)).exists()
    };
    while results.threads.iter().rev().take(THREADS_MAX).any(there) && calls::now() < patience {
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

fn conclude(
    shared: &Shared,
    mut remarks: Vec<String>,
    ending: Ending,
) -> Result<Played, PlayError> {
    let results = std::mem::take(&mut *lock(&shared.results));
    if let Some(fault) = results.fault {
        return Err(PlayError::Fault(fault));
    }
    let start = shared.start();
    let last_exit = results.threads.iter().filter_map(|thread| thread.exit).max();
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
    let mut threads = results.threads;
    for thread in threads.iter_mut().filter(|thread| thread.parent.is_none()) {
        thread.born = start;
    }
    let mut notes = results.notes;
    notes.retain(|note| note.time <= end);
    notes.sort_by_key(|note| note.time);
    Ok(Played {
        start,
        end: end.max(start),
        n_cpus: shared.cpus.len(),
        cpus: shared.cpus.iter().map(|cpu| cpu.0).collect(),
        threads,
        notes,
        recording: None,
        lost: 0,
        ops: results.ops,
        complete: !matches!(ending, Ending::Interrupted(_)),
        remarks,
    })
}

/// Pipes need files: as many as this user may have.
fn raise_file_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(
        Resource::Nofile,
        rustix::process::Rlimit { current: limit.maximum, maximum: limit.maximum },
    );
}
