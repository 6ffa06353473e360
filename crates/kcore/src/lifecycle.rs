// SPDX-License-Identifier: GPL-2.0-only
//! Birth, change of program and burial of tasks.

use schedlab_policy_api::{
    Change, Mm, Observer, Policy, SchedClass, SchedEvent, Task, TaskState, Tgid, Wake,
};
use schedlab_units::{CpuId, CpuSet, Nanos, Nice, TaskId, Time};

use crate::Core;
use crate::account::TaskAccount;
use crate::core::MustLeave;
use crate::taken::place;
use crate::transcript::{Input, Outcome};

/// Facts of a task to be forked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewTask {
    /// Scheduling class.
    pub class: SchedClass,
    /// Nice value.
    pub nice: Nice,
    /// Priority 1 … 99 in FIFO and RR, else 0.
    pub rt_priority: u8,
    /// CPUs it may use; at least one of the machine's.
    pub affinity: CpuSet,
    /// Its CPU until its first wake-up: the parent's.
    pub cpu: CpuId,
    /// Its process.
    pub tgid: Tgid,
    /// Its address space; none for a kernel thread.
    pub mm: Option<Mm>,
    /// Requested timeslice in ns, 0 = none.
    pub slice_request_ns: u64,
}

impl NewTask {
    /// A nice 0 process of its own that may run everywhere on a machine with CPUs `all`.
    pub fn normal(all: &CpuSet, process: u32) -> Self {
        Self {
            class: SchedClass::Normal,
            nice: Nice::ZERO,
            rt_priority: 0,
            affinity: *all,
            cpu: CpuId(0),
            tgid: Tgid(process),
            mm: Some(Mm(process)),
            slice_request_ns: 0,
        }
    }
}

impl<P: Policy, O: Observer> Core<P, O> {
    /// Forks a task on `this_cpu`; [`Core::wake_up_new`] makes it runnable.
    ///
    /// `parent` is none for a task that starts the workload.
    ///
    /// # Panics
    /// When the new task could run nowhere.
    ///
    /// Source: v6.12 `sched_fork`, 2.4.5 `do_fork`.
    pub fn fork(
        &mut self,
        now: Time,
        this_cpu: CpuId,
        parent: Option<TaskId>,
        new: &NewTask,
    ) -> TaskId {
        self.log.fork(now, this_cpu, parent, new);
        assert!(new.affinity.intersects(self.topo.all()), "a task needs a CPU to run on");
        let task = self.tasks.insert(Task {
            state: TaskState::New,
            class: new.class,
            nice: new.nice,
            rt_priority: new.rt_priority,
            cpu: new.cpu,
            on_cpu: false,
            affinity: new.affinity.intersection(self.topo.all()),
            parent,
            tgid: new.tgid,
            mm: new.mm,
            slice_request_ns: new.slice_request_ns,
            generation: 0,
        });
        let account = TaskAccount {
            born: now,
            since: now,
            run: Nanos::ZERO,
            wait: Nanos::ZERO,
            sleep: Nanos::ZERO,
        };
        place(&mut self.accounts, task, account);
        self.observer.event(now, &SchedEvent::ProcessFork { task, parent });
        self.hook(now, this_cpu, |p, cx| p.task_fork(cx, task, parent));
        self.settle(now, this_cpu);
        self.log.outcome(Outcome::Task(task));
        task
    }

    /// The parent of `task` is gone: init takes over.
    pub fn orphan(&mut self, task: TaskId) {
        self.log.input(Time::ZERO, Input::Orphan { task });
        self.tasks.get_mut(task).parent = None;
        self.log.outcome(Outcome::None);
    }

    /// Collects an exited task; its slot may be used again.
    ///
    /// # Panics
    /// When `task` has not exited or is still being switched away from.
    ///
    /// Source: v6.12 and 2.4.5 `release_task`.
    pub fn reap(&mut self, now: Time, this_cpu: CpuId, task: TaskId) {
        self.log.input(now, Input::Reap { this_cpu, task });
        let facts = self.tasks.get(task);
        assert!(
            facts.state == TaskState::Zombie && !facts.on_cpu,
            "task {task} cannot be collected: {facts:?}"
        );
        let parent = facts.parent;
        self.hook(now, this_cpu, |p, cx| p.task_exit(cx, task, parent));
        self.set_state(now, task, TaskState::Zombie);
        self.tasks.remove(task);
        self.observer.event(now, &SchedEvent::ProcessFree { task });
        self.settle(now, this_cpu);
        self.log.outcome(Outcome::None);
    }

    /// The current task of `cpu` replaces its program and gets address space `mm`.
    ///
    /// The policy may move it now, while its cache footprint is smallest: `select_cpu(Exec)` names
    /// another CPU, and the task leaves for it at the next `schedule`.
    ///
    /// # Panics
    /// When `cpu` is idle.
    ///
    /// Source: v6.12 `sched_exec`.
    pub fn exec(&mut self, now: Time, cpu: CpuId, mm: Mm) {
        self.log.input(now, Input::Exec { cpu, mm });
        let task = self.curr[cpu.index()].expect("the idle task does not exec");
        self.observer.event(now, &SchedEvent::ProcessExec { task });
        let to = self.select(now, cpu, task, Wake::Exec);
        self.tasks.get_mut(task).mm = Some(mm);
        self.hook(now, cpu, |p, cx| p.task_changed(cx, task, Change::Exec));
        // A task that may not stay here is placed anew in any case.
        let stays = self.must_leave[cpu.index()] == MustLeave::No;
        if to != cpu && stays && !self.is_global() {
            self.must_leave[cpu.index()] = MustLeave::To(to);
            self.hook(now, cpu, |_, cx| cx.resched(cpu));
        }
        self.settle(now, cpu);
        self.log.outcome(Outcome::None);
    }
}
