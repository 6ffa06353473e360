// SPDX-License-Identifier: GPL-2.0-only
//! The intermediate form of a workload: tasks, the objects they share, and their programs.
//!
//! Everything is resolved: names are indices, parameters are values, loops are jumps. All sizes are
//! known before a run starts, so a host can allocate once.

use schedlab_policy_api::SchedClass;
use schedlab_units::{CpuSet, Nanos, Nice};

/// A complete workload.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Workload {
    /// Name, as in `schedlab run NAME`.
    pub name: String,
    /// One line: what it models.
    pub about: String,
    /// Mail, program or paper it comes from.
    pub origin: String,
    /// Parameters with their values as text, in order of declaration.
    pub params: Vec<(String, String)>,
    /// Task templates. Those with `at_start` exist from the beginning; the others are forked.
    pub tasks: Vec<TaskSpec>,
    /// Programs, referred to by index.
    pub programs: Vec<Program>,
    /// Objects that tasks share.
    pub objects: Objects,
    /// Names of marks, referred to by index, with the unit of what they count.
    pub marks: Vec<MarkSpec>,
    /// The table that the modelled program prints of its marks, which reports print too.
    pub table: Option<OwnTable>,
    /// Whether the stream of a forked task follows from its parent's and how many the parent forked
    /// before, instead of the order in which all tasks are made. What tasks draw then does not
    /// depend on the policy.
    pub family_streams: bool,
    /// Length of a run unless the user says otherwise; none = until every task has exited.
    pub duration: Option<Nanos>,
    /// Facts a reader must know before trusting results, such as unknown gaps of a recording.
    pub notes: Vec<String>,
}

/// A mark: something a workload counts or times itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkSpec {
    /// Its name in results.
    pub name: String,
    /// Unit of the count, such as `frames` or `messages`.
    pub unit: String,
}

/// The table that a benchmark program prints at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnTable {
    /// interbench: latency with its deviation, share of the desired CPU, deadlines met.
    Interbench,
    /// schbench of 2016 to 2019: percentiles of its histogram of wake-up latencies.
    Schbench,
}

impl OwnTable {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Interbench, Self::Schbench];

    /// Its name in workload files.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Interbench => "interbench",
            Self::Schbench => "schbench",
        }
    }

    /// Names of the marks it is made from; a workload with the table has them all.
    ///
    /// interbench: the samples, bursts of work done and missed, deadlines met and missed.
    pub const fn marks(self) -> &'static [&'static str] {
        match self {
            Self::Interbench => &["latency", "bursts", "missed-bursts", "met", "missed"],
            Self::Schbench => &["wakeup"],
        }
    }
}

/// Index into [`Workload::programs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProgramId(pub u32);

/// Index into [`Workload::tasks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TemplateId(pub u32);

/// Index into a table of [`Objects`]; which one the operation says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ObjectId(pub u32);

/// Index into [`Workload::marks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MarkId(pub u32);

/// A template of tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskSpec {
    /// Name of the tasks; with `count` above 1 the tasks are called `name-0`, `name-1`, ….
    pub name: String,
    /// Group in results.
    pub group: String,
    /// How many tasks exist at the start; ignored for forked templates.
    pub count: u32,
    /// Whether they exist at the start or only when forked.
    pub at_start: bool,
    /// When they are first woken.
    pub start: Nanos,
    /// Scheduling parameters; none = those of the forking task, or the defaults.
    pub sched: Option<SchedSpec>,
    /// CPUs they may use; none = those of the forking task, or all.
    pub affinity: Option<CpuSet>,
    /// CPU they are put on at the start instead of the policy's own choice for a new task.
    pub start_cpu: Option<u32>,
    /// Address space and process they belong to.
    pub process: ProcessSpec,
    /// What they do.
    pub program: ProgramId,
}

impl TaskSpec {
    /// One task that exists from the start, in a process of its own, with default parameters.
    pub fn new(name: &str, program: ProgramId) -> Self {
        Self {
            name: name.to_string(),
            group: name.to_string(),
            count: 1,
            at_start: true,
            start: Nanos::ZERO,
            sched: None,
            affinity: None,
            start_cpu: None,
            process: ProcessSpec::Own,
            program,
        }
    }
}

