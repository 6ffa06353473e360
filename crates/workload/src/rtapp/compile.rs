// SPDX-License-Identifier: GPL-2.0-only
//! From tasks with phases to a workload with programs.

use std::collections::{BTreeMap, BTreeSet};

use schedlab_units::{CpuSet, Located, MAX_CPUS, Nanos};

use super::cost::Costs;
use super::events::Action;
use super::global::Global;
use super::tasks::{PhaseDef, Rounds, TaskDef};
use super::values::Notes;
use crate::ir::{
    BarrierSpec, Dist, NamedSpec, ObjectId, Op, ProcessSpec, Program, ProgramId, SemaphoreSpec,
    TaskSpec, TemplateId, TimerSpec, Workload,
};
use crate::nearest::did_you_mean;
use crate::origins::Origins;

/// Name of the process all threads belong to.
const PROCESS: &str = "rt-app";
/// Beginning of the names of timers that every thread has for itself.
const UNIQUE: &str = "unique";
/// Forks of one task after which rt-app gives up.
const FORK_LIMIT: u64 = 1_024;

/// Translates all tasks.
pub(super) struct Compiler<'c, 'a> {
    notes: &'c mut Notes<'a>,
    global: &'c Global,
    costs: &'c Costs,
    tasks: &'c [TaskDef],
    /// Conditions that some `resume` names.
    resumed: BTreeSet<&'c str>,
    /// Timers that an `absolute` has marked for good: the task, or none if shared, and the name.
    absolute: BTreeSet<(Option<usize>, &'c str)>,
    names: BTreeMap<(Kind, String), u32>,
    workload: Workload,
    origins: Origins,
    uses_costs: bool,
    /// Places of the `suspend`s that wait on another name than their task's.
    foreign_suspends: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Mutex,
    Condition,
    Semaphore,
    Barrier,
    Timer,
}

/// The workload of these tasks, and where its parts come from.
pub(super) fn compile(
    notes: &mut Notes<'_>,
    global: &Global,
    costs: &Costs,
    tasks: &[TaskDef],
) -> Result<(Workload, Origins), Located> {
    let mut compiler = Compiler {
        notes,
        global,
        costs,
        tasks,
        resumed: BTreeSet::new(),
        absolute: BTreeSet::new(),
        names: BTreeMap::new(),
        workload: Workload::default(),
        origins: Origins::default(),
        uses_costs: false,
        foreign_suspends: Vec::new(),
    };
    compiler.survey()?;
    for (index, task) in tasks.iter().enumerate() {
        compiler.check_mutexes(task)?;
        compiler.task(index, task)?;
    }
    let foreign = std::mem::take(&mut compiler.foreign_suspends);
    compiler.notes.warn_once(&foreign, |others| {
        format!(
            "this `suspend`{others} waits on the name in its value, as in rt-app 1.0; later \
             versions wait on the name of the task"
        )
    });
    compiler.workload.duration = global.duration_s.map(Nanos::from_s);
    if compiler.uses_costs {
        compiler.workload.params = costs.params();
    }
    Ok((compiler.workload, compiler.origins))
}

fn events(task: &TaskDef) -> impl Iterator<Item = &(Action, usize)> {
    task.phases.iter().flat_map(|phase| &phase.events)
}

impl<'c> Compiler<'c, '_> {
    /// Collects what must be known before the first operation is translated.
    fn survey(&mut self) -> Result<(), Located> {
        let tasks = self.tasks;
        let forked: BTreeSet<&str> = tasks
            .iter()
            .flat_map(events)
            .filter_map(|(action, _)| match action {
                Action::Fork(name) => Some(name.as_str()),
                _ => None,
            })
            .collect();
        for (index, task) in tasks.iter().enumerate() {
            let mut barriers = BTreeSet::new();
            for (action, at) in events(task) {
                match action {
                    Action::Resume(name) => {
                        self.resumed.insert(name);
                    }
                    Action::Timer { name, absolute: true, .. } => {
                        self.absolute.insert((timer_owner(index, name), name));
                    }
                    Action::Barrier(name) => {
                        if forked.contains(task.name.as_str()) {
                            let message = "a task that is forked cannot use a barrier: nobody \
                                           knows how many will come";
                            return Err(self.notes.fault(*at, message));
                        }
                        if !barriers.insert(name) {
                            let message = format!(
                                "this task names the barrier `{name}` twice, so rt-app waits for \
                                 it twice; give every place a name of its own"
                            );
                            self.notes.warn(*at, message);
                        }
                        self.join_barrier(name, task.instances);
                    }
                    _ => {}
                }
            }
            if task.instances == 0 && !forked.contains(task.name.as_str()) {
                let message = format!("`{}` has no instance and no task forks it", task.name);
                self.notes.warn(task.at, message);
            }
        }
        self.check_forks()
    }

