// SPDX-License-Identifier: GPL-2.0-only
//! The simulated kernel as the host sees it.

use std::io;
use std::time::Duration;

use schedlab_live::ending::Ending;
use schedlab_live::kernel::{Counters, Kernel};
use schedlab_live::message::{Decision, Message, Run};
use schedlab_units::{CpuId, CpuSet};

use super::machine::FakeKernel;
use super::sched::Leaves;

impl FakeKernel {
    /// The host's thread goes to sleep and leaves its CPU.
    fn host_sleeps(&mut self) {
        (self.host_awake, self.wake_at) = (false, None);
        if let Some(cpu) = self.cpus.iter().position(|cpu| cpu.host) {
            self.cpus[cpu].host = false;
            self.schedule(cpu, Leaves::Willing);
        }
    }

    /// It wakes up, on some CPU.
    fn host_wakes(&mut self) {
        (self.host_awake, self.wake_at) = (true, None);
        if self.percent(self.scenario.host_on_cpu) {
            let cpu = self.rng.below(self.cpus.len() as u64) as usize;
            if self.cpus[cpu].online {
                self.cpus[cpu].host = true;
                self.schedule(cpu, Leaves::Willing);
            }
        }
    }
}

impl Kernel for FakeKernel {
    fn drain(&mut self, wait: Duration, into: &mut Vec<Message>) -> io::Result<()> {
        into.clear();
        if self.ring.is_empty() && !wait.is_zero() {
            let deadline = self.now + wait.as_nanos() as u64;
            self.host_sleeps();
            loop {
                let until = self.wake_at.unwrap_or(deadline).min(deadline);
                match self.next_event() {
                    Some(at) if at <= until => self.step(),
                    _ => {
                        self.now = self.now.max(until);
                        break;
                    }
                }
            }
            self.host_wakes();
            self.pass_some(2_000);
        }
        for mut message in self.ring.drain(..) {
            if message.msg.t_ns == 0 {
                message.msg.t_ns = self.stamp;
            }
            self.stamp = message.msg.t_ns;
            self.ledger.read(&message);
            into.push(message);
        }
        Ok(())
    }

    fn give(&mut self, cpu: CpuId, decision: Decision) {
        if self.percent(30) {
            self.pass_some(3_000);
        }
        if !self.lost_records() {
            self.ledger.gives(cpu.index(), &decision);
        }
        let slot = &mut self.cpus[cpu.index()].slot;
        assert!(slot.is_none(), "CPU {cpu} is given {decision:?} over {slot:?}");
        *slot = Some(decision);
        self.kicks.insert(cpu);
    }

    fn stop(&mut self, cpu: CpuId, run: Run) {
        self.stops.push((cpu.index(), run));
    }

    fn kick(&mut self, cpu: CpuId) {
        self.kicks.insert(cpu);
    }

    fn commit(&mut self) -> io::Result<CpuSet> {
        self.pass_some(5_000);
        let kicks = std::mem::replace(&mut self.kicks, CpuSet::EMPTY);
        let stops = std::mem::take(&mut self.stops);
        for (cpu, run) in stops {
            self.relay_stop(cpu, run);
        }
        let mut busy = CpuSet::EMPTY;
        for cpu in kicks.iter() {
            let decision = self.cpus[cpu.index()].slot;
            if self.relay_kick(cpu.index()) {
                busy.insert(cpu);
                self.ledger.comes_back(decision.expect("it was revoked").run);
            }
        }
        Ok(busy)
    }

    fn left(&mut self) -> Option<Ending> {
        None
    }

    fn counters(&mut self) -> Counters {
        self.counters
    }

    fn explain(&mut self, cpu: CpuId) -> String {
        format!("{:?}", self.cpus[cpu.index()])
    }

    fn detach(&mut self) {}
}
