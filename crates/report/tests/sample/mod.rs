// SPDX-License-Identifier: GPL-2.0-only
//! A hand-made comparison: an audio task and hogs under policies that differ in wake-up latency.

use schedlab_lab::result::{Comparison, HostInfo, MachineInfo, RunResult, Setting, WorkloadInfo};
use schedlab_metrics::{Config, MarkLabel, Metrics, RowId, RowLabel, RunFigures};
use schedlab_policy_api::{
    CpuMode, Observer, Overhead, PrevState, SchedClass, SchedEvent, Tunable, TunableUnit,
};
use schedlab_units::{CpuId, Hz, Nice, Rng, TaskId, Time};

static TUNABLES: [Tunable; 2] = [
    Tunable {
        name: "base_slice",
        doc: "",
        unit: TunableUnit::Ns,
        default: 3_000_000,
        min: 100_000,
        max: 1_000_000_000,
        source: "",
    },
    Tunable {
        name: "run_to_parity",
        doc: "",
        unit: TunableUnit::Flag,
        default: 1,
        min: 0,
        max: 1,
        source: "",
    },
];

const POLICIES: [(&str, &str, u32, u64); 3] =
    [("goodness", "2.4.5", 100, 41), ("eevdf", "6.12", 1000, 2), ("fifo", "", 1000, 90)];

/// What to make up.
pub(crate) struct Sample {
    n_policies: usize,
    n_seeds: u64,
    n_hogs: u32,
}

impl Sample {
    pub(crate) fn new(n_policies: usize) -> Self {
        Self { n_policies, n_seeds: 1, n_hogs: 2 }
    }
    pub(crate) fn seeds(mut self, n_seeds: u64) -> Self {
        self.n_seeds = n_seeds;
        self
    }
    pub(crate) fn tasks(mut self, n_hogs: u32) -> Self {
        self.n_hogs = n_hogs;
        self
    }

    pub(crate) fn comparison(&self) -> Comparison {
        let runs = POLICIES[..self.n_policies].iter().enumerate().flat_map(|(column, policy)| {
            (1..=self.n_seeds).map(move |seed| self.run(column, *policy, seed))
        });
        Comparison {
            workload: WorkloadInfo {
                name: "audio-vs-hogs".to_string(),
                about: "periodic audio beside endless computation".to_string(),
                digest: "00c0ffee00c0ffee".to_string(),
                parameters: vec![
                    ("hogs".to_string(), self.n_hogs.to_string()),
                    ("period".to_string(), "10ms".to_string()),
                ],
                table: None,
                notes: vec!["made up by a test".to_string()],
            },
            machine: MachineInfo {
                cpus: 1,
                nodes: 1,
                llcs_per_node: 1,
                cores_per_llc: 1,
                threads_per_core: 1,
                cost: "default".to_string(),
            },
            runs: runs.collect(),
            host: HostInfo { wall_ns: 123_456_789, events_per_s: 4_000_000 },
        }
    }

    fn run(&self, column: usize, policy: (&str, &str, u32, u64), seed: u64) -> RunResult {
        let (name, variant, hz, latency_ms_max) = policy;
        let (figures, events) = self.figures(latency_ms_max * 1_000_000, seed + 10 * column as u64);
        let settings = if name == "eevdf" {
            let setting = |i: usize, chosen| Setting {
                tunable: &TUNABLES[i],
                value: TUNABLES[i].default,
                chosen,
            };
            vec![setting(0, true), setting(1, false)]
        } else {
            Vec::new()
        };
        RunResult {
            column,
            policy: name.to_string(),
            variant: variant.to_string(),
            settings,
            hz: Hz::new(hz),
            seed,
            fingerprint: 0x0123_4567_89ab_cdef ^ seed,
            events,
            complete: true,
            figures,
            policy_stats: if name == "goodness" {
                vec![("recalculations".to_string(), 17)]
            } else {
                Vec::new()
            },
        }
    }

    /// Every 10 ms the audio task wakes, gets the CPU after a random delay, and works for 1 ms.
    fn figures(&self, latency_max: u64, seed: u64) -> (RunFigures, u64) {
        let label = |name: String, group: &str, nice| RowLabel {
            name,
            group: group.to_string(),
            nice: Nice::clamped(nice),
            class: SchedClass::Normal,
        };
        let mut rows = vec![label("audio".to_string(), "audio", -5)];
        rows.extend((0..self.n_hogs).map(|hog| label(format!("hog-{hog}"), "hogs", 0)));
        let n_tasks = rows.len();
        let mark =
            |name: &str, unit: &str| MarkLabel { name: name.to_string(), unit: unit.to_string() };
        let marks = vec![mark("frame", "frames"), mark("answer", "answers")];
        let config = Config { n_cpus: 1, n_tasks, rows, marks, warmup: Time::ZERO };
        let mut stream = Stream { metrics: Metrics::new(config), now: 0, events: 0 };
        for task in 0..n_tasks as u32 {
            stream.emit(SchedEvent::ProcessFork { task: TaskId(task), parent: None });
            stream.metrics.bind(TaskId(task), RowId(task));
            stream.emit(SchedEvent::WakeupNew { task: TaskId(task), cpu: CpuId(0) });
        }
        stream.switch(None, PrevState::Preempted, Some(0));
        stream.mode(CpuMode::Busy);
        stream.run(400, latency_max, self.n_hogs, seed);
        let end = Time::from_ns(stream.now);
        (stream.metrics.finish(end), stream.events)
    }
}

struct Stream {
    metrics: Metrics,
    now: u64,
    events: u64,
}

impl Stream {
    fn emit(&mut self, event: SchedEvent) {
        self.events += 1;
        self.metrics.event(Time::from_ns(self.now), &event);
    }
    fn mode(&mut self, mode: CpuMode) {
        self.emit(SchedEvent::CpuMode { cpu: CpuId(0), mode });
    }
    fn switch(&mut self, prev: Option<u32>, prev_state: PrevState, next: Option<u32>) {
        self.mode(CpuMode::Overhead(Overhead::Switch));
        let (prev, next) = (prev.map(TaskId), next.map(TaskId));
        self.emit(SchedEvent::Switch { cpu: CpuId(0), prev, prev_state, next });
    }
    fn run(&mut self, n_rounds: u64, latency_max: u64, n_hogs: u32, seed: u64) {
        let audio = TaskId(0);
        let mut rng = Rng::stream(seed, "audio", 0);
        for round in 0..n_rounds {
            let hog = 1 + round as u32 % n_hogs;
            self.now += 1_000_000;
            self.emit(SchedEvent::MarkCount { task: audio, mark: 0, n: 1 });
            let due = self.now + 100_000 - rng.below(200_000).min(self.now);
            self.emit(SchedEvent::Deadline { task: audio, due: Time::from_ns(due) });
            self.switch(Some(0), PrevState::Sleeping, Some(hog));
            self.now += 2_000;
            self.mode(CpuMode::Busy);
            self.now += 9_000_000;
            let waking = SchedEvent::Waking {
                task: audio,
                waker: None,
                this_cpu: CpuId(0),
                target: CpuId(0),
            };
            self.emit(waking);
            self.emit(SchedEvent::Wakeup { task: audio, cpu: CpuId(0) });
            let latency = 1_500 + rng.below(latency_max);
            self.now += latency;
            self.emit(SchedEvent::MarkLatency { task: audio, mark: 1, ns: latency });
            self.switch(Some(hog), PrevState::Preempted, Some(0));
            self.now += 2_000;
            self.mode(CpuMode::Busy);
        }
    }
}
