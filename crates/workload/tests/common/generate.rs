// SPDX-License-Identifier: GPL-2.0-only
//! Random legal workloads.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::{array, option};
use schedlab_policy_api::SchedClass;
use schedlab_units::{CpuId, CpuSet, Nanos, Nice};
use schedlab_workload::ir::{
    BarrierSpec, Dist, MarkId, MarkSpec, NamedSpec, ObjectId, Objects, Op, PeriodSpec, PeriodStep,
    PipeSpec, ProcessSpec, Program, ProgramId, SchedSpec, SemaphoreSpec, SignalTarget, TaskSpec,
    TemplateId, TimerSpec,
};
use schedlab_workload::{MAX_AMOUNT, MAX_DURATION_NS, Workload, validate};

/// Objects of every kind, tasks, marks and programs of a workload.
const N: u32 = 2;
const N_PROGRAMS: u32 = 3;
const N_COUNTERS: u32 = 2;

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,5}",
        "[ -~]{0,6}",
        any::<String>(),
        Just("{x}".to_string()),
        Just("wake".to_string()),
        Just("$n".to_string()),
        Just("parent".to_string()),
    ]
}

/// `N` different names.
fn names() -> impl Strategy<Value = Vec<String>> {
    vec(name(), N as usize)
        .prop_map(|names| {
            let number =
                |(k, name): (usize, String)| if k == 0 { name } else { format!("{name}{k}") };
            names.into_iter().enumerate().map(number).collect::<Vec<_>>()
        })
        .prop_filter("different", |names| names[0] != names[1])
}

fn span() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..=5, 0u64..=10_000_000_000, Just(MAX_DURATION_NS)]
}

fn dist_of(n: impl Strategy<Value = u64> + Clone) -> impl Strategy<Value = Dist> {
    prop_oneof![
        n.clone().prop_map(Dist::Const),
        (n.clone(), n.clone()).prop_map(|(a, b)| Dist::Uniform(a.min(b), a.max(b))),
        n.clone().prop_map(|n| Dist::Exponential(n / 10)),
        // e^12, the largest factor, is below 200 000.
        (n, 0u8..=200).prop_map(|(n, sigma_percent)| {
            Dist::LogNormal { median: n / 200_000, sigma_percent }
        }),
    ]
}

fn time() -> BoxedStrategy<Dist> {
    dist_of(0u64..=10_000_000_000).boxed()
}

fn sched() -> impl Strategy<Value = SchedSpec> {
    let class = prop_oneof![
        Just(SchedClass::Fifo),
        Just(SchedClass::Rr),
        Just(SchedClass::Normal),
        Just(SchedClass::Batch),
        Just(SchedClass::Idle),
        Just(SchedClass::Iso),
    ];
    (class, -20i32..20, 1u8..100, span()).prop_map(|(class, nice, priority, slice)| SchedSpec {
        class,
        nice: Nice::clamped(nice),
        rt_priority: if class.is_rt() { priority } else { 0 },
        slice: Nanos::from_ns(slice),
    })
}

fn cpus() -> impl Strategy<Value = CpuSet> {
    vec(0u32..1024, 1..5).prop_map(|cpus| cpus.into_iter().map(CpuId).collect())
}

fn object() -> impl Strategy<Value = ObjectId> {
    (0..N).prop_map(ObjectId)
}

fn mark() -> impl Strategy<Value = MarkId> {
    (0..N).prop_map(MarkId)
}

fn template() -> impl Strategy<Value = TemplateId> {
    (0..N).prop_map(TemplateId)
}

fn amount() -> impl Strategy<Value = u64> + Clone {
    prop_oneof![1u64..=10, Just(MAX_AMOUNT)]
}

fn timed_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        time().prop_map(Op::Run),
        Just(Op::RunForever),
        time().prop_map(Op::Kernel),
        time().prop_map(Op::Spin),
        (time(), period()).prop_map(|(length, every)| Op::SpinLooking { length, every }),
        (period(), any::<bool>()).prop_map(|(period, kept)| Op::Interrupt { period, kept }),
        (object(), time()).prop_map(|(timer, period)| Op::Advance { timer, period }),
        time().prop_map(Op::Sleep),
        time().prop_map(Op::Disk),
        (object(), time(), any::<bool>()).prop_map(|(timer, period, absolute)| Op::Timer {
            timer,
            period,
            absolute
        }),
    ]
}

fn period() -> impl Strategy<Value = Nanos> {
    span().prop_map(|ns| Nanos::from_ns(ns.max(1)))
}

