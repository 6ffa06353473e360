// SPDX-License-Identifier: GPL-2.0-only
//! Tasks of the fair class coming to a queue, leaving it, and taking turns.
//!
//! Source: v6.12 `fair.c`; spec cfs-eevdf §4D.

use schedlab_policy_api::{Change, Ctx, Dequeue, Enqueue, TunableValue, Tunables, Wake};
use schedlab_units::{CpuId, TaskId};

use super::Eevdf;
use super::arith::{custom_slice, reweight_lag};
use super::entity::Entity;
use super::tunables::LIVE;
use crate::fair::{Departure, Dialect, Load, Membership, Order, calc_delta_fair, knobs_of};

impl Eevdf {
    /// The part of a departure that takes the task off the queue.
    pub(super) fn dequeue_task(
        &mut self,
        cx: &mut Ctx<'_>,
        cpu: CpuId,
        task: TaskId,
        departure: Departure,
    ) {
        self.dequeue_entity(cx, cpu, task, departure);
        self.fair.sub_nr_fair(cpu, cx.jiffies);
        self.hrtick_update(cx, cpu);
    }

    /// The slice that `task` asks for, if that is granted.
    fn slice_request(&self, cx: &Ctx<'_>, task: TaskId) -> Option<u64> {
        custom_slice(cx.tasks.get(task).slice_request_ns).filter(|_| self.own.knobs.custom_slice)
    }
}

impl Dialect for Eevdf {
    fn book_curr(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) {
        self.update_curr(cx, cpu);
    }

    /// Source: v6.12 `fair.c` `init_entity_runnable_average`; v6.6 `task_fork_fair`.
    fn fork_entity(&mut self, cx: &mut Ctx<'_>, child: TaskId) {
        if self.own.knobs.place_at_fork {
            self.update_curr(cx, cx.tasks.cpu(child));
        }
        let custom = self.slice_request(cx, child);
        let slice = custom.unwrap_or(self.own.base_slice);
        self.provide_entity(child, Entity::new(slice, custom.is_some()));
    }

    /// Source: v6.12 `fair.c` `enqueue_task_fair`, `core.c` `ttwu_runnable`.
    fn enqueue_fair(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId, why: Enqueue) {
        if self.fair.task(task).delayed && why == Enqueue::Wakeup {
            self.fair.util_est_enqueue(cpu, task);
            self.requeue_delayed(cx, task);
            self.own.woken_in_switch = cx.tasks.get(task).on_cpu.then_some(task);
            return;
        }
        let migrated = self.fair.arrive(cx, cpu, task, why);
        let starts_server = self.fair.cpu(cpu).nr == 0;
        self.enqueue_entity(cx, cpu, task, why == Enqueue::New, migrated);
        if starts_server {
            self.server_start(cx, cpu);
        }
        self.fair.add_nr_running(cpu);
        self.hrtick_update(cx, cpu);
        if why == Enqueue::Wakeup {
            self.fair.end_idle(cpu, cx.now.as_ns());
        }
    }

    /// Source: v6.12 `fair.c` `dequeue_task_fair`, `dequeue_entity`.
    fn dequeue_fair(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId, why: Dequeue) {
        let departure = Departure::from(why);
        if !self.fair.task(task).delayed {
            self.fair.util_est_dequeue(cpu, task, departure == Departure::Sleep);
        }
        self.update_curr(cx, cpu);
        self.fair.clear_buddies(cpu, task);
        let delays = why == Dequeue::Sleep && self.own.knobs.delay_dequeue;
        if delays && !self.entity_eligible(cpu, task) {
            self.fair.update_load_avg(cx.now.as_ns(), cpu, task, Membership::Keep);
            self.fair.set_delayed(task);
            self.own.n_delayed += 1;
            return;
        }
        self.dequeue_task(cx, cpu, task, departure);
        if why == Dequeue::Exit {
            self.fair.remove_load(task);
        }
    }

    fn turn_begins(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId) {
        let entity = self.entity_mut(task);
        entity.protect();
        entity.prev_sum_exec = entity.sum_exec;
        if self.own.knobs.hrtick {
            self.hrtick_start(cx, cpu, task);
        }
    }

    /// Source: v6.12 `fair.c` `entity_tick`.
    fn tick_fair(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId) {
        self.update_curr(cx, cpu);
        self.fair.update_load_avg(cx.now.as_ns(), cpu, task, Membership::Keep);
    }

