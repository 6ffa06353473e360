// SPDX-License-Identifier: GPL-2.0-only
//! What all tasks of a play share, and the making of a task that nothing plays yet.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use schedlab_policy_api::Pid;
use schedlab_units::{CpuId, CpuSet, Rng, Time};
use schedlab_workload::Vm;
use schedlab_workload::ir::{
    Op, ProcessSpec, Program, SchedSpec, SignalTarget, TaskSpec, TemplateId, Workload,
};

use crate::calls;
use crate::lender::AVAILABLE;
use crate::objects::Objects;
use crate::ops::Player;
use crate::play::PlayOptions;
use crate::played::{Counts, Note, PlayedTask};
use crate::process::Processes;
use crate::task::{Process, Task, lock};

/// What all tasks of a play share.
pub(crate) struct Shared {
    pub(crate) workload: Arc<Workload>,
    pub(crate) objects: Objects,
    pub(crate) processes: Processes,
    pub(crate) stop: AtomicBool,
    /// Changes of parameters that the kernel refused.
    pub(crate) refused: AtomicU64,
    /// What `exec` operations execute; none where no program has any.
    pub(crate) image: Option<OwnedFd>,
    /// How the kernel refused an `exec`, if not for the format of the file.
    pub(crate) exec_error: AtomicI32,
    pub(crate) panicked: AtomicBool,
    pub(crate) cpus: CpuSet,
    /// Normal and batch tasks are SCHED_EXT tasks.
    pub(crate) ext: bool,
    pub(crate) start: AtomicU64,
    /// 0 = not yet; the tasks of the start sleep in it.
    pub(crate) go: AtomicU32,
    pub(crate) ready: AtomicU32,
    /// Threads in the kernel: one for each task, and a lender for each process.
    pub(crate) live: AtomicU32,
    pub(crate) spawned: AtomicU64,
    pub(crate) results: Mutex<Results>,
    seed: u64,
    instances: Vec<AtomicU32>,
    /// Live tasks of the templates that some program sends signals to.
    targets: Vec<Option<Mutex<Vec<Arc<Task>>>>>,
    tasks: Mutex<Vec<Arc<Task>>>,
}

/// What tasks leave behind.
#[derive(Default)]
pub(crate) struct Results {
    pub(crate) tasks: Vec<PlayedTask>,
    pub(crate) notes: Vec<Note>,
    pub(crate) ops: u64,
    /// The first thing that made no sense.
    pub(crate) fault: Option<String>,
    /// The first thing that this host did not provide.
    pub(crate) lack: Option<String>,
    /// The first task whose process was ended from outside, and by which signal.
    pub(crate) killed: Option<(String, i32)>,
}

/// Whether tasks of `spec` are processes of their own, unless they are forked as threads.
pub(crate) fn is_process(spec: &TaskSpec) -> bool {
    AVAILABLE && spec.process == ProcessSpec::Own
}

impl Shared {
    pub(crate) fn new(
        workload: &Arc<Workload>,
        objects: Objects,
        image: Option<OwnedFd>,
        options: &PlayOptions,
    ) -> Self {
        let mut targets: Vec<Option<Mutex<Vec<Arc<Task>>>>> = Vec::new();
        targets.resize_with(workload.tasks.len(), || None);
        for op in workload.programs.iter().flat_map(|program| &program.ops) {
            if let Op::Signal(SignalTarget::Template(template))
            | Op::SignalTaking { target: SignalTarget::Template(template), .. }
            | Op::Kill(template) = op
            {
                targets[template.0 as usize] = Some(Mutex::default());
            }
        }
        Self {
            workload: Arc::clone(workload),
            objects,
            processes: Processes::new(),
            stop: AtomicBool::new(false),
            refused: AtomicU64::new(0),
            image,
            exec_error: AtomicI32::new(0),
            panicked: AtomicBool::new(false),
            cpus: options.cpus,
            ext: options.ext,
            start: AtomicU64::new(0),
            go: AtomicU32::new(0),
            ready: AtomicU32::new(0),
            live: AtomicU32::new(0),
            spawned: AtomicU64::new(0),
            results: Mutex::default(),
            seed: options.seed,
            instances: workload.tasks.iter().map(|_| AtomicU32::new(0)).collect(),
            targets,
            tasks: Mutex::default(),
        }
    }

