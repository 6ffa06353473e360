// SPDX-License-Identifier: GPL-2.0-only
//! A simulated run as a kernel's tracepoints would show it: contexts, thread ids, names,
//! priorities.
//!
//! Events of a run name tasks by slot; tracepoints name threads by pid, say on which CPU and in
//! whose context they were hit, and carry priorities. This module keeps what is needed for that.
//! Events without a tracepoint (CPU modes, marks, deadlines, requests to reschedule, yields,
//! collected tasks) have no counterpart here.

use schedlab_policy_api::{Pid, PrevState, RecordedState, SchedClass, SchedEvent};
use schedlab_units::{CpuId, Nice, TaskId, Time};

/// The pid of the first task; each later one, in a used slot too, gets the next.
const FIRST_PID: u32 = 1000;

/// What events do not say about a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskLabel<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its nice value at the start.
    pub nice: Nice,
    /// Its class at the start.
    pub class: SchedClass,
    /// Its real-time priority at the start, 0 for other classes.
    pub rt_priority: u8,
}

/// A task as tracepoints show it.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) pid: Pid,
    /// At most 15 bytes, without control characters.
    pub(crate) comm: String,
    pub(crate) prio: i32,
    /// CPU it runs on or was last put on.
    cpu: CpuId,
    /// CPU that executed the wake-up under way, and whether an interrupt did it.
    waking: Option<(CpuId, bool)>,
    parent: Option<TaskId>,
}

/// A tracepoint; `None` stands for the idle task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    Switch { prev: Option<TaskId>, prev_state: RecordedState, next: Option<TaskId> },
    Waking { task: TaskId, target: CpuId },
    Wakeup { task: TaskId, target: CpuId },
    WakeupNew { task: TaskId, target: CpuId },
    Migrate { task: TaskId, from: CpuId, to: CpuId },
    Fork { parent: TaskId, child: TaskId },
    Exec { task: TaskId },
    Exit { task: TaskId },
}

/// A tracepoint with the place where it was hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hit {
    pub(crate) time: Time,
    pub(crate) cpu: CpuId,
    /// The current task of `cpu`; `None` for the idle task.
    pub(crate) context: Option<TaskId>,
    /// Whether an interrupt on top of the context hit it.
    pub(crate) interrupt: bool,
    pub(crate) point: Point,
}

/// State of the translation.
#[derive(Debug, Default)]
pub(crate) struct KernelView {
    /// By [`TaskId`].
    tasks: Vec<Shown>,
    /// Current task by CPU.
    current: Vec<Option<TaskId>>,
    next_pid: u32,
    /// A fork whose child has no name yet: held until the name or the next event comes.
    fork: Option<Hit>,
}

impl KernelView {
    /// What is known of `task`; a task never heard of gets a number for a name.
    pub(crate) fn task(&mut self, task: TaskId) -> &mut Shown {
        while self.tasks.len() <= task.index() {
            let id = TaskId::from_index(self.tasks.len());
            let shown = self.newborn(id, None);
            self.tasks.push(shown);
        }
        &mut self.tasks[task.index()]
    }

    fn newborn(&mut self, task: TaskId, parent: Option<TaskId>) -> Shown {
        self.next_pid += 1;
        Shown {
            pid: Pid(FIRST_PID + self.next_pid - 1),
            comm: format!("task-{task}"),
            prio: 120,
            cpu: CpuId(0),
            waking: None,
            parent,
        }
    }

    /// Names `task`, whose `ProcessFork` was seen last.
    pub(crate) fn label(&mut self, task: TaskId, label: TaskLabel<'_>) {
        let shown = self.task(task);
        shown.comm = comm(label.name);
        shown.prio = prio(label.class, label.nice, label.rt_priority);
    }

    /// The tracepoints hit so far and not yet handed out, then those of `event`.
    pub(crate) fn event(&mut self, now: Time, event: &SchedEvent) -> [Option<Hit>; 2] {
        let before = self.fork.take();
        let hit = self.translate(now, event);
        if let Some(Hit { point: Point::Fork { .. }, .. }) = hit {
            self.fork = hit;
            return [before, None];
        }
        [before, hit]
    }

    /// The tracepoint held back at the end of the run.
    pub(crate) fn finish(&mut self) -> Option<Hit> {
        self.fork.take()
    }

