// SPDX-License-Identifier: GPL-2.0-only
//! Transcripts in memory.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use schedlab_live::transcript::Keeper;

/// A file in memory; clones are the same one.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    /// Keeps a transcript here.
    pub(super) fn keeper(&self) -> Keeper {
        Keeper::new(self.clone()).expect("a thread can be made")
    }

    /// All that was written.
    pub(super) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().expect("nobody panics with it"))
    }
}

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panics with it").extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
