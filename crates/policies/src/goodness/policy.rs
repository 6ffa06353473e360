// SPDX-License-Identifier: GPL-2.0-only
//! The policy's state and its hooks.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use schedlab_policy_api::{
    Build, Change, Company, Ctx, Dequeue, Enqueue, Inspect, Locking, Policy, PolicyDef, PolicyInfo,
    PutPrev, Starvation, SyncWakes, TaskState, TickOrder, TickPhase, Timekeeping, TimerBase,
    Tunables, View, Wake, WorkConservation,
};
use schedlab_units::{CpuId, Hz, Nanos, TaskId};

use super::counter;
use super::resched_idle::{Cpus, Target, tells_a_cpu};
use super::run_list::RunList;
use super::tunables::{AddAt, GoodnessTunables, Knobs, VARIANTS};
use super::value::{Asker, TaskValue};

/// Time keeping of 2.4 on i386.
pub(crate) const TIME: Timekeeping = Timekeeping {
    hz: Hz::new(100),
    phase: TickPhase::Skewed,
    timers: TimerBase::Jiffies,
    order: TickOrder::TicksFirst,
    sync: SyncWakes::MidOperation,
};

/// The Linux 2.4 scheduler: one list of runnable tasks, one lock, a scan at every choice.
///
/// FIFO and RR are part of the score; NORMAL, BATCH, IDLE and ISO are all SCHED_OTHER, since 2.4
/// has no other class. A task that starts the workload owns one quantum of its nice value.
pub struct Goodness {
    pub(super) knobs: Knobs,
    /// Indexed by task id.
    pub(super) tasks: Vec<TaskValue>,
    pub(super) list: RunList,
    pub(super) cpus: Cpus,
    pub(super) stats: Stats,
}

/// Totals since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stats {
    /// Recharges of all counters.
    pub(super) epochs: i64,
    /// Decisions to disturb a CPU that runs a worse task.
    pub(super) preempt_decisions: i64,
    /// Decisions to disturb an idle CPU.
    pub(super) idle_kicks: i64,
    /// Displaced tasks offered to the other CPUs.
    pub(super) offers: i64,
    /// Calls of `schedule`.
    pub(super) schedule_calls: i64,
    /// Entries on the list at these calls, in sum.
    pub(super) list_entries: i64,
    /// Calls of `sched_yield` that led to one.
    pub(super) yields: i64,
}

