// SPDX-License-Identifier: GPL-2.0-only
//! The event loop.

use schedlab_kcore::{Core, CoreConfig, Entry};
use schedlab_policy_api::{Overhead, Policy};
use schedlab_units::{CpuId, Nanos, TaskId, Time};
use schedlab_workload::ir::Workload;

use crate::cpu::{Cpu, Stage};
use crate::interrupt::Source;
use crate::objects::Objects;
use crate::proc::Proc;
use crate::queue::{Event, EventQueue, Rank};
use crate::ticks::Ticks;
use crate::{HostObserver, SimConfig, SimError};

/// Where a simulation stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The instant asked for is reached.
    Running,
    /// Every task has exited.
    Finished,
    /// Nothing can happen any more, though tasks are alive: they wait for each other.
    Stalled,
}

/// Steps that CPUs may take at one instant before the workload is refused.
const STEPS_AT_ONE_INSTANT_MAX: u64 = 50_000_000;

/// Stale events that are left in the queue in any case.
const STALE_EVENTS_MIN: usize = 1024;

/// A simulated machine running a workload under a policy.
pub struct Sim<'w, P, O> {
    pub(crate) core: Core<P, O>,
    pub(crate) workload: &'w Workload,
    pub(crate) config: SimConfig,
    pub(crate) now: Time,
    pub(crate) queue: EventQueue,
    pub(crate) cpus: Vec<Cpu>,
    pub(crate) procs: Vec<Proc<'w>>,
    pub(crate) objects: Objects,
    /// When each run-queue lock is free again: one for the machine or one per CPU.
    pub(crate) locks: Vec<Time>,
    /// Latest request of each policy timer.
    pub(crate) policy_timers: Vec<u32>,
    /// Live tasks of each template that is the target of a signal.
    pub(crate) signal_targets: Vec<Option<Vec<TaskId>>>,
    /// Templates' instances so far.
    pub(crate) instances: Vec<u32>,
    /// Tasks of the start in order, by [`Event::Start`].
    pub(crate) starts: Vec<(TaskId, Option<u32>)>,
    /// Exited tasks that nobody waits for, not yet freed.
    pub(crate) dead: Vec<TaskId>,
    pub(crate) n_processes: u32,
    pub(crate) n_spawned: u64,
    pub(crate) n_live: usize,
    /// Queued events that can wake somebody.
    pub(crate) n_pending: usize,
    /// CPUs that are not idle.
    pub(crate) n_active: usize,
    /// Queued events that no longer mean anything.
    pub(crate) n_stale: usize,
    /// Per CPU: the interrupt of this instant that is not over, under
    /// [`schedlab_policy_api::TickOrder::Together`].
    pub(crate) open_interrupts: Vec<Option<Overhead>>,
    /// How many of them there are.
    pub(crate) n_open: usize,
    pub(crate) ticks: Ticks,
    events: u64,
    pub(crate) steps_here: u64,
    /// A fault found deep in an operation; ends the run.
    pub(crate) fault: Option<SimError>,
}

impl<'w, P: Policy, O: HostObserver> Sim<'w, P, O> {
    /// A machine at time 0 with the tasks of `workload` created but not yet woken.
    ///
    /// # Panics
    /// When the workload does not fit the machine (see `schedlab_workload`'s checks).
    pub fn new(workload: &'w Workload, policy: P, observer: O, config: SimConfig) -> Self {
        let n_cpus = config.topo.n_cpus();
        let n_tasks = Self::n_start_tasks(workload);
        let mut core = Core::new(
            policy,
            observer,
            CoreConfig {
                topo: config.topo.clone(),
                hz: config.hz,
                seed: config.seed,
                n_tasks,
                check: config.check,
            },
        );
        if config.transcript {
            core.start_transcript();
        }
        let capacity = 2 * (n_tasks + 2 * n_cpus) + 2 * STALE_EVENTS_MIN;
        let mut queue = EventQueue::with_capacity(capacity).ordered(config.order);
        let mut sim = Self {
            core,
            workload,
            now: Time::ZERO,
            cpus: vec![Cpu::default(); n_cpus],
            procs: Vec::with_capacity(n_tasks),
            objects: Objects::new(&workload.objects),
            locks: vec![Time::ZERO; n_cpus],
            policy_timers: Vec::new(),
            signal_targets: Self::find_signal_targets(workload),
            instances: vec![0; workload.tasks.len()],
            starts: Vec::with_capacity(n_tasks),
            dead: Vec::new(),
            n_processes: 0,
            n_spawned: 0,
            n_live: 0,
            n_pending: 0,
            n_active: 0,
            n_stale: 0,
            open_interrupts: vec![None; n_cpus],
            n_open: 0,
            ticks: Ticks::new(&config, &mut queue),
            queue,
            events: 0,
            steps_here: 0,
            fault: None,
            config,
        };
        sim.create_start_tasks();
        sim
    }

