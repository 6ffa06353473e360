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

/// A machine of 1, 2, 8 or 40 CPUs, the larger ones with SMT, several caches and two nodes.
pub fn machine() -> impl Strategy<Value = Topology> {
    let shapes = [(1, 1, 1, 1), (1, 1, 2, 1), (1, 2, 2, 2), (2, 1, 10, 2)];
    prop::sample::select(shapes.to_vec()).prop_map(|(nodes, llcs, cores, threads)| {
        Topology::new(nodes, llcs, cores, threads).expect("the shapes are legal")
    })
}

/// A span of 1 µs to 5 ms, short ones as often as long ones.
fn span() -> impl Strategy<Value = u64> {
    (0u32..12, 1000u64..2000).prop_map(|(octave, base)| base << octave)
}

fn dist() -> impl Strategy<Value = Dist> {
    prop_oneof![
        span().prop_map(Dist::Const),
        (span(), span()).prop_map(|(a, b)| Dist::Uniform(a.min(b), a.max(b))),
        span().prop_map(Dist::Exponential),
    ]
}

fn nice() -> impl Strategy<Value = Nice> {
    (-20i32..20).prop_map(Nice::clamped)
}

fn sched() -> impl Strategy<Value = SchedSpec> {
    let fair = prop::sample::select(vec![SchedClass::Normal, SchedClass::Batch, SchedClass::Idle]);
    let rt = prop::sample::select(vec![SchedClass::Fifo, SchedClass::Rr]);
    let slice = prop::sample::select(vec![0u64, 300_000, 10_000_000]);
    prop_oneof![
        9 => (fair, nice(), slice).prop_map(|(class, nice, slice)| SchedSpec {
            class,
            nice,
            rt_priority: 0,
            slice: Nanos::from_ns(slice),
        }),
        1 => (rt, 1u8..100).prop_map(|(class, rt_priority)| SchedSpec {
            class,
            nice: Nice::ZERO,
            rt_priority,
            slice: Nanos::ZERO,
        }),
    ]
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

fn fragment(with_affinity: bool) -> BoxedStrategy<Vec<Op>> {
    let object = (0u32..2).prop_map(ObjectId);
    let one = prop_oneof![
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
        1 => (object.clone(), span()).prop_map(|(timer, period)| Op::Advance {
            timer,
            period: Dist::Const(period),
        }),
        4 => dist().prop_map(Op::Sleep),
        2 => (object.clone(), span(), any::<bool>()).prop_map(|(timer, period, absolute)| {
            Op::Timer { timer, period: Dist::Const(period), absolute }
        }),
        2 => dist().prop_map(Op::Disk),
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
        1 => object.clone().prop_map(Op::CondBroadcast),
        2 => (0u32..2).prop_map(|t| Op::Signal(SignalTarget::Template(TemplateId(t)))),
        1 => Just(Op::Signal(SignalTarget::Parent)),
        1 => (0u32..2, span(), span()).prop_map(|(t, awake, asleep)| Op::SignalTaking {
            target: SignalTarget::Template(TemplateId(t)),
            awake: Nanos::from_ns(awake),
            asleep: Nanos::from_ns(asleep),
        }),
        2 => prop::option::of(dist()).prop_map(|timeout| Op::SigWait { timeout, on_timeout: None }),
        2 => (0..FORKABLE, any::<bool>()).prop_map(|(t, thread)| Op::Fork {
            template: TemplateId(t),
            thread,
        }),
        1 => (0..FORKABLE).prop_map(|t| Op::Kill(TemplateId(t))),
        1 => Just(Op::WaitChildren),
        1 => Just(Op::WaitChild),
        1 => Just(Op::Exec),
        3 => Just(Op::Yield),
        1 => nice().prop_map(Op::SetNice),
        1 => sched().prop_map(Op::SetSched),
        1 => Just(Op::Mark { mark: MarkId(0), n: 2 }),
        1 => Just(Op::Deadline { within: Nanos::from_ms(1) }),
    ];
    let single = if with_affinity {
        prop_oneof![12 => one, 1 => affinity().prop_map(Op::SetAffinity)].boxed()
    } else {
        one.boxed()
    };
    let locked = (object.clone(), dist(), any::<bool>(), object).prop_map(
        |(mutex, inside, waits, condition)| {
            let middle = if waits { Op::CondWait { condition, mutex } } else { Op::Run(inside) };
            vec![Op::Lock(mutex), middle, Op::Unlock(mutex)]
        },
    );
    prop_oneof![10 => single.prop_map(|op| vec![op]), 1 => locked].boxed()
}

/// A program of up to eight fragments, endless or not. Children must end, or they multiply.
fn program(with_affinity: bool, may_loop: bool) -> impl Strategy<Value = Program> {
    let body = vec(fragment(with_affinity), 1..8);
    (body, any::<bool>(), span()).prop_map(move |(fragments, endless, pause)| {
        let mut ops: Vec<Op> = fragments.into_iter().flatten().collect();
        if endless && may_loop {
            // Children may wait for ever; forking faster than this fills the machine with them, and
            // checks after every input cost time in proportion.
            let forks = ops.iter().any(|op| matches!(op, Op::Fork { .. }));
            let pause = if forks { pause.max(2_000_000) } else { pause };
            ops.push(Op::Run(Dist::Const(pause)));
            ops.push(Op::Jump { target: 0 });
        } else {
            // A child that forks must not be able to start an avalanche.
            ops.retain(|op| may_loop || !matches!(op, Op::Fork { .. }));
            ops.push(Op::Run(Dist::Const(pause)));
        }
        Program { ops, n_counters: 0 }
    })
}

fn task(with_affinity: bool) -> impl Strategy<Value = TaskSpec> {
    let mask = if with_affinity {
        prop_oneof![4 => Just(None), 1 => affinity().prop_map(Some)].boxed()
    } else {
        Just(None).boxed()
    };
    let process = prop_oneof![
        2 => Just(ProcessSpec::Own),
        1 => Just(ProcessSpec::Thread("shared".to_string())),
    ];
    (1u32..4, span(), prop::option::of(sched()), mask, process).prop_map(
        |(count, start, sched, affinity, process)| TaskSpec {
            name: String::new(),
            group: "tasks".to_string(),
            count,
            at_start: true,
            start: Nanos::from_ns(start),
            sched,
            affinity,
            start_cpu: None,
            process,
            program: ProgramId(0),
        },
    )
}

fn generate(with_affinity: bool) -> impl Strategy<Value = Workload> {
    let children = vec((task(with_affinity), program(with_affinity, false)), FORKABLE as usize);
    let others = vec((task(with_affinity), program(with_affinity, true)), 1..5);
    (children, others).prop_map(|(children, others)| {
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

fn objects() -> Objects {
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
    }
}

/// A random legal workload.
pub fn workload() -> impl Strategy<Value = Workload> {
    generate(true)
}

/// The same without affinity masks.
pub fn workload_without_affinity() -> impl Strategy<Value = Workload> {
    generate(false)
}