    fn join_barrier(&mut self, name: &str, parties: u32) {
        let barriers = &mut self.workload.objects.barriers;
        let key = (Kind::Barrier, name.to_string());
        let index = *self.names.entry(key).or_insert_with(|| {
            barriers.push(BarrierSpec { name: name.to_string(), parties: 0 });
            barriers.len() as u32 - 1
        });
        let barrier = &mut barriers[index as usize];
        barrier.parties = barrier.parties.saturating_add(parties);
    }

    /// Forks name tasks; and how many there will be is known unless loops or forks have no bound.
    fn check_forks(&mut self) -> Result<(), Located> {
        let mut totals: BTreeMap<&str, (Option<u64>, usize)> = BTreeMap::new();
        for task in self.tasks {
            let threads = u64::from(task.instances);
            for phase in &task.phases {
                for (action, at) in &phase.events {
                    let Action::Fork(name) = action else { continue };
                    if !self.tasks.iter().any(|task| task.name == *name) {
                        let names = self.tasks.iter().map(|task| task.name.as_str());
                        let near = did_you_mean(name, names);
                        let message = format!("there is no task `{name}` to fork{near}");
                        return Err(self.notes.fault(*at, message));
                    }
                    let n = match (task.rounds, phase.rounds) {
                        // A forked task multiplies by a number of its own.
                        _ if threads == 0 => None,
                        (Rounds::Times(a), Rounds::Times(b)) => {
                            Some(u64::from(a).saturating_mul(u64::from(b)).saturating_mul(threads))
                        }
                        _ => None,
                    };
                    let total = totals.entry(name).or_insert((Some(0), *at));
                    total.0 = total.0.zip(n).map(|(a, b)| a.saturating_add(b));
                }
            }
        }
        for (name, (total, at)) in totals {
            match total {
                Some(n) if n > FORK_LIMIT => {
                    let message =
                        format!("`{name}` is forked {n} times; rt-app gives up after {FORK_LIMIT}");
                    return Err(self.notes.fault(at, message));
                }
                Some(_) => {}
                None => self.workload.notes.push(format!(
                    "rt-app would end with an error after forking `{name}` {FORK_LIMIT} times; the \
                     simulation goes on"
                )),
            }
        }
        Ok(())
    }

    /// Refuses waits and unlocks of mutexes that the task does not hold, on which the behaviour of
    /// threads is undefined. Two rounds of every loop show what holds at its beginning.
    fn check_mutexes(&mut self, task: &TaskDef) -> Result<(), Located> {
        let mut held: BTreeSet<&str> = BTreeSet::new();
        let mut warned = BTreeSet::new();
        let twice = |rounds: Rounds| match rounds {
            Rounds::Times(n) => n.min(2),
            Rounds::Forever => 2,
        };
        for _ in 0..twice(task.rounds) {
            for phase in &task.phases {
                for (action, at) in (0..twice(phase.rounds)).flat_map(|_| &phase.events) {
                    match action {
                        Action::Lock(name) if !held.insert(name) && warned.insert(*at) => {
                            let message = format!(
                                "this task holds the mutex `{name}` already: it waits for itself"
                            );
                            self.notes.warn(*at, message);
                        }
                        Action::Unlock(name) if !held.remove(name.as_str()) => {
                            return Err(self.not_held(name, *at, "unlocks"));
                        }
                        Action::Wait { mutex, .. } | Action::Sync { mutex, .. }
                            if !held.contains(mutex.as_str()) =>
                        {
                            return Err(self.not_held(mutex, *at, "waits with"));
                        }
                        _ => {}
                    }
                }
            }
        }
        Ok(())
    }

