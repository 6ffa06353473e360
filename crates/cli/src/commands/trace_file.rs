// SPDX-License-Identifier: GPL-2.0-only
//! `--trace FILE`: the form follows from the extension.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use schedlab_lab::run::Job;
use schedlab_lab::sink::{Sink, TraceSink};
use schedlab_policy_api::{Observer, SchedEvent};
use schedlab_report::model::VERSION;
use schedlab_trace::slt::{SltHeader, SltWriter};
use schedlab_trace::{FtraceWriter, RecordWriter, Recorder, TaskLabel};
use schedlab_units::{TaskId, Time};

use crate::exit::{Exit, Failure};
use crate::output::cannot_write;

/// A writer for `path`, whose header names `job` and the digest of its workload.
///
/// # Errors
/// For an extension that is not written, and when the file cannot be created.
pub(crate) fn create(path: &str, job: &Job, digest: &str) -> Result<Sink, Failure> {
    let extension = Path::new(path).extension().and_then(|e| e.to_str()).unwrap_or("");
    if !matches!(extension, "txt" | "slt") {
        let message = format!("{path}: traces are written as .txt (ftrace text) or .slt (native)");
        return Err(Failure::new(Exit::Usage, message));
    }
    let file = File::create(path).map_err(|error| cannot_write(path, &error))?;
    let out = BufWriter::new(file);
    Ok(match extension {
        "slt" => Box::new(Slt(SltWriter::new(out, &header(job, digest)))),
        _ => Box::new(Recorder::new(Box::new(FtraceWriter::new(out)) as Box<dyn RecordWriter>)),
    })
}

/// A writer of recordings of this host for `path`.
///
/// # Errors
/// As [`create`].
pub(crate) fn record_writer(path: &str) -> Result<Box<dyn RecordWriter>, Failure> {
    let extension = Path::new(path).extension().and_then(|e| e.to_str()).unwrap_or("");
    if extension != "txt" {
        let message = format!("{path}: recordings are written as .txt (ftrace text)");
        return Err(Failure::new(Exit::Usage, message));
    }
    let file = File::create(path).map_err(|error| cannot_write(path, &error))?;
    Ok(Box::new(FtraceWriter::new(BufWriter::new(file))))
}

fn header(job: &Job, digest: &str) -> SltHeader {
    let topo = &job.topo;
    let machine = format!(
        "nodes={},llcs={},cores={},threads={}",
        topo.nodes(),
        topo.llcs_per_node(),
        topo.cores_per_llc(),
        topo.threads_per_core()
    );
    let mut header = SltHeader::new();
    header.push("version", VERSION);
    header.push("policy", &job.policy.to_string());
    header.push("variant", job.policy.variant().name);
    header.push("seed", &job.seed.to_string());
    header.push("machine", &machine);
    header.push("cost", &job.cost.name);
    header.push("hz", &job.hz().get().to_string());
    header.push("workload", &job.workload.name);
    header.push("digest", digest);
    header
}

struct Slt(SltWriter<BufWriter<File>>);

impl TraceSink for Slt {
    fn event(&mut self, now: Time, event: &SchedEvent) {
        self.0.event(now, event);
    }
    fn name_task(&mut self, task: TaskId, label: TaskLabel<'_>) {
        self.0.name_task(task, label);
    }
    fn finish(self: Box<Self>) -> io::Result<()> {
        self.0.finish().map(drop)
    }
}
