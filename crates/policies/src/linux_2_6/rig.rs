// SPDX-License-Identifier: GPL-2.0-only
//! Machines around the policies of 2.6 for tests: one to be driven by hand, and workload W1 of spec
//! linux-2.6-spa §7, a sleeper beside a hog.

use alloc::format;
use alloc::vec::Vec;

use schedlab_kcore::{Core, CoreConfig, NewTask};
use schedlab_policy_api::{Build, Inspect, NoObserver, PolicyDef, TaskState, Topology, Tunables};
use schedlab_units::{CpuId, Hz, Nanos, Nice, Rng, TaskId, Time};

use crate::csv::rows;

/// The only CPU of a rig for one.
pub(crate) const CPU: CpuId = CpuId(0);

/// A policy whose tasks can be given a sleep average in ns.
pub(crate) trait HasSleepAvg: PolicyDef {
    fn set_sleep_avg(&mut self, task: TaskId, sleep_avg: u64);
}

/// Tunables from a list such as `@2.6.6;time_slice=100ms;bonus=off`; empty = the default variant.
pub(crate) fn tunables<P: PolicyDef>(set: &str) -> P::Tunables {
    let mut tunables = P::Tunables::default();
    for setting in set.split(';').filter(|setting| !setting.is_empty()) {
        if let Some(name) = setting.strip_prefix('@') {
            let variant = P::INFO.variants.iter().find(|v| v.name == name).expect("a variant");
            for (name, value) in variant.set {
                tunables.set(name, *value).expect("presets are legal");
            }
            continue;
        }
        let (name, value) = setting.split_once('=').expect("name=value");
        tunables.set_text(name, value).expect("a legal setting");
    }
    tunables
}

/// Core and policy, with every switch taking no time.
pub(crate) struct Rig<P> {
    pub(crate) core: Core<P, NoObserver>,
    pub(crate) now: Time,
    pub(crate) switches: u64,
}

impl<P: HasSleepAvg> Rig<P> {
    /// `n_cpus` idle CPUs at HZ 1000 and 300 s after the start of the clock.
    pub(crate) fn new(n_cpus: u32, set: &str, check: bool) -> Self {
        Self::on(Topology::flat(n_cpus).expect("a machine"), set, check)
    }
    /// The same with the CPUs of `topo`.
    pub(crate) fn on(topo: Topology, set: &str, check: bool) -> Self {
        let hz = Hz::new(1000);
        let build = Build { topo: &topo, hz, n_tasks: 4 };
        let policy = P::build(&tunables::<P>(set), build);
        let config = CoreConfig { topo, hz, seed: 1, n_tasks: 4, check };
        let now = Time::ZERO + Nanos::from_s(300);
        Self { core: Core::new(policy, NoObserver, config), now, switches: 0 }
    }
    /// Facts of a process with this nice value that starts on CPU 0.
    pub(crate) fn process(&self, nice: i32) -> NewTask {
        let mut new = NewTask::normal(self.core.topo().all(), 1);
        new.nice = Nice::new(nice).expect("a nice value");
        new
    }
    /// Forks a task of the start with this `sleep_avg` in ms; it sleeps until it is woken.
    pub(crate) fn create(&mut self, new: &NewTask, sleep_avg_ms: u64) -> TaskId {
        let task = self.core.fork(self.now, CPU, None, new);
        HasSleepAvg::set_sleep_avg(self.core.policy_mut(), task, sleep_avg_ms * 1_000_000);
        task
    }
    /// Creates a task and wakes it for the first time where it belongs; nobody reacts yet.
    pub(crate) fn start(&mut self, new: &NewTask, sleep_avg_ms: u64) -> TaskId {
        let task = self.create(new, sleep_avg_ms);
        self.core.wake_up_new(self.now, new.cpu, task, None);
        task
    }
    /// Forks and wakes a child of `parent` on its CPU, with its facts.
    pub(crate) fn fork(&mut self, parent: TaskId) -> TaskId {
        let facts = self.core.tasks().get(parent).clone();
        let new = NewTask {
            class: facts.class,
            nice: facts.nice,
            rt_priority: facts.rt_priority,
            affinity: facts.affinity,
            cpu: facts.cpu,
            tgid: facts.tgid,
            mm: facts.mm,
            slice_request_ns: 0,
        };
        let child = self.core.fork(self.now, facts.cpu, Some(parent), &new);
        self.core.wake_up_new(self.now, facts.cpu, child, None);
        child
    }
    /// `schedule` on `cpu`, its switch included.
    pub(crate) fn schedule(&mut self, cpu: CpuId) {
        if self.core.schedule(self.now, cpu).is_real() {
            self.switches += 1;
            self.core.finish_switch(self.now, cpu);
        }
        self.drain();
    }
    /// The current task of `cpu` falls asleep.
    pub(crate) fn block(&mut self, cpu: CpuId, state: TaskState) {
        self.switches += 1;
        self.core.block(self.now, cpu, state);
        self.core.finish_switch(self.now, cpu);
        self.drain();
    }
    /// Everybody who has been asked to calls `schedule`, in index order.
    pub(crate) fn settle(&mut self) {
        for cpu in self.core.topo().cpus() {
            if self.core.need_resched(cpu) {
                self.schedule(cpu);
            }
        }
    }
    /// Forgets requests that were looked at.
    pub(crate) fn drain(&mut self) {
        self.core.clear_resched();
    }
    /// Time goes on by whole milliseconds; every CPU ticks at each, then schedules.
    pub(crate) fn run_ms(&mut self, n: u64) {
        for _ in 0..n {
            self.now = self.now + Nanos::from_ms(1);
            for cpu in self.core.topo().cpus() {
                self.core.tick(self.now, cpu);
            }
            self.settle();
        }
    }
    /// What the policy says of `task` under `name`.
    pub(crate) fn inspect(&self, task: TaskId, name: &str) -> i64 {
        let figures = self.core.inspect(self.now, task);
        figures.iter().find(|(n, _)| *n == name).expect("the policy says so").1
    }
    /// A total of the policy.
    pub(crate) fn stat(&self, name: &str) -> i64 {
        let mut totals = Inspect::new();
        self.core.policy().stats(&mut totals);
        totals.iter().find(|(n, _)| *n == name).expect("the policy says so").1
    }
}

