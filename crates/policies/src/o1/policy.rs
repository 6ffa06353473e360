// SPDX-License-Identifier: GPL-2.0-only
//! The policy's state and its hooks; what is longer than a few lines lies beside.

use alloc::string::String;
use alloc::vec::Vec;

use schedlab_policy_api::{
    Build, Change, Company, Ctx, Dequeue, Enqueue, Idle, Inspect, Policy, PolicyDef, PolicyInfo,
    SleepUnit, Starvation, SyncWakes, TaskState, TickOrder, TickPhase, Timekeeping, TimerBase,
    Tunables, View, Wake, WorkConservation,
};
use schedlab_units::{CpuId, Hz, Nanos, Nice, TaskId};

use super::credit::Sleeper;
use super::prio::{effective_prio, timeslice};
use super::prio_array::{MAX_PRIO, PrioArrays};
use super::task::TaskData;
use super::tunables::{Clock, Knobs, O1Tunables, VARIANTS};
use super::{credit, g3, linux_2_6_6, test1};
use crate::linux_2_6::sleep_avg::Activated;

/// The O(1) scheduler of Linux 2.6 before the fair ones.
///
/// FIFO and RR live in the same arrays, at the hundred best priorities; BATCH, IDLE and ISO count
/// as SCHED_NORMAL, since the kernels modelled had no other class. A running task stays on its
/// list.
pub struct O1 {
    pub(super) knobs: Knobs,
    /// Indexed by task id.
    pub(super) tasks: Vec<TaskData>,
    /// Two for each CPU.
    pub(super) arrays: PrioArrays,
    pub(super) rqs: Vec<RunQueue>,
    /// Chazarain's list of waiting tasks: one for each CPU, priority 0 throughout.
    pub(super) waiting: PrioArrays,
    pub(super) stats: Stats,
}

/// What each CPU has beside its arrays (`struct runqueue`).
#[derive(Clone, Debug)]
pub(super) struct RunQueue {
    /// Which of the CPU's two arrays is the active one, 0 or 1.
    pub(super) active: usize,
    /// The current task included.
    pub(super) nr_running: u32,
    /// Jiffies, 0 = unset.
    pub(super) expired_timestamp: u64,
    /// Best static priority that has joined the expired array since the arrays last changed places;
    /// `MAX_PRIO` = none.
    pub(super) best_expired_prio: u8,
    /// The last tick in ns, an `unsigned long`.
    pub(super) timestamp_last_tick: u64,
    /// What this CPU saw of each CPU when it last balanced.
    pub(super) prev_cpu_load: Vec<u32>,
    /// Decaying load of each node as this CPU saw it.
    pub(super) prev_node_load: Vec<u32>,
}

/// Totals since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stats {
    /// Swaps of active and expired.
    pub(super) array_switches: i64,
    /// Ends of slices that led to the expired array.
    pub(super) expirations: i64,
    /// Those of them that befell interactive tasks, since others starved.
    pub(super) starved_expirations: i64,
    /// Ends of slices that led back to the active array.
    pub(super) reinsertions: i64,
    /// Moves behind equals within a slice.
    pub(super) granularity_requeues: i64,
    /// Tasks that balancing asked for.
    pub(super) pulls: i64,
    /// Sleep credited at wake-ups under `clock=tick`, in ticks, before the average is cut at its
    /// maximum.
    pub(super) credited_ticks: i64,
}

