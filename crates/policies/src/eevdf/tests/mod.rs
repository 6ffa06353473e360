// SPDX-License-Identifier: GPL-2.0-only
//! Tests of EEVDF: the spec's vectors and traces, single behaviours, random runs.

mod behaviour;
pub(crate) mod harness;
pub(crate) mod random;
mod realtime;
mod smp;
pub(crate) mod starve;
mod traces;
mod v6_6;
pub(crate) mod vectors;
