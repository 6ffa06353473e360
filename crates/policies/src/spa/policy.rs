// SPDX-License-Identifier: GPL-2.0-only
//! The policy's state and how it is built.

use alloc::vec::Vec;

use schedlab_policy_api::{
    Build, Ctx, PolicyDef, PolicyInfo, SleepUnit, Starvation, SyncWakes, TaskTable, TickOrder,
    TickPhase, Timekeeping, TimerBase, Tunables, WorkConservation,
};
use schedlab_units::{CpuId, Hz, TaskId, Time};

use super::array::{Arrays, IDLE_SLOT};
use super::tunables::{Knobs, SpaTunables, VARIANTS};
use crate::linux_2_6::sleep_avg::{Facts, MAX_BONUS, SleepAvg};

/// The single priority array of 28 May 2004: a uniform slice, and promotion against starvation.
///
/// FIFO and RR have the slots above; NORMAL, BATCH, IDLE and ISO are all SCHED_NORMAL, since 2.6.6
/// has no other class. The waking time of each task counts as in 2.6.6.
pub struct Spa {
    pub(super) knobs: Knobs,
    pub(super) arrays: Arrays,
    /// Indexed by task id.
    pub(super) tasks: Vec<Task>,
    /// Indexed by CPU.
    pub(super) rqs: Vec<Rq>,
    /// `prev_cpu_load` of all CPUs, one row after the other.
    pub(super) prev_cpu_load: Vec<u32>,
    /// The first instant at which a task was forked: the start of the run.
    pub(super) start: Option<Time>,
    pub(super) stats: Stats,
}

/// What the policy keeps of a task.
#[derive(Clone, Copy, Debug)]
pub(super) struct Task {
    /// Interactivity.
    pub(super) avg: SleepAvg,
    /// Jiffies left.
    pub(super) time_slice: u32,
    /// 120 + nice, also of a real-time task.
    pub(super) static_prio: u8,
    /// Its last sleep is or was uninterruptible.
    pub(super) uninterruptible: bool,
    /// It is on its way to the CPU whose balancer pulled it.
    pub(super) pulled: bool,
}

/// What the policy keeps of a CPU.
#[derive(Clone, Debug)]
pub(super) struct Rq {
    /// Runnable tasks, the running one included, the idle one not.
    pub(super) nr_running: u32,
    /// The slot in which the running task is filed.
    pub(super) curr_slot: u8,
    /// The jiffy from which the next promotion is due.
    pub(super) next_prom_due: u64,
    /// The last tick, an `unsigned long` of ns.
    pub(super) timestamp_last_tick: u64,
}

impl Rq {
    const EMPTY: Self =
        Self { nr_running: 0, curr_slot: IDLE_SLOT, next_prom_due: 0, timestamp_last_tick: 0 };
}

/// Totals since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stats {
    /// Promotions of a CPU's array.
    pub(super) promotions: i64,
    /// Slices used up.
    pub(super) expiries: i64,
    /// Waits credited as sleep when the task was picked.
    pub(super) wait_credits: i64,
    /// Tasks pulled by the balancer.
    pub(super) pulls: i64,
}

impl PolicyDef for Spa {
    type Tunables = SpaTunables;
    const INFO: PolicyInfo = PolicyInfo {
        name: "spa",
        about: "P. Williams' single priority array for Linux 2.6.6, with promotion",
        variants: VARIANTS,
        tunables: SpaTunables::SPECS,
        time: Timekeeping {
            hz: Hz::new(1000),
            phase: TickPhase::Aligned,
            timers: TimerBase::Local(SleepUnit::TickNsec),
            order: TickOrder::Together,
            sync: SyncWakes::MidOperation,
        },
        work_conserving: WorkConservation::Unbounded(
            "a woken or forked task joins the CPU it last ran on even if another one is idle; that \
             one pulls it at its next tick, unless another idle CPU has pulled it just before and \
             then, by timers of the same instant, got tasks of its own that go first \
             (spec linux-2.6-spa §4, §4.1)",
        ),
        starvation: Starvation {
            bound: Some(
                "each promotion lifts all who wait by a slot, and who wakes or ends a slice goes \
                 behind those who have risen to its slot (spec linux-2.6-spa §4.2, §8 S7)",
            ),
            except: None,
        },
    };
    fn build(tunables: &SpaTunables, build: Build<'_>) -> Self {
        let n_cpus = build.topo.n_cpus();
        Self {
            knobs: Knobs::new(tunables, n_cpus, build.hz),
            arrays: Arrays::new(n_cpus, build.n_tasks),
            tasks: Vec::with_capacity(build.n_tasks),
            rqs: alloc::vec![Rq::EMPTY; n_cpus],
            prev_cpu_load: alloc::vec![0; n_cpus * n_cpus],
            start: None,
            stats: Stats::default(),
        }
    }
}

impl Spa {
    /// Gives `task` this `sleep_avg` in ns, for vectors and imported states; a runnable task is not
    /// filed anew.
    ///
    /// # Panics
    /// When the task was never forked, or `sleep_avg` is above the maximum at this HZ.
    pub fn set_sleep_avg(&mut self, task: TaskId, sleep_avg: u64) {
        let max = self.knobs.scale.ns_max_sleep_avg();
        assert!(sleep_avg <= max, "sleep_avg is at most {max} ns, not {sleep_avg}");
        self.tasks[task.index()].avg.sleep_avg = sleep_avg;
    }

    /// The figures that the interactivity formulas want of `task`.
    pub(super) fn facts(cx: &Ctx<'_>, task: TaskId) -> Facts {
        let facts = cx.tasks.get(task);
        Facts { nice: facts.nice.get(), has_mm: facts.mm.is_some() }
    }

    /// The slot in which `task` is filed at its next enqueue.
    ///
    /// Source: P. Williams, 28 May 2004; spec §2.3, §4.2 enqueue.
    pub(super) fn slot(&self, cx: &Ctx<'_>, task: TaskId) -> u8 {
        self.slot_by(cx.tasks, task)
    }

    /// [`Spa::slot`] outside of hooks.
    pub(super) fn slot_by(&self, tasks: &TaskTable, task: TaskId) -> u8 {
        let facts = tasks.get(task);
        if facts.class.is_rt() {
            return 99 - facts.rt_priority;
        }
        let own = &self.tasks[task.index()];
        let bonus = if self.knobs.bonus { own.avg.bonus(&self.knobs.scale) } else { 0 };
        // 100 … 139 plus 0 … 10.
        own.static_prio + (MAX_BONUS - bonus) as u8
    }

    /// Files `task` anew at the tail of its slot on `cpu`; the slot.
    pub(super) fn refile(&mut self, cx: &Ctx<'_>, cpu: CpuId, task: TaskId) -> u8 {
        let slot = self.slot(cx, task);
        self.refile_in(cx, cpu, task, slot);
        slot
    }

    /// Moves `task`, filed on `cpu`, to the tail of `slot`.
    pub(super) fn refile_in(&mut self, cx: &Ctx<'_>, cpu: CpuId, task: TaskId, slot: u8) {
        self.arrays.remove(task);
        self.arrays.push_tail(cpu, slot, task);
        if cx.curr(cpu) == Some(task) {
            self.rqs[cpu.index()].curr_slot = slot;
        }
    }
}
