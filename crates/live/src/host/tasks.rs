// SPDX-License-Identifier: GPL-2.0-only
//! What happens to tasks: joining, waiting, blocking, changing, leaving.

use schedlab_kcore::{NewTask, Wakeup};
use schedlab_policy_api::{Mm, Policy, SchedClass, TaskState, Tgid};
use schedlab_units::{CpuId, CpuSet, Nanos, Nice, TaskId};

use super::{Host, LiveObserver, Thread};
use crate::message::{Message, Why, flag};

/// What the host knows of a task, beyond the core's facts.
#[derive(Clone, Debug)]
pub(super) struct LiveTask {
    /// None = the slot is free.
    pub(super) thread: Option<Thread>,
    /// Which handing over is the present one.
    pub(super) lease: u32,
    /// It is in our hands and no decision about it is under way.
    pub(super) waits: bool,
    /// It runs on this CPU, where the core does not have it: the relay gave it there without asking,
    /// or the CPU is going offline.
    pub(super) unasked: Option<CpuId>,
    /// CPU time by the kernel's account.
    pub(super) run: Nanos,
    /// CPUs that the kernel allows it.
    allowed: CpuSet,
    /// The CPU that it may not leave at the moment.
    pub(super) pinned: Option<CpuId>,
}

impl LiveTask {
    /// A slot that no task has.
    const FREE: Self = Self {
        thread: None,
        lease: 0,
        waits: false,
        unasked: None,
        run: Nanos::ZERO,
        allowed: CpuSet::EMPTY,
        pinned: None,
    };
}

/// The kernel's `policy` field: SCHED_BATCH and SCHED_IDLE; everything else here is normal.
fn class_of(policy: u64) -> SchedClass {
    match policy {
        3 => SchedClass::Batch,
        5 => SchedClass::Idle,
        _ => SchedClass::Normal,
    }
}

fn nice_of(value: i64) -> Nice {
    let value = value.clamp(-20, 19);
    Nice::new(i32::try_from(value).expect("clamped")).expect("clamped")
}

impl<P: Policy, O: LiveObserver> Host<P, O> {
    pub(super) fn task(&mut self, task: TaskId) -> &mut LiveTask {
        if self.tasks.len() <= task.index() {
            self.tasks.resize(task.index() + 1, LiveTask::FREE);
        }
        &mut self.tasks[task.index()]
    }

    pub(super) fn account(&mut self, task: TaskId, message: &Message) {
        let span = Nanos::from_ns(message.msg.run_ns);
        if span > Nanos::ZERO {
            self.task(task).run += span;
            self.totals.run += span;
            self.core.observer_mut().ran(task, span);
        }
    }

    /// The CPU where the core believes `task` to be current.
    pub(super) fn current_on(&self, task: TaskId) -> Option<CpuId> {
        let facts = self.core.tasks().get(task);
        (facts.state == TaskState::Running).then_some(facts.cpu)
    }

    /// A CPU of the policy to stand for the one that a record names.
    fn this_cpu(&self, message: &Message) -> CpuId {
        let cpu = message.cpu();
        if cpu.index() < self.cpus.len() { cpu } else { CpuId(0) }
    }

    pub(super) fn join(&mut self, message: &Message) {
        let msg = &message.msg;
        if let Some(task) = self.ids.get(&msg.pid).copied() {
            self.leave(task);
        }
        let Some(detail) = &message.detail else { return };
        let nice = nice_of(msg.c);
        let thread = Thread {
            pid: msg.pid,
            tgid: message.tgid(),
            parent: message.parent(),
            comm: detail.name(),
            nice: nice.get() as i8,
        };
        let on = self.this_cpu(message);
        // Only a parent that the policy itself has put on this CPU gives something to its child.
        let parent = self.ids.get(&thread.parent).copied();
        let parent = parent.filter(|parent| self.core.curr(on) == Some(*parent));
        let allowed = detail.cpus();
        let affinity = self.usable(&allowed);
        let new = NewTask {
            class: class_of(msg.a),
            nice,
            rt_priority: 0,
            affinity,
            cpu: if affinity.contains(on) { on } else { affinity.first().unwrap_or(on) },
            tgid: Tgid(thread.tgid),
            mm: Some(Mm(thread.tgid)),
            slice_request_ns: 0,
        };
        let task = self.core.fork(self.now, on, parent, &new);
        self.core.observer_mut().joined(task, &thread);
        self.ids.insert(msg.pid, task);
        *self.task(task) = LiveTask {
            thread: Some(thread),
            lease: msg.lease,
            waits: false,
            unasked: None,
            run: Nanos::ZERO,
            allowed,
            pinned: None,
        };
    }

