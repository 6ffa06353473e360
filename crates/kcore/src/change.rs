// SPDX-License-Identifier: GPL-2.0-only
//! Changes of nice, class, affinity and slice of a living task.

use schedlab_policy_api::{
    Change, Dequeue, Enqueue, Observer, Policy, PutPrev, SchedClass, SchedEvent, Task, TaskState,
    Wake,
};
use schedlab_units::{CpuId, CpuSet, Nice, TaskId, Time};

use crate::Core;
use crate::core::MustLeave;
use crate::transcript::{Input, Outcome};

impl<P: Policy, O: Observer> Core<P, O> {
    /// Sets the nice value of `task`.
    ///
    /// Source: v6.12 `set_user_nice`.
    pub fn set_nice(&mut self, now: Time, this_cpu: CpuId, task: TaskId, nice: Nice) {
        self.log.input(now, Input::SetNice { this_cpu, task, nice });
        if self.tasks.get(task).nice != nice {
            self.change(now, this_cpu, task, Change::Nice, |facts| facts.nice = nice);
            self.emit_prio(now, task);
        }
        self.settle(now, this_cpu);
        self.log.outcome(Outcome::None);
    }

    /// Sets class and real-time priority of `task`.
    ///
    /// Source: v6.12 `__sched_setscheduler`, 2.4.5 `setscheduler`.
    pub fn set_class(
        &mut self,
        now: Time,
        this_cpu: CpuId,
        task: TaskId,
        class: SchedClass,
        rt_priority: u8,
    ) {
        self.log.input(now, Input::SetClass { this_cpu, task, class, rt_priority });
        self.change(now, this_cpu, task, Change::Class, |facts| {
            facts.class = class;
            facts.rt_priority = rt_priority;
        });
        self.emit_prio(now, task);
        self.settle(now, this_cpu);
        self.log.outcome(Outcome::None);
    }

    /// Sets the requested timeslice of `task` in ns, 0 = none.
    ///
    /// Source: v6.12 `__setparam_fair`.
    pub fn set_slice(&mut self, now: Time, this_cpu: CpuId, task: TaskId, slice_ns: u64) {
        self.log.input(now, Input::SetSlice { this_cpu, task, slice_ns });
        if self.tasks.get(task).slice_request_ns != slice_ns {
            self.change(now, this_cpu, task, Change::Slice, |facts| {
                facts.slice_request_ns = slice_ns;
            });
        }
        self.settle(now, this_cpu);
        self.log.outcome(Outcome::None);
    }

    /// Sets the CPUs that `task` may use; it leaves a CPU that is no longer allowed.
    ///
    /// # Panics
    /// When no CPU of the machine is left.
    ///
    /// Source: v6.12 `set_cpus_allowed_ptr`.
    pub fn set_affinity(&mut self, now: Time, this_cpu: CpuId, task: TaskId, affinity: &CpuSet) {
        self.log.input(now, Input::SetAffinity { this_cpu, task, affinity: *affinity });
        let mask = affinity.intersection(self.topo.all());
        assert!(!mask.is_empty(), "a task needs a CPU to run on");
        self.change(now, this_cpu, task, Change::Affinity, |facts| facts.affinity = mask);
        let facts = self.tasks.get(task);
        let (state, cpu) = (facts.state, facts.cpu);
        if !mask.contains(cpu) {
            match state {
                TaskState::Running => {
                    if !self.is_global() {
                        self.must_leave[cpu.index()] = MustLeave::Anywhere;
                    }
                    self.hook(now, this_cpu, |_, cx| cx.resched(cpu));
                }
                TaskState::Runnable => self.leave_forbidden_queue(now, this_cpu, task),
                _ => {}
            }
        } else if state == TaskState::Running {
            self.must_leave[cpu.index()] = MustLeave::No;
        }
        self.settle(now, this_cpu);
        self.log.outcome(Outcome::None);
    }

    /// Moves a waiting task off a queue that its affinity forbids.
    ///
    /// One that is still being switched away from stays until that is over; with one queue for the
    /// machine there is nothing to leave.
    pub(crate) fn leave_forbidden_queue(&mut self, now: Time, this_cpu: CpuId, task: TaskId) {
        let facts = self.tasks.get(task);
        let stays = facts.state != TaskState::Runnable
            || facts.on_cpu
            || facts.affinity.contains(facts.cpu)
            || self.is_global();
        if !stays {
            let to = self.select(now, this_cpu, task, Wake::Migrate);
            self.move_queued(now, this_cpu, task, to);
        }
    }

    /// The bracket around a change: off the queue, change, back on, then whom to disturb.
    fn change(
        &mut self,
        now: Time,
        this_cpu: CpuId,
        task: TaskId,
        what: Change,
        apply: impl FnOnce(&mut Task),
    ) {
        let facts = self.tasks.get(task);
        let (state, cpu) = (facts.state, facts.cpu);
        let requeue = self.policy.requeues_on_change(what)
            && matches!(state, TaskState::Runnable | TaskState::Running);
        let running = requeue && state == TaskState::Running;
        self.hook(now, this_cpu, |p, cx| {
            if requeue {
                p.dequeue(cx, cpu, task, Dequeue::Save);
            }
            if running {
                p.put_prev(cx, cpu, task, PutPrev::Saved);
            }
            p.task_changing(cx, task, what);
        });
        apply(self.tasks.get_mut(task));
        self.hook(now, this_cpu, |p, cx| {
            p.task_changed(cx, task, what);
            if requeue {
                p.enqueue(cx, cpu, task, Enqueue::Restore);
            }
            if running {
                p.set_next(cx, cpu, task);
            }
            p.prio_changed(cx, task, what);
        });
    }

    fn emit_prio(&mut self, now: Time, task: TaskId) {
        let facts = self.tasks.get(task);
        let event = SchedEvent::PrioChange {
            task,
            nice: facts.nice,
            class: facts.class,
            rt_priority: facts.rt_priority,
        };
        self.observer.event(now, &event);
    }
}
