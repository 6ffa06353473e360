// SPDX-License-Identifier: GPL-2.0-only
//! Real-time tasks among several CPUs: where they wake up, and how they are pushed and pulled.
//!
//! Source: v6.12 `rt.c`, `cpupri.c`.

use schedlab_policy_api::{Ctx, TaskState, Wake};
use schedlab_units::{CpuId, CpuSet, TaskId};

use super::{Rt, prio_of};

impl Rt {
    /// The CPU for `task`, which may use more than one: its last, unless a task that it cannot
    /// preempt runs there.
    ///
    /// Source: v6.12 `rt.c` `select_task_rq_rt`.
    pub(crate) fn select_cpu(&mut self, cx: &Ctx<'_>, task: TaskId, wake: Wake) -> CpuId {
        let facts = cx.tasks.get(task);
        let cpu = facts.cpu;
        if !matches!(wake, Wake::Wakeup { .. } | Wake::Fork) {
            return cpu;
        }
        let stuck = cx.curr(cpu).is_some_and(|curr| {
            let curr = cx.tasks.get(curr);
            curr.class.is_rt() && (curr.affinity.len() < 2 || prio_of(curr) <= prio_of(facts))
        });
        if stuck
            && let Some(target) = self.find_lowest(cx, task, &CpuSet::EMPTY)
            && prio_of(facts) < self.rqs[target.index()].highest()
        {
            return target;
        }
        cpu
    }

    /// Sends waiting tasks of `cpu` to CPUs that run less urgent ones.
    ///
    /// Source: v6.12 `rt.c` `push_rt_tasks`.
    pub(crate) fn push(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) {
        if self.rqs[cpu.index()].nr < 2 {
            return;
        }
        let curr_prio = cx.curr(cpu).map_or(u8::MAX, |curr| prio_of(cx.tasks.get(curr)));
        // Moves take effect after the hook: a target is not chosen twice.
        let mut taken = CpuSet::single(cpu);
        let mut at = self.first_pushable(cx, cpu, None);
        while let Some(task) = at {
            let prio = self.tasks[task.index()].prio;
            if prio < curr_prio {
                cx.resched(cpu);
                return;
            }
            let Some(target) = self.find_lowest(cx, task, &taken) else { return };
            if self.rqs[target.index()].highest() <= prio {
                return;
            }
            cx.migrate(task, target);
            taken.insert(target);
            at = self.first_pushable(cx, cpu, Some(task));
        }
    }

    /// [`Rt::push`] after a wake-up of `woken` that does not preempt.
    ///
    /// Source: v6.12 `rt.c` `task_woken_rt`.
    pub(crate) fn push_woken(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, woken: TaskId) {
        let Some(curr) = cx.curr(cpu) else { return };
        let (theirs, ours) = (cx.tasks.get(woken), cx.tasks.get(curr));
        if curr != woken
            && !cx.need_resched(cpu)
            && theirs.affinity.len() > 1
            && ours.class.is_rt()
            && (ours.affinity.len() < 2 || prio_of(ours) <= prio_of(theirs))
        {
            self.push(cx, cpu);
        }
    }

    /// The most urgent waiting task of another CPU that is more urgent than everything on `cpu` and
    /// not about to run where it is.
    ///
    /// Source: v6.12 `rt.c` `pull_rt_task`.
    pub(crate) fn find_pull(&self, cx: &Ctx<'_>, cpu: CpuId) -> Option<(TaskId, CpuId)> {
        let mut limit = self.rqs[cpu.index()].highest();
        let mut best = None;
        for from in self.crowded.iter().filter(|from| *from != cpu) {
            let Some(task) = self.first_pushable_to(cx, from, cpu) else { continue };
            let prio = self.tasks[task.index()].prio;
            let curr_prio = cx.curr(from).map_or(u8::MAX, |curr| prio_of(cx.tasks.get(curr)));
            if prio < limit && prio >= curr_prio {
                limit = prio;
                best = Some((task, from));
            }
        }
        best
    }

    /// Whether `cpu` has just lost real-time work and should look for some elsewhere.
    ///
    /// Source: v6.12 `rt.c` `balance_rt`, `need_pull_rt_task`.
    pub(crate) fn needs_pull(&self, cx: &Ctx<'_>, cpu: CpuId) -> bool {
        cx.curr(cpu).is_some_and(|prev| {
            let facts = cx.tasks.get(prev);
            facts.class.is_rt()
                && facts.state != TaskState::Running
                && self.rqs[cpu.index()].highest() > prio_of(facts)
        })
    }

    /// Moves a waiting task between queues, inside the class.
    pub(crate) fn transfer(&mut self, cx: &Ctx<'_>, task: TaskId, from: CpuId, to: CpuId) {
        self.dequeue(from, task, false);
        self.enqueue(cx, to, task);
    }

    /// The next task after `after` in order of urgency that waits on `cpu` and may go elsewhere.
    fn first_pushable(&self, cx: &Ctx<'_>, cpu: CpuId, after: Option<TaskId>) -> Option<TaskId> {
        let mut seen = after.is_none();
        self.waiting(cx, cpu).find(|task| {
            let eligible = seen && cx.tasks.get(*task).affinity.len() > 1;
            seen |= Some(*task) == after;
            eligible
        })
    }

    /// The most urgent task that waits on `from` and may use `to`.
    fn first_pushable_to(&self, cx: &Ctx<'_>, from: CpuId, to: CpuId) -> Option<TaskId> {
        self.waiting(cx, from).find(|task| cx.tasks.get(*task).affinity.contains(to))
    }

    /// Tasks that wait on `cpu`, in order of urgency.
    fn waiting<'a>(
        &'a self,
        cx: &'a Ctx<'_>,
        cpu: CpuId,
    ) -> impl Iterator<Item = TaskId> + use<'a> {
        self.queued(cpu)
            .filter(move |task| self.tasks[task.index()].queued && !cx.tasks.get(*task).on_cpu)
    }

    /// Of the CPUs `among`, those that do the least urgent work, if less urgent than `prio`.
    ///
    /// Source: v6.12 `cpupri.c` `cpupri_find`.
    pub(super) fn lower_cpus(&self, prio: u8, among: &CpuSet) -> Option<CpuSet> {
        let mut lower = self.by_prio[usize::from(prio) + 1..].iter().rev();
        lower.find(|cpus| cpus.intersects(among)).map(|cpus| cpus.intersection(among))
    }

    /// Of the CPUs with the least urgent work: the task's own, else the waker's, else the nearest.
    ///
    /// Source: v6.12 `rt.c` `find_lowest_rq`.
    fn find_lowest(&mut self, cx: &Ctx<'_>, task: TaskId, taken: &CpuSet) -> Option<CpuId> {
        let facts = cx.tasks.get(task);
        if facts.affinity.len() == 1 {
            return None;
        }
        let lowest = self.lower_cpus(prio_of(facts), &facts.affinity.difference(taken))?;
        if lowest.contains(facts.cpu) {
            return Some(facts.cpu);
        }
        let cpu = facts.cpu;
        for span in
            [cx.topo.siblings(cpu), cx.topo.llc_cpus(cpu), cx.topo.node_cpus(cpu), cx.topo.all()]
        {
            if span.contains(cx.this_cpu) && lowest.contains(cx.this_cpu) {
                return Some(cx.this_cpu);
            }
            let near = lowest.intersection(span);
            if let Some(cpu) = near.iter_after(self.distributed).next() {
                self.distributed = cpu;
                return Some(cpu);
            }
        }
        None
    }
}
