// SPDX-License-Identifier: GPL-2.0-only
//! The resolved form of a workload as text.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use schedlab_units::Nanos;

use super::words::quote;
use crate::ir::{
    Dist, NamedSpec, ObjectId, Objects, Op, PeriodSpec, PeriodStep, ProcessSpec, Program,
    SchedSpec, SignalTarget, TaskSpec, Workload,
};

/// A workload as a file without parameters, loops over ranges or conditions.
///
/// Reading it back yields an equal workload, provided that [`crate::validate()`] accepts it.
pub fn to_toml(workload: &Workload) -> String {
    let mut writer = Writer { out: String::new(), workload };
    writer.header();
    writer.objects(&workload.objects);
    for mark in &workload.marks {
        writer.table("mark", &mark.name);
        writer.line("unit", &name_string(&mark.unit));
    }
    writer.periods(&workload.objects.periods);
    for (index, program) in workload.programs.iter().enumerate() {
        writer.program(index, program);
    }
    for task in &workload.tasks {
        writer.task(task);
    }
    writer.out
}

/// A TOML string.
fn string(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// A TOML string of a text in which braces mean substitution.
fn name_string(text: &str) -> String {
    string(&text.replace('{', "{{").replace('}', "}}"))
}

fn span(nanos: Nanos) -> String {
    format!("\"{nanos}\"")
}

struct Writer<'w> {
    out: String,
    workload: &'w Workload,
}

impl Writer<'_> {
    fn line(&mut self, key: &str, value: &str) {
        let _ = writeln!(self.out, "{key} = {value}");
    }

    fn table(&mut self, kind: &str, name: &str) {
        let _ = writeln!(self.out, "\n[[{kind}]]");
        self.line("name", &name_string(name));
    }

    /// An array with one element a line.
    fn array(&mut self, key: &str, elements: impl Iterator<Item = String>) {
        let _ = writeln!(self.out, "{key} = [");
        for element in elements {
            let _ = writeln!(self.out, "  {element},");
        }
        self.out.push_str("]\n");
    }

    fn header(&mut self) {
        let workload = self.workload;
        self.out.push_str("[workload]\n");
        self.line("name", &string(&workload.name));
        self.line("about", &string(&workload.about));
        self.line("origin", &string(&workload.origin));
        if let Some(duration) = workload.duration {
            self.line("duration", &span(duration));
        }
        if workload.family_streams {
            self.line("streams", &string("family"));
        }
        if let Some(table) = workload.table {
            self.line("table", &string(table.name()));
        }
        if !workload.notes.is_empty() {
            self.array("notes", workload.notes.iter().map(|note| string(note)));
        }
        if !workload.params.is_empty() {
            let pair =
                |(name, value): &(String, String)| format!("[{}, {}]", string(name), string(value));
            self.array("resolved", workload.params.iter().map(pair));
        }
    }

    fn objects(&mut self, objects: &Objects) {
        for pipe in &objects.pipes {
            self.table("pipe", &pipe.name);
            self.line("capacity", &pipe.capacity.to_string());
            if let Some(charge) = pipe.charge_per_write {
                self.line("charge_per_write", &charge.to_string());
            }
            self.line("writer_wake_below", &pipe.writer_wake_below.to_string());
            self.line("sync", &pipe.sync.to_string());
            self.line("wake_reader_always", &pipe.wake_reader_always.to_string());
        }
        for semaphore in &objects.semaphores {
            self.table("semaphore", &semaphore.name);
            self.line("initial", &semaphore.initial.to_string());
        }
        self.named("mutex", &objects.mutexes);
        self.named("condition", &objects.conditions);
        for barrier in &objects.barriers {
            self.table("barrier", &barrier.name);
            self.line("parties", &barrier.parties.to_string());
        }
        self.named("futex", &objects.futexes);
        self.named("list", &objects.lists);
        for timer in &objects.timers {
            self.table("timer", &timer.name);
            self.line("per_task", &timer.per_task.to_string());
        }
    }

    fn periods(&mut self, periods: &[PeriodSpec]) {
        let workload = self.workload;
        for period in periods {
            let PeriodSpec { name, sample, achieved, missed_burns, met, missed } = period;
            self.table("period", name);
            for (key, mark) in [
                ("sample", sample),
                ("achieved", achieved),
                ("missed_burns", missed_burns),
                ("met", met),
                ("missed", missed),
            ] {
                if let Some(mark) = mark {
                    self.line(key, &name_string(&workload.marks[mark.0 as usize].name));
                }
            }
        }
    }

    fn named(&mut self, kind: &str, objects: &[NamedSpec]) {
        for object in objects {
            self.table(kind, &object.name);
        }
    }

    fn program(&mut self, index: usize, program: &Program) {
        self.table("program", &program_name(index));
        if program.n_counters > 0 {
            self.line("counters", &program.n_counters.to_string());
        }
        let targets: BTreeSet<u32> = program.ops.iter().filter_map(target).collect();
        let mut lines = Vec::with_capacity(program.ops.len() + targets.len());
        for (at, op) in program.ops.iter().enumerate() {
            if targets.contains(&(at as u32)) {
                lines.push(format!("\"{}:\"", label(at as u32)));
            }
            lines.push(string(&operation(self.workload, op)));
        }
        let end = program.ops.len() as u32;
        if targets.contains(&end) {
            lines.push(format!("\"{}:\"", label(end)));
        }
        self.array("do", lines.into_iter());
    }

    fn task(&mut self, task: &TaskSpec) {
        self.table("task", &task.name);
        self.line("group", &name_string(&task.group));
        self.line("count", &task.count.to_string());
        if !task.at_start {
            self.line("forked", "true");
        }
        if !task.start.is_zero() {
            self.line("start", &span(task.start));
        }
        if let Some(sched) = &task.sched {
            self.line("class", &string(sched.class.name()));
            self.line("nice", &sched.nice.to_string());
            if sched.rt_priority > 0 {
                self.line("priority", &sched.rt_priority.to_string());
            }
            if !sched.slice.is_zero() {
                self.line("slice", &span(sched.slice));
            }
        }
        if let Some(cpus) = &task.affinity {
            self.line("cpus", &string(&cpus.to_string()));
        }
        if let Some(cpu) = task.start_cpu {
            self.line("start_cpu", &cpu.to_string());
        }
        match &task.process {
            ProcessSpec::Own => {}
            ProcessSpec::Thread(name) => self.line("thread_of", &name_string(name)),
            ProcessSpec::Kernel => self.line("kernel", "true"),
        }
        self.line("program", &string(&program_name(task.program.0 as usize)));
    }
}

