// SPDX-License-Identifier: GPL-2.0-only
//! The state of a fair class with the real-time classes above it, and what its kernels differ in.
//!
//! A policy of this family is [`FairPolicy`] with its own knobs and entities, and a
//! [`Dialect`].
//! It owns the trees, the sums over them and what becomes of the current task; the virtual times
//! themselves, placement and the rules of the pick are the dialect's.

use alloc::vec::Vec;

use schedlab_policy_api::{Build, Ctx, Dequeue};
use schedlab_units::{CpuId, Nanos, Prio, TaskId, VTime};

use super::dialect::{Dialect, Order};
use super::tree::{Nodes, Tree};
use super::{Fair, FairKnobs, Fluid, Membership, Plan};
use crate::rt::Rt;
use crate::throttle::Throttle;

/// The waiting entities of a CPU (kernel `struct cfs_rq`); the current one is not among them.
#[derive(Clone, Debug)]
pub(crate) struct CfsRq {
    /// In order of what the dialect says.
    pub(crate) tree: Tree,
    /// Sums over the tree; their base is `min_vruntime` or `zero_vruntime`.
    pub(crate) fluid: Fluid,
}

impl CfsRq {
    /// An empty queue; its clock starts 2^20 before the wrap, as the kernel's.
    const fn new(tree: Tree) -> Self {
        let base = VTime(0u64.wrapping_sub(1 << 20));
        Self { tree, fluid: Fluid { base, sum: 0, weight: 0 } }
    }
}

/// Why an entity leaves its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Departure {
    /// Its task sleeps or exits, or slept long ago and its delay is over.
    Sleep,
    /// It goes to another queue.
    Migrate,
    /// Its task changes and comes back.
    Save,
}

impl From<Dequeue> for Departure {
    fn from(why: Dequeue) -> Self {
        match why {
            Dequeue::Sleep | Dequeue::Exit => Self::Sleep,
            Dequeue::Migrate => Self::Migrate,
            Dequeue::Save => Self::Save,
        }
    }
}

/// Facts of a task before a change that is under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Before {
    pub(super) is_rt: bool,
    pub(super) prio: Prio,
    /// It was delayed and has been taken off its queue.
    pub(super) delayed: bool,
}

/// A fair class with the real-time classes above it: `D` is what the dialect keeps beside the
/// entities, `E` the virtual side of a task.
pub struct FairPolicy<D, E> {
    pub(crate) fair: Fair,
    pub(crate) rt: Rt,
    pub(crate) throttle: Throttle,
    pub(crate) nodes: Nodes,
    pub(crate) entities: Vec<E>,
    pub(crate) rqs: Vec<CfsRq>,
    pub(crate) tick_ns: u64,
    /// Knobs and counters of the dialect.
    pub(crate) own: D,
    /// Per CPU: its current task, which is to be moved once it has been switched from.
    pub(super) pushing: Vec<Option<(TaskId, CpuId)>>,
    pub(super) before: Before,
    pub(super) plan: Plan,
}

/// What the shared parts are built from.
pub(crate) struct Parts {
    pub(crate) knobs: FairKnobs,
    /// The empty tree of every CPU.
    pub(crate) tree: Tree,
    pub(crate) rr_timeslice: Nanos,
    pub(crate) rt_runtime: Nanos,
    pub(crate) rt_period: Nanos,
    /// The dialect's timers have the numbers below this.
    pub(crate) n_timers: u32,
}

/// [`FairKnobs`] from tunables that have these knobs under the kernel's names.
macro_rules! knobs_of {
    ($tunables:expr) => {
        $crate::fair::FairKnobs {
            ttwu_queue: $tunables.ttwu_queue,
            sis_util: $tunables.sis_util,
            wa_idle: $tunables.wa_idle,
            wa_weight: $tunables.wa_weight,
            wa_bias: $tunables.wa_bias,
            util_est: $tunables.util_est,
            attach_age_load: $tunables.attach_age_load,
            cache_hot_buddy: $tunables.cache_hot_buddy,
            lb_min: $tunables.lb_min,
            ni_random: $tunables.ni_random,
            migration_cost: $tunables.migration_cost.as_ns(),
            nr_migrate: $tunables.nr_migrate as u32,
            newidle_cost_per_cpu: $tunables.newidle_cost_per_cpu.as_ns(),
        }
    };
}
pub(crate) use knobs_of;

/// [`Parts`] from tunables that have the knobs of CPU choice, balancing and real-time classes under
/// the kernel's names, each dialect with its own sources and defaults.
macro_rules! parts_of {
    ($tunables:expr, $tree:expr, $n_timers:expr) => {
        $crate::fair::Parts {
            knobs: $crate::fair::knobs_of!($tunables),
            tree: $tree,
            rr_timeslice: $tunables.rr_timeslice,
            rt_runtime: $tunables.rt_runtime,
            rt_period: $tunables.rt_period,
            n_timers: $n_timers,
        }
    };
}
pub(crate) use parts_of;

impl<D, E: Clone> FairPolicy<D, E> {
    /// An idle machine.
    pub(crate) fn new(parts: Parts, own: D, build: Build<'_>) -> Self {
        let n_cpus = build.topo.n_cpus();
        let Parts { rr_timeslice, rt_runtime, rt_period, n_timers, .. } = parts;
        Self {
            rt: Rt::new(n_cpus, build.n_tasks, rr_timeslice, build.hz),
            throttle: Throttle::new(n_cpus, rt_runtime, rt_period, n_timers),
            nodes: Nodes::with_capacity(build.n_tasks),
            entities: Vec::with_capacity(build.n_tasks),
            rqs: alloc::vec![CfsRq::new(parts.tree); n_cpus],
            tick_ns: build.hz.tick().as_ns(),
            own,
            pushing: alloc::vec![None; n_cpus],
            before: Before { is_rt: false, prio: Prio(120), delayed: false },
            plan: Vec::with_capacity(parts.knobs.nr_migrate as usize),
            fair: Fair::new(parts.knobs, build),
        }
    }

