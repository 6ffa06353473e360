// SPDX-License-Identifier: GPL-2.0-only
//! How the program ends: exit codes as those of `schedlab`, and the message of a failure.

use std::fmt::Display;
use std::io::Write;

/// Failed, for a reason that none of the other codes names.
pub(crate) const FAILED: u8 = 1;
/// The command line is wrong.
pub(crate) const USAGE: u8 = 2;
/// An input is wrong.
pub(crate) const INPUT: u8 = 3;
/// This host lacks something.
pub(crate) const HOST: u8 = 4;
/// The guest ended without the code of its command.
pub(crate) const NO_CODE: u8 = 125;
/// Interrupted by ^C.
pub(crate) const INTERRUPTED: u8 = 130;

/// Why a command did not do what it was asked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The exit code.
    pub(crate) code: u8,
    /// What is said after `error: `; it may have several lines.
    pub(crate) message: String,
}

impl Failure {
    /// A failure with its exit code and what to say.
    pub(crate) fn new(code: u8, message: impl Display) -> Self {
        Self { code, message: message.to_string() }
    }
}

/// A line on standard error. If that is closed there is nobody to tell.
pub(crate) fn tell(text: impl Display) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
