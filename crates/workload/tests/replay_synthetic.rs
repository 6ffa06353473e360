// SPDX-License-Identifier: GPL-2.0-only
//! Programs that are known are run on a small model machine, which writes the records a kernel
//! would; the import must give the programs back.

mod support;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use proptest::prelude::*;
use schedlab_policy_api::{
    CommId, Pid, RecordContext, RecordEvent, RecordedState, Recording, TraceRecord,
};
use schedlab_units::{CpuId, Rng, Time};
use schedlab_workload::ir::{Dist, Op};
use schedlab_workload::replay::{ImportOptions, Imported, import};
use schedlab_workload::validate;
use support::executor::execute;

/// What a task does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    Run(u64),
    Sleep(u64),
    /// Waits for message `.1` of task `.0`.
    Wait(usize, usize),
    /// Sends message `.1` to task `.0`.
    Send(usize, usize),
    Fork(usize),
}

/// The programs of a set of tasks; task 0 exists at the start, others perhaps.
#[derive(Clone, Debug)]
struct Plan {
    acts: Vec<Vec<Act>>,
    forked: Vec<bool>,
}

/// Plans that cannot deadlock: the acts are dealt out in one global order.
fn plans() -> impl Strategy<Value = Plan> {
    let dealt = (any::<u8>(), any::<u8>(), any::<u8>(), 1u64..50_000);
    (2usize..6, proptest::collection::vec(dealt, 1..60)).prop_map(|(n, dealt)| {
        let mut acts = vec![Vec::new(); n];
        let mut forked = vec![false; n];
        for task in 1..n {
            // Every other task is forked by the one before it.
            if task % 2 == 0 {
                forked[task] = true;
                acts[task - 1].extend([Act::Run(10), Act::Fork(task)]);
            }
        }
        for (message, (task, other, kind, ns)) in dealt.into_iter().enumerate() {
            let (task, other) = (task as usize % n, other as usize % n);
            match kind % 4 {
                0 => acts[task].push(Act::Sleep(ns)),
                1 if task != other => {
                    acts[task].extend([Act::Run(ns), Act::Send(other, message)]);
                    acts[other].push(Act::Wait(task, message));
                }
                _ => acts[task].push(Act::Run(ns)),
            }
        }
        for (task, acts) in acts.iter_mut().enumerate() {
            acts.push(Act::Run(1 + task as u64));
        }
        Plan { acts, forked }
    })
}

/// The model machine: a global queue, a slice, and records.
struct Machine<'p> {
    plan: &'p Plan,
    now: u64,
    place: Vec<usize>,
    /// Left of the computation at `place`.
    left: Vec<u64>,
    /// Computed since the last lump was written.
    unaccounted: Vec<u64>,
    queue: VecDeque<usize>,
    current: Vec<Option<usize>>,
    slice_end: Vec<u64>,
    /// End of a sleep, task, CPU where it began.
    timers: BTreeSet<(u64, usize, usize)>,
    waiting: BTreeMap<usize, usize>,
    sent: BTreeSet<usize>,
    /// Messages whose wait slept, so that a record shows them.
    visible: BTreeSet<usize>,
    records: Vec<TraceRecord>,
    stats: bool,
    slice: u64,
}

const FIRST_PID: u32 = 100;

fn pid(task: Option<usize>) -> Pid {
    task.map_or(Pid(0), |task| Pid(FIRST_PID + task as u32))
}

impl<'p> Machine<'p> {
    fn new(plan: &'p Plan, n_cpus: usize, slice: u64, stats: bool) -> Self {
        let n = plan.acts.len();
        Self {
            plan,
            now: 1_000_000,
            place: vec![0; n],
            left: vec![0; n],
            unaccounted: vec![0; n],
            queue: (0..n).filter(|task| !plan.forked[*task]).collect(),
            current: vec![None; n_cpus],
            slice_end: vec![0; n_cpus],
            timers: BTreeSet::new(),
            waiting: BTreeMap::new(),
            sent: BTreeSet::new(),
            visible: BTreeSet::new(),
            records: Vec::new(),
            stats,
            slice,
        }
    }

    fn record(&mut self, cpu: usize, interrupt: bool, event: RecordEvent) {
        self.records.push(TraceRecord {
            time: Time::from_ns(self.now),
            cpu: CpuId(cpu as u32),
            pid: pid(self.current[cpu]),
            comm: CommId(0),
            context: if interrupt { RecordContext::Interrupt } else { RecordContext::Task },
            event,
        });
    }

