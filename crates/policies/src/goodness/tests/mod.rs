// SPDX-License-Identifier: GPL-2.0-only
//! Rows and traces of spec linux-2.4-goodness §9 and §7.3, and a literal twin of the policy.

mod decisions;
mod hooks;
pub(crate) mod reference;
pub(crate) mod rig;
mod rt_preemption;
mod ticks;
pub(crate) mod traces;
pub(crate) mod twin;
mod values;
