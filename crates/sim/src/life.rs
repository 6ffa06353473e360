// SPDX-License-Identifier: GPL-2.0-only
//! Birth and death of tasks: the start of a workload, fork, exit, waiting for children.

use schedlab_kcore::NewTask;
use schedlab_policy_api::{Mm, Policy, SyncWakes, TaskState, Tgid};
use schedlab_units::{CpuId, Nanos, Rng, TaskId, Time};
use schedlab_workload::Vm;
use schedlab_workload::ir::{
    Op, ProcessSpec, SchedSpec, SignalTarget, TaskSpec, TemplateId, Workload,
};

use crate::ops::Flow;
use crate::proc::{Family, Proc, Then, Todo};
use crate::queue::{Event, Rank};
use crate::wait_queue::WaitQueue;
use crate::{HostObserver, Sim, SimError};

/// Tasks that may be alive at once; more are taken for a fork bomb.
const TASKS_MAX: usize = 1 << 18;

/// Which children a task waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// It does not wait.
    #[default]
    No,
    /// For the next one to exit.
    One,
    /// For all.
    All,
}

impl<'w, P: Policy, O: HostObserver> Sim<'w, P, O> {
    /// Creates the tasks of the start in order and queues their first wake-ups.
    pub(crate) fn create_start_tasks(&mut self) {
        let workload = self.workload;
        let mut processes: Vec<(&str, u32)> = Vec::new();
        for (index, spec) in workload.tasks.iter().enumerate().filter(|(_, t)| t.at_start) {
            for _ in 0..spec.count {
                let process = match &spec.process {
                    ProcessSpec::Thread(name) => {
                        match processes.iter().find(|(known, _)| known == name) {
                            Some((_, process)) => *process,
                            None => {
                                self.n_processes += 1;
                                processes.push((name, self.n_processes));
                                self.n_processes
                            }
                        }
                    }
                    ProcessSpec::Own | ProcessSpec::Kernel => {
                        self.n_processes += 1;
                        self.n_processes
                    }
                };
                let start = Time::ZERO + spec.start;
                let template = TemplateId(index as u32);
                let new = self.facts(spec, None, process);
                let task = self.spawn(CpuId(0), template, None, &new, start);
                self.starts.push((task, spec.start_cpu));
                let event = Event::Start { index: self.starts.len() as u32 - 1 };
                self.push_pending(start, Rank::Timer, task.0, event);
            }
        }
    }

    /// Templates that some program sends a signal to, with room for their tasks.
    pub(crate) fn find_signal_targets(workload: &Workload) -> Vec<Option<Vec<TaskId>>> {
        let mut targets = vec![None; workload.tasks.len()];
        for op in workload.programs.iter().flat_map(|program| &program.ops) {
            if let Op::Signal(SignalTarget::Template(template))
            | Op::SignalTaking { target: SignalTarget::Template(template), .. }
            | Op::Kill(template) = op
            {
                targets[template.0 as usize] = Some(Vec::new());
            }
        }
        targets
    }

    /// First wake-up of a task of the start.
    pub(crate) fn start_task(&mut self, cpu: CpuId, task: TaskId, on: Option<CpuId>) {
        self.core.wake_up_new(self.now, cpu, task, on);
        self.core.take_work();
        self.flush(cpu);
    }

    /// Facts of a new task of `spec`: what the template leaves open comes from the parent.
    fn facts(&self, spec: &TaskSpec, parent: Option<TaskId>, process: u32) -> NewTask {
        let mut new = NewTask::normal(self.config.topo.all(), process);
        if let Some(parent) = parent {
            let facts = self.core.tasks().get(parent);
            new.class = facts.class;
            new.nice = facts.nice;
            new.rt_priority = facts.rt_priority;
            new.affinity = facts.affinity;
            new.cpu = facts.cpu;
            new.slice_request_ns = facts.slice_request_ns;
        }
        if let Some(SchedSpec { class, nice, rt_priority, slice }) = spec.sched {
            new.class = class;
            new.nice = nice;
            new.rt_priority = rt_priority;
            new.slice_request_ns = slice.as_ns();
        }
        if let Some(affinity) = spec.affinity {
            new.affinity = affinity.intersection(self.config.topo.all());
            if parent.is_none() {
                new.cpu = new.affinity.first().unwrap_or(new.cpu);
            }
        }
        if let Some(cpu) = spec.start_cpu
            && parent.is_none()
        {
            new.cpu = CpuId(cpu);
        }
        if spec.process == ProcessSpec::Kernel {
            new.mm = None;
        }
        new
    }

