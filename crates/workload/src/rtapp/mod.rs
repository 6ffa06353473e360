// SPDX-License-Identifier: GPL-2.0-only
//! Reader of rt-app's JSON grammar.
//!
//! `docs/rtapp.md` says what every key becomes, and which are refused and why. The grammar itself
//! is described in spec formats-and-ecosystem §1.

mod compile;
mod cost;
mod events;
mod global;
mod grammar;
mod json;
mod legacy;
mod read;
mod sched;
mod tasks;
mod values;

pub use read::RtAppOptions;
pub(crate) use read::read;
