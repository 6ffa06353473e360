// SPDX-License-Identifier: GPL-2.0-only
//! The policy's state and its hooks.

use alloc::string::String;
use alloc::vec::Vec;

use schedlab_policy_api::{
    Build, Change, Company, Ctx, Dequeue, Enqueue, Inspect, Locking, Policy, PolicyDef, PolicyInfo,
    PutPrev, SchedClass, Starvation, TaskState, Timekeeping, TunableValue, Tunables, View, Wake,
    WorkConservation,
};
use schedlab_units::{CpuId, CpuSet, Nanos, Nice, TaskId};

use super::arith::RESCHED_US;
use super::cpu::Cpu;
use super::groups::{Groups, Life};
use super::iso::IsoLimit;
use super::queue::Queue;
use super::task::{BfsTask, ISO_PRIO};
use super::tunables::{BfsTunables, Knobs, LIVE, VARIANTS};

/// BFS 0.357: one global queue, the earliest virtual deadline first.
///
/// All classes are in the one queue: FIFO and RR by priority, ISO above NORMAL and BATCH,
/// IDLEPRIO below. A task that starts the workload has an empty quota and the deadline 0.
pub struct Bfs {
    tunables: BfsTunables,
    pub(super) knobs: Knobs,
    /// Indexed by task id.
    pub(super) tasks: Vec<BfsTask>,
    pub(super) cpus: Vec<Cpu>,
    pub(super) queue: Queue,
    pub(super) groups: Groups,
    pub(super) iso: IsoLimit,
    /// `cpu_idle_map`.
    pub(super) idle: CpuSet,
    /// CPUs that passed over a task which was still being switched away from.
    pub(super) missed: CpuSet,
    /// The common clock in ns; it moves only when some CPU schedules, wakes or renices a task.
    pub(super) niffies: u64,
    /// Tasks that run or are queued.
    pub(super) nr_running: usize,
    pub(super) stats: Stats,
}

/// Totals since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stats {
    /// New quotas and deadlines.
    pub(super) expiries: i64,
    /// Decisions to disturb a CPU that runs a worse task.
    pub(super) preempt_decisions: i64,
    /// Decisions to disturb an idle CPU.
    pub(super) idle_kicks: i64,
    /// Deadlines lowered or raised to the cap.
    pub(super) capped: i64,
    /// Times that ISO tasks lost their priority.
    pub(super) iso_demotions: i64,
}

impl PolicyDef for Bfs {
    type Tunables = BfsTunables;
    const INFO: PolicyInfo = PolicyInfo {
        name: "bfs",
        about: "BFS 0.357: one global queue, earliest virtual deadline first",
        variants: VARIANTS,
        tunables: BfsTunables::SPECS,
        time: Timekeeping::MODERN,
        work_conserving: WorkConservation::Unbounded(
            "waking an IDLEPRIO task tells no idle CPU, of several wake-ups that aim at the same \
             idle CPU only the first tells one, and a CPU that found nothing it may run is not \
             seen by synchronous wake-ups (spec bfs §6, Q5 to Q7)",
        ),
        starvation: Starvation {
            bound: Some(
                "who has used up its quota gets a deadline after those that were set earlier, nice \
                 values apart, and the earliest runs",
            ),
            except: Some(
                "beside tasks that sleep: they keep their deadlines, and short runs after long \
                 sleeps are not charged (spec bfs §4.1, §4.12, Q1); nor where deadline offsets \
                 wrap (Q9)",
            ),
        },
    };
    fn build(tunables: &BfsTunables, build: Build<'_>) -> Self {
        let n_cpus = build.topo.n_cpus();
        Self {
            tunables: tunables.clone(),
            knobs: Knobs::new(tunables, build),
            tasks: Vec::with_capacity(build.n_tasks),
            cpus: alloc::vec![Cpu::START; n_cpus],
            queue: Queue::new(build.n_tasks),
            groups: Groups::new(build.n_tasks),
            iso: IsoLimit::new(tunables.iso_cpu as u64, n_cpus, build.hz),
            idle: CpuSet::first_n(n_cpus),
            missed: CpuSet::EMPTY,
            niffies: 0,
            nr_running: 0,
            stats: Stats::default(),
        }
    }
}