    /// Creates a task; its first wake-up is the caller's.
    fn spawn(
        &mut self,
        cpu: CpuId,
        template: TemplateId,
        parent: Option<TaskId>,
        new: &NewTask,
        reference: Time,
    ) -> TaskId {
        let workload = self.workload;
        let spec = &workload.tasks[template.0 as usize];
        let program = &workload.programs[spec.program.0 as usize];
        let task = self.core.fork(self.now, cpu, parent, new);
        let instance = self.instances[template.0 as usize];
        self.instances[template.0 as usize] += 1;
        self.n_spawned += 1;
        self.n_live += 1;
        self.objects.links.provide(task);
        self.core.observer_mut().task_created(task, template, instance, new);
        let waits = program.ops.iter().any(|op| matches!(op, Op::WaitChild | Op::WaitChildren));
        let origin = match parent {
            Some(parent) if workload.family_streams => {
                let (origin, born) = &mut self.procs[parent.index()].lineage;
                *born += 1;
                Rng::stream(*origin, "child", *born).next_u64()
            }
            _ => self.n_spawned,
        };
        let fresh = task.index() == self.procs.len();
        if fresh {
            self.procs.push(Proc {
                template,
                instance,
                program: spec.program,
                vm: Vm::new(program),
                rng: Rng::stream(0, "", 0),
                lineage: (0, 0),
                drawn: 0,
                todo: Todo::Next,
                in_kernel: false,
                wait: 0,
                serial: 0,
                signal_pending: false,
                in_sigwait: false,
                reference,
                release: reference,
                due: reference,
                interrupts_seen: reference,
                timers: Vec::new(),
                watches: Vec::new(),
                taken: WaitQueue::default(),
                taken_at: Time::ZERO,
                served_at: Time::ZERO,
                relock: false,
                killed: false,
                woken_by: None,
                is_armed: false,
                family: Family::default(),
            });
        }
        let proc = &mut self.procs[task.index()];
        if !fresh {
            proc.vm.restart(program);
            proc.timers.clear();
            proc.watches.clear();
        }
        proc.template = template;
        proc.instance = instance;
        proc.program = spec.program;
        proc.rng = Rng::stream(self.config.seed, "task", origin);
        proc.lineage = (origin, 0);
        proc.drawn = 0;
        proc.todo = Todo::Next;
        proc.in_kernel = false;
        proc.wait = proc.wait.wrapping_add(1);
        proc.serial = self.n_spawned;
        proc.signal_pending = false;
        proc.in_sigwait = false;
        proc.relock = false;
        proc.killed = false;
        proc.woken_by = None;
        proc.is_armed = false;
        proc.reference = reference;
        proc.release = reference;
        proc.due = reference;
        proc.interrupts_seen = reference;
        proc.taken = WaitQueue::default();
        proc.family = Family::new(parent, waits);
        if let Some(parent) = parent {
            // A fork copies running stopwatches too.
            let watches = std::mem::take(&mut self.procs[parent.index()].watches);
            self.procs[task.index()].watches.extend_from_slice(&watches);
            self.procs[parent.index()].watches = watches;
            self.adopt(parent, task);
        }
        if let Some(targets) = &mut self.signal_targets[template.0 as usize] {
            targets.push(task);
        }
        task
    }

    /// Links a new child into its parent's family.
    fn adopt(&mut self, parent: TaskId, child: TaskId) {
        let eldest = self.procs[parent.index()].family.first_child.replace(child);
        self.procs[child.index()].family.next_sibling = eldest;
        if let Some(sibling) = eldest {
            self.procs[sibling.index()].family.prev_sibling = Some(child);
        }
    }

    /// Takes a child out of its parent's list of living children.
    fn unlink(&mut self, parent: TaskId, child: TaskId) {
        let family = &self.procs[child.index()].family;
        let (prev, next) = (family.prev_sibling, family.next_sibling);
        match prev {
            Some(prev) => self.procs[prev.index()].family.next_sibling = next,
            None => self.procs[parent.index()].family.first_child = next,
        }
        if let Some(next) = next {
            self.procs[next.index()].family.prev_sibling = prev;
        }
    }

