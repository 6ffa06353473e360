// SPDX-License-Identifier: GPL-2.0-only
//! Which kernel a guest starts, and the cache of kernels in the build directory.

use std::env;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::exit::{Failure, HOST, INPUT};
use crate::image::{self, Image};

/// Names the kernel when there is no `--kernel`.
pub(crate) const KERNEL_VARIABLE: &str = "SCHEDLAB_KERNEL";

/// Directory of the workspace.
pub(crate) fn workspace() -> &'static Path {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest)
}

/// Where kernels are kept: in the build directory, so that `cargo clean` removes them.
pub(crate) fn cache() -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR").filter(|dir| !dir.is_empty());
    target.map_or_else(|| workspace().join("target"), PathBuf::from).join("kernel")
}

/// The kernel to be started: the one that was asked for, or the first that is there.
///
/// # Errors
/// When there is none.
pub(crate) fn find(asked: Option<&Path>) -> Result<PathBuf, Failure> {
    let named = env::var_os(KERNEL_VARIABLE).filter(|file| !file.is_empty()).map(PathBuf::from);
    if let Some(file) = asked.map(Path::to_path_buf).or(named) {
        return Ok(file);
    }
    let usual = [workspace().join("../shared/kernel/bzImage"), cache().join(crate::kernel::KERNEL)];
    usual.iter().find(|file| file.is_file()).cloned().ok_or_else(|| {
        let places: Vec<String> = usual.iter().map(|file| file.display().to_string()).collect();
        Failure::new(
            HOST,
            format!(
                "no kernel for the guest: neither {}\n`cargo xtask kernel` builds one; --kernel \
                 FILE or {KERNEL_VARIABLE}=FILE names one",
                places.join(" nor ")
            ),
        )
    })
}

/// The file that QEMU is to be given for the kernel in `file`: `file` itself, or the ELF kernel
/// that was inside it, from the cache.
///
/// # Errors
/// When `file` is no kernel that QEMU can start, or the cache cannot be written.
pub(crate) fn prepare(file: &Path) -> Result<PathBuf, Failure> {
    let unreadable =
        |error| Failure::new(INPUT, format!("cannot read the kernel {}: {error}", file.display()));
    let meta = file.metadata().map_err(unreadable)?;
    // A file that was built again has another time.
    let name = format!("unpacked-{}-{}.{:09}", meta.size(), meta.mtime(), meta.mtime_nsec());
    let unpacked = cache().join(name);
    if unpacked.is_file() {
        return Ok(unpacked);
    }
    let content = fs::read(file).map_err(unreadable)?;
    let wrong = |why| Failure::new(INPUT, format!("{} {why}", file.display()));
    match image::inspect(&content).map_err(wrong)? {
        Image::Pvh | Image::Opaque => Ok(file.to_path_buf()),
        Image::Packed(kernel) => {
            write_whole(&unpacked, &kernel).map_err(|error| {
                Failure::new(HOST, format!("cannot write {}: {error}", unpacked.display()))
            })?;
            Ok(unpacked)
        }
    }
}

/// Writes a file in such a way that nobody sees half of it: another guest may start meanwhile.
///
/// # Errors
/// When the place does not take it.
pub(crate) fn write_whole(file: &Path, content: &[u8]) -> io::Result<()> {
    if let Some(parent) = file.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut half = file.as_os_str().to_owned();
    half.push(format!(".{}", std::process::id()));
    let written = fs::write(&half, content).and_then(|()| fs::rename(&half, file));
    if written.is_err() {
        let _ = fs::remove_file(&half);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_dir::RunDir;

    #[test]
    fn file_that_is_no_kernel_is_told_by_name() {
        let dir = RunDir::create().expect("a directory for temporary files");
        let file = dir.join("text");
        let failure = prepare(&file).expect_err("no file");
        assert_eq!(failure.code, INPUT);
        assert!(failure.message.starts_with("cannot read the kernel "), "{failure:?}");
        fs::write(&file, "text").expect("writable");
        let failure = prepare(&file).expect_err("no kernel");
        assert_eq!(failure.code, INPUT);
        let told = format!("{} is no x86 kernel: ", file.display());
        assert!(failure.message.starts_with(&told), "{failure:?}");
    }

    #[test]
    fn whole_file_replaces_the_old_one_and_nothing_is_left_beside_it() {
        let dir = RunDir::create().expect("a directory for temporary files");
        let file = dir.join("cache/kernel");
        for content in ["old", "new"] {
            write_whole(&file, content.as_bytes()).expect("writable");
        }
        assert_eq!(fs::read_to_string(&file).expect("there"), "new");
        assert_eq!(fs::read_dir(dir.join("cache")).expect("there").count(), 1);
        assert!(write_whole(&file.join("below"), b"").is_err());
    }
}
