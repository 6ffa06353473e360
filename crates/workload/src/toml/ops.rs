// SPDX-License-Identifier: GPL-2.0-only
//! Operations as a file writes them, one text each, and the names they refer to.

use std::collections::BTreeMap;

use schedlab_policy_api::SchedClass;
use schedlab_units::{Nanos, Nice};

use super::source::cpu_list;
use super::words::{Word, WordFault, const_span, count, number, number32, span, split};
use crate::expr::Env;
use crate::ir::{
    MarkId, MarkSpec, ObjectId, Op, PeriodStep, SchedSpec, SignalTarget, TemplateId, TimerSpec,
    Workload,
};
use crate::nearest::did_you_mean;

/// What a name can stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Pipe,
    Semaphore,
    Mutex,
    Condition,
    Barrier,
    Futex,
    List,
    Timer,
    Mark,
    Period,
    Task,
    Program,
}

impl Kind {
    /// Its name, which is also the name of its table.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Pipe => "pipe",
            Self::Semaphore => "semaphore",
            Self::Mutex => "mutex",
            Self::Condition => "condition",
            Self::Barrier => "barrier",
            Self::Futex => "futex",
            Self::List => "list",
            Self::Timer => "timer",
            Self::Mark => "mark",
            Self::Period => "period",
            Self::Task => "task",
            Self::Program => "program",
        }
    }
}

/// All declared names with their indices.
#[derive(Debug, Default)]
pub(super) struct Symbols {
    names: BTreeMap<(Kind, String), u32>,
}

impl Symbols {
    /// Gives `name` to the object with this index; false when the name is taken.
    pub(super) fn declare(&mut self, kind: Kind, name: &str, index: usize) -> bool {
        let index = index as u32;
        self.names.insert((kind, name.to_string()), index).is_none()
    }

    /// The index of a name.
    pub(super) fn get(&self, kind: Kind, name: &str) -> Option<u32> {
        self.names.get(&(kind, name.to_string())).copied()
    }

    /// The index of the name in a word.
    pub(super) fn find(&self, kind: Kind, word: &Word) -> Result<u32, WordFault> {
        self.get(kind, &word.text).ok_or_else(|| (word.at, self.unknown(kind, &word.text)))
    }

    /// What to say about a name that is not declared.
    pub(super) fn unknown(&self, kind: Kind, name: &str) -> String {
        let known = self.names.keys().filter(|(k, _)| *k == kind).map(|(_, name)| name.as_str());
        let near = did_you_mean(name, known);
        let kind = kind.name();
        format!("there is no {kind} `{name}`{near}; every {kind} is declared by a [[{kind}]] table")
    }

    /// The mark of this name, which the first use declares.
    pub(super) fn mark(&mut self, name: &str, workload: &mut Workload) -> MarkId {
        let index = self.get(Kind::Mark, name).unwrap_or_else(|| {
            let index = workload.marks.len();
            self.declare(Kind::Mark, name, index);
            workload.marks.push(MarkSpec { name: name.to_string(), unit: DEFAULT_UNIT.into() });
            index as u32
        });
        MarkId(index)
    }

    /// The timer of this name; the unnamed timer is declared by its first use.
    fn timer(&mut self, word: Option<&Word>, work: &mut Workload) -> Result<ObjectId, WordFault> {
        if let Some(word) = word {
            return self.find(Kind::Timer, word).map(ObjectId);
        }
        let index = self.get(Kind::Timer, DEFAULT_TIMER).unwrap_or_else(|| {
            let index = work.objects.timers.len();
            self.declare(Kind::Timer, DEFAULT_TIMER, index);
            work.objects.timers.push(TimerSpec { name: DEFAULT_TIMER.into(), per_task: true });
            index as u32
        });
        Ok(ObjectId(index))
    }
}

/// Unit of a mark that is not declared.
pub(super) const DEFAULT_UNIT: &str = "events";
/// Name of the timer of an operation that names none.
const DEFAULT_TIMER: &str = "timer";

/// A translated operation.
#[derive(Debug)]
pub(super) enum Line {
    /// The place that this name stands for.
    Label(String),
    /// An operation.
    Op(Op),
    /// An operation with a jump to a label; its target is still open.
    Jump(Op, Word),
}