    fn not_held(&self, mutex: &str, at: usize, verb: &str) -> Located {
        let message = format!(
            "this {verb} the mutex `{mutex}`, which the task does not hold: undefined in rt-app"
        );
        self.notes.fault(at, message).hint("put a `lock` before it")
    }

    fn task(&mut self, index: usize, task: &TaskDef) -> Result<(), Located> {
        let first_cpus = task.phases.first().and_then(|phase| phase.cpus.or(task.cpus));
        self.workload.tasks.push(TaskSpec {
            name: task.name.clone(),
            group: task.name.clone(),
            count: task.instances,
            at_start: task.instances > 0,
            start: Nanos::from_ns(task.delay),
            sched: Some(task.sched.spec()),
            affinity: first_cpus.map(|(cpus, _)| cpus),
            start_cpu: None,
            process: ProcessSpec::Thread(PROCESS.to_string()),
            program: ProgramId(index as u32),
        });
        self.origins.tasks.push(task.at);
        self.origins.cpus.push(first_cpus.map(|(_, at)| at));
        let (program, places) = self.program(index, task)?;
        self.workload.programs.push(program);
        self.origins.ops.push(places);
        Ok(())
    }

    fn program(&mut self, index: usize, task: &TaskDef) -> Result<(Program, Vec<usize>), Located> {
        let mut code = Code::default();
        if task.rounds == Rounds::Times(0) {
            code.push(Op::Exit, task.at);
            return Ok(code.finish());
        }
        let cpus = |phase: &PhaseDef| {
            let set = phase.cpus.or(task.cpus);
            set.map_or((CpuSet::first_n(MAX_CPUS), phase.at), |(set, at)| (set, at))
        };
        code.begin(task.rounds, task.at);
        // The first phase finds its CPUs set by the task's start, later rounds by the last phase.
        let (first, last) = (task.phases.first().map(cpus), task.phases.last().map(cpus));
        let wraps = task.rounds != Rounds::Times(1) && first.map(|c| c.0) != last.map(|c| c.0);
        let mut again = code.here();
        if let (true, Some((set, at))) = (wraps, first) {
            let skip = code.push(Op::Jump { target: 0 }, at);
            again = code.here();
            code.push(Op::SetAffinity(set), at);
            code.ops[skip] = Op::Jump { target: code.here() };
        }
        let mut before = first.map(|c| c.0);
        for (number, phase) in task.phases.iter().enumerate() {
            let (set, at) = cpus(phase);
            if before != Some(set) {
                code.push(Op::SetAffinity(set), at);
            }
            before = Some(set);
            if let Some(sched) = phase.sched {
                code.push(Op::SetSched(sched.spec()), phase.at);
            }
            code.begin(phase.rounds, phase.at);
            let top = code.here();
            for (action, at) in &phase.events {
                self.action(index, task, action, *at, &mut code)?;
            }
            code.end(phase.rounds, top, phase.at);
            if phase.rounds == Rounds::Forever {
                if number + 1 < task.phases.len() {
                    let message = "this phase never ends, so those after it are never reached";
                    self.notes.warn(phase.at, message);
                }
                return Ok(code.finish());
            }
        }
        code.end(task.rounds, again, task.at);
        Ok(code.finish())
    }