fn program_name(index: usize) -> String {
    format!("p{index}")
}

fn label(target: u32) -> String {
    format!("L{target}")
}

fn target(op: &Op) -> Option<u32> {
    match op {
        Op::Jump { target }
        | Op::DecJump { target, .. }
        | Op::JumpRandom { target, .. }
        | Op::Before { target, .. } => Some(*target),
        Op::SigWait { on_timeout, .. } => *on_timeout,
        Op::SemTry { on_zero, .. } => Some(*on_zero),
        Op::Period { step: PeriodStep::Begin { on_missed: target, .. }, .. }
        | Op::Period { step: PeriodStep::End { on_late: target, .. }, .. } => *target,
        _ => None,
    }
}

fn dist(dist: Dist, show: impl Fn(u64) -> String) -> String {
    match dist {
        Dist::Const(n) => show(n),
        Dist::Uniform(low, high) => format!("uniform({}, {})", show(low), show(high)),
        Dist::Exponential(mean) => format!("exponential({})", show(mean)),
        Dist::LogNormal { median, sigma_percent } => {
            format!("lognormal({}, {sigma_percent}%)", show(median))
        }
    }
}

fn length(value: Dist) -> String {
    dist(value, |ns| Nanos::from_ns(ns).to_string())
}

fn sched_words(sched: &SchedSpec) -> String {
    let mut text = format!("sched {}", sched.class.name());
    if sched.nice.get() != 0 {
        let _ = write!(text, " nice {}", sched.nice);
    }
    if sched.rt_priority > 0 {
        let _ = write!(text, " priority {}", sched.rt_priority);
    }
    if !sched.slice.is_zero() {
        let _ = write!(text, " slice {}", sched.slice);
    }
    text
}

fn period_words(step: PeriodStep) -> String {
    let other = |to: Option<u32>| to.map_or(String::new(), |to| format!(" else {}", label(to)));
    match step {
        PeriodStep::Reset => "reset".to_string(),
        PeriodStep::Shift(span) => format!("shift {span}"),
        PeriodStep::Begin { interval, on_missed } => {
            format!("begin {interval}{}", other(on_missed))
        }
        PeriodStep::End { interval, on_late } => format!("end {interval}{}", other(on_late)),
        PeriodStep::Sleep => "sleep".to_string(),
        PeriodStep::Sample => "sample".to_string(),
    }
}

