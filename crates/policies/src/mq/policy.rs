// SPDX-License-Identifier: GPL-2.0-only
//! The policy's state and its hooks.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use schedlab_policy_api::{
    Build, Change, Company, Ctx, Dequeue, Enqueue, Inspect, Policy, PolicyDef, PolicyInfo, PutPrev,
    Starvation, TaskState, Tunables, View, Wake, WorkConservation,
};
use schedlab_units::{CpuId, Nanos, TaskId};

use super::maximum::{EMPTY, Maximum, na};
use super::queues::Queues;
use super::reschedule_idle::Choice;
use super::tunables::{Knobs, MqTunables, VARIANTS};
use crate::goodness::TIME;
use crate::goodness::counter::{self, ForkSplit};
use crate::goodness::resched_idle::{Cpus, tells_a_cpu};
use crate::goodness::value::TaskValue;

/// The multi-queue scheduler: a queue per CPU, one for real-time tasks, each with its best task at
/// hand.
///
/// Classes and the ticks of a task that starts the workload are as in [`crate::Goodness`].
pub struct Mq {
    pub(super) knobs: Knobs,
    /// Indexed by task id.
    pub(super) tasks: Vec<TaskValue>,
    /// One per CPU, then that of FIFO and RR tasks.
    pub(super) queues: Queues,
    /// Indexed by CPU.
    pub(super) maxima: Vec<Maximum>,
    /// Indexed by CPU: `curr_na`, as of the last tick, switch or epoch.
    pub(super) curr_na: Vec<i32>,
    pub(super) cpus: Cpus,
    /// Where a task goes, from the decision until the task is queued there.
    pub(super) placed: Option<(TaskId, Choice)>,
    pub(super) stats: Stats,
}

/// Totals since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stats {
    /// Recharges of all counters.
    pub(super) epochs: i64,
    /// Tasks taken from another CPU's queue.
    pub(super) steals: i64,
    /// Decisions to disturb a CPU that runs a worse task.
    pub(super) preempt_decisions: i64,
    /// Decisions to disturb an idle CPU.
    pub(super) idle_kicks: i64,
    /// Displaced tasks offered to the other CPUs.
    pub(super) offers: i64,
}

impl PolicyDef for Mq {
    type Tunables = MqTunables;
    const INFO: PolicyInfo = PolicyInfo {
        name: "mq",
        about: "M. Kravetz's multi-queue scheduler of 2001: goodness with one queue per CPU",
        variants: VARIANTS,
        tunables: MqTunables::SPECS,
        time: TIME,
        work_conserving: WorkConservation::Unbounded(
            "a synchronous wake-up tells no idle CPU, and a CPU that goes idle sees only one task \
             of every other queue, which after a move may be none although tasks wait \
             (spec linux-2.4-goodness §4.6, §5.3)",
        ),
        starvation: Starvation {
            bound: Some(
                "in each epoch everybody runs for the ticks it got, which are two quanta of its \
                 nice value between two turns of a hog",
            ),
            except: Some(
                "beside tasks that sleep before each tick: they are never charged, and the epoch \
                 does not end while one of them is runnable (spec linux-2.4-goodness §4.7, §4.9)",
            ),
        },
    };
    fn build(tunables: &MqTunables, build: Build<'_>) -> Self {
        let n_cpus = build.topo.n_cpus();
        let knobs = Knobs::new(tunables, n_cpus, build.hz);
        Self {
            cpus: Cpus::new(n_cpus, knobs.pcp),
            knobs,
            tasks: Vec::with_capacity(build.n_tasks),
            queues: Queues::new(n_cpus + 1, build.n_tasks),
            maxima: alloc::vec![Maximum::NONE; n_cpus],
            curr_na: alloc::vec![EMPTY; n_cpus],
            placed: None,
            stats: Stats::default(),
        }
    }
}

impl Mq {
    /// Gives `task` so many ticks in the present epoch, for vectors and imported states; what its
    /// CPU and its queue have noted of it follows.
    ///
    /// # Panics
    /// When the task was never forked, or `ticks` is above what a task can own at this HZ.
    pub fn set_counter(&mut self, task: TaskId, ticks: u32) {
        let bound = counter::counter_bound(self.knobs.hz);
        let counter = i32::try_from(ticks).unwrap_or(i32::MAX);
        assert!(counter <= bound, "a task owns at most {bound} ticks, not {ticks}");
        let value = &mut self.tasks[task.index()];
        value.counter = counter;
        let (current, cpu) = (value.current, value.processor);
        self.refresh(task);
        if current {
            self.renew_curr_na(cpu, task);
        } else if self.queues.queue_of(task) == Some(cpu.index()) {
            self.renew_maximum(cpu.index());
        }
    }

    /// Brings the goodness of the CPU's current task up to date after a change of `task`.
    #[inline]
    pub(super) fn refresh(&mut self, task: TaskId) {
        let value = &self.tasks[task.index()];
        if value.current {
            self.cpus.set_curr_entry(value.processor, value.entry(), self.knobs.pcp);
        }
    }
}