    /// The CPUs of the policy that a task with this mask may use now; never empty.
    fn usable(&self, allowed: &CpuSet) -> CpuSet {
        let online = allowed.intersection(&self.online);
        if !online.is_empty() {
            return online;
        }
        let all = allowed.intersection(&self.policy_cpus);
        if all.is_empty() { self.policy_cpus } else { all }
    }

    /// What the kernel pinned for a moment is free again.
    fn unpin(&mut self, task: TaskId) {
        if self.task(task).pinned.take().is_some() {
            self.apply_affinity(task);
        }
    }

    /// The task is runnable and in our hands.
    pub(super) fn waits(&mut self, task: TaskId, message: &Message) {
        self.unpin(task);
        let (now, this_cpu) = (self.now, self.this_cpu(message));
        let live = self.task(task);
        live.lease = message.msg.lease;
        live.waits = !message.has(flag::DIRECT);
        let was_unasked = live.unasked.take().is_some();
        self.totals.disagreed += u64::from(was_unasked);
        match self.core.tasks().get(task).state {
            TaskState::New => {
                let on = self.waker_cpu(message);
                let parent = self.core.tasks().get(task).parent;
                self.core.wake_up_new(now, on, task, None);
                // A policy may leave it to the parent to make room soon; here nobody will.
                if parent.is_none() || self.core.curr(on) != parent {
                    self.offer_to_idle_cpus();
                }
            }
            TaskState::Sleeping | TaskState::Uninterruptible => self.wake(task, message),
            TaskState::Running => self.came_back(task, message),
            TaskState::Zombie | TaskState::Dead => self.totals.odd.after_exit += 1,
            TaskState::Waking => self.core.wake_arrive(now, this_cpu, task),
            TaskState::Runnable => {}
        }
        if message.has(flag::DIRECT) {
            self.runs_already(task, message);
        }
    }

    /// The CPU that executed a wake-up.
    fn waker_cpu(&self, message: &Message) -> CpuId {
        let waker = usize::try_from(message.msg.c).unwrap_or(usize::MAX);
        let by_wakeup = matches!(message.why(), Why::Fork | Why::Wake);
        if by_wakeup && waker < self.cpus.len() {
            CpuId::from_index(waker)
        } else {
            self.this_cpu(message)
        }
    }

    fn wake(&mut self, task: TaskId, message: &Message) {
        let on = self.waker_cpu(message);
        let waker = if message.has(flag::IRQ) || message.why() != Why::Wake {
            None
        } else {
            self.ids.get(&(message.msg.b as u32)).copied()
        };
        // The promise to sleep at once is worth something if the policy sees that sleep.
        let sync = message.has(flag::SYNC) && waker.is_some() && self.core.curr(on) == waker;
        // The kernel has carried the wake-up to its CPU already: there is nothing to wait for.
        if let Wakeup::Sent(cpu) = self.core.wake(self.now, on, task, waker, sync) {
            self.core.wake_arrive(self.now, cpu, task);
        }
    }

    /// A task that the core has as current is in our hands again; its CPU asks next.
    fn came_back(&mut self, task: TaskId, message: &Message) {
        let Some(cpu) = self.current_on(task) else { return };
        let model = &mut self.cpus[cpu.index()];
        let ran_here = model.given.is_some();
        (model.given, model.stopping) = (None, false);
        match message.why() {
            // It comes from elsewhere, and was chosen for this CPU meanwhile, which still asks.
            _ if !ran_here => self.leave_forbidden_cpu(task, cpu),
            // A CPU that asked is lost when it is given something.
            Why::Class if !self.cpus[cpu.index()].asked => self.lose(cpu),
            Why::Yield => self.core.yield_task(self.now, cpu),
            _ => self.leave_forbidden_cpu(task, cpu),
        }
        if ran_here && self.cpus[cpu.index()].asked {
            self.schedule(cpu);
        }
    }

