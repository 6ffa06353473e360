// SPDX-License-Identifier: GPL-2.0-only
//! Tests of EEVDF: the spec's vectors and traces, single behaviours, random runs.

mod behaviour;
mod harness;
mod random;
mod realtime;
mod smp;
mod starve;
mod traces;
pub(crate) mod vectors;