/// Scheduling parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchedSpec {
    /// Class.
    pub class: SchedClass,
    /// Nice value.
    pub nice: Nice,
    /// Real-time priority, 1 … 99 for FIFO and RR, else 0.
    pub rt_priority: u8,
    /// Requested timeslice of a fair task; zero = none.
    pub slice: Nanos,
}

impl Default for SchedSpec {
    fn default() -> Self {
        Self { class: SchedClass::Normal, nice: Nice::ZERO, rt_priority: 0, slice: Nanos::ZERO }
    }
}

/// Which process a task belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProcessSpec {
    /// A process of its own for every task.
    Own,
    /// A thread of the named process, shared by all tasks that name it. When forked: a thread of
    /// the forking task's process.
    Thread(String),
    /// A kernel thread without address space.
    Kernel,
}

/// Objects by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Objects {
    /// Pipes and sockets.
    pub pipes: Vec<PipeSpec>,
    /// Counting semaphores.
    pub semaphores: Vec<SemaphoreSpec>,
    /// Mutexes.
    pub mutexes: Vec<NamedSpec>,
    /// Condition variables.
    pub conditions: Vec<NamedSpec>,
    /// Barriers.
    pub barriers: Vec<BarrierSpec>,
    /// Futex words; see [`Op::FutexArm`].
    pub futexes: Vec<NamedSpec>,
    /// Lists of tasks that queue themselves to be woken by another (schbench's message threads).
    pub lists: Vec<NamedSpec>,
    /// Periodic timers shared by name; those private to a task too, one slot per task and name.
    pub timers: Vec<TimerSpec>,
    /// Periodic duties; see [`crate::Period`].
    pub periods: Vec<PeriodSpec>,
}

/// An object that has only a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedSpec {
    /// Its name in messages.
    pub name: String,
}

/// A pipe or socket pair: a bounded byte queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PipeSpec {
    /// Its name in messages.
    pub name: String,
    /// Bytes it holds before writers block.
    pub capacity: u64,
    /// Bytes charged for a write beyond its payload (socket buffers: 768 for a 100-byte message).
    pub charge_per_write: Option<u64>,
    /// Writers are woken when at most this many bytes remain charged.
    pub writer_wake_below: u64,
    /// Whether wake-ups carry the SYNC hint.
    pub sync: bool,
    /// Whether a reader is woken by every write (sockets) or only by a write to an empty queue
    /// (pipes).
    pub wake_reader_always: bool,
}

/// A counting semaphore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SemaphoreSpec {
    /// Its name in messages.
    pub name: String,
    /// Its count at the start.
    pub initial: u64,
}

/// A barrier for a fixed number of parties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BarrierSpec {
    /// Its name in messages.
    pub name: String,
    /// How many must arrive.
    pub parties: u32,
}

/// A periodic timer (rt-app's rule: T := T + P; sleep until T, or go on if it has passed).
///
/// Before its first use T is the [`TaskSpec::start`] of the task that uses it first, counted from
/// the start of the workload, for forked tasks too. A missed expiry sets T to the present unless
/// the operation is absolute.
/// Source: spec formats-and-ecosystem §1.6.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimerSpec {
    /// Its name in messages.
    pub name: String,
    /// Whether every task has one of its own under this name.
    pub per_task: bool,
}

/// A periodic duty and the marks under which it is recorded; see [`crate::Period`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeriodSpec {
    /// Its name in messages.
    pub name: String,
    /// Latency of each period.
    pub sample: Option<MarkId>,
    /// Bursts of work that were done.
    pub achieved: Option<MarkId>,
    /// Bursts of work that were left out.
    pub missed_burns: Option<MarkId>,
    /// Deadlines met.
    pub met: Option<MarkId>,
    /// Deadlines missed.
    pub missed: Option<MarkId>,
}

/// The program of a task: operations with jump targets inside it. Running past the end exits.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Program {
    /// The operations.
    pub ops: Vec<Op>,
    /// Number of loop counters the program uses.
    pub n_counters: u32,
}

/// A length or amount, constant or drawn anew each time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dist {
    /// Always this.
    Const(u64),
    /// Uniform between the two, both included.
    Uniform(u64, u64),
    /// Exponential with this mean, cut at ten means.
    Exponential(u64),
    /// Log-normal: the logarithm is normal, with the logarithm of `median` as its mean; cut at six
    /// standard deviations.
    LogNormal {
        /// As many values are below as above.
        median: u64,
        /// Standard deviation of the logarithm in hundredths, at most 200.
        sigma_percent: u8,
    },
}

