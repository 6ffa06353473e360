// SPDX-License-Identifier: GPL-2.0-only
//! How the program ends: exit codes, and the message that goes with each but the first.

use std::fmt::Display;
use std::process::ExitCode;

use schedlab_units::Located;

use crate::excerpt::{Source, excerpt};
use crate::terminal;

/// Exit codes; they are part of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done, and all checks passed.
    Done,
    /// A claim, check or goal failed.
    CheckFailed,
    /// The command line is wrong.
    Usage,
    /// An input is wrong.
    Input,
    /// This host lacks something.
    Host,
    /// A bug in schedlab.
    Bug,
    /// Interrupted; results so far are kept.
    Interrupted,
    /// The code of a command that was run for the user.
    Command(u8),
}

impl Exit {
    /// The number.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::CheckFailed => 1,
            Self::Usage => 2,
            Self::Input => 3,
            Self::Host => 4,
            Self::Bug => 70,
            Self::Interrupted => 130,
            Self::Command(code) => code,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The exit code.
    pub(crate) exit: Exit,
    /// The line after `error: `.
    message: String,
    /// Further lines: excerpt of the input, hint.
    details: Vec<String>,
}

impl Failure {
    /// A failure with one line to say.
    pub(crate) fn new(exit: Exit, message: impl Display) -> Self {
        Self { exit, message: one_line(&message.to_string()), details: Vec::new() }
    }

    /// A fault in an input: `FILE:LINE:COLUMN: message`, the place in the text, and the hint.
    pub(crate) fn located(exit: Exit, file: &str, fault: &Located, source: &Source<'_>) -> Self {
        let blank = if fault.at.is_some() { "" } else { " " };
        let place = fault.at.map_or_else(String::new, |at| format!("{at}: "));
        let mut failure = Self::new(exit, format!("{file}:{blank}{place}{}", fault.message));
        let mut gutter = 1;
        if let Some(excerpt) = fault.at.and_then(|at| excerpt(source, at)) {
            gutter = excerpt.gutter;
            failure.details.extend(excerpt.lines);
        }
        if !fault.hint.is_empty() {
            failure.details.push(format!("{:gutter$} = hint: {}", "", one_line(&fault.hint)));
        }
        failure
    }

    /// The same with a line that says how to mend it.
    pub(crate) fn with_hint(mut self, hint: &str) -> Self {
        if !hint.is_empty() {
            self.details.push(format!("  = hint: {}", one_line(hint)));
        }
        self
    }

    /// Tells it on standard error.
    pub(crate) fn print(&self) {
        terminal::error(&self.message);
        for line in &self.details {
            terminal::message(line);
        }
    }
}

/// Messages may repeat parts of an input; they must not break the line or move the cursor.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