    fn account(&mut self, cpu: usize, task: usize) {
        let runtime_ns = std::mem::take(&mut self.unaccounted[task]);
        if self.stats && runtime_ns > 0 {
            self.record(cpu, false, RecordEvent::StatRuntime { pid: pid(Some(task)), runtime_ns });
        }
    }

    fn switch(&mut self, cpu: usize, prev_state: RecordedState) {
        let prev = self.current[cpu];
        if let Some(task) = prev {
            self.account(cpu, task);
        }
        let next = self.queue.pop_front();
        self.record(
            cpu,
            false,
            RecordEvent::Switch {
                prev: pid(prev),
                prev_comm: CommId(0),
                prev_prio: 120,
                prev_state,
                next: pid(next),
                next_comm: CommId(0),
                next_prio: 120,
            },
        );
        self.current[cpu] = next;
        self.slice_end[cpu] = self.now + self.slice;
    }

    fn waking(&mut self, cpu: usize, interrupt: bool, task: usize) {
        let event = RecordEvent::Waking {
            pid: pid(Some(task)),
            comm: CommId(0),
            prio: 120,
            target_cpu: CpuId(cpu as u32),
        };
        self.record(cpu, interrupt, event);
        self.queue.push_back(task);
    }

    /// Does what the current task of `cpu` does without computing.
    fn acts_of(&mut self, cpu: usize) {
        while let Some(task) = self.current[cpu].filter(|task| self.left[*task] == 0) {
            let act = self.plan.acts[task].get(self.place[task]).copied();
            self.place[task] += 1;
            match act {
                None => {
                    let exit =
                        RecordEvent::Exit { pid: pid(Some(task)), comm: CommId(0), prio: 120 };
                    self.record(cpu, false, exit);
                    self.switch(cpu, RecordedState::Exited);
                }
                Some(Act::Run(ns)) => self.left[task] = ns,
                Some(Act::Sleep(ns)) => {
                    self.timers.insert((self.now + ns, task, cpu));
                    self.switch(cpu, RecordedState::Sleeping);
                }
                Some(Act::Wait(_, message)) => {
                    if !self.sent.contains(&message) {
                        self.waiting.insert(message, task);
                        self.visible.insert(message);
                        self.switch(cpu, RecordedState::Sleeping);
                    }
                }
                Some(Act::Send(_, message)) => {
                    self.sent.insert(message);
                    if let Some(wakee) = self.waiting.remove(&message) {
                        self.waking(cpu, false, wakee);
                    }
                }
                Some(Act::Fork(child)) => {
                    let fork = RecordEvent::Fork {
                        parent: pid(Some(task)),
                        parent_comm: CommId(0),
                        child: pid(Some(child)),
                        child_comm: CommId(0),
                    };
                    self.record(cpu, false, fork);
                    let new = RecordEvent::WakeupNew {
                        pid: pid(Some(child)),
                        comm: CommId(0),
                        prio: 120,
                        target_cpu: CpuId(cpu as u32),
                    };
                    self.record(cpu, false, new);
                    self.queue.push_back(child);
                }
            }
        }
    }

    fn run(mut self) -> (Recording, BTreeSet<usize>) {
        loop {
            for cpu in 0..self.current.len() {
                if self.current[cpu].is_none() && !self.queue.is_empty() {
                    self.switch(cpu, RecordedState::Runnable);
                }
                self.acts_of(cpu);
            }
            if self.queue.front().is_some() && self.current.contains(&None) {
                continue;
            }
            let ends = (0..self.current.len())
                .filter_map(|cpu| Some(self.left[self.current[cpu]?] + self.now))
                .chain(
                    (0..self.current.len())
                        .filter(|cpu| self.current[*cpu].is_some())
                        .map(|cpu| self.slice_end[cpu].max(self.now + 1)),
                );
            let Some(next) = ends.chain(self.timers.first().map(|t| t.0)).min() else { break };
            let span = next.max(self.now) - self.now;
            self.now += span;
            for task in self.current.iter().flatten() {
                self.left[*task] -= span;
                self.unaccounted[*task] += span;
            }
            while let Some((at, task, cpu)) = self.timers.first().copied() {
                if at > self.now {
                    break;
                }
                self.timers.pop_first();
                self.waking(cpu, true, task);
            }
            for cpu in 0..self.current.len() {
                if let Some(task) = self.current[cpu].filter(|_| self.slice_end[cpu] <= self.now) {
                    self.account(cpu, task);
                    self.slice_end[cpu] = self.now + self.slice;
                    if self.left[task] > 0 && !self.queue.is_empty() {
                        self.queue.push_back(task);
                        self.switch(cpu, RecordedState::Preempted);
                    }
                }
            }
        }
        let recording = Recording {
            comms: vec!["task".to_string()],
            records: self.records,
            n_cpus: self.current.len() as u32,
            tgids: vec![],
        };
        (recording, self.visible)
    }
}

