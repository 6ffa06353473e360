// SPDX-License-Identifier: GPL-2.0-only
//! `schedlab import`: a recorded trace becomes a workload.

use std::path::Path;

use schedlab_workload::replay::{self, ImportOptions};
use schedlab_workload::to_toml;

use crate::args::{Common, ImportArgs};
use crate::commands::trace_input;
use crate::excerpt::Source;
use crate::exit::{Exit, Failure};
use crate::output::Destination;
use crate::terminal;

/// Reads the trace, turns it into a workload, and says what was found.
///
/// # Errors
/// A file that is no trace or cannot be read, with the place; a recording with nothing to import.
pub(crate) fn import(args: &ImportArgs, common: Common) -> Result<Exit, Failure> {
    let name = trace_input::shown_name(&args.file);
    let (found, recording) = trace_input::collect(&args.file)?;
    let options = ImportOptions {
        name: workload_name(&args.file),
        origin: format!("imported from {name}"),
        only: args.only.clone(),
        kernel_threads: !args.no_kernel_threads,
        recorder: !args.no_recorder,
        detect_timers: !args.no_detect_timers,
    };
    let imported = replay::import(&recording, &options)
        .map_err(|fault| Failure::located(Exit::Input, name, &fault, &Source::Text(&[])))?;
    if !common.quiet {
        found.to_string().lines().for_each(terminal::message);
        imported.summary.to_string().lines().for_each(terminal::message);
    }
    Destination::of(Some(&args.output))?.write(to_toml(&imported.workload).as_bytes())?;
    Ok(Exit::Done)
}

/// The file's name without folder and extension.
fn workload_name(file: &str) -> String {
    match Path::new(file).file_stem().and_then(|stem| stem.to_str()) {
        Some(stem) if file != "-" => stem.to_string(),
        _ => ImportOptions::default().name,
    }
}
