// SPDX-License-Identifier: GPL-2.0-only
//! The `schedlab` command: arguments, messages, exit codes. Everything it does, `lab` and `report`
//! do; this crate owns only how a user asks and how faults are told.
#![forbid(unsafe_code)]

mod args;
mod bug;
mod commands;
mod excerpt;
mod exit;
mod host_args;
mod interrupt;
mod live_args;
mod output;
mod progress;
mod table;
mod terminal;
mod view_args;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Cli, Command};
use crate::exit::Exit;

fn main() -> ExitCode {
    bug::guard(real_main).into()
}

fn real_main() -> Exit {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version go to standard output, which may be closed: nothing to tell then.
            let _ = error.print();
            return if error.use_stderr() { Exit::Usage } else { Exit::Done };
        }
    };
    terminal::set_color(cli.common.color);
    let outcome = match &cli.command {
        Command::Run(args) => commands::run::run(args, cli.common),
        Command::Claims(args) => commands::claims::claims(args, cli.common),
        Command::Policies(args) => commands::policies::policies(args),
        Command::Workloads(args) => commands::workloads::workloads(args),
        Command::Import(args) => commands::import::import(args, cli.common),
        Command::Diff(args) => commands::diff::diff(args),
        Command::Export(args) => commands::export::export(args, cli.common),
        Command::View(args) => commands::view::view(args, cli.common),
        Command::Play(args) => commands::play::play(args, cli.common),
        Command::Live(args) => commands::live::live(args, cli.common),
        Command::Probe(args) => commands::probe::probe(args),
        Command::Top(args) => commands::top::top(args),
        Command::Record(args) => commands::record::record(args, cli.common),
    };
    match outcome {
        Ok(exit) => exit,
        Err(failure) => {
            failure.print();
            failure.exit
        }
    }
}