    fn translate(&mut self, now: Time, event: &SchedEvent) -> Option<Hit> {
        let hit = |cpu, context, interrupt, point| {
            Some(Hit { time: now, cpu, context, interrupt, point })
        };
        match *event {
            SchedEvent::ProcessFork { task, parent } => {
                // `task` may be the slot of a task that is gone: a new thread with a new pid.
                if task.index() < self.tasks.len() {
                    self.tasks[task.index()] = self.newborn(task, parent);
                } else {
                    self.task(task).parent = parent;
                }
                let parent = parent?;
                let cpu = self.task(parent).cpu;
                hit(cpu, Some(parent), false, Point::Fork { parent, child: task })
            }
            SchedEvent::WakeupNew { task, cpu } => {
                let parent = self.task(task).parent;
                let here = parent.map(|p| self.task(p).cpu);
                let here = here.filter(|c| self.current(*c) == parent).unwrap_or(cpu);
                self.task(task).cpu = cpu;
                let context = self.current(here);
                hit(here, context, parent.is_none(), Point::WakeupNew { task, target: cpu })
            }
            SchedEvent::Waking { task, waker, this_cpu, target } => {
                let context = waker.or_else(|| self.current(this_cpu));
                let interrupt = waker.is_none();
                self.task(task).waking = Some((this_cpu, interrupt));
                hit(this_cpu, context, interrupt, Point::Waking { task, target })
            }
            SchedEvent::Wakeup { task, cpu } => {
                let (here, interrupt) = self.task(task).waking.take().unwrap_or((cpu, true));
                self.task(task).cpu = cpu;
                hit(here, self.current(here), interrupt, Point::Wakeup { task, target: cpu })
            }
            SchedEvent::Switch { cpu, prev, prev_state, next } => {
                *self.current_mut(cpu) = next;
                if let Some(next) = next {
                    self.task(next).cpu = cpu;
                }
                let prev_state =
                    if prev.is_some() { recorded(prev_state) } else { RecordedState::Runnable };
                hit(cpu, prev, false, Point::Switch { prev, prev_state, next })
            }
            SchedEvent::MigrateTask { task, from, to } => {
                self.task(task).cpu = to;
                hit(to, self.current(to), false, Point::Migrate { task, from, to })
            }
            SchedEvent::ProcessExec { task } => {
                hit(self.task(task).cpu, Some(task), false, Point::Exec { task })
            }
            SchedEvent::ProcessExit { task, cpu } => {
                hit(cpu, Some(task), false, Point::Exit { task })
            }
            SchedEvent::PrioChange { task, nice, class, rt_priority } => {
                self.task(task).prio = prio(class, nice, rt_priority);
                None
            }
            _ => None,
        }
    }

    fn current(&self, cpu: CpuId) -> Option<TaskId> {
        self.current.get(cpu.index()).copied().flatten()
    }
    fn current_mut(&mut self, cpu: CpuId) -> &mut Option<TaskId> {
        if self.current.len() <= cpu.index() {
            self.current.resize(cpu.index() + 1, None);
        }
        &mut self.current[cpu.index()]
    }
}

/// Priority on the kernel's scale: 99 − rt_priority, or 120 + nice.
fn prio(class: SchedClass, nice: Nice, rt_priority: u8) -> i32 {
    if class.is_rt() { 99 - i32::from(rt_priority) } else { 120 + nice.get() }
}

fn recorded(state: PrevState) -> RecordedState {
    match state {
        PrevState::Preempted => RecordedState::Preempted,
        PrevState::Yielded => RecordedState::Runnable,
        PrevState::Sleeping => RecordedState::Sleeping,
        PrevState::Uninterruptible => RecordedState::Uninterruptible,
        PrevState::Zombie => RecordedState::Exited,
    }
}

/// `name` as a kernel would keep it: 15 bytes, but whole characters, no control characters, and no
/// blanks at its ends, which would be lost in the padding of a text.
fn comm(name: &str) -> String {
    let mut comm = String::with_capacity(15);
    for c in name.trim().chars() {
        let c = if c.is_control() { '?' } else { c };
        if comm.len() + c.len_utf8() > 15 {
            break;
        }
        comm.push(c);
    }
    comm.truncate(comm.trim_end().len());
    comm
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comm_is_cut_between_characters() {
        assert_eq!(comm("a\nb"), "a?b");
        assert_eq!(comm("exactly15bytes!"), "exactly15bytes!");
        assert_eq!(comm("fourteen bytesé"), "fourteen bytes");
        assert_eq!(comm(" a long name of a task"), "a long name of");
        assert_eq!(comm(""), "");
    }

    #[test]
    fn slot_used_again_gets_a_new_pid() {
        let mut view = KernelView::default();
        let fork = SchedEvent::ProcessFork { task: TaskId(0), parent: None };
        view.event(Time::ZERO, &fork);
        assert_eq!(view.task(TaskId(0)).pid, Pid(1000));
        view.event(Time::ZERO, &fork);
        assert_eq!(view.task(TaskId(0)).pid, Pid(1001));
    }

    #[test]
    fn fork_waits_for_the_name_of_the_child() {
        let mut view = KernelView::default();
        let now = Time::from_ns(5);
        view.event(now, &SchedEvent::ProcessFork { task: TaskId(0), parent: None });
        let fork = SchedEvent::ProcessFork { task: TaskId(1), parent: Some(TaskId(0)) };
        assert_eq!(view.event(now, &fork), [None, None]);
        let label =
            TaskLabel { name: "child", nice: Nice::MAX, class: SchedClass::Normal, rt_priority: 0 };
        view.label(TaskId(1), label);
        let woken = SchedEvent::WakeupNew { task: TaskId(1), cpu: CpuId(0) };
        let [fork, woken] = view.event(now, &woken).map(|hit| hit.map(|h| h.point));
        assert_eq!(fork, Some(Point::Fork { parent: TaskId(0), child: TaskId(1) }));
        assert_eq!(woken, Some(Point::WakeupNew { task: TaskId(1), target: CpuId(0) }));
        assert_eq!(view.task(TaskId(1)).prio, 139);
    }
}
