// SPDX-License-Identifier: GPL-2.0-only
//! The real-time class: FIFO and RR tasks by fixed priority, with push and pull between CPUs.
//!
//! It is shared by the policies whose kernels have per-CPU real-time queues. It knows nothing of
//! other classes: they run when [`Rt::pick`] finds nothing. Priorities are on the kernel's scale,
//! 0 highest. The current task stays on its list, as in the kernel.
//! Source: v6.12 `rt.c`, `cpupri.c`; spec cfs-eevdf §4G.

mod smp;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use schedlab_policy_api::{Ctx, SchedClass, Task, TaskState, View};
use schedlab_units::{CpuId, CpuSet, Hz, Nanos, TaskId};

/// Number of real-time priorities; a CPU without real-time tasks has this one.
pub(crate) const MAX_RT_PRIO: u8 = 100;
/// End of a list.
const NONE: u32 = u32::MAX;

/// One CPU's lists by priority.
#[derive(Clone, Debug)]
struct RtRq {
    /// Bit p is set exactly when the list of priority p is not empty.
    bitmap: u128,
    lists: [(u32, u32); MAX_RT_PRIO as usize],
    /// Queued tasks; those in the middle of a change are on a list but not queued.
    nr: u32,
}

impl RtRq {
    fn highest(&self) -> u8 {
        self.bitmap.trailing_zeros().min(u32::from(MAX_RT_PRIO)) as u8
    }
}

#[derive(Clone, Copy, Debug)]
struct RtTask {
    prio: u8,
    queued: bool,
    on_list: bool,
    /// Ticks left of the RR slice.
    time_slice: u32,
    before: u32,
    after: u32,
}

/// Real-time queues of all CPUs.
#[derive(Clone, Debug)]
pub(crate) struct Rt {
    rqs: Vec<RtRq>,
    tasks: Vec<RtTask>,
    slice_ticks: u32,
    /// CPUs by their highest priority; index [`MAX_RT_PRIO`] = no real-time task (`cpupri`).
    by_prio: Vec<CpuSet>,
    /// CPUs that had more than one queued task when last looked at (`rto_mask`).
    crowded: CpuSet,
    /// The last CPU taken for want of a better reason.
    distributed: CpuId,
}

/// Priority of a real-time task on the kernel's scale.
fn prio_of(facts: &Task) -> u8 {
    facts.static_prio().0
}

fn slice_ticks(timeslice: Nanos, tick: Nanos) -> u32 {
    let ticks = timeslice.as_ns().div_ceil(tick.as_ns()).max(1);
    u32::try_from(ticks).unwrap_or(u32::MAX)
}

impl Rt {
    /// Empty queues; RR tasks run for `timeslice`, rounded up to whole ticks.
    pub(crate) fn new(n_cpus: usize, n_tasks: usize, timeslice: Nanos, hz: Hz) -> Self {
        let rq = RtRq { bitmap: 0, lists: [(NONE, NONE); MAX_RT_PRIO as usize], nr: 0 };
        let mut by_prio = alloc::vec![CpuSet::EMPTY; usize::from(MAX_RT_PRIO) + 1];
        by_prio[usize::from(MAX_RT_PRIO)] = CpuSet::first_n(n_cpus);
        Self {
            rqs: alloc::vec![rq; n_cpus],
            tasks: Vec::with_capacity(n_tasks),
            slice_ticks: slice_ticks(timeslice, hz.tick()),
            by_prio,
            crowded: CpuSet::EMPTY,
            distributed: CpuId(0),
        }
    }

    /// RR tasks get slices of `timeslice` from now on, rounded up to whole ticks of length `tick`.
    pub(crate) fn set_timeslice(&mut self, timeslice: Nanos, tick: Nanos) {
        self.slice_ticks = slice_ticks(timeslice, tick);
    }

    /// Prepares the slot of a forked task; its slice is whole.
    pub(crate) fn fork(&mut self, child: TaskId) {
        let fresh = RtTask {
            prio: MAX_RT_PRIO,
            queued: false,
            on_list: false,
            time_slice: self.slice_ticks,
            before: NONE,
            after: NONE,
        };
        while self.tasks.len() <= child.index() {
            self.tasks.push(fresh);
        }
        self.tasks[child.index()] = fresh;
    }

