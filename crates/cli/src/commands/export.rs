// SPDX-License-Identifier: GPL-2.0-only
//! `schedlab export`: a trace in another form.

use std::fs::File;
use std::io::BufWriter;

use schedlab_trace::{RecordWriter, SideBySide, WrittenForm};

use crate::args::{Common, ExportArgs};
use crate::commands::{trace_file, trace_input};
use crate::exit::{Exit, Failure};
use crate::output::cannot_write;
use crate::terminal;

/// Writes the traces in the form that the extension of the output names.
///
/// The output is written under another name first, so that a damaged trace leaves no half file.
///
/// # Errors
/// An extension that is not written; a file that is no trace or is damaged, with the place; an
/// output that cannot be written.
pub(crate) fn export(args: &ExportArgs, common: Common) -> Result<Exit, Failure> {
    let form = trace_file::form(&args.output)
        .ok_or_else(|| trace_file::unknown_form(&args.output, &[]))?;
    if args.files.len() > 1 && form.extension != "pftrace" {
        let message = format!("{}: several traces go into one .pftrace only", args.output);
        return Err(Failure::new(Exit::Usage, message));
    }
    let partial = format!("{}.partial", args.output);
    let file = File::create(&partial).map_err(|error| cannot_write(&partial, &error))?;
    let outcome = convert(args, common, form, file);
    match outcome {
        Ok(()) => std::fs::rename(&partial, &args.output)
            .map_err(|error| cannot_write(&args.output, &error))
            .map(|()| Exit::Done),
        Err(failure) => {
            // Nothing is left behind; that the removal fails too would be no news.
            let _ = std::fs::remove_file(&partial);
            Err(failure)
        }
    }
}

fn convert(
    args: &ExportArgs,
    common: Common,
    form: &WrittenForm,
    file: File,
) -> Result<(), Failure> {
    let out = Box::new(BufWriter::new(file));
    let unwritten = |error: std::io::Error| cannot_write(&args.output, &error);
    let [file] = &args.files[..] else {
        let together = SideBySide::new(out);
        for file in &args.files {
            feed(file, common, together.run(trace_input::shown_name(file)))?;
        }
        return together.finish().map_err(unwritten);
    };
    let origin = format!("written by schedlab from {}", trace_input::shown_name(file));
    feed(file, common, form.open(out, &origin))
}

fn feed(file: &str, common: Common, mut writer: Box<dyn RecordWriter>) -> Result<(), Failure> {
    let (summary, _) = trace_input::feed(file, &mut writer)?;
    writer.close().map_err(|error| cannot_write("the trace", &error))?;
    if !common.quiet {
        summary.to_string().lines().for_each(terminal::message);
    }
    Ok(())
}
