// SPDX-License-Identifier: GPL-2.0-only
//! What the host has been told, and what it may therefore do.

use std::collections::BTreeMap;

use schedlab_live::message::{Decision, Kind, Message, REJECT_STILL_WAITS, Run, flag};
use schedlab_units::{CpuId, CpuSet};

/// What records say of a task.
#[derive(Clone, Debug)]
struct Told {
    lease: u32,
    waits: bool,
    allowed: CpuSet,
}

/// The records so far, summed up.
#[derive(Clone, Debug)]
pub(super) struct Ledger {
    tasks: BTreeMap<u32, Told>,
    /// CPUs that have asked and were given nothing.
    asks: Vec<bool>,
    /// No CPU is given a task without having asked, and no record is lost.
    strict: bool,
    /// CPU time in ns.
    pub(super) run: u64,
}

impl Ledger {
    pub(super) fn new(n_cpus: usize, strict: bool) -> Self {
        Self { tasks: BTreeMap::new(), asks: vec![false; n_cpus], strict, run: 0 }
    }

    /// The host reads a record.
    pub(super) fn read(&mut self, message: &Message) {
        let msg = &message.msg;
        self.run += msg.run_ns;
        let cpu = usize::from(msg.cpu);
        let direct = message.has(flag::DIRECT);
        match message.kind {
            Kind::Pick => {
                // One that was given a task without asking says so when that runs, if it comes to it.
                assert!(!self.asks[cpu] || !self.strict, "CPU {cpu} asks twice");
                self.asks[cpu] = true;
            }
            Kind::Busy => self.asks[cpu] = false,
            Kind::Cpu if msg.a == 0 => self.asks[cpu] = false,
            Kind::Enq | Kind::Run if direct => self.asks[cpu] = false,
            _ => {}
        }
        if message.kind == Kind::Join {
            self.tasks
                .insert(msg.pid, Told { lease: msg.lease, waits: false, allowed: CpuSet::EMPTY });
        }
        let Some(task) = self.tasks.get_mut(&msg.pid) else { return };
        if let (Some(detail), Kind::Join | Kind::Affine) = (&message.detail, message.kind) {
            task.allowed = detail.cpus();
        }
        match message.kind {
            Kind::Enq => (task.lease, task.waits) = (msg.lease, !direct),
            Kind::Run if direct => (task.lease, task.waits) = (msg.lease, false),
            Kind::Deq | Kind::Block | Kind::Leave => task.waits = false,
            Kind::Busy if msg.lease == task.lease => task.waits = true,
            Kind::Pick if msg.lease == task.lease && msg.a >= REJECT_STILL_WAITS => {
                task.waits = true;
            }
            _ => {}
        }
        if message.kind == Kind::Leave {
            self.tasks.remove(&msg.pid);
        }
    }

    /// The host decides; in a run that lost no records it must be right as far as it could know.
    pub(super) fn gives(&mut self, cpu: usize, decision: &Decision) {
        let asked = std::mem::replace(&mut self.asks[cpu], false);
        assert!(asked, "CPU {cpu} is given {decision:?} and has not asked");
        let Run { pid, lease } = decision.run;
        let task = self.tasks.get_mut(&pid);
        let task = task.unwrap_or_else(|| panic!("pid {pid} is given to CPU {cpu} and unknown"));
        assert_eq!(lease, task.lease, "pid {pid} is given with a lease other than its last");
        assert!(task.waits, "pid {pid} is given to CPU {cpu} and does not wait");
        assert!(
            task.allowed.contains(CpuId::from_index(cpu)),
            "pid {pid} is given to CPU {cpu} and not allowed there"
        );
        task.waits = false;
    }

    /// A decision turned out to be void.
    pub(super) fn comes_back(&mut self, run: Run) {
        if let Some(task) = self.tasks.get_mut(&run.pid).filter(|task| task.lease == run.lease) {
            task.waits = true;
        }
    }
}
