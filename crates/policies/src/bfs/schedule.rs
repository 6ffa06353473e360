// SPDX-License-Identifier: GPL-2.0-only
//! `schedule`: writing the copy back, expiry, and the search for the earliest deadline.

use schedlab_policy_api::{Ctx, SchedClass, TaskState};
use schedlab_units::{CpuId, CpuSet, TaskId};

use super::arith::RESCHED_US;
use super::idle_cpu::locality;
use super::policy::Bfs;
use super::task::{ISO_PRIO, NORMAL_PRIO};

impl Bfs {
    /// Offset of a new deadline of `task` for its nice value and depth (`T(p)` of the spec).
    ///
    /// Source: 0.357 with the patch of 8 Oct 2010, `sched_bfs.c` `task_deadline_diff`; spec §2.
    pub(super) fn own_offset(&self, task: TaskId) -> u64 {
        let p = &self.tasks[task.index()];
        let base = self.knobs.offset[p.user()];
        if self.knobs.fork_depth && p.fork_depth > 1 {
            base.wrapping_mul(p.fork_depth as u64)
        } else {
            base
        }
    }

    /// `n` running threads' worth of plain offsets.
    fn threads_offset(&self, task: TaskId, n: u32) -> u64 {
        self.knobs.offset[self.tasks[task.index()].user()].wrapping_mul(u64::from(n))
    }

    /// A new quota and deadline for `task`.
    ///
    /// Source: 0.357 with the patch of 8 Oct 2010, `sched_bfs.c` `time_slice_expired`; spec §4.1,
    /// for the branch penalty §5.
    pub(super) fn time_slice_expired(&mut self, task: TaskId) {
        let n_running = self.groups.get(self.tasks[task.index()].group).threads_running;
        let mut offset = self.own_offset(task);
        if self.knobs.branch {
            offset = self.threads_offset(task, n_running);
        } else if self.knobs.group_accounting && n_running > 1 {
            offset = offset.wrapping_add(self.threads_offset(task, n_running));
        }
        let p = &mut self.tasks[task.index()];
        p.time_slice = self.knobs.quota;
        p.deadline_set = self.niffies;
        p.deadline = self.niffies.wrapping_add(offset);
        self.stats.expiries += 1;
    }

    /// Puts `task` on the queue.
    ///
    /// Source: 0.357 with the patch of 8 Oct 2010, `sched_bfs.c` `enqueue_task`; spec §4.2.
    pub(super) fn enqueue_task(&mut self, task: TaskId, idleprio_suitable: bool) {
        if self.knobs.cap {
            self.cap_deadline(task);
        }
        let p = &mut self.tasks[task.index()];
        if p.prio >= ISO_PRIO {
            let keeps = match p.class {
                SchedClass::Idle => idleprio_suitable,
                SchedClass::Iso => !self.iso.refractory,
                _ => false,
            };
            p.prio = if keeps { p.normal_prio() } else { NORMAL_PRIO };
        }
        self.queue.push(task, p.prio, p.deadline);
    }

    /// Steps 1 and 2 of spec §4.2; a deadline before `deadline_set` wraps and is raised.
    fn cap_deadline(&mut self, task: TaskId) {
        let mut longest = self.own_offset(task);
        if self.knobs.group_accounting {
            let n_running = self.groups.get(self.tasks[task.index()].group).threads_running;
            longest = longest.wrapping_add(self.threads_offset(task, n_running));
        }
        let p = &mut self.tasks[task.index()];
        if p.deadline.wrapping_sub(p.deadline_set) > longest {
            p.deadline = p.deadline_set.wrapping_add(longest);
            self.stats.capped += 1;
        }
    }

    /// Source: 0.357 with the patch of 8 Oct 2010, `sched_bfs.c` `activate_task`; spec §4.3.
    pub(super) fn activate_task(&mut self, task: TaskId, idleprio_suitable: bool) {
        let p = &mut self.tasks[task.index()];
        p.prio = p.normal_prio();
        let group = self.groups.get_mut(p.group);
        group.threads_running = group.threads_running.wrapping_add(1);
        if group.threads_running > 1 && self.knobs.group_accounting {
            p.deadline = p.deadline.wrapping_add(self.knobs.offset[p.user()]);
        }
        self.nr_running += 1;
        self.enqueue_task(task, idleprio_suitable);
    }

    /// Source: 0.357 with the patch of 8 Oct 2010, `sched_bfs.c` `deactivate_task`; spec §4.3.
    pub(super) fn deactivate_task(&mut self, task: TaskId) {
        let p = &mut self.tasks[task.index()];
        let group = self.groups.get_mut(p.group);
        group.threads_running = group.threads_running.wrapping_sub(1);
        if group.threads_running > 0 && self.knobs.group_accounting {
            p.deadline = p.deadline.wrapping_sub(self.knobs.offset[p.user()]);
        }
        self.nr_running -= 1;
    }

    /// Whether `schedule` takes the queue for empty; a uniprocessor kernel counts the running too.
    fn nothing_queued(&self) -> bool {
        if self.knobs.smp { self.queue.len() == 0 } else { self.nr_running == 0 }
    }

    /// Step 1 of spec §4.10: clocks, charge, dither.
    pub(super) fn begin_schedule(&mut self, cx: &Ctx<'_>, cpu: CpuId) {
        let clock = cx.now.as_ns();
        self.niffies = clock;
        let rq = &mut self.cpus[cpu.index()];
        rq.account(clock, self.knobs.tick_ns);
        rq.dither = clock.wrapping_sub(rq.last_tick) <= self.knobs.half_jiffy_ns;
    }

