// SPDX-License-Identifier: GPL-2.0-only
//! The state of the core, and how hooks are called.

use alloc::string::String;
use alloc::vec::Vec;

use schedlab_policy_api::{
    Ctx, Dequeue, Effects, Enqueue, Inspect, Locking, Observer, Policy, Resched, SchedEvent,
    TaskState, TaskTable, TimerRequest, Topology, View, Wake,
};
use schedlab_units::{CpuId, Hz, Jiffies, Rng, TaskId, Time};

use crate::account::{CpuAccount, TaskAccount};
use crate::transcript::Log;

/// What a core is built for.
#[derive(Clone, Debug)]
pub struct CoreConfig {
    /// The machine.
    pub topo: Topology,
    /// Tick rate; jiffies count at this rate.
    pub hz: Hz,
    /// Seed of the policy's random stream.
    pub seed: u64,
    /// Number of tasks to make room for; more may come.
    pub n_tasks: usize,
    /// Whether the policy's invariants are checked after every input.
    pub check: bool,
}

/// Whether and whither a current task has to leave its CPU (the kernel's stopper thread moves it).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MustLeave {
    /// It may stay.
    No,
    /// Its affinity forbids this CPU; the policy chooses another.
    Anywhere,
    /// Exec balancing chose this CPU.
    To(CpuId),
}

/// The scheduler core around one policy.
pub struct Core<P, O> {
    pub(crate) policy: P,
    pub(crate) observer: O,
    pub(crate) topo: Topology,
    pub(crate) tasks: TaskTable,
    pub(crate) curr: Vec<Option<TaskId>>,
    pub(crate) wake_pending: Vec<u32>,
    pub(crate) fx: Effects,
    pub(crate) accounts: Vec<TaskAccount>,
    pub(crate) cpu_accounts: Vec<CpuAccount>,
    /// Per CPU: the current task has called `sched_yield` since it was last chosen.
    pub(crate) yielded: Vec<bool>,
    /// Per CPU: a switch whose `finish_switch` is still to come, with the task it leaves.
    pub(crate) switching: Vec<Option<Option<TaskId>>>,
    /// Per CPU: whether the current task must leave it at the next `schedule`.
    pub(crate) must_leave: Vec<MustLeave>,
    /// Per CPU: where the task of the unfinished switch goes once that is over.
    pub(crate) expelled: Vec<MustLeave>,
    /// Per CPU: what is current while another class has it; empty before that ever happened.
    pub(crate) stand_ins: Vec<Option<TaskId>>,
    pub(crate) locking: Locking,
    pub(crate) log: Log,
    rng: Rng,
    tick_ns: u64,
    jiffies: Jiffies,
    next_jiffy: u64,
    check: bool,
}

impl<P: Policy, O: Observer> Core<P, O> {
    /// A core for `policy` with all CPUs idle at time 0.
    pub fn new(policy: P, observer: O, config: CoreConfig) -> Self {
        let n_cpus = config.topo.n_cpus();
        let tick_ns = config.hz.tick().as_ns();
        Self {
            locking: policy.locking(),
            policy,
            observer,
            tasks: TaskTable::with_capacity(config.n_tasks),
            curr: alloc::vec![None; n_cpus],
            wake_pending: alloc::vec![0; n_cpus],
            fx: Effects::new(n_cpus),
            accounts: Vec::with_capacity(config.n_tasks),
            cpu_accounts: alloc::vec![CpuAccount::START; n_cpus],
            yielded: alloc::vec![false; n_cpus],
            switching: alloc::vec![None; n_cpus],
            must_leave: alloc::vec![MustLeave::No; n_cpus],
            expelled: alloc::vec![MustLeave::No; n_cpus],
            stand_ins: Vec::new(),
            log: Log::default(),
            rng: Rng::stream(config.seed, "policy", 0),
            tick_ns,
            jiffies: Jiffies(0),
            next_jiffy: tick_ns,
            check: config.check,
            topo: config.topo,
        }
    }