    fn action(
        &mut self,
        index: usize,
        task: &TaskDef,
        action: &Action,
        at: usize,
        code: &mut Code,
    ) -> Result<(), Located> {
        let op = match action {
            Action::Run(us) => Op::Run(Dist::Const(self.work(*us))),
            Action::Runtime(ns) => Op::Spin(Dist::Const(*ns)),
            Action::Sleep(ns) => Op::Sleep(Dist::Const(*ns)),
            Action::Access { .. } | Action::Chase { .. } | Action::Mem(_) | Action::IoRun(_) => {
                self.uses_costs = true;
                self.memory(action, at, code);
                return Ok(());
            }
            Action::Lock(name) => Op::Lock(self.mutex(name)?),
            Action::Unlock(name) => Op::Unlock(self.mutex(name)?),
            Action::Wait { condition, mutex } => {
                Op::CondWait { condition: self.condition(condition), mutex: self.mutex(mutex)? }
            }
            Action::Sync { condition, mutex } => {
                let condition = self.condition(condition);
                code.push(Op::CondSignal(condition), at);
                Op::CondWait { condition, mutex: self.mutex(mutex)? }
            }
            Action::Signal(name) => Op::CondSignal(self.condition(name)),
            Action::Broad(name) => Op::CondBroadcast(self.condition(name)),
            Action::Barrier(name) => {
                self.refuse_inheritance()?;
                let barriers = &mut self.workload.objects.barriers;
                let named = |name: String| BarrierSpec { name, parties: 0 };
                Op::Barrier(intern(&mut self.names, Kind::Barrier, name, barriers, named))
            }
            Action::Timer { name, period, .. } => {
                let absolute = self.absolute.contains(&(timer_owner(index, name), name.as_str()));
                let timers = &mut self.workload.objects.timers;
                let per_task = name.starts_with(UNIQUE);
                let named = |name| TimerSpec { name, per_task };
                let timer = intern(&mut self.names, Kind::Timer, name, timers, named);
                Op::Timer { timer, period: Dist::Const(*period), absolute }
            }
            Action::Suspend(name) => {
                let name = self.suspend_name(task, name.as_deref(), at);
                let (mutex, condition) = (self.mutex(&name)?, self.condition(&name));
                code.push(Op::Lock(mutex), at);
                code.push(Op::CondWait { condition, mutex }, at);
                Op::Unlock(mutex)
            }
            Action::Resume(name) => {
                let (mutex, condition) = (self.mutex(name)?, self.condition(name));
                code.push(Op::Lock(mutex), at);
                code.push(Op::CondBroadcast(condition), at);
                Op::Unlock(mutex)
            }
            Action::Yield => Op::Yield,
            Action::Fork(name) => {
                let template = self.tasks.iter().position(|task| task.name == *name);
                let template = template.map_or(u32::MAX, |index| index as u32);
                Op::Fork { template: TemplateId(template), thread: true }
            }
            Action::SemPost(name) => Op::SemPost(self.semaphore(name)),
            Action::SemWait(name) => Op::SemWait(self.semaphore(name)),
        };
        code.push(op, at);
        Ok(())
    }

    /// ns of computing for `us` µs of `run`: whole loops, in pieces of a second.
    ///
    /// Source: rt-app `rt-app.c` `loadwait`.
    fn work(&self, us: u64) -> u64 {
        let Some(loop_ns) = self.global.ns_per_loop else { return us * 1_000 };
        let whole = |ns: u64| ns / loop_ns * loop_ns;
        us / 1_000_000 * whole(1_000_000_000) + whole(us % 1_000_000 * 1_000)
    }

    /// Memory and I/O events by the declared costs.
    fn memory(&self, action: &Action, at: usize, code: &mut Code) {
        let costs = self.costs;
        let ns = match action {
            Action::Access { write: true, count } => count * costs.memrun_write,
            Action::Access { write: false, count } => count * costs.memrun_read,
            Action::Chase { bytes, hops, random } => costs.chase(*bytes, *hops, *random),
            Action::Mem(bytes) => costs.mem(*bytes),
            Action::IoRun(bytes) => return self.io(*bytes, at, code),
            _ => 0,
        };
        code.push(Op::Run(Dist::Const(ns)), at);
    }

    /// One `write` call for every buffer full of bytes; copying can be preempted, the call not.
    fn io(&self, bytes: u64, at: usize, code: &mut Code) {
        let size = self.global.mem_buffer_size;
        let copy = |bytes| if self.global.null_device { 0 } else { self.costs.copy(bytes) };
        let write = |code: &mut Code, bytes: u64| {
            code.push(Op::Kernel(Dist::Const(self.costs.iorun_call)), at);
            if copy(bytes) > 0 {
                code.push(Op::Run(Dist::Const(copy(bytes))), at);
            }
        };
        let full = bytes / size;
        if full > 0 {
            let rounds = Rounds::Times(full as u32);
            code.begin(rounds, at);
            let top = code.here();
            write(code, size);
            code.end(rounds, top, at);
        }
        if !bytes.is_multiple_of(size) {
            write(code, bytes % size);
        }
    }