    /// Step 3 of spec §4.10 for the previous task of `cpu`; true = it keeps running because nothing
    /// is queued.
    pub(super) fn write_back(
        &mut self,
        cx: &mut Ctx<'_>,
        cpu: CpuId,
        prev: TaskId,
        deactivate: bool,
    ) -> bool {
        let rq = &self.cpus[cpu.index()];
        let p = &mut self.tasks[prev.index()];
        p.time_slice = rq.rq_time_slice;
        p.deadline = rq.rq_deadline;
        if p.time_slice < RESCHED_US || p.class == SchedClass::Batch {
            self.time_slice_expired(prev);
        }
        self.tasks[prev.index()].last_ran = cx.now.as_ns();
        if !cx.tasks.get(prev).affinity.contains(cpu) {
            self.resched_suitable_idle(cx, prev);
        } else if !deactivate {
            if self.nothing_queued() {
                return true;
            }
            self.resched_suitable_idle(cx, prev);
        }
        if deactivate {
            self.deactivate_task(prev)
        } else {
            self.enqueue_task(prev, true)
        }
        false
    }

    /// `schedule` on `cpu` up to the choice.
    ///
    /// Source: 0.357 `sched_bfs.c` `schedule`; spec §4.10.
    pub(super) fn schedule(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) -> Option<TaskId> {
        let prev = cx.curr(cpu);
        match prev {
            Some(prev) if cx.tasks.get(prev).state == TaskState::Running => {
                self.begin_schedule(cx, cpu);
                if self.write_back(cx, cpu, prev, false) {
                    self.rerun(cpu, prev);
                    return Some(prev);
                }
            }
            // A task that blocks was written back when it left.
            Some(_) => {}
            None => self.begin_schedule(cx, cpu),
        }
        if self.nothing_queued() {
            self.idle.insert(cpu);
            return None;
        }
        let next = self.earliest_deadline_task(cx, cpu);
        if next.is_none() && self.knobs.keep_idle_bit {
            self.idle.insert(cpu);
        } else {
            self.idle.remove(cpu);
        }
        if let Some(next) = next
            && prev == Some(next)
        {
            self.rerun(cpu, next);
        }
        next
    }

    /// `task` is chosen again on `cpu`, whose copy keeps its old values (quirk Q2).
    fn rerun(&mut self, cpu: CpuId, task: TaskId) {
        if self.knobs.reload_on_rerun {
            self.cpus[cpu.index()].load(task, &self.tasks[task.index()]);
        }
    }

    /// Takes the most urgent task that `cpu` may run off the queue.
    ///
    /// A task that another CPU is still switching away from cannot be taken. The kernel's CPU would
    /// wait for the lock that long; here it is told when the switch is over.
    ///
    /// Source: 0.357 `sched_bfs.c` `earliest_deadline_task`; spec §4.11.
    fn earliest_deadline_task(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) -> Option<TaskId> {
        let mut best: Option<(u64, TaskId)> = None;
        let mut missed = false;
        for prio in self.queue.prios() {
            let mut passed: Option<u64> = None;
            let mut n_scanned = 0;
            for (task, deadline) in self.queue.iter(prio) {
                n_scanned += 1;
                let at = deadline.wrapping_add(self.distance(cx, cpu, task));
                if best.is_some_and(|(earliest, _)| at >= earliest) {
                    continue;
                }
                let facts = cx.tasks.get(task);
                if !facts.affinity.contains(cpu) {
                    continue;
                }
                if facts.on_cpu && cx.curr(cpu) != Some(task) {
                    passed = Some(passed.map_or(at, |earliest: u64| earliest.min(at)));
                    continue;
                }
                best = Some((at, task));
                if prio < ISO_PRIO {
                    break;
                }
            }
            cx.scanned(n_scanned);
            missed |= match (passed, best) {
                (Some(passed), Some((at, _))) => prio < ISO_PRIO || passed <= at,
                (passed, None) => passed.is_some(),
                (None, _) => false,
            };
            if best.is_some() {
                break;
            }
        }
        if missed {
            self.missed.insert(cpu);
        }
        let (_, task) = best?;
        self.queue.remove(task);
        self.tasks[task.index()].cpu = cpu;
        Some(task)
    }

    /// What nearness adds to the deadline of `task` on `cpu` (quirk Q4: nanoseconds).
    #[inline]
    fn distance(&self, cx: &Ctx<'_>, cpu: CpuId, task: TaskId) -> u64 {
        if self.knobs.one_cache {
            return 0;
        }
        let p = &self.tasks[task.index()];
        let far = locality(cx.topo, cpu, p.cpu);
        if far == 0 || self.cpus[cpu.index()].last_task == Some(self.life(task)) {
            return 0;
        }
        far * self.knobs.locality_weight[p.user()]
    }

    /// CPUs that had to pass a task over schedule again now that a switch is over.
    pub(super) fn retry_missed(&mut self, cx: &mut Ctx<'_>) {
        if self.missed.is_empty() {
            return;
        }
        for cpu in core::mem::replace(&mut self.missed, CpuSet::EMPTY).iter() {
            cx.resched(cpu);
        }
    }
}
