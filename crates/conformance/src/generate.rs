// SPDX-License-Identifier: GPL-2.0-only
//! Random legal workloads and machines.
//!
//! Programs are put together from fragments that are legal by themselves (a mutex is unlocked where
//! it was locked), and every endless loop takes time. Tasks may well wait for ever: that is legal.

use proptest::collection::vec;
use proptest::prelude::*;
use schedlab_policy_api::{SchedClass, Topology};
use schedlab_units::{CpuId, CpuSet, Nanos, Nice};
use schedlab_workload::Workload;
use schedlab_workload::ir::{
    BarrierSpec, Dist, MarkId, MarkSpec, NamedSpec, ObjectId, Objects, Op, PipeSpec, ProcessSpec,
    Program, ProgramId, SchedSpec, SemaphoreSpec, SignalTarget, TaskSpec, TemplateId, TimerSpec,
};

/// Nodes, last-level caches per node, cores per cache and threads per core of the machines: 1 CPU,
/// 2 cores, 8 CPUs with SMT in two caches or in two nodes, 40 CPUs with SMT in two nodes.
pub const MACHINES: [(u32, u32, u32, u32); 5] =
    [(1, 1, 1, 1), (1, 1, 2, 1), (1, 2, 2, 2), (2, 1, 2, 2), (2, 1, 10, 2)];

/// One of [`MACHINES`].
pub fn machine() -> impl Strategy<Value = Topology> {
    prop::sample::select(MACHINES.to_vec()).prop_map(|(nodes, llcs, cores, threads)| {
        Topology::new(nodes, llcs, cores, threads).expect("the shapes are legal")
    })
}

/// What the tasks of a random workload may be and do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Habits {
    /// They set affinity masks, and some are put on a CPU instead of the policy's choice.
    pub affinity: bool,
    /// There are FIFO and RR tasks.
    pub real_time: bool,
    /// There are tasks of the classes batch, idle and iso.
    pub other_classes: bool,
}

impl Habits {
    /// Everything that is legal.
    pub const ALL: Self = Self { affinity: true, real_time: true, other_classes: true };
}

/// A span of 1 µs to 5 ms, short ones as often as long ones.
pub(crate) fn span() -> impl Strategy<Value = u64> {
    (0u32..12, 1000u64..2000).prop_map(|(octave, base)| base << octave)
}

pub(crate) fn dist() -> impl Strategy<Value = Dist> {
    prop_oneof![
        span().prop_map(Dist::Const),
        (span(), span()).prop_map(|(a, b)| Dist::Uniform(a.min(b), a.max(b))),
        span().prop_map(Dist::Exponential),
    ]
}

fn nice() -> impl Strategy<Value = Nice> {
    (-20i32..20).prop_map(Nice::clamped)
}

fn sched(habits: Habits) -> BoxedStrategy<SchedSpec> {
    use SchedClass::{Batch, Idle, Iso, Normal};
    let classes = if habits.other_classes { vec![Normal, Batch, Idle, Iso] } else { vec![Normal] };
    let fair = prop::sample::select(classes);
    let rt = prop::sample::select(vec![SchedClass::Fifo, SchedClass::Rr]);
    let slice = prop::sample::select(vec![0u64, 300_000, 10_000_000]);
    let fair = (fair, nice(), slice).prop_map(|(class, nice, slice)| SchedSpec {
        class,
        nice,
        rt_priority: 0,
        slice: Nanos::from_ns(slice),
    });
    let rt = (rt, 1u8..100).prop_map(|(class, rt_priority)| SchedSpec {
        class,
        nice: Nice::ZERO,
        rt_priority,
        slice: Nanos::ZERO,
    });
    if habits.real_time { prop_oneof![9 => fair, 1 => rt].boxed() } else { fair.boxed() }
}

/// A mask of which at least CPU 0 to 3, cut to the machine by the simulator, leaves something.
fn affinity() -> impl Strategy<Value = CpuSet> {
    (1u32..255).prop_map(|bits| {
        let mut set: CpuSet = (0..8).filter(|bit| bits >> bit & 1 != 0).map(CpuId).collect();
        set.insert(CpuId(0));
        set
    })
}

