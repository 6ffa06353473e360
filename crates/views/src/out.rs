// SPDX-License-Identifier: GPL-2.0-only
//! Text on its way out.

use std::fmt;
use std::io::{self, Write};

/// Bytes gathered before they are written.
const CHUNK: usize = 64 * 1024;

/// An output that gathers text and remembers its first failure.
#[derive(Debug)]
pub(crate) struct Out<W: Write> {
    out: W,
    text: String,
    error: Option<io::Error>,
}

impl<W: Write> Out<W> {
    pub(crate) fn new(out: W) -> Self {
        Self { out, text: String::new(), error: None }
    }

    pub(crate) fn put(&mut self, text: fmt::Arguments<'_>) {
        // A string takes everything.
        let _ = fmt::Write::write_fmt(&mut self.text, text);
        if self.text.len() >= CHUNK {
            self.flush();
        }
    }

    /// A line without blanks kept at its end.
    pub(crate) fn line(&mut self, text: &str) {
        self.put(format_args!("{text}\n"));
    }

    fn flush(&mut self) {
        if self.error.is_none() {
            self.error = self.out.write_all(self.text.as_bytes()).err();
        }
        self.text.clear();
    }

    /// Writes what is left and returns the output.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.flush();
        match self.error {
            Some(error) => Err(error),
            None => self.out.flush().map(|()| self.out),
        }
    }
}