impl PolicyDef for O1 {
    type Tunables = O1Tunables;
    const INFO: PolicyInfo = PolicyInfo {
        name: "o1",
        about: "Linux 2.6 O(1): active and expired arrays, sleep average, interactivity bonus",
        variants: VARIANTS,
        tunables: O1Tunables::SPECS,
        time: Timekeeping {
            hz: Hz::new(1000),
            phase: TickPhase::Aligned,
            timers: TimerBase::Local(SleepUnit::Tick),
            order: TickOrder::CpuByCpu,
            sync: SyncWakes::MidOperation,
        },
        work_conserving: WorkConservation::Unbounded(
            "a woken task waits for its last CPU however idle others are; an idle CPU looks for \
             work once and then at each tick, on other nodes every 5 ms; it takes one task of the \
             busiest CPU, and none if all that wait there count as cache-hot, which all but 2.6.0 \
             ask of idle CPUs; a synchronous wake-up on an idle CPU that the waker's CPU may not \
             take over goes unnoticed (spec linux-2.6-o1 §4.3, §4.10)",
        ),
        starvation: Starvation {
            bound: Some(
                "hogs go to the expired array after each slice, so that everybody has one before \
                 the arrays swap",
            ),
            except: Some(
                "beside tasks that sleep: interactive ones rejoin the active array until \
                 starvation is noticed, which takes an expired task; test-starve and irman2 live \
                 on that (spec linux-2.6-o1 §6.3, §6.4, §7.1, §7.2)",
            ),
        },
    };
    fn time(tunables: &O1Tunables) -> Timekeeping {
        match tunables.timekeeping {
            0 => Self::INFO.time,
            _ => linux_2_6_6::TIME,
        }
    }
    fn build(tunables: &O1Tunables, build: Build<'_>) -> Self {
        let n_cpus = build.topo.n_cpus();
        let knobs = Knobs::new(tunables, n_cpus, build.hz);
        let rq = RunQueue {
            active: 0,
            nr_running: 0,
            expired_timestamp: 0,
            best_expired_prio: MAX_PRIO as u8,
            timestamp_last_tick: 0,
            prev_cpu_load: alloc::vec![0; n_cpus],
            prev_node_load: alloc::vec![0; build.topo.nodes() as usize],
        };
        let n_lists = if knobs.starvation_list { n_cpus } else { 0 };
        Self {
            knobs,
            tasks: Vec::with_capacity(build.n_tasks),
            arrays: PrioArrays::new(2 * n_cpus, build.n_tasks),
            rqs: alloc::vec![rq; n_cpus],
            waiting: PrioArrays::new(n_lists, build.n_tasks),
            stats: Stats::default(),
        }
    }
}

impl O1 {
    /// Gives `task` this sleep average, in ticks or ns as `clock` says, and the priority that goes
    /// with it; for vectors and imported states.
    ///
    /// # Panics
    /// When the task was never forked or `sleep_avg` is above the maximum.
    pub fn set_sleep_avg(&mut self, task: TaskId, sleep_avg: u64) {
        let max = self.knobs.max_sleep_avg;
        assert!(sleep_avg <= max, "a sleep average is at most {max}, not {sleep_avg}");
        let array = self.arrays.array_of(task);
        if array.is_some() {
            self.arrays.dequeue(task);
        }
        let data = &mut self.tasks[task.index()];
        data.avg.sleep_avg = sleep_avg;
        data.prio = effective_prio(data, &self.knobs);
        if let Some(array) = array {
            self.arrays.enqueue(task, array, data.prio);
        }
    }

    /// The active array of `cpu`.
    #[inline]
    pub(super) fn active(&self, cpu: CpuId) -> usize {
        2 * cpu.index() + self.rqs[cpu.index()].active
    }

    /// The expired array of `cpu`.
    #[inline]
    pub(super) fn expired(&self, cpu: CpuId) -> usize {
        2 * cpu.index() + 1 - self.rqs[cpu.index()].active
    }

    /// Appends `task` to the list of its priority in `array`.
    pub(super) fn append(&mut self, task: TaskId, array: usize) {
        self.arrays.enqueue(task, array, self.tasks[task.index()].prio);
    }

    /// Moves `task` to the tail of the list of its present priority in the array it is on.
    pub(super) fn requeue(&mut self, task: TaskId) {
        if let Some(array) = self.arrays.array_of(task) {
            self.arrays.dequeue(task);
            self.append(task, array);
        }
    }

    /// Whether `task` should run instead of the current task of `cpu`.
    ///
    /// Source: G3 `sched.c` `TASK_PREEMPTS_CURR`; spec §4.3, §4.10 step 6, §5.2.
    fn preempts(&self, cx: &Ctx<'_>, cpu: CpuId, task: TaskId, wake: Wake) -> bool {
        let Some(curr) = cx.curr(cpu) else { return true };
        let (task, curr) = (&self.tasks[task.index()], &self.tasks[curr.index()]);
        if task.prio != curr.prio {
            return task.prio < curr.prio;
        }
        let (left, curr_left) = (task.time_slice, curr.time_slice);
        let test1_pull = wake == Wake::Migrate && self.knobs.clock == Clock::Tick;
        (test1_pull && test1::pulled_equal_preempts(left, curr_left))
            || (self.knobs.equal_preempt && g3::equal_preempts(left, curr_left))
    }