fn object_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        (object(), amount()).prop_map(|(pipe, bytes)| Op::Read { pipe, bytes }),
        (object(), amount()).prop_map(|(pipe, bytes)| Op::Write { pipe, bytes }),
        object().prop_map(Op::SemWait),
        object().prop_map(Op::SemPost),
        object().prop_map(Op::Lock),
        object().prop_map(Op::Unlock),
        (object(), object()).prop_map(|(condition, mutex)| Op::CondWait { condition, mutex }),
        object().prop_map(Op::CondSignal),
        object().prop_map(Op::CondBroadcast),
        object().prop_map(Op::Barrier),
        object().prop_map(Op::FutexArm),
        object().prop_map(Op::FutexWait),
        (object(), any::<u32>()).prop_map(|(futex, n)| Op::FutexWake { futex, n }),
        (object(), object(), option::of(mark())).prop_map(|(list, wake, mark)| Op::ListJoin {
            list,
            wake,
            mark
        }),
        object().prop_map(Op::ListServe),
    ]
}

fn process_op() -> impl Strategy<Value = Op> {
    prop_oneof![
        Just(Op::Signal(SignalTarget::Parent)),
        template().prop_map(|t| Op::Signal(SignalTarget::Template(t))),
        (template(), period(), period()).prop_map(|(t, awake, asleep)| Op::SignalTaking {
            target: SignalTarget::Template(t),
            awake,
            asleep
        }),
        template().prop_map(Op::Kill),
        (template(), any::<bool>()).prop_map(|(template, thread)| Op::Fork { template, thread }),
        Just(Op::WaitChildren),
        Just(Op::WaitChild),
        Just(Op::Exec),
        Just(Op::Exit),
        Just(Op::Yield),
        sched().prop_map(Op::SetSched),
        (-20i32..20).prop_map(|n| Op::SetNice(Nice::clamped(n))),
        cpus().prop_map(Op::SetAffinity),
        (mark(), amount()).prop_map(|(mark, n)| Op::Mark { mark, n }),
        mark().prop_map(Op::MarkStart),
        mark().prop_map(Op::MarkStop),
        span().prop_map(|ns| Op::Deadline { within: Nanos::from_ns(ns) }),
    ]
}

fn period_step() -> impl Strategy<Value = PeriodStep> {
    let interval = || span().prop_map(Nanos::from_ns);
    let target = || option::of(any::<u32>());
    prop_oneof![
        Just(PeriodStep::Reset),
        interval().prop_map(PeriodStep::Shift),
        (interval(), target())
            .prop_map(|(interval, on_missed)| PeriodStep::Begin { interval, on_missed }),
        (interval(), target())
            .prop_map(|(interval, on_late)| PeriodStep::End { interval, on_late }),
        Just(PeriodStep::Sleep),
        Just(PeriodStep::Sample),
    ]
}

/// Jumps, whose targets `program` brings into range.
fn control_op() -> impl Strategy<Value = Op> {
    let target = any::<u32>();
    prop_oneof![
        (0..N_COUNTERS, dist_of(0u64..=100))
            .prop_map(|(counter, value)| Op::SetCounter { counter, value }),
        (0..N_COUNTERS, target).prop_map(|(counter, target)| Op::DecJump { counter, target }),
        target.prop_map(|target| Op::Jump { target }),
        (object(), target).prop_map(|(timer, target)| Op::Before { timer, target }),
        (0u64..=8, 1u64..=8, target).prop_map(|(a, b, target)| Op::JumpRandom {
            numerator: a.min(b),
            denominator: b,
            target
        }),
        (option::of(time()), option::of(target))
            .prop_map(|(timeout, on_timeout)| Op::SigWait { timeout, on_timeout }),
        (object(), target).prop_map(|(semaphore, on_zero)| Op::SemTry { semaphore, on_zero }),
        (object(), period_step()).prop_map(|(period, step)| Op::Period { period, step }),
    ]
}

fn program() -> impl Strategy<Value = Program> {
    let op = prop_oneof![timed_op(), object_op(), process_op(), control_op()];
    vec(op, 0..12).prop_map(|mut ops| {
        let end = ops.len() as u32 + 1;
        for op in &mut ops {
            match op {
                Op::DecJump { target, .. }
                | Op::Jump { target }
                | Op::JumpRandom { target, .. }
                | Op::Before { target, .. }
                | Op::SigWait { on_timeout: Some(target), .. }
                | Op::SemTry { on_zero: target, .. }
                | Op::Period {
                    step:
                        PeriodStep::Begin { on_missed: Some(target), .. }
                        | PeriodStep::End { on_late: Some(target), .. },
                    ..
                } => *target %= end,
                _ => {}
            }
        }
        Program { ops, n_counters: N_COUNTERS }
    })
}

