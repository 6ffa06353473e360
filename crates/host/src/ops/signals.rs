// SPDX-License-Identifier: GPL-2.0-only
//! Signals: sending them, and waiting for one.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use schedlab_units::Nanos;
use schedlab_workload::ir::{Op, SignalTarget};

use super::{Cut, Flow, Player};
use crate::calls;
use crate::task::Task;

impl Player {
    pub(super) fn signals(&mut self, op: &Op) -> Flow {
        match *op {
            Op::Signal(target) => {
                self.shared.targets(target, &self.me).iter().for_each(post);
                Ok(())
            }
            Op::SignalTaking { target, awake, asleep } => {
                let targets = self.shared.targets(target, &self.me);
                let waits = targets.iter().any(|t| t.in_sigwait.load(Ordering::Acquire));
                self.compute(if waits { asleep } else { awake })?;
                targets.iter().for_each(post);
                Ok(())
            }
            Op::Kill(template) => {
                let targets = self.shared.targets(SignalTarget::Template(template), &self.me);
                for target in targets {
                    target.killed.store(true, Ordering::Release);
                    if let Some(address) = target.address() {
                        calls::nudge(address);
                    }
                }
                Ok(())
            }
            Op::SigWait { timeout, on_timeout } => {
                let limit = timeout.map(|timeout| Nanos::from_ns(self.draw(timeout)));
                self.wait_for_signal(limit, on_timeout)
            }
            _ => unreachable!("{op:?} has nothing to do with signals"),
        }
    }

    pub(super) fn wait_for_signal(
        &mut self,
        limit: Option<Nanos>,
        on_timeout: Option<u32>,
    ) -> Flow {
        let due = limit.map(|limit| calls::now().saturating_add(limit));
        self.me.in_sigwait.store(true, Ordering::Release);
        let outcome = loop {
            let left = due.map(|due| due.saturating_since(calls::now()));
            match calls::wait_for_signal(left) {
                Ok(()) => break Ok(None),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break Ok(due),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                    if self.ended() {
                        break Err(Cut::Ended);
                    }
                }
                Err(error) => {
                    break Err(Cut::Fault(format!("a wait for a signal failed: {error}")));
                }
            }
        };
        self.me.in_sigwait.store(false, Ordering::Release);
        let timed_out = outcome?;
        self.release = timed_out;
        if let (Some(_), Some(target)) = (timed_out, on_timeout) {
            self.vm.jump(target);
        }
        Ok(())
    }
}

fn post(target: &Arc<Task>) {
    if let Some(address) = target.address()
        && !target.gone.load(Ordering::Acquire)
    {
        calls::signal(address);
    }
}
