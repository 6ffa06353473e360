// SPDX-License-Identifier: GPL-2.0-only
//! Claims C01 to C09 (its share) and C13 of spec bfs §8 on the fork trees of §7.2 and §7.4.

use alloc::vec::Vec;

use schedlab_kcore::NewTask;
use schedlab_policy_api::TaskState;
use schedlab_units::{CpuId, Rng, TaskId};

use super::rig::{DEPTH, Rig};

/// What a task does next.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Computes for so many microseconds.
    Run(u64),
    Compile,
    Forever,
    Fork(&'static [Step]),
    /// Waits for its child.
    Wait,
    /// From the start again.
    Again,
    Exit,
}

use Step::{Again, Compile, Exit, Forever, Fork, Run, Wait};

const CC1: &[Step] = &[Compile, Exit];
const GCC: &[Step] = &[Run(300), Fork(CC1), Wait, Run(200), Exit];
const SH: &[Step] = &[Run(300), Fork(GCC), Wait, Run(200), Exit];
const DRIVER: &[Step] = &[Run(200), Fork(SH), Wait, Again];
const HOG: &[Step] = &[Forever];

/// Middles of the eight equally likely parts of 250·exp(0.6·g) ms, in µs.
const COMPILE_US: [u64; 8] =
    [99_600, 146_800, 186_400, 227_500, 274_700, 335_300, 425_700, 627_600];

struct Job {
    steps: &'static [Step],
    at: usize,
    left_ns: u64,
    parent: Option<TaskId>,
    /// Whether a child has exited that was not waited for.
    child_done: bool,
    waits: bool,
}

/// A machine with programs.
struct Host {
    rig: Rig,
    /// Indexed by task id.
    jobs: Vec<Job>,
    rng: Rng,
    n_exits: u32,
}

impl Host {
    fn new(cpus: u32, set: &str, seed: u64) -> Self {
        let rig = Rig::unchecked(cpus, 1000, set);
        Self { rig, jobs: Vec::new(), rng: Rng::stream(seed, "make", 0), n_exits: 0 }
    }

    fn store(&mut self, task: TaskId, steps: &'static [Step], parent: Option<TaskId>) {
        let job = Job { steps, at: 0, left_ns: 0, parent, child_done: false, waits: false };
        if task.index() < self.jobs.len() {
            self.jobs[task.index()] = job;
        } else {
            self.jobs.push(job);
        }
        self.load(task);
    }

    /// Makes the present step of `task` ready.
    fn load(&mut self, task: TaskId) {
        let job = &mut self.jobs[task.index()];
        if matches!(job.steps[job.at], Again) {
            job.at = 0;
        }
        job.left_ns = match job.steps[job.at] {
            Run(us) => us * 1000,
            Compile => COMPILE_US[self.rng.below(8) as usize] * 1000,
            Forever => u64::MAX,
            _ => 0,
        };
    }

    fn start(&mut self, steps: &'static [Step], depth: i32) -> TaskId {
        let new = self.rig.process();
        let task = self.rig.create(&new, depth);
        self.store(task, steps, None);
        self.rig.wake_new(task);
        self.rig.settle();
        task
    }

    /// The present step of the current task of `cpu` is over, or takes no time.
    fn act(&mut self, cpu: CpuId) {
        let task = self.rig.core.curr(cpu).expect("somebody runs");
        let job = &mut self.jobs[task.index()];
        let step = job.steps[job.at];
        job.at += 1;
        match step {
            Wait if !core::mem::take(&mut job.child_done) => {
                job.at -= 1;
                job.waits = true;
                self.rig.block(cpu.0, TaskState::Sleeping);
            }
            Fork(steps) => {
                self.load(task);
                let process = self.rig.process();
                let new = NewTask { cpu, ..process };
                let child = self.rig.core.fork(self.rig.now, cpu, Some(task), &new);
                self.store(child, steps, Some(task));
                self.rig.core.wake_up_new(self.rig.now, cpu, child, None);
            }
            Exit => self.exit(cpu, task),
            _ => self.load(task),
        }
        self.rig.settle();
    }

    /// The task has left its CPU when its parent is woken.
    fn exit(&mut self, cpu: CpuId, task: TaskId) {
        self.n_exits += 1;
        self.rig.core.exit(self.rig.now, cpu);
        self.rig.core.finish_switch(self.rig.now, cpu);
        self.rig.core.reap(self.rig.now, cpu, task);
        self.rig.settle();
        if let Some(parent) = self.jobs[task.index()].parent {
            let job = &mut self.jobs[parent.index()];
            job.child_done = true;
            if core::mem::take(&mut job.waits) {
                self.rig.wake(cpu.0, parent, false);
            }
        }
    }