/// Workload W1: a sleeper S beside a hog H, set up as for the golden runs.
pub(crate) struct Pair<P> {
    pub(crate) rig: Rig<P>,
    pub(crate) sleeper: TaskId,
    pub(crate) hog: TaskId,
    pub(crate) bursts: u64,
    start: Time,
    burst: Nanos,
    /// Jiffies of a sleep.
    sleep: u64,
    /// Draws the length of every burst within ±3 %; none = exact bursts.
    jitter: Option<Rng>,
    burst_left: Nanos,
    wakes_at: Option<u64>,
    next_tick: Time,
    /// CPU time of S.
    pub(crate) sleeper_run: Nanos,
    /// CPU time of H.
    pub(crate) hog_run: Nanos,
}

impl<P: HasSleepAvg> Pair<P> {
    /// S with bursts of `burst_us` and sleeps of `sleep_ms`, H, both nice 0 with bonus 8.
    pub(crate) fn new(set: &str, burst_us: u64, sleep_ms: u64, jitter: Option<Rng>) -> Self {
        Self::with_hogs(set, burst_us, sleep_ms, jitter, 1)
    }
    /// The same beside `n_hogs`; what counts as H's CPU time is that of the first.
    pub(crate) fn with_hogs(
        set: &str,
        burst_us: u64,
        sleep_ms: u64,
        jitter: Option<Rng>,
        n_hogs: u32,
    ) -> Self {
        let mut rig = Rig::new(1, set, jitter.is_none());
        let new = rig.process(0);
        let sleeper = rig.start(&new, 816);
        let hog = rig.start(&new, 816);
        (1..n_hogs).for_each(|_| {
            rig.start(&new, 816);
        });
        rig.schedule(CPU);
        let start = rig.now;
        let timers = P::time(&tunables::<P>(set)).timers;
        let sleep = timers.sleep_jiffies(Nanos::from_ms(sleep_ms), Hz::new(1000));
        let mut pair = Self {
            rig,
            sleeper,
            hog,
            bursts: 0,
            start,
            burst: Nanos::from_us(burst_us),
            sleep: sleep.expect("sleeps end on ticks"),
            jitter,
            burst_left: Nanos::ZERO,
            wakes_at: None,
            next_tick: start + Nanos::from_ms(1),
            sleeper_run: Nanos::ZERO,
            hog_run: Nanos::ZERO,
        };
        pair.burst_left = pair.next_burst();
        pair
    }
    fn next_burst(&mut self) -> Nanos {
        let ns = self.burst.as_ns();
        let ns = self.jitter.as_mut().map_or(ns, |rng| rng.range(ns * 97 / 100, ns * 103 / 100));
        Nanos::from_ns(ns)
    }
    /// Goes on to the next tick or the end of a burst; whether the current task changed.
    pub(crate) fn step(&mut self) -> bool {
        let curr = self.rig.core.curr(CPU);
        let mut at = self.next_tick;
        if curr == Some(self.sleeper) {
            at = at.min(self.rig.now + self.burst_left);
        }
        let span = at - self.rig.now;
        if curr == Some(self.sleeper) {
            self.sleeper_run += span;
            self.burst_left -= span;
        } else if curr == Some(self.hog) {
            self.hog_run += span;
        }
        self.rig.now = at;
        if at == self.next_tick {
            self.next_tick = at + Nanos::from_ms(1);
            self.rig.core.tick(at, CPU);
            if self.wakes_at == Some(at.as_ns() / 1_000_000) {
                self.wakes_at = None;
                self.burst_left = self.next_burst();
                self.rig.core.wake(at, CPU, self.sleeper, None, false);
            }
            self.rig.settle();
        }
        if self.burst_left.is_zero() && self.rig.core.curr(CPU) == Some(self.sleeper) {
            self.bursts += 1;
            self.wakes_at = Some(at.as_ns() / 1_000_000 + self.sleep);
            self.rig.block(CPU, TaskState::Sleeping);
        }
        self.rig.core.curr(CPU) != curr
    }
    /// Runs on until `span` after the start, the tick there included.
    pub(crate) fn run_until(&mut self, span: Nanos) {
        while self.next_tick <= self.start + span {
            self.step();
        }
    }
    /// Whether S wants the CPU and does not have it.
    pub(crate) fn sleeper_waits(&self) -> bool {
        self.wakes_at.is_none() && self.rig.core.curr(CPU) != Some(self.sleeper)
    }
    /// Time since the start.
    pub(crate) fn elapsed(&self) -> Nanos {
        self.rig.now - self.start
    }
    /// The figures of the golden runs: CPU time of S and H, switches, bursts, A and credit of S.
    pub(crate) fn golden(&self) -> [i64; 6] {
        [
            self.sleeper_run.as_ns() as i64,
            self.hog_run.as_ns() as i64,
            self.rig.switches as i64,
            self.bursts as i64,
            self.rig.inspect(self.sleeper, "sleep_avg"),
            self.rig.inspect(self.sleeper, "interactive_credit"),
        ]
    }
}