    /// Takes over the tunables of the shared parts after a change.
    pub(crate) fn retune_shared(
        &mut self,
        knobs: FairKnobs,
        rr_timeslice: Nanos,
        rt_runtime: Nanos,
        rt_period: Nanos,
    ) {
        self.fair.knobs = knobs;
        self.rt.set_timeslice(rr_timeslice, Nanos::from_ns(self.tick_ns));
        self.throttle.set_limit(rt_runtime, rt_period);
    }

    /// Gives forked task `child` the virtual side `entity`.
    pub(crate) fn provide_entity(&mut self, child: TaskId, entity: E) {
        while self.entities.len() <= child.index() {
            self.entities.push(entity.clone());
        }
        self.entities[child.index()] = entity;
    }
}

impl<D, E> FairPolicy<D, E> {
    pub(crate) fn entity(&self, task: TaskId) -> &E {
        &self.entities[task.index()]
    }
    pub(crate) fn entity_mut(&mut self, task: TaskId) -> &mut E {
        &mut self.entities[task.index()]
    }
    pub(crate) fn rq(&self, cpu: CpuId) -> &CfsRq {
        &self.rqs[cpu.index()]
    }
    /// The current fair task of `cpu` if it still counts.
    #[inline]
    pub(crate) fn queued_curr(&self, cpu: CpuId) -> Option<TaskId> {
        self.fair.cpu(cpu).curr.filter(|curr| self.fair.task(*curr).on_rq)
    }
}

impl<D, E> FairPolicy<D, E>
where
    Self: Order,
{
    /// Sums over all entities that count on `cpu`, the current one included.
    #[inline]
    pub(crate) fn fluid(&self, cpu: CpuId) -> Fluid {
        let mut fluid = self.rq(cpu).fluid;
        if let Some(curr) = self.queued_curr(cpu) {
            fluid.add(self.keys(curr).vruntime, self.weight(curr));
        }
        fluid
    }

    /// Puts a waiting entity into the tree, behind its equals, and into the sums.
    ///
    /// Source: v6.12 `fair.c` `__enqueue_entity`.
    pub(crate) fn tree_insert(&mut self, cpu: CpuId, task: TaskId) {
        let (keys, weight) = (self.keys(task), self.weight(task));
        let rq = &mut self.rqs[cpu.index()];
        rq.fluid.add(keys.vruntime, weight);
        self.nodes.insert(&mut rq.tree, task, keys);
    }
    /// Takes a waiting entity out of the tree and the sums.
    ///
    /// Source: v6.12 `fair.c` `__dequeue_entity`.
    pub(crate) fn tree_remove(&mut self, cpu: CpuId, task: TaskId) {
        let (keys, weight) = (self.keys(task), self.weight(task));
        let rq = &mut self.rqs[cpu.index()];
        self.nodes.remove(&mut rq.tree, task);
        rq.fluid.sub(keys.vruntime, weight);
    }

    /// Lets the base of the sums follow the smallest virtual time, never backwards.
    ///
    /// Source: v6.1 `fair.c` `update_min_vruntime`.
    pub(crate) fn advance_base(&mut self, cpu: CpuId) {
        let waiting = self.nodes.min_vruntime(&self.rq(cpu).tree);
        let running = self.queued_curr(cpu).map(|curr| self.keys(curr).vruntime);
        let least = match (running, waiting) {
            (Some(a), Some(b)) => Some(if b.before(a) { b } else { a }),
            (a, b) => a.or(b),
        };
        let fluid = &mut self.rqs[cpu.index()].fluid;
        let ahead = least.map_or(0, |least| least.delta(fluid.base));
        if ahead > 0 {
            fluid.rebase(ahead);
        }
    }
}

impl<D, E> FairPolicy<D, E>
where
    Self: Dialect,
{
    /// A task becomes current on `cpu`.
    ///
    /// Source: v6.12 `fair.c` `set_next_entity`, `__set_next_task_fair`.
    pub(super) fn set_next_fair(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId) {
        let now = cx.now.as_ns();
        self.fair.clear_buddies(cpu, task);
        self.tree_remove(cpu, task);
        self.fair.update_load_avg(now, cpu, task, Membership::Keep);
        self.fair.task_mut(task).exec_start = Some(now);
        self.fair.cpu_mut(cpu).curr = Some(task);
        self.fair.list_touch(cpu, task);
        self.turn_begins(cx, cpu, task);
    }

    /// A task stops being current on `cpu`; if it still counts it waits from now on.
    ///
    /// Source: v6.12 `fair.c` `put_prev_entity`.
    pub(super) fn put_prev_fair(&mut self, cx: &mut Ctx<'_>, cpu: CpuId, task: TaskId) {
        if self.fair.task(task).on_rq {
            self.book_curr(cx, cpu);
            self.tree_insert(cpu, task);
            self.fair.update_load_avg(cx.now.as_ns(), cpu, task, Membership::Keep);
        }
        self.fair.cpu_mut(cpu).curr = None;
    }
}
