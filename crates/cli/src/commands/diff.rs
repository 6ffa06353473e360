// SPDX-License-Identifier: GPL-2.0-only
//! `schedlab diff`: where two recorded runs part.

use std::fs::File;
use std::io::{BufReader, Read as _};

use schedlab_lab::diff::{Compared, SltRun, figures, first_difference, first_difference_by_name};
use schedlab_liverun::transcript::{Replay, replay};
use schedlab_report::diff::{Diff, json, text};
use schedlab_trace::slt;
use schedlab_units::Located;

use crate::args::DiffArgs;
use crate::commands::trace_input;
use crate::excerpt::Source;
use crate::exit::{Exit, Failure};
use crate::output::Destination;

/// Compares the two traces, or a transcript with its replay, and reports; exit 1 when they differ.
///
/// # Errors
/// A file that is no trace or is damaged, with the place; an output that cannot be written.
pub(crate) fn diff(args: &DiffArgs) -> Result<Exit, Failure> {
    let destination = Destination::of(args.output.as_deref())?;
    let (report, what) = match &args.b {
        Some(b) => (of_two(&args.a, b)?, "the runs differ"),
        None => (of_transcript(&args.a)?, "the replay differs"),
    };
    let shown = match args.format.as_str() {
        "json" => format!("{:#}\n", json(&report)),
        _ => text(&report),
    };
    destination.write(shown.as_bytes())?;
    match report.divergence {
        Some(_) => Err(Failure::new(Exit::CheckFailed, what)),
        None => Ok(Exit::Done),
    }
}

fn of_two(name_a: &str, name_b: &str) -> Result<Diff, Failure> {
    let (found_a, a) = trace_input::collect(name_a)?;
    let (found_b, b) = trace_input::collect(name_b)?;
    let both_native = is_native(name_a) && is_native(name_b);
    let exact = if both_native { exact(name_a, name_b)? } else { None };
    let (method, divergence) = match exact {
        Some(Compared { divergence, until }) => {
            let end = until.map(|end| format!(", up to the end of the shorter one at {end} s"));
            let method = "to the nanosecond: both are runs of the same workload";
            (format!("{method}{}", end.unwrap_or_default()), divergence)
        }
        None => (
            "by the order in which names come to each CPU, whatever the times".to_string(),
            first_difference_by_name(&a, &b),
        ),
    };
    let origin = |file: &str, found: &schedlab_trace::ReadSummary| {
        let origin =
            if found.origin.is_empty() { found.format.to_string() } else { found.origin.clone() };
        format!("{file}: {origin}")
    };
    Ok(Diff {
        origins: [origin(name_a, &found_a), origin(name_b, &found_b)],
        divergence,
        method,
        rows: figures(&a, &b),
    })
}

/// A transcript against its replay.
fn of_transcript(file: &str) -> Result<Diff, Failure> {
    let name = trace_input::shown_name(file);
    let replayed = if file == "-" {
        replay(std::io::stdin().lock())
    } else {
        let input = File::open(file).map_err(|error| cannot_read(file, &error))?;
        replay(BufReader::new(input))
    };
    let Replay { header, end, inputs, picks, divergence, panics_again } =
        replayed.map_err(|fault| Failure::located(Exit::Input, name, &fault, &Source::Gone))?;
    let until = match end {
        _ if panics_again => ", up to the panic of the policy, which came again",
        _ if divergence.is_some() => "",
        None => ", up to where the run was killed",
        Some(end) if !end.is_complete => ", up to where the transcript could not be kept any more",
        Some(_) => ", to the end of the run",
    };
    Ok(Diff {
        origins: [
            format!("{name}: {}", header.origin()),
            format!("its replay: {inputs} inputs, {picks} decisions what a CPU runs next{until}"),
        ],
        divergence,
        method: "one by one, with lease, slice and CPU".to_string(),
        rows: Vec::new(),
    })
}

fn cannot_read(file: &str, error: &std::io::Error) -> Failure {
    Failure::new(Exit::Usage, format!("{file}: the trace cannot be read: {error}"))
}

/// Whether `file` is a `.slt` file on disk.
fn is_native(file: &str) -> bool {
    let mut start = [0; slt::MAGIC.len()];
    file != "-"
        && File::open(file).and_then(|mut file| file.read_exact(&mut start)).is_ok()
        && start == slt::MAGIC
}

/// The first difference of two runs of the same workload; none when the workloads are not the same.
fn exact(name_a: &str, name_b: &str) -> Result<Option<Compared>, Failure> {
    let open = |path: &str| {
        let file = File::open(path).map_err(|error| cannot_read(path, &error))?;
        SltRun::open(BufReader::new(file)).map_err(|fault| damaged(path, &fault))
    };
    let (mut a, mut b) = (open(name_a)?, open(name_b)?);
    if a.header().get("digest") != b.header().get("digest") {
        return Ok(None);
    }
    let compared = first_difference(&mut a, &mut b)
        .map_err(|(side, fault)| damaged(if side == 0 { name_a } else { name_b }, &fault))?;
    Ok(Some(compared))
}

fn damaged(path: &str, fault: &Located) -> Failure {
    Failure::located(Exit::Input, path, fault, &Source::File(path))
}
