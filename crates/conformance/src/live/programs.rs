// SPDX-License-Identifier: GPL-2.0-only
//! What tasks do by themselves, and what is done to them.

use schedlab_live::message::Kind;
use schedlab_units::{CpuId, CpuSet};

use super::machine::{Event, FakeKernel, FakeTask, Kick, Place, SCHED_EXT, SLICE_DFL, TaskCtx};
use super::sched::Leaves;

/// Most tasks at a time.
const TASKS_MAX: usize = 40;
/// Mean time in ns between two changes from outside.
const CHANGE_NS: u64 = 700_000;
/// Mean time in ns between two arrivals of a task of another class.
const ARRIVAL_NS: u64 = 1_500_000;
/// Mean time in ns between two changes of the set of CPUs.
const HOTPLUG_NS: u64 = 8_000_000;

impl FakeKernel {
    fn random_work(&mut self) -> u64 {
        let mean = [3_000, 60_000, 600_000, 4_000_000][self.rng.below(4) as usize];
        1 + self.rng.exponential(mean)
    }

    fn random_mask(&mut self) -> CpuSet {
        let mut mask = CpuSet::EMPTY;
        if self.scenario.affinity && self.percent(30) {
            let n = self.cpus.len() as u64;
            for _ in 0..=self.rng.below(2) {
                mask.insert(CpuId::from_index(self.rng.below(n) as usize));
            }
        }
        if mask.is_empty() { CpuSet::first_n(self.scenario.n_cpus) } else { mask }
    }

    fn new_task(&mut self, parent: Option<u32>, kernel_thread: bool) -> u32 {
        let pid = self.next_pid;
        self.next_pid += 1;
        let thread = self.percent(50);
        let parents = parent.and_then(|parent| self.tasks.get(&parent)).cloned();
        let policy = if self.scenario.whole_system {
            [0, 0, 3, 5][self.rng.below(4) as usize]
        } else {
            SCHED_EXT
        };
        let nice = match &parents {
            Some(parent) => parent.nice,
            None if self.percent(50) => 0,
            None => self.rng.below(40) as i64 - 20,
        };
        let allowed = match &parents {
            Some(parent) => parent.allowed,
            None if kernel_thread => CpuSet::first_n(self.scenario.n_cpus),
            None => self.random_mask(),
        };
        let cpu = allowed.first().expect("not empty").index();
        let work = self.random_work();
        let task = FakeTask {
            tgid: parents.filter(|_| thread).map_or(pid, |parent| parent.tgid),
            parent: parent.unwrap_or(1),
            nice,
            policy,
            allowed,
            pinned: false,
            mask_pinned: false,
            kernel_thread,
            exiting: false,
            cpu,
            place: Place::Asleep,
            on_cpu_until: 0,
            slice: 0,
            sum_exec: 0,
            work,
            token: 0,
            ctx: TaskCtx::default(),
        };
        self.tasks.insert(pid, task);
        pid
    }

    /// The first tasks and the sources of disturbance.
    pub(super) fn populate(&mut self) {
        for _ in 0..self.scenario.n_tasks {
            let pid = self.new_task(None, false);
            self.relay_enable(pid, None);
            self.sleep_timer(pid, 200_000);
        }
        if self.scenario.whole_system {
            for _ in 0..2 {
                let pid = self.new_task(None, true);
                self.sleep_timer(pid, 500_000);
            }
        }
        if self.scenario.others {
            for cpu in 0..self.cpus.len() {
                self.next_arrival(cpu);
            }
        }
        if self.scenario.changes || self.scenario.affinity {
            self.after(CHANGE_NS, Event::Change);
        }
        if self.scenario.hotplug {
            self.after(HOTPLUG_NS, Event::Hotplug);
        }
    }

    fn sleep_timer(&mut self, pid: u32, mean: u64) {
        let delay = 1 + self.rng.exponential(mean);
        let token = self.tasks[&pid].token;
        self.after(delay, Event::Timer { pid, token });
    }

    fn next_arrival(&mut self, cpu: usize) {
        let delay = 1 + self.rng.exponential(ARRIVAL_NS);
        self.after(delay, Event::Arrives { cpu });
    }