/// What the import of `task` must look like: `run`, `sleep`, `wait N`, `post N`, `fork N`.
fn expected(plan: &Plan, task: usize, visible: &BTreeSet<usize>) -> Vec<String> {
    let mut text = Vec::new();
    let mut run = 0;
    let mut push = |item: Option<String>, run: &mut u64| {
        if let Some(item) = item {
            if *run > 0 {
                text.push(format!("run {run}"));
            }
            *run = 0;
            text.push(item);
        }
    };
    for act in &plan.acts[task] {
        let item = match *act {
            Act::Run(ns) => {
                run += ns;
                None
            }
            Act::Sleep(ns) => Some(format!("sleep {ns}")),
            Act::Wait(from, message) => {
                visible.contains(&message).then(|| format!("wait {from}>{task}"))
            }
            Act::Send(to, message) => {
                visible.contains(&message).then(|| format!("post {task}>{to}"))
            }
            Act::Fork(child) => Some(format!("fork {child}")),
        };
        push(item, &mut run);
    }
    push(Some("exit".to_string()), &mut run);
    text
}

fn imported_program(imported: &Imported, task: usize) -> Vec<String> {
    let workload = &imported.workload;
    let number = |name: &str| {
        let pid: u32 = name.rsplit(':').next().and_then(|p| p.parse().ok()).expect("comm:pid");
        pid - FIRST_PID
    };
    let pair = |id: schedlab_workload::ir::ObjectId| {
        let name = &workload.objects.semaphores[id.0 as usize].name;
        let (from, to) = name.split_once('>').expect("waker>woken");
        format!("{}>{}", number(from), number(to))
    };
    let spec = workload
        .tasks
        .iter()
        .find(|t| number(&t.name) as usize == task)
        .unwrap_or_else(|| panic!("task {task} is missing"));
    workload.programs[spec.program.0 as usize]
        .ops
        .iter()
        .map(|op| match op {
            Op::Run(Dist::Const(ns)) => format!("run {ns}"),
            Op::Sleep(Dist::Const(ns)) => format!("sleep {ns}"),
            Op::SemWait(id) => format!("wait {}", pair(*id)),
            Op::SemPost(id) => format!("post {}", pair(*id)),
            Op::Fork { template, .. } => {
                format!("fork {}", number(&workload.tasks[template.0 as usize].name))
            }
            Op::Exit => "exit".to_string(),
            other => panic!("{other:?}"),
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn import_gives_the_programs_back(
        plan in plans(),
        n_cpus in 1usize..4,
        slice in 1_000u64..100_000,
        stats: bool,
    ) {
        let (recording, visible) = Machine::new(&plan, n_cpus, slice, stats).run();
        let imported = import(&recording, &ImportOptions::default()).expect("importable");
        for task in 0..plan.acts.len() {
            prop_assert_eq!(
                imported_program(&imported, task),
                expected(&plan, task, &visible),
                "task {}", task
            );
        }
        prop_assert!(!imported.summary.filtered);
        prop_assert_eq!(imported.summary.notes.len(), 0, "{:?}", imported.summary.notes);
        prop_assert_eq!(validate(&imported.workload), Ok(()));
    }

    #[test]
    fn import_runs_to_its_end_in_any_order(
        plan in plans(),
        n_cpus in 1usize..4,
        seed: u64,
    ) {
        let (recording, _) = Machine::new(&plan, n_cpus, 20_000, true).run();
        let imported = import(&recording, &ImportOptions::default()).expect("importable");
        let mut rng = Rng::stream(seed, "order", 0);
        let done = execute(&imported.workload, |n| rng.below(n as u64) as usize);
        let done = done.map_err(TestCaseError::fail)?;
        prop_assert_eq!(done.n_ended, plan.acts.len());
        for thread in &imported.summary.threads {
            let ran = done.run_ns.get(&thread.name).copied().unwrap_or(0);
            prop_assert_eq!(ran, thread.cpu_time.as_ns());
        }
    }
}
