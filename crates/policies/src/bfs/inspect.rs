// SPDX-License-Identifier: GPL-2.0-only
//! Figures for people, and the checks of the structures.

use alloc::format;
use alloc::string::String;

use schedlab_policy_api::{Inspect, SchedClass, TaskState, View};
use schedlab_units::TaskId;

use super::arith::{self, Pri};
use super::policy::Bfs;
use super::task::ISO_PRIO;

impl Bfs {
    /// What `ps` shows as PRI; from the task record, which is stale while the task runs.
    ///
    /// Source: 0.357 `sched_bfs.c` `task_prio`; spec §4.16.
    pub(super) fn shown_pri(&self, task: TaskId) -> i64 {
        let p = &self.tasks[task.index()];
        let pri = Pri {
            prio: p.prio,
            ahead: p.deadline.wrapping_sub(self.niffies),
            longest: self.knobs.offset[arith::N_USER_PRIO - 1],
            depth_scale: self.knobs.fork_depth,
            idleprio: p.class == SchedClass::Idle,
        };
        pri.shown()
    }

    /// `pri` as `ps` shows it; `prio` of the queue; `deadline` less the time of the last update of
    /// the common clock, in ns; `time_slice` in units of 1024 ns; `fork_depth`; `threads_running`
    /// of its process; `rr_interval_ns` as `sched_rr_get_interval` tells it. Slice and deadline of a
    /// running task are the CPU's copy.
    pub(super) fn explain(&self, view: &View<'_>, task: TaskId, out: &mut Inspect) {
        let p = &self.tasks[task.index()];
        let rq = &self.cpus[p.cpu.index()];
        let (time_slice, deadline) = if view.curr[p.cpu.index()] == Some(task) {
            (rq.rq_time_slice, rq.rq_deadline)
        } else {
            (p.time_slice, p.deadline)
        };
        let interval = match p.class {
            SchedClass::Fifo => 0,
            _ => arith::shown_interval(p.user(), self.knobs.rr),
        };
        out.push(("pri", self.shown_pri(task)));
        out.push(("prio", p.prio.into()));
        out.push(("deadline", deadline.wrapping_sub(self.niffies) as i64));
        out.push(("time_slice", time_slice.into()));
        out.push(("fork_depth", p.fork_depth.into()));
        out.push(("threads_running", self.groups.get(p.group).threads_running.into()));
        out.push(("rr_interval_ns", interval as i64));
    }

    /// I9: queue, counters, copies and idle bits agree with what the core knows.
    pub(super) fn check(&self, view: &View<'_>) -> Result<(), String> {
        self.queue.check()?;
        let mut threads = alloc::vec![0u32; self.groups.n_slots()];
        let mut nr_running = 0;
        for (task, facts) in view.tasks.iter() {
            let p = &self.tasks[task.index()];
            let active = matches!(facts.state, TaskState::Runnable | TaskState::Running);
            let queued = facts.state == TaskState::Runnable;
            if self.queue.contains(task) != queued || p.class != facts.class {
                return Err(format!("task {task} is kept as {p:?} but is {facts:?}"));
            }
            if p.class.is_rt() != (p.prio < ISO_PRIO) {
                return Err(format!("task {task} of class {:?} has prio {}", p.class, p.prio));
            }
            nr_running += usize::from(active);
            threads[p.group as usize] += u32::from(active);
        }
        if nr_running != self.nr_running {
            return Err(format!("{nr_running} tasks want a CPU, not {}", self.nr_running));
        }
        self.check_groups(view, &threads)?;
        for cpu in view.topo.cpus() {
            let (curr, rq) = (view.curr[cpu.index()], &self.cpus[cpu.index()]);
            if rq.running != curr || (curr.is_some() && self.idle.contains(cpu)) {
                return Err(format!("CPU {cpu} runs {curr:?} but is kept as {rq:?}"));
            }
        }
        Ok(())
    }

    /// The counter of each process is the number of its threads that want a CPU, and more only
    /// where the branch penalty let it inherit.
    fn check_groups(&self, view: &View<'_>, threads: &[u32]) -> Result<(), String> {
        for (task, _) in view.tasks.iter() {
            let group = self.tasks[task.index()].group;
            let (kept, counted) = (self.groups.get(group).threads_running, threads[group as usize]);
            if kept < counted || (kept > counted && !self.knobs.branch) {
                return Err(format!("process of {task} has {counted} active threads, not {kept}"));
            }
        }
        Ok(())
    }
}
