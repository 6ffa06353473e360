// SPDX-License-Identifier: GPL-2.0-only
//! Files that grow, copied while they grow.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

/// Bytes that are copied at once.
const PORTION: u64 = 1 << 20;

/// A file that somebody else writes to its end.
#[derive(Debug)]
pub(crate) struct Follower {
    file: File,
}

impl Follower {
    /// Makes the file, empty, and stands at its beginning.
    ///
    /// # Errors
    /// When it cannot be made.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        File::create(path)?;
        Ok(Self { file: File::open(path)? })
    }

    /// Copies what has come since the last time, byte for byte, but no more than [`PORTION`]: a
    /// writer that never stops must not keep the caller here. Says whether that was all.
    ///
    /// # Errors
    /// Of reading, and those of `to`.
    pub(crate) fn copy(&mut self, to: &mut dyn Write) -> io::Result<bool> {
        let n = io::copy(&mut (&self.file).take(PORTION), to)?;
        to.flush()?;
        Ok(n < PORTION)
    }
}

/// The last `n` lines of a console's log, without what would move a terminal's cursor.
pub(crate) fn last_lines(log: &[u8], n: usize) -> String {
    let text = String::from_utf8_lossy(log);
    let clean: String =
        text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
    let lines: Vec<&str> = clean.trim_end().lines().collect();
    lines[lines.len().saturating_sub(n)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_dir::RunDir;

    #[test]
    fn growing_file_is_copied_byte_for_byte_and_once() {
        let dir = RunDir::create().expect("a directory for temporary files");
        let path = dir.join("growing");
        let mut follower = Follower::create(&path).expect("writable");
        let mut writer = File::create(&path).expect("writable");
        for part in [&b"\0\xff\r\n"[..], b"", &[7; 200_000]] {
            writer.write_all(part).expect("writable");
            let mut seen = Vec::new();
            assert!(follower.copy(&mut seen).expect("readable"));
            assert_eq!(seen, part);
        }
    }

    #[test]
    fn large_output_is_copied_in_portions() {
        let dir = RunDir::create().expect("a directory for temporary files");
        let path = dir.join("large");
        let mut follower = Follower::create(&path).expect("writable");
        let large: Vec<u8> = (0..=250).cycle().take((1 << 20) + 1).collect();
        std::fs::write(&path, &large).expect("writable");
        let mut seen = Vec::new();
        assert!(!follower.copy(&mut seen).expect("readable"));
        assert!(follower.copy(&mut seen).expect("readable"));
        assert!(seen == large, "the portions are the whole");
    }

    #[test]
    fn last_lines_are_plain_text() {
        let log = b"one\r\ntwo\r\n\x1b[1;31mthree\xff\r\n\r\n";
        assert_eq!(last_lines(log, 2), "two\n[1;31mthree\u{fffd}");
        assert_eq!(last_lines(log, 9).lines().count(), 3);
        assert_eq!(last_lines(b"", 9), "");
    }
}
