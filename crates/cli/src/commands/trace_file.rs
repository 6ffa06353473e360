// SPDX-License-Identifier: GPL-2.0-only
//! `--trace FILE`: the form follows from the extension.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::Path;

use schedlab_lab::recipe::header_of;
use schedlab_lab::run::Job;
use schedlab_lab::sink::{Sink, TraceSink, WithValues};
use schedlab_policy_api::{Observer, SchedEvent};
use schedlab_report::model::VERSION;
use schedlab_trace::slt::SltWriter;
use schedlab_trace::{
    RecordWriter, Recorder, SideBySide, TaskLabel, WRITTEN, WrittenForm, written_form,
};
use schedlab_units::{TaskId, Time};

use crate::exit::{Exit, Failure};
use crate::output::cannot_write;

/// A writer for `path`, whose header names `job` and the digest of its workload.
///
/// # Errors
/// For an extension that is not written, and when the file cannot be created.
pub(crate) fn create(path: &str, job: &Job, digest: &str) -> Result<Sink, Failure> {
    let native = extension(path) == "slt";
    let form = form(path);
    if form.is_none() && !native {
        return Err(unknown_form(path, &[".slt (native)"]));
    }
    let file = File::create(path).map_err(|error| cannot_write(path, &error))?;
    let out = BufWriter::new(file);
    let Some(form) = form else {
        return Ok(Box::new(Slt(SltWriter::new(out, &header_of(job, digest, VERSION)))));
    };
    let origin = format!(
        "schedlab {VERSION}: {} under {} with seed {}",
        job.workload.name, job.policy, job.seed
    );
    let recorder = Recorder::new(form.open(Box::new(out), &origin));
    Ok(if form.has_values { Box::new(WithValues(recorder)) } else { Box::new(recorder) })
}

/// Whether the form of `path` takes several runs.
pub(crate) fn takes_several(path: &str) -> bool {
    extension(path) == "pftrace"
}

/// A writer of several runs for `path`.
///
/// # Errors
/// When the file cannot be created.
pub(crate) fn create_together(path: &str) -> Result<SideBySide, Failure> {
    let file = File::create(path).map_err(|error| cannot_write(path, &error))?;
    Ok(SideBySide::new(Box::new(BufWriter::new(file))))
}

/// The sink of one of several runs.
pub(crate) fn part(together: &SideBySide, job: &Job) -> Sink {
    let name = format!("{} with seed {}", job.policy, job.seed);
    Box::new(WithValues(Recorder::new(together.run(&name))))
}

/// The form that the extension of `path` names; none for those that are not written from records.
pub(crate) fn form(path: &str) -> Option<&'static WrittenForm> {
    written_form(extension(path))
}

/// No form has the extension of `path`; `more` are forms beside those written from records.
pub(crate) fn unknown_form(path: &str, more: &[&str]) -> Failure {
    let known = WRITTEN.iter().map(|form| format!(".{} ({})", form.extension, form.name));
    let known: Vec<String> = known.chain(more.iter().map(|form| (*form).to_string())).collect();
    let message = format!("{path}: traces are written as {}", known.join(", "));
    Failure::new(Exit::Usage, message)
}

fn extension(path: &str) -> &str {
    Path::new(path).extension().and_then(|e| e.to_str()).unwrap_or("")
}

/// A writer of recordings of this host for `path`.
///
/// # Errors
/// As [`create`].
pub(crate) fn record_writer(path: &str) -> Result<Box<dyn RecordWriter>, Failure> {
    let form = form(path).ok_or_else(|| unknown_form(path, &[]))?;
    let file = File::create(path).map_err(|error| cannot_write(path, &error))?;
    let origin = format!("schedlab {VERSION}: a recording of this host");
    Ok(form.open(Box::new(BufWriter::new(file)), &origin))
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
