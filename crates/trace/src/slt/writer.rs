// SPDX-License-Identifier: GPL-2.0-only
//! Writes `.slt` while a run goes on.

use std::io::{self, Write};

use schedlab_policy_api::{Fingerprint, Observer, SchedEvent};
use schedlab_units::{TaskId, Time};

use super::code::{END, LABEL, put_event, put_sched, put_varint};
use super::{MAGIC, MAX_HEADER, MAX_NAME, SltHeader, VERSION};
use crate::checksum::Checksum;
use crate::kernel_view::TaskLabel;

/// Bytes gathered before they are written.
const CHUNK: usize = 64 * 1024;

/// An observer that writes every event to a `.slt` file.
///
/// Memory does not grow with the run. An output that fails is not written to again;
/// [`SltWriter::finish`] reports it. A writer that is dropped instead leaves a file without its
/// end, which readers notice.
#[derive(Debug)]
pub struct SltWriter<W: Write> {
    out: W,
    bytes: Vec<u8>,
    checksum: Checksum,
    fingerprint: Fingerprint,
    last: Time,
    n_records: u64,
    error: Option<io::Error>,
}

impl<W: Write> SltWriter<W> {
    /// A writer to `out` of a run described by `header`.
    ///
    /// # Panics
    /// When the header is longer than 1 MiB.
    pub fn new(out: W, header: &SltHeader) -> Self {
        let text = header.to_text();
        assert!(text.len() as u64 <= MAX_HEADER, "a header of {} bytes", text.len());
        let mut bytes = Vec::with_capacity(CHUNK + MAX_NAME + 128);
        bytes.extend_from_slice(&MAGIC);
        put_varint(&mut bytes, VERSION);
        put_varint(&mut bytes, text.len() as u64);
        bytes.extend_from_slice(text.as_bytes());
        Self {
            out,
            bytes,
            checksum: Checksum::new(),
            fingerprint: Fingerprint::default(),
            last: Time::ZERO,
            n_records: 0,
            error: None,
        }
    }

    /// Names `task`; to be called between its `ProcessFork` and the next event.
    ///
    /// Names are cut after 4096 bytes.
    pub fn name_task(&mut self, task: TaskId, label: TaskLabel<'_>) {
        let name = &label.name[..label.name.floor_char_boundary(MAX_NAME)];
        self.bytes.push(LABEL);
        put_varint(&mut self.bytes, u64::from(task.0));
        put_sched(&mut self.bytes, label.nice, label.class, label.rt_priority);
        put_varint(&mut self.bytes, name.len() as u64);
        self.bytes.extend_from_slice(name.as_bytes());
        self.n_records += 1;
    }

    /// Writes the end of the file and returns the output.
    ///
    /// # Errors
    /// The first failure of the output, now or earlier.
    pub fn finish(mut self) -> io::Result<W> {
        self.bytes.push(END);
        put_varint(&mut self.bytes, self.n_records);
        self.bytes.extend_from_slice(&self.fingerprint.value().to_le_bytes());
        self.flush();
        self.bytes.extend_from_slice(&self.checksum.value().to_le_bytes());
        self.flush();
        match self.error {
            Some(error) => Err(error),
            None => self.out.flush().map(|()| self.out),
        }
    }

    fn flush(&mut self) {
        self.checksum.update(&self.bytes);
        if self.error.is_none() {
            self.error = self.out.write_all(&self.bytes).err();
        }
        self.bytes.clear();
    }
}

impl<W: Write> Observer for SltWriter<W> {
    fn event(&mut self, now: Time, event: &SchedEvent) {
        self.fingerprint.event(now, event);
        put_event(&mut self.bytes, (now - self.last).as_ns(), event);
        self.last = now;
        self.n_records += 1;
        if self.bytes.len() >= CHUNK {
            self.flush();
        }
    }
}