    /// Runs until `end_ms` or until so many tasks have exited.
    fn run(&mut self, end_ms: u64, n_exits: u32) {
        while self.n_exits < n_exits {
            let cpus: Vec<CpuId> = self.rig.core.topo().cpus().collect();
            let running: Vec<(u64, CpuId, TaskId)> = cpus
                .into_iter()
                .filter_map(|cpu| self.rig.core.curr(cpu).map(|task| (cpu, task)))
                .map(|(cpu, task)| (self.jobs[task.index()].left_ns, cpu, task))
                .collect();
            let now = self.rig.now.as_ns();
            let next_tick = self.rig.next_tick_ns();
            let first = running.iter().min().copied();
            let span = first.map_or(u64::MAX, |(left, ..)| left).min(next_tick - now);
            for (left, _, task) in &running {
                self.jobs[task.index()].left_ns =
                    if *left == u64::MAX { *left } else { left - span };
            }
            match first {
                Some((left, cpu, _)) if left <= next_tick - now => {
                    debug_assert!(left == span, "its step is over");
                    self.rig.advance_to(now + span);
                    self.act(cpu);
                }
                _ if next_tick > end_ms * 1_000_000 => return,
                _ => self.rig.tick(),
            }
        }
    }

    /// Share of `task` from 2 s to 32 s, in hundredths of a percent.
    fn share(&mut self, task: TaskId) -> u64 {
        self.run(2_000, u32::MAX);
        let before = self.rig.core.task_account(self.rig.now, task).run;
        self.run(32_000, u32::MAX);
        let run = self.rig.core.task_account(self.rig.now, task).run - before;
        run.as_ns() / 3_000_000
    }
}

/// Share of the browser of §7.1, model A, beside `make -jN`.
fn beside_make(set: &str, n: u64, seed: u64) -> u64 {
    let mut host = Host::new(2, set, seed);
    let browser = host.start(HOG, 6);
    for slot in 0..n {
        host.start(DRIVER, 8);
        host.run(2 * (slot + 1), u32::MAX);
    }
    host.share(browser)
}

#[test]
fn claims_c01_to_c08_make() {
    for seed in 1..=3 {
        let off = |n| beside_make("", n, seed);
        let on = |n| beside_make(DEPTH, n, seed);
        let off_2 = off(2);
        assert!((6_200..=7_200).contains(&off_2), "C01: {off_2}");
        let off_24 = off(24);
        assert!((750..=950).contains(&off_24), "C02: {off_24}");
        let off_42 = off(42);
        assert!((430..=550).contains(&off_42), "C03: {off_42}");
        assert!(off(0).abs_diff(on(0)) <= 100, "C04");
        assert!(on(2) >= 9_000, "C05");
        let on_24 = on(24);
        assert!(on_24 >= 8_500 && on_24 >= 8 * off_24, "C06: {on_24}");
        let on_42 = on(42);
        assert!(off(1).abs_diff(on_24) <= 500, "C09: {on_24}");
        assert!((5_800..=8_000).contains(&on_42), "C07: {on_42}");
        assert!(on_42.abs_diff(7_080) <= 150, "C07 as the spec's model has it: {on_42}");
        assert!((85..=125).contains(&(100 * on_42 / off_2)), "C07: {on_42} to {off_2}");
        // C08: the load that hinders as much as two do without the penalty is 20 times as high.
        assert!(on(40) > off_2, "C08");
    }
}

/// C13: a parent that polls for what its child does; milliseconds from fork to completion.
#[test]
fn claim_c13_one_process_runs_first() {
    const PARENT_2: &[Step] = &[Run(50_000), Fork(&[Run(2_000), Exit]), Forever];
    const PARENT_20: &[Step] = &[Run(50_000), Fork(&[Run(20_000), Exit]), Forever];
    const PARENT_60: &[Step] = &[Run(50_000), Fork(&[Run(60_000), Exit]), Forever];
    let took = |cpus, parent, set| {
        let mut host = Host::new(cpus, set, 1);
        host.start(parent, 6);
        host.run(10_000, 1);
        host.rig.now.as_ns() / 1_000_000 - 50
    };
    for (parent, set, ms) in [
        (PARENT_20, DEPTH, 104),
        (PARENT_20, "", 34),
        (PARENT_60, DEPTH, 396),
        (PARENT_60, "", 116),
    ] {
        assert_eq!(took(1, parent, set), ms, "{set}");
    }
    assert_eq!(took(1, PARENT_2, DEPTH), took(1, PARENT_2, ""), "too short to expire");
    assert_eq!(took(2, PARENT_60, DEPTH), 60, "a CPU is idle");
    assert_eq!(took(2, PARENT_60, ""), 60, "a CPU is idle");
}