    /// Credits the sleep of a task just enqueued at its old priority, and puts it where it belongs.
    ///
    /// Source: 2.6.0-test1 `sched.c` `activate_task`; spec §4.3.
    pub(super) fn activate(&mut self, cx: &Ctx<'_>, task: TaskId, by_interrupt: bool) {
        let knobs = &self.knobs;
        let data = &mut self.tasks[task.index()];
        let (old, now) = (data.prio, cx.now.as_ns());
        match knobs.clock {
            Clock::Tick if knobs.interruptible_only_credit && data.uninterruptible => {}
            Clock::Tick => {
                self.stats.credited_ticks += test1::activate(data, cx.jiffies.0, knobs);
            }
            Clock::Ns => g3::activate(data, now, by_interrupt, knobs),
            Clock::NsCredit => {
                credit::activate(data, now, by_interrupt, Sleeper::of(cx.tasks.get(task)), knobs);
            }
        }
        if data.prio != old {
            self.requeue(task);
        }
    }

    /// A wake-up, after `enqueue` has put the task on the active array at its old priority.
    ///
    /// Source: 2.6.0-test1 `sched.c` `try_to_wake_up`; spec §4.3, §5.7.
    fn wake_up(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId, wake: Wake) {
        let Wake::Wakeup { waker, sync } = wake else { return };
        let here = cpu == cx.this_cpu;
        if self.knobs.clock == Clock::NsCredit && self.tasks[task.index()].uninterruptible {
            self.tasks[task.index()].avg.activated = Activated::Uninterruptible;
        }
        if sync && (here || self.knobs.clock != Clock::NsCredit) {
            // The kernel would have waited for the switch away from the task and then taken it to
            // this CPU; left behind on a CPU that goes idle, nobody would look at it.
            let left_behind = !here && cx.tasks.get(task).on_cpu;
            if left_behind && cx.curr(cpu).is_none() {
                cx.resched(cpu);
            }
            return;
        }
        self.activate(cx, task, waker.is_none());
        if self.preempts(cx, cpu, task, wake) {
            cx.resched(cpu);
        }
    }
}

impl Policy for O1 {
    fn enqueue(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId, why: Enqueue) {
        self.rqs[cpu.index()].nr_running += 1;
        match why {
            Enqueue::New => self.wake_up_forked(cx, cpu, task),
            Enqueue::Wakeup | Enqueue::Migrate => self.append(task, self.active(cpu)),
            Enqueue::Restore => unreachable!("changes leave tasks on their queues"),
        }
        if why == Enqueue::Migrate {
            self.arrive(cx, task);
        } else {
            self.track_waiting(cpu, task, cx.jiffies.0);
        }
    }

    fn dequeue(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId, why: Dequeue) {
        self.rqs[cpu.index()].nr_running -= 1;
        self.arrays.dequeue(task);
        let state = cx.tasks.get(task).state;
        self.tasks[task.index()].uninterruptible = state == TaskState::Uninterruptible;
        if why == Dequeue::Exit {
            self.untrack(task);
        }
    }

    fn pick_next(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) -> Option<TaskId> {
        self.schedule(cx, cpu)
    }

    /// The last CPU, or the waker's own if the waker is about to sleep. No idle CPU is searched.
    ///
    /// Source: 2.6.0-test1 `sched.c` `try_to_wake_up`, `wake_up_forked_process`; spec §4.2, §4.3.
    fn select_cpu(&mut self, cx: &mut Ctx<'_>, task: TaskId, wake: Wake) -> CpuId {
        let facts = cx.tasks.get(task);
        let comes_here = match wake {
            Wake::Wakeup { sync, .. } => sync && facts.affinity.contains(cx.this_cpu),
            Wake::Fork => facts.parent.is_some(),
            Wake::Exec => return self.best_cpu_for_exec(cx, task),
            Wake::Migrate => false,
        };
        if comes_here { cx.this_cpu } else { facts.cpu }
    }

