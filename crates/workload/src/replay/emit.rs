// SPDX-License-Identifier: GPL-2.0-only
//! From threads and causes to tasks and programs.

use std::collections::{BTreeMap, BTreeSet};

use schedlab_policy_api::{Pid, Recording, SchedClass};
use schedlab_units::{CpuId, CpuSet, Located, Nanos, Nice};

use super::causes::{Cause, Names, judge};
use super::kernel_threads::{bound_cpu, is_kernel_thread, is_recorder};
use super::model::{Step, Thread, ThreadId, Timeline, Wake, WakeId, What};
use super::notes::{Prios, notes};
use super::summary::{Dropped, ImportSummary, ThreadSummary, WakeCounts};
use super::{ImportOptions, Imported};
use crate::ir::{
    Dist, ObjectId, Objects, Op, ProcessSpec, Program, ProgramId, SchedSpec, SemaphoreSpec,
    TaskSpec, TemplateId, Workload,
};

/// Builds the workload.
pub(super) fn emit(
    line: &Timeline,
    recording: &Recording,
    options: &ImportOptions,
) -> Result<Imported, Located> {
    let names = Names { latest: line.threads.iter().map(|t| name(t, recording)).collect() };
    let causes = judge(line, &names, options);
    let (kept, dropped) = choose(line, &names, recording, options);
    let mut emitter = Emitter::new(line, &names, &causes, &kept, recording);
    if emitter.template_of.is_empty() {
        return Err(nothing_left(options, &dropped));
    }
    let threads: Vec<ThreadId> = emitter.template_of.keys().copied().collect();
    for thread in &threads {
        emitter.task(*thread);
    }
    let Emitter { mut workload, mut summary, pairs, prios, .. } = emitter;
    if options.affinity {
        for (thread, task) in threads.iter().zip(&mut workload.tasks) {
            let cpu = bound_cpu(names.latest[thread.index()]).map(CpuId);
            task.affinity = cpu.filter(|cpu| cpu.index() < line.cpus.len()).map(CpuSet::single);
        }
    }
    summary.span = line.end - line.start;
    summary.n_cpus = line.cpus.len();
    summary.dropped = dropped;
    summary.n_pairs = pairs.len();
    summary.filtered = line.filtered;
    summary.losses = line.oddities.losses;
    summary.unknown_cpu =
        line.cpus.iter().map(|c| (c.n_unknown, Nanos::from_ns(c.unknown_ns))).collect();
    summary.notes = notes(&summary, line, &prios);
    workload.name.clone_from(&options.name);
    workload.origin.clone_from(&options.origin);
    workload.about =
        format!("{} threads over {} of a recorded system", threads.len(), summary.span);
    workload.notes.clone_from(&summary.notes);
    Ok(Imported { workload, summary })
}

/// The name a thread had last.
fn name<'a>(thread: &Thread, recording: &'a Recording) -> &'a str {
    let comm = thread.comms.last().and_then(|id| recording.comms.get(id.0 as usize));
    comm.map_or("", String::as_str)
}

/// Which threads become tasks, and how many do not.
fn choose(
    line: &Timeline,
    names: &Names<'_>,
    recording: &Recording,
    options: &ImportOptions,
) -> (Vec<bool>, Dropped) {
    let mut dropped = Dropped::default();
    let mut asked = vec![options.only.is_none(); line.threads.len()];
    let mut kept = Vec::with_capacity(line.threads.len());
    // A parent stands before its children, so one pass suffices.
    for (index, thread) in line.threads.iter().enumerate() {
        if let Some(only) = &options.only {
            let called = thread.comms.iter().any(|id| recording.comms[id.0 as usize] == *only);
            asked[index] = called || thread.parent.is_some_and(|p| asked[p.index()]);
        }
        let has_posts = thread.steps.iter().any(|s| matches!(s.what, What::Post(_)));
        let known = thread.n_switch_in > 0 && (thread.clock.total() > 0 || has_posts);
        let name = names.latest[index];
        let reason = if !known {
            &mut dropped.nothing_known
        } else if !asked[index] {
            &mut dropped.not_asked
        } else if !options.kernel_threads && is_kernel_thread(name) {
            &mut dropped.kernel
        } else if !options.recorder && is_recorder(name) {
            &mut dropped.recorder
        } else {
            kept.push(true);
            continue;
        };
        *reason += 1;
        kept.push(false);
    }
    (kept, dropped)
}

fn nothing_left(options: &ImportOptions, dropped: &Dropped) -> Located {
    match &options.only {
        Some(only) => Located::whole(format!("no thread of the recording is called `{only}`"))
            .hint("names are cut to 15 bytes; the full import lists all of them"),
        None => Located::whole(format!(
            "the recording shows no thread at work ({} are only mentioned)",
            dropped.nothing_known
        ))
        .hint("record sched_switch and sched_waking without filters"),
    }
}