/// One operation. Durations are ns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Computes in user mode for this much CPU time at capacity 1024.
    Run(Dist),
    /// Draws a length that the task keeps, for [`Op::RunPart`].
    Draw(Dist),
    /// Computes like [`Op::Run`] for this fraction of the length drawn last, 1 ns at least.
    RunPart(u64),
    /// Computes for ever.
    RunForever,
    /// Computes in kernel mode: cannot be preempted before its end.
    Kernel(Dist),
    /// Spins in user mode until this much wall time has passed, preempted or not.
    Spin(Dist),
    /// The same, but the clock is looked at only after every `every` of CPU time, so that a
    /// preempted task needs up to that much more.
    SpinLooking {
        /// Wall time.
        length: Dist,
        /// CPU time between two looks, not zero.
        every: Nanos,
    },
    /// Sleeps this long (`nanosleep`).
    Sleep(Dist),
    /// Advances timer `timer` by `period` and sleeps until then; see [`TimerSpec`].
    Timer {
        /// Which timer.
        timer: ObjectId,
        /// Its period.
        period: Dist,
        /// Whether a missed expiry is caught up (true) or forgotten.
        absolute: bool,
    },
    /// Moves timer `timer` on by `period` without sleeping.
    Advance {
        /// Which timer.
        timer: ObjectId,
        /// By how much.
        period: Dist,
    },
    /// Jumps while the present is before timer `timer`.
    Before {
        /// Which timer.
        timer: ObjectId,
        /// Where to.
        target: u32,
    },
    /// Sleeps until the next interrupt of a device that interrupts at all multiples of `period`
    /// since the start of the run.
    Interrupt {
        /// Its period, not zero.
        period: Nanos,
        /// Whether the device keeps interrupts: if some came since the task last waited for any
        /// device of this kind, it takes them all and goes on at once.
        kept: bool,
    },
    /// Waits uninterruptibly for a device this long; the completion arrives as an interrupt.
    Disk(Dist),
    /// Reads exactly this many bytes, blocking while there are fewer.
    Read {
        /// The pipe.
        pipe: ObjectId,
        /// Bytes.
        bytes: u64,
    },
    /// Writes this many bytes, blocking while the pipe is full.
    Write {
        /// The pipe.
        pipe: ObjectId,
        /// Bytes.
        bytes: u64,
    },
    /// Takes one from a semaphore, blocking while it is zero.
    SemWait(ObjectId),
    /// Adds one to a semaphore and wakes one waiter.
    SemPost(ObjectId),
    /// Takes one from a semaphore, or jumps while it is zero.
    SemTry {
        /// The semaphore.
        semaphore: ObjectId,
        /// Jump target when it is zero.
        on_zero: u32,
    },
    /// Locks a mutex.
    Lock(ObjectId),
    /// Unlocks a mutex; the longest waiter gets it.
    Unlock(ObjectId),
    /// Unlocks `mutex`, waits for condition `condition`, locks `mutex` again.
    CondWait {
        /// The condition.
        condition: ObjectId,
        /// The mutex, held by the caller.
        mutex: ObjectId,
    },
    /// Wakes one waiter of a condition.
    CondSignal(ObjectId),
    /// Wakes all waiters of a condition.
    CondBroadcast(ObjectId),
    /// Arrives at a barrier and waits for the others.
    Barrier(ObjectId),
    /// Marks a futex word as blocked: the next [`Op::FutexWait`] sleeps unless it is woken first.
    FutexArm(ObjectId),
    /// Sleeps while the futex word is marked as blocked.
    FutexWait(ObjectId),
    /// Clears the blocked mark of a futex word and wakes up to `n` waiters.
    FutexWake {
        /// The futex.
        futex: ObjectId,
        /// How many at most.
        n: u32,
    },
    /// Puts the running task on a list, does [`Op::FutexWake`] of one on `wake`, and sleeps until
    /// the list is served. On waking, the span since the list was taken is recorded under `mark`.
    ListJoin {
        /// The list.
        list: ObjectId,
        /// Futex of the task that serves the list.
        wake: ObjectId,
        /// Mark for the latency.
        mark: Option<MarkId>,
    },
    /// Takes the whole list, reads the clock once, and wakes its members one by one, last in first
    /// out; goes on at once when the list is empty.
    ListServe(ObjectId),
    /// Sends the signal to the tasks of a template (all of its instances), which wakes a task in an
    /// interruptible sleep; a signal already pending is not sent again.
    Signal(SignalTarget),
    /// [`Op::Signal`] as a system call whose length depends on whether it finds the target waiting
    /// for a signal when it begins; the signal arrives at its end.
    SignalTaking {
        /// Whom.
        target: SignalTarget,
        /// Its length if no target waits.
        awake: Nanos,
        /// Its length if one waits.
        asleep: Nanos,
    },
    /// Ends every live task of a template, as a fatal signal does: one in an interruptible sleep is
    /// woken to exit, a runnable one exits instead of going on when it next runs, one that waits
    /// for a disk exits after the wait. Without such a task it does nothing.
    Kill(TemplateId),
    /// Sleeps until a signal is pending or `timeout` is over, and takes the signal; a signal
    /// pending already is taken at once.
    SigWait {
        /// The longest sleep; none = without limit.
        timeout: Option<Dist>,
        /// Jump target when the time ran out without a signal.
        on_timeout: Option<u32>,
    },
    /// Forks tasks of a template; they inherit what the template leaves open.
    Fork {
        /// What to fork.
        template: TemplateId,
        /// Whether the child is a thread of the same process.
        thread: bool,
    },
    /// Waits until every child has exited and collects them.
    WaitChildren,
    /// Waits until one more child has exited and collects it; goes on at once without children.
    WaitChild,
    /// Replaces the program image: a new address space, the moment for exec balancing.
    Exec,
    /// Ends the task.
    Exit,
    /// `sched_yield`.
    Yield,
    /// Changes the task's own scheduling parameters.
    SetSched(SchedSpec),
    /// Changes the task's own nice value.
    SetNice(Nice),
    /// Changes the task's own affinity.
    SetAffinity(CpuSet),
    /// Counts `n` under a mark.
    Mark {
        /// The mark.
        mark: MarkId,
        /// How many.
        n: u64,
    },
    /// Starts the task's stopwatch for a mark.
    MarkStart(MarkId),
    /// Stops it and records the span.
    MarkStop(MarkId),
    /// Records that work due `within` after the task's last timer expiry or wake-up is done.
    Deadline {
        /// The allowance.
        within: Nanos,
    },
    /// A step of a periodic duty; all but [`PeriodStep::Sleep`] take no time.
    Period {
        /// The duty.
        period: ObjectId,
        /// The step.
        step: PeriodStep,
    },
    /// Sets a loop counter.
    SetCounter {
        /// Which.
        counter: u32,
        /// To what.
        value: Dist,
    },
    /// Subtracts one from a counter and jumps while it is above zero.
    DecJump {
        /// Which.
        counter: u32,
        /// Where to.
        target: u32,
    },
    /// Jumps.
    Jump {
        /// Where to.
        target: u32,
    },
    /// Jumps with the probability `numerator / denominator`.
    JumpRandom {
        /// Numerator.
        numerator: u64,
        /// Denominator, not zero.
        denominator: u64,
        /// Where to.
        target: u32,
    },
}

/// A step of a periodic duty; [`crate::Period`] says what each computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeriodStep {
    /// The deadline is now.
    Reset,
    /// Moves the deadline on.
    Shift(Nanos),
    /// Before the work.
    Begin {
        /// The period; zero = none is ever left out.
        interval: Nanos,
        /// Jump target when the whole period has passed already.
        on_missed: Option<u32>,
    },
    /// After the work.
    End {
        /// The period; zero = what is late is forgotten.
        interval: Nanos,
        /// Jump target when there is nothing to sleep for.
        on_late: Option<u32>,
    },
    /// Sleeps for what was left at the end, here or in another task that keeps the time.
    Sleep,
    /// Records the latency of the period.
    Sample,
}

/// Whom a signal goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalTarget {
    /// Every live task of a template.
    Template(TemplateId),
    /// The task that forked the sender.
    Parent,
}
