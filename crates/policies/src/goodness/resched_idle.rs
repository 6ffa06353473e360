// SPDX-License-Identifier: GPL-2.0-only
//! `reschedule_idle`: which CPU, if any, hears of a task that wants one.
//!
//! Owns what the policy keeps per CPU. It decides only; the hooks carry the decision out.

use alloc::vec::Vec;
use core::ops::Range;

use schedlab_policy_api::{Ctx, Wake};
use schedlab_units::{CpuId, CpuSet, TaskId, Time};

use super::tunables::Knobs;
use super::value::{ActiveMm, Asker, Entry, TaskValue};

/// CPUs examined at a time.
const BLOCK: usize = 16;

/// Whom to disturb.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Nobody: the task waits on the list.
    None,
    /// An idle CPU.
    Idle(CpuId),
    /// The CPU of a worse task.
    Preempt(CpuId),
}

/// Whether a wake-up of `woken` tells a CPU: a synchronous one does not, unless the task may not
/// use the CPU of its waker.
///
/// Source: 2.4.5 `sched.c` `try_to_wake_up`; spec §4.6.
pub(crate) fn tells_a_cpu(cx: &Ctx<'_>, woken: TaskId, wake: Wake) -> bool {
    let sync = matches!(wake, Wake::Wakeup { sync: true, .. });
    !sync || !cx.tasks.get(woken).affinity.contains(cx.this_cpu)
}

/// State per CPU, in columns because `reschedule_idle` walks all CPUs.
#[derive(Clone, Debug)]
pub(crate) struct Cpus {
    idle: CpuSet,
    n_idle: usize,
    /// Goodness of the current task, or of the idle task, on its own CPU with its own mm loaded.
    curr_goodness: Vec<i32>,
    active_mm: Vec<ActiveMm>,
    last_schedule: Vec<Time>,
    idle_goodness: i32,
}

impl Cpus {
    /// `n_cpus` idle CPUs with address spaces of no task, last switched at time 0.
    pub(crate) fn new(n_cpus: usize, pcp: i32) -> Self {
        let idle_goodness = Entry::idle_goodness(pcp);
        Self {
            idle: CpuSet::first_n(n_cpus),
            n_idle: n_cpus,
            curr_goodness: alloc::vec![idle_goodness; n_cpus],
            active_mm: alloc::vec![ActiveMm::FOREIGN; n_cpus],
            last_schedule: alloc::vec![Time::ZERO; n_cpus],
            idle_goodness,
        }
    }

    /// Number of CPUs whose current task is not their idle task.
    pub(crate) fn n_busy(&self) -> usize {
        self.curr_goodness.len() - self.n_idle
    }
    /// Whether `cpu` runs its idle task.
    #[inline]
    pub(crate) fn is_idle(&self, cpu: CpuId) -> bool {
        self.idle.contains(cpu)
    }
    /// When `cpu` last switched tasks.
    #[inline]
    pub(crate) fn last_schedule(&self, cpu: CpuId) -> Time {
        self.last_schedule[cpu.index()]
    }
    /// `cpu` as one who asks for goodness.
    #[inline]
    pub(crate) fn asker(&self, cpu: CpuId, pcp: i32) -> Asker {
        Asker { cpu, active: self.active_mm[cpu.index()], pcp }
    }
    /// Goodness of what runs on `cpu`.
    pub(crate) fn curr_goodness(&self, cpu: CpuId) -> i32 {
        self.curr_goodness[cpu.index()]
    }
    /// The current task of `cpu` is `entry` now.
    #[inline]
    pub(crate) fn set_curr_entry(&mut self, cpu: CpuId, entry: Entry, pcp: i32) {
        self.curr_goodness[cpu.index()] = entry.goodness(self.asker(cpu, pcp));
    }
    /// `cpu` loads another address space.
    pub(crate) fn load_mm(&mut self, cpu: CpuId, mm: ActiveMm) {
        self.active_mm[cpu.index()] = mm;
    }