/// Number of templates that programs may fork.
const FORKABLE: u32 = 2;

/// Operations whose jump targets count from the first of them.
type Fragment = Vec<Op>;

/// Time passes or is used up, and nothing else happens.
pub(crate) fn timed() -> impl Strategy<Value = Op> {
    let timer = (0u32..2).prop_map(ObjectId);
    prop_oneof![
        6 => dist().prop_map(Op::Run),
        1 => dist().prop_map(Op::Kernel),
        1 => dist().prop_map(Op::Spin),
        1 => (dist(), 1u64..100_000).prop_map(|(length, ns)| Op::SpinLooking {
            length,
            every: Nanos::from_ns(ns),
        }),
        1 => (1u64..5_000_000, any::<bool>()).prop_map(|(ns, kept)| Op::Interrupt {
            period: Nanos::from_ns(ns),
            kept,
        }),
        4 => dist().prop_map(Op::Sleep),
        2 => (timer, span(), any::<bool>()).prop_map(|(timer, period, absolute)| {
            Op::Timer { timer, period: Dist::Const(period), absolute }
        }),
        2 => dist().prop_map(Op::Disk),
    ]
}

/// Tasks wait for each other.
pub(crate) fn shared() -> impl Strategy<Value = Op> {
    let object = (0u32..2).prop_map(ObjectId);
    prop_oneof![
        1 => (object.clone(), span()).prop_map(|(timer, period)| Op::Advance {
            timer,
            period: Dist::Const(period),
        }),
        3 => (object.clone(), 1u64..300).prop_map(|(pipe, bytes)| Op::Write { pipe, bytes }),
        3 => (object.clone(), 1u64..300).prop_map(|(pipe, bytes)| Op::Read { pipe, bytes }),
        2 => object.clone().prop_map(Op::SemPost),
        2 => object.clone().prop_map(Op::SemWait),
        1 => object.clone().prop_map(Op::Barrier),
        1 => object.clone().prop_map(Op::FutexArm),
        1 => object.clone().prop_map(Op::FutexWait),
        2 => (object.clone(), 1u32..3).prop_map(|(futex, n)| Op::FutexWake { futex, n }),
        1 => object.clone().prop_map(|list| Op::ListJoin {
            list,
            wake: ObjectId(0),
            mark: Some(MarkId(0)),
        }),
        2 => object.clone().prop_map(Op::ListServe),
        1 => object.clone().prop_map(Op::CondSignal),
        1 => object.prop_map(Op::CondBroadcast),
        2 => (0u32..2).prop_map(|t| Op::Signal(SignalTarget::Template(TemplateId(t)))),
        1 => Just(Op::Signal(SignalTarget::Parent)),
        1 => (0u32..2, span(), span()).prop_map(|(t, awake, asleep)| Op::SignalTaking {
            target: SignalTarget::Template(TemplateId(t)),
            awake: Nanos::from_ns(awake),
            asleep: Nanos::from_ns(asleep),
        }),
        2 => prop::option::of(dist()).prop_map(|timeout| Op::SigWait { timeout, on_timeout: None }),
    ]
}

/// Tasks come, go and change.
fn life(habits: Habits) -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => (0..FORKABLE, any::<bool>()).prop_map(|(t, thread)| Op::Fork {
            template: TemplateId(t),
            thread,
        }),
        1 => (0..FORKABLE).prop_map(|t| Op::Kill(TemplateId(t))),
        1 => Just(Op::WaitChildren),
        1 => Just(Op::WaitChild),
        1 => Just(Op::Exec),
        3 => Just(Op::Yield),
        2 => nice().prop_map(Op::SetNice),
        2 => sched(habits).prop_map(Op::SetSched),
        1 => Just(Op::Mark { mark: MarkId(0), n: 2 }),
        1 => Just(Op::MarkStart(MarkId(0))),
        1 => Just(Op::MarkStop(MarkId(0))),
        1 => Just(Op::Deadline { within: Nanos::from_ms(1) }),
    ]
}

