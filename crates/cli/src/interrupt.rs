// SPDX-License-Identifier: GPL-2.0-only
//! ^C: the first one asks running jobs to end with what they have, the second one ends at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::exit::{Exit, Failure};

/// A flag that the first ^C (or SIGTERM) sets.
///
/// # Errors
/// When the host does not let us handle signals.
pub(crate) fn flag() -> Result<Arc<AtomicBool>, Failure> {
    let flag = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&flag);
    ctrlc::set_handler(move || {
        if seen.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(Exit::Interrupted.code()));
        }
    })
    .map_err(|error| Failure::new(Exit::Host, format!("cannot handle signals: {error}")))?;
    Ok(flag)
}
