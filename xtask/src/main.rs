// SPDX-License-Identifier: GPL-2.0-only
//! `cargo xtask`: work around the product that is no part of it. `vm` runs a command in a guest
//! with sched_ext, `kernel` builds the guest's kernel; docs/vm.md says more.
#![forbid(unsafe_code)]

mod accel;
mod args;
mod cpio;
mod exit;
mod follow;
mod image;
mod initramfs;
mod kconfig;
mod kernel;
mod locate;
mod qemu;
mod run_dir;
mod tools;
mod vm;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Task};
use crate::exit::{USAGE, tell};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help goes to standard output, which may be closed: nothing to tell then.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { USAGE } else { 0 });
        }
    };
    let outcome = match &cli.command {
        Task::Vm(args) => vm::vm(args),
        Task::Kernel(args) => kernel::kernel(args),
    };
    ExitCode::from(outcome.unwrap_or_else(|failure| {
        tell(format_args!("error: {}", failure.message));
        failure.code
    }))
}