impl Policy for Mq {
    /// A task that `schedule` has already taken to `cpu` stays as it is.
    fn enqueue(&mut self, _: &mut Ctx<'_>, cpu: CpuId, task: TaskId, _: Enqueue) {
        if self.queues.queue_of(task).is_none() {
            self.tasks[task.index()].processor = cpu;
            self.add(task);
        }
    }

    fn dequeue(&mut self, _: &mut Ctx<'_>, cpu: CpuId, task: TaskId, _: Dequeue) {
        let value = &self.tasks[task.index()];
        if value.current {
            self.refill_exhausted_rr(task);
        } else if value.processor != cpu {
            return;
        }
        self.del(task);
    }

    fn pick_next(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) -> Option<TaskId> {
        self.schedule(cx, cpu)
    }

    fn set_next(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId) {
        let value = &mut self.tasks[task.index()];
        if value.run_on(cpu) {
            cx.resched(cpu);
        }
        if let Some(mm) = value.own_mm {
            self.cpus.load_mm(cpu, mm);
        }
        self.cpus.leave_idle(cpu, cx.now);
        self.renew_curr_na(cpu, task);
        self.refresh(task);
    }

    fn put_prev(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId, _: PutPrev) {
        self.tasks[task.index()].current = false;
        self.curr_na[cpu.index()] = EMPTY;
        self.cpus.enter_idle(cpu, cx.now);
    }

    /// A task that may not stay on its queue is placed by the core's call of `select_cpu`.
    ///
    /// Source: 2.4.5 `sched.c` `__schedule_tail`; spec §4.8.
    fn finish_task_switch(&mut self, cx: &mut Ctx<'_>, _: CpuId, prev: Option<TaskId>) {
        let Some(prev) = prev else { return };
        let yielded = self.tasks[prev.index()].release_cpu();
        let facts = cx.tasks.get(prev);
        let displaced = facts.state == TaskState::Runnable && facts.affinity.contains(facts.cpu);
        if self.knobs.smp && displaced && !yielded {
            self.stats.offers += 1;
            cx.lock_section();
            let choice = self.find_place(cx, prev);
            self.settle_queued(cx, prev, choice);
        }
    }

    /// `reschedule_idle` decides where the task is queued; what it decides besides is kept for
    /// `wakeup_preempt`.
    fn select_cpu(&mut self, cx: &mut Ctx<'_>, task: TaskId, wake: Wake) -> CpuId {
        match wake {
            Wake::Exec => cx.tasks.cpu(task),
            _ if tells_a_cpu(cx, task, wake) => {
                let choice = self.find_place(cx, task);
                self.placed = Some((task, choice));
                choice.cpu
            }
            _ => self.waiting_room(cx, task),
        }
    }

    /// Announces what `select_cpu` decided. It was not asked about a task that the host placed or
    /// that is still being switched away from; these are treated like a displaced task.
    fn wakeup_preempt(&mut self, cx: &mut Ctx<'_>, _: CpuId, woken: TaskId, wake: Wake) {
        if let Some((task, choice)) = self.placed.take() {
            assert!(task == woken, "task {task} was placed, {woken} has come");
            self.announce(cx, choice);
        } else if wake != Wake::Migrate && tells_a_cpu(cx, woken, wake) {
            let choice = self.find_place(cx, woken);
            self.settle_queued(cx, woken, choice);
        }
    }

    /// Source: 2.4.5 `timer.c` `update_process_times`; spec §4.9, §5.3.
    fn tick(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) {
        let Some(curr) = cx.curr(cpu) else { return };
        if self.tasks[curr.index()].charge_tick() {
            cx.resched(cpu);
        }
        self.renew_curr_na(cpu, curr);
        self.refresh(curr);
    }

    /// Source: 2.4.5 `sched.c` `sys_sched_yield`; M. Kravetz, patch against 2.4.7; spec §5.3.
    fn yield_task(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, curr: TaskId) {
        if self.queues.total() == self.cpus.n_busy() {
            return;
        }
        let value = &mut self.tasks[curr.index()];
        value.yielded |= !value.is_rt();
        self.refresh(curr);
        cx.resched(cpu);
    }

    /// Source: 2.4.5 `fork.c` `do_fork`; spec §4.10.
    fn task_fork(&mut self, cx: &mut Ctx<'_>, child: TaskId, parent: Option<TaskId>) {
        let (hz, rt_scale) = (self.knobs.hz, self.knobs.rt_scale);
        let mut value = TaskValue::new(cx.tasks.get(child), 0, hz, rt_scale);
        value.counter = value.quantum;
        if parent.is_none() && self.knobs.aged_start {
            value.age(cx.rng, &cx.tasks.get(child).affinity);
        }
        if let Some(parent) = parent {
            let from = &mut self.tasks[parent.index()];
            let need_resched = cx.need_resched(from.processor);
            if from.fork(&mut value, ForkSplit::Half, need_resched) {
                cx.resched(from.processor);
            }
            self.refresh(parent);
        }
        if child.index() < self.tasks.len() {
            self.tasks[child.index()] = value;
        } else {
            assert!(child.index() == self.tasks.len(), "task ids are dense, {child} is not");
            self.tasks.push(value);
        }
    }

