// SPDX-License-Identifier: GPL-2.0-only
//! What the policy says of itself: figures of a task, and whether its structures agree.

use alloc::format;
use alloc::string::String;

use schedlab_policy_api::{Inspect, TaskState, View};
use schedlab_units::TaskId;

use super::policy::O1;
use super::prio::{bonus, is_interactive};
use super::prio_array::MAX_PRIO;
use super::task::Kind;

impl O1 {
    /// `prio` and `static_prio` on the kernel's scale; `sleep_avg` in ticks or ns as `clock` says;
    /// `bonus`; `interactive`; `time_slice` in ticks; `array`: 1 active, 0 expired, −1 none;
    /// `expired_timestamp` of its CPU in jiffies, 0 = unset; `interactive_credit`;
    /// `starved_expirations`: how often it
    /// expired although interactive, since others starved; with the list of waiting tasks
    /// `head_overdue`: by how many ticks the first of its CPU's list has waited too long (negative:
    /// not yet; −1 if the list is empty); `prio_shown` as `/proc/PID/stat` has it (2.6.0
    /// `task_prio`).
    pub(super) fn explain(&self, view: &View<'_>, task: TaskId, out: &mut Inspect) {
        let data = &self.tasks[task.index()];
        let cpu = view.tasks.cpu(task);
        let array = self.arrays.array_of(task).map(|array| array == self.active(cpu));
        let rq = &self.rqs[cpu.index()];
        out.push(("prio", data.prio.into()));
        out.push(("static_prio", data.static_prio.into()));
        out.push(("sleep_avg", data.avg.sleep_avg as i64));
        out.push(("bonus", bonus(data.avg.sleep_avg, &self.knobs).into()));
        out.push(("interactive", (!data.is_rt() && is_interactive(data, &self.knobs)).into()));
        out.push(("time_slice", data.time_slice.into()));
        out.push(("array", array.map_or(-1, i64::from)));
        out.push(("expired_timestamp", rq.expired_timestamp as i64));
        out.push(("interactive_credit", data.avg.interactive_credit));
        out.push(("starved_expirations", data.starved_expirations));
        if self.knobs.starvation_list {
            let jiffies = view.now.as_ns() / self.knobs.hz.tick().as_ns();
            let limit = self.knobs.starvation_limit * u64::from(rq.nr_running);
            let overdue = self.waiting.first(cpu.index()).map_or(-1, |first| {
                let waited = jiffies - self.tasks[first.index()].activated_timestamp;
                waited as i64 - limit as i64
            });
            out.push(("head_overdue", overdue));
        }
        out.push(("prio_shown", i64::from(data.prio) - 100));
    }

    /// I9.
    pub(super) fn check(&self, view: &View<'_>) -> Result<(), String> {
        self.arrays.check()?;
        self.waiting.check()?;
        for cpu in view.topo.cpus() {
            let rq = &self.rqs[cpu.index()];
            let n = [self.active(cpu), self.expired(cpu)].map(|a| self.arrays.nr_active(a));
            if n[0] + n[1] != rq.nr_running {
                return Err(format!("CPU {cpu} counts {} tasks, {n:?} are there", rq.nr_running));
            }
        }
        for (task, facts) in view.tasks.iter() {
            let data = &self.tasks[task.index()];
            let runnable = matches!(facts.state, TaskState::Runnable | TaskState::Running);
            let array = self.arrays.array_of(task);
            if array.map(|array| array / 2) != runnable.then_some(facts.cpu.index()) {
                return Err(format!("task {task} is on array {array:?} but is {facts:?}"));
            }
            let range_is_right = if data.is_rt() { data.prio < 99 } else { data.prio >= 100 };
            if !range_is_right
                || usize::from(data.prio) >= MAX_PRIO
                || (array.is_some() && self.arrays.prio_of(task) != data.prio)
                || data.avg.sleep_avg > self.knobs.max_sleep_avg
                || (runnable && data.time_slice == 0 && data.kind != Kind::Fifo)
                || data.static_prio != facts.nice.prio().0
                || data.pulled
            {
                return Err(format!("task {task} cannot be {data:?}"));
            }
            if self.waiting.array_of(task).is_some() && !data.node_is_set {
                return Err(format!("task {task} waits on a list its node does not know of"));
            }
        }
        Ok(())
    }
}
