// SPDX-License-Identifier: GPL-2.0-only
//! The temporary directory of a guest, which goes with it.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::exit::{Failure, HOST};

/// Names are this, the number of the process, and a count: `schedlab-vm-1234-0`.
const PREFIX: &str = "schedlab-vm-";

/// Directories that this process has made.
static MADE: AtomicU32 = AtomicU32::new(0);

/// A directory that is removed when the value is dropped.
#[derive(Debug)]
pub(crate) struct RunDir {
    path: PathBuf,
}

impl RunDir {
    /// Makes one for this process, for its user only. Those that killed processes left behind go.
    ///
    /// # Errors
    /// When the directory for temporary files does not take it.
    pub(crate) fn create() -> Result<Self, Failure> {
        let parent = std::env::temp_dir();
        remove_left(&parent);
        let count = MADE.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("{PREFIX}{}-{count}", std::process::id()));
        DirBuilder::new().mode(0o700).create(&path).map_err(|error| {
            Failure::new(HOST, format!("cannot make the directory {}: {error}", path.display()))
        })?;
        Ok(Self { path })
    }

    /// A file or directory in it.
    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for RunDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes directories of processes that are no more. Another user's cannot be removed and stay.
fn remove_left(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(owner);
        if owner.is_some_and(|owner| !Path::new(&format!("/proc/{owner}")).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The process whose directory has this name.
fn owner(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.split_once('-')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directory_goes_with_its_value_and_takes_those_left_behind_along() {
        let left = std::env::temp_dir().join(format!("{PREFIX}{}-0", u32::MAX));
        fs::create_dir_all(left.join("out")).expect("a directory for temporary files");
        let dir = RunDir::create().expect("a directory for temporary files");
        assert!(!left.exists());
        fs::write(dir.join("file"), "content").expect("writable");
        let path = dir.path.clone();
        assert!(path.is_dir());
        drop(dir);
        assert!(!path.exists());
    }

    #[test]
    fn other_names_belong_to_nobody() {
        assert_eq!(owner("schedlab-vm-17-0"), Some(17));
        for other in ["schedlab-vm-", "schedlab-vm-17", "schedlab-vm-1x-0", "schedlab-17-0"] {
            assert_eq!(owner(other), None, "{other}");
        }
    }
}