fn fragment(habits: Habits) -> BoxedStrategy<Fragment> {
    let one = prop_oneof![3 => timed(), 4 => shared(), 3 => life(habits)];
    let one = if habits.affinity {
        prop_oneof![12 => one, 1 => affinity().prop_map(Op::SetAffinity)].boxed()
    } else {
        one.boxed()
    };
    let object = (0u32..2).prop_map(ObjectId);
    let locked = (object.clone(), dist(), any::<bool>(), object.clone()).prop_map(
        |(mutex, inside, waits, condition)| {
            let middle = if waits { Op::CondWait { condition, mutex } } else { Op::Run(inside) };
            vec![Op::Lock(mutex), middle, Op::Unlock(mutex)]
        },
    );
    let counted = (1u64..5, timed(), one.clone()).prop_map(|(n, first, second)| {
        let set = Op::SetCounter { counter: 0, value: Dist::Const(n) };
        vec![set, first, second, Op::DecJump { counter: 0, target: 1 }]
    });
    let maybe = one
        .clone()
        .prop_map(|op| vec![Op::JumpRandom { numerator: 1, denominator: 2, target: 2 }, op]);
    let on_timeout = (dist(), one.clone()).prop_map(|(timeout, op)| {
        vec![Op::SigWait { timeout: Some(timeout), on_timeout: Some(2) }, op]
    });
    let shares_of_one_draw = (dist(), 1u64..9, one.clone()).prop_map(|(length, parts, between)| {
        vec![Op::Draw(length), Op::RunPart(parts), between, Op::RunPart(parts)]
    });
    let if_there_is_one = (object.clone(), one.clone())
        .prop_map(|(semaphore, op)| vec![Op::SemTry { semaphore, on_zero: 2 }, op]);
    let if_late = (object.clone(), span(), one.clone()).prop_map(|(timer, period, op)| {
        let advance = Op::Advance { timer, period: Dist::Const(period) };
        vec![advance, Op::Before { timer, target: 3 }, op]
    });
    prop_oneof![
        20 => one.prop_map(|op| vec![op]),
        2 => locked,
        1 => counted,
        1 => maybe,
        1 => shares_of_one_draw,
        1 => if_there_is_one,
        1 => if_late,
        1 => on_timeout,
    ]
    .boxed()
}

/// The fragments one after the other, each with its jumps.
pub(crate) fn joined(fragments: Vec<Fragment>) -> Vec<Op> {
    let mut ops: Vec<Op> = Vec::new();
    for mut fragment in fragments {
        let start = ops.len() as u32;
        for op in &mut fragment {
            if let Op::Jump { target }
            | Op::DecJump { target, .. }
            | Op::JumpRandom { target, .. }
            | Op::Before { target, .. }
            | Op::SemTry { on_zero: target, .. }
            | Op::SigWait { on_timeout: Some(target), .. } = op
            {
                *target += start;
            }
        }
        ops.append(&mut fragment);
    }
    ops
}

/// How a program ends.
#[derive(Clone, Copy, Debug)]
enum End {
    /// After the last operation.
    Last,
    /// By an exit before an operation that is never reached.
    Exit,
    /// Never: it begins anew.
    Again,
    /// Never: it computes.
    Hog,
}

/// A program of up to eight fragments for the template with this index. Those which are forked must
/// end, or they multiply.
fn program(habits: Habits, template: u32) -> impl Strategy<Value = Program> {
    let is_forked = template < FORKABLE;
    let end = if is_forked {
        prop_oneof![3 => Just(End::Last), 1 => Just(End::Exit)].boxed()
    } else {
        prop_oneof![
            3 => Just(End::Last),
            1 => Just(End::Exit),
            3 => Just(End::Again),
            1 => Just(End::Hog),
        ]
        .boxed()
    };
    (vec(fragment(habits), 1..8), end, span()).prop_map(move |(fragments, end, pause)| {
        let mut ops = joined(fragments);
        if is_forked {
            tame_forks(&mut ops, template);
        }
        // Children may wait for ever; forking faster than this fills the machine with them, and
        // checks after every input cost time in proportion.
        let forks = ops.iter().any(|op| matches!(op, Op::Fork { .. }));
        let slow = forks && matches!(end, End::Again);
        ops.push(Op::Run(Dist::Const(if slow { pause.max(2_000_000) } else { pause })));
        match end {
            End::Last => {}
            End::Exit => ops.extend([Op::Exit, Op::Yield]),
            End::Again => ops.push(Op::Jump { target: 0 }),
            End::Hog => ops.push(Op::RunForever),
        }
        Program { ops, n_counters: 1 }
    })
}

