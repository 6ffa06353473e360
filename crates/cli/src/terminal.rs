// SPDX-License-Identifier: GPL-2.0-only
//! Standard error, colours and the width of the terminal.

use std::io::{IsTerminal, Write};

use anstream::{AutoStream, ColorChoice};

use crate::args::ColorArg;

const BOLD: &str = "\x1b[1m";
const RED: &str = "\x1b[1;31m";
const YELLOW: &str = "\x1b[1;33m";
const PLAIN: &str = "\x1b[0m";

/// Page width when standard output is no terminal.
const PAGE: usize = 100;

/// Obeys `--color`; without it NO_COLOR and the kind of terminal decide.
pub(crate) fn set_color(choice: ColorArg) {
    let choice = match choice {
        ColorArg::Auto => ColorChoice::Auto,
        ColorArg::Always => ColorChoice::AlwaysAnsi,
        ColorArg::Never => ColorChoice::Never,
    };
    choice.write_global();
}

/// Whether results on standard output may be coloured.
pub(crate) fn stdout_color() -> bool {
    AutoStream::choice(&std::io::stdout()) != ColorChoice::Never
}

/// Columns of the terminal behind standard output, or of a page.
pub(crate) fn width() -> usize {
    let columns = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let terminal = || {
        let (width, _) = terminal_size::terminal_size_of(std::io::stdout())?;
        Some(usize::from(width.0))
    };
    columns.or_else(terminal).unwrap_or(PAGE).max(40)
}

/// Columns and rows of the terminal behind standard output; none when it is no terminal.
pub(crate) fn size() -> Option<(usize, usize)> {
    let (width, height) = terminal_size::terminal_size_of(std::io::stdout())?;
    Some((usize::from(width.0), usize::from(height.0)))
}

/// Whether somebody watches standard error.
pub(crate) fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// `error: …` on standard error.
pub(crate) fn error(text: &str) {
    message(&format!("{RED}error:{PLAIN} {BOLD}{text}{PLAIN}"));
}

/// `warning: …` on standard error.
pub(crate) fn warning(text: &str) {
    message(&format!("{YELLOW}warning:{PLAIN} {text}"));
}

/// A line on standard error. If that is closed there is nobody to tell.
pub(crate) fn message(text: &str) {
    let _ = writeln!(anstream::stderr(), "{text}");
}