struct Emitter<'a> {
    line: &'a Timeline,
    names: &'a Names<'a>,
    causes: &'a [Cause],
    tgids: BTreeMap<Pid, Pid>,
    /// Templates of the threads that become tasks.
    template_of: BTreeMap<ThreadId, TemplateId>,
    /// Processes that several tasks of the start share.
    shared: BTreeSet<Pid>,
    /// Semaphores by waker and woken thread.
    pairs: BTreeMap<(ThreadId, ThreadId), ObjectId>,
    prios: Prios,
    workload: Workload,
    summary: ImportSummary,
}

impl<'a> Emitter<'a> {
    fn new(
        line: &'a Timeline,
        names: &'a Names<'a>,
        causes: &'a [Cause],
        kept: &[bool],
        recording: &Recording,
    ) -> Self {
        let ids = (0..line.threads.len() as u32).map(ThreadId).filter(|t| kept[t.index()]);
        let template_of: BTreeMap<_, _> =
            ids.enumerate().map(|(i, thread)| (thread, TemplateId(i as u32))).collect();
        let mut emitter = Self {
            line,
            names,
            causes,
            tgids: recording.tgids.iter().copied().collect(),
            template_of,
            shared: BTreeSet::new(),
            pairs: BTreeMap::new(),
            prios: Prios::default(),
            workload: Workload { objects: Objects::default(), ..Workload::default() },
            summary: ImportSummary::default(),
        };
        let mut seen = BTreeSet::new();
        for thread in emitter.template_of.keys() {
            let tgid = emitter.tgid(*thread).filter(|_| emitter.is_at_start(*thread));
            if let Some(tgid) = tgid.filter(|tgid| !seen.insert(*tgid)) {
                emitter.shared.insert(tgid);
            }
        }
        emitter
    }