    /// A running task has done its work.
    pub(super) fn work_done(&mut self, pid: u32) {
        let Place::Running(cpu) = self.tasks[&pid].place else { return };
        self.charge(cpu);
        if self.tasks[&pid].pinned {
            self.unpin(pid);
        }
        if self.tasks[&pid].exiting {
            self.go_on_exiting(pid, cpu);
            return;
        }
        self.task(pid).work = 0;
        if self.winding_down {
            self.go_to_sleep(pid, cpu, None);
            return;
        }
        match self.rng.below(100) {
            0..30 => {
                let mean = [20_000, 500_000, 3_000_000][self.rng.below(3) as usize];
                self.go_to_sleep(pid, cpu, Some(mean));
            }
            30..45 => {
                self.wake_another(pid, cpu);
                self.go_to_sleep(pid, cpu, Some(2_000_000));
            }
            45..60 => {
                self.wake_another(pid, cpu);
                self.more_work(pid, cpu);
            }
            60..72 => {
                self.task(pid).work = self.random_work();
                self.relay_yield(pid);
                self.schedule(cpu, Leaves::Willing);
            }
            72..80 => {
                if self.tasks.len() < TASKS_MAX && !self.tasks[&pid].kernel_thread {
                    self.fork(pid, cpu);
                }
                self.more_work(pid, cpu);
            }
            80..84 if !self.tasks[&pid].kernel_thread && self.tasks.len() > 3 => {
                self.task(pid).exiting = true;
                self.more_work(pid, cpu);
            }
            84..88 => {
                self.relay_renames(pid, Kind::Exec);
                self.more_work(pid, cpu);
            }
            88..90 => {
                self.relay_renames(pid, Kind::Name);
                self.more_work(pid, cpu);
            }
            _ => self.more_work(pid, cpu),
        }
    }

    fn more_work(&mut self, pid: u32, cpu: usize) {
        if self.tasks[&pid].place == Place::Running(cpu) {
            self.task(pid).work = self.random_work();
            self.resume(pid, cpu);
        }
    }

    /// To sleep for about `mean` ns, or until somebody wakes it.
    fn go_to_sleep(&mut self, pid: u32, cpu: usize, mean: Option<u64>) {
        self.task(pid).work = self.random_work();
        let unint = self.percent(20);
        self.maybe_pin(pid, cpu);
        self.schedule(cpu, Leaves::Sleeps(unint));
        if let Some(mean) = mean {
            self.sleep_timer(pid, mean);
        }
    }

    fn go_on_exiting(&mut self, pid: u32, cpu: usize) {
        if self.percent(25) {
            self.task(pid).work = 1 + self.rng.exponential(20_000);
            self.schedule(cpu, Leaves::Sleeps(true));
            self.sleep_timer(pid, 100_000);
        } else {
            self.schedule(cpu, Leaves::Dies);
            let delay = 2_000 + self.rng.exponential(300_000);
            self.after(delay, Event::Free { pid });
        }
    }

    pub(super) fn free(&mut self, pid: u32) {
        self.relay_disable(pid);
        self.tasks.remove(&pid);
    }

    fn wake_another(&mut self, by: u32, cpu: usize) {
        let asleep: Vec<u32> = self
            .tasks
            .iter()
            .filter(|(_, task)| task.place == Place::Asleep && !task.exiting)
            .map(|(pid, _)| *pid)
            .collect();
        if let Some(at) = (self.rng.below(asleep.len() as u64 + 1) as usize).checked_sub(1) {
            let sync = self.percent(40);
            self.wake(asleep[at], Some((by, cpu)), sync);
        }
    }

    fn fork(&mut self, parent: u32, cpu: usize) {
        let pid = self.new_task(Some(parent), false);
        let task = self.task(pid);
        task.cpu = cpu;
        task.ctx.is_new = true;
        self.relay_enable(pid, Some(cpu));
        self.wake_new(pid, (parent, cpu));
    }

    /// Its migration is disabled for the time that it is not running.
    fn maybe_pin(&mut self, pid: u32, cpu: usize) {
        if self.scenario.affinity && self.percent(8) && !self.tasks[&pid].kernel_thread {
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

    fn unpin(&mut self, pid: u32) {
        let task = self.task(pid);
        task.pinned = false;
        if std::mem::replace(&mut task.mask_pinned, false) {
            self.change(pid, |kernel| kernel.relay_set_cpumask(pid));
            self.leave_forbidden_cpu(pid);
        }
    }

    /// A task that may not stay where it is goes elsewhere.
    fn leave_forbidden_cpu(&mut self, pid: u32) {
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
    fn change_class(&mut self, pid: u32) {
        match self.tasks[&pid].place {
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

    fn forget(&mut self, pid: u32) {
        let now = self.now;
        let task = self.task(pid);
        task.place = Place::Elsewhere;
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