    /// Number of tasks that exist at the start.
    fn n_start_tasks(workload: &Workload) -> usize {
        workload.tasks.iter().filter(|t| t.at_start).map(|t| t.count as usize).sum()
    }

    /// Handles all events before `end`, or until nothing more can happen.
    ///
    /// # Errors
    /// [`SimError`] when the workload proves to be faulty; the figures so far stay valid.
    pub fn run_until(&mut self, end: Time) -> Result<Status, SimError> {
        self.run_until_or(end, |_| false)
    }

    /// Handles events like [`Sim::run_until`], but stops after the first one after which `wants_stop`
    /// says so of the observer.
    ///
    /// # Errors
    /// As [`Sim::run_until`].
    #[inline]
    pub fn run_until_or(
        &mut self,
        end: Time,
        mut wants_stop: impl FnMut(&O) -> bool,
    ) -> Result<Status, SimError> {
        loop {
            if self.n_live == 0 {
                return Ok(Status::Finished);
            }
            if self.n_active == 0 && self.n_pending == 0 && self.n_open == 0 {
                return Ok(Status::Stalled);
            }
            let tick = self.ticks.next_key();
            let event = self.queue.next_key().filter(|event| {
                *event < tick || (event.0 == tick.0 && self.interrupt_precedes_tick(tick.0))
            });
            let (at, tick_first) = event.map_or((tick.0, true), |event| (event.0, false));
            if at >= end {
                return Ok(Status::Running);
            }
            if at > self.now {
                self.now = at;
                self.steps_here = 0;
            }
            self.events += 1;
            if tick_first {
                let place = self.queue.next_place();
                let cpu = self.ticks.pop(place);
                self.tick(cpu);
            } else if let Some((_, event)) = self.queue.pop() {
                self.handle(event);
            }
            if self.n_open > 0 {
                self.end_open_interrupts();
            }
            if let Some(fault) = self.fault.take() {
                return Err(fault);
            }
            if wants_stop(self.core.observer()) {
                return Ok(Status::Running);
            }
        }
    }

