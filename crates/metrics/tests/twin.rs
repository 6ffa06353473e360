// SPDX-License-Identifier: GPL-2.0-only
//! Random legal event streams through [`Metrics`] and through a naive twin that keeps every
//! interval and every sample.

use proptest::prelude::*;
use schedlab_metrics::{Config, Figures, Metrics, RowId, RowLabel, RunFigures, Summary};
use schedlab_policy_api::{CpuMode, Observer, Overhead, PrevState, SchedClass, SchedEvent};
use schedlab_units::{CpuId, Nice, Rng, TaskId, Time};

const N_CPUS: usize = 3;
const N_ROWS: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Doing {
    Sleep,
    Wait { woken: bool },
    Run,
    Dead,
}

/// One interval of a life.
struct Span {
    row: usize,
    doing: Doing,
    from: u64,
    to: u64,
    closed: bool,
}

/// A machine that does legal things at random, and remembers them all.
struct World {
    rng: Rng,
    now: u64,
    tasks: Vec<(Doing, u64, usize)>,
    curr: [Option<usize>; N_CPUS],
    modes: [(CpuMode, u64); N_CPUS],
    spans: Vec<Span>,
    mode_spans: Vec<(usize, CpuMode, u64, u64)>,
    switches: u64,
}

impl World {
    fn new(seed: u64) -> Self {
        Self {
            rng: Rng::stream(seed, "world", 0),
            now: 0,
            tasks: Vec::new(),
            curr: [None; N_CPUS],
            modes: [(CpuMode::Idle, 0); N_CPUS],
            spans: Vec::new(),
            mode_spans: Vec::new(),
            switches: 0,
        }
    }

    fn below(&mut self, n: usize) -> usize {
        self.rng.below(n as u64) as usize
    }

    fn enter(&mut self, task: usize, doing: Doing) {
        let (was, since, row) = self.tasks[task];
        self.spans.push(Span { row, doing: was, from: since, to: self.now, closed: true });
        self.tasks[task] = (doing, self.now, row);
    }

    fn any(&mut self, wanted: impl Fn(Doing) -> bool) -> Option<usize> {
        let all: Vec<usize> = (0..self.tasks.len()).filter(|t| wanted(self.tasks[*t].0)).collect();
        if all.is_empty() { None } else { Some(all[self.below(all.len())]) }
    }

    fn step(&mut self, metrics: &mut Metrics, warmup: u64) {
        self.now += [0, 1, 40, 3_000, 1_000_000][self.below(5)] * self.rng.below(100);
        let now = Time::from_ns(self.now);
        match self.below(12) {
            0 => {
                let row = self.below(N_ROWS);
                let slot = self.any(|d| d == Doing::Dead).unwrap_or(self.tasks.len());
                let task = TaskId(slot as u32);
                metrics.event(now, &SchedEvent::ProcessFork { task, parent: None });
                metrics.bind(task, RowId(row as u32));
                let fresh = (Doing::Sleep, self.now, row);
                if slot == self.tasks.len() {
                    self.tasks.push(fresh);
                } else {
                    self.tasks[slot] = fresh;
                }
            }
            1..=4 => {
                let Some(slot) = self.any(|d| d == Doing::Sleep) else { return };
                let (task, cpu) = (TaskId(slot as u32), CpuId(0));
                if self.rng.below(4) == 0 {
                    metrics.event(now, &SchedEvent::WakeupNew { task, cpu });
                    self.enter(slot, Doing::Wait { woken: false });
                } else {
                    let waking =
                        SchedEvent::Waking { task, waker: None, this_cpu: cpu, target: cpu };
                    metrics.event(now, &waking);
                    metrics.event(now, &SchedEvent::Wakeup { task, cpu });
                    self.enter(slot, Doing::Wait { woken: true });
                }
            }
            5..=9 => self.schedule(metrics, now, warmup),
            _ => {
                let cpu = self.below(N_CPUS);
                let mode = match self.below(3) {
                    0 => CpuMode::Idle,
                    1 => CpuMode::Busy,
                    _ => CpuMode::Overhead(Overhead::Switch),
                };
                metrics.event(now, &SchedEvent::CpuMode { cpu: CpuId(cpu as u32), mode });
                let (was, since) = std::mem::replace(&mut self.modes[cpu], (mode, self.now));
                self.mode_spans.push((cpu, was, since, self.now));
            }
        }
    }

    fn schedule(&mut self, metrics: &mut Metrics, now: Time, warmup: u64) {
        let cpu = self.below(N_CPUS);
        let next = self.any(|d| matches!(d, Doing::Wait { .. }));
        let prev = self.curr[cpu];
        if prev.is_none() && next.is_none() {
            return;
        }
        let (state, doing) = match self.below(4) {
            0 => (PrevState::Preempted, Doing::Wait { woken: false }),
            1 => (PrevState::Sleeping, Doing::Sleep),
            2 => (PrevState::Uninterruptible, Doing::Sleep),
            _ => (PrevState::Zombie, Doing::Dead),
        };
        let id = |t: Option<usize>| t.map(|t| TaskId(t as u32));
        let prev_state = if prev.is_some() { state } else { PrevState::Preempted };
        let switch = SchedEvent::Switch {
            cpu: CpuId(cpu as u32),
            prev: id(prev),
            prev_state,
            next: id(next),
        };
        if let (PrevState::Zombie, Some(task)) = (prev_state, id(prev)) {
            metrics.event(now, &SchedEvent::ProcessExit { task, cpu: CpuId(cpu as u32) });
        }
        metrics.event(now, &switch);
        self.switches += u64::from(self.now >= warmup);
        if let Some(prev) = prev {
            self.enter(prev, doing);
        }
        if let Some(next) = next {
            self.enter(next, Doing::Run);
        }
        self.curr[cpu] = next;
    }

