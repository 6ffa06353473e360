// SPDX-License-Identifier: GPL-2.0-only
//! From a name, a path or a text to a workload that a host may run.

use std::fmt;
use std::path::Path;

use schedlab_units::{Located, Position};

use crate::combine::combine;
use crate::digest::{Digest, digest};
use crate::ir::Workload;
use crate::library;
use crate::machine::check_machine;
use crate::origins::Origins;
use crate::rtapp::{self, RtAppOptions};
use crate::toml;
use crate::validate::{Invalid, validate};

/// Longest line of a workload file; a longer one is garbage, and is refused before parsing.
const MAX_LINE: usize = 4 << 20;
/// Largest workload file.
const MAX_FILE: usize = 256 << 20;

/// How to read a workload.
#[derive(Clone, Debug, Default)]
pub struct LoadOptions {
    /// How to read rt-app's grammar.
    pub rtapp: RtAppOptions,
}

/// A workload that was read and checked.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The workload.
    pub workload: Workload,
    /// What the user should know, in the order of the text.
    pub warnings: Vec<Located>,
    /// Hash of its resolved form.
    pub digest: Digest,
    /// Combinations of its matrix that the parameters leave open, each as the parameters still to be
    /// set; empty without a matrix, one for a single combination.
    pub cells: Vec<Vec<(String, String)>>,
    /// Name of the file, or of the built-in workload.
    pub file: String,
    /// The text it was read from.
    pub source_text: String,
    pub(crate) origins: Origins,
}

impl Loaded {
    /// A fault that shows only where the workload is to run, with its place in the text.
    pub fn locate(&self, invalid: &Invalid) -> Located {
        located(invalid, &self.origins, &self.source_text)
    }

    /// Checks that the machine has every CPU the workload names, and points at the first it lacks.
    ///
    /// # Errors
    /// A [`LoadErrorKind::Input`] error.
    pub fn check_machine(&self, n_cpus: usize) -> Result<(), LoadError> {
        check_machine(&self.workload, n_cpus).map_err(|invalid| {
            let fault = located(&invalid, &self.origins, &self.source_text)
                .hint("choose a larger machine with --machine, or change the file");
            LoadError { file: self.file.clone(), fault, kind: LoadErrorKind::Input }
        })
    }
}

/// Which kind of mistake it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadErrorKind {
    /// The command line: an unknown name, a missing file, a wrong parameter.
    Usage,
    /// The text of the workload.
    Input,
}

/// Why there is no workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError {
    /// Name of the file, or of the built-in workload.
    pub file: String,
    /// What is wrong and where.
    pub fault: Located,
    /// Whose mistake it is.
    pub kind: LoadErrorKind,
}

impl fmt::Display for LoadError {
    /// `FILE:LINE:COLUMN: what is wrong (hint: …)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let blank = if self.fault.at.is_some() { "" } else { " " };
        write!(f, "{}:{blank}{}", self.file, self.fault)
    }
}

impl std::error::Error for LoadError {}

/// Why a text is no workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReadError {
    /// A fault of the text.
    Input(Located),
    /// A fault of a parameter that was to be set.
    Parameter(String),
}

impl From<Located> for ReadError {
    fn from(fault: Located) -> Self {
        Self::Input(fault)
    }
}

/// What a reader yields.
pub(crate) struct Read {
    pub(crate) workload: Workload,
    pub(crate) origins: Origins,
    pub(crate) warnings: Vec<Located>,
    pub(crate) cells: Vec<toml::Cell>,
}

/// Loads the built-in workload of this name, or the file with this path. Several joined by `+` run
/// at the same time.
///
/// A combination of a built-in's matrix has a name of its own, such as `interbench-audio-burn`.
///
/// `overrides` are parameters to set, as name and value.
///
/// # Errors
/// [`LoadErrorKind::Usage`] for an unknown name, a missing file or a wrong parameter,
/// [`LoadErrorKind::Input`] for a fault inside the file.
pub fn resolve(
    name_or_path: &str,
    overrides: &[(String, String)],
    options: &LoadOptions,
) -> Result<Loaded, LoadError> {
    if let Some(builtin) = library::find(name_or_path) {
        let set = [builtin.cell(name_or_path).unwrap_or_default(), overrides.to_vec()].concat();
        return load_text(name_or_path, builtin.text.to_string(), &set, options);
    }
    let usage =
        |fault| LoadError { file: name_or_path.to_string(), fault, kind: LoadErrorKind::Usage };
    let path = Path::new(name_or_path);
    let parts: Vec<&str> = name_or_path.split('+').collect();
    if parts.len() > 1 && !path.exists() {
        return combine(name_or_path, &parts, overrides, options);
    }
    let looks_like_path = name_or_path.contains(['/', '\\']) || path.extension().is_some();
    if !looks_like_path && !path.exists() {
        return Err(usage(library::unknown(name_or_path)));
    }
    match std::fs::read(path) {
        Ok(bytes) => load_bytes(name_or_path, bytes, overrides, options),
        Err(error) => {
            let why = error.to_string();
            Err(usage(Located::whole(format!("the file cannot be read: {why}"))))
        }
    }
}