    /// The instant that counts as zero.
    pub(crate) fn start(&self) -> Time {
        Time::from_ns(self.start.load(Ordering::Acquire))
    }

    pub(crate) fn program(&self, template: TemplateId) -> &Program {
        &self.workload.programs[self.template(template).program.0 as usize]
    }

    pub(crate) fn template(&self, template: TemplateId) -> &TaskSpec {
        &self.workload.tasks[template.0 as usize]
    }

    /// Name of a task, as in results.
    pub(crate) fn name(&self, template: TemplateId, instance: u32) -> String {
        let spec = self.template(template);
        if spec.count > 1 { format!("{}-{instance}", spec.name) } else { spec.name.clone() }
    }

    /// Whom a signal of `sender` goes to.
    pub(crate) fn targets(&self, target: SignalTarget, sender: &Task) -> Vec<Arc<Task>> {
        match target {
            SignalTarget::Parent => {
                let parent = sender.parent.as_ref().and_then(std::sync::Weak::upgrade);
                parent.into_iter().collect()
            }
            SignalTarget::Template(template) => {
                let targets = self.targets[template.0 as usize].as_ref();
                targets.map_or_else(Vec::new, |targets| lock(targets).clone())
            }
        }
    }

    /// Restricts the calling thread to CPUs as the workload counts them.
    pub(crate) fn pin(&self, cpus: &CpuSet) -> io::Result<()> {
        let mut set = rustix::thread::CpuSet::new();
        for (index, cpu) in self.cpus.iter().enumerate() {
            if cpus.contains(CpuId::from_index(index)) {
                set.set(cpu.index());
            }
        }
        Ok(rustix::thread::sched_setaffinity(None, &set)?)
    }

    pub(crate) fn all_cpus(&self) -> CpuSet {
        CpuSet::first_n(self.cpus.len())
    }

    /// A task that nothing plays yet; `process` is the one it will be in.
    pub(crate) fn make(
        self: &Arc<Self>,
        template: TemplateId,
        parent: Option<&Player>,
        origin: u64,
        process: Arc<Process>,
    ) -> Player {
        let instance = self.instances[template.0 as usize].fetch_add(1, Ordering::Relaxed);
        let program = self.program(template);
        let waits = program.ops.iter().any(|op| matches!(op, Op::WaitChild | Op::WaitChildren));
        let task = {
            let mut results = lock(&self.results);
            let index = results.tasks.len();
            results.tasks.push(PlayedTask {
                pid: Pid(0),
                process: Pid(0),
                template,
                instance,
                parent: parent.map(|parent| parent.me.index),
                born: calls::now(),
                exit: None,
                counts: Counts::default(),
            });
            let parent = parent.map(|parent| Arc::downgrade(&parent.me));
            Arc::new(Task::new(index, template, instance, parent, process, waits))
        };
        lock(&self.tasks).push(Arc::clone(&task));
        if let Some(targets) = &self.targets[template.0 as usize] {
            lock(targets).push(Arc::clone(&task));
        }
        Player {
            shared: Arc::clone(self),
            me: task,
            vm: Vm::new(program),
            rng: Rng::stream(self.seed, "task", origin),
            lineage: (origin, 0),
            drawn: 0,
            sched: parent.map_or(SchedSpec::default(), |parent| parent.sched),
            reference: Time::ZERO,
            release: None,
            interrupts_seen: Time::ZERO,
            timers: Vec::new(),
            watches: parent.map_or(Vec::new(), |parent| parent.watches.clone()),
            notes: Vec::with_capacity(1024),
            ops: 0,
        }
    }

    /// Nobody sends signals to `task` any more.
    pub(crate) fn forget(&self, task: &Arc<Task>) {
        task.gone.store(true, Ordering::Release);
        if let Some(targets) = &self.targets[task.template.0 as usize] {
            lock(targets).retain(|other| !Arc::ptr_eq(other, task));
        }
    }

    /// Makes tasks that are still there look whether they must end: all, or those that were killed.
    pub(crate) fn nudge(&self, all: bool) {
        let mut tasks = lock(&self.tasks);
        tasks.retain(|task| !task.gone.load(Ordering::Acquire));
        let tasks = tasks.iter().filter(|task| all || task.killed.load(Ordering::Acquire));
        tasks.filter_map(|task| task.address()).for_each(calls::nudge);
    }
}
