// SPDX-License-Identifier: GPL-2.0-only
//! Goodness: what a task is worth to a CPU.
//!
//! The value depends on the asking CPU and on the address space loaded there, so tasks have no
//! fixed order. It is kept as an [`Entry`], the part that depends on the task alone.

use alloc::format;
use alloc::string::String;

use schedlab_policy_api::{Mm, SchedClass, Task, TaskState};
use schedlab_units::{CpuId, CpuSet, Hz, Rng};

use super::counter::{self, ForkSplit, quantum};

/// The value with which the scan begins: less than any task's.
pub(crate) const NOTHING: i32 = -1000;
/// Goodness of a task that has yielded.
const YIELDED: i32 = -1;
/// Goodness of a FIFO or RR task with rt_priority 0.
const RT_BASE: i32 = 1000;
/// `counter` of an idle task; its nice is 20.
const IDLE_COUNTER: i32 = -100;

/// The address space loaded on a CPU, as a number to compare with [`Entry::mm`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ActiveMm(u32);

impl ActiveMm {
    /// An address space of no task: what idle tasks hold at first.
    pub(crate) const FOREIGN: Self = Self(u32::MAX - 1);

    /// The loaded address space `mm`.
    pub(crate) fn of(Mm(mm): Mm) -> Self {
        assert!(mm < Entry::ANY_MM, "address space {mm} clashes with a marker");
        Self(mm)
    }
}

/// Who asks for a task's goodness.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker {
    pub(crate) cpu: CpuId,
    /// What is loaded there.
    pub(crate) active: ActiveMm,
    /// 0 on one CPU.
    pub(crate) pcp: i32,
}

/// The part of a task's goodness that does not depend on who asks.
///
/// `goodness = weight + [processor matches]·PCP + [mm matches or is ANY]·1`. Values that get no
/// bonus have a processor and an mm that match nothing, so that the scan needs no case distinction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) weight: i32,
    pub(crate) processor: u32,
    pub(crate) mm: u32,
}

impl Entry {
    /// `mm` of a kernel thread, which gets the bonus everywhere.
    pub(crate) const ANY_MM: u32 = u32::MAX - 2;
    /// Matches no CPU, and as `mm` no [`ActiveMm`].
    const NONE: u32 = u32::MAX;
    /// What a task that is current somewhere looks like to a scan: below [`NOTHING`] with every
    /// bonus, so never chosen.
    pub(crate) const HELD: Self = Self::fixed(-(1 << 14));

    pub(crate) const fn fixed(weight: i32) -> Self {
        Self { weight, processor: Self::NONE, mm: Self::NONE }
    }

    /// The value for `asker`.
    ///
    /// Source: 2.4.5 `sched.c` `goodness`; spec §4.1.
    #[inline]
    pub(crate) fn goodness(self, asker: Asker) -> i32 {
        let cpu_bonus = if self.processor == asker.cpu.0 { asker.pcp } else { 0 };
        let same_mm = self.mm == asker.active.0 || self.mm == Self::ANY_MM;
        self.weight + cpu_bonus + i32::from(same_mm)
    }

    /// Goodness of the idle task on its own CPU: −84 with PCP 15, −99 on one CPU.
    pub(crate) fn idle_goodness(pcp: i32) -> i32 {
        IDLE_COUNTER + pcp + 1
    }

    /// Its image in half the width.
    ///
    /// Bound: counters end at 20 000 (the cap of a refund at HZ 100 000), weights at 20 040, FIFO
    /// and RR at 1990.
    #[inline]
    pub(crate) fn image(self) -> Image {
        let weight = i16::try_from(self.weight).expect("weights are below 2^15");
        Image { weight, processor: self.processor as u16, mm: self.mm as u16 }
    }
}

/// An [`Entry`] in half the width, for going over many at once.
///
/// Only the low half of the address space's number is kept, so two may look alike: the value is at
/// least the goodness, and equal to it unless that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    pub(crate) weight: i16,
    pub(crate) processor: u16,
    pub(crate) mm: u16,
}