impl Bfs {
    /// `task` with the number of its slot's life.
    #[inline]
    pub(super) fn life(&self, task: TaskId) -> Life {
        (task, self.tasks[task.index()].life)
    }

    /// The tick of a busy CPU after its charge.
    ///
    /// Source: 0.357 `sched_bfs.c` `task_running_tick`; spec §4.9.
    fn task_running_tick(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) {
        let rq = &mut self.cpus[cpu.index()];
        let is_iso = rq.rq_class == SchedClass::Iso;
        if rq.rq_class.is_rt() || (is_iso && !self.iso.refractory) {
            self.iso.iso_tick();
        } else {
            self.iso.no_iso_tick();
        }
        if is_iso {
            let before = self.iso.refractory;
            if self.iso.test() && rq.rq_prio == ISO_PRIO {
                rq.rq_time_slice = 0;
            }
            self.stats.iso_demotions += i64::from(!before && self.iso.refractory);
        }
        if rq.rq_class == SchedClass::Fifo {
            return;
        }
        if rq.dither {
            if rq.rq_time_slice > self.knobs.half_jiffy_us {
                return;
            }
            rq.rq_time_slice = 0;
        } else if rq.rq_time_slice >= RESCHED_US {
            return;
        }
        cx.resched(cpu);
    }
}

impl Policy for Bfs {
    fn enqueue(&mut self, cx: &mut Ctx<'_>, _: CpuId, task: TaskId, why: Enqueue) {
        self.tasks[task.index()].cpu = cx.tasks.cpu(task);
        match why {
            Enqueue::New | Enqueue::Wakeup => {
                self.niffies = cx.now.as_ns();
                let p = &mut self.tasks[task.index()];
                let suitable = !core::mem::take(&mut p.slept_uninterruptible);
                self.activate_task(task, suitable);
            }
            // There is one queue: a task that is counted to another CPU keeps its place.
            Enqueue::Migrate => {}
            Enqueue::Restore => unreachable!("changes do not requeue"),
        }
    }

    fn dequeue(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId, why: Dequeue) {
        match why {
            Dequeue::Sleep | Dequeue::Exit => {
                let state = cx.tasks.get(task).state;
                self.tasks[task.index()].slept_uninterruptible =
                    state == TaskState::Uninterruptible;
                if self.queue.contains(task) {
                    // It waited, and leaves all the same, as only tasks of a live kernel do.
                    self.queue.remove(task);
                    self.deactivate_task(task);
                } else {
                    self.begin_schedule(cx, cpu);
                    self.write_back(cx, cpu, task, true);
                }
            }
            Dequeue::Migrate => {}
            Dequeue::Save => unreachable!("changes do not requeue"),
        }
    }

    fn pick_next(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) -> Option<TaskId> {
        self.schedule(cx, cpu)
    }

    /// Source: 0.357 `sched_bfs.c` `schedule`; spec §4.10 step 5, quirk Q1.
    fn set_next(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId) {
        let p = &mut self.tasks[task.index()];
        if self.knobs.charge_from_dispatch {
            p.last_ran = cx.now.as_ns();
        }
        self.cpus[cpu.index()].load(task, p);
    }

    fn put_prev(&mut self, _: &mut Ctx<'_>, cpu: CpuId, task: TaskId, _: PutPrev) {
        let life = self.life(task);
        self.cpus[cpu.index()].load_idle(life);
    }

    /// The part of `schedule` before the choice, which puts the task back on the queue here.
    fn push_aside(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId) {
        self.begin_schedule(cx, cpu);
        if self.write_back(cx, cpu, task, false) {
            self.enqueue_task(task, true);
        }
        self.put_prev(cx, cpu, task, PutPrev::Preempted);
    }

    fn finish_task_switch(&mut self, cx: &mut Ctx<'_>, _: CpuId, _: Option<TaskId>) {
        self.retry_missed(cx);
    }

    /// The place where the task last ran; the queue is the machine's.
    fn select_cpu(&mut self, cx: &mut Ctx<'_>, task: TaskId, wake: Wake) -> CpuId {
        match wake {
            Wake::Fork => self.birth_cpu(cx, task),
            _ => self.tasks[task.index()].cpu,
        }
    }

