// SPDX-License-Identifier: GPL-2.0-only
//! What several test files need.

use schedlab_workload::{LoadError, LoadOptions, Loaded, load_text};

/// Loads a text under a file name, without parameters.
pub(crate) fn load(file: &str, text: &str) -> Result<Loaded, LoadError> {
    load_text(file, text.to_string(), &[], &LoadOptions::default())
}
