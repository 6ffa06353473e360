// SPDX-License-Identifier: GPL-2.0-only
//! Facts about tasks that the core owns and policies read.

use alloc::vec::Vec;

use schedlab_units::{CpuId, CpuSet, Nice, Prio, TaskId};

/// Scheduling class of a task: the kernel's `policy` field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SchedClass {
    /// SCHED_FIFO: fixed priority, no timeslice.
    Fifo,
    /// SCHED_RR: fixed priority, round robin among equals.
    Rr,
    /// SCHED_NORMAL (SCHED_OTHER): time sharing by nice.
    Normal,
    /// SCHED_BATCH: time sharing without wake-up preemption.
    Batch,
    /// SCHED_IDLE: only what nobody else wants.
    Idle,
    /// SCHED_ISO of the BFS and staircase patches: soft real time for unprivileged users.
    Iso,
}

impl SchedClass {
    /// Whether the class is one of the fixed-priority real-time classes.
    #[inline]
    pub const fn is_rt(self) -> bool {
        matches!(self, Self::Fifo | Self::Rr)
    }
    /// Lower-case name as it appears in files and results.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fifo => "fifo",
            Self::Rr => "rr",
            Self::Normal => "normal",
            Self::Batch => "batch",
            Self::Idle => "idle",
            Self::Iso => "iso",
        }
    }
    /// The class called `name`; `other` is an alias of `normal`.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "fifo" => Self::Fifo,
            "rr" => Self::Rr,
            "normal" | "other" => Self::Normal,
            "batch" => Self::Batch,
            "idle" => Self::Idle,
            "iso" => Self::Iso,
            _ => return None,
        })
    }
}

/// Identity of an address space (2.4's mm bonus compares these).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mm(pub u32);

/// Identity of a thread group, that is a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tgid(pub u32);

/// What a task is doing, as the core sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaskState {
    /// Forked, not yet woken for the first time.
    New,
    /// Woken towards a CPU that will enqueue it when the inter-processor interrupt arrives.
    Waking,
    /// Wants a CPU and waits in a queue.
    Runnable,
    /// Is current on its CPU.
    Running,
    /// Sleeps; a signal wakes it (TASK_INTERRUPTIBLE).
    Sleeping,
    /// Sleeps; only its event wakes it (TASK_UNINTERRUPTIBLE).
    Uninterruptible,
    /// Has exited, not yet collected by its parent.
    Zombie,
    /// The slot is free.
    Dead,
}

impl TaskState {
    /// Whether the task wants a CPU: waiting for one or executing.
    #[inline]
    pub const fn wants_cpu(self) -> bool {
        matches!(self, Self::Waking | Self::Runnable | Self::Running)
    }
    /// Whether the task sleeps.
    #[inline]
    pub const fn is_asleep(self) -> bool {
        matches!(self, Self::Sleeping | Self::Uninterruptible)
    }
}

/// Facts of one task. The core writes them; hooks read them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// What it is doing now.
    pub state: TaskState,
    /// Scheduling class.
    pub class: SchedClass,
    /// Nice value; kept while the class is a real-time one.
    pub nice: Nice,
    /// User priority 1 (low) … 99 (high) in FIFO and RR, else 0 (`rt_priority`).
    pub rt_priority: u8,
    /// CPU it runs on, waits for, or last ran on (`task_cpu`).
    pub cpu: CpuId,
    /// True from its being current until the switch away from it is finished (2.4 `has_cpu`).
    pub on_cpu: bool,
    /// CPUs it may use (`cpus_allowed`).
    pub affinity: CpuSet,
    /// The task that forked it, while that lives and if it was not the start of the workload.
    pub parent: Option<TaskId>,
    /// Its process.
    pub tgid: Tgid,
    /// Its address space; none for a kernel thread.
    pub mm: Option<Mm>,
    /// Requested timeslice in ns (`sched_attr::sched_runtime` of a fair task); 0 = none.
    pub slice_request_ns: u64,
    /// Counts the lives of this slot: an id with another generation is a stale one.
    pub generation: u32,
}

impl Task {
    /// Priority on the kernel's scale without any dynamic part: 99 − rt_priority, or 120 + nice.
    pub fn static_prio(&self) -> Prio {
        if self.class.is_rt() { Prio(99 - self.rt_priority) } else { self.nice.prio() }
    }
}

/// All tasks, indexed by [`TaskId`].
#[derive(Clone, Debug, Default)]
pub struct TaskTable {
    tasks: Vec<Task>,
    free: Vec<TaskId>,
    live: usize,
}

impl TaskTable {
    /// An empty table with room for `capacity` tasks.
    pub fn with_capacity(capacity: usize) -> Self {
        Self { tasks: Vec::with_capacity(capacity), free: Vec::with_capacity(capacity), live: 0 }
    }
    /// The facts of `task`.
    ///
    /// # Panics
    /// When `task` never existed.
    #[inline]
    pub fn get(&self, task: TaskId) -> &Task {
        &self.tasks[task.index()]
    }
    /// The facts of `task`, to be changed by the core only.
    #[inline]
    pub fn get_mut(&mut self, task: TaskId) -> &mut Task {
        &mut self.tasks[task.index()]
    }
    /// CPU of `task`.
    #[inline]
    pub fn cpu(&self, task: TaskId) -> CpuId {
        self.tasks[task.index()].cpu
    }
    /// Puts `task` into a free slot, the last freed first.
    pub fn insert(&mut self, mut task: Task) -> TaskId {
        self.live += 1;
        if let Some(id) = self.free.pop() {
            task.generation = self.tasks[id.index()].generation.wrapping_add(1);
            self.tasks[id.index()] = task;
            return id;
        }
        let id = TaskId::from_index(self.tasks.len());
        self.tasks.push(task);
        // A later `remove` must not allocate.
        self.free.reserve(self.tasks.len());
        id
    }
    /// Frees the slot of `task`.
    pub fn remove(&mut self, task: TaskId) {
        let slot = &mut self.tasks[task.index()];
        debug_assert!(slot.state != TaskState::Dead, "task {task} is freed twice");
        slot.state = TaskState::Dead;
        self.live -= 1;
        self.free.push(task);
    }
    /// Number of slots ever used; ids are below it.
    #[inline]
    pub fn n_slots(&self) -> usize {
        self.tasks.len()
    }
    /// Number of tasks not yet freed.
    pub fn n_live(&self) -> usize {
        self.live
    }
    /// All tasks not yet freed, in id order.
    pub fn iter(&self) -> impl Iterator<Item = (TaskId, &Task)> {
        self.tasks
            .iter()
            .enumerate()
            .filter(|(_, task)| task.state != TaskState::Dead)
            .map(|(index, task)| (TaskId(index as u32), task))
    }
}
