// SPDX-License-Identifier: GPL-2.0-only
//! Where the event stream of a run is written to, if the user wants it.

use std::io;

use schedlab_policy_api::{Observer, SchedEvent};
use schedlab_trace::{RecordWriter, Recorder, TaskLabel};
use schedlab_units::{TaskId, Time};

/// A writer of traces.
pub trait TraceSink: Send {
    /// Called with each event in order.
    fn event(&mut self, now: Time, event: &SchedEvent);
    /// Called right after the `ProcessFork` of `task`.
    fn name_task(&mut self, task: TaskId, label: TaskLabel<'_>);
    /// Whether it shows values of the policy; [`TraceSink::value`] is called only then.
    fn wants_values(&self) -> bool {
        false
    }
    /// A value that the policy's `inspect` shows of `task`, after the events of the instant.
    fn value(&mut self, _now: Time, _task: TaskId, _name: &str, _value: i64) {}
    /// Completes the file.
    ///
    /// # Errors
    /// The first error that any write met.
    fn finish(self: Box<Self>) -> io::Result<()>;
}

/// A trace writer of any format.
pub type Sink = Box<dyn TraceSink>;

impl TraceSink for Recorder<Box<dyn RecordWriter>> {
    fn event(&mut self, now: Time, event: &SchedEvent) {
        Observer::event(self, now, event);
    }
    fn name_task(&mut self, task: TaskId, label: TaskLabel<'_>) {
        Self::name_task(self, task, label);
    }
    fn finish(self: Box<Self>) -> io::Result<()> {
        let (writer, _, _) = Self::finish(*self);
        writer.close()
    }
}

/// A writer that shows values of the policy, too.
pub struct WithValues(pub Recorder<Box<dyn RecordWriter>>);

impl TraceSink for WithValues {
    fn event(&mut self, now: Time, event: &SchedEvent) {
        TraceSink::event(&mut self.0, now, event);
    }
    fn name_task(&mut self, task: TaskId, label: TaskLabel<'_>) {
        TraceSink::name_task(&mut self.0, task, label);
    }
    fn wants_values(&self) -> bool {
        true
    }
    fn value(&mut self, now: Time, task: TaskId, name: &str, value: i64) {
        self.0.value(now, task, name, value);
    }
    fn finish(self: Box<Self>) -> io::Result<()> {
        TraceSink::finish(Box::new(self.0))
    }
}