/// An [`Asker`] to compare images with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AskerImage {
    cpu: u16,
    active: u16,
    pcp: i16,
}

impl Asker {
    pub(crate) fn image(self) -> AskerImage {
        let pcp = i16::try_from(self.pcp).expect("the tunable ends at 100");
        AskerImage { cpu: self.cpu.0 as u16, active: self.active.0 as u16, pcp }
    }
}

impl Image {
    /// A value that goodness does not exceed. Wraps nowhere, see [`Entry::image`]; it says
    /// `wrapping` because checks would keep the compiler from using vectors.
    #[inline]
    pub(crate) fn ceiling(self, asker: AskerImage) -> i16 {
        let cpu_bonus = if self.processor == asker.cpu { asker.pcp } else { 0 };
        let same_mm = (self.mm == asker.active) | (self.mm == Entry::ANY_MM as u16);
        self.weight.wrapping_add(cpu_bonus).wrapping_add(i16::from(same_mm))
    }
}

/// What the policy keeps of a task: its ticks and the facts that make up its goodness.
#[derive(Clone, Debug)]
pub(crate) struct TaskValue {
    /// Ticks left in this epoch.
    pub(crate) counter: i32,
    /// Ticks that an epoch adds.
    pub(crate) quantum: i32,
    /// 20 − nice.
    static_part: i32,
    /// Goodness of a FIFO or RR task, 0 of any other.
    rt_weight: i32,
    /// CPU it runs or last ran on.
    pub(crate) processor: CpuId,
    /// Its own address space; none for a kernel thread, which borrows.
    pub(crate) own_mm: Option<ActiveMm>,
    class: SchedClass,
    /// It has called `sched_yield` and was not switched out since.
    pub(crate) yielded: bool,
    /// It is current, or still being switched away from.
    pub(crate) has_cpu: bool,
    /// It is current.
    pub(crate) current: bool,
    /// `need_resched` that it copied from its parent and that takes effect when it first runs.
    pub(crate) need_resched: bool,
}

impl TaskValue {
    /// A task with `counter` ticks that is not running, with the facts of `task`.
    pub(crate) fn new(task: &Task, counter: i32, hz: Hz, rt_scale: i32) -> Self {
        let mut value = Self {
            counter,
            quantum: 0,
            static_part: 0,
            rt_weight: 0,
            processor: task.cpu,
            own_mm: None,
            class: task.class,
            yielded: false,
            has_cpu: false,
            current: false,
            need_resched: false,
        };
        value.copy_facts(task, hz, rt_scale);
        value
    }

    /// It has been there for long and slept a while: some ticks between a quantum and what those
    /// of sleepers converge to, and the last CPU is any of `allowed`.
    ///
    /// Source: spec §7.1, §7.2 (counters uniform 6 … 11 at nice 0 and HZ 100, processor uniform).
    pub(crate) fn age(&mut self, rng: &mut Rng, allowed: &CpuSet) {
        let quantum = u64::from(self.quantum.unsigned_abs());
        self.counter = rng.range(quantum, 2 * quantum - 1) as i32;
        let nth = rng.below(allowed.len() as u64) as usize;
        self.processor = allowed.iter().nth(nth).unwrap_or(self.processor);
    }

    /// Takes over nice, class, priority and address space, which may have changed.
    pub(crate) fn copy_facts(&mut self, task: &Task, hz: Hz, rt_scale: i32) {
        self.quantum = quantum(task.nice, hz);
        self.static_part = 20 - task.nice.get();
        self.class = task.class;
        self.rt_weight =
            if task.class.is_rt() { RT_BASE + rt_scale * i32::from(task.rt_priority) } else { 0 };
        self.own_mm = task.mm.map(ActiveMm::of);
    }

    /// Whether its class is FIFO or RR; 2.4 knows no other class beside OTHER.
    #[inline]
    pub(crate) fn is_rt(&self) -> bool {
        self.rt_weight != 0
    }
    /// Whether its class is FIFO.
    #[inline]
    pub(crate) fn is_fifo(&self) -> bool {
        self.class == SchedClass::Fifo
    }

