// SPDX-License-Identifier: GPL-2.0-only
//! `schedule`: the choice of the next task, and the epoch that a choice may start.

use schedlab_policy_api::{Ctx, TaskState};
use schedlab_units::{CpuId, TaskId};

use super::policy::Goodness;
use super::run_list::Best;
use super::value::NOTHING;

impl Goodness {
    /// Steps S1 and S4 to S6 on `cpu`, whose current task is still the previous one.
    ///
    /// Source: 2.4.5 `sched.c` `schedule`; spec §4.7.
    pub(super) fn schedule(&mut self, cx: &mut Ctx<'_>, cpu: CpuId) -> Option<TaskId> {
        let prev = cx.curr(cpu);
        let willing = prev.filter(|task| cx.tasks.get(*task).state == TaskState::Running);
        // A task that blocks has left the list by now but was on it when the lock was asked for;
        // a second scan after an epoch is not charged (spec §7.1).
        let n_blocking = usize::from(prev.is_some() && willing.is_none());
        let n_listed = self.list.len() + n_blocking;
        cx.scanned(n_listed);
        self.stats.schedule_calls += 1;
        self.stats.list_entries += n_listed as i64;
        if let Some(prev) = willing {
            self.refill_exhausted_rr(prev);
        }
        let mut best = self.find_best(cx, cpu, willing);
        if best.goodness == 0 {
            self.start_epoch();
            best = self.find_best(cx, cpu, willing);
            assert!(best.goodness != 0, "a task without ticks is left after an epoch");
        }
        if self.knobs.clear_yield_same
            && let Some(prev) = willing
            && best.task == willing
        {
            self.tasks[prev.index()].yielded = false;
            self.refresh(prev);
        }
        best.task
    }

    /// Steps S4 and S5: the best of the list, the previous task `prev` included if it is willing.
    ///
    /// The idle task is worth less than any other, so it needs no value here.
    fn find_best(&mut self, cx: &Ctx<'_>, cpu: CpuId, prev: Option<TaskId>) -> Best {
        let may_use = |task: TaskId| !self.knobs.smp || cx.tasks.get(task).affinity.contains(cpu);
        let mut best = Best { goodness: NOTHING, task: None };
        let mut rival = None;
        match prev {
            Some(prev) if !self.knobs.prev_bias => rival = Some(prev),
            Some(prev) if !self.knobs.still_allowed || may_use(prev) => {
                best = Best { goodness: self.cpus.curr_goodness(cpu), task: Some(prev) };
            }
            _ => {}
        }
        // Without its bias the previous task competes at its place of the list.
        if let Some(prev) = rival {
            self.list.set(prev, self.tasks[prev.index()].entry());
        }
        let found = self.list.scan(self.asker(cpu), best.goodness, may_use);
        if let Some(prev) = rival {
            self.list.set(prev, self.tasks[prev.index()].list_entry());
        }
        if found.task.is_some() { found } else { best }
    }

    /// Step S6: every task, asleep or not, keeps half of its ticks and gets a quantum.
    ///
    /// Slots of tasks that are gone are recharged as well; a fork sets them anew.
    fn start_epoch(&mut self) {
        self.stats.epochs += 1;
        for value in &mut self.tasks {
            value.recharge();
        }
        let Self { list, tasks, cpus, knobs, .. } = self;
        list.set_all(|task| tasks[task.index()].list_entry());
        for value in tasks.iter().filter(|value| value.current) {
            cpus.set_curr_entry(value.processor, value.entry(), knobs.pcp);
        }
    }
}
