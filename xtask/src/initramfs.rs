// SPDX-License-Identifier: GPL-2.0-only
//! The initramfs of a guest: busybox, the two stages of its start, and the command.

use std::fs;
use std::path::{Path, PathBuf};

use crate::cpio::Archive;
use crate::exit::{Failure, HOST};
use crate::image::is_static;
use crate::tools::{self, Missing};

/// First stage: the shared root.
const INIT: &str = include_str!("../../vm/init");
/// Second stage: file systems, command, result.
const STAGE2: &str = include_str!("../../vm/stage2.sh");

/// A busybox that runs without the host's libraries.
const BUSYBOX: Missing = Missing { what: "a static busybox", package: "busybox-static" };

/// The host's busybox if it is static.
///
/// # Errors
/// What to install when there is none.
pub(crate) fn busybox() -> Result<Vec<u8>, Missing> {
    let program = tools::program("busybox").and_then(|path| fs::read(path).ok());
    program.filter(|program| is_static(program)).ok_or(BUSYBOX)
}

/// The archive. It is not compressed: nobody keeps it, and an emulated guest takes longer to
/// decompress it than to read it.
pub(crate) fn archive(busybox: &[u8], command: &str, directory: &Path) -> Vec<u8> {
    let mut archive = Archive::default();
    archive.file("init", 0o755, INIT.as_bytes());
    archive.directory("bin");
    archive.file("bin/busybox", 0o755, busybox);
    archive.directory("schedlab");
    archive.file("schedlab/stage2.sh", 0o644, STAGE2.as_bytes());
    archive.file("schedlab/command", 0o644, command.as_bytes());
    archive.file("schedlab/directory", 0o644, directory.as_os_str().as_encoded_bytes());
    archive.finish()
}

/// The directory in which the command starts, which is the caller's.
///
/// # Errors
/// When it is gone.
pub(crate) fn directory() -> Result<PathBuf, Failure> {
    std::env::current_dir().map_err(|error| {
        Failure::new(HOST, format!("the current directory cannot be used: {error}"))
    })
}
