// SPDX-License-Identifier: GPL-2.0-only
//! The program, started as its users start it.

use std::path::Path;
use std::process::{Command, Stdio};

/// The program in `folder`, without the settings of whoever runs the tests.
pub(crate) fn schedlab_in(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_schedlab"));
    command.current_dir(folder).stdin(Stdio::null());
    for variable in ["COLUMNS", "RUST_BACKTRACE", "CLICOLOR_FORCE", "NO_COLOR"] {
        command.env_remove(variable);
    }
    command
}
