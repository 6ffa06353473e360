// SPDX-License-Identifier: GPL-2.0-only
//! Birth, burial and changes of a task: what is divided, given back or forgotten.

use schedlab_policy_api::Ctx;
use schedlab_units::{CpuId, TaskId};

use super::policy::O1;
use super::prio::{effective_prio, max_timeslice};
use super::task::TaskData;
use super::tunables::Clock;
use super::{g3, linux_2_6_17, test1};

impl O1 {
    /// Copies into `child` what a fork copies from `parent`, and gives it its half of the slice.
    ///
    /// Source: 2.6.0-test1 `fork.c` `copy_process`; spec §4.2 step 1.
    pub(super) fn inherit(&self, child: &mut TaskData, parent: TaskId) {
        let from = &self.tasks[parent.index()];
        child.avg.sleep_avg = from.avg.sleep_avg;
        child.avg.activated = from.avg.activated;
        child.time_slice = from.time_slice.div_ceil(2);
        child.first_time_slice = true;
        // The node of the list of waiting tasks points to itself.
        child.node_is_set = self.knobs.starvation_list;
        // A child born with another class or nice value: as if it had changed it itself.
        if Self::resembles(child, from) {
            child.prio = from.prio;
        }
    }

    /// The parent's half of the slice; one that gets nothing ends its slice at once.
    ///
    /// Source: 2.6.0-test1 `fork.c` `copy_process`; spec §4.2 steps 1, 2.
    pub(super) fn split_slice(&mut self, cx: &mut Ctx<'_>, parent: TaskId) {
        let data = &mut self.tasks[parent.index()];
        data.time_slice /= 2;
        if data.time_slice == 0 {
            data.time_slice = 1;
            let cpu = cx.tasks.cpu(parent);
            if cx.curr(cpu) == Some(parent) {
                self.scheduler_tick(cx, cpu);
            }
        }
    }

    /// First wake-up of `child`: sleep averages are divided, and it goes before its parent.
    ///
    /// Source: 2.6.0-test1 `sched.c` `wake_up_forked_process`; spec §4.2 steps 3 to 5.
    pub(super) fn wake_up_forked(&mut self, cx: &Ctx<'_>, cpu: CpuId, child: TaskId) {
        let Some(parent) = cx.tasks.get(child).parent else {
            return self.append(child, self.active(cpu));
        };
        let knobs = &self.knobs;
        let divide = |sleep_avg| match knobs.clock {
            Clock::Tick => (sleep_avg, test1::fork_sleep_avg(sleep_avg, knobs)),
            Clock::Ns => g3::fork_sleep_avg(sleep_avg, knobs),
            Clock::NsCredit => knobs.scale.fork(sleep_avg),
        };
        let from = &mut self.tasks[parent.index()];
        from.avg.sleep_avg = divide(from.avg.sleep_avg).0;
        let data = &mut self.tasks[child.index()];
        data.avg.sleep_avg = divide(data.avg.sleep_avg).1;
        data.prio = effective_prio(data, knobs);
        let together = self.arrays.array_of(parent).is_some_and(|array| array / 2 == cpu.index());
        if together && Self::resembles(&self.tasks[child.index()], &self.tasks[parent.index()]) {
            self.tasks[child.index()].prio = self.arrays.prio_of(parent);
            self.arrays.insert_before(child, parent);
        } else {
            self.append(child, self.active(cpu));
        }
    }

    /// Whether `child` has the kind of class, real-time priority and nice value of `parent`, as
    /// after any fork in the kernel.
    fn resembles(child: &TaskData, parent: &TaskData) -> bool {
        child.is_rt() == parent.is_rt()
            && child.static_prio == parent.static_prio
            && (!child.is_rt() || child.prio == parent.prio)
    }

    /// What `child` did not use of its first slice goes back to `parent`, whose sleep average sinks
    /// if the child's is lower.
    ///
    /// Source: 2.6.0-test1 `sched.c` `sched_exit`; spec §4.4.
    pub(super) fn sched_exit(&mut self, child: TaskId, parent: TaskId) {
        let (child, hz) = (&self.tasks[child.index()], self.knobs.hz);
        let (slice, child_avg) =
            (if child.first_time_slice { child.time_slice } else { 0 }, child.avg.sleep_avg);
        let longest = if self.knobs.linux_2_6_17 {
            linux_2_6_17::timeslice(child.static_prio, hz)
        } else {
            max_timeslice(hz)
        };
        let from = &mut self.tasks[parent.index()];
        if slice > 0 {
            from.time_slice = (from.time_slice + slice).min(longest);
        }
        from.avg.sleep_avg = match self.knobs.clock {
            Clock::Tick => test1::exit_sleep_avg(from.avg.sleep_avg, child_avg),
            Clock::Ns | Clock::NsCredit => g3::exit_sleep_avg(from.avg.sleep_avg, child_avg),
        };
    }

    /// The nice value has changed: the bonus is gone until the priority is next computed.
    ///
    /// 2.6.0-test1 asks for `schedule` only when the task runs; 2.6.0 also when its priority rose
    /// above the dynamic one it had.
    ///
    /// Source: 2.6.0-test1 and 2.6.0 `sched.c` `set_user_nice`; spec §4.8, §5.7.
    pub(super) fn set_user_nice(&mut self, cx: &mut Ctx<'_>, task: TaskId) {
        let facts = cx.tasks.get(task);
        let data = &mut self.tasks[task.index()];
        data.static_prio = facts.nice.prio().0;
        if data.is_rt() {
            return;
        }
        let (old, running) = (data.prio, cx.curr(facts.cpu) == Some(task));
        data.prio = data.static_prio;
        let new = data.prio;
        if self.arrays.array_of(task).is_none() {
            return;
        }
        self.requeue(task);
        let disturb = match self.knobs.clock {
            Clock::Tick | Clock::Ns => running,
            Clock::NsCredit => new < old || (new > old && running),
        };
        if disturb {
            cx.resched(cx.tasks.cpu(task));
        }
    }

    /// Class or real-time priority has changed: to the active array. 2.6.6 looks whom that disturbs.
    ///
    /// Source: 2.6.0-test1 and 2.6.6 `sched.c` `setscheduler`; specs linux-2.6-o1 §4.8,
    /// linux-2.6-spa §4.1.
    pub(super) fn setscheduler(&mut self, cx: &mut Ctx<'_>, task: TaskId) {
        let facts = cx.tasks.get(task);
        let data = &mut self.tasks[task.index()];
        let old = data.prio;
        data.copy_facts(facts);
        let new = data.prio;
        if self.arrays.array_of(task).is_none() {
            return;
        }
        self.arrays.dequeue(task);
        self.append(task, self.active(facts.cpu));
        let curr = cx.curr(facts.cpu);
        let disturbs = match curr {
            Some(curr) if curr == task => new > old,
            Some(curr) => new < self.tasks[curr.index()].prio,
            None => true,
        };
        if self.knobs.setscheduler_preempts && disturbs {
            cx.resched(cx.tasks.cpu(task));
        }
    }
}
