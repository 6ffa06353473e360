// SPDX-License-Identifier: GPL-2.0-only
//! Writes one line an event.

use std::collections::BTreeMap;
use std::io::{self, Write};

use schedlab_policy_api::{Pid, RecordEvent, TraceRecord};
use schedlab_units::{CpuId, Time};
use serde_json::{Value, json};

use super::record::Args;
use super::{FIRST_LINE, LAST_LINE};
use crate::comms::Comms;
use crate::out::Out;
use crate::runqueue::Runqueues;
use crate::sink::{PolicyValue, RecordSink, RecordWriter, ValueOf};
use crate::summary::event_name;

/// The rows of CPUs are threads of one process, those of counters belong to another.
const CPUS: u32 = 0;
const COUNTERS: u32 = 1;

/// A sink that writes Chrome's JSON. Memory grows with the number of threads only.
#[derive(Debug)]
pub struct ChromeWriter<W: Write> {
    out: Out<W>,
    /// Whether a slice is open on each CPU; its name.
    open: Vec<Option<String>>,
    runqueues: Runqueues,
    /// Last value of each counter: only changes are written.
    counters: BTreeMap<String, i64>,
}

impl<W: Write> ChromeWriter<W> {
    /// A writer to `out`.
    pub fn new(out: W) -> Self {
        let mut out = Out::new(out);
        out.text(format_args!("{FIRST_LINE}\n"));
        let mut writer = Self {
            out,
            open: Vec::new(),
            runqueues: Runqueues::default(),
            counters: BTreeMap::new(),
        };
        for (pid, name) in [(CPUS, "CPUs"), (COUNTERS, "counters")] {
            let args = json!({ "name": name });
            writer.line(&json!({"ph": "M", "pid": pid, "name": "process_name", "args": args}));
        }
        writer
    }

    /// Writes what is left and returns the output.
    ///
    /// # Errors
    /// The first failure of the output, now or earlier.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.text(format_args!("{LAST_LINE}\n"));
        self.out.finish()
    }

    fn line(&mut self, event: &Value) {
        self.out.text(format_args!("{event},\n"));
    }

    /// An event; its time is written by hand, because µs with three decimals must not be rounded.
    fn event(&mut self, ph: &str, time: Time, cpu: CpuId, name: &str, args: Option<&Value>) {
        let (us, ns) = (time.as_ns() / 1000, time.as_ns() % 1000);
        let name = Value::from(name);
        self.out.text(format_args!(
            "{{\"ph\":\"{ph}\",\"ts\":{us}.{ns:03},\"pid\":{CPUS},\"tid\":{},\"name\":{name}",
            cpu.0
        ));
        if ph == "i" {
            self.out.text(format_args!(",\"s\":\"t\""));
        }
        if let Some(args) = args {
            self.out.text(format_args!(",\"args\":{args}"));
        }
        self.out.text(format_args!("}},\n"));
    }

    fn open(&mut self, cpu: CpuId) -> &mut Option<String> {
        while self.open.len() <= cpu.index() {
            let tid = self.open.len();
            let args = json!({ "name": format!("CPU {tid}") });
            self.line(&json!({
                "ph": "M", "pid": CPUS, "tid": tid, "name": "thread_name", "args": args
            }));
            self.open.push(None);
        }
        &mut self.open[cpu.index()]
    }

    fn counter(&mut self, time: Time, name: String, value: i64) {
        if self.counters.get(&name) == Some(&value) {
            return;
        }
        let (us, ns) = (time.as_ns() / 1000, time.as_ns() % 1000);
        let shown = Value::from(name.as_str());
        self.out.text(format_args!(
            "{{\"ph\":\"C\",\"ts\":{us}.{ns:03},\"pid\":{COUNTERS},\"name\":{shown},\
             \"args\":{{\"value\":{value}}}}},\n"
        ));
        self.counters.insert(name, value);
    }
}

impl<W: Write> RecordSink for ChromeWriter<W> {
    fn record(&mut self, record: &TraceRecord, comms: &Comms) {
        let args = serde_json::to_value(Args::of(record, comms)).unwrap_or(Value::Null);
        let TraceRecord { time, cpu, event, .. } = *record;
        if let RecordEvent::Switch { next, next_comm, .. } = event {
            let comes = (next != Pid(0)).then(|| comms.name(next_comm).to_string());
            let leaves = std::mem::replace(self.open(cpu), comes.clone());
            // The record stands in the slice that begins, or else in the one that ends.
            let in_end = comes.is_none();
            if let Some(name) = &leaves {
                self.event("E", time, cpu, name, in_end.then_some(&args));
            }
            match comes {
                Some(name) => self.event("B", time, cpu, &name, Some(&args)),
                None if leaves.is_none() => {
                    self.event("i", time, cpu, event_name(&event), Some(&args));
                }
                None => {}
            }
        } else {
            self.open(cpu);
            self.event("i", time, cpu, event_name(&event), Some(&args));
        }
        for cpu in self.runqueues.take(record).into_iter().flatten() {
            let n = i64::from(self.runqueues.nr_running(cpu));
            self.counter(time, format!("CPU {cpu} nr_running"), n);
        }
    }

    fn value(&mut self, value: &PolicyValue<'_>) {
        let name = match value.of {
            ValueOf::Thread(pid) => format!("{} {}", pid.0, value.name),
            ValueOf::Cpu(cpu) => format!("CPU {cpu} {}", value.name),
        };
        self.counter(value.time, name, value.value);
    }
}

impl<W: Write + Send> RecordWriter for ChromeWriter<W> {
    fn close(self: Box<Self>) -> io::Result<()> {
        self.finish().map(drop)
    }
}