/// An operation as a file writes it; jump targets are labels `L` and the index.
fn operation(workload: &Workload, op: &Op) -> String {
    let objects = &workload.objects;
    let named = |list: &[NamedSpec], id: ObjectId| quote(&list[id.0 as usize].name);
    let pipe = |id: ObjectId| quote(&objects.pipes[id.0 as usize].name);
    let semaphore = |id: ObjectId| quote(&objects.semaphores[id.0 as usize].name);
    let mutex = |id| named(&objects.mutexes, id);
    let condition = |id| named(&objects.conditions, id);
    let futex = |id| named(&objects.futexes, id);
    let list = |id| named(&objects.lists, id);
    let timer_name = |id: ObjectId| quote(&objects.timers[id.0 as usize].name);
    let task = |id: u32| quote(&workload.tasks[id as usize].name);
    let whom = |target: &SignalTarget| match target {
        SignalTarget::Parent => "parent".to_string(),
        SignalTarget::Template(id) => format!("task {}", task(id.0)),
    };
    let mark = |id: u32| quote(&workload.marks[id as usize].name);
    match op {
        Op::Run(d) => format!("run {}", length(*d)),
        Op::RunForever => "run forever".to_string(),
        Op::Draw(d) => format!("draw {}", length(*d)),
        Op::RunPart(parts) => format!("run drawn/{parts}"),
        Op::Kernel(d) => format!("kernel {}", length(*d)),
        Op::Spin(d) => format!("spin {}", length(*d)),
        Op::SpinLooking { length: d, every } => format!("spin {} every {every}", length(*d)),
        Op::Sleep(d) => format!("sleep {}", length(*d)),
        Op::Timer { timer, period, absolute } => {
            let name = timer_name(*timer);
            let absolute = if *absolute { " absolute" } else { "" };
            format!("timer {name} {}{absolute}", length(*period))
        }
        Op::Advance { timer: id, period } => {
            format!("advance {} {}", timer_name(*id), length(*period))
        }
        Op::Before { timer: id, target } => {
            format!("before {} {}", timer_name(*id), label(*target))
        }
        Op::Interrupt { period, kept } => {
            format!("interrupt {period}{}", if *kept { " kept" } else { "" })
        }
        Op::Disk(d) => format!("disk {}", length(*d)),
        Op::Read { pipe: id, bytes } => format!("read {} {bytes}", pipe(*id)),
        Op::Write { pipe: id, bytes } => format!("write {} {bytes}", pipe(*id)),
        Op::SemWait(id) => format!("sem-wait {}", semaphore(*id)),
        Op::SemPost(id) => format!("sem-post {}", semaphore(*id)),
        Op::SemTry { semaphore: id, on_zero } => {
            format!("sem-try {} else {}", semaphore(*id), label(*on_zero))
        }
        Op::Period { period, step } => {
            let name = quote(&objects.periods[period.0 as usize].name);
            format!("period {name} {}", period_words(*step))
        }
        Op::Lock(id) => format!("lock {}", mutex(*id)),
        Op::Unlock(id) => format!("unlock {}", mutex(*id)),
        Op::CondWait { condition: c, mutex: m } => {
            format!("cond-wait {} {}", condition(*c), mutex(*m))
        }
        Op::CondSignal(id) => format!("cond-signal {}", condition(*id)),
        Op::CondBroadcast(id) => format!("cond-broadcast {}", condition(*id)),
        Op::Barrier(id) => format!("barrier {}", quote(&objects.barriers[id.0 as usize].name)),
        Op::FutexArm(id) => format!("futex-arm {}", futex(*id)),
        Op::FutexWait(id) => format!("futex-wait {}", futex(*id)),
        Op::FutexWake { futex: id, n: u32::MAX } => format!("futex-wake {} all", futex(*id)),
        Op::FutexWake { futex: id, n } => format!("futex-wake {} {n}", futex(*id)),
        Op::ListJoin { list: id, wake, mark: m } => {
            let mark = m.map_or(String::new(), |m| format!(" mark {}", mark(m.0)));
            format!("list-join {} wake {}{mark}", list(*id), futex(*wake))
        }
        Op::ListServe(id) => format!("list-serve {}", list(*id)),
        Op::Signal(target) => format!("signal {}", whom(target)),
        Op::SignalTaking { target, awake, asleep } => {
            format!("signal {} taking {awake} {asleep}", whom(target))
        }
        Op::Kill(id) => format!("kill {}", task(id.0)),
        Op::SigWait { timeout, on_timeout } => {
            let timeout = timeout.map_or(String::new(), |d| format!(" {}", length(d)));
            let other = on_timeout.map_or(String::new(), |to| format!(" else {}", label(to)));
            format!("sig-wait{timeout}{other}")
        }
        Op::Fork { template, thread } => {
            format!("fork {}{}", task(template.0), if *thread { " thread" } else { "" })
        }
        Op::WaitChildren => "wait-children".to_string(),
        Op::WaitChild => "wait-child".to_string(),
        Op::Exec => "exec".to_string(),
        Op::Exit => "exit".to_string(),
        Op::Yield => "yield".to_string(),
        Op::SetSched(sched) => sched_words(sched),
        Op::SetNice(nice) => format!("nice {nice}"),
        Op::SetAffinity(cpus) => format!("affinity {cpus}"),
        Op::Mark { mark: id, n } => format!("mark {} {n}", mark(id.0)),
        Op::MarkStart(id) => format!("mark-start {}", mark(id.0)),
        Op::MarkStop(id) => format!("mark-stop {}", mark(id.0)),
        Op::Deadline { within } => format!("deadline {within}"),
        Op::SetCounter { counter, value } => {
            format!("counter {counter} = {}", dist(*value, |n| n.to_string()))
        }
        Op::DecJump { counter, target } => format!("dec-jump {counter} {}", label(*target)),
        Op::Jump { target } => format!("jump {}", label(*target)),
        Op::JumpRandom { numerator, denominator, target } => {
            format!("jump-random {numerator}/{denominator} {}", label(*target))
        }
    }
}