/// Loads a workload from the bytes of a file or of standard input.
///
/// # Errors
/// As [`resolve`].
pub fn load_bytes(
    file: &str,
    bytes: Vec<u8>,
    overrides: &[(String, String)],
    options: &LoadOptions,
) -> Result<Loaded, LoadError> {
    match String::from_utf8(bytes) {
        Ok(text) => load_text(file, text, overrides, options),
        Err(error) => {
            let valid = error.utf8_error().valid_up_to();
            let bytes = error.into_bytes();
            let before = String::from_utf8_lossy(&bytes[..valid]);
            let fault = Located::at_offset(&before, valid, "the file is not UTF-8 text here")
                .hint("a workload is a .toml file, or a .json file in rt-app's grammar");
            Err(LoadError { file: file.to_string(), fault, kind: LoadErrorKind::Input })
        }
    }
}

/// Loads a workload from a text; `file` names it in messages and, by its extension, its format.
///
/// # Errors
/// As [`resolve`].
pub fn load_text(
    file: &str,
    text: String,
    overrides: &[(String, String)],
    options: &LoadOptions,
) -> Result<Loaded, LoadError> {
    let input = |fault| LoadError { file: file.to_string(), fault, kind: LoadErrorKind::Input };
    sane(&text).map_err(input)?;
    let read = match format_of(file, &text) {
        Format::Toml => toml::read(&text, overrides),
        Format::RtApp => rtapp::read(file, &text, overrides, &options.rtapp),
    };
    let Read { workload, origins, warnings, cells } = match read {
        Ok(read) => read,
        Err(ReadError::Input(fault)) => return Err(input(fault)),
        Err(ReadError::Parameter(message)) => {
            let fault = Located::whole(message);
            return Err(LoadError {
                fault,
                kind: LoadErrorKind::Usage,
                ..input(Located::whole(""))
            });
        }
    };
    validate(&workload).map_err(|invalid| input(located(&invalid, &origins, &text)))?;
    Ok(Loaded {
        digest: digest(&workload),
        workload,
        warnings,
        cells,
        file: file.to_string(),
        source_text: text,
        origins,
    })
}

fn located(invalid: &Invalid, origins: &Origins, text: &str) -> Located {
    match origins.offset(invalid.place) {
        Some(offset) => Located::at_offset(text, offset, invalid.message.as_str()),
        None => Located::whole(invalid.message.as_str()),
    }
}

enum Format {
    Toml,
    RtApp,
}

/// The extension decides; without one of the two, the first character does.
fn format_of(file: &str, text: &str) -> Format {
    match Path::new(file).extension().and_then(|e| e.to_str()) {
        Some("json") => Format::RtApp,
        Some("toml") => Format::Toml,
        _ if text.trim_start().starts_with(['{', '/']) => Format::RtApp,
        _ => Format::Toml,
    }
}

/// Refuses what no parser should spend time on.
fn sane(text: &str) -> Result<(), Located> {
    if text.trim_start().is_empty() {
        return Err(Located::at(1, 1, "the file is empty")
            .hint("a workload is a .toml file, or a .json file in rt-app's grammar"));
    }
    if text.len() > MAX_FILE {
        let message = format!("the file has {} MiB; at most 256 are read", text.len() >> 20);
        return Err(Located::whole(message));
    }
    let long = text.split('\n').enumerate().find(|(_, line)| line.len() > MAX_LINE);
    let Some((index, line)) = long else { return Ok(()) };
    let at = Position { line: index + 1, column: 1 };
    let message = format!("this line is {} MiB long; no workload has such lines", line.len() >> 20);
    Err(Located::at(at.line, at.column, message)
        .hint("is this a workload? recordings are read by `schedlab import`"))
}
