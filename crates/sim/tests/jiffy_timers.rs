// SPDX-License-Identifier: GPL-2.0-only
//! Rows of linux-2.6-spa §9: row 48, how long a `nanosleep` lasts; and in which order what falls on
//! one instant is taken.

use schedlab_policies::{Fifo, FifoTunables, O1, O1Tunables, Rr, RrTunables, Spa, SpaTunables};
use schedlab_policy_api::{
    Build, Observer, PolicyDef, SchedEvent, SleepUnit, TickOrder, Timekeeping, TimerBase, Topology,
    Tunables,
};
use schedlab_sim::{HostObserver, Sim, SimConfig};
use schedlab_units::{CpuId, CpuSet, TaskId, Time};
use schedlab_workload::Workload;
use schedlab_workload::ir::{Dist, Op, Program, ProgramId, TaskSpec};

const MS: u64 = 1_000_000;

/// Keeps wake-ups and switches.
#[derive(Default)]
struct Log(Vec<(u64, String)>);

impl Observer for Log {
    fn event(&mut self, now: Time, event: &SchedEvent) {
        let line = match event {
            SchedEvent::Waking { task, this_cpu, .. } => format!("wake {task} on {this_cpu}"),
            SchedEvent::Switch { cpu, .. } => format!("switch {cpu}"),
            _ => return,
        };
        self.0.push((now.as_ns(), line));
    }
}
impl HostObserver for Log {}

/// Tasks with these programs, each bound to a CPU.
fn workload(tasks: Vec<(u32, Vec<Op>)>) -> Workload {
    let (mut specs, mut programs) = (Vec::new(), Vec::new());
    for (index, (cpu, ops)) in tasks.into_iter().enumerate() {
        let mut spec = TaskSpec::new(&format!("t{index}"), ProgramId(index as u32));
        spec.affinity = Some(CpuSet::single(CpuId(cpu)));
        specs.push(spec);
        programs.push(Program { ops, n_counters: 1 });
    }
    Workload { name: "test".to_string(), tasks: specs, programs, ..Workload::default() }
}

fn log<P: PolicyDef>(
    workload: &Workload,
    n_cpus: u32,
    tunables: &P::Tunables,
    time: Timekeeping,
    ms: u64,
) -> Vec<(u64, String)> {
    let topo = Topology::flat(n_cpus).expect("legal");
    let policy = P::build(tunables, Build { topo: &topo, hz: time.hz, n_tasks: 4 });
    let config = SimConfig { check: true, ..SimConfig::new(topo, time) };
    let mut sim = Sim::new(workload, policy, Log::default(), config);
    sim.run_until(Time::from_ns(ms * MS + 1)).expect("a legal workload");
    sim.into_parts().1.0
}

/// When a task that runs for `run` ns and then sleeps for `ms` wakes, in jiffies of 1 ms.
fn wakes_at<P: PolicyDef>(tunables: &P::Tunables, run: u64, ms: u64) -> u64 {
    let ops = vec![Op::Run(Dist::Const(run)), Op::Sleep(Dist::Const(ms * MS)), Op::RunForever];
    let log = log::<P>(&workload(vec![(0, ops)]), 1, tunables, P::time(tunables), ms + 20);
    let (at, _) = log.iter().find(|(_, line)| line.starts_with("wake")).expect("it wakes");
    assert_eq!(at % MS, 0, "sleeps end on ticks");
    at / MS
}

fn o1(variant: &str) -> O1Tunables {
    let mut tunables = O1Tunables::default();
    let found = O1::INFO.variants.iter().find(|v| v.name == variant).expect("a variant");
    for (name, value) in found.set {
        tunables.set(name, *value).expect("presets are legal");
    }
    tunables
}

#[test]
fn vectors_48_nanosleep_through_the_simulator() {
    let (spa, o1_2_6_6) = (SpaTunables::default(), o1("2.6.6"));
    for (ms, jiffies) in [(1, 3), (2, 4), (5, 7), (10, 12), (15, 17), (20, 22), (100, 102)] {
        // In the middle of jiffy 5, and right after the tick that begins it.
        for run in [5 * MS + 300_000, 5 * MS] {
            assert_eq!(wakes_at::<Spa>(&spa, run, ms), 5 + jiffies, "{ms} ms under spa");
            assert_eq!(wakes_at::<O1>(&o1_2_6_6, run, ms), 5 + jiffies, "{ms} ms under o1");
        }
    }
}

/// Spec linux-2.6-o1 §4.0: `ceil(d / 1 ms) + 1`.
#[test]
fn nanosleep_of_2_6_0_counts_in_ticks() {
    for variant in ["2.6.0-test1", "2.6.0"] {
        for (ms, jiffies) in [(1, 2), (10, 11), (100, 101)] {
            assert_eq!(wakes_at::<O1>(&o1(variant), 5 * MS + 300_000, ms), 5 + jiffies, "{ms} ms");
        }
    }
}

