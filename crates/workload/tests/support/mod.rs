// SPDX-License-Identifier: GPL-2.0-only
//! Tools for tests of imported workloads.

pub(crate) mod executor;