fn objects() -> impl Strategy<Value = Objects> {
    let pipe = (1u64..=1_000_000, any::<[bool; 3]>(), any::<u64>());
    let numbers = (vec(pipe, N as usize), vec(amount(), N as usize), vec(1u32..9, N as usize));
    let periods = vec(array::uniform5(option::of(mark())), N as usize);
    let parts = (vec(names(), 9), numbers, any::<[bool; 2]>(), periods);
    parts.prop_map(|(names, numbers, per_task, periods)| {
        let (pipes, counts, parties) = numbers;
        let each = |kind: usize| names[kind].iter().cloned().enumerate();
        let named = |kind: usize| each(kind).map(|(_, name)| NamedSpec { name }).collect();
        Objects {
            pipes: each(0)
                .map(|(k, name)| {
                    let (capacity, [charged, sync, wake_reader_always], n) = pipes[k];
                    PipeSpec {
                        name,
                        capacity,
                        charge_per_write: charged.then_some(1 + n % capacity),
                        writer_wake_below: n % capacity,
                        sync,
                        wake_reader_always,
                    }
                })
                .collect(),
            semaphores: each(1)
                .map(|(k, name)| SemaphoreSpec { name, initial: counts[k] })
                .collect(),
            mutexes: named(2),
            conditions: named(3),
            barriers: each(4).map(|(k, name)| BarrierSpec { name, parties: parties[k] }).collect(),
            futexes: named(5),
            lists: named(6),
            timers: each(7).map(|(k, name)| TimerSpec { name, per_task: per_task[k] }).collect(),
            periods: each(8)
                .zip(periods)
                .map(|((_, name), [sample, achieved, missed_burns, met, missed])| PeriodSpec {
                    name,
                    sample,
                    achieved,
                    missed_burns,
                    met,
                    missed,
                })
                .collect(),
        }
    })
}

fn process() -> impl Strategy<Value = ProcessSpec> {
    prop_oneof![
        Just(ProcessSpec::Own),
        name().prop_map(|name| ProcessSpec::Thread(format!("p{name}"))),
        Just(ProcessSpec::Kernel),
    ]
}

fn task(name: String) -> impl Strategy<Value = TaskSpec> {
    let when = (any::<bool>(), 0u32..5, span());
    let how = (option::of(sched()), option::of(cpus()), any::<bool>(), process());
    (self::name(), when, how, 0..N_PROGRAMS).prop_map(move |(group, when, how, program)| {
        let (at_start, count, start) = when;
        let (sched, affinity, placed, process) = how;
        let cpu = affinity.as_ref().and_then(CpuSet::first).map_or(3, |cpu| cpu.0);
        TaskSpec {
            name: name.clone(),
            group,
            count,
            at_start,
            start: Nanos::from_ns(start),
            sched,
            affinity,
            start_cpu: placed.then_some(cpu),
            process,
            program: ProgramId(program),
        }
    })
}

/// A workload that `validate` accepts: where random jumps would make a loop without progress, the
/// jumps are taken out.
pub(crate) fn workload() -> impl Strategy<Value = Workload> {
    let texts = vec(any::<String>(), 4);
    let params = vec((any::<String>(), any::<String>()), 0..3);
    let tasks = names().prop_flat_map(|names| names.into_iter().map(task).collect::<Vec<_>>());
    let marks = (names(), names());
    let programs = vec(program(), N_PROGRAMS as usize);
    (texts, params, tasks, objects(), marks, programs, option::of(span())).prop_map(
        |(texts, params, tasks, objects, (marks, units), programs, duration)| {
            let marks = marks.into_iter().zip(units);
            let mut workload = Workload {
                name: texts[0].clone(),
                about: texts[1].clone(),
                origin: texts[2].clone(),
                params,
                tasks,
                programs,
                objects,
                marks: marks.map(|(name, unit)| MarkSpec { name, unit }).collect(),
                table: None,
                family_streams: false,
                duration: duration.map(Nanos::from_ns),
                notes: texts[3..].to_vec(),
            };
            if validate(&workload).is_err() {
                for program in &mut workload.programs {
                    program.ops.retain(|op| {
                        !matches!(
                            op,
                            Op::Jump { .. }
                                | Op::DecJump { .. }
                                | Op::JumpRandom { .. }
                                | Op::Before { .. }
                        )
                    });
                    let end = program.ops.len() as u32;
                    for op in &mut program.ops {
                        match op {
                            Op::SigWait { on_timeout: Some(target), .. }
                            | Op::SemTry { on_zero: target, .. }
                            | Op::Period {
                                step:
                                    PeriodStep::Begin { on_missed: Some(target), .. }
                                    | PeriodStep::End { on_late: Some(target), .. },
                                ..
                            } => *target = end,
                            _ => {}
                        }
                    }
                }
            }
            workload
        },
    )
}
