// SPDX-License-Identifier: GPL-2.0-only
//! A buffered output that remembers its first failure.

use std::fmt;
use std::io::{self, Write};

/// Bytes gathered before they are written.
const CHUNK: usize = 64 * 1024;

/// Where a writer of traces puts its bytes. After a failure nothing more is written.
#[derive(Debug)]
pub(crate) struct Out<W: Write> {
    inner: W,
    gathered: Vec<u8>,
    error: Option<io::Error>,
}

impl<W: Write> Out<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self { inner, gathered: Vec::with_capacity(CHUNK + 4096), error: None }
    }
    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.gathered.extend_from_slice(bytes);
        if self.gathered.len() >= CHUNK {
            self.flush_gathered();
        }
    }
    pub(crate) fn text(&mut self, text: fmt::Arguments<'_>) {
        if let Err(error) = self.gathered.write_fmt(text) {
            self.error.get_or_insert(error);
        }
        if self.gathered.len() >= CHUNK {
            self.flush_gathered();
        }
    }
    fn flush_gathered(&mut self) {
        if self.error.is_none() {
            self.error = self.inner.write_all(&self.gathered).err();
        }
        self.gathered.clear();
    }
    /// Writes what is left and returns the output.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.flush_gathered();
        match self.error {
            Some(error) => Err(error),
            None => self.inner.flush().map(|()| self.inner),
        }
    }
}
