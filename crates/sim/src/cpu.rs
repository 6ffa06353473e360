// SPDX-License-Identifier: GPL-2.0-only
//! One CPU: what it is doing, and how it goes from one thing to the next.

use schedlab_kcore::Switch;
use schedlab_policy_api::{CpuMode, Overhead, Policy, TaskState};
use schedlab_units::{CpuId, Nanos, TaskId, Time};

use crate::ops::Flow;
use crate::proc::{Then, Todo};
use crate::queue::{Event, Rank};
use crate::{HostObserver, Sim};
use schedlab_workload::ir::Op;

/// What a CPU is in the middle of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The idle task.
    Idle,
    /// User mode: an interrupt may take the CPU away.
    User,
    /// The kernel on behalf of its task: not preemptible.
    Kernel,
    /// The scheduler or an interrupt.
    Overhead,
}

/// What a CPU does when its present stage is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The way back to user mode: `need_resched` is honoured here.
    Check,
    /// Goes on with its current task, or idles.
    Continue,
    /// The switch is over; whether the current task changed.
    AfterSwitch(bool),
}

/// One CPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cpu {
    pub(crate) stage: Stage,
    /// When the stage ends; [`Time::MAX`] = not by itself.
    pub(crate) end: Time,
    /// Number of the stage; an event that names another one is stale.
    pub(crate) work: u32,
    /// What follows an overhead.
    pub(crate) then: Phase,
    /// Costs caused in the present system call or interrupt, to be paid at its end.
    pub(crate) debt: Nanos,
    pub(crate) idle_since: Time,
}

impl Default for Cpu {
    fn default() -> Self {
        Self {
            stage: Stage::Idle,
            end: Time::MAX,
            work: 0,
            then: Phase::Continue,
            debt: Nanos::ZERO,
            idle_since: Time::ZERO,
        }
    }
}

/// Why a CPU calls `schedule`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    Resched,
    Block(TaskState),
    Exit,
}

impl<'w, P: Policy, O: HostObserver> Sim<'w, P, O> {
    /// Enters a stage that ends at `end`.
    pub(crate) fn enter(&mut self, cpu: CpuId, stage: Stage, end: Time) {
        let state = &mut self.cpus[cpu.index()];
        let was_idle = state.stage == Stage::Idle;
        let superseded = state.end != Time::MAX;
        state.stage = stage;
        state.end = end;
        state.work = state.work.wrapping_add(1);
        if end != Time::MAX {
            let event = Event::WorkEnd { cpu, work: state.work };
            self.queue.push(end, Rank::WorkEnd, cpu.0, event);
        }
        if superseded {
            self.count_stale();
        }
        match (was_idle, stage == Stage::Idle) {
            (true, false) => self.n_active += 1,
            (false, true) => self.n_active -= 1,
            _ => {}
        }
    }

    /// The stage of `cpu` came to its end.
    pub(crate) fn work_ended(&mut self, cpu: CpuId) {
        let phase = match self.cpus[cpu.index()].stage {
            Stage::Overhead => self.cpus[cpu.index()].then,
            Stage::User => {
                self.current_proc(cpu).todo = Todo::Next;
                Phase::Continue
            }
            Stage::Kernel => {
                let proc = self.current_proc(cpu);
                let Todo::Kernel { then, .. } = proc.todo else {
                    unreachable!("kernel work has a sequel")
                };
                proc.todo = match then {
                    Then::NextInKernel => {
                        proc.in_kernel = true;
                        Todo::Next
                    }
                    Then::Do(op, amount) => Todo::Do(op, amount),
                    Then::Complete(op) => Todo::Complete(op),
                };
                Phase::Continue
            }
            Stage::Idle => unreachable!("idling does not end by itself"),
        };
        self.drive(cpu, phase);
    }

