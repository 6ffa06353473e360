// SPDX-License-Identifier: GPL-2.0-only
//! Traces as text.

mod body;
mod lines;
mod plugin;
mod prefix;
mod printk;
mod reader;
mod scan;
mod state;

pub(crate) use body::cpu_id;
pub(crate) use lines::Lines;
pub use lines::MAX_LINE_BYTES;
pub(crate) use prefix::{Layout, parse as parse_prefix};
pub(crate) use reader::{empty, no_events, read_ftrace, read_perf_script, read_text};
pub(crate) use state::printk as printk_state;
