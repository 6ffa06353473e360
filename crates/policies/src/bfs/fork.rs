// SPDX-License-Identifier: GPL-2.0-only
//! What a fork does to parent and child.

use schedlab_policy_api::{Ctx, SchedClass, TaskState};
use schedlab_units::{CpuId, TaskId};

use super::arith::RESCHED_US;
use super::groups::Life;
use super::policy::Bfs;
use super::task::{BfsTask, user_prio};

impl Bfs {
    /// A slot for `child`, which is the next or was used before.
    fn store(&mut self, child: TaskId, value: BfsTask) {
        if child.index() < self.tasks.len() {
            self.tasks[child.index()] = value;
        } else {
            assert!(child.index() == self.tasks.len(), "task ids are dense, {child} is not");
            self.tasks.push(value);
        }
        self.queue.provide(child);
    }

    fn next_life(&self, task: TaskId) -> u32 {
        self.tasks.get(task.index()).map_or(0, |old| old.life.wrapping_add(1))
    }

    /// A task that starts the workload: an empty quota, the depth of the knob.
    ///
    /// Source: spec §3 and appendix B; for the branch penalty §5.
    pub(super) fn start_task(&mut self, cx: &Ctx<'_>, child: TaskId) {
        let facts = cx.tasks.get(child);
        let mut value = BfsTask::new(facts, self.next_life(child));
        value.fork_depth = self.knobs.start_depth;
        let inherited = if self.knobs.branch { (value.fork_depth - 1).max(0) as u32 } else { 0 };
        value.group = self.groups.join_at_start(facts.tgid.0, inherited);
        self.store(child, value);
    }

    /// `parent`, current on this CPU, forks `child`.
    ///
    /// The child's record is a copy of the parent's record, which is stale while the parent runs;
    /// the quota that is halved is the one of the CPU's copy.
    ///
    /// Source: 0.357 with the patch of 8 Oct 2010, `sched_bfs.c` `sched_fork`, and the part of
    /// `wake_up_new_task` about depth and counter; spec §4.7.
    pub(super) fn sched_fork(&mut self, cx: &mut Ctx<'_>, child: TaskId, parent: TaskId) {
        let cpu = cx.this_cpu;
        assert!(
            self.cpus[cpu.index()].running == Some(parent),
            "task {parent} forks but is not current on CPU {cpu}"
        );
        let (facts, life) = (cx.tasks.get(child), self.next_life(child));
        let mut value = BfsTask { life, cpu, ..self.tasks[parent.index()] };
        value.copy_class(facts);
        value.user_prio = user_prio(facts);
        value.slept_uninterruptible = false;
        self.store(child, value);
        if value.class != SchedClass::Fifo {
            self.split_quota(cx, cpu, child);
        }
        self.join_process(cx, child, parent);
    }

    /// The child gets half of what is left, or a fresh quota if that is too little.
    fn split_quota(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, child: TaskId) {
        let rq = &mut self.cpus[cpu.index()];
        self.tasks[child.index()].last_ran = rq.rq_last_ran;
        if rq.rq_time_slice >= 2 * RESCHED_US {
            rq.rq_time_slice /= 2;
            self.tasks[child.index()].time_slice = rq.rq_time_slice;
        } else {
            rq.rq_time_slice = 0;
            cx.resched(cpu);
            self.time_slice_expired(child);
        }
    }

    /// A thread joins its process; a process goes one level down.
    fn join_process(&mut self, cx: &Ctx<'_>, child: TaskId, parent: TaskId) {
        let thread = cx.tasks.get(child).tgid == cx.tasks.get(parent).tgid;
        let group = self.tasks[parent.index()].group;
        let group = if thread {
            self.groups.join(group);
            group
        } else {
            // The patch of 4 Oct 2010 forgot to reset the counter that was copied (spec §5).
            let inherited =
                if self.knobs.branch { self.groups.get(group).threads_running } else { 0 };
            self.groups.create(inherited, self.life(parent))
        };
        let value = &mut self.tasks[child.index()];
        value.group = group;
        if !thread || self.knobs.threads_inc_depth {
            value.fork_depth = value.fork_depth.saturating_add(1);
        }
    }

    /// The CPU that a new task is counted to: that of `child.parent`, for a thread the parent of
    /// its process (quirk Q14). Init is not simulated; its children stay where they were forked.
    pub(super) fn birth_cpu(&self, cx: &Ctx<'_>, child: TaskId) -> CpuId {
        let alive = |&(task, life): &Life| {
            self.tasks[task.index()].life == life
                && !matches!(cx.tasks.get(task).state, TaskState::Zombie | TaskState::Dead)
        };
        let parent = self.groups.get(self.tasks[child.index()].group).parent.filter(alive);
        self.tasks[parent.map_or(child, |(parent, _)| parent).index()].cpu
    }

    /// Whom a new task disturbs: its parent at once if no CPU is idle, else as at a wake-up.
    ///
    /// Source: 0.357 `sched_bfs.c` `wake_up_new_task`; spec §4.7.
    pub(super) fn preempt_for_new(&mut self, cx: &mut Ctx<'_>, child: TaskId) {
        let here = cx.this_cpu;
        let facts = cx.tasks.get(child);
        let forker = facts.parent.filter(|parent| cx.curr(here) == Some(*parent));
        let child_first = forker.is_some_and(|parent| {
            // CLONE_VM; `kernel_thread` sets it too.
            let shares = facts.mm.is_none() || facts.mm == cx.tasks.get(parent).mm;
            !shares && !self.has_suitable_idle(cx, child)
        });
        if child_first { cx.resched(here) } else { self.try_preempt(cx, child, here) }
    }
}