    fn current_proc(&mut self, cpu: CpuId) -> &mut crate::proc::Proc<'w> {
        let task = self.core.curr(cpu).expect("a working CPU has a task");
        &mut self.procs[task.index()]
    }

    /// Spends `cost` as overhead, then goes on with `then`; at once when there is no cost.
    fn pay(&mut self, cpu: CpuId, kind: Overhead, cost: Nanos, then: Phase) -> Option<Phase> {
        if cost.is_zero() {
            return Some(then);
        }
        self.core.set_cpu_mode(self.now, cpu, CpuMode::Overhead(kind));
        self.cpus[cpu.index()].then = then;
        self.enter(cpu, Stage::Overhead, self.now + cost);
        None
    }

    /// Pays what the present system call or interrupt of `cpu` owes.
    pub(crate) fn pay_debt(&mut self, cpu: CpuId, kind: Overhead, then: Phase) -> Option<Phase> {
        let debt = std::mem::take(&mut self.cpus[cpu.index()].debt);
        self.pay(cpu, kind, debt, then)
    }

    /// Lets `cpu` go on until it is in a stage that takes time.
    pub(crate) fn drive(&mut self, cpu: CpuId, phase: Phase) {
        let mut next = Some(phase);
        while let Some(phase) = next {
            next = match phase {
                Phase::Check if self.core.need_resched(cpu) => self.schedule(cpu, Why::Resched),
                Phase::Check => Some(Phase::Continue),
                Phase::AfterSwitch(real) => self.after_switch(cpu, real),
                Phase::Continue => match self.core.curr(cpu) {
                    None => {
                        self.go_idle(cpu);
                        None
                    }
                    Some(task) => self.go_on(cpu, task),
                },
            };
            if self.fault.is_some() {
                return;
            }
        }
    }

    fn go_idle(&mut self, cpu: CpuId) {
        self.core.set_cpu_mode(self.now, cpu, CpuMode::Idle);
        self.cpus[cpu.index()].idle_since = self.now;
        self.enter(cpu, Stage::Idle, Time::MAX);
    }

    /// Calls `schedule`; what follows once its cost is paid.
    pub(crate) fn schedule(&mut self, cpu: CpuId, why: Why) -> Option<Phase> {
        if let Some(task) = self.core.curr(cpu)
            && !self.count_step(task)
        {
            return None;
        }
        let switch = match why {
            Why::Resched => self.core.schedule(self.now, cpu),
            Why::Block(state) => self.core.block(self.now, cpu, state),
            Why::Exit => self.core.exit(self.now, cpu),
        };
        self.flush(cpu);
        let cost = self.schedule_cost(cpu, switch);
        self.pay(cpu, Overhead::Switch, cost, Phase::AfterSwitch(switch.is_real()))
    }

    fn schedule_cost(&mut self, cpu: CpuId, switch: Switch) -> Nanos {
        let (scanned, _) = self.core.take_work();
        let cost = &self.config.cost;
        let hold = cost.schedule.get() + cost.scan_per_candidate.get() * scanned;
        let mut after = Nanos::ZERO;
        if switch.is_real() {
            after += cost.context_switch.get();
            if switch.next.is_some() {
                after += cost.refill(self.config.topo.distance(switch.next_came_from, cpu));
            }
        }
        self.lock(cpu, cpu, Nanos::ZERO, hold);
        std::mem::take(&mut self.cpus[cpu.index()].debt) + after
    }

    fn after_switch(&mut self, cpu: CpuId, real: bool) -> Option<Phase> {
        if !real {
            return Some(Phase::Check);
        }
        self.core.finish_switch(self.now, cpu);
        self.flush(cpu);
        let (_, sections) = self.core.take_work();
        for _ in 0..sections {
            let cost = &self.config.cost;
            let section = cost.wakeup.get() + cost.wakeup_lock.get();
            self.lock(cpu, cpu, Nanos::ZERO, section);
        }
        self.bury_the_dead();
        self.pay_debt(cpu, Overhead::Switch, Phase::Check)
    }

    /// Goes on with what `task`, current on `cpu`, has to do.
    fn go_on(&mut self, cpu: CpuId, task: TaskId) -> Option<Phase> {
        if !self.count_step(task) {
            return None;
        }
        let now = self.now;
        let proc = &mut self.procs[task.index()];
        if proc.killed && !matches!(proc.todo, Todo::Kernel { .. }) {
            proc.killed = false;
            proc.todo = Todo::Do(&Op::Exit, 0);
        }
        match proc.todo {
            Todo::User { left } => {
                self.work(cpu, Stage::User, now.saturating_add(left));
                None
            }
            Todo::Spin { until } if until > now => {
                self.work(cpu, Stage::User, until);
                None
            }
            Todo::Spin { .. } => {
                self.procs[task.index()].todo = Todo::Next;
                Some(Phase::Continue)
            }
            // As many looks as it takes if nothing interferes, in one stage.
            Todo::Look { until, left, every } => {
                let first = now.saturating_add(left);
                let more = until.saturating_since(first).as_ns().div_ceil(every.as_ns());
                let span = Nanos::from_ns(more.saturating_mul(every.as_ns()));
                self.work(cpu, Stage::User, first.saturating_add(span));
                None
            }
            Todo::Kernel { left, .. } => {
                self.work(cpu, Stage::Kernel, now + left);
                None
            }
            Todo::Next => self.next_op(cpu, task),
            Todo::Do(op, amount) => {
                let flow = self.execute(cpu, task, op, amount);
                self.follow(cpu, task, flow)
            }
            Todo::Complete(op) => {
                let flow = self.complete(cpu, task, op);
                self.follow(cpu, task, flow)
            }
        }
    }

    fn work(&mut self, cpu: CpuId, stage: Stage, end: Time) {
        self.core.set_cpu_mode(self.now, cpu, CpuMode::Busy);
        self.enter(cpu, stage, end);
    }

    /// What follows an operation.
    fn follow(&mut self, cpu: CpuId, task: TaskId, flow: Flow<'w>) -> Option<Phase> {
        match flow {
            Flow::Done => {
                let proc = &mut self.procs[task.index()];
                proc.todo = Todo::Next;
                proc.in_kernel = false;
                self.pay_debt(cpu, Overhead::Wakeup, Phase::Continue)
            }
            Flow::Again(todo) => {
                self.procs[task.index()].todo = todo;
                self.pay_debt(cpu, Overhead::Wakeup, Phase::Continue)
            }
            Flow::Block(state, todo) => {
                let proc = &mut self.procs[task.index()];
                proc.todo = todo;
                proc.in_kernel = false;
                self.schedule(cpu, Why::Block(state))
            }
            Flow::Exit => self.schedule(cpu, Why::Exit),
        }
    }
}
