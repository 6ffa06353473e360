// SPDX-License-Identifier: GPL-2.0-only
//! Lists the files of `experiments/` at the root, so that a new claim needs nothing but its file.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let variable = |name: &str| env::var(name).map_err(|error| io::Error::other(error.to_string()));
    let folder = Path::new(&variable("CARGO_MANIFEST_DIR")?).join("../../experiments");
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
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let text = path.to_string_lossy().into_owned();
        let _ = writeln!(table, "    ({name:?}, include_str!({text:?})),");
    }
    table.push(']');
    fs::write(Path::new(&variable("OUT_DIR")?).join("experiments.rs"), table)
}