    fn thread(&self, thread: ThreadId) -> &'a Thread {
        &self.line.threads[thread.index()]
    }
    fn wake(&self, wake: WakeId) -> (&'a Wake, Cause) {
        (&self.line.wakes[wake.0 as usize], self.causes[wake.0 as usize])
    }
    fn is_kept(&self, thread: ThreadId) -> bool {
        self.template_of.contains_key(&thread)
    }
    fn tgid(&self, thread: ThreadId) -> Option<Pid> {
        self.tgids.get(&self.thread(thread).pid).copied()
    }
    /// Whether no task forks this one.
    fn is_at_start(&self, thread: ThreadId) -> bool {
        !self.thread(thread).parent.is_some_and(|parent| self.is_kept(parent))
    }
    /// Whether a thread forked by `parent` belongs to the process of `parent`.
    fn is_thread_of(&self, child: ThreadId, parent: ThreadId) -> bool {
        let tgid = self.tgid(child);
        tgid.is_some() && tgid == self.tgid(parent)
    }

    /// `comm:pid`, as perf's reports write it; a pid used again gets a number.
    fn task_name(&self, thread: ThreadId) -> String {
        let Thread { pid, life, .. } = self.thread(thread);
        let comm = match self.names.latest[thread.index()] {
            "" => "thread",
            comm => comm,
        };
        match life {
            0 => format!("{comm}:{}", pid.0),
            _ => format!("{comm}:{}.{}", pid.0, life + 1),
        }
    }

    /// Adds the task of `thread` with its program.
    fn task(&mut self, thread: ThreadId) {
        let known = self.thread(thread);
        let mut wakes = WakeCounts::default();
        let ops = self.program(thread, &mut wakes);
        let name = self.task_name(thread);
        let comm = self.names.latest[thread.index()];
        let at_start = self.is_at_start(thread);
        let process = if is_kernel_thread(comm) {
            ProcessSpec::Kernel
        } else {
            match (at_start, self.tgid(thread)) {
                (true, Some(tgid)) if self.shared.contains(&tgid) => process_name(tgid),
                (false, Some(tgid))
                    if known.parent.is_some_and(|parent| self.is_thread_of(thread, parent)) =>
                {
                    process_name(tgid)
                }
                _ => ProcessSpec::Own,
            }
        };
        let start = known.start.saturating_since(self.line.start);
        let sched = self.sched(known.prio.unwrap_or(120));
        let program = ProgramId(self.workload.programs.len() as u32);
        self.workload.programs.push(Program { ops, n_counters: 0 });
        self.workload.tasks.push(TaskSpec {
            group: if comm.is_empty() { "thread".to_string() } else { comm.to_string() },
            at_start,
            start: if at_start { start } else { Nanos::ZERO },
            sched: Some(sched),
            process,
            ..TaskSpec::new(&name, program)
        });
        self.summary.wakes.add(&wakes);
        let sources = known.clock.sources;
        self.summary.threads.push(ThreadSummary {
            name,
            pid: known.pid.0,
            cpu_time: Nanos::from_ns(known.clock.total()),
            by_stat: Nanos::from_ns(sources.by_stat_ns),
            by_span: Nanos::from_ns(sources.by_span_ns),
            assumed: Nanos::from_ns(known.assumed_ns),
            at_least: Nanos::from_ns(sources.at_least_ns),
            wakes,
            n_gaps: known.n_gaps,
            gaps: Nanos::from_ns(known.gap_ns),
        });
    }

    /// The operations of `thread`: computing up to each step, then the step.
    fn program(&mut self, thread: ThreadId, wakes: &mut WakeCounts) -> Vec<Op> {
        let known = self.thread(thread);
        let mut ops = Vec::new();
        let mut done = 0;
        let mut run_to = |at: u64, ops: &mut Vec<Op>| {
            if at > done {
                ops.push(Op::Run(Dist::Const(at - done)));
                done = at;
            }
        };
        for Step { at_ns, what } in &known.steps {
            if let Some(op) = self.op(thread, *what, wakes) {
                run_to(*at_ns, &mut ops);
                ops.push(op);
            }
        }
        run_to(known.clock.total(), &mut ops);
        // The end comes last, even where the record of an accounting came late.
        if known.steps.iter().any(|s| s.what == What::Exit) {
            self.summary.n_exits += 1;
            ops.push(Op::Exit);
        }
        ops
    }

    fn op(&mut self, thread: ThreadId, what: What, wakes: &mut WakeCounts) -> Option<Op> {
        match what {
            What::Sleep(wake) => self.sleep(wake, wakes),
            What::Early(wake) => match self.wake(wake).1 {
                Cause::Thread(waker) if self.is_kept(waker) => {
                    wakes.early += 1;
                    Some(Op::SemWait(self.semaphore(waker, thread)))
                }
                _ => None,
            },
            What::Post(wake) => {
                let (wake, cause) = self.wake(wake);
                let real = cause == Cause::Thread(thread) && self.is_kept(wake.wakee);
                real.then(|| Op::SemPost(self.semaphore(thread, wake.wakee)))
            }
            What::Fork(child) => {
                let template = *self.template_of.get(&child)?;
                self.summary.n_forks += 1;
                Some(Op::Fork { template, thread: self.is_thread_of(child, thread) })
            }
            What::Exec => {
                self.summary.n_execs += 1;
                Some(Op::Exec)
            }
            What::Prio(prio) => Some(Op::SetSched(self.sched(prio))),
            // Added after all others.
            What::Exit => None,
            What::Gap(ns) => Some(Op::Sleep(Dist::Const(ns))),
        }
    }

    fn sleep(&mut self, wake: WakeId, wakes: &mut WakeCounts) -> Option<Op> {
        let (wake, cause) = self.wake(wake);
        let counter = match cause {
            // Nothing is known of what came after; or the wait stands before the sleep already.
            Cause::Open | Cause::Before => return None,
            Cause::Thread(waker) if self.is_kept(waker) => {
                wakes.by_task += 1;
                wakes.uninterruptible_by_task += u64::from(wake.uninterruptible);
                return Some(Op::SemWait(self.semaphore(waker, wake.wakee)));
            }
            Cause::Thread(_) => &mut wakes.by_dropped,
            Cause::Interrupt | Cause::Device if wake.uninterruptible => &mut wakes.by_device,
            Cause::Interrupt | Cause::Device => &mut wakes.by_interrupt,
            Cause::Timer => &mut wakes.by_timer,
            Cause::Housekeeping => &mut wakes.housekeeping,
            Cause::Unseen => &mut wakes.unseen,
        };
        *counter += 1;
        let until = wake.until.unwrap_or(wake.since);
        let length = Dist::Const(until.saturating_since(wake.since).as_ns());
        Some(if wake.uninterruptible { Op::Disk(length) } else { Op::Sleep(length) })
    }

    /// The semaphore that `waker` posts and `wakee` waits for.
    fn semaphore(&mut self, waker: ThreadId, wakee: ThreadId) -> ObjectId {
        if let Some(id) = self.pairs.get(&(waker, wakee)) {
            return *id;
        }
        let semaphores = &mut self.workload.objects.semaphores;
        let id = ObjectId(semaphores.len() as u32);
        self.pairs.insert((waker, wakee), id);
        let name = format!("{}>{}", self.task_name(waker), self.task_name(wakee));
        self.workload.objects.semaphores.push(SemaphoreSpec { name, initial: 0 });
        id
    }

    /// Scheduling parameters of a priority on the kernel's scale.
    fn sched(&mut self, prio: i32) -> SchedSpec {
        match prio {
            100..=139 => SchedSpec { nice: Nice::clamped(prio - 120), ..SchedSpec::default() },
            0..=98 => {
                self.prios.real_time = true;
                real_time((99 - prio) as u8)
            }
            // Deadline tasks go before all real-time ones.
            i32::MIN..=-1 => {
                self.prios.deadline = true;
                real_time(99)
            }
            _ => {
                self.prios.out_of_range = true;
                SchedSpec::default()
            }
        }
    }
}

fn real_time(rt_priority: u8) -> SchedSpec {
    SchedSpec { class: SchedClass::Fifo, rt_priority, ..SchedSpec::default() }
}

fn process_name(tgid: Pid) -> ProcessSpec {
    ProcessSpec::Thread(format!("process:{}", tgid.0))
}