impl PolicyDef for Goodness {
    type Tunables = GoodnessTunables;
    const INFO: PolicyInfo = PolicyInfo {
        name: "goodness",
        about: "Linux 2.4: one global list scanned for the best goodness, epochs of ticks",
        variants: VARIANTS,
        tunables: GoodnessTunables::SPECS,
        time: TIME,
        work_conserving: WorkConservation::Unbounded(
            "a synchronous wake-up tells no idle CPU, and several wake-ups in a row may all choose \
             the same idle CPU while others stay idle (spec linux-2.4-goodness §4.6, Q12)",
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
    fn build(tunables: &GoodnessTunables, build: Build<'_>) -> Self {
        let n_cpus = build.topo.n_cpus();
        let knobs = Knobs::new(tunables, n_cpus, build.hz);
        Self {
            cpus: Cpus::new(n_cpus, knobs.pcp),
            knobs,
            tasks: Vec::with_capacity(build.n_tasks),
            list: RunList::new(build.n_tasks),
            stats: Stats::default(),
        }
    }
}

impl Goodness {
    /// Gives `task` so many ticks in the present epoch, for vectors and imported states.
    ///
    /// # Panics
    /// When the task was never forked, or `ticks` is above what a task can own at this HZ.
    pub fn set_counter(&mut self, task: TaskId, ticks: u32) {
        let bound = counter::counter_bound(self.knobs.hz);
        let counter = i32::try_from(ticks).unwrap_or(i32::MAX);
        assert!(counter <= bound, "a task owns at most {bound} ticks, not {ticks}");
        self.tasks[task.index()].counter = counter;
        self.refresh(task);
    }

    /// `cpu` as one who asks for goodness.
    pub(super) fn asker(&self, cpu: CpuId) -> Asker {
        self.cpus.asker(cpu, self.knobs.pcp)
    }

    /// Brings what is kept of `task` elsewhere up to date after a change of its value.
    #[inline]
    pub(super) fn refresh(&mut self, task: TaskId) {
        let value = &self.tasks[task.index()];
        if value.current {
            self.cpus.set_curr_entry(value.processor, value.entry(), self.knobs.pcp);
        } else if self.list.contains(task) {
            self.list.set(task, value.list_entry());
        }
    }

    /// Tells a CPU about `p` if one should know.
    ///
    /// A CPU that already has `need_resched` set is not interrupted again.
    ///
    /// Source: 2.4.5 `sched.c` `reschedule_idle`; spec §4.4, §4.5.
    fn reschedule_idle(&mut self, cx: &mut Ctx<'_>, p: TaskId) {
        let allowed = &cx.tasks.get(p).affinity;
        match self.cpus.find_target(&self.tasks[p.index()], allowed, &self.knobs) {
            Target::None => {}
            Target::Idle(cpu) => {
                self.stats.idle_kicks += 1;
                if self.knobs.idle_poll { cx.resched_polling(cpu) } else { cx.resched(cpu) }
            }
            Target::Preempt(cpu) => {
                self.stats.preempt_decisions += 1;
                cx.resched(cpu);
            }
        }
    }

    /// Step S1 of `schedule`: a new slice for an RR task that has used its own up, and to the tail.
    pub(super) fn refill_exhausted_rr(&mut self, task: TaskId) {
        if self.tasks[task.index()].refill_exhausted_rr() {
            self.move_last(task);
            self.refresh(task);
        }
    }

    fn move_last(&mut self, task: TaskId) {
        self.list.remove(task);
        self.list.add_last(task, self.tasks[task.index()].list_entry());
    }

    fn move_first(&mut self, task: TaskId) {
        self.list.remove(task);
        self.list.add_first(task, self.tasks[task.index()].list_entry());
    }
}

impl Policy for Goodness {
    fn enqueue(&mut self, cx: &mut Ctx<'_>, _: CpuId, task: TaskId, why: Enqueue) {
        assert!(
            matches!(why, Enqueue::New | Enqueue::Wakeup),
            "task {task} cannot leave the one list there is ({why:?})"
        );
        let value = &mut self.tasks[task.index()];
        value.processor = cx.tasks.cpu(task);
        let entry = value.list_entry();
        let tail = match self.knobs.add_at {
            AddAt::Head => false,
            AddAt::Tail => true,
            AddAt::TailIfRt => value.is_rt(),
        };
        if tail { self.list.add_last(task, entry) } else { self.list.add_first(task, entry) }
    }

    fn dequeue(&mut self, _: &mut Ctx<'_>, _: CpuId, task: TaskId, why: Dequeue) {
        assert!(
            matches!(why, Dequeue::Sleep | Dequeue::Exit),
            "task {task} cannot leave the one list there is ({why:?})"
        );
        self.refill_exhausted_rr(task);
        self.list.remove(task);
    }

    /// The CPU a task last ran on; for a new one, what `task_fork` gave it.
    fn select_cpu(&mut self, _: &mut Ctx<'_>, task: TaskId, _: Wake) -> CpuId {
        self.tasks[task.index()].processor
    }

    fn pick_next(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) -> Option<TaskId> {
        self.schedule(cx, cpu)
    }

    fn set_next(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId) {
        let value = &mut self.tasks[task.index()];
        if value.run_on(cpu) {
            cx.resched(cpu);
        }
        self.list.set(task, value.list_entry());
        if let Some(mm) = value.own_mm {
            self.cpus.load_mm(cpu, mm);
        }
        self.cpus.leave_idle(cpu, cx.now);
        self.refresh(task);
    }

    fn put_prev(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId, _: PutPrev) {
        self.tasks[task.index()].current = false;
        self.cpus.enter_idle(cpu, cx.now);
    }

    /// Source: 2.4.5 `sched.c` `__schedule_tail`; spec §4.8.
    fn finish_task_switch(&mut self, cx: &mut Ctx<'_>, _: CpuId, prev: Option<TaskId>) {
        let Some(prev) = prev else { return };
        let yielded = self.tasks[prev.index()].release_cpu();
        self.refresh(prev);
        let displaced = cx.tasks.get(prev).state == TaskState::Runnable;
        if self.knobs.smp && displaced && !yielded {
            self.stats.offers += 1;
            cx.lock_section();
            self.reschedule_idle(cx, prev);
        }
    }

    /// Source: 2.4.5 `sched.c` `try_to_wake_up`; spec §4.6.
    fn wakeup_preempt(&mut self, cx: &mut Ctx<'_>, _: CpuId, woken: TaskId, wake: Wake) {
        if tells_a_cpu(cx, woken, wake) {
            self.reschedule_idle(cx, woken);
        }
    }

    /// Source: 2.4.5 `timer.c` `update_process_times`; spec §4.9.
    fn tick(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) {
        let Some(curr) = cx.curr(cpu) else { return };
        let value = &mut self.tasks[curr.index()];
        if value.charge_tick() && (self.knobs.fifo_tick_resched || !value.is_fifo()) {
            cx.resched(cpu);
        }
        self.refresh(curr);
    }

    /// Source: 2.4.5 `sched.c` `sys_sched_yield`; spec §4.12.
    fn yield_task(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, curr: TaskId) {
        if self.list.len() == self.cpus.n_busy() {
            return;
        }
        self.stats.yields += 1;
        let value = &mut self.tasks[curr.index()];
        value.yielded |= !value.is_rt();
        self.refresh(curr);
        cx.resched(cpu);
        if self.knobs.yield_tail {
            self.move_last(curr);
        }
    }

    /// Source: 2.4.5 `fork.c` `do_fork`; spec §4.10.
    fn task_fork(&mut self, cx: &mut Ctx<'_>, child: TaskId, parent: Option<TaskId>) {
        let (hz, rt_scale) = (self.knobs.hz, self.knobs.rt_scale);
        let mut value = TaskValue::new(cx.tasks.get(child), 0, hz, rt_scale);
        value.counter = value.quantum;
        if parent.is_none() {
            if self.knobs.aged_start {
                value.age(cx.rng, &cx.tasks.get(child).affinity);
            }
            let ticks = self.knobs.start_ticks.unwrap_or(value.counter);
            value.counter = ticks.min(counter::counter_bound(hz));
        }
        if let Some(parent) = parent {
            let from = &mut self.tasks[parent.index()];
            let need_resched = cx.need_resched(from.processor);
            if from.fork(&mut value, self.knobs.fork_split, need_resched) {
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
        value.copy_facts(cx.tasks.get(task), self.knobs.hz, self.knobs.rt_scale);
        if what == Change::Exec
            && value.current
            && let Some(mm) = value.own_mm
        {
            self.cpus.load_mm(value.processor, mm);
        }
        if what == Change::Class {
            value.yielded = false;
            if self.knobs.class_moves_first && self.list.contains(task) {
                self.move_first(task);
            }
            cx.resched(cx.this_cpu);
        }
        self.refresh(task);
    }

    fn requeues_on_change(&self, _: Change) -> bool {
        false
    }

    fn wait_bound(&self, company: Company<'_>) -> Option<Nanos> {
        counter::wait_bound(company, self.knobs.hz)
    }

    fn locking(&self) -> Locking {
        Locking::Global
    }

    /// `counter` in ticks, `goodness` on its CPU with what is loaded there, `position` on the list
    /// with the head at 0 (−1 = not on the list), `yielded`, `prio_shown` as `/proc/PID/stat` has it.
    fn inspect(&self, _: &View<'_>, task: TaskId, out: &mut Inspect) {
        let value = &self.tasks[task.index()];
        let goodness = value.entry().goodness(self.asker(value.processor));
        let position = self.list.iter().position(|(t, _)| t == task);
        out.push(("counter", value.counter.into()));
        out.push(("goodness", goodness.into()));
        out.push(("position", position.map_or(-1, |at| at as i64)));
        out.push(("yielded", value.yielded.into()));
        out.push(("prio_shown", counter::shown_prio(value.counter, self.knobs.hz).into()));
    }

    fn stats(&self, out: &mut Inspect) {
        out.push(("epochs", self.stats.epochs));
        out.push(("preempt_decisions", self.stats.preempt_decisions));
        out.push(("idle_kicks", self.stats.idle_kicks));
        out.push(("offers", self.stats.offers));
        out.push(("schedule_calls", self.stats.schedule_calls));
        out.push(("list_entries", self.stats.list_entries));
        out.push(("yields", self.stats.yields));
    }

    fn invariants(&self, view: &View<'_>) -> Result<(), String> {
        self.list.check()?;
        for (task, facts) in view.tasks.iter() {
            let value = &self.tasks[task.index()];
            let runnable = matches!(facts.state, TaskState::Runnable | TaskState::Running);
            let current = view.curr[facts.cpu.index()] == Some(task);
            if self.list.contains(task) != runnable {
                return Err(format!("task {task} is on the list or not, but is {facts:?}"));
            }
            value
                .check(facts, current, self.knobs.hz)
                .map_err(|why| format!("task {task}: {why}"))?;
        }
        self.check_caches(view)
    }
}

impl Goodness {
    /// What the list and the CPUs keep of a task equals what would be computed now.
    fn check_caches(&self, view: &View<'_>) -> Result<(), String> {
        if let Some((task, entry)) =
            self.list.iter().find(|(t, entry)| *entry != self.tasks[t.index()].list_entry())
        {
            let value = &self.tasks[task.index()];
            return Err(format!("task {task} is listed as {entry:?} but is {value:?}"));
        }
        for cpu in view.topo.cpus() {
            let Some(curr) = view.curr[cpu.index()] else { continue };
            let goodness = self.tasks[curr.index()].entry().goodness(self.asker(cpu));
            if goodness != self.cpus.curr_goodness(cpu) {
                return Err(format!("task {curr} on CPU {cpu} is worth {goodness}"));
            }
        }
        let n_busy = view.curr.iter().filter(|curr| curr.is_some()).count();
        if n_busy != self.cpus.n_busy() {
            return Err(format!("{n_busy} CPUs are busy, not {}", self.cpus.n_busy()));
        }
        Ok(())
    }
}
