// SPDX-License-Identifier: GPL-2.0-only
//! Where results go: standard output or a file.

use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Write};

use crate::exit::{Exit, Failure};

/// A place for results, checked before the work begins.
#[derive(Debug)]
pub(crate) enum Destination {
    /// Standard output.
    Stdout,
    /// Standard error, for a report beside a command's own output.
    #[cfg(all(feature = "live", target_os = "linux"))]
    Stderr,
    /// A file, named by the user.
    File(String),
}

impl Destination {
    /// Of `-o`: none and `-` are standard output. A file is opened once now and left as it is, so
    /// that a name that cannot work is told before the work and not after it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn of(path: Option<&str>) -> Result<Self, Failure> {
        match path {
            None | Some("-") => Ok(Self::Stdout),
            Some(path) => {
                let probe = OpenOptions::new().append(true).create(true).open(path);
                probe.map_err(|error| cannot_write(path, &error))?;
                Ok(Self::File(path.to_string()))
            }
        }
    }

    /// Writes all of `text`. A reader that has gone away from standard output has seen enough.
    ///
    /// # Errors
    /// When the place does not take it.
    pub(crate) fn write(&self, text: &[u8]) -> Result<(), Failure> {
        match self {
            Self::Stdout => {
                let mut out = io::stdout().lock();
                match out.write_all(text).and_then(|()| out.flush()) {
                    Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                        Err(cannot_write("standard output", &error))
                    }
                    _ => Ok(()),
                }
            }
            #[cfg(all(feature = "live", target_os = "linux"))]
            Self::Stderr => io::stderr()
                .lock()
                .write_all(text)
                .map_err(|error| cannot_write("standard error", &error)),
            Self::File(path) => {
                let written = File::create(path).and_then(|mut file| file.write_all(text));
                written.map_err(|error| cannot_write(path, &error))
            }
        }
    }
}

/// The failure of writing to `place`: the host's, unless the user named an impossible place.
pub(crate) fn cannot_write(place: &str, error: &io::Error) -> Failure {
    let exit = match error.kind() {
        ErrorKind::NotFound | ErrorKind::IsADirectory | ErrorKind::NotADirectory => Exit::Usage,
        _ => Exit::Host,
    };
    Failure::new(exit, format!("cannot write {place}: {error}"))
}