    /// The part of its goodness that does not depend on who asks.
    ///
    /// Source: 2.4.5 `sched.c` `goodness`; spec §4.1.
    #[inline]
    pub(crate) fn entry(&self) -> Entry {
        if self.yielded {
            Entry::fixed(YIELDED)
        } else if self.is_rt() {
            Entry::fixed(self.rt_weight)
        } else if self.counter == 0 {
            Entry::fixed(0)
        } else {
            let mm = self.own_mm.map_or(Entry::ANY_MM, |mm| mm.0);
            Entry { weight: self.counter + self.static_part, processor: self.processor.0, mm }
        }
    }

    /// It becomes current on `cpu`; whether it asks for `schedule` there at once, having copied
    /// that wish from its parent.
    #[inline]
    pub(crate) fn run_on(&mut self, cpu: CpuId) -> bool {
        self.processor = cpu;
        self.has_cpu = true;
        self.current = true;
        core::mem::take(&mut self.need_resched)
    }

    /// The switch away from it is over; whether it had yielded.
    ///
    /// Source: 2.4.5 `sched.c` `__schedule_tail`; spec §4.8.
    #[inline]
    pub(crate) fn release_cpu(&mut self) -> bool {
        self.has_cpu = false;
        core::mem::take(&mut self.yielded)
    }

    /// A tick is charged to it; whether that leaves it without ticks.
    ///
    /// Source: 2.4.5 `timer.c` `update_process_times`; spec §4.9.
    #[inline]
    pub(crate) fn charge_tick(&mut self) -> bool {
        self.counter = (self.counter - 1).max(0);
        self.counter == 0
    }

    /// A new slice for an RR task that has used its own up; whether it got one.
    ///
    /// Source: 2.4.5 `sched.c` `schedule`; spec §4.7 S1.
    #[inline]
    pub(crate) fn refill_exhausted_rr(&mut self) -> bool {
        let exhausted = self.class == SchedClass::Rr && self.counter == 0;
        if exhausted {
            self.counter = self.quantum;
        }
        exhausted
    }

    /// An epoch begins: it keeps half of its ticks and gets a quantum.
    #[inline]
    pub(crate) fn recharge(&mut self) {
        self.counter = counter::recharge(self.counter, self.quantum);
    }

    /// It forks `child`, whose facts are set: ticks are divided, marks are copied. `need_resched`
    /// is that of its CPU. Whether it has to give up its CPU.
    ///
    /// Source: 2.4.5 `fork.c` `do_fork`; spec §4.10.
    pub(crate) fn fork(&mut self, child: &mut Self, rule: ForkSplit, need_resched: bool) -> bool {
        child.yielded = self.yielded && !child.is_rt();
        child.need_resched = self.current && need_resched;
        let split = counter::fork(rule, self.counter);
        child.counter = split.child;
        self.counter = split.parent;
        self.counter == 0 && self.current
    }

    /// I9: it agrees with `facts` of the core, and its ticks and marks are possible.
    ///
    /// # Errors
    /// A sentence with the values that disagree.
    pub(crate) fn check(&self, facts: &Task, current: bool, hz: Hz) -> Result<(), String> {
        // A new task's CPU is recorded by the core when it is first woken.
        let is_new = facts.state == TaskState::New;
        let elsewhere = self.processor != facts.cpu && !is_new;
        if self.current != current || self.has_cpu != facts.on_cpu || elsewhere {
            return Err(format!("it is kept as {self:?} but is {facts:?}"));
        }
        let bound = counter::counter_bound(hz);
        if !(0..=bound).contains(&self.counter) {
            return Err(format!("it owns {} of 0 to {bound} ticks", self.counter));
        }
        if self.yielded && facts.class.is_rt() {
            return Err(format!("it has yielded, being of class {:?}", facts.class));
        }
        Ok(())
    }

    /// What the scan of the list may see of it.
    #[inline]
    pub(crate) fn list_entry(&self) -> Entry {
        if self.has_cpu { Entry::HELD } else { self.entry() }
    }
}
