// SPDX-License-Identifier: GPL-2.0-only
//! What tasks do by themselves.

use schedlab_live::message::Kind;
use schedlab_units::{CpuId, CpuSet};

use super::changes::{ARRIVAL_NS, CHANGE_NS, HOTPLUG_NS};
use super::machine::{Event, FakeKernel, FakeTask, Place, SCHED_EXT, TaskCtx};
use super::sched::Leaves;

/// Most tasks at a time.
const TASKS_MAX: usize = 40;

impl FakeKernel {
    pub(super) fn random_work(&mut self) -> u64 {
        let mean = [3_000, 60_000, 600_000, 4_000_000][self.rng.below(4) as usize];
        1 + self.rng.exponential(mean)
    }

    pub(super) fn random_mask(&mut self) -> CpuSet {
        let mut mask = CpuSet::EMPTY;
        if self.scenario.affinity && self.percent(30) {
            let n = self.cpus.len() as u64;
            for _ in 0..=self.rng.below(2) {
                mask.insert(CpuId::from_index(self.rng.below(n) as usize));
            }
        }
        if mask.is_empty() { CpuSet::first_n(self.scenario.n_cpus) } else { mask }
    }

    pub(super) fn new_task(&mut self, parent: Option<u32>, kernel_thread: bool) -> u32 {
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

    pub(super) fn sleep_timer(&mut self, pid: u32, mean: u64) {
        let delay = 1 + self.rng.exponential(mean);
        let token = self.tasks[&pid].token;
        self.after(delay, Event::Timer { pid, token });
    }

    pub(super) fn next_arrival(&mut self, cpu: usize) {
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

    pub(super) fn more_work(&mut self, pid: u32, cpu: usize) {
        if self.tasks[&pid].place == Place::Running(cpu) {
            self.task(pid).work = self.random_work();
            self.resume(pid, cpu);
        }
    }

    /// To sleep for about `mean` ns, or until somebody wakes it.
    pub(super) fn go_to_sleep(&mut self, pid: u32, cpu: usize, mean: Option<u64>) {
        self.task(pid).work = self.random_work();
        let unint = self.percent(20);
        self.maybe_pin(pid, cpu);
        self.schedule(cpu, Leaves::Sleeps(unint));
        if let Some(mean) = mean {
            self.sleep_timer(pid, mean);
        }
    }

    pub(super) fn go_on_exiting(&mut self, pid: u32, cpu: usize) {
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

    pub(super) fn wake_another(&mut self, by: u32, cpu: usize) {
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

    pub(super) fn fork(&mut self, parent: u32, cpu: usize) {
        let pid = self.new_task(Some(parent), false);
        let task = self.task(pid);
        task.cpu = cpu;
        task.ctx.is_new = true;
        self.relay_enable(pid, Some(cpu));
        self.wake_new(pid, (parent, cpu));
    }
}