    /// `cpu` switches at `now` from its idle task to another.
    pub(crate) fn leave_idle(&mut self, cpu: CpuId, now: Time) {
        self.n_idle -= usize::from(self.idle.remove(cpu));
        self.last_schedule[cpu.index()] = now;
    }
    /// `cpu` switches at `now` to its idle task, which keeps the loaded address space.
    pub(crate) fn enter_idle(&mut self, cpu: CpuId, now: Time) {
        self.n_idle += usize::from(self.idle.insert(cpu));
        self.last_schedule[cpu.index()] = now;
        self.curr_goodness[cpu.index()] = self.idle_goodness;
    }

    /// What `p`, which may use `allowed` and wants a CPU, makes happen.
    ///
    /// Source: 2.4.5 `sched.c` `reschedule_idle`; spec §4.4, §4.5.
    #[inline]
    pub(super) fn find_target(&self, p: &TaskValue, allowed: &CpuSet, knobs: &Knobs) -> Target {
        let entry = p.entry();
        // Δ − h > T ⇔ Δ > T + h, and the same h on all CPUs leaves their order alone.
        let margin = if p.is_rt() { 0 } else { knobs.other_margin };
        let threshold = knobs.threshold + margin;
        if !knobs.smp {
            return self.find_target_up(entry, threshold);
        }
        if p.has_cpu {
            return Target::None;
        }
        if let Some(cpu) = self.find_idle(p.processor, allowed) {
            return Target::Idle(cpu);
        }
        self.find_worst(entry, allowed, threshold, knobs.pcp)
    }

    fn find_target_up(&self, entry: Entry, threshold: i32) -> Target {
        let cpu = CpuId(0);
        if self.delta(entry, cpu, 0) <= threshold {
            Target::None
        } else if self.idle.contains(cpu) {
            Target::Idle(cpu)
        } else {
            Target::Preempt(cpu)
        }
    }

    /// The idle CPU for a task that last ran on `home`: that one, else the one idle for longest,
    /// the lowest among equals.
    fn find_idle(&self, home: CpuId, allowed: &CpuSet) -> Option<CpuId> {
        if self.idle.contains(home) && allowed.contains(home) {
            return Some(home);
        }
        let idle = self.idle.iter().filter(|cpu| allowed.contains(*cpu));
        idle.min_by_key(|cpu| self.last_schedule[cpu.index()])
    }

    /// The CPU where the entry leads by most, provided that is more than `threshold`; the lowest
    /// among equals.
    fn find_worst(&self, entry: Entry, allowed: &CpuSet, threshold: i32, pcp: i32) -> Target {
        let mut best = threshold;
        let mut target = Target::None;
        for start in (0..self.curr_goodness.len()).step_by(BLOCK) {
            let end = self.curr_goodness.len().min(start + BLOCK);
            if self.delta_ceiling(entry, start..end, pcp) <= best {
                continue;
            }
            for cpu in (start..end).map(CpuId::from_index) {
                let delta = self.delta(entry, cpu, pcp);
                if delta > best && allowed.contains(cpu) {
                    best = delta;
                    target = Target::Preempt(cpu);
                }
            }
        }
        target
    }

    /// What Δ exceeds on none of `cpus`: the bonuses of any of them, the goodness of the worst.
    #[inline]
    fn delta_ceiling(&self, entry: Entry, cpus: Range<usize>, pcp: i32) -> i32 {
        let has_home = cpus.contains(&(entry.processor as usize));
        let worst = self.curr_goodness[cpus].iter().fold(i32::MAX, |a, b| a.min(*b));
        entry.weight + if has_home { pcp } else { 0 } + 1 - worst
    }