    /// Queues `task` on `cpu`: at the place it kept, else at the end of its list, or at the front
    /// if its priority was lowered.
    ///
    /// Source: v6.12 `rt.c` `__enqueue_rt_entity`, `syscalls.c` `__sched_setscheduler`.
    pub(crate) fn enqueue(&mut self, cx: &Ctx<'_>, cpu: CpuId, task: TaskId) {
        let prio = prio_of(cx.tasks.get(task));
        let this = &mut self.tasks[task.index()];
        assert!(!this.on_list || this.prio == prio, "task {task} is on the list of {}", this.prio);
        let lowered = this.prio < prio;
        this.prio = prio;
        this.queued = true;
        if !this.on_list {
            self.list_insert(cpu, task, lowered);
        }
        self.rqs[cpu.index()].nr += 1;
        self.note(cpu);
    }

    /// Takes `task` off `cpu`'s queue; with `keep_place` it stays on its list until
    /// [`Rt::give_up_place`] or the next [`Rt::enqueue`].
    pub(crate) fn dequeue(&mut self, cpu: CpuId, task: TaskId, keep_place: bool) {
        self.tasks[task.index()].queued = false;
        self.rqs[cpu.index()].nr -= 1;
        if !keep_place {
            self.give_up_place(cpu, task);
            // A later enqueue is no change of priority.
            self.tasks[task.index()].prio = MAX_RT_PRIO;
        }
        self.note(cpu);
    }

    /// Takes `task` off the list it was left on by [`Rt::dequeue`], as its class or priority
    /// changes.
    pub(crate) fn give_up_place(&mut self, cpu: CpuId, task: TaskId) {
        if self.tasks[task.index()].on_list {
            self.list_remove(cpu, task);
            self.note(cpu);
        }
    }

    /// The first task of the highest priority on `cpu`.
    pub(crate) fn pick(&self, cpu: CpuId) -> Option<TaskId> {
        let rq = &self.rqs[cpu.index()];
        let list = rq.lists.get(usize::from(rq.highest()))?;
        Some(TaskId(list.0))
    }

    /// Number of queued tasks of `cpu`.
    pub(crate) fn nr(&self, cpu: CpuId) -> u32 {
        self.rqs[cpu.index()].nr
    }

    /// Ticks left of the RR slice of `task`.
    pub(crate) fn time_slice(&self, task: TaskId) -> u32 {
        self.tasks[task.index()].time_slice
    }

    /// The tick of `cpu` while `task` runs: an RR task whose slice is used up goes to the end of
    /// its list.
    ///
    /// Source: v6.12 `rt.c` `task_tick_rt`.
    pub(crate) fn tick(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId) {
        if cx.tasks.get(task).class != SchedClass::Rr {
            return;
        }
        let this = &mut self.tasks[task.index()];
        this.time_slice = this.time_slice.saturating_sub(1);
        if this.time_slice > 0 {
            return;
        }
        this.time_slice = self.slice_ticks;
        if this.before != NONE || this.after != NONE {
            self.requeue(cpu, task, false);
            cx.resched(cpu);
        }
    }

    /// Moves `task` to the front or the end of its list.
    pub(crate) fn requeue(&mut self, cpu: CpuId, task: TaskId, head: bool) {
        if self.tasks[task.index()].on_list {
            self.list_remove(cpu, task);
            self.list_insert(cpu, task, head);
        }
    }

    /// Whether `woken` preempts the real-time task that runs on `cpu`.
    ///
    /// Source: v6.12 `rt.c` `wakeup_preempt_rt`, `check_preempt_equal_prio`.
    pub(crate) fn wakeup_preempt(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, woken: TaskId) {
        let Some(curr) = cx.curr(cpu) else { return };
        let (theirs, ours) = (cx.tasks.get(woken), cx.tasks.get(curr));
        if prio_of(theirs) < prio_of(ours) {
            cx.resched(cpu);
            return;
        }
        if prio_of(theirs) != prio_of(ours) || cx.need_resched(cpu) {
            return;
        }
        let can_go = |facts: &Task| {
            let affinity = &facts.affinity;
            affinity.len() > 1 && self.lower_cpus(prio_of(facts), affinity).is_some()
        };
        let (curr_can_go, woken_can_go) = (can_go(ours), can_go(theirs));
        if curr_can_go && !woken_can_go {
            self.requeue(cpu, woken, true);
            cx.resched(cpu);
        }
    }

