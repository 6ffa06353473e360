// SPDX-License-Identifier: GPL-2.0-only
//! The forms that are written, by the extension of the file.

use std::io::Write;

use crate::{ChromeWriter, CsvWriter, FtraceWriter, PerfettoWriter, RecordWriter};

/// Where a writer puts its bytes.
type Output = Box<dyn Write + Send>;

/// A form in which records are written.
#[derive(Clone, Copy, Debug)]
pub struct WrittenForm {
    /// Extension of its files.
    pub extension: &'static str,
    /// What it is.
    pub name: &'static str,
    /// Whether it shows values of policies.
    pub has_values: bool,
    open: fn(Output, &str) -> Box<dyn RecordWriter>,
}

impl WrittenForm {
    /// A writer to `out`; `origin` says in a few words what is written.
    pub fn open(&self, out: Output, origin: &str) -> Box<dyn RecordWriter> {
        (self.open)(out, origin)
    }
}

/// All of them. A new one is a file with its writer and a line here.
pub const WRITTEN: [WrittenForm; 4] = [
    WrittenForm {
        extension: "pftrace",
        name: "Perfetto",
        has_values: true,
        open: |out, origin| Box::new(PerfettoWriter::new(out, origin)),
    },
    WrittenForm {
        extension: "json",
        name: "Chrome JSON",
        has_values: true,
        open: |out, _| Box::new(ChromeWriter::new(out)),
    },
    WrittenForm {
        extension: "txt",
        name: "ftrace text",
        has_values: false,
        open: |out, _| Box::new(FtraceWriter::new(out)),
    },
    WrittenForm {
        extension: "csv",
        name: "CSV",
        has_values: false,
        open: |out, _| Box::new(CsvWriter::new(out)),
    },
];

/// The form whose files have this extension.
pub fn written_form(extension: &str) -> Option<&'static WrittenForm> {
    WRITTEN.iter().find(|form| form.extension == extension)
}