/// Every operation with its form, for advice.
const FORMS: [(&str, &str); 47] = [
    ("advance", "advance [NAME] DURATION"),
    ("affinity", "affinity CPULIST"),
    ("barrier", "barrier BARRIER"),
    ("before", "before TIMER LABEL"),
    ("cond-broadcast", "cond-broadcast CONDITION"),
    ("cond-signal", "cond-signal CONDITION"),
    ("cond-wait", "cond-wait CONDITION MUTEX"),
    ("counter", "counter NUMBER = VALUE"),
    ("deadline", "deadline DURATION"),
    ("dec-jump", "dec-jump COUNTER LABEL"),
    ("disk", "disk DURATION"),
    ("draw", "draw DURATION"),
    ("exec", "exec"),
    ("exit", "exit"),
    ("fork", "fork TASK [thread]"),
    ("futex-arm", "futex-arm FUTEX"),
    ("futex-wait", "futex-wait FUTEX"),
    ("futex-wake", "futex-wake FUTEX [COUNT | all]"),
    ("interrupt", "interrupt PERIOD [kept]"),
    ("jump", "jump LABEL"),
    ("jump-random", "jump-random NUMERATOR/DENOMINATOR LABEL"),
    ("kernel", "kernel DURATION"),
    ("kill", "kill TASK"),
    ("list-join", "list-join LIST wake FUTEX [mark MARK]"),
    ("list-serve", "list-serve LIST"),
    ("lock", "lock MUTEX"),
    ("mark", "mark MARK [COUNT]"),
    ("mark-start", "mark-start MARK"),
    ("mark-stop", "mark-stop MARK"),
    ("nice", "nice VALUE"),
    (
        "period",
        "period PERIOD reset | shift DURATION | begin DURATION [else LABEL] | end DURATION [else LABEL] \
         | sleep | sample",
    ),
    ("read", "read PIPE BYTES"),
    ("run", "run DURATION | run drawn/PARTS | run forever"),
    ("sched", "sched CLASS [nice N] [priority N] [slice DURATION]"),
    ("sem-post", "sem-post SEMAPHORE"),
    ("sem-try", "sem-try SEMAPHORE else LABEL"),
    ("sem-wait", "sem-wait SEMAPHORE"),
    ("sig-wait", "sig-wait [TIMEOUT [else LABEL]]"),
    ("signal", "signal parent | signal task TASK, and [taking DURATION DURATION]"),
    ("sleep", "sleep DURATION"),
    ("spin", "spin DURATION [every DURATION]"),
    ("timer", "timer [NAME] PERIOD [absolute]"),
    ("unlock", "unlock MUTEX"),
    ("wait-child", "wait-child"),
    ("wait-children", "wait-children"),
    ("write", "write PIPE BYTES"),
    ("yield", "yield"),
];

/// How an operation is written, as advice for a faulty one.
pub(super) fn advice(text: &str) -> String {
    let word = text.split_whitespace().next().unwrap_or_default();
    match FORMS.iter().find(|(name, _)| *name == word) {
        Some((_, form)) if form.contains("DURATION") || form.contains("PERIOD") => {
            format!("{form}; a duration is a number with its unit, such as 250us, 4ms or 1s")
        }
        Some((_, form)) => (*form).to_string(),
        None => "docs/workload-format.md lists the operations".to_string(),
    }
}

/// Translates one operation.
pub(super) fn translate(
    text: &str,
    env: &Env,
    symbols: &mut Symbols,
    workload: &mut Workload,
) -> Result<Line, WordFault> {
    let words = split(text, env)?;
    let Some((head, args)) = words.split_first() else {
        return Err((0, "an operation is missing".to_string()));
    };
    if let Some(name) = head.text.strip_suffix(':')
        && args.is_empty()
        && !head.quoted
    {
        return Ok(Line::Label(name.to_string()));
    }
    let mut line = Args { head, args, env, symbols, workload };
    line.translate()
}

