// SPDX-License-Identifier: GPL-2.0-only
//! What is done to tasks and CPUs.

use schedlab_units::CpuId;

use super::machine::{Event, FakeKernel, Kick, Place, SLICE_DFL};
use super::sched::Leaves;

/// Mean time in ns between two changes from outside.
pub(super) const CHANGE_NS: u64 = 700_000;
/// Mean time in ns between two arrivals of a task of another class.
pub(super) const ARRIVAL_NS: u64 = 1_500_000;
/// Mean time in ns between two changes of the set of CPUs.
pub(super) const HOTPLUG_NS: u64 = 8_000_000;

impl FakeKernel {
    /// Its migration is disabled for the time that it is not running.
    pub(super) fn maybe_pin(&mut self, pid: u32, cpu: usize) {
        // Not on a spared CPU, where the policy could never let it go on.
        let eligible = !self.tasks[&pid].kernel_thread && self.is_policy_cpu(cpu);
        if self.scenario.affinity && eligible && self.percent(8) {
            let in_mask = self.percent(50);
            let task = self.task(pid);
            task.pinned = true;
            if in_mask && task.allowed.contains(CpuId::from_index(cpu)) {
                self.change(pid, |kernel| {
                    kernel.task(pid).mask_pinned = true;
                    kernel.relay_set_cpumask(pid);
                });
            }
        }
    }

    pub(super) fn unpin(&mut self, pid: u32) {
        let task = self.task(pid);
        task.pinned = false;
        if std::mem::replace(&mut task.mask_pinned, false) {
            self.change(pid, |kernel| kernel.relay_set_cpumask(pid));
            self.leave_forbidden_cpu(pid);
        }
    }

    /// A task that may not stay where it is goes elsewhere.
    pub(super) fn leave_forbidden_cpu(&mut self, pid: u32) {
        let task = &self.tasks[&pid];
        if task.mask().contains(CpuId::from_index(task.cpu)) {
            return;
        }
        match task.place {
            Place::Running(cpu) => self.stopper(cpu),
            Place::Custody | Place::Spare | Place::Local(_) => self.move_off(pid),
            _ => {}
        }
    }

    /// Somebody changes nice, affinity or class of some task.
    pub(super) fn change_somebody(&mut self) {
        if self.winding_down {
            return;
        }
        let delay = 1 + self.rng.exponential(CHANGE_NS);
        self.after(delay, Event::Change);
        let pids: Vec<u32> = self
            .tasks
            .iter()
            .filter(|(_, task)| !task.kernel_thread && task.place != Place::Dead)
            .map(|(pid, _)| *pid)
            .collect();
        if pids.is_empty() {
            return;
        }
        let pid = pids[self.rng.below(pids.len() as u64) as usize];
        let affine = self.scenario.affinity && (self.percent(50) || !self.scenario.changes);
        if affine && !self.tasks[&pid].pinned {
            let mask = self.random_mask();
            self.change(pid, |kernel| {
                kernel.task(pid).allowed = mask;
                kernel.relay_set_cpumask(pid);
            });
            self.leave_forbidden_cpu(pid);
        } else if self.scenario.changes && (self.scenario.whole_system || self.percent(70)) {
            let nice = self.rng.below(40) as i64 - 20;
            self.change(pid, |kernel| {
                kernel.task(pid).nice = nice;
                kernel.relay_set_weight(pid);
            });
        } else if self.scenario.changes {
            self.change_class(pid);
        }
    }