    /// Source: 0.357 `sched_bfs.c` `try_to_wake_up`, `wake_up_new_task`; spec §4.4, §4.7.
    fn wakeup_preempt(&mut self, cx: &mut Ctx<'_>, _: CpuId, woken: TaskId, wake: Wake) {
        match wake {
            Wake::Fork => self.preempt_for_new(cx, woken),
            Wake::Wakeup { sync, .. } => {
                if !sync || self.has_suitable_idle(cx, woken) {
                    self.try_preempt(cx, woken, self.tasks[woken.index()].cpu);
                }
            }
            // A change of affinity has looked for a CPU already.
            Wake::Migrate | Wake::Exec => {}
        }
    }

    /// Source: 0.357 `sched_bfs.c` `scheduler_tick`; spec §4.9.
    fn tick(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) {
        let clock = cx.now.as_ns();
        self.cpus[cpu.index()].account(clock, self.knobs.tick_ns);
        if self.cpus[cpu.index()].running.is_some() {
            self.task_running_tick(cx, cpu);
        } else {
            self.iso.no_iso_tick();
        }
        self.cpus[cpu.index()].last_tick = clock;
    }

    fn task_fork(&mut self, cx: &mut Ctx<'_>, child: TaskId, parent: Option<TaskId>) {
        match parent {
            Some(parent) => self.sched_fork(cx, child, parent),
            None => self.start_task(cx, child),
        }
    }

    /// Source: spec §4.8: what is left of the quota is lost.
    fn task_exit(&mut self, _: &mut Ctx<'_>, task: TaskId, _: Option<TaskId>) {
        self.groups.leave(self.tasks[task.index()].group);
    }

    fn task_changed(&mut self, cx: &mut Ctx<'_>, task: TaskId, what: Change) {
        match what {
            Change::Nice => self.nice_changed(cx, task),
            Change::Class => self.class_changed(cx, task),
            Change::Affinity => self.affinity_changed(cx, task),
            Change::Slice | Change::Exec => {}
        }
    }

    fn requeues_on_change(&self, _: Change) -> bool {
        false
    }

    /// The deadline is set now + offset(nice) ahead. One of a competitor that is set later than
    /// offset(nice) − offset(its nice) from now comes after it, so competitors run for that long,
    /// and then until they expire, each: a quota, one tick that is not charged (quirk Q1) and one
    /// until the next tick. No promise once offsets wrap.
    fn wait_bound(&self, company: Company<'_>) -> Option<Nanos> {
        let depth = u64::from(self.knobs.start_depth.max(1).unsigned_abs());
        let factor = if self.knobs.fork_depth { depth } else { 1 };
        let offset =
            |nice: &Nice| self.knobs.offset[(nice.get() + 20) as usize].wrapping_mul(factor);
        let shortest = company.others.iter().map(offset).min().unwrap_or(0);
        let own = offset(&company.nice);
        if company.sleepers || own.max(shortest) > i64::MAX as u64 {
            return None;
        }
        let turn = (self.knobs.quota as u64) * 1024 + 2 * self.knobs.tick_ns;
        let turns = Nanos::from_ns(turn) * company.others.len() as u64;
        Some(Nanos::from_ns(own.saturating_sub(shortest)) + turns)
    }

    fn locking(&self) -> Locking {
        Locking::Global
    }

    fn inspect(&self, view: &View<'_>, task: TaskId, out: &mut Inspect) {
        self.explain(view, task, out);
    }

    fn stats(&self, out: &mut Inspect) {
        out.push(("expiries", self.stats.expiries));
        out.push(("preempt_decisions", self.stats.preempt_decisions));
        out.push(("idle_kicks", self.stats.idle_kicks));
        out.push(("capped", self.stats.capped));
        out.push(("iso_demotions", self.stats.iso_demotions));
        out.push(("iso_ticks", self.iso.ticks as i64));
    }

    fn live_tunables(&self) -> &'static [&'static str] {
        LIVE
    }

    fn set_tunable(&mut self, name: &str, value: TunableValue) {
        self.tunables.set(name, value).expect("a live tunable and a legal value");
        self.knobs = self.knobs.retuned(&self.tunables);
        self.iso.set_percent(self.tunables.iso_cpu as u64);
    }

    fn invariants(&self, view: &View<'_>) -> Result<(), String> {
        self.check(view)
    }
}
