// SPDX-License-Identifier: GPL-2.0-only
//! The kernel's side as the host sees it. The relay is one; tests have another.

use std::io;
use std::time::Duration;

use schedlab_units::{CpuId, CpuSet};

use crate::ending::Ending;
use crate::message::{Decision, Message, Run};

/// Totals of the relay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Records lost because the ring was full.
    pub ring_full: u64,
    /// Decisions carried out.
    pub dispatched: u64,
    /// Decisions that could not be used.
    pub rejected: u64,
    /// Decisions taken back because another class had the CPU.
    pub revoked: u64,
    /// Tasks that ran without a decision because the ring was full.
    pub fallback: u64,
    /// Decisions that nobody took up until the watch did: bugs.
    pub rescued: u64,
    /// CPUs kicked.
    pub kicks: u64,
    /// Decisions that had to wait for the old CPU of their task.
    pub retries: u64,
    /// Kernel threads served without the policy.
    pub kernel_threads: u64,
    /// Tasks that an idle CPU took without asking.
    pub direct: u64,
}

impl Counters {
    /// The totals with their names, in the order of reports.
    pub fn named(&self) -> [(&'static str, u64); 10] {
        [
            ("dispatched", self.dispatched),
            ("direct", self.direct),
            ("rejected", self.rejected),
            ("revoked", self.revoked),
            ("rescued", self.rescued),
            ("fallback", self.fallback),
            ("ring_full", self.ring_full),
            ("kicks", self.kicks),
            ("retries", self.retries),
            ("kernel_threads", self.kernel_threads),
        ]
    }
}

/// What the host needs of the kernel's side.
pub trait Kernel {
    /// Takes all records that have come, in order, after waiting up to `wait` for the first.
    ///
    /// # Errors
    /// What the kernel says.
    fn drain(&mut self, wait: Duration, into: &mut Vec<Message>) -> io::Result<()>;
    /// Decides what `cpu`, which has asked, runs next; takes effect with [`Kernel::commit`].
    fn give(&mut self, cpu: CpuId, decision: Decision);
    /// Ends `run` on `cpu` if it is still under way; takes effect with [`Kernel::commit`].
    fn stop(&mut self, cpu: CpuId, run: Run);
    /// Makes `cpu` look for work; takes effect with [`Kernel::commit`].
    fn kick(&mut self, cpu: CpuId);
    /// Makes decisions effective; yields the CPUs whose decision is void, since another class has
    /// them.
    ///
    /// # Errors
    /// What the kernel says.
    fn commit(&mut self) -> io::Result<CpuSet>;
    /// How the kernel ended the run, if it did.
    fn left(&mut self) -> Option<Ending>;
    /// Totals so far.
    fn counters(&mut self) -> Counters;
    /// The relay's view of `cpu`, for a person who looks for a lost wake-up.
    fn explain(&mut self, cpu: CpuId) -> String;
    /// Gives all tasks back to the kernel's own scheduler.
    fn detach(&mut self);
}