    fn tick(&mut self, cpu: CpuId) {
        self.core.tick(self.now, cpu);
        self.flush(cpu);
        // A tick that finds the CPU idle and leaves it idle is not charged: a tickless kernel would
        // not have taken it.
        let idle = self.cpus[cpu.index()].stage == Stage::Idle;
        if !idle || self.core.need_resched(cpu) {
            let cost = self.config.cost.tick.get();
            self.cpus[cpu.index()].debt += cost;
        }
        self.end_interrupt(cpu, Source::Tick);
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::WorkEnd { cpu, work } => {
                if self.cpus[cpu.index()].work == work {
                    self.cpus[cpu.index()].end = Time::MAX;
                    self.work_ended(cpu);
                } else {
                    self.drop_stale();
                }
            }
            Event::Timer { task, wait } => {
                self.n_pending -= 1;
                let cpu = self.timer_cpu(task);
                if self.procs[task.index()].wait == wait {
                    self.procs[task.index()].is_armed = false;
                    self.timer_expired(cpu, task);
                } else {
                    self.drop_stale();
                }
                self.end_interrupt(cpu, Source::Timer);
            }
            Event::Device { task, wait } => {
                self.n_pending -= 1;
                let cpu = self.core.tasks().cpu(task);
                if self.procs[task.index()].wait == wait {
                    self.procs[task.index()].release = self.now;
                    self.wake(cpu, task, None, false);
                    self.charge_interrupt(cpu);
                }
                self.end_interrupt(cpu, Source::Device);
            }
            Event::Kick { cpu, interrupt } => {
                self.n_pending -= 1;
                if interrupt {
                    self.charge_interrupt(cpu);
                }
                self.end_interrupt(cpu, Source::Device);
            }
            Event::WakeArrive { cpu, task } => {
                self.n_pending -= 1;
                self.core.wake_arrive(self.now, cpu, task);
                self.charge_interrupt(cpu);
                self.flush(cpu);
                self.end_interrupt(cpu, Source::Device);
            }
            Event::Wakeup { task, wait } => {
                self.n_pending -= 1;
                let proc = &mut self.procs[task.index()];
                match proc.woken_by.take_if(|_| proc.wait == wait) {
                    Some((cpu, waker, sync)) => {
                        self.wake_now(cpu, task, Some(waker), sync);
                        self.irq_exit(cpu, Overhead::Wakeup);
                    }
                    None => self.events -= 1,
                }
            }
            Event::Start { index } => {
                self.n_pending -= 1;
                let cpu = CpuId(0);
                let (task, on) = self.starts[index as usize];
                self.start_task(cpu, task, on.map(CpuId));
                self.end_interrupt(cpu, Source::Timer);
            }
            Event::PolicyTimer { timer, request, cpu } => {
                if self.policy_timers[timer as usize] == request {
                    self.core.timer(self.now, cpu, timer);
                    self.flush(cpu);
                    self.end_interrupt(cpu, Source::Device);
                }
            }
        }
    }

    /// An event that was popped means nothing any more, and does not count.
    fn drop_stale(&mut self) {
        self.n_stale -= 1;
        self.events -= 1;
    }

    /// Notes that a queued event became stale; when they prevail, takes them out, so that the queue
    /// does not grow with the lengths of what was cut short.
    pub(crate) fn count_stale(&mut self) {
        self.n_stale += 1;
        if self.n_stale < STALE_EVENTS_MIN || self.n_stale < self.queue.len() / 2 {
            return;
        }
        let mut n_timers = 0;
        self.queue.retain(|event| match *event {
            Event::WorkEnd { cpu, work } => self.cpus[cpu.index()].work == work,
            Event::Timer { task, wait } => {
                let live = self.procs[task.index()].wait == wait;
                n_timers += usize::from(!live);
                live
            }
            _ => true,
        });
        self.n_pending -= n_timers;
        self.n_stale = 0;
    }

    /// Adds the cost of an interrupt to what `cpu` owes.
    pub(crate) fn charge_interrupt(&mut self, cpu: CpuId) {
        let cost = self.config.cost.interrupt.get();
        self.cpus[cpu.index()].debt += cost;
    }

    /// Sends on what hooks asked for: kicks to other CPUs, policy timers.
    pub(crate) fn flush(&mut self, this_cpu: CpuId) {
        let mut index = 0;
        while let Some(request) = self.core.resched_at(index) {
            index += 1;
            let event =
                schedlab_policy_api::SchedEvent::NeedResched { cpu: request.cpu, by: request.from };
            self.core.emit(self.now, &event);
            if request.cpu != this_cpu {
                let latency =
                    if request.ipi { self.config.cost.kick_latency.get() } else { Nanos::ZERO };
                let kick = Event::Kick { cpu: request.cpu, interrupt: request.ipi };
                self.push_pending(self.now + latency, Rank::Interrupt, 0, kick);
            }
        }
        self.core.clear_resched();
        index = 0;
        while let Some(request) = self.core.timer_at(index) {
            index += 1;
            let slot = request.timer as usize;
            if slot >= self.policy_timers.len() {
                self.policy_timers.resize(slot + 1, 0);
            }
            self.policy_timers[slot] = self.policy_timers[slot].wrapping_add(1);
            if request.at != Time::MAX {
                let event = Event::PolicyTimer {
                    timer: request.timer,
                    request: self.policy_timers[slot],
                    cpu: request.cpu,
                };
                self.queue.push(request.at.max(self.now), Rank::Timer, request.timer, event);
            }
        }
        self.core.clear_timers();
    }

    /// Queues an event that can wake somebody.
    pub(crate) fn push_pending(&mut self, at: Time, rank: Rank, subject: u32, event: Event) {
        self.n_pending += 1;
        self.queue.push(at, rank, subject, event);
    }

    /// Counts a step and refuses a workload that goes on without time passing.
    pub(crate) fn count_step(&mut self, task: TaskId) -> bool {
        self.steps_here += 1;
        if self.steps_here > STEPS_AT_ONE_INSTANT_MAX {
            self.fault = Some(SimError::NoProgress {
                at: self.now,
                task: self.name_of(task),
                limit: STEPS_AT_ONE_INSTANT_MAX,
            });
            return false;
        }
        true
    }

    /// Name of a task as results show it.
    pub(crate) fn name_of(&self, task: TaskId) -> String {
        let proc = &self.procs[task.index()];
        let spec = &self.workload.tasks[proc.template.0 as usize];
        if spec.at_start && spec.count == 1 {
            spec.name.clone()
        } else {
            format!("{}-{}", spec.name, proc.instance)
        }
    }

    /// The instant reached.
    pub fn now(&self) -> Time {
        self.now
    }
    /// Events handled so far.
    pub fn events(&self) -> u64 {
        self.events
    }
    /// Names of tasks that are alive, for messages about a stalled workload.
    pub fn live_tasks(&self) -> Vec<String> {
        self.core.tasks().iter().map(|(task, _)| self.name_of(task)).collect()
    }
    /// The live task that results show by this name; the lowest id if there are several.
    pub fn find_task(&self, name: &str) -> Option<TaskId> {
        let mut live = self.core.tasks().iter().map(|(task, _)| task);
        live.find(|task| self.name_of(*task) == name)
    }
    /// The core.
    pub fn core(&self) -> &Core<P, O> {
        &self.core
    }
    /// The core, for observers and transcripts.
    pub fn core_mut(&mut self) -> &mut Core<P, O> {
        &mut self.core
    }
    /// The transcript of the run, if it was asked for.
    pub fn take_transcript(&mut self) -> Vec<Entry> {
        self.core.take_transcript()
    }
    /// Policy and observer at the end.
    pub fn into_parts(self) -> (P, O) {
        self.core.into_parts()
    }

    /// Adds to what `this_cpu` owes a section under the lock of the queue of `target`, waiting
    /// included: `past` of it lies in the system call that has just been paid for, `hold` is still
    /// to come.
    ///
    /// A section is decided at the instant it is asked for; only its time is charged: it starts
    /// when the lock is free and what this CPU owes already is paid, and ends `past + hold` later
    /// (spec linux-2.4-goodness §7.1).
    pub(crate) fn lock(&mut self, this_cpu: CpuId, target: CpuId, past: Nanos, hold: Nanos) {
        let debt = &mut self.cpus[this_cpu.index()].debt;
        if !self.config.cost.lock_contention || (past + hold).is_zero() {
            *debt += hold;
            return;
        }
        let index = match self.core.locking() {
            schedlab_policy_api::Locking::Global => 0,
            schedlab_policy_api::Locking::PerCpu => target.index(),
        };
        let free = &mut self.locks[index];
        let asked = Time::ZERO + (self.now + *debt - Time::ZERO).saturating_sub(past);
        *free = asked.max(*free) + past + hold;
        *debt = *free - self.now;
    }

    /// Charges `this_cpu` for a wake-up that put a task on the queue of `target`.
    pub(crate) fn charge_wakeup(&mut self, this_cpu: CpuId, target: CpuId) {
        let (scanned, _) = self.core.take_work();
        let cost = &self.config.cost;
        let past = cost.wakeup_lock.get();
        let hold = cost.wakeup.get() + cost.scan_per_candidate.get() * scanned;
        self.lock(this_cpu, target, past, hold);
    }
}