    /// The condition that `suspend` waits on.
    ///
    /// rt-app up to 1.0 takes the value, and its own examples need that; later ones take the task's
    /// name. A value that no `resume` names can only be meant the second way.
    fn suspend_name(&mut self, task: &TaskDef, value: Option<&str>, at: usize) -> String {
        match value {
            Some(value) if value == task.name => {}
            Some(value) if !self.notes.strict && self.resumed.contains(value) => {
                self.foreign_suspends.push(at);
                return value.to_string();
            }
            Some(value) => {
                let message =
                    format!("the value `{value}` is ignored: the task waits on its own name");
                self.notes.warn(at, message);
            }
            None => {}
        }
        task.name.clone()
    }

    fn refuse_inheritance(&self) -> Result<(), Located> {
        match self.global.pi_enabled {
            Some(at) => Err(self
                .notes
                .fault(at, "priority inheritance cannot be simulated yet, and mutexes are used")
                .hint("set `pi_enabled` to false")),
            None => Ok(()),
        }
    }

    fn mutex(&mut self, name: &str) -> Result<ObjectId, Located> {
        self.refuse_inheritance()?;
        let mutexes = &mut self.workload.objects.mutexes;
        Ok(intern(&mut self.names, Kind::Mutex, name, mutexes, |name| NamedSpec { name }))
    }

    fn condition(&mut self, name: &str) -> ObjectId {
        let conditions = &mut self.workload.objects.conditions;
        intern(&mut self.names, Kind::Condition, name, conditions, |name| NamedSpec { name })
    }

    fn semaphore(&mut self, name: &str) -> ObjectId {
        let semaphores = &mut self.workload.objects.semaphores;
        let named = |name| SemaphoreSpec { name, initial: 0 };
        intern(&mut self.names, Kind::Semaphore, name, semaphores, named)
    }
}

fn timer_owner(task: usize, name: &str) -> Option<usize> {
    name.starts_with(UNIQUE).then_some(task)
}

fn intern<T>(
    names: &mut BTreeMap<(Kind, String), u32>,
    kind: Kind,
    name: &str,
    objects: &mut Vec<T>,
    named: impl FnOnce(String) -> T,
) -> ObjectId {
    let index = names.entry((kind, name.to_string())).or_insert_with(|| {
        objects.push(named(name.to_string()));
        objects.len() as u32 - 1
    });
    ObjectId(*index)
}

/// Operations with their places.
#[derive(Debug, Default)]
struct Code {
    ops: Vec<Op>,
    places: Vec<usize>,
    counters_in_use: u32,
    n_counters: u32,
}

impl Code {
    fn push(&mut self, op: Op, at: usize) -> usize {
        self.ops.push(op);
        self.places.push(at);
        self.ops.len() - 1
    }

    fn here(&self) -> u32 {
        self.ops.len() as u32
    }

    /// What stands before a loop: its counter, if it needs one.
    fn begin(&mut self, rounds: Rounds, at: usize) {
        if let Rounds::Times(n @ 2..) = rounds {
            let counter = self.counters_in_use;
            self.counters_in_use += 1;
            self.n_counters = self.n_counters.max(self.counters_in_use);
            self.push(Op::SetCounter { counter, value: Dist::Const(u64::from(n)) }, at);
        }
    }

    /// What stands after a loop that began at `top`.
    fn end(&mut self, rounds: Rounds, top: u32, at: usize) {
        match rounds {
            Rounds::Times(2..) => {
                self.counters_in_use -= 1;
                let counter = self.counters_in_use;
                self.push(Op::DecJump { counter, target: top }, at);
            }
            Rounds::Times(_) => {}
            Rounds::Forever => {
                self.push(Op::Jump { target: top }, at);
            }
        }
    }

    fn finish(self) -> (Program, Vec<usize>) {
        (Program { ops: self.ops, n_counters: self.n_counters }, self.places)
    }
}