    /// Tasks on the lists of `cpu`, in order of urgency.
    fn queued(&self, cpu: CpuId) -> impl Iterator<Item = TaskId> + '_ {
        let rq = &self.rqs[cpu.index()];
        let mut bitmap = rq.bitmap;
        let mut at = NONE;
        core::iter::from_fn(move || {
            if at == NONE {
                let list = rq.lists.get(bitmap.trailing_zeros() as usize)?;
                bitmap &= bitmap - 1;
                at = list.0;
            }
            let task = TaskId(at);
            at = self.tasks[task.index()].after;
            Some(task)
        })
    }

    /// Brings what other CPUs know about `cpu` up to date.
    fn note(&mut self, cpu: CpuId) {
        let (highest, nr) = (self.rqs[cpu.index()].highest(), self.rqs[cpu.index()].nr);
        if !self.by_prio[usize::from(highest)].contains(cpu) {
            for cpus in &mut self.by_prio {
                cpus.remove(cpu);
            }
            self.by_prio[usize::from(highest)].insert(cpu);
        }
        if nr > 1 {
            self.crowded.insert(cpu);
        } else {
            self.crowded.remove(cpu);
        }
    }

    fn list_insert(&mut self, cpu: CpuId, task: TaskId, head: bool) {
        let prio = usize::from(self.tasks[task.index()].prio);
        let rq = &mut self.rqs[cpu.index()];
        let (first, last) = rq.lists[prio];
        let (before, after) = if head { (NONE, first) } else { (last, NONE) };
        let this = &mut self.tasks[task.index()];
        (this.before, this.after, this.on_list) = (before, after, true);
        match self.tasks.get_mut(before as usize) {
            Some(neighbour) => neighbour.after = task.0,
            None => rq.lists[prio].0 = task.0,
        }
        match self.tasks.get_mut(after as usize) {
            Some(neighbour) => neighbour.before = task.0,
            None => rq.lists[prio].1 = task.0,
        }
        rq.bitmap |= 1 << prio;
    }

    fn list_remove(&mut self, cpu: CpuId, task: TaskId) {
        let RtTask { prio, before, after, .. } = self.tasks[task.index()];
        let prio = usize::from(prio);
        let rq = &mut self.rqs[cpu.index()];
        match self.tasks.get_mut(before as usize) {
            Some(neighbour) => neighbour.after = after,
            None => rq.lists[prio].0 = after,
        }
        match self.tasks.get_mut(after as usize) {
            Some(neighbour) => neighbour.before = before,
            None => rq.lists[prio].1 = before,
        }
        if rq.lists[prio].0 == NONE {
            rq.bitmap &= !(1 << prio);
        }
        let this = &mut self.tasks[task.index()];
        (this.before, this.after, this.on_list) = (NONE, NONE, false);
    }

    /// I9: bit set ⇔ list not empty; the lists hold exactly the runnable real-time tasks of the
    /// CPU.
    ///
    /// # Errors
    /// A sentence with the values that disagree.
    pub(crate) fn check(&self, view: &View<'_>) -> Result<(), String> {
        let mut n_listed = 0;
        for cpu in view.topo.cpus() {
            let rq = &self.rqs[cpu.index()];
            for (prio, list) in rq.lists.iter().enumerate() {
                if (rq.bitmap >> prio & 1 != 0) != (list.0 != NONE) {
                    return Err(format!("CPU {cpu}: bit and list of priority {prio} disagree"));
                }
            }
            let mut nr = 0;
            for task in self.queued(cpu) {
                let (facts, own) = (view.tasks.get(task), &self.tasks[task.index()]);
                let runnable = matches!(facts.state, TaskState::Runnable | TaskState::Running);
                if !runnable || !facts.class.is_rt() || facts.cpu != cpu {
                    return Err(format!("task {task} on a real-time list of CPU {cpu}: {facts:?}"));
                }
                if own.prio != prio_of(facts) || !own.queued {
                    return Err(format!("task {task} is listed as {own:?} but is {facts:?}"));
                }
                nr += 1;
            }
            if nr != rq.nr || !self.by_prio[usize::from(rq.highest())].contains(cpu) {
                return Err(format!("CPU {cpu} counts {} real-time tasks, lists {nr}", rq.nr));
            }
            n_listed += nr as usize;
        }
        let runnable = |facts: &Task| {
            facts.class.is_rt() && matches!(facts.state, TaskState::Runnable | TaskState::Running)
        };
        let n_runnable = view.tasks.iter().filter(|(_, facts)| runnable(facts)).count();
        if n_listed == n_runnable {
            Ok(())
        } else {
            Err(format!("{n_listed} real-time tasks are listed, {n_runnable} are runnable"))
        }
    }
}
