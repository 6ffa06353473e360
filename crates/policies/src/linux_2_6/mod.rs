// SPDX-License-Identifier: GPL-2.0-only
//! What the schedulers of Linux 2.6.0 to 2.6.6 have in common: policy `o1`, and `spa`, which
//! replaces its arrays and keeps the rest.

pub(crate) mod busiest;
#[cfg(test)]
pub(crate) mod rig;
pub(crate) mod sleep_avg;
