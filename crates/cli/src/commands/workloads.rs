// SPDX-License-Identifier: GPL-2.0-only
//! `schedlab workloads`: the built-in workloads, where they come from and what can be set.

use schedlab_workload::{Builtin, LoadOptions, builtins, find};

use crate::args::NameArgs;
use crate::commands::run::load;
use crate::exit::{Exit, Failure};
use crate::output::Destination;

/// Lists all built-in workloads or shows one.
///
/// # Errors
/// When there is no workload of that name.
pub(crate) fn workloads(args: &NameArgs) -> Result<Exit, Failure> {
    let text = match &args.name {
        None => list()?,
        Some(name) => match find(name) {
            Some(builtin) => show(builtin)?,
            // Loading it fails with the names that are near.
            None => {
                return Err(load(name, &[], &LoadOptions::default())
                    .err()
                    .unwrap_or_else(|| no_builtin(name)));
            }
        },
    };
    Destination::Stdout.write(text.as_bytes())?;
    Ok(Exit::Done)
}

fn no_builtin(name: &str) -> Failure {
    Failure::new(Exit::Usage, format!("{name} is a file and no built-in workload"))
}

fn list() -> Result<String, Failure> {
    let width = builtins().iter().map(|builtin| builtin.name.len()).max().unwrap_or(0);
    let mut text = String::new();
    for builtin in builtins() {
        let about = load(builtin.name, &[], &LoadOptions::default())?.workload.about;
        text += &format!("{:width$}  {about}\n", builtin.name);
    }
    Ok(text + "\n`schedlab workloads NAME` shows origin and parameters of one.\n")
}

fn show(builtin: &Builtin) -> Result<String, Failure> {
    let loaded = load(builtin.name, &[], &LoadOptions::default())?;
    let workload = &loaded.workload;
    let mut text = format!("{}  {}\nOrigin: {}\n", builtin.name, workload.about, workload.origin);
    if let Some(duration) = workload.duration {
        text += &format!("Runs for {duration} unless --duration says otherwise\n");
    }
    let header = builtin.header();
    if !header.is_empty() {
        text += &format!("\n{}\n", header.trim_end());
    }
    let matrix = builtin.matrix().map_err(|fault| Failure::new(Exit::Bug, fault))?;
    if !matrix.is_empty() {
        let names: Vec<String> = matrix.iter().map(|axis| axis.param.to_uppercase()).collect();
        let name = builtin.name;
        let one = format!("{name}-{}", names.join("-"));
        text += &format!("\nMatrix (`run {name}` runs all, `run {one}` one combination)\n");
        for axis in matrix {
            let also = match axis.also.as_slice() {
                [] => String::new(),
                also => format!("; when asked for: {}", also.join(", ")),
            };
            text += &format!("  {}: {}{also}\n", axis.param, axis.values.join(", "));
        }
    }
    let params = builtin.params().map_err(|fault| Failure::new(Exit::Bug, fault))?;
    if !params.is_empty() {
        text += "\nParameters (--set KEY=VALUE)\n";
        for param in params {
            text += &format!("  {} = {}  ({})\n", param.name, param.default, param.kind);
            if !param.about.is_empty() {
                text += &format!("      {}\n", param.about);
            }
        }
    }
    Ok(text)
}