    /// Into the class or out of it; a running task goes on running.
    pub(super) fn change_class(&mut self, pid: u32) {
        match self.tasks[&pid].place {
            Place::Elsewhere if self.cpus.iter().any(|cpu| cpu.becomes == Some(pid)) => {}
            Place::Elsewhere => {
                let mask = self.tasks[&pid].mask();
                let free = |cpu: &CpuId| {
                    let model = &self.cpus[cpu.index()];
                    model.online && model.curr.is_none() && !model.above()
                };
                let on = mask.iter().find(free).map(CpuId::index);
                match on {
                    // It runs as a task of its old class, and changes while it does.
                    Some(cpu) if self.percent(50) => {
                        self.cpus[cpu].other = true;
                        self.cpus[cpu].becomes = Some(pid);
                        self.schedule(cpu, Leaves::Willing);
                        let delay = 1 + self.rng.exponential(50_000);
                        self.after(delay, Event::Departs { cpu });
                    }
                    _ => {
                        self.task(pid).place = Place::Asleep;
                        self.relay_enable(pid, None);
                        self.sleep_timer(pid, 100_000);
                    }
                }
            }
            _ if self.tasks[&pid].exiting => {}
            Place::Running(cpu) => {
                self.charge(cpu);
                self.relay_stopping(pid, cpu, false);
                self.relay_disable(pid);
                self.forget(pid);
                // It still has the CPU, as another class's task.
                (self.cpus[cpu].curr, self.cpus[cpu].other) = (None, true);
                let delay = 1 + self.rng.exponential(50_000);
                self.after(delay, Event::Departs { cpu });
            }
            Place::Dead => {}
            _ => {
                self.unqueue(pid);
                self.relay_disable(pid);
                self.forget(pid);
            }
        }
    }

    pub(super) fn forget(&mut self, pid: u32) {
        let now = self.now;
        let task = self.task(pid);
        task.place = Place::Elsewhere;
        (task.pinned, task.mask_pinned) = (false, false);
        task.token += 1;
        task.on_cpu_until = now;
    }

    /// A task of another class wants `cpu`.
    pub(super) fn arrives(&mut self, cpu: usize) {
        if self.winding_down {
            return;
        }
        if self.cpus[cpu].other || !self.cpus[cpu].online {
            self.next_arrival(cpu);
            return;
        }
        self.cpus[cpu].other = true;
        if !self.cpus[cpu].host {
            self.schedule(cpu, Leaves::Willing);
        }
        let delay = 1 + self.rng.exponential(400_000);
        self.after(delay, Event::Departs { cpu });
    }

    /// It does not any more.
    pub(super) fn departs(&mut self, cpu: usize) {
        if self.cpus[cpu].host {
            self.after(5_000, Event::Departs { cpu });
            return;
        }
        self.cpus[cpu].other = false;
        if self.scenario.others {
            self.next_arrival(cpu);
        }
        if let Some(pid) = self.cpus[cpu].becomes.take() {
            self.task(pid).cpu = cpu;
            if self.tasks[&pid].mask().contains(CpuId::from_index(cpu)) {
                self.relay_enable(pid, None);
                self.cpus[cpu].curr = Some(pid);
                let work = self.random_work();
                let task = self.task(pid);
                (task.place, task.work, task.slice) = (Place::Running(cpu), work, SLICE_DFL);
                self.resume(pid, cpu);
                self.relay_running(pid, cpu);
                return;
            }
        }
        self.schedule(cpu, Leaves::Willing);
    }

    /// A CPU goes, or comes back.
    pub(super) fn hotplug(&mut self) {
        let gone = (0..self.cpus.len()).find(|cpu| !self.cpus[*cpu].online);
        if let Some(cpu) = gone {
            self.cpus[cpu].online = true;
            self.relay_cpu(cpu, true);
            self.after(1_000, Event::Kick { cpu, kick: Kick::Resched });
        } else if !self.winding_down && self.cpus.len() > 1 {
            let cpu = self.rng.below(self.cpus.len() as u64) as usize;
            // The kernel waits for tasks that may not leave.
            let pinned = self.tasks.values().any(|task| task.pinned && task.cpu == cpu);
            if !self.cpus[cpu].other && !self.cpus[cpu].host && !pinned {
                self.relay_cpu(cpu, false);
                self.cpus[cpu].online = false;
                self.stopper(cpu);
            }
        }
        if !self.winding_down || self.cpus.iter().any(|cpu| !cpu.online) {
            let delay = 1 + self.rng.exponential(HOTPLUG_NS / 2);
            self.after(delay, Event::Hotplug);
        }
    }
}