    fn wakeup_preempt(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, woken: TaskId, wake: Wake) {
        match wake {
            Wake::Wakeup { .. } => self.wake_up(cx, cpu, woken, wake),
            // `do_fork` lets the child, which stands before its parent, run first.
            Wake::Fork if cx.tasks.get(woken).parent.is_some() && cpu == cx.this_cpu => {
                cx.resched(cpu);
            }
            Wake::Fork | Wake::Migrate => {
                if self.preempts(cx, cpu, woken, wake) {
                    cx.resched(cpu);
                }
                if wake == Wake::Migrate {
                    self.date_arrival(cpu, woken);
                }
            }
            Wake::Exec => {}
        }
    }

    fn tick(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) {
        self.scheduler_tick(cx, cpu);
    }

    /// Source: 2.6.0-test1 `sched.c` `sys_sched_yield`; spec §4.7.
    fn yield_task(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, curr: TaskId) {
        if self.tasks[curr.index()].is_rt() {
            self.requeue(curr);
        } else {
            self.arrays.dequeue(curr);
            self.append(curr, self.expired(cpu));
        }
        cx.resched(cpu);
    }

    fn task_fork(&mut self, cx: &mut Ctx<'_>, child: TaskId, parent: Option<TaskId>) {
        let mut data = TaskData::new(cx.tasks.get(child), cx.jiffies.0, cx.now.as_ns());
        match parent {
            Some(parent) => self.inherit(&mut data, parent),
            None => {
                data.avg.sleep_avg = self.knobs.start_sleep_avg;
                data.time_slice = timeslice(data.static_prio, &self.knobs);
                data.prio = effective_prio(&data, &self.knobs);
            }
        }
        if child.index() < self.tasks.len() {
            self.tasks[child.index()] = data;
        } else {
            assert!(child.index() == self.tasks.len(), "task ids are dense, {child} is not");
            self.tasks.push(data);
        }
        self.arrays.provide(child);
        self.waiting.provide(child);
        if let Some(parent) = parent {
            self.split_slice(cx, parent);
        }
    }

    fn task_exit(&mut self, _: &mut Ctx<'_>, task: TaskId, parent: Option<TaskId>) {
        if let Some(parent) = parent {
            self.sched_exit(task, parent);
        }
    }

    fn task_changed(&mut self, cx: &mut Ctx<'_>, task: TaskId, what: Change) {
        match what {
            Change::Nice => self.set_user_nice(cx, task),
            Change::Class => self.setscheduler(cx, task),
            Change::Affinity | Change::Slice | Change::Exec => {}
        }
    }

    fn requeues_on_change(&self, _: Change) -> bool {
        false
    }

    fn balance(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, _: Idle) {
        self.idle_balance(cx, cpu);
    }

    /// Between two stints of a hog lies at most one swap of the arrays, and within an array each
    /// competitor has one slice at most, since a hog never becomes interactive; one tick more for
    /// where in a tick it began. Tasks that start with a bonus promise nothing.
    fn wait_bound(&self, company: Company<'_>) -> Option<Nanos> {
        let slice = |nice: &Nice| u64::from(timeslice(nice.prio().0, &self.knobs));
        let ticks = 2 * company.others.iter().map(slice).sum::<u64>() + 1;
        let promises = !company.sleepers && self.knobs.start_sleep_avg == 0;
        promises.then(|| self.knobs.hz.tick() * ticks)
    }

    fn inspect(&self, view: &View<'_>, task: TaskId, out: &mut Inspect) {
        self.explain(view, task, out);
    }

    fn stats(&self, out: &mut Inspect) {
        let stats = &self.stats;
        out.push(("array_switches", stats.array_switches));
        out.push(("expirations", stats.expirations));
        out.push(("starved_expirations", stats.starved_expirations));
        out.push(("reinsertions", stats.reinsertions));
        out.push(("granularity_requeues", stats.granularity_requeues));
        out.push(("pulls", stats.pulls));
        out.push(("credited_ticks", stats.credited_ticks));
    }

    fn invariants(&self, view: &View<'_>) -> Result<(), String> {
        self.check(view)
    }
}
