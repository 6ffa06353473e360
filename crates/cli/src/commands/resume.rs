// SPDX-License-Identifier: GPL-2.0-only
//! What an interrupted `schedlab claims` has finished, for the next call to go on from.
//!
//! One line of JSON for each finished claim, in the user's cache folder. A line counts only for the
//! same program and the same text of the claim: both are part of its key. Without a place to write,
//! nothing is kept and nothing fails.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Mutex;

use schedlab_claims::judge::Outcome;
use schedlab_claims::library::Entry;
use serde_json::Value as Json;

/// Finished claims of earlier calls, and the file that keeps those of this one.
pub(crate) struct Store {
    known: HashMap<String, Outcome>,
    file: Option<(PathBuf, Mutex<File>)>,
    program: u64,
}

impl Store {
    /// What is there; with `fresh` it is thrown away.
    pub(crate) fn open(quick: bool, fresh: bool) -> Self {
        let program = std::env::current_exe().and_then(fs::read).map_or(0, |bytes| fnv(&bytes));
        let mut store = Self { known: HashMap::new(), file: None, program };
        let Some(path) = path(quick) else { return store };
        if fresh {
            let _ = fs::remove_file(&path);
        }
        let text = fs::read_to_string(&path).unwrap_or_default();
        store.known = text.lines().filter_map(read_line).collect();
        let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
        let file = folder.and_then(|()| OpenOptions::new().append(true).create(true).open(&path));
        store.file = file.ok().map(|file| (path, Mutex::new(file)));
        store
    }

    fn key(&self, entry: &Entry) -> String {
        format!("{:016x}-{:016x}", self.program, fnv(entry.text.as_bytes()))
    }

    /// The outcome of a claim that an earlier call has finished.
    pub(crate) fn known(&self, entry: &Entry) -> Option<Outcome> {
        self.known.get(&self.key(entry)).cloned()
    }

    /// Keeps a finished claim.
    pub(crate) fn keep(&self, entry: &Entry, outcome: &Outcome) {
        let Some((_, file)) = &self.file else { return };
        let line = serde_json::json!({"key": self.key(entry), "outcome": outcome});
        if let Ok(mut file) = file.lock() {
            // A full disk costs the chance to resume, not the results.
            let _ = file.write_all(format!("{line}\n").as_bytes());
        }
    }

    /// Everything is done: nothing needs to be kept.
    pub(crate) fn finish(&self) {
        if let Some((path, _)) = &self.file {
            let _ = fs::remove_file(path);
        }
    }
}

/// A line that was cut short is none.
fn read_line(line: &str) -> Option<(String, Outcome)> {
    let json: Json = serde_json::from_str(line).ok()?;
    let key = json["key"].as_str()?.to_string();
    let outcome = serde_json::from_value(json["outcome"].clone()).ok()?;
    Some((key, outcome))
}

/// `claims-full.jsonl` or `claims-quick.jsonl` in the folder `schedlab` of the user's cache.
fn path(quick: bool) -> Option<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    let mode = if quick { "quick" } else { "full" };
    Some(cache.join("schedlab").join(format!("claims-{mode}.jsonl")))
}

/// FNV-1a, 64 bits: tells builds and texts apart; nobody attacks it.
fn fnv(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}