    /// Calls a hook with a context for `now` on `this_cpu`.
    #[inline]
    pub(crate) fn hook<R>(
        &mut self,
        now: Time,
        this_cpu: CpuId,
        call: impl FnOnce(&mut P, &mut Ctx<'_>) -> R,
    ) -> R {
        if now.as_ns() >= self.next_jiffy {
            let count = now.as_ns() / self.tick_ns;
            self.jiffies = Jiffies(count);
            self.next_jiffy = (count + 1).saturating_mul(self.tick_ns);
        }
        let mut cx = Ctx {
            now,
            jiffies: self.jiffies,
            this_cpu,
            topo: &self.topo,
            tasks: &self.tasks,
            curr: &self.curr,
            wake_pending: &self.wake_pending,
            rng: &mut self.rng,
            fx: &mut self.fx,
        };
        call(&mut self.policy, &mut cx)
    }

    /// Carries out the moves that hooks asked for, in request order, those included that the moves
    /// themselves cause.
    pub(crate) fn settle(&mut self, now: Time, this_cpu: CpuId) {
        self.settle_moves_only(now, this_cpu);
        if self.check {
            self.assert_invariants(now);
        }
    }

    /// [`Core::settle`] in the middle of an input, where the invariants need not hold yet; whether
    /// a task moved.
    pub(crate) fn settle_moves_only(&mut self, now: Time, this_cpu: CpuId) -> bool {
        let (mut at, mut moved) = (0, false);
        while at < self.fx.moves.len() {
            let request = self.fx.moves[at];
            at += 1;
            let facts = self.tasks.get(request.task);
            let stale = facts.state != TaskState::Runnable
                || facts.on_cpu
                || facts.cpu == request.to
                || !facts.affinity.contains(request.to);
            if !stale {
                moved = true;
                self.move_queued(now, this_cpu, request.task, request.to);
            }
        }
        self.fx.moves.clear();
        moved
    }

    /// Moves a waiting task to the queue of `to`.
    pub(crate) fn move_queued(&mut self, now: Time, this_cpu: CpuId, task: TaskId, to: CpuId) {
        let from = self.tasks.cpu(task);
        self.hook(now, this_cpu, |p, cx| p.dequeue(cx, from, task, Dequeue::Migrate));
        self.set_cpu(now, task, to);
        self.hook(now, this_cpu, |p, cx| {
            p.enqueue(cx, to, task, Enqueue::Migrate);
            p.wakeup_preempt(cx, to, task, Wake::Migrate);
        });
    }

    /// Records that `task` belongs to `to` from now on.
    #[inline]
    pub(crate) fn set_cpu(&mut self, now: Time, task: TaskId, to: CpuId) {
        let facts = self.tasks.get_mut(task);
        let from = facts.cpu;
        if from != to {
            facts.cpu = to;
            self.observer.event(now, &SchedEvent::MigrateTask { task, from, to });
        }
    }

    fn assert_invariants(&self, now: Time) {
        for cpu in self.topo.cpus() {
            let Some(task) = self.own_current(cpu) else { continue };
            let facts = self.tasks.get(task);
            // I2: it is current here and, since its CPU is recorded once, nowhere else.
            assert!(
                facts.cpu == cpu && facts.on_cpu,
                "task {task} is current on CPU {cpu} but recorded as {facts:?}"
            );
        }
        // By the policy's rules nobody runs on a CPU that a class above it has.
        let own: Vec<_> = self.topo.cpus().map(|cpu| self.own_current(cpu)).collect();
        let view = View { now, topo: &self.topo, tasks: &self.tasks, curr: &own };
        if let Err(why) = self.policy.invariants(&view) {
            panic!("invariant of the policy broken at {now}: {why}");
        }
    }

    /// What read-only methods of the policy may see.
    pub fn view(&self, now: Time) -> View<'_> {
        View { now, topo: &self.topo, tasks: &self.tasks, curr: &self.curr }
    }
    /// The policy's explanation of where `task` stands.
    pub fn inspect(&self, now: Time, task: TaskId) -> Inspect {
        let mut out = Inspect::new();
        self.policy.inspect(&self.view(now), task, &mut out);
        out
    }
    /// The policy.
    pub fn policy(&self) -> &P {
        &self.policy
    }
    /// The policy, to be changed by vectors and by live tunables.
    pub fn policy_mut(&mut self) -> &mut P {
        &mut self.policy
    }
    /// Facts of all tasks.
    #[inline]
    pub fn tasks(&self) -> &TaskTable {
        &self.tasks
    }
    /// The machine.
    #[inline]
    pub fn topo(&self) -> &Topology {
        &self.topo
    }
    /// Current task of `cpu`; none = its idle task.
    #[inline]
    pub fn curr(&self, cpu: CpuId) -> Option<TaskId> {
        self.curr[cpu.index()]
    }
    /// Whether `cpu` is to call `schedule`.
    #[inline]
    pub fn need_resched(&self, cpu: CpuId) -> bool {
        self.fx.need_resched(cpu)
    }
    /// The observer.
    pub fn observer(&self) -> &O {
        &self.observer
    }
    /// The observer, to be told what only the host knows.
    pub fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }
    /// Emits an event that only the host knows of (marks, deadlines).
    #[inline]
    pub fn emit(&mut self, now: Time, event: &SchedEvent) {
        self.observer.event(now, event);
    }
    /// Takes the next newly set `need_resched` in request order, `index` counted from 0; the host
    /// calls [`Core::clear_resched`] after the last.
    #[inline]
    pub fn resched_at(&self, index: usize) -> Option<Resched> {
        self.fx.resched.get(index).copied()
    }
    /// Forgets the requests that [`Core::resched_at`] showed; the flags stay set.
    #[inline]
    pub fn clear_resched(&mut self) {
        self.fx.resched.clear();
    }
    /// The timer request with index `index`; the host calls [`Core::clear_timers`] after the last.
    #[inline]
    pub fn timer_at(&self, index: usize) -> Option<TimerRequest> {
        self.fx.timers.get(index).copied()
    }
    /// Forgets the requests that [`Core::timer_at`] showed.
    pub fn clear_timers(&mut self) {
        self.fx.timers.clear();
    }
    /// Candidates scanned and extra lock sections since the last call, for the cost model.
    #[inline]
    pub fn take_work(&mut self) -> (u64, u32) {
        let work = (self.fx.scanned, self.fx.extra_lock_sections);
        self.fx.scanned = 0;
        self.fx.extra_lock_sections = 0;
        work
    }
    /// How the policy's kernel locks its queues.
    #[inline]
    pub fn locking(&self) -> Locking {
        self.locking
    }
    /// The observer and the policy at the end of a run.
    pub fn into_parts(self) -> (P, O) {
        (self.policy, self.observer)
    }
    /// Checks that the account of every live task adds up to its age (I5 for tasks).
    ///
    /// # Errors
    /// Names the first task whose account does not.
    pub fn check_conservation(&self, now: Time) -> Result<(), String> {
        for (task, _) in self.tasks.iter() {
            let account = self.task_account(now, task);
            let sum = account.run + account.wait + account.sleep;
            if sum != now - account.born {
                return Err(alloc::format!("account of task {task} does not add up: {account:?}"));
            }
        }
        for cpu in self.topo.cpus() {
            let account = self.cpu_account(now, cpu);
            if account.busy + account.idle + account.overhead != now - Time::ZERO {
                return Err(alloc::format!("account of CPU {cpu} does not add up: {account:?}"));
            }
        }
        Ok(())
    }
}