    fn close(&mut self) {
        for (doing, since, row) in self.tasks.clone() {
            let span = Span { row, doing, from: since, to: self.now, closed: false };
            self.spans.push(span);
        }
        for (cpu, (mode, since)) in self.modes.into_iter().enumerate() {
            self.mode_spans.push((cpu, mode, since, self.now));
        }
    }
}

fn check_summary(name: &str, got: Option<Summary>, mut samples: Vec<u64>) {
    samples.sort_unstable();
    let Some(got) = got else {
        assert!(samples.is_empty(), "{name}: {} samples are missing", samples.len());
        return;
    };
    let rank = |per_mille: usize| samples[(samples.len() * per_mille).div_ceil(1000) - 1];
    assert_eq!(got.count, samples.len() as u64, "{name}");
    assert_eq!((got.min, got.max), (samples[0], samples[samples.len() - 1]), "{name}");
    for (per_mille, value) in [(500, got.p50), (900, got.p90), (990, got.p99), (999, got.p99_9)] {
        let exact = rank(per_mille);
        assert!(value.abs_diff(exact) <= exact / 128, "{name}: {value} against {exact}");
    }
}

/// Compares the figures of the rows `rows` with their intervals.
fn check_figures(name: &str, got: &Figures, world: &World, warmup: u64, rows: &[usize]) {
    let mine: Vec<&Span> = world.spans.iter().filter(|s| rows.contains(&s.row)).collect();
    let cut = |s: &Span| s.to.saturating_sub(s.from.max(warmup));
    let sum = |wanted: &dyn Fn(Doing) -> bool| -> u64 {
        mine.iter().filter(|s| wanted(s.doing)).map(|s| cut(s)).sum()
    };
    let is_wait = |d| matches!(d, Doing::Wait { .. });
    assert_eq!(got.run.as_ns(), sum(&|d| d == Doing::Run), "{name} run");
    assert_eq!(got.wait.as_ns(), sum(&is_wait), "{name} wait");
    assert_eq!(got.sleep.as_ns(), sum(&|d| d == Doing::Sleep), "{name} sleep");
    assert_eq!(got.life, got.run + got.wait + got.sleep, "{name} life");
    let waits = || mine.iter().filter(|s| is_wait(s.doing) && s.to >= warmup);
    assert_eq!(got.longest_wait.as_ns(), waits().map(|s| cut(s)).max().unwrap_or(0), "{name}");
    let finished: Vec<u64> = waits().filter(|s| s.closed).map(|s| cut(s)).collect();
    check_summary(name, got.run_delay, finished);
    let woken = |s: &&&Span| s.doing == Doing::Wait { woken: true } && s.from >= warmup;
    assert_eq!(got.wakeups, waits().filter(woken).count() as u64, "{name} wakeups");
    let latencies = waits().filter(woken).filter(|s| s.closed).map(|s| cut(s)).collect();
    check_summary(name, got.wakeup_latency, latencies);
}

fn run(seed: u64, steps: usize, warmup: u64) -> (World, RunFigures) {
    let label = |row: usize| RowLabel {
        name: format!("row-{row}"),
        group: format!("group-{}", row % 2),
        nice: Nice::ZERO,
        class: SchedClass::Normal,
    };
    let mut metrics = Metrics::new(Config {
        n_cpus: N_CPUS,
        n_tasks: 1,
        rows: (0..N_ROWS).map(label).collect(),
        marks: Vec::new(),
        warmup: Time::from_ns(warmup),
    });
    let mut world = World::new(seed);
    for _ in 0..steps {
        world.step(&mut metrics, warmup);
    }
    world.now = world.now.max(warmup) + 17;
    let figures = metrics.finish(Time::from_ns(world.now));
    world.close();
    (world, figures)
}

proptest! {
    #[test]
    fn figures_agree_with_all_intervals(seed in any::<u64>(), steps in 0usize..600, warmup in 0u64..2_000_000_000) {
        let warmup = if seed % 3 == 0 { 0 } else { warmup };
        let (world, figures) = run(seed, steps, warmup);
        for (row, task) in figures.tasks.iter().enumerate() {
            check_figures(&task.name, &task.figures, &world, warmup, &[row]);
        }
        for group in &figures.groups {
            let odd = usize::from(group.name == "group-1");
            check_figures(&group.name, &group.figures, &world, warmup, &[odd, odd + 2]);
        }
        prop_assert_eq!(figures.totals.context_switches, world.switches);
        for (index, cpu) in figures.cpus.iter().enumerate() {
            let sum = |mode| -> u64 {
                let mine = world.mode_spans.iter().filter(|s| s.0 == index && s.1 == mode);
                mine.map(|s| s.3.saturating_sub(s.2.max(warmup))).sum()
            };
            prop_assert_eq!(cpu.busy.as_ns(), sum(CpuMode::Busy));
            prop_assert_eq!(cpu.idle.as_ns(), sum(CpuMode::Idle));
            prop_assert_eq!(cpu.overhead().as_ns(), sum(CpuMode::Overhead(Overhead::Switch)));
            prop_assert_eq!(cpu.busy + cpu.idle + cpu.overhead(), figures.elapsed);
        }
    }
}
