// SPDX-License-Identifier: GPL-2.0-only
//! A transcript through the host again: the same inputs must give the same decisions (I10).

use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use schedlab_policy_api::{Policy, TunableValue};
use schedlab_trace::transcript::{Frame, Output, Transcript};
use schedlab_units::{CpuId, CpuSet, Located};

use crate::ending::{Ending, words};
use crate::host::{Host, LiveObserver};
use crate::kernel::{Counters, Kernel};
use crate::message::{Decision, Kind, Message, Run, flag};

/// Most records of a batch; the relay's ring holds far fewer.
const MAX_BATCH: usize = 1 << 20;

/// The first place where the replay went another way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// What the host told then; none = nothing more about this input.
    pub recorded: Option<Output>,
    /// What it tells now; none = nothing more about this input.
    pub replayed: Option<Output>,
    /// The words of the policy's panic, if it panics now and did not then.
    pub panic: Option<String>,
}

/// What a replay found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replayed {
    /// Inputs of the host: batches of records, passing of time, changes of tunables.
    pub inputs: u64,
    /// What the host told alike, of every kind.
    pub alike: u64,
    /// Decisions among these.
    pub picks: u64,
    /// The first difference.
    pub difference: Option<Difference>,
    /// The policy panicked where it had panicked then.
    pub panics_again: bool,
}

/// Feeds a transcript to a host built like the one that kept it, up to the first difference.
/// `tunable` finds a tunable of the policy by its name, if it may have the value.
///
/// # Errors
/// A transcript that was cut or is damaged, or that names CPUs and tunables which there are not; with
/// the byte offset. All before it has been alike.
pub fn replay<P: Policy, O: LiveObserver, R: Read>(
    host: &mut Host<P, O>,
    transcript: &mut Transcript<R>,
    tunable: impl Fn(&str, TunableValue) -> Option<&'static str>,
) -> Result<Replayed, Located> {
    let cpus = *host.core().topo().all();
    let mut script = Script {
        transcript,
        cpus,
        next: None,
        any_pending: false,
        is_over: false,
        fault: None,
        found: Replayed::default(),
    };
    let run = AssertUnwindSafe(|| drive(host, &mut script, tunable));
    let ended = catch_unwind(run);
    if let Err(cause) = ended {
        script.after_panic(words(cause.as_ref()));
    }
    match script.fault {
        Some(fault) => Err(fault),
        None => Ok(script.found),
    }
}

/// Feeds all inputs until the script has a reason to stop.
fn drive<P: Policy, O: LiveObserver, R: Read>(
    host: &mut Host<P, O>,
    script: &mut Script<'_, R>,
    tunable: impl Fn(&str, TunableValue) -> Option<&'static str>,
) {
    let mut batch = Vec::new();
    // The script itself never fails as a kernel does: it stops.
    let _ = host.start(script);
    script.input_is_done();
    while !script.stops() {
        match script.take() {
            Some(Frame::Record(message)) => {
                if batch.len() == MAX_BATCH {
                    script.reject("a batch of too many records");
                }
                script.check(&message);
                batch.push(message);
                continue;
            }
            Some(Frame::Handle) => {
                let _ = host.handle(script, &batch);
                batch.clear();
            }
            Some(Frame::Clock(clock)) => {
                let _ = host.pass_time(script, clock);
            }
            Some(Frame::Tunable { name, value }) => match tunable(&name, value) {
                Some(name) => {
                    host.set_tunable(name, value);
                }
                None => script.reject(&format!("the policy cannot have {name} = {value}")),
            },
            Some(Frame::Output(output)) => script.differ(Some(output), None),
            Some(Frame::End(_)) | None => break,
        }
        script.found.inputs += 1;
        script.input_is_done();
    }
}

/// The kernel's side of a replay: says what it said then, and compares what it is told.
struct Script<'t, R> {
    transcript: &'t mut Transcript<R>,
    /// CPUs of the machine.
    cpus: CpuSet,
    /// The next frame, if it was looked at.
    next: Option<Frame>,
    any_pending: bool,
    /// The run ended in the middle of an input.
    is_over: bool,
    fault: Option<Located>,
    found: Replayed,
}