/// A forked task that forks must not start an avalanche: each template forks one of a lower index
/// at most, and once.
fn tame_forks(ops: &mut [Op], template: u32) {
    let mut left = template;
    let looped = ops.iter().any(|op| matches!(op, Op::DecJump { .. }));
    for op in ops.iter_mut().filter(|op| matches!(op, Op::Fork { .. })) {
        match (op, left) {
            (Op::Fork { template, .. }, 1) if !looped => (*template, left) = (TemplateId(0), 0),
            (op, _) => *op = Op::Yield,
        }
    }
}

fn task(habits: Habits) -> impl Strategy<Value = TaskSpec> {
    let mask = if habits.affinity {
        prop_oneof![4 => Just(None), 1 => affinity().prop_map(Some)].boxed()
    } else {
        Just(None).boxed()
    };
    let process = prop_oneof![
        6 => Just(ProcessSpec::Own),
        3 => Just(ProcessSpec::Thread("shared".to_string())),
        1 => Just(ProcessSpec::Kernel),
    ];
    let start_cpu = match habits.affinity {
        true => prop_oneof![4 => Just(None), 1 => Just(Some(0))].boxed(),
        false => Just(None).boxed(),
    };
    let sched = prop::option::of(sched(habits));
    (1u32..4, span(), sched, mask, process, start_cpu).prop_map(
        |(count, start, sched, affinity, process, start_cpu)| TaskSpec {
            name: String::new(),
            group: "tasks".to_string(),
            count,
            at_start: true,
            start: Nanos::from_ns(start),
            sched,
            affinity,
            start_cpu,
            process,
            program: ProgramId(0),
        },
    )
}

/// A random legal workload of tasks with these habits.
pub fn workload(habits: Habits) -> impl Strategy<Value = Workload> {
    let own = move |template| (task(habits), program(habits, template));
    let children: Vec<_> = (0..FORKABLE).map(own).collect();
    (children, vec(own(FORKABLE), 1..5)).prop_map(|(children, others)| {
        let mut workload = Workload { name: "random".to_string(), ..Workload::default() };
        for (index, (mut task, program)) in children.into_iter().chain(others).enumerate() {
            task.name = format!("t{index}");
            task.program = ProgramId(index as u32);
            task.at_start = index >= FORKABLE as usize;
            workload.tasks.push(task);
            workload.programs.push(program);
        }
        workload.objects = objects();
        workload.marks = vec![MarkSpec { name: "m".to_string(), unit: "times".to_string() }];
        workload
    })
}

pub(crate) fn objects() -> Objects {
    let named = |name: &str| NamedSpec { name: name.to_string() };
    let pipe = |name: &str, charge: Option<u64>| PipeSpec {
        name: name.to_string(),
        capacity: 1000,
        charge_per_write: charge,
        writer_wake_below: 250,
        sync: charge.is_some(),
        wake_reader_always: charge.is_some(),
    };
    Objects {
        pipes: vec![pipe("p0", None), pipe("p1", Some(200))],
        semaphores: ["s0", "s1"]
            .map(|name| SemaphoreSpec { name: name.to_string(), initial: 1 })
            .to_vec(),
        mutexes: vec![named("m0"), named("m1")],
        conditions: vec![named("c0"), named("c1")],
        barriers: ["b0", "b1"]
            .map(|name| BarrierSpec { name: name.to_string(), parties: 2 })
            .to_vec(),
        futexes: vec![named("f0"), named("f1")],
        lists: vec![named("l0"), named("l1")],
        timers: vec![
            TimerSpec { name: "shared".to_string(), per_task: false },
            TimerSpec { name: "own".to_string(), per_task: true },
        ],
        periods: Vec::new(),
    }
}
