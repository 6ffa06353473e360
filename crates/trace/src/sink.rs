// SPDX-License-Identifier: GPL-2.0-only
//! What every reader feeds and every writer and view is fed by: records, one by one.

use std::collections::BTreeMap;
use std::io;

use schedlab_policy_api::{Pid, Recording, TraceRecord};
use schedlab_units::{CpuId, Time};

use crate::comms::Comms;

/// Whose value a [`PolicyValue`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ValueOf {
    /// A thread's, such as its vruntime.
    Thread(Pid),
    /// A CPU's, such as the length of its run queue.
    Cpu(CpuId),
}

/// A value of the policy at an instant; only simulated and live runs have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PolicyValue<'a> {
    /// When.
    pub time: Time,
    /// Whose.
    pub of: ValueOf,
    /// Its name, as `inspect` gives it.
    pub name: &'a str,
    /// The value in the unit its name is known for.
    pub value: i64,
}

/// Takes the records of a trace in the order of time.
///
/// Readers, simulated runs and recordings of this host feed it; writers, views and
/// [`Collect`] are fed. A sink that fails remembers its first error until it is finished.
pub trait RecordSink {
    /// One record. Times do not decrease, but for what the reader's summary counts as late.
    ///
    /// `comms` holds the names that the records so far speak of.
    fn record(&mut self, record: &TraceRecord, comms: &Comms);

    /// `thread` belongs to `process`; told before the record that showed it.
    fn process(&mut self, _thread: Pid, _process: Pid) {}

    /// A value of the policy; comes after the records of its instant.
    fn value(&mut self, _value: &PolicyValue<'_>) {}
}

/// A sink that writes a file.
pub trait RecordWriter: RecordSink + Send {
    /// Completes the file.
    ///
    /// # Errors
    /// The first failure of the output, now or earlier.
    fn close(self: Box<Self>) -> io::Result<()>;
}

impl<S: RecordSink + ?Sized> RecordSink for &mut S {
    fn record(&mut self, record: &TraceRecord, comms: &Comms) {
        (**self).record(record, comms);
    }
    fn process(&mut self, thread: Pid, process: Pid) {
        (**self).process(thread, process);
    }
    fn value(&mut self, value: &PolicyValue<'_>) {
        (**self).value(value);
    }
}

impl<S: RecordSink + ?Sized> RecordSink for Box<S> {
    fn record(&mut self, record: &TraceRecord, comms: &Comms) {
        (**self).record(record, comms);
    }
    fn process(&mut self, thread: Pid, process: Pid) {
        (**self).process(thread, process);
    }
    fn value(&mut self, value: &PolicyValue<'_>) {
        (**self).value(value);
    }
}

/// A sink that keeps everything in memory.
#[derive(Debug)]
pub struct Collect {
    records: Vec<TraceRecord>,
    tgids: BTreeMap<Pid, Pid>,
    sorted: bool,
}

impl Default for Collect {
    fn default() -> Self {
        Self { records: Vec::new(), tgids: BTreeMap::new(), sorted: true }
    }
}

impl Collect {
    /// An empty one.
    pub fn new() -> Self {
        Self::default()
    }
    /// The recording: stably sorted, late records in their places.
    pub fn finish(mut self, comms: Comms, n_cpus: u32) -> Recording {
        if !self.sorted {
            self.records.sort_by_key(|r| r.time);
        }
        Recording {
            comms: comms.into_names(),
            records: self.records,
            n_cpus,
            tgids: self.tgids.into_iter().collect(),
        }
    }
}

impl RecordSink for Collect {
    fn record(&mut self, record: &TraceRecord, _comms: &Comms) {
        self.sorted &= self.records.last().is_none_or(|last| last.time <= record.time);
        self.records.push(*record);
    }
    fn process(&mut self, thread: Pid, process: Pid) {
        self.tgids.insert(thread, process);
    }
}