/// A wake-up on `sleeper_cpu` and the ends of slices of two pairs of hogs fall on 20 ms.
fn at_20_ms(order: TickOrder, sleeper_cpu: u32) -> Vec<String> {
    let sleeper =
        vec![Op::Sleep(Dist::Const(19 * MS)), Op::Run(Dist::Const(MS)), Op::Sleep(Dist::Const(MS))];
    let hog = |cpu| (cpu, vec![Op::RunForever]);
    let tasks = vec![(sleeper_cpu, sleeper), hog(0), hog(0), hog(1), hog(1)];
    let mut tunables = RrTunables::default();
    tunables.set_text("slice", "20ms").expect("legal");
    let timers = TimerBase::Local(SleepUnit::Tick);
    let time = Timekeeping { timers, order, ..Timekeeping::MODERN };
    let log = log::<Rr>(&workload(tasks), 2, &tunables, time, 20);
    log.into_iter().filter(|(at, _)| *at == 20 * MS).map(|(_, line)| line).collect()
}

#[test]
fn tick_order_decides_when_timers_and_schedule_come() {
    use TickOrder::{CpuByCpu, TicksFirst, Together};
    for (order, sleeper_cpu, expected) in [
        (TicksFirst, 0, ["switch 0", "switch 1", "wake 0 on 0"]),
        (TicksFirst, 1, ["switch 0", "switch 1", "wake 0 on 1"]),
        (CpuByCpu, 0, ["wake 0 on 0", "switch 0", "switch 1"]),
        (CpuByCpu, 1, ["switch 0", "wake 0 on 1", "switch 1"]),
        (Together, 0, ["wake 0 on 0", "switch 0", "switch 1"]),
        (Together, 1, ["wake 0 on 1", "switch 0", "switch 1"]),
    ] {
        assert_eq!(at_20_ms(order, sleeper_cpu), expected, "{order:?}, CPU {sleeper_cpu}");
    }
}

/// Timers of one instant fire in the order of arming under 2.6, by task before.
#[test]
fn local_timers_of_one_instant_fire_in_the_order_of_arming() {
    // Both run out at 5 ms; the second was armed first.
    let first = vec![Op::Sleep(Dist::Const(MS)), Op::Sleep(Dist::Const(2 * MS)), Op::RunForever];
    let second = vec![Op::Sleep(Dist::Const(4 * MS)), Op::RunForever];
    let work = workload(vec![(0, first), (0, second)]);
    for (timers, expected) in [
        (TimerBase::Local(SleepUnit::Tick), [TaskId(1), TaskId(0)]),
        (TimerBase::Jiffies, [TaskId(0), TaskId(1)]),
    ] {
        let time = Timekeeping { timers, ..Timekeeping::MODERN };
        let log = log::<Fifo>(&work, 1, &FifoTunables::default(), time, 6);
        let woken = log.iter().filter(|(at, line)| *at == 5 * MS && line.starts_with("wake"));
        let woken: Vec<String> = woken.map(|(_, line)| line.clone()).collect();
        assert_eq!(woken, expected.map(|task| format!("wake {task} on 0")), "{timers:?}");
    }
}

/// Spec linux-2.6-o1 §4.0: a device interrupt due at a tick comes before the one `schedule`.
#[test]
fn device_due_at_a_tick_comes_before_schedule() {
    let waiter = vec![Op::Disk(Dist::Const(20 * MS)), Op::RunForever];
    let hog = || (0, vec![Op::RunForever]);
    let work = workload(vec![(0, waiter), hog(), hog()]);
    let mut tunables = RrTunables::default();
    tunables.set_text("slice", "20ms").expect("legal");
    for (order, expected) in [
        (TickOrder::TicksFirst, ["switch 0", "wake 0 on 0"]),
        (TickOrder::CpuByCpu, ["wake 0 on 0", "switch 0"]),
        (TickOrder::Together, ["wake 0 on 0", "switch 0"]),
    ] {
        let timers = TimerBase::Local(SleepUnit::Tick);
        let time = Timekeeping { timers, order, ..Timekeeping::MODERN };
        let log = log::<Rr>(&work, 1, &tunables, time, 20);
        let lines = log.iter().filter(|(at, _)| *at == 20 * MS).map(|(_, line)| line.as_str());
        assert_eq!(lines.collect::<Vec<_>>(), expected, "{order:?}");
    }
}

/// Idle CPUs whose only event of an instant is a timer react to it.
#[test]
fn together_ends_the_interrupts_of_idle_cpus() {
    let sleeper = |ms: u64| vec![Op::Sleep(Dist::Const(ms * MS)), Op::Run(Dist::Const(MS))];
    let work = workload((0..4).map(|cpu| (cpu, sleeper(u64::from(cpu) + 3))).collect());
    let time = Timekeeping { order: TickOrder::Together, ..Timekeeping::MODERN };
    let log = log::<Fifo>(&work, 4, &FifoTunables::default(), time, 10);
    let switches = log.iter().filter(|(_, line)| line.starts_with("switch")).count();
    // Each task starts, sleeps, runs and exits.
    assert_eq!(switches, 16);
}
