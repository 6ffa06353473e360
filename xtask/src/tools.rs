// SPDX-License-Identifier: GPL-2.0-only
//! Programs and files that the host must have, and the packages that bring them.

use std::env;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::exit::{Failure, HOST};

/// Something to be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Missing {
    /// What was looked for, as the user knows it.
    pub(crate) what: &'static str,
    /// Debian's package with it.
    pub(crate) package: &'static str,
}

/// The failure that names all missing things at once.
pub(crate) fn lacks(missing: &[Missing]) -> Failure {
    let whats: Vec<&str> = missing.iter().map(|missing| missing.what).collect();
    let mut packages: Vec<&str> = missing.iter().map(|missing| missing.package).collect();
    packages.sort_unstable();
    packages.dedup();
    Failure::new(
        HOST,
        format!(
            "this host lacks {}\non Debian: apt-get install {}; other distributions: docs/vm.md",
            whats.join(", "),
            packages.join(" ")
        ),
    )
}

/// The first executable file of this name in `PATH`, or in the directories of the administrator,
/// which the `PATH` of a user may leave out.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    find(name, &path)
}

fn find(name: &str, path: &OsStr) -> Option<PathBuf> {
    let more = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(PathBuf::from);
    env::split_paths(path).chain(more).map(|dir| dir.join(name)).find(|file| executable(file))
}

fn executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_things_are_named_at_once() {
        let missing = [
            Missing { what: "make", package: "build-essential" },
            Missing { what: "flex", package: "flex" },
            Missing { what: "gcc", package: "build-essential" },
        ];
        let failure = lacks(&missing);
        assert_eq!(failure.code, HOST);
        assert_eq!(
            failure.message,
            "this host lacks make, flex, gcc\n\
             on Debian: apt-get install build-essential flex; other distributions: docs/vm.md"
        );
    }

    #[test]
    fn programs_of_the_administrator_are_found_with_an_empty_path() {
        assert!(find("sh", OsStr::new("")).is_some());
        assert_eq!(find("no such program", OsStr::new("/bin")), None);
        // A directory is not a program, though it can be searched.
        assert_eq!(find("bin", OsStr::new("/usr")), None);
    }
}