    /// Source: v6.12.117 and v6.12.0 `fair.c` `yield_task_fair`.
    fn yield_fair(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId) {
        if self.fair.cpu(cpu).nr_running == 1 {
            return;
        }
        self.fair.clear_buddies(cpu, task);
        self.update_curr(cx, cpu);
        if !self.own.yield_forfeits {
            let load = self.fair.task(task).load;
            let vslice = calc_delta_fair(self.entity(task).slice, &load);
            let entity = self.entity_mut(task);
            entity.deadline = entity.deadline.advance(vslice);
        } else if self.entity_eligible(cpu, task) {
            let entity = self.entity_mut(task);
            entity.vruntime = entity.deadline;
            self.update_deadline(cpu, task);
        }
    }

    /// w·lag is kept.
    fn rescale(&mut self, task: TaskId, old: &Load, new: &Load) {
        let entity = self.entity_mut(task);
        entity.vlag = reweight_lag(entity.vlag, old.weight, new.weight);
    }

    fn grants_slices(&self) -> bool {
        self.own.knobs.custom_slice
    }
    fn slice_changed(&mut self, cx: &Ctx<'_>, task: TaskId) {
        let custom = self.slice_request(cx, task);
        let slice = custom.unwrap_or(self.own.base_slice);
        let entity = self.entity_mut(task);
        (entity.slice, entity.custom_slice) = (slice, custom.is_some());
    }

    fn wakes_in_silence(&mut self, woken: TaskId) -> bool {
        self.own.woken_in_switch.take() == Some(woken)
    }

    fn pick_begins(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) {
        if self.own.knobs.hrtick {
            cx.disarm(cpu.0);
        }
    }
    fn pick_ahead_of_rt(
        &mut self,
        cx: &mut Ctx<'_>,
        cpu: CpuId,
        leaving: Option<TaskId>,
    ) -> Option<TaskId> {
        if !self.server_runs(cpu) {
            return None;
        }
        let task = self.pick_fair(cx, cpu).filter(|task| leaving != Some(*task));
        if task.is_none() {
            self.server_stop(cpu);
        }
        task
    }
    fn rt_came(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) {
        self.server_arm(cx, cpu);
    }
    /// Slices of CPUs come first, then their servers.
    fn fair_timer(&mut self, cx: &mut Ctx<'_>, timer: u32) {
        let n_cpus = self.rqs.len() as u32;
        if timer < n_cpus {
            self.hrtick(cx, CpuId(timer));
        } else {
            self.server_timer(cx, CpuId(timer - n_cpus));
        }
    }

    const LIVE: &'static [&'static str] = LIVE;

    /// Slices that were handed out stay.
    fn retune(&mut self, name: &str, value: TunableValue) {
        let t = &mut self.own.knobs;
        t.set(name, value).expect("a live tunable and a legal value");
        self.own.base_slice = t.effective_base_slice(self.rqs.len());
        let knobs = knobs_of!(t);
        let (slice, runtime, period) = (t.rr_timeslice, t.rt_runtime, t.rt_period);
        self.retune_shared(knobs, slice, runtime, period);
        if self.own.knobs.fair_server_runtime.is_zero() {
            self.servers_stop();
        }
    }

    /// The core, for which the task sleeps, learns of it when it wakes up there.
    fn move_delayed(&mut self, cx: &mut Ctx<'_>, task: TaskId, to: CpuId) {
        let from = self.fair.task(task).cpu;
        self.take_delayed_off(cx, task, Departure::Migrate);
        self.fair.task_mut(task).cpu = to;
        self.put_delayed_back(cx, task, true);
        self.fair.stats.delayed_moved += 1;
        debug_assert_ne!(from, to, "task {task} moves nowhere");
        self.disturb(cx, to, task, Wake::Migrate);
    }

    fn delayed_changing(&mut self, cx: &mut Ctx<'_>, task: TaskId) {
        self.take_delayed_off(cx, task, Departure::Save);
    }
    fn end_delay(&mut self, cx: &mut Ctx<'_>, task: TaskId) {
        self.finish_delayed(cx, task);
    }

    fn delayed_changed(&mut self, cx: &mut Ctx<'_>, task: TaskId, what: Change) {
        let facts = cx.tasks.get(task);
        if what == Change::Exec {
            return;
        }
        if facts.class.is_rt() {
            self.forget_delayed(task);
            return;
        }
        self.put_delayed_back(cx, task, false);
        if !facts.affinity.contains(self.fair.task(task).cpu) {
            let to = self.fair.any_allowed(cx, task);
            self.move_delayed(cx, task, to);
        }
    }
}
