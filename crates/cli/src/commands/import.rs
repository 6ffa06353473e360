// SPDX-License-Identifier: GPL-2.0-only
//! `schedlab import`: a recorded trace becomes a workload.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use schedlab_policy_api::Recording;
use schedlab_trace::{Format, detect, read, slt};
use schedlab_units::Located;
use schedlab_workload::replay::{self, ImportOptions};
use schedlab_workload::to_toml;

use crate::args::{Common, ImportArgs};
use crate::commands::run::standard_input;
use crate::excerpt::Source;
use crate::exit::{Exit, Failure};
use crate::output::Destination;
use crate::terminal;

/// Reads the trace, turns it into a workload, and says what was found.
///
/// # Errors
/// A file that is no trace or cannot be read, with the place; a recording with nothing to import.
pub(crate) fn import(args: &ImportArgs, common: Common) -> Result<Exit, Failure> {
    let (name, trace) = match args.file.as_str() {
        "-" => {
            let bytes = standard_input()?;
            let failure = |fault: Located| {
                Failure::located(Exit::Input, "standard input", &fault, &Source::Text(&bytes))
            };
            ("standard input", read_trace(bytes.as_slice()).map_err(failure)?)
        }
        path => {
            let file = File::open(path).map_err(|error| {
                Failure::new(Exit::Usage, format!("{path}: the trace cannot be read: {error}"))
            })?;
            let failure =
                |fault: Located| Failure::located(Exit::Input, path, &fault, &Source::File(path));
            (path, read_trace(BufReader::with_capacity(1 << 16, file)).map_err(failure)?)
        }
    };
    let options = ImportOptions {
        name: workload_name(&args.file),
        origin: format!("imported from {name}"),
        only: args.only.clone(),
        kernel_threads: !args.no_kernel_threads,
        recorder: !args.no_recorder,
        detect_timers: !args.no_detect_timers,
    };
    let imported = replay::import(&trace.recording, &options)
        .map_err(|fault| Failure::located(Exit::Input, name, &fault, &Source::Text(&[])))?;
    if !common.quiet {
        trace.found.lines().for_each(terminal::message);
        imported.summary.to_string().lines().for_each(terminal::message);
    }
    Destination::of(Some(&args.output))?.write(to_toml(&imported.workload).as_bytes())?;
    Ok(Exit::Done)
}

/// A trace in memory.
struct Trace {
    recording: Recording,
    /// What the reader found.
    found: String,
}

fn read_trace(mut input: impl BufRead) -> Result<Trace, Located> {
    let start = input
        .fill_buf()
        .map_err(|error| Located::whole(format!("the trace cannot be read: {error}")))?;
    if detect(start) == Some(Format::Slt) {
        let (header, length, recording) = slt::read_recording(input)?;
        let policy = header.get("policy").unwrap_or("an unknown policy");
        let seed = header.get("seed").unwrap_or("unknown");
        let found = format!("slt: {length} of a simulated run of {policy} with seed {seed}");
        return Ok(Trace { recording, found });
    }
    let read = read(input)?;
    Ok(Trace { recording: read.recording, found: read.summary.to_string() })
}

/// The file's name without folder and extension.
fn workload_name(file: &str) -> String {
    match Path::new(file).file_stem().and_then(|stem| stem.to_str()) {
        Some(stem) if file != "-" => stem.to_string(),
        _ => ImportOptions::default().name,
    }
}
