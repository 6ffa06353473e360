// SPDX-License-Identifier: GPL-2.0-only
//! One FIFO list of waiting tasks per CPU: what `fifo` and `rr` share.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use schedlab_policy_api::{Build, Ctx, PutPrev, TaskState, View};
use schedlab_units::{CpuId, CpuSet, TaskId};

/// Waiting tasks of each CPU in order of arrival; the current task is on no list.
pub(crate) struct Lists {
    rq: Vec<VecDeque<TaskId>>,
    /// CPUs whose current task has called `sched_yield` and goes to the end.
    yielded: CpuSet,
}

impl Lists {
    /// Empty lists for the CPUs of `build`.
    pub(crate) fn new(build: Build<'_>) -> Self {
        let room = build.n_tasks;
        Self {
            rq: build.topo.cpus().map(|_| VecDeque::with_capacity(room)).collect(),
            yielded: CpuSet::EMPTY,
        }
    }
    /// Number of tasks waiting for `cpu`.
    pub(crate) fn waiting(&self, cpu: CpuId) -> usize {
        self.rq[cpu.index()].len()
    }
    /// Adds `task` at the end of `cpu`'s list unless it is current there.
    pub(crate) fn enqueue(&mut self, cx: &Ctx<'_>, cpu: CpuId, task: TaskId) {
        if cx.curr(cpu) != Some(task) {
            self.rq[cpu.index()].push_back(task);
        }
    }
    /// Takes `task` off `cpu`'s list; nothing happens when it is current.
    pub(crate) fn remove(&mut self, cpu: CpuId, task: TaskId) {
        let rq = &mut self.rq[cpu.index()];
        if rq.front() == Some(&task) {
            rq.pop_front();
        } else if let Some(at) = rq.iter().position(|t| *t == task) {
            rq.remove(at);
        }
    }
    /// A task that stops being current goes to the end if it is still willing.
    pub(crate) fn put_prev(&mut self, cpu: CpuId, task: TaskId, why: PutPrev) {
        self.yielded.remove(cpu);
        if matches!(why, PutPrev::Preempted | PutPrev::Yielded) {
            self.rq[cpu.index()].push_back(task);
        }
    }
    /// The current task gives way; true when somebody waits.
    pub(crate) fn give_way(&mut self, cpu: CpuId) -> bool {
        let contested = !self.rq[cpu.index()].is_empty();
        if contested {
            self.yielded.insert(cpu);
        }
        contested
    }
    /// The current task while it is willing and has not given way, else the longest waiting.
    pub(crate) fn keep_or_first(&self, cx: &Ctx<'_>, cpu: CpuId) -> Option<TaskId> {
        let first = self.rq[cpu.index()].front().copied();
        match cx.curr(cpu) {
            Some(curr) if cx.tasks.get(curr).state == TaskState::Running => {
                if self.yielded.contains(cpu) { first.or(Some(curr)) } else { Some(curr) }
            }
            _ => first,
        }
    }
    /// The task's last CPU if that is idle, else the lowest idle one, else the allowed CPU with the
    /// fewest tasks.
    pub(crate) fn idle_or_shortest(&self, cx: &Ctx<'_>, task: TaskId) -> CpuId {
        let facts = cx.tasks.get(task);
        let load = |cpu: CpuId| {
            self.rq[cpu.index()].len()
                + usize::from(cx.curr(cpu).is_some_and(|curr| curr != task))
                + cx.wake_pending[cpu.index()] as usize
        };
        if facts.affinity.contains(facts.cpu) && load(facts.cpu) == 0 {
            return facts.cpu;
        }
        let allowed = cx.topo.cpus().filter(|cpu| facts.affinity.contains(*cpu));
        allowed.min_by_key(|cpu| load(*cpu)).unwrap_or(facts.cpu)
    }
    /// Asks for the longest waiting task of the longest list that may run on the idle `cpu`.
    pub(crate) fn pull(&self, cx: &mut Ctx<'_>, cpu: CpuId) {
        let movable = |from: CpuId| {
            let may_move = |t: &&TaskId| cx.tasks.get(**t).affinity.contains(cpu);
            self.rq[from.index()].iter().find(may_move).copied()
        };
        let busiest = cx
            .topo
            .cpus()
            .filter(|from| *from != cpu)
            .filter_map(|from| Some((from, movable(from)?)))
            .max_by_key(|(from, _)| (self.rq[from.index()].len(), core::cmp::Reverse(*from)));
        if let Some((_, task)) = busiest {
            cx.migrate(task, cpu);
        }
    }
    /// I9: the lists hold exactly the waiting tasks, each once, on its own CPU.
    pub(crate) fn check(&self, view: &View<'_>) -> Result<(), String> {
        let mut n_listed = 0;
        for cpu in view.topo.cpus() {
            for task in &self.rq[cpu.index()] {
                let facts = view.tasks.get(*task);
                if facts.state != TaskState::Runnable || facts.cpu != cpu {
                    return Err(format!("{task} on the list of CPU {cpu} is {facts:?}"));
                }
                n_listed += 1;
            }
        }
        let n_waiting =
            view.tasks.iter().filter(|(_, facts)| facts.state == TaskState::Runnable).count();
        if n_listed == n_waiting {
            Ok(())
        } else {
            Err(format!("{n_listed} tasks are listed, {n_waiting} wait"))
        }
    }
}