    /// Δ(curr, p, c): by how much `entry` is worth more to `cpu` than what runs there.
    ///
    /// Source: 2.4.5 `sched.c` `preemption_goodness`; spec §4.2.
    #[inline]
    pub(crate) fn delta(&self, entry: Entry, cpu: CpuId, pcp: i32) -> i32 {
        entry.goodness(self.asker(cpu, pcp)) - self.curr_goodness[cpu.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use schedlab_policy_api::Mm;

    /// A machine and a task, as the property tests draw them.
    #[derive(Clone, Debug)]
    struct Scene {
        /// Goodness of the current task (none = idle), address space, stamp.
        cpus: Vec<(Option<i32>, u32, u64)>,
        allowed: Vec<bool>,
        entry: Entry,
        threshold: i32,
        pcp: i32,
    }

    fn scene() -> impl Strategy<Value = Scene> {
        // Mostly alike, as in life, so that ties and differences of one are common.
        let weight = prop_oneof![4 => 40..44, 1 => 2..80];
        let curr = prop_oneof![40 => 40..44, 2 => -1..80];
        let curr = prop_oneof![40 => curr.prop_map(Some), 1 => Just(None)];
        let cpu = (curr, 0u32..3, 0u64..6);
        let entry = (weight, 0u32..60, prop_oneof![0u32..3, Just(Entry::ANY_MM)]);
        (1usize..60).prop_flat_map(move |n| {
            let cpus = prop::collection::vec(cpu.clone(), n);
            let allowed = prop::collection::vec(prop::bool::weighted(0.9), n);
            (cpus, allowed, entry.clone(), 0..3, 0usize..3).prop_map(
                |(cpus, allowed, (weight, home, mm), threshold, pcp)| Scene {
                    entry: Entry { weight, processor: home % cpus.len() as u32, mm },
                    cpus,
                    allowed,
                    threshold,
                    pcp: [0, 1, 15][pcp],
                },
            )
        })
    }

    /// The search of spec §4.4 word by word.
    fn literal(scene: &Scene) -> Target {
        let Scene { cpus, allowed, entry, threshold, pcp } = scene;
        let home = entry.processor as usize;
        if allowed[home] && cpus[home].0.is_none() {
            return Target::Idle(CpuId::from_index(home));
        }
        let (mut oldest, mut best, mut target) = (u64::MAX, *threshold, Target::None);
        for (c, (curr, mm, stamp)) in cpus.iter().enumerate().filter(|(c, _)| allowed[*c]) {
            let Some(curr) = curr else {
                if *stamp < oldest {
                    (oldest, target) = (*stamp, Target::Idle(CpuId::from_index(c)));
                }
                continue;
            };
            let same_mm = entry.mm == *mm || entry.mm == Entry::ANY_MM;
            let bonus = if c == home { *pcp } else { 0 } + i32::from(same_mm);
            let delta = entry.weight + bonus - curr;
            if oldest == u64::MAX && delta > best {
                (best, target) = (delta, Target::Preempt(CpuId::from_index(c)));
            }
        }
        target
    }

    proptest! {
        #[test]
        fn find_target_behaves_like_the_literal_search(scene in scene()) {
            let mut cpus = Cpus::new(scene.cpus.len(), scene.pcp);
            for (i, (curr, mm, stamp)) in scene.cpus.iter().enumerate() {
                let (cpu, stamp) = (CpuId::from_index(i), Time::from_ns(*stamp));
                cpus.load_mm(cpu, ActiveMm::of(Mm(*mm)));
                match curr {
                    Some(goodness) => {
                        cpus.leave_idle(cpu, stamp);
                        cpus.set_curr_entry(cpu, Entry::fixed(*goodness), scene.pcp);
                    }
                    None => cpus.enter_idle(cpu, stamp),
                }
            }
            let allowed: CpuSet = (0..scene.cpus.len())
                .filter(|i| scene.allowed[*i])
                .map(CpuId::from_index)
                .collect();
            let found = match cpus.find_idle(CpuId(scene.entry.processor), &allowed) {
                Some(cpu) => Target::Idle(cpu),
                None => cpus.find_worst(scene.entry, &allowed, scene.threshold, scene.pcp),
            };
            prop_assert_eq!(found, literal(&scene));
        }
    }
}
