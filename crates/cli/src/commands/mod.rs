// SPDX-License-Identifier: GPL-2.0-only
//! The commands, one file each.

pub(crate) mod claims;
pub(crate) mod diff;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod live;
pub(crate) mod live_control;
pub(crate) mod play;
pub(crate) mod policies;
pub(crate) mod probe;
pub(crate) mod record;
#[cfg(target_os = "linux")]
mod reign;
mod resume;
pub(crate) mod run;
pub(crate) mod top;
mod trace_file;
mod trace_input;
pub(crate) mod view;
pub(crate) mod workloads;