/// The words of an operation and what their translation needs.
struct Args<'w> {
    head: &'w Word,
    args: &'w [Word],
    env: &'w Env,
    symbols: &'w mut Symbols,
    workload: &'w mut Workload,
}

impl<'w> Args<'w> {
    fn translate(&mut self) -> Result<Line, WordFault> {
        let op = match self.head.text.as_str() {
            "spin" if self.args.len() > 1 => self.spin_looking()?,
            "run" | "draw" | "kernel" | "spin" | "sleep" | "disk" => self.timed()?,
            "timer" | "advance" => self.timer()?,
            "interrupt" => self.interrupt()?,
            "read" | "write" => self.transfer()?,
            "sem-wait" | "sem-post" | "lock" | "unlock" | "cond-wait" | "cond-signal"
            | "cond-broadcast" | "barrier" | "futex-arm" | "futex-wait" | "futex-wake"
            | "list-join" | "list-serve" => self.synchronise()?,
            "signal" | "sig-wait" | "fork" | "kill" | "wait-children" | "wait-child" | "exec"
            | "exit" | "yield" => return self.process(),
            "sched" | "nice" | "affinity" => self.parameters()?,
            "mark" | "mark-start" | "mark-stop" | "deadline" => self.measure()?,
            "counter" | "jump" | "dec-jump" | "jump-random" | "before" => return self.control(),
            "sem-try" => return self.sem_try(),
            "period" => return self.period(),
            other => {
                let near = did_you_mean(other, FORMS.iter().map(|(word, _)| *word));
                return self.head.fail(format!("there is no operation `{other}`{near}"));
            }
        };
        Ok(Line::Op(op))
    }

