// SPDX-License-Identifier: GPL-2.0-only
//! Choosing the next task: `schedule`, the tick, yield, policy timers.

use schedlab_policy_api::{
    Dequeue, Enqueue, Idle, Locking, Observer, Policy, PrevState, PutPrev, SchedEvent, TaskState,
    Wake,
};
use schedlab_units::{CpuId, TaskId, Time};

use crate::Core;
use crate::core::MustLeave;
use crate::transcript::{Input, Outcome};

/// What `schedule` decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// The task that was current; none = the idle task.
    pub prev: Option<TaskId>,
    /// The task that is current now; none = the idle task.
    pub next: Option<TaskId>,
    /// The CPU `next` last ran on, for the cache cost.
    pub next_came_from: CpuId,
}

impl Switch {
    /// Whether the current task changed; the host then owes a [`Core::finish_switch`].
    pub fn is_real(&self) -> bool {
        self.prev != self.next
    }
}

/// Why the previous task gives up its CPU.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leave {
    No,
    Sleep(TaskState),
    Exit,
    Expelled,
}

impl<P: Policy, O: Observer> Core<P, O> {
    /// `schedule` on `cpu` while its current task is willing.
    ///
    /// # Panics
    /// When the policy picks a task that is not waiting or not allowed on `cpu` (I3), or when the
    /// last switch of `cpu` is not finished.
    pub fn schedule(&mut self, now: Time, cpu: CpuId) -> Switch {
        self.log.input(now, Input::Schedule { cpu });
        let expelled = self.must_leave[cpu.index()] != MustLeave::No;
        let leave = if expelled { Leave::Expelled } else { Leave::No };
        self.schedule_leaving(now, cpu, leave)
    }

    /// The current task of `cpu` goes to sleep in `state`, then `schedule`.
    ///
    /// # Panics
    /// As [`Core::schedule`]; and when `cpu` is idle or `state` is no sleep.
    pub fn block(&mut self, now: Time, cpu: CpuId, state: TaskState) -> Switch {
        self.log.input(now, Input::Block { cpu, state });
        assert!(state.is_asleep(), "{state:?} is no sleep");
        self.schedule_leaving(now, cpu, Leave::Sleep(state))
    }

    /// The current task of `cpu` exits, then `schedule`. Its slot stays until [`Core::reap`].
    ///
    /// # Panics
    /// As [`Core::schedule`]; and when `cpu` is idle.
    pub fn exit(&mut self, now: Time, cpu: CpuId) -> Switch {
        self.log.input(now, Input::Exit { cpu });
        self.schedule_leaving(now, cpu, Leave::Exit)
    }

    fn schedule_leaving(&mut self, now: Time, cpu: CpuId, leave: Leave) -> Switch {
        assert!(self.switching[cpu.index()].is_none(), "CPU {cpu} is in the middle of a switch");
        let prev = self.curr[cpu.index()];
        let must_leave = core::mem::replace(&mut self.must_leave[cpu.index()], MustLeave::No);
        if leave == Leave::Expelled {
            self.expelled[cpu.index()] = must_leave;
        }
        if leave != Leave::No {
            let task = prev.expect("the idle task neither sleeps nor exits");
            self.leave(now, cpu, task, leave);
        }
        self.fx.clear_need_resched(cpu);
        let mut next = self.hook(now, cpu, |p, cx| p.pick_next(cx, cpu));
        if next.is_none() {
            self.hook(now, cpu, |p, cx| p.balance(cx, cpu, Idle::NewlyIdle));
            if self.settle_moves_only(now, cpu) {
                next = self.hook(now, cpu, |p, cx| p.pick_next(cx, cpu));
                self.fx.clear_need_resched(cpu);
            }
        }
        let switch =
            Switch { prev, next, next_came_from: next.map_or(cpu, |task| self.tasks.cpu(task)) };
        if switch.is_real() {
            self.switch_to(now, cpu, switch, leave);
        } else {
            assert!(leave == Leave::No || prev.is_none(), "a task that left was picked again");
            self.yielded[cpu.index()] = false;
        }
        self.settle(now, cpu);
        self.log.outcome(Outcome::Switch(switch));
        switch
    }

    /// The previous task leaves the queue before the pick.
    fn leave(&mut self, now: Time, cpu: CpuId, task: TaskId, leave: Leave) {
        let (state, why) = match leave {
            Leave::Sleep(state) => (state, Dequeue::Sleep),
            Leave::Exit => {
                self.observer.event(now, &SchedEvent::ProcessExit { task, cpu });
                (TaskState::Zombie, Dequeue::Exit)
            }
            Leave::Expelled => (TaskState::Waking, Dequeue::Migrate),
            Leave::No => unreachable!("checked by the caller"),
        };
        self.set_state(now, task, state);
        self.hook(now, cpu, |p, cx| p.dequeue(cx, cpu, task, why));
    }