    /// A policy may keep a task where it runs although it is not allowed there any more (2.4 does),
    /// the kernel does not: it goes back to its queue.
    pub(super) fn leave_forbidden_cpu(&mut self, task: TaskId, cpu: CpuId) {
        if !self.core.tasks().get(task).affinity.contains(cpu) {
            self.put_back(cpu);
        }
    }

    pub(super) fn blocks(&mut self, task: TaskId, message: &Message) {
        let now = self.now;
        self.unpin(task);
        self.task(task).waits = false;
        let exits = message.has(flag::EXITING);
        let asleep =
            if message.has(flag::UNINT) { TaskState::Uninterruptible } else { TaskState::Sleeping };
        match self.core.tasks().get(task).state {
            TaskState::Running => {
                let cpu = self.core.tasks().cpu(task);
                let switch = if exits {
                    self.core.exit(now, cpu)
                } else {
                    self.core.block(now, cpu, asleep)
                };
                self.after_switch(cpu, switch.is_real());
            }
            TaskState::Runnable => {
                if self.task(task).unasked.take().is_some() {
                    self.totals.disagreed += 1;
                } else {
                    self.totals.odd.unseen_runs += 1;
                }
                let state = if exits { TaskState::Zombie } else { asleep };
                let on = self.this_cpu(message);
                self.core.deactivate(now, on, task, state);
            }
            // It ran before it came into our hands, or is on its way out.
            _ => {}
        }
    }

    pub(super) fn leave(&mut self, task: TaskId) {
        let now = self.now;
        let cpu = self.core.tasks().cpu(task);
        match self.core.tasks().get(task).state {
            TaskState::Running => {
                let switch = self.core.exit(now, cpu);
                self.after_switch(cpu, switch.is_real());
            }
            TaskState::Zombie => {}
            _ => self.core.deactivate(now, cpu, task, TaskState::Zombie),
        }
        let children: Vec<TaskId> = self
            .core
            .tasks()
            .iter()
            .filter(|(_, facts)| facts.parent == Some(task))
            .map(|(child, _)| child)
            .collect();
        self.core.reap(now, cpu, task);
        for child in children {
            self.core.orphan(child);
        }
        if let Some(thread) = std::mem::replace(self.task(task), LiveTask::FREE).thread {
            self.ids.remove(&thread.pid);
        }
    }

    pub(super) fn renice(&mut self, task: TaskId, message: &Message) {
        let nice = nice_of(message.msg.c);
        let on = self.this_cpu(message);
        if let Some(thread) = &mut self.task(task).thread {
            thread.nice = nice.get() as i8;
        }
        self.core.set_nice(self.now, on, task, nice);
    }

    pub(super) fn allow(&mut self, task: TaskId, message: &Message) {
        if let Some(detail) = &message.detail {
            self.task(task).allowed = detail.cpus();
            self.apply_affinity(task);
        }
    }

    pub(super) fn apply_affinity(&mut self, task: TaskId) {
        let allowed = self.task(task).allowed;
        let mut affinity = self.usable(&allowed);
        if let Some(cpu) = self.task(task).pinned.filter(|cpu| affinity.contains(*cpu)) {
            affinity = CpuSet::single(cpu);
        }
        let facts = self.core.tasks().get(task);
        if facts.affinity != affinity && facts.state != TaskState::Zombie {
            let cpu = facts.cpu;
            self.core.set_affinity(self.now, cpu, task, &affinity);
        }
    }

    pub(super) fn exec(&mut self, task: TaskId, message: &Message) {
        self.rename(task, message);
        if let Some(cpu) = self.current_on(task) {
            self.next_mm = self.next_mm.wrapping_add(1);
            self.core.exec(self.now, cpu, Mm(self.next_mm));
        }
    }

    pub(super) fn rename(&mut self, task: TaskId, message: &Message) {
        let Some(detail) = &message.detail else { return };
        let name = detail.name();
        self.core.observer_mut().renamed(task, &name);
        if let Some(thread) = &mut self.task(task).thread {
            thread.comm = name;
        }
    }
}