    /// Source: 2.4.5 `exit.c` `release_task`; spec §4.11.
    fn task_exit(&mut self, _: &mut Ctx<'_>, task: TaskId, parent: Option<TaskId>) {
        if let Some(parent) = parent {
            let child = self.tasks[task.index()].counter;
            let value = &mut self.tasks[parent.index()];
            value.counter = counter::reap(value.counter, child, self.knobs.hz);
            self.refresh(parent);
        }
    }

    /// Source: 2.4.5 `sched.c` `setscheduler`, `sys_nice`, `exec.c` `exec_mmap`; spec §4.13.
    fn task_changed(&mut self, cx: &mut Ctx<'_>, task: TaskId, what: Change) {
        let value = &mut self.tasks[task.index()];
        let was_rt = value.is_rt();
        value.copy_facts(cx.tasks.get(task), self.knobs.hz, self.knobs.rt_scale);
        if what == Change::Exec
            && value.current
            && let Some(mm) = value.own_mm
        {
            self.cpus.load_mm(value.processor, mm);
        }
        if what == Change::Class {
            value.yielded = false;
            let other_queue = was_rt != value.is_rt();
            if self.queues.queue_of(task).is_some() {
                if other_queue {
                    self.del(task);
                    self.add(task);
                } else {
                    let queue = self.queues.remove(task);
                    self.queues.add_first(queue, task);
                }
            }
            cx.resched(cx.this_cpu);
        }
        self.refresh(task);
    }

    fn requeues_on_change(&self, _: Change) -> bool {
        false
    }

    /// On one CPU hogs take turns as under goodness.
    fn wait_bound(&self, company: Company<'_>) -> Option<Nanos> {
        counter::wait_bound(company, self.knobs.hz)
    }

    /// `counter` in ticks, `goodness` on its CPU with what is loaded there, `na` without CPU and
    /// address space, `position` on its queue with the head at 0 (−1 = on none), `yielded`; of its
    /// CPU's queue `max_na` and whether it `is_max` there, `curr_na` of its CPU (−10000 = none);
    /// `prio_shown` as `/proc/PID/stat` has it.
    fn inspect(&self, _: &View<'_>, task: TaskId, out: &mut Inspect) {
        let value = &self.tasks[task.index()];
        let cpu = value.processor.index();
        let asker = self.cpus.asker(value.processor, self.knobs.pcp);
        let queue = self.queues.queue_of(task);
        let position = queue.and_then(|queue| self.queues.iter(queue).position(|t| t == task));
        out.push(("counter", value.counter.into()));
        out.push(("goodness", value.entry().goodness(asker).into()));
        out.push(("na", na(value).into()));
        out.push(("position", position.map_or(-1, |at| at as i64)));
        out.push(("yielded", value.yielded.into()));
        out.push(("is_max", (self.maxima[cpu].task == Some(task)).into()));
        out.push(("max_na", self.maxima[cpu].na.into()));
        out.push(("curr_na", self.curr_na[cpu].into()));
        out.push(("prio_shown", counter::shown_prio(value.counter, self.knobs.hz).into()));
    }

    fn stats(&self, out: &mut Inspect) {
        out.push(("epochs", self.stats.epochs));
        out.push(("steals", self.stats.steals));
        out.push(("preempt_decisions", self.stats.preempt_decisions));
        out.push(("idle_kicks", self.stats.idle_kicks));
        out.push(("offers", self.stats.offers));
    }

    fn invariants(&self, view: &View<'_>) -> Result<(), String> {
        self.queues.check()?;
        for (task, facts) in view.tasks.iter() {
            let value = &self.tasks[task.index()];
            let runnable = matches!(facts.state, TaskState::Runnable | TaskState::Running);
            let queue = if value.is_rt() { self.rt_queue() } else { value.processor.index() };
            if self.queues.queue_of(task) != runnable.then_some(queue) {
                let found = self.queues.queue_of(task);
                return Err(format!("task {task} is on queue {found:?} but is {facts:?}"));
            }
            let current = view.curr[facts.cpu.index()] == Some(task);
            value
                .check(facts, current, self.knobs.hz)
                .map_err(|why| format!("task {task}: {why}"))?;
        }
        for (cpu, curr) in view.topo.cpus().zip(view.curr) {
            let Some(curr) = curr else { continue };
            let asker = self.cpus.asker(cpu, self.knobs.pcp);
            let goodness = self.tasks[curr.index()].entry().goodness(asker);
            if goodness != self.cpus.curr_goodness(cpu) {
                return Err(format!("task {curr} on CPU {cpu} is worth {goodness}"));
            }
        }
        let n_busy = view.curr.iter().filter(|curr| curr.is_some()).count();
        if n_busy != self.cpus.n_busy() {
            return Err(format!("{n_busy} CPUs are busy, not {}", self.cpus.n_busy()));
        }
        self.check_maxima(view)
    }
}
