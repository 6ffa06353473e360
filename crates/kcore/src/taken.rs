// SPDX-License-Identifier: GPL-2.0-only
//! What only a running kernel does to a policy: a CPU goes to a class above it, a task leaves the
//! class, or stops wanting a CPU without the policy having run it.

use alloc::vec::Vec;

use schedlab_policy_api::{
    Dequeue, Observer, Policy, PrevState, SchedClass, SchedEvent, Task, TaskState, Tgid,
    TunableValue,
};
use schedlab_units::{CpuId, CpuSet, Nice, TaskId, Time};

use crate::Core;
use crate::account::TaskAccount;
use crate::core::MustLeave;
use crate::transcript::{Input, Outcome};

impl<P: Policy, O: Observer> Core<P, O> {
    /// A class above the policy's takes `cpu`: the current task is put back, and a stand-in of class
    /// FIFO and priority 99 is current there until [`Core::return_cpu`].
    ///
    /// To a policy it looks as if a real-time task ran there, which no task of a lower class
    /// disturbs. The stand-in is on no queue, and observers see an idle CPU.
    ///
    /// # Panics
    /// When `cpu` is in the middle of a switch.
    pub fn take_cpu(&mut self, now: Time, cpu: CpuId) {
        self.log.input(now, Input::TakeCpu { cpu });
        assert!(self.switching[cpu.index()].is_none(), "CPU {cpu} is in the middle of a switch");
        if !self.is_taken(cpu) {
            let prev = self.curr[cpu.index()];
            self.must_leave[cpu.index()] = MustLeave::No;
            self.yielded[cpu.index()] = false;
            if let Some(task) = prev {
                self.set_state(now, task, TaskState::Runnable);
                self.hook(now, cpu, |p, cx| p.push_aside(cx, cpu, task));
            }
            let stand_in = self.stand_in(now, cpu);
            self.curr[cpu.index()] = Some(stand_in);
            if let Some(task) = prev {
                let prev_state = PrevState::Preempted;
                let event = SchedEvent::Switch { cpu, prev, prev_state, next: None };
                self.observer.event(now, &event);
                self.tasks.get_mut(task).on_cpu = false;
                self.hook(now, cpu, |p, cx| p.finish_task_switch(cx, cpu, prev));
                self.leave_forbidden_queue(now, cpu, task);
            }
            self.fx.clear_need_resched(cpu);
        }
        self.settle(now, cpu);
        self.log.outcome(Outcome::None);
    }

    /// The class above gives `cpu` back; it has no current task until [`Core::schedule`].
    pub fn return_cpu(&mut self, now: Time, cpu: CpuId) {
        self.log.input(now, Input::ReturnCpu { cpu });
        if self.is_taken(cpu) {
            self.curr[cpu.index()] = None;
        }
        self.settle(now, cpu);
        self.log.outcome(Outcome::None);
    }

    /// Whether a class above the policy's has `cpu`.
    #[inline]
    pub fn is_taken(&self, cpu: CpuId) -> bool {
        let stand_in = self.stand_ins.get(cpu.index()).copied().flatten();
        stand_in.is_some() && self.curr[cpu.index()] == stand_in
    }

    /// The current task of `cpu` that the policy itself chose.
    pub(crate) fn own_current(&self, cpu: CpuId) -> Option<TaskId> {
        self.curr[cpu.index()].filter(|_| !self.is_taken(cpu))
    }

    /// The stand-in of `cpu`, made when it is needed first.
    fn stand_in(&mut self, now: Time, cpu: CpuId) -> TaskId {
        if let Some(task) = self.stand_ins.get(cpu.index()).copied().flatten() {
            return task;
        }
        // It wants no CPU by the policy's rules: no queue and no count of runnable tasks has it.
        let task = self.tasks.insert(Task {
            state: TaskState::Zombie,
            class: SchedClass::Fifo,
            nice: Nice::ZERO,
            rt_priority: 99,
            cpu,
            on_cpu: false,
            affinity: CpuSet::single(cpu),
            parent: None,
            tgid: Tgid(0),
            mm: None,
            slice_request_ns: 0,
            generation: 0,
        });
        let account = TaskAccount { born: now, since: now, ..TaskAccount::default() };
        place(&mut self.accounts, task, account);
        self.stand_ins.resize(self.topo.n_cpus(), None);
        self.stand_ins[cpu.index()] = Some(task);
        self.hook(now, cpu, |p, cx| p.task_fork(cx, task, None));
        task
    }

    /// `task`, which is not current, stops wanting a CPU: it is asleep in `state`, or with
    /// [`TaskState::Zombie`] the policy's no longer and to be collected by [`Core::reap`].
    ///
    /// # Panics
    /// When `task` is current or `state` is another one.
    pub fn deactivate(&mut self, now: Time, this_cpu: CpuId, task: TaskId, state: TaskState) {
        self.log.input(now, Input::Deactivate { this_cpu, task, state });
        let leaves = state == TaskState::Zombie;
        assert!(leaves || state.is_asleep(), "{state:?} wants a CPU");
        let facts = self.tasks.get(task);
        let (was, cpu) = (facts.state, facts.cpu);
        assert!(was != TaskState::Running, "task {task} is current on CPU {cpu}");
        if leaves {
            self.observer.event(now, &SchedEvent::ProcessExit { task, cpu });
        }
        self.set_state(now, task, state);
        if was == TaskState::Runnable {
            let why = if leaves { Dequeue::Exit } else { Dequeue::Sleep };
            self.hook(now, this_cpu, |p, cx| p.dequeue(cx, cpu, task, why));
        }
        self.settle(now, this_cpu);
        self.log.outcome(Outcome::None);
    }

    /// `task`, waiting, joins the queue of `cpu`, where the host has put it already; nothing happens
    /// to a task that does not wait, or may not run there.
    pub fn place(&mut self, now: Time, task: TaskId, cpu: CpuId) {
        self.log.input(now, Input::Place { task, cpu });
        let facts = self.tasks.get(task);
        let moves = facts.state == TaskState::Runnable
            && facts.cpu != cpu
            && facts.affinity.contains(cpu)
            && !self.is_global();
        if moves {
            self.move_queued(now, cpu, task, cpu);
        }
        self.settle(now, cpu);
        self.log.outcome(Outcome::None);
    }

    /// Changes a tunable while tasks run, as a sysctl does; false = the policy takes no change of
    /// it.
    pub fn set_tunable(&mut self, now: Time, name: &'static str, value: TunableValue) -> bool {
        self.log.input(now, Input::SetTunable { name, value });
        let taken = self.policy.live_tunables().contains(&name);
        if taken {
            self.policy.set_tunable(name, value);
        }
        self.log.outcome(Outcome::Taken(taken));
        taken
    }
}

/// Puts the account of a new task where its slot is.
pub(crate) fn place(accounts: &mut Vec<TaskAccount>, task: TaskId, account: TaskAccount) {
    if task.index() == accounts.len() {
        accounts.push(account);
    } else {
        accounts[task.index()] = account;
    }
}
