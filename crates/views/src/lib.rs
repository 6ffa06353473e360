// SPDX-License-Identifier: GPL-2.0-only
//! Reports on traces, laid out like those of `perf sched`.
//!
//! Every view is a [`schedlab_trace::RecordSink`]: it is fed records one by one, whether they come
//! from a file, a simulated run or this host, and keeps no more than a few numbers a thread.
//! [`Timehist`] and [`Map`] write their rows as records come; [`Latency`] and [`Summary`] write
//! when they are finished.
//! The page `docs/views.md` defines each column and lists the differences to perf.
//! Layouts: spec formats-and-ecosystem §2.5.
#![forbid(unsafe_code)]

mod dialect;
mod figures;
mod latency;
mod map;
mod names;
mod out;
mod sample;
mod summary;
mod timehist;

pub use dialect::Perf;
pub use latency::{Latency, LatencyOptions, SortKey};
pub use map::{Map, MapOptions};
pub use summary::{SUMMARY_SCHEMA, Summary};
pub use timehist::{SummaryMode, Timehist, TimehistOptions};