    /// The fork operation: creates a child and wakes it on this CPU.
    pub(crate) fn fork(
        &mut self,
        cpu: CpuId,
        parent: TaskId,
        template: TemplateId,
        thread: bool,
    ) -> Flow<'w> {
        let spec = &self.workload.tasks[template.0 as usize];
        if self.n_live >= TASKS_MAX {
            self.fault = Some(SimError::TooManyTasks {
                at: self.now,
                task: spec.name.clone(),
                id: parent,
                limit: TASKS_MAX,
            });
            return Flow::Done;
        }
        let shares = thread || matches!(spec.process, ProcessSpec::Thread(_));
        let mut new = if shares {
            let facts = self.core.tasks().get(parent);
            let (tgid, mm) = (facts.tgid, facts.mm);
            NewTask { tgid, mm, ..self.facts(spec, Some(parent), 0) }
        } else {
            self.n_processes += 1;
            self.facts(spec, Some(parent), self.n_processes)
        };
        if !shares && spec.process != ProcessSpec::Kernel {
            new.tgid = Tgid(self.n_processes);
            new.mm = Some(Mm(self.n_processes));
        }
        let reference = Time::ZERO + spec.start;
        let child = self.spawn(cpu, template, Some(parent), &new, reference);
        self.core.wake_up_new(self.now, cpu, child, None);
        self.charge_wakeup(cpu, self.core.tasks().cpu(child));
        self.flush(cpu);
        Flow::Done
    }

    /// What an exiting task does before its last `schedule`: leaves its family and tells its parent
    /// (kernel `exit_notify`).
    pub(crate) fn exit(&mut self, cpu: CpuId, task: TaskId) -> Flow<'w> {
        self.n_live -= 1;
        let template = self.procs[task.index()].template;
        if let Some(targets) = &mut self.signal_targets[template.0 as usize] {
            targets.retain(|t| *t != task);
        }
        while let Some(child) = self.procs[task.index()].family.first_child {
            self.unlink(task, child);
            let family = &mut self.procs[child.index()].family;
            family.parent = None;
            family.next_sibling = None;
            family.prev_sibling = None;
            self.core.orphan(child);
        }
        let zombies = &mut self.procs[task.index()].family.zombies;
        while let Some(zombie) = self.objects.links.pop_front(zombies) {
            self.core.orphan(zombie);
            self.dead.push(zombie);
        }
        let Some(parent) = self.procs[task.index()].family.parent else {
            self.dead.push(task);
            return Flow::Exit;
        };
        self.unlink(parent, task);
        let family = &mut self.procs[parent.index()].family;
        if !family.waits {
            self.core.orphan(task);
            self.dead.push(task);
            return Flow::Exit;
        }
        self.objects.links.push_back(&mut family.zombies, task);
        let satisfied = match family.waiting {
            Waiting::No => false,
            Waiting::One => true,
            Waiting::All => family.first_child.is_none(),
        };
        if satisfied {
            family.waiting = Waiting::No;
            let sync = self.config.time.sync == SyncWakes::Usual;
            self.wake(cpu, parent, Some(task), sync);
        }
        Flow::Exit
    }

    /// Collects children that have exited; sleeps while the wait is not satisfied.
    pub(crate) fn wait_for_children(&mut self, cpu: CpuId, task: TaskId, op: &'w Op) -> Flow<'w> {
        let all = matches!(op, Op::WaitChildren);
        while let Some(zombie) = self.procs[task.index()].family.zombies.first() {
            let facts = self.core.tasks().get(zombie);
            if facts.on_cpu {
                // The collector spins until the zombie's CPU has finished switching away from it
                // (2.4.5 `release_task`; later kernels wait in `finish_task_switch`).
                let end = self.cpus[facts.cpu.index()].end;
                let left = end.saturating_since(self.now).max(Nanos::from_ns(1));
                return Flow::Again(Todo::Kernel { left, then: Then::Do(op, 0) });
            }
            self.objects.links.pop_front(&mut self.procs[task.index()].family.zombies);
            self.core.reap(self.now, cpu, zombie);
            self.flush(cpu);
            if !all {
                return Flow::Done;
            }
        }
        let family = &mut self.procs[task.index()].family;
        if family.first_child.is_none() {
            return Flow::Done;
        }
        family.waiting = if all { Waiting::All } else { Waiting::One };
        Flow::Block(TaskState::Sleeping, Todo::Do(op, 0))
    }

    /// Frees tasks that exited and that nobody waits for, once no CPU is switching away from them.
    pub(crate) fn bury_the_dead(&mut self) {
        let mut index = 0;
        while index < self.dead.len() {
            let task = self.dead[index];
            let facts = self.core.tasks().get(task);
            if facts.state != TaskState::Zombie || facts.on_cpu {
                index += 1;
                continue;
            }
            let cpu = facts.cpu;
            self.dead.swap_remove(index);
            self.core.reap(self.now, cpu, task);
            self.flush(cpu);
        }
    }
}