    /// Exactly `N` arguments.
    fn exactly<const N: usize>(&self) -> Result<&'w [Word; N], WordFault> {
        self.args.try_into().or_else(|_| self.malformed())
    }

    fn malformed<T>(&self) -> Result<T, WordFault> {
        self.head.fail(format!("the arguments of `{}` are not right", self.head.text))
    }

    fn timed(&mut self) -> Result<Op, WordFault> {
        let head = self.head.text.as_str();
        let [length] = self.exactly()?;
        if head == "run" && length.is("forever") {
            return Ok(Op::RunForever);
        }
        if head == "run"
            && let Some(parts) = length.text.strip_prefix("drawn/")
        {
            return match parts.parse() {
                Ok(parts) => Ok(Op::RunPart(parts)),
                Err(_) => length.fail("a whole number of parts is needed after `drawn/`"),
            };
        }
        let length = span(length, self.env)?;
        Ok(match head {
            "run" => Op::Run(length),
            "draw" => Op::Draw(length),
            "kernel" => Op::Kernel(length),
            "spin" => Op::Spin(length),
            "sleep" => Op::Sleep(length),
            _ => Op::Disk(length),
        })
    }

    fn timer(&mut self) -> Result<Op, WordFault> {
        let advance = self.head.text == "advance";
        let (args, absolute) = match self.args.split_last() {
            Some((last, args)) if last.is("absolute") && !advance => (args, true),
            _ => (self.args, false),
        };
        let (name, period) = match args {
            [period] => (None, period),
            [name, period] => (Some(name), period),
            _ => return self.malformed(),
        };
        let period = span(period, self.env)?;
        let timer = self.symbols.timer(name, self.workload)?;
        let advance = Op::Advance { timer, period };
        Ok(if self.head.text == "advance" {
            advance
        } else {
            Op::Timer { timer, period, absolute }
        })
    }

    fn spin_looking(&self) -> Result<Op, WordFault> {
        let [length, key, every] = self.exactly()?;
        if !key.is("every") {
            return self.malformed();
        }
        let every = Nanos::from_ns(const_span(every, self.env)?);
        Ok(Op::SpinLooking { length: span(length, self.env)?, every })
    }

    fn interrupt(&self) -> Result<Op, WordFault> {
        let (period, kept) = match self.args {
            [period] => (period, false),
            [period, key] if key.is("kept") => (period, true),
            _ => return self.malformed(),
        };
        Ok(Op::Interrupt { period: Nanos::from_ns(const_span(period, self.env)?), kept })
    }

    fn signal(&self) -> Result<Op, WordFault> {
        let (target, rest) = match self.args {
            [to, rest @ ..] if to.is("parent") => (SignalTarget::Parent, rest),
            [key, task, rest @ ..] if key.is("task") => {
                let template = TemplateId(self.symbols.find(Kind::Task, task)?);
                (SignalTarget::Template(template), rest)
            }
            _ => return self.malformed(),
        };
        let cost = |word: &Word| const_span(word, self.env).map(Nanos::from_ns);
        match rest {
            [] => Ok(Op::Signal(target)),
            [key, awake, asleep] if key.is("taking") => {
                Ok(Op::SignalTaking { target, awake: cost(awake)?, asleep: cost(asleep)? })
            }
            _ => self.malformed(),
        }
    }

    fn transfer(&mut self) -> Result<Op, WordFault> {
        let head = self.head.text.as_str();
        let [pipe, bytes] = self.exactly()?;
        let pipe = ObjectId(self.symbols.find(Kind::Pipe, pipe)?);
        let bytes = number(bytes, self.env)?;
        Ok(if head == "read" { Op::Read { pipe, bytes } } else { Op::Write { pipe, bytes } })
    }

    fn synchronise(&mut self) -> Result<Op, WordFault> {
        let head = self.head.text.as_str();
        let object = |kind: Kind| -> Result<ObjectId, WordFault> {
            let [name] = self.exactly()?;
            self.symbols.find(kind, name).map(ObjectId)
        };
        Ok(match head {
            "sem-wait" => Op::SemWait(object(Kind::Semaphore)?),
            "sem-post" => Op::SemPost(object(Kind::Semaphore)?),
            "lock" => Op::Lock(object(Kind::Mutex)?),
            "unlock" => Op::Unlock(object(Kind::Mutex)?),
            "cond-signal" => Op::CondSignal(object(Kind::Condition)?),
            "cond-broadcast" => Op::CondBroadcast(object(Kind::Condition)?),
            "barrier" => Op::Barrier(object(Kind::Barrier)?),
            "futex-arm" => Op::FutexArm(object(Kind::Futex)?),
            "futex-wait" => Op::FutexWait(object(Kind::Futex)?),
            "list-serve" => Op::ListServe(object(Kind::List)?),
            "cond-wait" => {
                let [condition, mutex] = self.exactly()?;
                Op::CondWait {
                    condition: ObjectId(self.symbols.find(Kind::Condition, condition)?),
                    mutex: ObjectId(self.symbols.find(Kind::Mutex, mutex)?),
                }
            }
            "futex-wake" => self.futex_wake()?,
            _ => self.list_join()?,
        })
    }

    fn futex_wake(&self) -> Result<Op, WordFault> {
        let (futex, n) = match self.args {
            [futex] => (futex, 1),
            [futex, all] if all.is("all") => (futex, u32::MAX),
            [futex, n] => (futex, number32(n, self.env)?),
            _ => return self.malformed(),
        };
        Ok(Op::FutexWake { futex: ObjectId(self.symbols.find(Kind::Futex, futex)?), n })
    }

    fn list_join(&mut self) -> Result<Op, WordFault> {
        let (list, wake, mark) = match self.args {
            [list, key, wake] if key.is("wake") => (list, wake, None),
            [list, key, wake, key2, mark] if key.is("wake") && key2.is("mark") => {
                (list, wake, Some(mark))
            }
            _ => return self.malformed(),
        };
        Ok(Op::ListJoin {
            list: ObjectId(self.symbols.find(Kind::List, list)?),
            wake: ObjectId(self.symbols.find(Kind::Futex, wake)?),
            mark: mark.map(|mark| self.symbols.mark(&mark.text, self.workload)),
        })
    }

    fn process(&mut self) -> Result<Line, WordFault> {
        let head = self.head.text.as_str();
        let op = match (head, self.args) {
            ("signal", _) => self.signal()?,
            ("kill", [task]) => Op::Kill(TemplateId(self.symbols.find(Kind::Task, task)?)),
            ("kill", _) => return self.malformed(),
            ("sig-wait", _) => return self.sig_wait(),
            ("fork", [task, rest @ ..]) => {
                let thread = match rest {
                    [] => false,
                    [key] if key.is("thread") => true,
                    _ => return self.malformed(),
                };
                let template = TemplateId(self.symbols.find(Kind::Task, task)?);
                Op::Fork { template, thread }
            }
            ("fork", []) => return self.malformed(),
            (_, [extra, ..]) => return extra.fail(format!("`{head}` has no arguments")),
            ("wait-children", []) => Op::WaitChildren,
            ("wait-child", []) => Op::WaitChild,
            ("exec", []) => Op::Exec,
            ("exit", []) => Op::Exit,
            (_, []) => Op::Yield,
        };
        Ok(Line::Op(op))
    }

    fn sig_wait(&self) -> Result<Line, WordFault> {
        let (timeout, label) = match self.args {
            [] => (None, None),
            [timeout] => (Some(timeout), None),
            [timeout, key, label] if key.is("else") => (Some(timeout), Some(label)),
            [key, label] if key.is("else") => (None, Some(label)),
            _ => return self.malformed(),
        };
        let timeout = timeout.map(|word| span(word, self.env)).transpose()?;
        Ok(match label {
            None => Line::Op(Op::SigWait { timeout, on_timeout: None }),
            Some(label) => Line::Jump(Op::SigWait { timeout, on_timeout: Some(0) }, label.clone()),
        })
    }

    fn sem_try(&self) -> Result<Line, WordFault> {
        let [semaphore, key, label] = self.args else { return self.malformed() };
        if !key.is("else") {
            return self.malformed();
        }
        let semaphore = ObjectId(self.symbols.find(Kind::Semaphore, semaphore)?);
        Ok(Line::Jump(Op::SemTry { semaphore, on_zero: 0 }, label.clone()))
    }

    fn period(&self) -> Result<Line, WordFault> {
        let [period, what, rest @ ..] = self.args else { return self.malformed() };
        let period = ObjectId(self.symbols.find(Kind::Period, period)?);
        let op = |step| Op::Period { period, step };
        let length = |word| const_span(word, self.env).map(Nanos::from_ns);
        let (interval, label) = match (what.text.as_str(), rest) {
            ("reset", []) => return Ok(Line::Op(op(PeriodStep::Reset))),
            ("sleep", []) => return Ok(Line::Op(op(PeriodStep::Sleep))),
            ("sample", []) => return Ok(Line::Op(op(PeriodStep::Sample))),
            ("shift", [by]) => return Ok(Line::Op(op(PeriodStep::Shift(length(by)?)))),
            ("begin" | "end", [interval]) => (length(interval)?, None),
            ("begin" | "end", [interval, key, label]) if key.is("else") => {
                (length(interval)?, Some(label))
            }
            _ => return self.malformed(),
        };
        let target = label.map(|_| 0);
        let step = match what.text.as_str() {
            "begin" => PeriodStep::Begin { interval, on_missed: target },
            _ => PeriodStep::End { interval, on_late: target },
        };
        Ok(match label {
            None => Line::Op(op(step)),
            Some(label) => Line::Jump(op(step), label.clone()),
        })
    }

    fn parameters(&mut self) -> Result<Op, WordFault> {
        match self.head.text.as_str() {
            "sched" => self.sched().map(Op::SetSched),
            "nice" => {
                let [nice] = self.exactly()?;
                parse_nice(nice).map(Op::SetNice)
            }
            _ => {
                let [cpus] = self.exactly()?;
                cpu_list(&cpus.text).map(Op::SetAffinity).map_err(|why| (cpus.at, why))
            }
        }
    }

    fn sched(&self) -> Result<SchedSpec, WordFault> {
        let [class, rest @ ..] = self.args else { return self.malformed() };
        let mut spec = SchedSpec {
            class: class_of(&class.text).map_err(|why| (class.at, why))?,
            ..SchedSpec::default()
        };
        let mut pairs = rest.chunks_exact(2);
        for pair in &mut pairs {
            let (key, value) = (&pair[0], &pair[1]);
            match key.text.as_str() {
                "nice" => spec.nice = parse_nice(value)?,
                "priority" => {
                    let priority = number(value, self.env)?;
                    spec.rt_priority = u8::try_from(priority)
                        .or_else(|_| value.fail("a priority is at most 99"))?;
                }
                "slice" => spec.slice = Nanos::from_ns(const_span(value, self.env)?),
                _ => return self.malformed(),
            }
        }
        let name = spec.class.name();
        match (pairs.remainder(), spec.class.is_rt(), spec.rt_priority) {
            ([_, ..], _, _) => self.malformed(),
            ([], true, 0) => class.fail(format!("class {name} needs `priority N`, 1 to 99")),
            ([], false, 1..) => class.fail(format!("class {name} has no priority")),
            ([], _, _) => Ok(spec),
        }
    }

    fn measure(&mut self) -> Result<Op, WordFault> {
        let head = self.head.text.as_str();
        Ok(match (head, self.args) {
            ("mark", [mark]) => {
                Op::Mark { mark: self.symbols.mark(&mark.text, self.workload), n: 1 }
            }
            ("mark", [mark, n]) => {
                let n = number(n, self.env)?;
                Op::Mark { mark: self.symbols.mark(&mark.text, self.workload), n }
            }
            ("mark-start", [mark]) => Op::MarkStart(self.symbols.mark(&mark.text, self.workload)),
            ("mark-stop", [mark]) => Op::MarkStop(self.symbols.mark(&mark.text, self.workload)),
            ("deadline", [within]) => {
                Op::Deadline { within: Nanos::from_ns(const_span(within, self.env)?) }
            }
            ("deadline", _) => return self.malformed(),
            ("mark", _) => return self.malformed(),
            _ => return self.malformed(),
        })
    }

    fn control(&mut self) -> Result<Line, WordFault> {
        Ok(match (self.head.text.as_str(), self.args) {
            ("counter", [counter, equals, value]) if equals.is("=") => {
                let value = count(value, self.env)?;
                Line::Op(Op::SetCounter { counter: number32(counter, self.env)?, value })
            }
            ("counter", _) => return self.malformed(),
            ("before", [timer, label]) => {
                let timer = self.symbols.timer(Some(timer), self.workload)?;
                Line::Jump(Op::Before { timer, target: 0 }, label.clone())
            }
            ("before", _) => return self.malformed(),
            ("jump", [label]) => Line::Jump(Op::Jump { target: 0 }, label.clone()),
            ("jump", _) => return self.malformed(),
            ("dec-jump", [counter, label]) => {
                let counter = number32(counter, self.env)?;
                Line::Jump(Op::DecJump { counter, target: 0 }, label.clone())
            }
            ("dec-jump", _) => return self.malformed(),
            (_, [chance, label]) => {
                let (numerator, denominator) =
                    probability(&chance.text).map_err(|why| (chance.at, why))?;
                Line::Jump(Op::JumpRandom { numerator, denominator, target: 0 }, label.clone())
            }
            _ => return self.malformed(),
        })
    }
}

/// Reads `1/8` as a probability.
pub(super) fn probability(text: &str) -> Result<(u64, u64), String> {
    let fail = || format!("`{text}` is not a probability; write a fraction, such as `1/8`");
    let (numerator, denominator) = text.split_once('/').ok_or_else(fail)?;
    let numerator: u64 = numerator.trim().parse().map_err(|_| fail())?;
    let denominator: u64 = denominator.trim().parse().map_err(|_| fail())?;
    if denominator == 0 || numerator > denominator {
        Err(fail())
    } else {
        Ok((numerator, denominator))
    }
}

/// Reads the name of a class.
pub(super) fn class_of(text: &str) -> Result<SchedClass, String> {
    SchedClass::from_name(text).ok_or_else(|| {
        format!("there is no class `{text}`; there are: fifo, rr, normal, batch, idle, iso")
    })
}

fn parse_nice(word: &Word) -> Result<Nice, WordFault> {
    word.text
        .parse()
        .ok()
        .and_then(Nice::new)
        .ok_or_else(|| (word.at, format!("`{}` is not a nice value, −20 to 19", word.text)))
}
