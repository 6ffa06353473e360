// SPDX-License-Identifier: GPL-2.0-only
//! One FIFO list of waiting tasks per CPU: what `fifo` and `rr` share.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use schedlab_policy_api::{Build, Ctx, PutPrev, TaskState, View};
use schedlab_units::{CpuId, CpuSet, TaskId};

/// End of a list.
const NONE: u32 = u32::MAX;

/// The waiting tasks of one CPU, as a list through [`Links`]: joining, leaving from anywhere and
/// looking at the first are O(1).
#[derive(Clone, Copy)]
struct List {
    head: u32,
    tail: u32,
    len: usize,
}

/// Where a task stands.
#[derive(Clone, Copy)]
struct Links {
    /// The CPU on whose list it is; none = on no list.
    on: Option<CpuId>,
    before: u32,
    after: u32,
}

impl Links {
    const FREE: Self = Self { on: None, before: NONE, after: NONE };
}

/// Waiting tasks of each CPU in order of arrival; the current task is on no list.
pub(crate) struct Lists {
    rq: Vec<List>,
    /// Indexed by task.
    links: Vec<Links>,
    /// CPUs whose current task has called `sched_yield` and goes to the end.
    yielded: CpuSet,
}

impl Lists {
    /// Empty lists for the CPUs of `build`.
    pub(crate) fn new(build: Build<'_>) -> Self {
        let empty = List { head: NONE, tail: NONE, len: 0 };
        Self {
            rq: alloc::vec![empty; build.topo.n_cpus()],
            links: alloc::vec![Links::FREE; build.n_tasks],
            yielded: CpuSet::EMPTY,
        }
    }
    /// Number of tasks waiting for `cpu`.
    pub(crate) fn waiting(&self, cpu: CpuId) -> usize {
        self.rq[cpu.index()].len
    }
    /// Adds `task` at the end of `cpu`'s list unless it is current there.
    pub(crate) fn enqueue(&mut self, cx: &Ctx<'_>, cpu: CpuId, task: TaskId) {
        if cx.curr(cpu) != Some(task) {
            self.push_back(cpu, task);
        }
    }
    fn push_back(&mut self, cpu: CpuId, task: TaskId) {
        if self.links.len() <= task.index() {
            self.links.resize(task.index() + 1, Links::FREE);
        }
        let list = &mut self.rq[cpu.index()];
        let before = core::mem::replace(&mut list.tail, task.0);
        list.len += 1;
        match self.links.get_mut(before as usize) {
            Some(neighbour) => neighbour.after = task.0,
            None => list.head = task.0,
        }
        let links = &mut self.links[task.index()];
        debug_assert!(links.on.is_none(), "task {task} is on a list already");
        *links = Links { on: Some(cpu), before, after: NONE };
    }
    /// Takes `task` off `cpu`'s list; nothing happens when it is not there, being current.
    pub(crate) fn remove(&mut self, cpu: CpuId, task: TaskId) {
        let links = self.links.get(task.index()).copied().unwrap_or(Links::FREE);
        if links.on != Some(cpu) {
            return;
        }
        let list = &mut self.rq[cpu.index()];
        list.len -= 1;
        match self.links.get_mut(links.before as usize) {
            Some(neighbour) => neighbour.after = links.after,
            None => list.head = links.after,
        }
        match self.links.get_mut(links.after as usize) {
            Some(neighbour) => neighbour.before = links.before,
            None => list.tail = links.before,
        }
        self.links[task.index()] = Links::FREE;
    }
    /// The tasks waiting for `cpu` in order.
    fn iter(&self, cpu: CpuId) -> impl Iterator<Item = TaskId> + '_ {
        let mut at = self.rq[cpu.index()].head;
        core::iter::from_fn(move || {
            let links = self.links.get(at as usize)?;
            Some(TaskId(core::mem::replace(&mut at, links.after)))
        })
    }
    /// A task that stops being current goes to the end if it is still willing.
    pub(crate) fn put_prev(&mut self, cpu: CpuId, task: TaskId, why: PutPrev) {
        self.yielded.remove(cpu);
        if matches!(why, PutPrev::Preempted | PutPrev::Yielded) {
            self.push_back(cpu, task);
        }
    }
    /// The current task gives way; true when somebody waits.
    pub(crate) fn give_way(&mut self, cpu: CpuId) -> bool {
        let contested = self.waiting(cpu) > 0;
        if contested {
            self.yielded.insert(cpu);
        }
        contested
    }
    /// The current task while it is willing and has not given way, else the longest waiting.
    pub(crate) fn keep_or_first(&self, cx: &Ctx<'_>, cpu: CpuId) -> Option<TaskId> {
        let head = self.rq[cpu.index()].head;
        let first = (head != NONE).then_some(TaskId(head));
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
            self.waiting(cpu)
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
        let movable =
            |from: CpuId| self.iter(from).find(|task| cx.tasks.get(*task).affinity.contains(cpu));
        let busiest = cx
            .topo
            .cpus()
            .filter(|from| *from != cpu)
            .filter_map(|from| Some((from, movable(from)?)))
            .max_by_key(|(from, _)| (self.waiting(*from), core::cmp::Reverse(*from)));
        if let Some((_, task)) = busiest {
            cx.migrate(task, cpu);
        }
    }
    /// I9: the lists hold exactly the waiting tasks, each once, on its own CPU.
    pub(crate) fn check(&self, view: &View<'_>) -> Result<(), String> {
        let mut n_listed = 0;
        for cpu in view.topo.cpus() {
            let mut n = 0;
            for task in self.iter(cpu) {
                let facts = view.tasks.get(task);
                if facts.state != TaskState::Runnable || facts.cpu != cpu {
                    return Err(format!("{task} on the list of CPU {cpu} is {facts:?}"));
                }
                n += 1;
            }
            if n != self.waiting(cpu) {
                return Err(format!("CPU {cpu} lists {n} tasks, counts {}", self.waiting(cpu)));
            }
            n_listed += n;
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
