// SPDX-License-Identifier: GPL-2.0-only
//! `schedlab diff`: where two recorded runs part.

use std::fs::File;
use std::io::{BufReader, Read as _};

use schedlab_lab::diff::{Compared, SltRun, figures, first_difference, first_difference_by_name};
use schedlab_report::diff::{Diff, json, text};
use schedlab_trace::slt;
use schedlab_units::Located;

use crate::args::DiffArgs;
use crate::commands::trace_input;
use crate::excerpt::Source;
use crate::exit::{Exit, Failure};
use crate::output::Destination;

/// Compares the two traces and reports; exit 1 when they differ.
///
/// # Errors
/// A file that is no trace or is damaged, with the place; an output that cannot be written.
pub(crate) fn diff(args: &DiffArgs) -> Result<Exit, Failure> {
    let destination = Destination::of(args.output.as_deref())?;
    let (found_a, a) = trace_input::collect(&args.a)?;
    let (found_b, b) = trace_input::collect(&args.b)?;
    let exact = if is_native(&args.a) && is_native(&args.b) { exact(args)? } else { None };
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
    let differs = divergence.is_some();
    let report = Diff {
        origins: [origin(&args.a, &found_a), origin(&args.b, &found_b)],
        divergence,
        method,
        rows: figures(&a, &b),
    };
    let shown = match args.format.as_str() {
        "json" => format!("{:#}\n", json(&report)),
        _ => text(&report),
    };
    destination.write(shown.as_bytes())?;
    if differs {
        return Err(Failure::new(Exit::CheckFailed, "the runs differ"));
    }
    Ok(Exit::Done)
}

/// Whether `file` is a `.slt` file on disk.
fn is_native(file: &str) -> bool {
    let mut start = [0; slt::MAGIC.len()];
    file != "-"
        && File::open(file).and_then(|mut file| file.read_exact(&mut start)).is_ok()
        && start == slt::MAGIC
}

/// The first difference of two runs of the same workload; none when the workloads are not the same.
fn exact(args: &DiffArgs) -> Result<Option<Compared>, Failure> {
    let open = |path: &str| {
        let file = File::open(path).map_err(|error| {
            Failure::new(Exit::Usage, format!("{path}: the trace cannot be read: {error}"))
        })?;
        SltRun::open(BufReader::new(file)).map_err(|fault| damaged(path, &fault))
    };
    let (mut a, mut b) = (open(&args.a)?, open(&args.b)?);
    if a.header().get("digest") != b.header().get("digest") {
        return Ok(None);
    }
    let compared = first_difference(&mut a, &mut b)
        .map_err(|(side, fault)| damaged(if side == 0 { &args.a } else { &args.b }, &fault))?;
    Ok(Some(compared))
}

fn damaged(path: &str, fault: &Located) -> Failure {
    Failure::located(Exit::Input, path, fault, &Source::File(path))
}