/// The columns of [`Pair::golden`].
pub(crate) const GOLDEN: [&str; 6] =
    ["sleeper_ns", "hog_ns", "switches", "bursts", "sleep_avg", "credit"];

/// The sleeper's share of the CPU time of both in hundredths of a per cent: in the first minute,
/// and, if `long`, in minute 10.
fn shares<P: HasSleepAvg>(
    set: &str,
    burst_ms: u64,
    sleep_ms: u64,
    seed: u64,
    long: bool,
) -> (u64, u64) {
    let rng = Rng::stream(seed, "burst", 0);
    let mut pair = Pair::<P>::new(set, burst_ms * 1000, sleep_ms, Some(rng));
    let used = |pair: &Pair<P>| [pair.sleeper_run, pair.hog_run].map(Nanos::as_ns);
    let share = |before: [u64; 2], after: [u64; 2]| {
        let [sleeper, hog] = [after[0] - before[0], after[1] - before[1]];
        sleeper * 10_000 / (sleeper + hog)
    };
    pair.run_until(Nanos::from_s(60));
    let first = share([0, 0], used(&pair));
    if !long {
        return (first, 0);
    }
    pair.run_until(Nanos::from_s(540));
    let before = used(&pair);
    pair.run_until(Nanos::from_s(600));
    (first, share(before, used(&pair)))
}

const SEEDS: u64 = 14;

/// A percentage with one decimal in hundredths.
fn hundredths(text: &str) -> u64 {
    let (whole, tenths) = text.split_once('.').expect("one decimal");
    100 * whole.parse::<u64>().expect("a number") + 10 * tenths.parse::<u64>().expect("a digit")
}

/// Asserts that `found` lies within `tolerance` of `printed`, or in the range printed.
fn check_share(row: &str, printed: &str, found: u64, tolerance: u64) {
    let (low, high) = match printed.split_once('-') {
        Some((low, high)) => (hundredths(low), hundredths(high)),
        None => (hundredths(printed) - tolerance, hundredths(printed) + tolerance),
    };
    assert!((low..=high).contains(&found), "{row}: {found} is not in {low} to {high}");
}

/// Asserts that the means over 14 seeds are those of the rows `id` of `table`, whose settings come
/// on top of `base`.
pub(crate) fn check_shares<P: HasSleepAvg>(table: &str, id: &str, base: &str) {
    for row in rows(table) {
        if row.text("id") != id {
            continue;
        }
        let (burst, sleep) = (row.get("burst_ms"), row.get("sleep_ms"));
        let name = format!("row {id} ({burst},{sleep}) {}", row.text("set"));
        let long = !row.text("minute10").is_empty();
        let set = format!("{base}{}", row.text("set"));
        let runs: Vec<(u64, u64)> =
            (1..=SEEDS).map(|seed| shares::<P>(&set, burst, sleep, seed, long)).collect();
        let mean = |of: fn(&(u64, u64)) -> u64| runs.iter().map(of).sum::<u64>() / SEEDS;
        check_share(&name, row.text("first"), mean(|run| run.0), row.get("within"));
        if long {
            check_share(&name, row.text("minute10"), mean(|run| run.1), row.get("within"));
        }
    }
}
