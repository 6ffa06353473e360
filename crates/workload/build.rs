// SPDX-License-Identifier: GPL-2.0-only
//! Lists the files of `workloads/`, so that a new built-in workload needs nothing but its file.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let variable = |name: &str| env::var(name).map_err(|error| io::Error::other(error.to_string()));
    let folder = Path::new(&variable("CARGO_MANIFEST_DIR")?).join("workloads");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            files.push(path);
        }
    }
    files.sort();
    let mut table = String::from("&[\n");
    for path in files {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = path.to_string_lossy().into_owned();
        let _ = writeln!(table, "    Builtin {{ name: {name:?}, text: include_str!({text:?}) }},");
    }
    table.push(']');
    fs::write(Path::new(&variable("OUT_DIR")?).join("builtins.rs"), table)
}