    fn switch_to(&mut self, now: Time, cpu: CpuId, switch: Switch, leave: Leave) {
        let Switch { prev, next, .. } = switch;
        let yielded = core::mem::replace(&mut self.yielded[cpu.index()], false);
        let (why, prev_state) = match leave {
            Leave::No if yielded => (PutPrev::Yielded, PrevState::Yielded),
            Leave::No => (PutPrev::Preempted, PrevState::Preempted),
            Leave::Sleep(TaskState::Uninterruptible) => {
                (PutPrev::Blocked, PrevState::Uninterruptible)
            }
            Leave::Sleep(_) => (PutPrev::Blocked, PrevState::Sleeping),
            Leave::Exit => (PutPrev::Blocked, PrevState::Zombie),
            Leave::Expelled => (PutPrev::Blocked, PrevState::Preempted),
        };
        if let Some(task) = prev {
            if leave == Leave::No {
                self.set_state(now, task, TaskState::Runnable);
            }
            self.hook(now, cpu, |p, cx| p.put_prev(cx, cpu, task, why));
        }
        if let Some(task) = next {
            let facts = self.tasks.get(task);
            assert!(
                facts.state == TaskState::Runnable && !facts.on_cpu && facts.affinity.contains(cpu),
                "task {task}, picked for CPU {cpu}, cannot run there: {facts:?}"
            );
            self.set_cpu(now, task, cpu);
            self.set_state(now, task, TaskState::Running);
            self.tasks.get_mut(task).on_cpu = true;
        }
        self.curr[cpu.index()] = next;
        self.switching[cpu.index()] = Some(prev);
        self.observer.event(now, &SchedEvent::Switch { cpu, prev, prev_state, next });
        if let Some(task) = next {
            self.hook(now, cpu, |p, cx| p.set_next(cx, cpu, task));
        }
    }

    /// The switch that [`Core::schedule`] began on `cpu` is over: the task it left is free to run
    /// elsewhere.
    ///
    /// # Panics
    /// When no switch is under way.
    ///
    /// Source: v6.12 `finish_task_switch`, 2.4.5 `__schedule_tail`.
    pub fn finish_switch(&mut self, now: Time, cpu: CpuId) {
        self.log.input(now, Input::FinishSwitch { cpu });
        let prev = self.switching[cpu.index()].take().expect("a switch is under way");
        if let Some(task) = prev {
            self.tasks.get_mut(task).on_cpu = false;
        }
        self.hook(now, cpu, |p, cx| p.finish_task_switch(cx, cpu, prev));
        let expelled = core::mem::replace(&mut self.expelled[cpu.index()], MustLeave::No);
        if let Some(task) = prev {
            if expelled == MustLeave::No {
                self.leave_forbidden_queue(now, cpu, task);
            } else {
                self.settle_expelled(now, cpu, task, expelled);
            }
        }
        self.settle(now, cpu);
        self.log.outcome(Outcome::None);
    }

    /// A task that had to leave its CPU joins an allowed queue.
    fn settle_expelled(&mut self, now: Time, this_cpu: CpuId, task: TaskId, whither: MustLeave) {
        let to = match whither {
            MustLeave::To(cpu) if self.tasks.get(task).affinity.contains(cpu) => cpu,
            _ => self.select(now, this_cpu, task, Wake::Migrate),
        };
        self.set_cpu(now, task, to);
        self.set_state(now, task, TaskState::Runnable);
        self.hook(now, this_cpu, |p, cx| {
            p.enqueue(cx, to, task, Enqueue::Migrate);
            p.wakeup_preempt(cx, to, task, Wake::Migrate);
        });
    }

    /// Whether the current task of `cpu` is in the middle of being switched to.
    #[inline]
    pub fn is_switching(&self, cpu: CpuId) -> bool {
        self.switching[cpu.index()].is_some()
    }

    /// The tick of `cpu`.
    ///
    /// Source: v6.12 `sched_tick`, 2.4.5 `update_process_times`.
    pub fn tick(&mut self, now: Time, cpu: CpuId) {
        self.log.input(now, Input::Tick { cpu });
        self.hook(now, cpu, |p, cx| p.tick(cx, cpu));
        self.settle(now, cpu);
        self.log.outcome(Outcome::None);
    }

    /// The current task of `cpu` calls `sched_yield`.
    ///
    /// # Panics
    /// When `cpu` is idle.
    pub fn yield_task(&mut self, now: Time, cpu: CpuId) {
        self.log.input(now, Input::Yield { cpu });
        let task = self.curr[cpu.index()].expect("the idle task does not yield");
        self.yielded[cpu.index()] = true;
        self.observer.event(now, &SchedEvent::Yield { task });
        self.hook(now, cpu, |p, cx| p.yield_task(cx, cpu, task));
        self.settle(now, cpu);
        self.log.outcome(Outcome::None);
    }

    /// A timer of the policy's own expires on `cpu`.
    pub fn timer(&mut self, now: Time, cpu: CpuId, timer: u32) {
        self.log.input(now, Input::Timer { cpu, timer });
        self.hook(now, cpu, |p, cx| p.timer(cx, timer));
        self.settle(now, cpu);
        self.log.outcome(Outcome::None);
    }

    /// Whether one lock guards the queue of the whole machine.
    pub(crate) fn is_global(&self) -> bool {
        self.locking == Locking::Global
    }
}
