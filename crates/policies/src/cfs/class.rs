// SPDX-License-Identifier: GPL-2.0-only
//! Tasks of the fair class coming to a queue, leaving it, and taking turns.
//!
//! Source: v6.1.170 `fair.c`; spec cfs-eevdf §4A.

use schedlab_policy_api::{Ctx, Dequeue, Enqueue, SchedClass, TunableValue, Tunables};
use schedlab_units::{CpuId, TaskId};

use super::Cfs;
use super::entity::Entity;
use super::tunables::LIVE;
use crate::fair::{Departure, Dialect, Membership, calc_delta_fair, knobs_of};

impl Dialect for Cfs {
    fn book_curr(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) {
        self.update_curr(cx.now.as_ns(), cpu);
    }

    /// Gives a forked fair task its place behind its parent, on the parent's CPU.
    ///
    /// Source: v6.1 `fair.c` `task_fork_fair`.
    fn fork_entity(&mut self, cx: &mut Ctx<'_>, child: TaskId) {
        let facts = cx.tasks.get(child);
        let new = Entity { request: self.request_of(facts), ..Entity::NEW };
        self.provide_entity(child, new);
        if facts.class.is_rt() {
            return;
        }
        let (cpu, is_idle) = (facts.cpu, facts.class == SchedClass::Idle);
        self.update_curr(cx.now.as_ns(), cpu);
        let curr = self.fair.cpu(cpu).curr;
        let vruntime = curr.map_or(new.vruntime, |curr| self.entity(curr).vruntime);
        *self.entity_mut(child) = Entity { vruntime, relative: false, ..new };
        self.place_new(cx.now.as_ns(), cpu, child, is_idle);
        if let Some(curr) = curr
            && self.own.knobs.child_runs_first
            && vruntime.before(self.entity(child).vruntime)
        {
            let late = core::mem::replace(&mut self.entity_mut(child).vruntime, vruntime);
            self.entity_mut(curr).vruntime = late;
            cx.resched(cpu);
        }
        self.make_relative(cpu, child);
    }

    /// Source: v6.1 `fair.c` `enqueue_task_fair`.
    fn enqueue_fair(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId, why: Enqueue) {
        let wakeup = why == Enqueue::Wakeup;
        let migrated = self.fair.arrive(cx, cpu, task, why);
        self.enqueue_entity(cx, cpu, task, wakeup, migrated);
        self.fair.add_nr_running(cpu);
        if wakeup {
            self.fair.end_idle(cpu, cx.now.as_ns());
        }
    }

    /// Source: v6.1 `fair.c` `dequeue_task_fair`.
    fn dequeue_fair(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId, why: Dequeue) {
        let departure = Departure::from(why);
        self.fair.util_est_dequeue(cpu, task, departure == Departure::Sleep);
        self.dequeue_entity(cx, cpu, task, departure);
        self.fair.sub_nr_fair(cpu, cx.jiffies);
        if why == Dequeue::Exit {
            self.fair.remove_load(task);
        }
    }

    fn turn_begins(&mut self, _: &mut Ctx<'_>, _: CpuId, task: TaskId) {
        let entity = self.entity_mut(task);
        entity.prev_sum_exec = entity.sum_exec;
    }

    /// Source: v6.1 `fair.c` `entity_tick`.
    fn tick_fair(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId) {
        let now = cx.now.as_ns();
        self.update_curr(now, cpu);
        self.fair.update_load_avg(now, cpu, task, Membership::Keep);
        if self.fair.cpu(cpu).nr > 1 {
            if self.own.knobs.eevdf {
                self.rotate_at_tick(cx, cpu, task);
            } else {
                self.check_preempt_tick(cx, cpu, task);
            }
        }
    }

    /// Source: v6.1 `fair.c` `yield_task_fair`; 6 March 2023, 10/10.
    fn yield_fair(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId) {
        if self.fair.cpu(cpu).nr_running == 1 {
            return;
        }
        self.fair.clear_buddies(cpu, task);
        if cx.tasks.get(task).class != SchedClass::Batch || self.own.knobs.eevdf {
            self.update_curr(cx.now.as_ns(), cpu);
        }
        if self.own.knobs.eevdf {
            let request = self.entity(task).request;
            let vslice = calc_delta_fair(request, &self.fair.task(task).load);
            let entity = self.entity_mut(task);
            entity.deadline = entity.deadline.advance(vslice);
        }
        // A SCHED_IDLE task is passed over too: only `next` and `last` are denied to it.
        self.fair.cpu_mut(cpu).skip = Some(task);
    }

    fn grants_slices(&self) -> bool {
        self.own.knobs.slice_requests
    }
    fn slice_changed(&mut self, cx: &Ctx<'_>, task: TaskId) {
        self.entity_mut(task).request = self.request_of(cx.tasks.get(task));
    }

    /// Source: v6.1 `fair.c` `migrate_task_rq_fair`.
    fn leave_by_wakeup(&mut self, task: TaskId) {
        let from = self.fair.task(task).cpu;
        if !self.entity(task).relative {
            self.make_relative(from, task);
        }
    }

    /// Source: v6.1 `fair.c` `detach_task_cfs_rq`; the first lines `dequeue_entity`, as the class
    /// changes with DEQUEUE_MOVE if the priority does.
    fn leave_fair(&mut self, now: u64, task: TaskId) {
        let cpu = self.fair.task(task).cpu;
        if self.entity(task).relative {
            self.advance_base(cpu);
        } else {
            // So that the sleep does not earn unlimited credit; that of a SCHED_IDLE task is no
            // smaller any more, for its class has changed.
            self.place_woken(now, cpu, task, false);
            self.make_relative(cpu, task);
        }
    }

    const LIVE: &'static [&'static str] = LIVE;

    /// Latency offsets that tasks have stay.
    fn retune(&mut self, name: &str, value: TunableValue) {
        let n_cpus = self.rqs.len();
        let t = &mut self.own.knobs;
        t.set(name, value).expect("a live tunable and a legal value");
        (self.own.spans, self.own.request) = (t.spans(n_cpus), t.request(n_cpus));
        let knobs = knobs_of!(t);
        let (slice, runtime, period) = (t.rr_timeslice, t.rt_runtime, t.rt_period);
        self.retune_shared(knobs, slice, runtime, period);
    }

    /// Source: v6.1 `fair.c` `attach_task_cfs_rq`.
    fn join_fair(&mut self, task: TaskId, asleep: bool) {
        if asleep {
            let cpu = self.fair.task(task).cpu;
            self.make_absolute(cpu, task);
        }
    }
}