impl<R: Read> Script<'_, R> {
    fn stops(&self) -> bool {
        self.is_over || self.fault.is_some() || self.found.difference.is_some()
    }

    fn take(&mut self) -> Option<Frame> {
        self.next.take().or_else(|| match self.transcript.next_frame() {
            Ok(frame) => frame,
            Err(fault) => {
                self.fault = Some(fault);
                None
            }
        })
    }

    fn reject(&mut self, message: &str) {
        let message = format!("byte {}: {message}", self.transcript.offset());
        self.fault.get_or_insert(Located::whole(message).hint("the file is damaged"));
    }

    /// A record may name CPUs of this machine only.
    fn check(&mut self, message: &Message) {
        let pinned_to = message.has(flag::REJECTED).then_some(message.msg.b);
        let pinned_to = pinned_to.filter(|_| message.kind == Kind::Pick);
        for cpu in [Some(message.msg.cpu.into()), pinned_to].into_iter().flatten() {
            if cpu >= self.cpus.len() as u64 {
                self.reject(&format!("the machine has no CPU {cpu}"));
            }
        }
    }

    fn differ(&mut self, recorded: Option<Output>, replayed: Option<Output>) {
        self.found.difference = Some(Difference { recorded, replayed, panic: None });
    }

    /// Compares; what was told then if it was alike.
    fn told(&mut self, now: Output, is_alike: impl Fn(&Output) -> bool) -> Option<Output> {
        if self.stops() {
            return None;
        }
        match self.take() {
            Some(Frame::Output(then)) if is_alike(&then) => {
                self.found.alike += 1;
                self.found.picks += u64::from(matches!(then, Output::Give(..)));
                return Some(then);
            }
            Some(Frame::Output(then)) => self.differ(Some(then), Some(now)),
            // A run that failed may have ended in the middle of an input; so may one that was killed.
            Some(Frame::End(end)) if !end.is_valid || !end.is_complete => self.is_over = true,
            None => self.is_over = true,
            Some(input) => {
                self.next = Some(input);
                self.differ(None, Some(now));
            }
        }
        None
    }

    /// The host has answered an input in full.
    fn input_is_done(&mut self) {
        if self.stops() {
            return;
        }
        match self.take() {
            Some(Frame::Output(then)) => self.differ(Some(then), None),
            next => self.next = next,
        }
    }

    /// The policy panicked: so it had then, if nothing more had been told.
    fn after_panic(&mut self, words: String) {
        if self.stops() {
            return;
        }
        match self.take() {
            Some(Frame::End(end)) if !end.is_valid => self.found.panics_again = true,
            None => {}
            next => {
                let recorded = match next {
                    Some(Frame::Output(then)) => Some(then),
                    _ => None,
                };
                self.differ(recorded, None);
                if let Some(difference) = &mut self.found.difference {
                    difference.panic = Some(words);
                }
            }
        }
    }
}

impl<R: Read> Kernel for Script<'_, R> {
    fn drain(&mut self, _wait: Duration, into: &mut Vec<Message>) -> io::Result<()> {
        into.clear();
        Ok(())
    }

    fn give(&mut self, cpu: CpuId, decision: Decision) {
        self.any_pending = true;
        let now = Output::Give(cpu, decision);
        self.told(now, |then| *then == now);
    }

    fn stop(&mut self, cpu: CpuId, run: Run) {
        self.any_pending = true;
        let now = Output::Stop(cpu, run);
        self.told(now, |then| *then == now);
    }

    fn kick(&mut self, cpu: CpuId) {
        self.any_pending = true;
        let now = Output::Kick(cpu);
        self.told(now, |then| *then == now);
    }

    fn commit(&mut self) -> io::Result<CpuSet> {
        if !std::mem::take(&mut self.any_pending) {
            return Ok(CpuSet::EMPTY);
        }
        let now = Output::Commit(CpuSet::EMPTY);
        match self.told(now, |then| matches!(then, Output::Commit(_))) {
            Some(Output::Commit(busy)) if busy.is_subset(&self.cpus) => Ok(busy),
            Some(_) => {
                self.reject("the machine has fewer CPUs");
                Ok(CpuSet::EMPTY)
            }
            None => Ok(CpuSet::EMPTY),
        }
    }

    fn left(&mut self) -> Option<Ending> {
        None
    }

    fn counters(&mut self) -> Counters {
        Counters::default()
    }

    fn explain(&mut self, _cpu: CpuId) -> String {
        String::new()
    }

    fn detach(&mut self) {}
}
